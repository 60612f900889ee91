/*
 * policy.h - GET, PUT and POST /policy: the knobs of a queue.
 *
 *      {"lease":"30s","max_attempts":5,
 *       "retry":{"kind":"exponential","jitter":"full","base":"1s","max":"15m"},
 *       "ttl":"0s","max_depth":0,"warn_depth":0,"idempotency_window":"24h",
 *       "dlq_retention":"0s","dlq_max":0,"require_lease":false,"paused":false}
 *
 * PUT sets all knobs: a knob that is not named gets its default. POST sets the named knobs: it
 * reads the policy and writes it back, so of two concurrent POSTs the later one wins.
 */
#ifndef API_FLAT_POLICY_H
#define API_FLAT_POLICY_H

#include "base/json/json_out.h"
#include "core/queue/policy.h"

/* Sets the knobs that body names. After SLU_EINVAL *p is invalid. */
int flat_policy_decode(struct policy *p, struct slice body, struct slu_err *err);

/* Writes members of an object that the caller has opened. */
void flat_policy_encode(const struct policy *p, struct json_out *w);

#endif
