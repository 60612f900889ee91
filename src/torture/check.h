/*
 * check.h - finds the promises that a history breaks. It has no server: events in, findings out.
 *
 *         check_init(&c, &history);
 *         rc = check_run(&c, &err);
 *         for (rule = check_rules; rule->id; rule++)
 *                 if (c.found[rule - check_rules].n) ...
 *         check_release(&c);
 *
 *      I1   an accepted message is acked once or still there, with the bytes that were sent
 *      I2   a push with an unknown outcome exists once or not at all; an idempotency key is one
 *           message
 *      I3   a message is not delivered, or found, after its ack
 *      I4   no two leases of a message, or of a key, overlap by the server's time; tokens rise
 *      I5   a token that is not the current one changes nothing
 *      I6   the first deliveries of a key come in the order (due, acceptance)
 *      I7   a message is not delivered before it is due, the first time or again
 *      I8   a message is in one place; it is not delivered after its last failure
 *      I9   the counters equal a scan
 *      I10  the server ends when it is stopped, and cleanly; files and memory stay bounded
 *
 *      I11  shares take turns by weight
 *      I12  no limit is exceeded
 *      I13  an ack that enqueues happens whole or not at all
 *      I14  a batch calls back once
 *      I15  a schedule fires once a tick
 *
 * For locks: I1 a committed value stays, I4 one holder at a time and rising tokens, I5 as for
 * messages.
 *
 * A rule has several rows if it can be broken in several ways. The last look of a history is its
 * end: an accepted message that is not in it must have been acked.
 */
#ifndef TORTURE_CHECK_H
#define TORTURE_CHECK_H

#include "torture/history.h"

enum {
	CHECK_EVIDENCE = 24, /* events in a finding, at most */
	CHECK_TEXT = 240,
	CHECK_RULES = 40 /* rows of the table, at most */
};

/* A list of events; borrowed from the check. */
struct event_list {
	const struct event **at;
	size_t n;
};

/* All events of one message; claims are sorted by token, the others by time. */
struct torture_message {
	uint64_t id;
	struct event_list all;
	struct event_list of[EVENT_KINDS];
};

struct check;

/* Exactly one of the functions is set: the kind of events that the rule checks. */
struct check_rule {
	const char *id;      /* "I4"; NULL = the end of the table */
	const char *name;    /* one word for this way to break the rule */
	const char *promise; /* text for people */
	void (*message)(struct check *c, const struct torture_message *m);
	void (*key)(struct check *c, struct event_list claims); /* events sorted by token */
	void (*name_line)(struct check *c, struct event_list all);
	void (*lock)(struct check *c, struct event_list all); /* events of one lock, sorted by token */
	void (*whole)(struct check *c);
};

extern const struct check_rule check_rules[];

/* The shortest finding of a rule, its events in order of time, and the number of findings. */
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

	/* Inner: the same events in other orders. */
	const struct check_rule *rule; /* the current rule */
	const struct event **by_message, **by_key, **by_name, **by_token, **by_lock;
	size_t n_messages, n_keys, n_names, n_tokens, n_locks; /* how many of each */
	struct check_note *notes;                              /* facts of an event, by its index */
	slu_time redriven;                                     /* when dead letters were redriven; SLU_NEVER = not yet */
};

/* Initialises a check. The history is borrowed until check_release. */
void check_init(struct check *c, const struct history *h);
void check_release(struct check *c);

/* Returns SLU_ENOMEM; SLU_EINVAL if the history has no look, or lacks events. */
int check_run(struct check *c, struct slu_err *err);

/* The rule with the shortest finding; NULL if no rule is broken. */
const struct check_rule *check_worst(const struct check *c);

#endif
