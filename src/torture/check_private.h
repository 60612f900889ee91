/*
 * check_private.h - what the rules share; for check*.c only.
 */
#ifndef TORTURE_CHECK_PRIVATE_H
#define TORTURE_CHECK_PRIVATE_H

#include "torture/check.h"

struct check_note {
	slu_time began;           /* push: when it was first tried */
	slu_time lease_end;       /* claim: when its holder ended it; 0 = not known */
	const struct event *push; /* claim: the push of its message; NULL = not known */
	bool is_first;            /* claim: it is the first of its message */
};

#define EACH_EVENT(e, line) \
	for (const struct event **e = (line).at; e < (line).at + (line).n; e++)

/* Adds a finding of the current rule: its events and a text. */
void check_found(struct check *c, struct event_list events, const char *fmt, ...) SLU_PRINTF(3, 4);
void check_pair(struct check *c, const struct event *a, const struct event *b, const char *fmt,
		...) SLU_PRINTF(4, 5);

/* The message whose events begin at by_message[i]. Returns where the next one begins. */
size_t check_next_message(const struct check *c, size_t i, struct torture_message *out);

/* The events of a name. */
struct event_list check_name(const struct check *c, uint64_t name);

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
void rule_kept(struct check *c, const struct torture_message *m);
void rule_had(struct check *c, const struct torture_message *m);
void rule_bytes(struct check *c, const struct torture_message *m);
void rule_sent(struct check *c, struct event_list all);
void rule_once(struct check *c, struct event_list all);
void rule_final(struct check *c, const struct torture_message *m);
void rule_stale(struct check *c, const struct torture_message *m);
void rule_due(struct check *c, const struct torture_message *m);
void rule_buried(struct check *c, const struct torture_message *m);
void rule_limit(struct check *c, const struct torture_message *m);

/* check_lease.c */
void rule_overlap(struct check *c, const struct torture_message *m);
void rule_key_overlap(struct check *c, struct event_list claims);
void rule_rising(struct check *c, const struct torture_message *m);
void rule_key_rising(struct check *c, struct event_list claims);
void rule_unique(struct check *c);
void rule_attempts(struct check *c, const struct torture_message *m);
void rule_order(struct check *c, struct event_list claims);

/* check_turn.c */
void rule_concurrency(struct check *c);
void rule_rate(struct check *c);
void rule_share(struct check *c);
void rule_atomic(struct check *c);

/* check_batch.c */
void rule_batch(struct check *c);

/* check_schedule.c */
void rule_schedule(struct check *c);

/* check_lock.c */
void rule_lock(struct check *c, struct event_list all);
void rule_lock_rising(struct check *c, struct event_list all);
void rule_lock_stale(struct check *c, struct event_list all);
void rule_state(struct check *c, struct event_list all);

/* check_look.c */
void rule_place(struct check *c, const struct torture_message *m);
void rule_dead(struct check *c, const struct torture_message *m);
void rule_counters(struct check *c);
void rule_exit(struct check *c);
void rule_bounded(struct check *c);

#endif
