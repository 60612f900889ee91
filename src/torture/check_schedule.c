/*
 * check_schedule.c - schedules fire once a tick: I15.
 */
#include "torture/check_private.h"

#include <inttypes.h>

/* What the history says about one schedule. */
struct told {
	const struct event *set;     /* the call that set it, if one was answered; otherwise the last one that tried */
	const struct event *firings; /* NULL: nobody looked */
	const struct event *first, *last;
	uint64_t ticks;
	bool paused;
};

static void
tell(struct told *s, const struct event *e)
{
	if (e->kind == EVENT_SCHEDULE && e->waits)
		s->paused = true;
	else if (e->kind == EVENT_SCHEDULE && (!s->set || s->set->outcome != OUTCOME_OK))
		s->set = e;
	else if (e->kind == EVENT_FIRINGS)
		s->firings = e;
	if (e->kind != EVENT_TICK)
		return;
	s->ticks++;
	s->first = !s->first || e->due < s->first->due ? e : s->first;
	s->last = !s->last || e->due > s->last->due ? e : s->last;
}

static struct told
told_of(const struct check *c, uint64_t name)
{
	struct told s = { 0 };

	for (size_t i = 0; i < c->history->n; i++)
		if (c->history->events[i].name == name)
			tell(&s, &c->history->events[i]);
	return s;
}

/* Another message of the same tick, or one that is not at a multiple of the interval. */
static void
check_ticks(struct check *c, const struct told *s)
{
	const struct history *h = c->history;

	for (const struct event *e = h->events; e < h->events + h->n; e++) {
		if (e->kind != EVENT_TICK || e->name != s->set->name)
			continue;
		if ((e->due - s->first->due) % s->set->until)
			check_pair(c, s->first, e, "schedule %" PRIu64 " fired between two ticks", e->name);
		for (const struct event *other = e + 1; other < h->events + h->n; other++)
			if (other->kind == EVENT_TICK && other->name == e->name && other->due == e->due)
				check_pair(c, e, other, "schedule %" PRIu64 " fired twice for one tick", e->name);
	}
}

/* A message may be there whose firing was not stored: then the tick did not fire again, because it was paused. */
static void
check_count(struct check *c, const struct told *s)
{
	const uint64_t between = s->ticks ? (uint64_t)((s->last->due - s->first->due) / s->set->until) + 1 - s->ticks : 0;

	if (s->firings->damaged)
		check_pair(c, s->set, s->firings, "schedule %" PRIu64 " does not fire any more", s->set->name);
	if (s->firings->id > s->ticks)
		check_pair(c, s->set, s->firings, "schedule %" PRIu64 " fired %" PRIu64 " times and began %" PRIu64 " messages",
			   s->set->name, s->firings->id, s->ticks);
	if (!s->paused && between > s->firings->token)
		check_pair(c, s->set, s->firings, "schedule %" PRIu64 " passed over %" PRIu64 " ticks and calls %" PRIu64 " missed",
			   s->set->name, between, s->firings->token);
}

static void
check_one(struct check *c, const struct told *s)
{
	const bool is_there = s->firings && s->firings->outcome == OUTCOME_OK;

	if (s->set->outcome == OUTCOME_FAILED && s->first)
		check_pair(c, s->set, s->first, "schedule %" PRIu64 " was refused, and fired", s->set->name);
	else if (s->set->outcome == OUTCOME_OK && s->firings && !is_there)
		check_pair(c, s->set, s->firings, "schedule %" PRIu64 " is gone", s->set->name);
	if (s->first)
		check_ticks(c, s);
	if (is_there)
		check_count(c, s);
}

void
rule_schedule(struct check *c)
{
	for (size_t i = 0; i < c->history->n; i++) {
		const struct event *e = &c->history->events[i];
		struct told s;

		if (e->kind != EVENT_SCHEDULE || e->waits)
			continue;
		s = told_of(c, e->name);
		if (s.set == e) /* once */
			check_one(c, &s);
	}
}
