/*
 * policy.h - how a queue treats its messages: the knobs of one queue.
 *
 * A queue has a whole policy at all times, the default one until it is given its
 * own. A change of policy counts from the next decision on: leases that run keep
 * their end, messages that were accepted keep their ttl.
 */
#ifndef CORE_POLICY_H
#define CORE_POLICY_H

#include <sluice/err.h>
#include <sluice/retry.h>

#define POLICY_LEASE_MAX  (12 * SLU_HOUR)
#define POLICY_WINDOW_MAX (366 * 24 * SLU_HOUR)

struct policy {
	slu_time lease;        /* of a claim that names none; 1 .. POLICY_LEASE_MAX */
	uint32_t max_attempts; /* failing deliveries, then the dead letter; 1 .. 65535 */
	struct slu_backoff retry;
	slu_time ttl;           /* of a message that names none; 0: it never expires */
	uint32_t max_depth;     /* messages that are not dead; 0: the server's */
	uint32_t max_rate;      /* messages a second that it takes; 0: the server's */
	uint32_t burst;         /* of them at once; 0: as many as a second brings */
	uint32_t warn_depth;    /* for whoever logs; 0: never */
	slu_time window;        /* an idempotency key is kept at least so long after the
				 * end of its message; 0 .. POLICY_WINDOW_MAX */
	slu_time dlq_retention; /* dead letters are deleted after it; 0: never */
	uint32_t dlq_max;       /* beyond, the oldest are deleted; 0: no limit */
	bool strict;            /* another payload under a known idempotency key is refused */
	bool require_lease;     /* an ack, nack or extend by id alone is refused */
	bool paused;            /* nothing is handed out */
};

/* Lease 30 s, 5 attempts, exponential retry from 1 s to 15 min with full jitter,
 * a window of 24 h, no limits. */
extern const struct policy policy_default;

bool policy_is_same(const struct policy *a, const struct policy *b);

/* A queue is sent from one shard to another, which has a policy of its own for it: as old as its
 * last stay there, or the default. Does the former one's replace that? Sure: it is known that
 * the queue lived there; else a default says nothing. */
bool policy_replaces(const struct policy *former, const struct policy *own, bool sure);

/* It was copied as `was`, and is `is` by now where it was copied from. True: the copy, which is
 * *now, has to follow, and *now says to what. One that was set there meanwhile is newer; but to
 * pause changes one knob, and leaves the others to follow. */
bool policy_follows(struct policy *now, const struct policy *was, const struct policy *is);

/* SLU_EINVAL, and in err which knob is out of range. SLU_BACKOFF_FUNCTION is: it
 * cannot be written down. */
int policy_check(const struct policy *p, struct slu_err *err);

#endif
