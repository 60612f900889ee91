/*
 * check_in.h - what the rules of the checker share; for check*.c alone.
 */
#ifndef TORTURE_CHECK_IN_H
#define TORTURE_CHECK_IN_H

#include "torture/check.h"

struct check_note {
	slu_time began;           /* of a push: when it was first tried */
	slu_time lease_end;       /* of a claim: by its holder's word; 0: nobody knows */
	const struct event *push; /* of a claim: where it came from, or NULL */
	bool is_first;            /* of a claim: the first of its message */
};

#define EACH_EVENT(e, line) \
	for (const struct event **e = (line).at; e < (line).at + (line).n; e++)

/* The current rule is broken: by these events, and this is how. */
void check_found(struct check *c, struct line events, const char *fmt, ...) SLU_PRINTF(3, 4);
void check_pair(struct check *c, const struct event *a, const struct event *b, const char *fmt,
		...) SLU_PRINTF(4, 5);

static inline struct check_note *
check_note(const struct check *c, const struct event *e)
{
	return &c->notes[e - c->history->events];
}

static inline bool
check_is_redriven(const struct check *c, const struct event *claim)
{
	return claim->start >= c->redriven;
}

/* check_message.c */
void rule_kept(struct check *c, const struct message *m);
void rule_had(struct check *c, const struct message *m);
void rule_bytes(struct check *c, const struct message *m);
void rule_sent(struct check *c, struct line all);
void rule_once(struct check *c, struct line all);
void rule_final(struct check *c, const struct message *m);
void rule_stale(struct check *c, const struct message *m);
void rule_due(struct check *c, const struct message *m);
void rule_buried(struct check *c, const struct message *m);
void rule_limit(struct check *c, const struct message *m);

/* check_lease.c */
void rule_overlap(struct check *c, const struct message *m);
void rule_key_overlap(struct check *c, struct line claims);
void rule_rising(struct check *c, const struct message *m);
void rule_key_rising(struct check *c, struct line claims);
void rule_unique(struct check *c);
void rule_attempts(struct check *c, const struct message *m);
void rule_order(struct check *c, struct line claims);

/* check_lock.c */
void rule_lock(struct check *c, struct line all);
void rule_lock_rising(struct check *c, struct line all);
void rule_lock_stale(struct check *c, struct line all);
void rule_state(struct check *c, struct line all);

/* check_look.c */
void rule_place(struct check *c, const struct message *m);
void rule_dead(struct check *c, const struct message *m);
void rule_counters(struct check *c);
void rule_exit(struct check *c);
void rule_bounded(struct check *c);

#endif
