/*
 * check_look.c - the queue at rest, and the server: I8, I9 and I10.
 */
#include "torture/check_private.h"

#include <inttypes.h>

enum {
	FILES_SLACK = 64,         /* open files allowed above the first rest */
	MEMORY_SLACK = 256 << 20, /* bytes allowed above the first rest */
};

void
rule_place(struct check *c, const struct torture_message *m)
{
	const struct event_list rows = m->of[EVENT_ROW];

	for (size_t i = 1; i < rows.n; i++) {
		const struct event *one = rows.at[i - 1], *next = rows.at[i];

		if (one->call == next->call)
			check_pair(c, one, next, "message %" PRIu64 " is in two places: %s and %s", one->name,
				   event_states[one->state], event_states[next->state]);
	}
}

/* Is the message dead in this look? */
static bool
says_dead(struct event_list line, uint32_t look)
{
	EACH_EVENT(e, line)
	if ((*e)->call == look && ((*e)->kind == EVENT_DEAD || (*e)->state == STATE_DEAD))
		return true;
	return false;
}

void
rule_dead(struct check *c, const struct torture_message *m)
{
	EACH_EVENT(e, m->of[EVENT_ROW])
	if ((*e)->state == STATE_DEAD && !says_dead(m->of[EVENT_DEAD], (*e)->call))
		check_found(c, (struct event_list){ e, 1 }, "%" PRIu64 " is dead and not among the dead letters",
			    m->id);
	EACH_EVENT(e, m->of[EVENT_DEAD])
	if (!says_dead(m->of[EVENT_ROW], (*e)->call))
		check_found(c, (struct event_list){ e, 1 }, "%" PRIu64 " is among the dead letters and not dead",
			    m->id);
}

void
rule_counters(struct check *c)
{
	const struct history *h = c->history;
	uint64_t found[HISTORY_LOOKS][STATES] = { 0 };

	for (size_t i = 0; i < h->n; i++) {
		const struct event *e = &h->events[i];

		if (e->kind != EVENT_ROW)
			continue;
		found[e->call][e->state]++;
		found[e->call][STATE_TOTAL]++;
	}
	for (size_t i = 0; i < h->n; i++) {
		const struct event *e = &h->events[i];

		for (int s = 0; e->kind == EVENT_LOOK && s < STATES; s++)
			if (h->looks[e->call].counts[s] != found[e->call][s])
				check_found(c, (struct event_list){ &e, 1 }, "%s: counted %" PRIu64 ", found %" PRIu64,
					    event_states[s], h->looks[e->call].counts[s], found[e->call][s]);
	}
}

void
rule_exit(struct check *c)
{
	for (size_t i = 0; i < c->history->n; i++) {
		const struct event *e = &c->history->events[i];

		if (e->kind == EVENT_EXIT)
			check_found(c, (struct event_list){ &e, 1 },
				    e->id ? "the server was killed by signal %" PRIu64
					  : "the server ended with exit code %" PRIu64,
				    e->id ? e->id : e->name);
	}
}

void
rule_bounded(struct check *c)
{
	const struct event *first = NULL;

	for (size_t i = 0; i < c->history->n; i++) {
		const struct event *e = &c->history->events[i];

		if (e->kind != EVENT_GAUGE)
			continue;
		first = first ? first : e;
		if (e->name > first->name + FILES_SLACK || e->id > first->id + MEMORY_SLACK)
			check_pair(c, first, e, "from %" PRIu64 " files and %" PRIu64 " bytes of memory to %" PRIu64 " and %" PRIu64,
				   first->name, first->id, e->name, e->id);
	}
}
