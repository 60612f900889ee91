/*
 * check_lease.c - who may hold what, and in which order: I4 and I6.
 */
#include "torture/check_in.h"

#include <inttypes.h>

/* The claims, and what was said of the first lease. */
static struct line
evidence(const struct message *m, const struct event *one, const struct event *next,
	 const struct event **room)
{
	struct line line = { room, 0 };

	room[line.n++] = one;
	room[line.n++] = next;
	for (int kind = EVENT_ACK; m && kind <= EVENT_EXTEND; kind++)
		EACH_EVENT(e, m->of[kind])
	if ((*e)->token == one->token && line.n < CHECK_EVIDENCE)
		room[line.n++] = *e;
	return line;
}

/* A lease begins when the one before it has ended. m: of one message, or NULL. */
static void
check_leases(struct check *c, const struct message *m, const struct event *one,
	     const struct event *next)
{
	const slu_time end = check_note(c, one)->lease_end;
	const struct event *room[CHECK_EVIDENCE];

	if (next->granted < end)
		check_found(c, evidence(m, one, next, room),
			    "lease %" PRIu64 " had %.6f s to go when lease %" PRIu64 " was given",
			    one->token, (double)(end - next->granted) / 1e9, next->token);
}

void
rule_overlap(struct check *c, const struct message *m)
{
	const struct line claims = m->of[EVENT_CLAIM];

	for (size_t i = 1; i < claims.n; i++)
		check_leases(c, m, claims.at[i - 1], claims.at[i]);
}

/* What the message itself breaks is told once. */
void
rule_key_overlap(struct check *c, struct line claims)
{
	for (size_t i = 1; i < claims.n; i++)
		if (claims.at[i - 1]->id != claims.at[i]->id)
			check_leases(c, NULL, claims.at[i - 1], claims.at[i]);
}

/* Claims by token: none may have ended before one of a lower token began. What a message
 * breaks by itself is not told again of its key. */
static void
check_rising(struct check *c, struct line claims, bool of_key)
{
	const struct event *last = NULL; /* of the lower ones, that which began last */

	EACH_EVENT(e, claims)
	{
		if (last && (*e)->end < last->start && (last->id != (*e)->id) == of_key)
			check_pair(c, *e, last, "token %" PRIu64 " was given, then the lower %" PRIu64,
				   (*e)->token, last->token);
		if (!last || (*e)->start > last->start)
			last = *e;
	}
}

void
rule_rising(struct check *c, const struct message *m)
{
	check_rising(c, m->of[EVENT_CLAIM], false);
}

void
rule_key_rising(struct check *c, struct line claims)
{
	check_rising(c, claims, true);
}

/* What several shards have in common has one token at a time: a message, and a key. */
static bool
may_share(const struct check *c, const struct event *a, const struct event *b)
{
	return c->history->several && a->id != b->id && (!a->key || a->key != b->key);
}

void
rule_unique(struct check *c)
{
	const uint64_t floor = c->history->several ? 0 : c->history->token_floor;

	for (size_t i = 0; i < c->n_tokens; i++) {
		const struct event **e = c->by_token + i;

		if ((*e)->token <= floor)
			check_found(c, (struct line){ e, 1 },
				    "token %" PRIu64 " is not above %" PRIu64 ", which an earlier round saw",
				    (*e)->token, floor);
		for (size_t k = i; k-- > 0 && c->by_token[k]->token == (*e)->token;)
			if (!may_share(c, c->by_token[k], *e))
				check_pair(c, c->by_token[k], *e, "token %" PRIu64 " was given twice", (*e)->token);
	}
}

void
rule_attempts(struct check *c, const struct message *m)
{
	const struct line claims = m->of[EVENT_CLAIM];

	for (size_t i = 1; i < claims.n; i++) {
		const struct event *one = claims.at[i - 1], *next = claims.at[i];

		if (next->attempts <= one->attempts && !check_is_redriven(c, next))
			check_pair(c, one, next, "delivery %u of message %" PRIu64 " was followed by delivery %u",
				   one->attempts, one->name, next->attempts);
	}
}

/* --- order ---------------------------------------------------------------------- */

/* Was a accepted before b, for sure? What was tried more than once was accepted by
 * nobody knows which call. */
static bool
is_before(const struct check *c, const struct event *a, const struct event *b)
{
	slu_time began_a, began_b;

	if (!a || !b)
		return false;
	began_a = check_note(c, a)->began;
	began_b = check_note(c, b)->began;
	if (a->call == b->call && began_a == a->start && began_b == b->start)
		return a->index < b->index;
	return a->end < began_b;
}

static void
check_turn(struct check *c, const struct event *last, const struct event *e)
{
	const struct event *push = check_note(c, e)->push;
	const struct event *last_push = check_note(c, last)->push;

	if (e->due < last->due)
		check_pair(c, last, e, "message %" PRIu64 " of key %u came after %" PRIu64 ", which was due %.6f s later",
			   e->name, e->key, last->name, (double)(last->due - e->due) / 1e9);
	else if (e->due == last->due && is_before(c, push, last_push))
		check_found(c, (struct line){ (const struct event *[]){ push, last_push, last, e }, 4 },
			    "message %" PRIu64 " of key %u came after %" PRIu64 ", which was accepted later",
			    e->name, e->key, last->name);
}

void
rule_order(struct check *c, struct line claims)
{
	const struct event *last = NULL;

	EACH_EVENT(e, claims)
	{
		if (!check_note(c, *e)->is_first || check_is_redriven(c, *e) || (*e)->attempts > 1)
			continue; /* of one whose first delivery nobody saw, due is that of its retry */
		if (last)
			check_turn(c, last, *e);
		last = *e;
	}
}
