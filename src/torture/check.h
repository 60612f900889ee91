/*
 * check.h - which promises of a queue a history breaks. Knows nothing of servers: events
 * in, findings out.
 *
 *         check_init(&c, &history);
 *         rc = check_run(&c, &err);
 *         for (rule = check_rules; rule->id; rule++)
 *                 if (c.found[rule - check_rules].n) ...
 *         check_release(&c);
 *
 *      I1   what was accepted is acked once or still there, with the bytes that were sent
 *      I2   a push whose outcome is unknown is there once or not at all; an idempotency key
 *           is one message
 *      I3   nothing is handed out, or found, after an ack of it
 *      I4   no two leases of a message, or of a key, overlap by the server's time; tokens rise
 *      I5   a token that is not the current one changes nothing
 *      I6   the first deliveries of a key come in the order (due, acceptance)
 *      I7   nothing is handed out before it is due, first or again
 *      I8   a message is in one place; none is handed out after its last failure
 *      I9   the counters are what a scan finds
 *      I10  the server ends when it is told to, and as it should; files and memory stay bounded
 *
 * Of locks: I1 what a release has committed is there, I4 one holder at a time and tokens
 * that rise, I5 as for messages.
 *
 * A rule may be several rows, for it can be broken in several ways. The last look of a
 * history is the end of it: what was accepted and is not there must have been acked.
 */
#ifndef TORTURE_CHECK_H
#define TORTURE_CHECK_H

#include "torture/history.h"

enum {
	CHECK_EVIDENCE = 24, /* events that a finding shows at most */
	CHECK_TEXT = 240,
	CHECK_RULES = 32 /* rows, at most */
};

/* Events in some order; borrowed from the check. */
struct line {
	const struct event **at;
	size_t n;
};

/* All that is known of one message; claims go by token, all else by time. */
struct message {
	uint64_t id;
	struct line all;
	struct line of[EVENT_KINDS];
};

struct check;

/* Exactly one of the functions is set: what the rule looks at. */
struct check_rule {
	const char *id;      /* "I4"; NULL ends the table */
	const char *name;    /* one word for this way of breaking it */
	const char *promise; /* what a person reads */
	void (*message)(struct check *c, const struct message *m);
	void (*key)(struct check *c, struct line claims); /* by token */
	void (*name_line)(struct check *c, struct line all);
	void (*lock)(struct check *c, struct line all); /* of one lock, by token */
	void (*whole)(struct check *c);
};

extern const struct check_rule check_rules[];

/* The shortest of what a rule has found, events in order of time, and how many there are. */
struct finding {
	uint64_t n;
	char text[CHECK_TEXT];
	const struct event *events[CHECK_EVIDENCE];
	size_t n_events;
};

struct check {
	const struct history *history;
	struct finding found[CHECK_RULES];
	uint64_t n_found;

	/* Inner: the same events, by what the rules ask for. */
	const struct check_rule *rule; /* that is being looked at */
	const struct event **by_message, **by_key, **by_name, **by_token, **by_lock;
	size_t n_messages, n_keys, n_names, n_tokens, n_locks; /* lengths of these */
	struct check_note *notes;                              /* of an event, by its number */
	slu_time redriven;                                     /* when dead letters came back; SLU_NEVER */
};

/* Zeroed is a fine start; the history is borrowed until the release. */
void check_init(struct check *c, const struct history *h);
void check_release(struct check *c);

/* SLU_ENOMEM; SLU_EINVAL for a history without a look, or with events missing. */
int check_run(struct check *c, struct slu_err *err);

/* The rule with the shortest finding, or NULL: all is well. */
const struct check_rule *check_worst(const struct check *c);

#endif
