/*
 * embed_limits.c - holds and breakers that a user's program sets, and what a queue uses of its limits.
 */
#include "embed/embed.h"

#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"
#include "engine/why_text.h"

#include <stdio.h>

/* ---- Holds ---- */

static int
read_scope(const struct slu_hold_options *o, struct op_limits *out, struct slu_err *err)
{
	const char *const scope = o->scope ? o->scope : "queue";

	out->scope = 0;
	while (out->scope < GATE_KINDS && strcmp(scope, why_scope(out->scope)) != 0)
		out->scope++;
	out->name = slice_of(o->name ? o->name : "");
	if (out->scope == GATE_KINDS)
		return slu_fail(err, SLU_EINVAL, "invalid scope: %.40s; expected queue, share, key or attribute", scope);
	if (out->name.n > MESSAGE_KEY_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid name; expected at most %d bytes", MESSAGE_KEY_MAX);
	if (out->scope == GATE_QUEUE ? out->name.n > 0 : out->scope != GATE_SHARE && out->name.n == 0)
		return slu_fail(err, SLU_EINVAL, "invalid name; expected none of a queue, and one of a key or an attribute");
	return 0;
}

static int
read_hold(const struct slu_hold_options *o, struct op_limits *out, struct slu_err *err)
{
	if (read_scope(o, out, err) || need_time(o->hold, "hold", err))
		return SLU_EINVAL;
	out->hold = o->hold;
	out->breaker = slice_of(o->breaker ? o->breaker : "");
	if (out->breaker.n >= BREAKER_NAME)
		return slu_fail(err, SLU_EINVAL, "invalid breaker; expected at most %d bytes", BREAKER_NAME - 1);
	return 0;
}

int
slu_hold(struct slu_broker *b, const char *queue, const struct slu_hold_options *options, struct slu_err *err)
{
	NEED3(b, queue, options, err);

	struct slu_hold_options room;
	const struct slu_hold_options *o = SIZED(slu_hold_options, options, &room, err);
	struct embed_call c;
	int rc;

	if (!o)
		return SLU_EINVAL;
	rc = embed_begin(b, &c, OP_HOLD, queue, err);
	if (rc)
		return rc;
	rc = read_hold(o, &c.op.limits, err);
	if (!rc)
		rc = embed_run(b, &c, err);
	if (rc == SLU_ENOTFOUND && o->breaker)
		rc = slu_fail(err, SLU_ENOTFOUND, "queue %s has no breaker %s of this scope", queue, o->breaker);
	else if (rc == SLU_ENOTFOUND)
		rc = slu_fail(err, SLU_ENOTFOUND, "there is no queue %s", queue);
	embed_end(b, &c);
	return rc;
}

/* ---- Limits ---- */

static void
show_use(const struct op_use *in, struct slu_use *out)
{
	const struct slice name = slice_of(in->name);

	*out = (struct slu_use){
		.is_hold = in->is_hold,
		.messages = in->messages,
		.ready = in->ready,
		.leased = in->leased,
		.concurrency = in->concurrency,
		.rate = in->rate,
		.burst = in->burst,
		.tokens = in->tokens,
		.weight = in->weight,
		.waiting = in->waiting,
		.delivered = in->delivered,
		.until = in->hold ? in->hold : in->until,
	};
	(void)snprintf(out->scope, sizeof out->scope, "%s", kind_is(name) ? "kind" : why_scope(in->kind));
	(void)snprintf(out->name, sizeof out->name, "%s", in->name + kind_is(name)); /* fits */
	if (in->circuit)
		(void)snprintf(out->breaker, sizeof out->breaker, "%s", in->breaker); /* fits */
}

static int
run_limits(struct slu_broker *b, struct embed_call *c, struct slu_use *out, size_t *n, struct slu_err *err)
{
	const int rc = embed_run(b, c, err);

	if (rc == SLU_ENOTFOUND)
		return slu_fail(err, SLU_ENOTFOUND, "there is no queue %s", c->queue);
	for (uint32_t i = 0; !rc && i < c->op.n_uses; i++)
		if (!c->op.limits.by_kind || kind_is(slice_of(c->op.uses[i].name)))
			show_use(&c->op.uses[i], &out[(*n)++]);
	return rc;
}

int
slu_limits(struct slu_broker *b, const char *queue, const struct slu_limits_options *options, struct slu_use *out, size_t max,
	   size_t *n, struct slu_err *err)
{
	NEED4(b, queue, out, n, err);

	struct slu_limits_options room;
	const struct slu_limits_options *o = SIZED(slu_limits_options, options, &room, err);
	const size_t most = max < 1024 ? max : 1024; /* there are never more */
	struct embed_call c;
	int rc;

	*n = 0;
	if (!o)
		return SLU_EINVAL;
	if (max == 0)
		return slu_fail(err, SLU_EINVAL, "invalid max: 0; expected 1 or more");
	rc = embed_begin(b, &c, OP_LIMITS, queue, err);
	if (rc)
		return rc;
	c.op.uses = mem_array(most, sizeof *c.op.uses);
	c.op.max_uses = (uint32_t)most;
	c.op.limits.by_kind = o->kinds;
	c.op.limits.by_messages = o->by_messages;
	rc = c.op.uses ? run_limits(b, &c, out, n, err) : slu_fail(err, SLU_ENOMEM, "no memory for %zu rows", most);
	mem_free(c.op.uses);
	embed_end(b, &c);
	return rc;
}
