/*
 * policy.h - how a queue of sluice.h delivers: settings, limits, holds and breakers.
 *
 *         struct slu_policy p = { SLU_OPTIONS_INIT(struct slu_policy), .concurrency = 10, .share_weights = "gold=4" };
 *
 *         slu_policy_set(b, "jobs", &p, &err);
 *
 * docs/scheduling.md has the rules: shares, limits, holds, breakers, rules at the door, a queue for dead letters.
 */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <sluice/sluice.h>

SLU_BEGIN_DECLS

/* The settings of a queue. Zeros are the defaults. Texts end with a 0 byte. */
struct slu_policy {
	size_t struct_size;    /* SLU_OPTIONS_INIT */
	slu_time lease;        /* of a claim that names none; 0: 30 s */
	slu_time max_runtime;  /* after which a lease ends, however often it is extended; 0: never */
	unsigned max_attempts; /* failures until a message is a dead letter; 0: 5 */
	bool has_retry;        /* use `retry`; otherwise from 1 s to 15 min, exponential, with full jitter */
	bool paused;           /* deliver nothing */
	bool strict;           /* refuse another payload under a known idempotency key */
	struct slu_backoff retry;
	slu_time ttl;           /* of a message that names none; 0: none */
	slu_time window;        /* how long an idempotency key is known after its message is gone; 0: 24 h, SLU_NOWAIT: not at all */
	unsigned max_depth;     /* messages that are not dead, then SLU_EQFULL; 0: no limit */
	unsigned max_rate;      /* accepted messages a second; 0: no limit */
	unsigned burst;         /* accepted at once; 0: as many as in one second */
	unsigned dlq_max;       /* dead letters; the oldest are deleted; 0: no limit */
	slu_time dlq_retention; /* age at which dead letters are deleted; 0: never */

	/* Messages that are leased at once; 0: no limit. */
	unsigned concurrency;
	unsigned share_concurrency;     /* of each share, and of the messages without one */
	unsigned attribute_concurrency; /* of each value of limit_attribute */

	/* Deliveries a second, 0: no limit; and deliveries at once, 0: as many as in one second. */
	unsigned rate, rate_burst;
	unsigned share_rate, share_rate_burst;
	unsigned key_rate, key_rate_burst;
	unsigned attribute_rate, attribute_rate_burst;

	char limit_attribute[64];    /* the attribute whose values have limits; "": none */
	char share_weights[128];     /* "gold=4,team-*=2"; a share without a row has weight 1 */
	char rules[256];             /* of admission: "risk > 0.8: high; source in (a, b): delay 30s" */
	char breakers[256];          /* "smtp: 5 in 1m, open 30s" */
	char dead_letter_queue[136]; /* gets the dead letters; "": they stay */
	bool draining;               /* accept no new messages (SLU_EDRAINING); those that wait are delivered */
};

/* Replaces all settings of the queue. They apply from the next claim, and to new messages. Returns SLU_EINVAL. */
SLU_API int slu_policy_set(struct slu_broker *b, const char *queue, const struct slu_policy *policy, struct slu_err *err);

/* The settings of the queue, with the defaults filled in. out->struct_size is set. */
SLU_API int slu_policy_get(struct slu_broker *b, const char *queue, struct slu_policy *out, struct slu_err *err);

struct slu_hold_options {
	size_t struct_size;  /* SLU_OPTIONS_INIT */
	const char *scope;   /* "queue", "share", "key" or "attribute"; NULL: "queue" */
	const char *name;    /* of the share, key or value; NULL: the queue, or the messages without a share */
	slu_time hold;       /* nothing of the scope is delivered for this long; 0: the hold ends */
	const char *breaker; /* opens, or with hold 0 closes, this breaker of the queue instead; NULL: none */
};

/* Holds messages back, or ends that. Returns SLU_ENOTFOUND if the queue, or the breaker, does not exist. */
SLU_API int slu_hold(struct slu_broker *b, const char *queue, const struct slu_hold_options *options, struct slu_err *err);

/* What a queue, or a part of it, uses of its limits. */
struct slu_use {
	char scope[12];        /* "queue", "share", "key", "attribute" or "kind" */
	char name[260];        /* of the share, key, value or kind; "": the queue, or the messages without a share */
	char breaker[64];      /* the row is about this breaker, which is open or tries a message; "": about limits or a hold */
	bool is_hold;          /* the row is about a hold */
	unsigned messages;     /* that are not dead */
	unsigned ready;        /* that may be delivered */
	unsigned leased;       /* that are leased */
	unsigned concurrency;  /* how many may be; 0: no limit */
	unsigned rate;         /* deliveries a second; 0: no limit */
	unsigned burst;        /* deliveries at once */
	unsigned tokens;       /* of these, left now */
	unsigned weight;       /* of a share */
	unsigned waiting;      /* claims that wait and may take a message of the kind */
	uint64_t delivered;    /* of a share, since the broker was opened */
	slu_time until;        /* wall clock: when the next delivery is possible, or the end of the hold or the breaker; 0: now */
	uint64_t reserved[10]; /* 0 */
};

struct slu_limits_options {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	bool kinds;         /* the kinds of the queue */
	bool by_messages;   /* the shares with the most messages; otherwise those nearest to a limit */
};

/* The queue, its shares and values nearest to a limit (20 each), its breakers that are not closed, its holds: up to max
 * rows; *n is their number. options may be NULL. Returns SLU_ENOTFOUND if the queue does not exist. */
SLU_API int slu_limits(struct slu_broker *b, const char *queue, const struct slu_limits_options *options, struct slu_use *out,
		       size_t max, size_t *n, struct slu_err *err);

SLU_END_DECLS

#endif
