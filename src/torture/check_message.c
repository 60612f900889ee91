/*
 * check_message.c - the history of one message: I1, I2, I3, I5, I7, I8.
 */
#include "torture/check_private.h"

#include <inttypes.h>

static size_t
count(struct event_list line, enum outcome outcome)
{
	size_t n = 0;

	EACH_EVENT(e, line)
	n += (*e)->outcome == outcome;
	return n;
}

static uint64_t
name_of(const struct torture_message *m)
{
	EACH_EVENT(e, m->all)
	if ((*e)->name)
		return (*e)->name;
	return 0;
}

/* Is the message in the last look? */
static bool
is_left(const struct check *c, const struct torture_message *m)
{
	EACH_EVENT(e, m->of[EVENT_ROW])
	if ((*e)->call + 1 == c->history->n_looks)
		return true;
	return false;
}

/* Reports the events of the message without its rows in looks. */
static struct event_list
life(const struct torture_message *m)
{
	struct event_list line = m->all;

	while (line.n > 1 && line.at[line.n - 1]->kind >= EVENT_ROW)
		line.n--;
	return line;
}

void
rule_kept(struct check *c, const struct torture_message *m)
{
	const size_t acked = count(m->of[EVENT_ACK], OUTCOME_OK);
	const bool left = is_left(c, m);
	const uint64_t name = name_of(m);

	if (m->of[EVENT_PUSH].n + m->of[EVENT_CLAIM].n + m->of[EVENT_ROW].n == 0)
		return;
	if (acked > 1)
		check_found(c, life(m), "message %" PRIu64 " was acked %zu times", name, acked);
	else if (acked && left)
		check_found(c, life(m), "message %" PRIu64 " was acked and is still there", name);
	else if (!acked && !left && count(m->of[EVENT_ACK], OUTCOME_UNKNOWN) == 0)
		check_found(c, life(m), "message %" PRIu64 " was accepted and is lost", name);
}

void
rule_had(struct check *c, const struct torture_message *m)
{
	if (c->history->must_be_empty && is_left(c, m))
		check_found(c, m->all, "message %" PRIu64 " is there and cannot be taken", name_of(m));
}

void
rule_bytes(struct check *c, const struct torture_message *m)
{
	const struct event *push = NULL;

	EACH_EVENT(e, m->of[EVENT_PUSH])
	if ((*e)->outcome == OUTCOME_OK)
		push = *e;
	EACH_EVENT(e, m->of[EVENT_CLAIM])
	{
		if (push && push->name != (*e)->name)
			check_pair(c, push, *e, "sent as %" PRIu64 ", it came as %" PRIu64,
				   push->name, (*e)->name);
		else if ((*e)->damaged)
			check_found(c, (struct event_list){ e, 1 }, "message %" PRIu64 " came with other bytes",
				    (*e)->name);
	}
}

void
rule_sent(struct check *c, struct event_list all)
{
	EACH_EVENT(e, all)
	if ((*e)->kind == EVENT_PUSH && (*e)->outcome != OUTCOME_FAILED)
		return;
	EACH_EVENT(e, all)
	if ((*e)->kind != EVENT_PUSH) {
		check_found(c, all, "message %" PRIu64 " is there, and was never sent or was "
				    "refused",
			    (*e)->name);
		return;
	}
}

void
rule_once(struct check *c, struct event_list all)
{
	const struct event *first = NULL;

	EACH_EVENT(e, all)
	{
		if (!(*e)->id)
			continue;
		if (first && (*e)->id != first->id) {
			check_pair(c, first, *e,
				   "message %" PRIu64 " is there twice: %" PRIu64 " and %" PRIu64,
				   first->name, first->id, (*e)->id);
			return;
		}
		first = *e;
	}
}

static bool
comes_after(const struct event *e, const struct event *ack)
{
	return e->start > ack->end || (e->kind == EVENT_CLAIM && e->token > ack->token);
}

void
rule_final(struct check *c, const struct torture_message *m)
{
	static const uint8_t kinds[] = { EVENT_CLAIM, EVENT_ROW };

	EACH_EVENT(ack, m->of[EVENT_ACK])
	{
		if ((*ack)->outcome != OUTCOME_OK)
			continue;
		for (size_t i = 0; i < sizeof kinds; i++)
			EACH_EVENT(e, m->of[kinds[i]])
		if (comes_after(*e, *ack))
			check_pair(c, *ack, *e, "message %" PRIu64 " was acked with token %" PRIu64 ", then %s",
				   name_of(m), (*ack)->token,
				   kinds[i] == EVENT_CLAIM ? "came again" : "was found");
	}
}

/* Checks a successful settle: its lease must be the current one. */
static void
check_settle(struct check *c, const struct torture_message *m, const struct event *s)
{
	static const uint8_t ending[] = { EVENT_ACK, EVENT_NACK };

	EACH_EVENT(e, m->of[EVENT_CLAIM])
	if ((*e)->token > s->token && (*e)->end < s->start)
		check_pair(c, *e, s, "%s with token %" PRIu64 " after token %" PRIu64 " was given",
			   event_kinds[s->kind], s->token, (*e)->token);
	for (size_t i = 0; i < sizeof ending; i++)
		EACH_EVENT(e, m->of[ending[i]])
	if ((*e)->outcome == OUTCOME_OK && (*e)->token == s->token && (*e)->end < s->start)
		check_pair(c, *e, s, "%s with token %" PRIu64 " after the %s that ended it",
			   event_kinds[s->kind], s->token, event_kinds[ending[i]]);
}

void
rule_stale(struct check *c, const struct torture_message *m)
{
	for (int kind = EVENT_ACK; kind <= EVENT_EXTEND; kind++)
		EACH_EVENT(e, m->of[kind])
	if ((*e)->outcome == OUTCOME_OK)
		check_settle(c, m, *e);
}

void
rule_due(struct check *c, const struct torture_message *m)
{
	const struct event_list claims = m->of[EVENT_CLAIM];

	EACH_EVENT(e, claims)
	if ((*e)->granted < (*e)->due)
		check_found(c, (struct event_list){ e, 1 }, "message %" PRIu64 " was delivered %.6f s before it was due",
			    (*e)->name, (double)((*e)->due - (*e)->granted) / 1e9);
	EACH_EVENT(nack, m->of[EVENT_NACK])
	EACH_EVENT(e, claims)
	if ((*nack)->outcome == OUTCOME_OK && (*e)->token > (*nack)->token &&
	    (*e)->granted < (*nack)->until)
		check_pair(c, *nack, *e, "message %" PRIu64 " was delivered again %.6f s before its "
					 "retry was due",
			   (*e)->name, (double)((*nack)->until - (*e)->granted) / 1e9);
}

void
rule_limit(struct check *c, const struct torture_message *m)
{
	EACH_EVENT(e, m->of[EVENT_CLAIM])
	if ((*e)->failures >= (*e)->max_attempts || (*e)->failures >= (*e)->attempts)
		check_found(c, (struct event_list){ e, 1 },
			    "message %" PRIu64 " was delivered for the %u. time after %u failures "
			    "of %u",
			    (*e)->name, (*e)->attempts, (*e)->failures, (*e)->max_attempts);
}

/* After a nack made it a dead letter, only a redrive may deliver it. */
void
rule_buried(struct check *c, const struct torture_message *m)
{
	EACH_EVENT(nack, m->of[EVENT_NACK])
	{
		if ((*nack)->outcome != OUTCOME_OK || (*nack)->state != STATE_DEAD)
			continue;
		EACH_EVENT(e, m->of[EVENT_CLAIM])
		if ((*e)->token > (*nack)->token && !check_is_redriven(c, *e))
			check_pair(c, *nack, *e, "message %" PRIu64 " was a dead letter, then was delivered",
				   (*e)->name);
	}
}
