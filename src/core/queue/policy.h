/*
 * policy.h - the settings of one queue.
 *
 * Every queue has a complete policy, the default until an operator sets one. A new policy
 * applies from the next decision on: present leases keep their end, accepted messages
 * their ttl.
 */
#ifndef CORE_QUEUE_POLICY_H
#define CORE_QUEUE_POLICY_H

#include "base/bytes.h"
#include "core/names.h"
#include "core/queue/breakers.h"
#include "core/queue/rules.h"

#include <sluice/err.h>
#include <sluice/retry.h>

#define POLICY_LEASE_MAX  (12 * SLU_HOUR)
#define POLICY_WINDOW_MAX (366 * 24 * SLU_HOUR)

enum {
	POLICY_WEIGHTS = 128,   /* bytes of share_weights, with the NUL */
	POLICY_TAGS = 128,      /* bytes of tags, with the NUL */
	POLICY_TAG_MAX = 32,    /* bytes of a tag */
	POLICY_ATTRIBUTE = 64,  /* bytes of limit_attribute, with the NUL */
	POLICY_VALUE_MAX = 128, /* bytes of a value of it; a longer one is cut */
	PAUSE_REASON = 201,     /* bytes of pause_note.reason, with the NUL */
	PAUSE_BY = 65           /* bytes of pause_note.by, with the NUL; a longer name is cut */
};

/* What people read about a pause. The rest of each text behind its NUL is zeros. */
struct pause_note {
	slu_time until;            /* the queue resumes by itself then; 0: a resume ends the pause */
	char reason[PAUSE_REASON]; /* empty: none was given */
	char by[PAUSE_BY];         /* the caller; empty: not known */
};

struct policy {
	slu_time lease;           /* default of a claim; 1 .. POLICY_LEASE_MAX */
	uint32_t max_attempts;    /* failures after which a message is dead; 1 .. 65535 */
	struct slu_backoff retry; /* delay after a failure */
	slu_time ttl;             /* default of a message; 0: it never expires */
	uint32_t max_depth;       /* messages that are not dead; 0: of the server's settings */
	uint32_t max_rate;        /* accepted messages a second; 0: of the server's settings */
	uint32_t burst;           /* accepted messages at once; 0: as many as in one second */
	uint32_t warn_depth;      /* depth at which the server logs a warning; 0: never */
	slu_time warn_age;        /* age of the oldest ready message above which lists warn; 0: never */
	slu_time window;          /* how long the ledger remembers an idempotency key after
				   * its message is gone; 0 .. POLICY_WINDOW_MAX */
	slu_time dlq_retention;   /* age at which dead letters are deleted; 0: never */
	uint32_t dlq_max;         /* dead letters; the oldest are deleted; 0: no limit */
	bool strict;              /* refuse another payload under a known idempotency key */
	bool require_lease;       /* refuse an ack, nack or extend by id alone */
	bool paused;              /* deliver no messages */
	struct pause_note pause;  /* zeros while `paused` is false */
	bool draining;            /* accept no new messages; those that wait are delivered */

	uint32_t concurrency;       /* messages that are leased at once; 0: no limit */
	uint32_t share_concurrency; /* the same for each share, and for messages without a share;
				     * 0: no limit */

	/* Deliveries a second; 0: no limit. A burst is deliveries at once; 0: as many as in one second. */
	uint32_t rate, rate_burst;             /* of the queue */
	uint32_t share_rate, share_rate_burst; /* of each share, and of messages without a share */
	uint32_t key_rate, key_rate_burst;     /* of each ordering key */

	/* Limits of each value of one attribute: a message has the value that the attribute has when it is accepted. */
	char limit_attribute[POLICY_ATTRIBUTE];        /* its name; empty: none */
	uint32_t attribute_concurrency;                /* messages of a value that are leased at once; 0: no limit */
	uint32_t attribute_rate, attribute_rate_burst; /* deliveries of a value; as above */

	/* Weights of shares (core/queue/shares.h), for example "gold=4,team-*=2,*=1". The first row that
	 * matches a share counts; a row that ends with * matches names that begin so. A share without a
	 * row has weight 1. */
	char share_weights[POLICY_WEIGHTS];

	slu_time max_runtime; /* after which a lease ends, however often it was extended; 0: never */

	/* The queue of the namespace that gets the dead letters, folded; empty: they stay in their queue. */
	char dead_letter_queue[NAME_TEXT];
	char tags[POLICY_TAGS];       /* for people, who find queues by them: "payments,team=relay" */
	char rules[RULES_TEXT];       /* of admission: core/queue/rules.h */
	char breakers[BREAKERS_TEXT]; /* core/queue/breakers.h */
};

/* Lease 30 s, 5 attempts, exponential retry from 1 s to 15 min with full jitter,
 * a window of 24 h, no limits. */
extern const struct policy policy_default;

bool policy_is_same(const struct policy *a, const struct policy *b);

/* Clears `paused` and `pause`. */
void policy_resume(struct policy *p);

bool pause_note_is_empty(const struct pause_note *n);

/* A queue moves to a shard that has an old policy `own` for it, or the default. Returns whether the
 * policy of the former shard replaces it. sure: the queue is known to have lived on the former
 * shard; otherwise a default there has no meaning. */
bool policy_replaces(const struct policy *former, const struct policy *own, bool sure);

/* A policy was copied as `was`, and is `is` by now at its source. Returns whether the copy *now has
 * to follow, and changes *now. A copy that was set meanwhile is newer and stays, but a pause or a drain
 * changes only that setting and lets the others follow. */
bool policy_follows(struct policy *now, const struct policy *was, const struct policy *is);

/* Returns whether the policy limits deliveries: concurrency or rates. */
bool policy_has_limits(const struct policy *p);

/* The weight of a share by share_weights. */
uint32_t policy_weight(const struct policy *p, struct slice share);

/* Returns SLU_EINVAL, with the setting in err, if one is out of range. SLU_BACKOFF_FUNCTION is
 * refused: it cannot be stored. */
int policy_check(const struct policy *p, struct slu_err *err);

#endif
