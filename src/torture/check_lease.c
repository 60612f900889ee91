/*
 * check_lease.c - leases and the order of deliveries: I4 and I6.
 */
#include "torture/check_private.h"

#include <inttypes.h>

/* Reports overlapping leases: the claims, and the settles of the first lease. */
static struct event_list
evidence(const struct torture_message *m, const struct event *one, const struct event *next,
	 const struct event **room)
{
	struct event_list line = { room, 0 };

	room[line.n++] = one;
	room[line.n++] = next;
	for (int kind = EVENT_ACK; m && kind <= EVENT_EXTEND; kind++)
		EACH_EVENT(e, m->of[kind])
	if ((*e)->token == one->token && line.n < CHECK_EVIDENCE)
		room[line.n++] = *e;
	return line;
}

/* Checks that a lease begins after the previous one ended. m: the message; NULL = several messages of a key. */
static void
check_leases(struct check *c, const struct torture_message *m, const struct event *one,
	     const struct event *next)
{
	const slu_time end = check_note(c, one)->lease_end;
	const struct event *room[CHECK_EVIDENCE];

	if (next->granted < end)
		check_found(c, evidence(m, one, next, room),
			    "lease %" PRIu64 " still had %.6f s when lease %" PRIu64 " was given",
			    one->token, (double)(end - next->granted) / 1e9, next->token);
}

void
rule_overlap(struct check *c, const struct torture_message *m)
{
	const struct event_list claims = m->of[EVENT_CLAIM];

	for (size_t i = 1; i < claims.n; i++)
		check_leases(c, m, claims.at[i - 1], claims.at[i]);
}

/* Skips overlaps within one message: another rule reports them. */
void
rule_key_overlap(struct check *c, struct event_list claims)
{
	for (size_t i = 1; i < claims.n; i++)
		if (claims.at[i - 1]->id != claims.at[i]->id)
			check_leases(c, NULL, claims.at[i - 1], claims.at[i]);
}

/* Checks claims in the order of tokens: none may have ended before a claim with a lower token began. A
 * message's own findings are not repeated for its key. */
static void
check_rising(struct check *c, struct event_list claims, bool of_key)
{
	const struct event *last = NULL; /* the claim with a lower token that began last */

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
rule_rising(struct check *c, const struct torture_message *m)
{
	check_rising(c, m->of[EVENT_CLAIM], false);
}

void
rule_key_rising(struct check *c, struct event_list claims)
{
	check_rising(c, claims, true);
}

/* With several shards only the tokens of a message or a key rise. */
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
			check_found(c, (struct event_list){ e, 1 },
				    "token %" PRIu64 " is not above %" PRIu64 ", a token of an earlier round",
				    (*e)->token, floor);
		for (size_t k = i; k-- > 0 && c->by_token[k]->token == (*e)->token;)
			if (!may_share(c, c->by_token[k], *e))
				check_pair(c, c->by_token[k], *e, "token %" PRIu64 " was given twice", (*e)->token);
	}
}

void
rule_attempts(struct check *c, const struct torture_message *m)
{
	const struct event_list claims = m->of[EVENT_CLAIM];

	for (size_t i = 1; i < claims.n; i++) {
		const struct event *one = claims.at[i - 1], *next = claims.at[i];

		if (next->attempts <= one->attempts && !check_is_redriven(c, next))
			check_pair(c, one, next, "delivery %u of message %" PRIu64 " was followed by delivery %u",
				   one->attempts, one->name, next->attempts);
	}
}

/* --- order ---------------------------------------------------------------------- */

/* Whether the answer may have come before the queue accepted the message: it was on its way from another shard, and an answer
 * waits a second for that. */
static bool
was_pending(const struct event *push)
{
	return push->joins && push->end - push->start >= SLU_SEC;
}

/* Was a certainly accepted before b? For a message that was tried more than once, the accepting call is
 * not known. */
static bool
is_before(const struct check *c, const struct event *a, const struct event *b)
{
	slu_time began_a, began_b;

	if (!a || !b || was_pending(a))
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
		check_found(c, (struct event_list){ (const struct event *[]){ push, last_push, last, e }, 4 },
			    "message %" PRIu64 " of key %u came after %" PRIu64 ", which was accepted later",
			    e->name, e->key, last->name);
}

void
rule_order(struct check *c, struct event_list claims)
{
	const struct event *last = NULL;

	EACH_EVENT(e, claims)
	{
		if (!check_note(c, *e)->is_first || check_is_redriven(c, *e) || (*e)->attempts > 1)
			continue; /* if the first delivery was not seen, `due` is the time of a retry */
		if (last)
			check_turn(c, last, *e);
		last = *e;
	}
}
