/*
 * embed_policy.c - the settings of a queue of a user's program.
 */
#include "embed/embed.h"

#include "base/need.h"
#include "base/sized.h"
#include "core/queue/policy.h"

enum {
	HOPS = 16 /* queues that dead letters may go through */
};

_Static_assert(sizeof((struct slu_policy *)0)->rules == RULES_TEXT && sizeof((struct slu_policy *)0)->breakers == BREAKERS_TEXT &&
		       sizeof((struct slu_policy *)0)->share_weights == POLICY_WEIGHTS &&
		       sizeof((struct slu_policy *)0)->limit_attribute == POLICY_ATTRIBUTE &&
		       sizeof((struct slu_policy *)0)->dead_letter_queue >= NAME_TEXT,
	       "texts of a policy fit");

/* ---- The numbers of both structs ---- */

struct policy_number {
	size_t given, stored; /* their places */
};

#define NUMBER(member)                                                               \
	{                                                                            \
		offsetof(struct slu_policy, member), offsetof(struct policy, member) \
	}

_Static_assert(sizeof(unsigned) == sizeof(uint32_t), "numbers are copied as bytes");

static const struct policy_number numbers[] = {
	NUMBER(max_depth),
	NUMBER(max_rate),
	NUMBER(burst),
	NUMBER(dlq_max),
	NUMBER(concurrency),
	NUMBER(share_concurrency),
	NUMBER(attribute_concurrency),
	NUMBER(rate),
	NUMBER(rate_burst),
	NUMBER(share_rate),
	NUMBER(share_rate_burst),
	NUMBER(key_rate),
	NUMBER(key_rate_burst),
	NUMBER(attribute_rate),
	NUMBER(attribute_rate_burst),
};

static void
take_numbers(const struct slu_policy *in, struct policy *out)
{
	for (size_t i = 0; i < COUNT(numbers); i++)
		memcpy((char *)out + numbers[i].stored, (const char *)in + numbers[i].given, sizeof(uint32_t));
}

static void
show_numbers(const struct policy *in, struct slu_policy *out)
{
	for (size_t i = 0; i < COUNT(numbers); i++)
		memcpy((char *)out + numbers[i].given, (const char *)in + numbers[i].stored, sizeof(uint32_t));
}

/* ---- In ---- */

static int
take_text(const char *text, size_t size, const char *what, char *out, size_t room, struct slu_err *err)
{
	const char *const end = memchr(text, 0, size);

	if (!end || (size_t)(end - text) >= room)
		return slu_fail(err, SLU_EINVAL, "invalid %s; expected a text of at most %zu bytes", what, room - 1);
	memcpy(out, text, (size_t)(end - text)); /* the rest of out is 0 */
	return 0;
}

#define TAKE(in, out, member, err) \
	take_text((in)->member, sizeof(in)->member, #member, (out)->member, sizeof(out)->member, (err))

static int
take_texts(const struct slu_policy *in, struct policy *out, struct slu_err *err)
{
	int rc = TAKE(in, out, limit_attribute, err);

	rc = rc ? rc : TAKE(in, out, share_weights, err);
	rc = rc ? rc : TAKE(in, out, rules, err);
	rc = rc ? rc : TAKE(in, out, breakers, err);
	rc = rc ? rc : TAKE(in, out, dead_letter_queue, err);
	if (!rc && out->dead_letter_queue[0])
		rc = name_fold(slice_of(in->dead_letter_queue), "dead_letter_queue", out->dead_letter_queue, err);
	return rc;
}

static int
take_policy(const struct slu_policy *in, struct policy *out, struct slu_err *err)
{
	*out = policy_default;
	out->lease = in->lease ? in->lease : out->lease;
	out->max_attempts = in->max_attempts ? in->max_attempts : out->max_attempts;
	if (in->has_retry)
		out->retry = (struct slu_backoff){ .kind = in->retry.kind, .jitter = in->retry.jitter, .base = in->retry.base, .max = in->retry.max };
	out->window = in->window == SLU_NOWAIT ? 0 : in->window ? in->window
								: out->window;
	out->max_runtime = in->max_runtime;
	out->ttl = in->ttl;
	out->dlq_retention = in->dlq_retention;
	out->paused = in->paused;
	out->draining = in->draining;
	out->strict = in->strict;
	take_numbers(in, out);
	return take_texts(in, out, err) ? SLU_EINVAL : policy_check(out, err);
}

/* ---- Out ---- */

static void
show_policy(const struct policy *in, struct slu_policy *out)
{
	*out = (struct slu_policy){
		.lease = in->lease,
		.max_runtime = in->max_runtime,
		.max_attempts = in->max_attempts,
		.has_retry = true,
		.paused = in->paused,
		.draining = in->draining,
		.strict = in->strict,
		.retry = in->retry,
		.ttl = in->ttl,
		.window = in->window ? in->window : SLU_NOWAIT,
		.dlq_retention = in->dlq_retention,
	};
	show_numbers(in, out);
	memcpy(out->limit_attribute, in->limit_attribute, sizeof in->limit_attribute);
	memcpy(out->share_weights, in->share_weights, sizeof in->share_weights);
	memcpy(out->rules, in->rules, sizeof in->rules);
	memcpy(out->breakers, in->breakers, sizeof in->breakers);
	memcpy(out->dead_letter_queue, in->dead_letter_queue, sizeof in->dead_letter_queue);
}

/* ---- The calls ---- */

static int
get(struct slu_broker *b, const char *queue, struct policy *out, struct slu_err *err)
{
	struct embed_call c;
	int rc = embed_begin(b, &c, OP_POLICY_GET, queue, err);

	if (rc)
		return rc;
	rc = embed_run(b, &c, err);
	*out = c.op.policy;
	embed_end(b, &c);
	return rc;
}

/* Dead letters may not come back to their queue, which is folded. */
static int
check_letters(struct slu_broker *b, const char *queue, const struct policy *p, struct slu_err *err)
{
	struct policy at = *p;

	for (unsigned hops = 0; at.dead_letter_queue[0]; hops++) {
		char next[NAME_TEXT];

		memcpy(next, at.dead_letter_queue, sizeof next);
		if (hops == HOPS || strcmp(next, queue) == 0)
			return slu_fail(err, SLU_EINVAL, "invalid dead_letter_queue; expected a queue whose dead letters do not come back to queue %s", queue);
		if (get(b, next, &at, err))
			return err ? err->code : SLU_EINVAL;
	}
	return 0;
}

int
slu_policy_set(struct slu_broker *b, const char *queue, const struct slu_policy *policy, struct slu_err *err)
{
	NEED3(b, queue, policy, err);

	struct slu_policy room;
	const struct slu_policy *given = SIZED(slu_policy, policy, &room, err);
	struct embed_call c;
	struct policy p;
	int rc;

	if (!given || take_policy(given, &p, err))
		return SLU_EINVAL;
	rc = embed_begin(b, &c, OP_POLICY_SET, queue, err);
	if (rc)
		return rc;
	rc = check_letters(b, c.queue, &p, err);
	c.op.policy = p;
	if (!rc)
		rc = embed_run(b, &c, err);
	embed_end(b, &c);
	return rc;
}

int
slu_policy_get(struct slu_broker *b, const char *queue, struct slu_policy *out, struct slu_err *err)
{
	NEED3(b, queue, out, err);

	struct slu_policy shown = { 0 };
	struct policy p;
	int rc;

	rc = get(b, queue, &p, err);
	if (rc)
		return rc;
	show_policy(&p, &shown);
	return sized_write(out, &shown, sizeof shown, "slu_policy", err);
}
