/*
 * flat_policy.h - GET, PUT and POST /policy: the knobs of a queue.
 *
 *      {"lease":"30s","max_attempts":5,
 *       "retry":{"kind":"exponential","jitter":"full","base":"1s","max":"15m"},
 *       "ttl":"0s","max_depth":0,"warn_depth":0,"idempotency_window":"24h",
 *       "dlq_retention":"0s","dlq_max":0,"require_lease":false,"paused":false}
 *
 * PUT sets all of them: what is not named gets its default. POST sets those that are
 * named: it reads the policy and writes it back, so of two at once the later one wins.
 */
#ifndef API_FLAT_POLICY_H
#define API_FLAT_POLICY_H

#include "base/json_out.h"
#include "core/policy.h"

struct call;

/* Change what body names. SLU_EINVAL, and *p is then worth nothing. */
int flat_policy_decode(struct policy *p, struct slice body, struct slu_err *err);

/* Members of an object that the caller has opened. */
void flat_policy_encode(const struct policy *p, struct json_out *w);

void flat_policy_get(struct call *c, void *api);
void flat_policy_put(struct call *c, void *api);
void flat_policy_post(struct call *c, void *api);

#endif
