#include "core/queue/policy.h"

#include "core/bucket.h"
#include "core/queue/shares.h"

const struct policy policy_default = {
	.lease = 30 * SLU_SEC,
	.max_attempts = 5,
	.retry = {
		.kind = SLU_BACKOFF_EXPONENTIAL,
		.jitter = SLU_JITTER_FULL,
		.base = SLU_SEC,
		.max = 15 * SLU_MIN,
	},
	.window = 24 * SLU_HOUR,
};

static int
check_retry(const struct slu_backoff *b, struct slu_err *err)
{
	if (b->kind != SLU_BACKOFF_EXPONENTIAL && b->kind != SLU_BACKOFF_LINEAR &&
	    b->kind != SLU_BACKOFF_FIXED && b->kind != SLU_BACKOFF_NONE)
		return slu_fail(err, SLU_EINVAL,
				"invalid retry; expected exponential, linear, fixed or none");
	if (b->jitter != SLU_JITTER_NONE && b->jitter != SLU_JITTER_FULL)
		return slu_fail(err, SLU_EINVAL, "invalid retry jitter; expected none or full");
	if (b->base < 0 || b->max < 0)
		return slu_fail(err, SLU_EINVAL, "invalid retry delay; expected 0 or more");
	return 0;
}

/* ---- Weights of shares ---- */

struct weight_row {
	struct slice name; /* without the * */
	bool prefix;
	uint32_t weight; /* 0: malformed */
};

static uint32_t
read_weight(struct slice digits)
{
	uint32_t n = 0;

	for (size_t i = 0; i < digits.n && n <= SHARES_WEIGHT_MAX; i++) {
		if (digits.p[i] < '0' || digits.p[i] > '9')
			return 0;
		n = n * 10 + (uint32_t)(digits.p[i] - '0');
	}
	return n <= SHARES_WEIGHT_MAX ? n : 0;
}

/* The next row of the text, which becomes shorter. */
static struct weight_row
next_row(struct slice *text)
{
	const char *comma = text->n ? memchr(text->p, ',', text->n) : NULL;
	struct slice row = { text->p, comma ? (size_t)(comma - text->p) : text->n };
	const char *mark = memrchr(row.p, '=', row.n);
	struct weight_row out = { 0 };

	*text = comma ? (struct slice){ comma + 1, text->n - row.n - 1 } : (struct slice){ 0 };
	if (!mark || mark == row.p)
		return out;
	out.weight = read_weight((struct slice){ mark + 1, row.n - (size_t)(mark + 1 - row.p) });
	out.prefix = mark[-1] == '*';
	out.name = (struct slice){ row.p, (size_t)(mark - row.p) - out.prefix };
	return out;
}

uint32_t
policy_weight(const struct policy *p, struct slice share)
{
	struct slice text = slice_of(p->share_weights);

	while (text.n) {
		const struct weight_row row = next_row(&text);
		const size_t n = row.prefix ? row.name.n : share.n;

		if (row.name.p && n == row.name.n && n <= share.n && memcmp(row.name.p, share.p, n) == 0)
			return row.weight ? row.weight : 1;
	}
	return 1;
}

static int
check_weights(const struct policy *p, struct slu_err *err)
{
	struct slice text = slice_of(p->share_weights);
	bool ends = text.n && text.p[text.n - 1] != ',';

	while (text.n) {
		const struct weight_row row = next_row(&text);

		if (!row.weight || !ends)
			return slu_fail(err, SLU_EINVAL,
					"invalid share_weights: %s; expected rows such as gold=4,team-*=2 with weights of 1 to %d",
					p->share_weights, SHARES_WEIGHT_MAX);
	}
	return 0;
}

/* ---- Tags ---- */

static bool
is_tag(struct slice tag)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyz0123456789._:=/-";

	for (size_t i = 0; i < tag.n; i++)
		if (!memchr(known, ascii_lower(tag.p[i]), sizeof known - 1))
			return false;
	return tag.n > 0 && tag.n <= POLICY_TAG_MAX;
}

static int
check_tags(const struct policy *p, struct slu_err *err)
{
	struct slice rest = slice_of(p->tags), tag;
	bool more = rest.n > 0;

	while (more) {
		more = slice_cut(&rest, ',', &tag);
		if (!is_tag(tag))
			return slu_fail(err, SLU_EINVAL, "invalid tags: %s; expected words of 1 to %d letters, digits and ._:=/- with commas, such as payments,team=relay",
					p->tags, POLICY_TAG_MAX);
	}
	return 0;
}

/* A rate of deliveries. */
static int
check_rate(const char *name, uint32_t rate, uint32_t burst, struct slu_err *err)
{
	if (rate > BUCKET_RATE_MAX || burst > BUCKET_RATE_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid %s or %s_burst; expected at most %u", name, name, BUCKET_RATE_MAX);
	if (burst && !rate)
		return slu_fail(err, SLU_EINVAL, "invalid %s_burst without %s; expected both", name, name);
	return 0;
}

/* Limits of an attribute need its name; a name alone only makes new messages carry the value. */
static int
check_attribute(const struct policy *p, struct slu_err *err)
{
	if (!p->limit_attribute[0] && (p->attribute_concurrency || p->attribute_rate))
		return slu_fail(err, SLU_EINVAL,
				"invalid attribute_concurrency or attribute_rate without limit_attribute; expected the name of an attribute");
	return 0;
}

int
policy_check(const struct policy *p, struct slu_err *err)
{
	if (p->lease <= 0 || p->lease > POLICY_LEASE_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid lease; expected more than 0, at most 12h");
	if (p->max_attempts < 1 || p->max_attempts > UINT16_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid max_attempts: %u; expected 1 to 65535", p->max_attempts);
	if (p->ttl < 0)
		return slu_fail(err, SLU_EINVAL, "invalid ttl; expected 0 or more");
	if (p->window < 0 || p->window > POLICY_WINDOW_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid idempotency window; expected 0 to 366d");
	if (p->max_rate > BUCKET_RATE_MAX || p->burst > BUCKET_RATE_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid max_rate or burst; expected at most 1000000000");
	if (p->burst && !p->max_rate)
		return slu_fail(err, SLU_EINVAL, "invalid burst without max_rate; expected both");
	if (p->dlq_retention < 0)
		return slu_fail(err, SLU_EINVAL, "invalid dlq retention; expected 0 or more");
	if (check_weights(p, err) || check_rate("rate", p->rate, p->rate_burst, err) ||
	    check_rate("share_rate", p->share_rate, p->share_rate_burst, err) ||
	    check_rate("key_rate", p->key_rate, p->key_rate_burst, err) ||
	    check_rate("attribute_rate", p->attribute_rate, p->attribute_rate_burst, err) || check_attribute(p, err))
		return SLU_EINVAL;
	if (p->warn_age < 0)
		return slu_fail(err, SLU_EINVAL, "invalid warn_age; expected 0 or more");
	if (check_tags(p, err))
		return SLU_EINVAL;
	if (p->max_runtime < 0)
		return slu_fail(err, SLU_EINVAL, "invalid max_runtime; expected 0 or more");
	if (p->pause.until < 0 || (!p->paused && !pause_note_is_empty(&p->pause)))
		return slu_fail(err, SLU_EINVAL, "invalid end or reason of a pause; expected a paused queue");
	if (p->dead_letter_queue[0] && !name_is_folded(slice_of(p->dead_letter_queue)))
		return slu_fail(err, SLU_EINVAL, "invalid dead_letter_queue: %s; expected the name of a queue", p->dead_letter_queue);
	if (rules_check(slice_of(p->rules), err) || breakers_check(slice_of(p->breakers), err))
		return SLU_EINVAL;
	return check_retry(&p->retry, err);
}

bool
policy_has_limits(const struct policy *p)
{
	return p->concurrency || p->share_concurrency || p->rate || p->share_rate || p->key_rate || p->limit_attribute[0];
}

bool
pause_note_is_empty(const struct pause_note *n)
{
	return !n->until && !n->reason[0] && !n->by[0];
}

void
policy_resume(struct policy *p)
{
	p->paused = false;
	p->pause = (struct pause_note){ 0 };
}

static bool
is_same_pause(const struct policy *a, const struct policy *b)
{
	return a->paused == b->paused && a->pause.until == b->pause.until &&
	       strcmp(a->pause.reason, b->pause.reason) == 0 && strcmp(a->pause.by, b->pause.by) == 0;
}

bool
policy_is_same(const struct policy *a, const struct policy *b)
{
	return a->lease == b->lease && a->max_attempts == b->max_attempts &&
	       a->retry.kind == b->retry.kind && a->retry.jitter == b->retry.jitter &&
	       a->retry.base == b->retry.base && a->retry.max == b->retry.max &&
	       a->ttl == b->ttl && a->max_depth == b->max_depth && a->max_rate == b->max_rate &&
	       a->burst == b->burst && a->warn_depth == b->warn_depth && a->warn_age == b->warn_age && strcmp(a->tags, b->tags) == 0 && a->window == b->window &&
	       a->dlq_retention == b->dlq_retention && a->dlq_max == b->dlq_max &&
	       a->concurrency == b->concurrency && a->share_concurrency == b->share_concurrency &&
	       a->rate == b->rate && a->rate_burst == b->rate_burst && a->share_rate == b->share_rate &&
	       a->share_rate_burst == b->share_rate_burst && a->key_rate == b->key_rate &&
	       a->key_rate_burst == b->key_rate_burst &&
	       a->attribute_concurrency == b->attribute_concurrency && a->attribute_rate == b->attribute_rate &&
	       a->attribute_rate_burst == b->attribute_rate_burst && strcmp(a->limit_attribute, b->limit_attribute) == 0 && a->strict == b->strict && a->require_lease == b->require_lease && is_same_pause(a, b) && a->draining == b->draining &&
	       strcmp(a->share_weights, b->share_weights) == 0 && strcmp(a->dead_letter_queue, b->dead_letter_queue) == 0 &&
	       strcmp(a->rules, b->rules) == 0 && strcmp(a->breakers, b->breakers) == 0 && a->max_runtime == b->max_runtime;
}

bool
policy_replaces(const struct policy *former, const struct policy *own, bool sure)
{
	return !policy_is_same(former, own) && (sure || !policy_is_same(former, &policy_default));
}

bool
policy_follows(struct policy *now, const struct policy *was, const struct policy *is)
{
	struct policy next = *is, rest = *now;

	rest.paused = was->paused;
	rest.pause = was->pause;
	rest.draining = was->draining;
	if (now->draining != was->draining)
		next.draining = now->draining;
	if (!is_same_pause(now, was)) {
		next.paused = now->paused;
		next.pause = now->pause;
	}
	if (!policy_is_same(&rest, was) || policy_is_same(&next, now))
		return false;
	*now = next;
	return true;
}
