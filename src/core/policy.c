#include "core/policy.h"

#include "core/bucket.h"

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
				"retry is exponential, linear, fixed or none");
	if (b->jitter != SLU_JITTER_NONE && b->jitter != SLU_JITTER_FULL)
		return slu_fail(err, SLU_EINVAL, "retry jitter is none or full");
	if (b->base < 0 || b->max < 0)
		return slu_fail(err, SLU_EINVAL, "retry delays are not negative");
	return 0;
}

int
policy_check(const struct policy *p, struct slu_err *err)
{
	if (p->lease <= 0 || p->lease > POLICY_LEASE_MAX)
		return slu_fail(err, SLU_EINVAL, "lease is more than 0, at most 12h");
	if (p->max_attempts < 1 || p->max_attempts > UINT16_MAX)
		return slu_fail(err, SLU_EINVAL, "max_attempts is 1 to 65535");
	if (p->ttl < 0)
		return slu_fail(err, SLU_EINVAL, "ttl is not negative");
	if (p->window < 0 || p->window > POLICY_WINDOW_MAX)
		return slu_fail(err, SLU_EINVAL, "idempotency window is at most 366d");
	if (p->max_rate > BUCKET_RATE_MAX || p->burst > BUCKET_RATE_MAX)
		return slu_fail(err, SLU_EINVAL, "max_rate and burst are at most 1000000000");
	if (p->burst && !p->max_rate)
		return slu_fail(err, SLU_EINVAL, "burst needs a max_rate");
	if (p->dlq_retention < 0)
		return slu_fail(err, SLU_EINVAL, "dlq retention is not negative");
	return check_retry(&p->retry, err);
}

bool
policy_is_same(const struct policy *a, const struct policy *b)
{
	return a->lease == b->lease && a->max_attempts == b->max_attempts &&
	       a->retry.kind == b->retry.kind && a->retry.jitter == b->retry.jitter &&
	       a->retry.base == b->retry.base && a->retry.max == b->retry.max &&
	       a->ttl == b->ttl && a->max_depth == b->max_depth && a->max_rate == b->max_rate &&
	       a->burst == b->burst && a->warn_depth == b->warn_depth && a->window == b->window &&
	       a->dlq_retention == b->dlq_retention && a->dlq_max == b->dlq_max &&
	       a->strict == b->strict && a->require_lease == b->require_lease && a->paused == b->paused;
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
	if (now->paused != was->paused)
		next.paused = now->paused;
	if (!policy_is_same(&rest, was) || policy_is_same(&next, now))
		return false;
	*now = next;
	return true;
}
