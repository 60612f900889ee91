/*
 * check_lock.c - the holders of a lock and its state: I1, I4 and I5.
 *
 * Leases of locks are checked by the clients' clock: a lease lasts at least its ttl from the moment it
 * was requested.
 */
#include "torture/check_private.h"

#include <inttypes.h>

static bool
is_grant(const struct event *e)
{
	return e->kind == EVENT_ACQUIRE && e->outcome == OUTCOME_OK;
}

/* Until when the holder certainly had the lock: its ttl, or its release. Events of a lease are
 * adjacent. */
static slu_time
held_until(struct event_list all, const struct event **acquire)
{
	slu_time until = (*acquire)->until;

	for (const struct event **e = all.at; e < all.at + all.n; e++)
		if ((*e)->token == (*acquire)->token && (*e)->kind == EVENT_RELEASE &&
		    (*e)->outcome != OUTCOME_FAILED && (*e)->start < until)
			until = (*e)->start;
	return until;
}

void
rule_lock(struct check *c, struct event_list all)
{
	const struct event **last = NULL;

	EACH_EVENT(e, all)
	{
		if (!is_grant(*e))
			continue;
		if (last && (*e)->end < held_until(all, last))
			check_pair(c, *last, *e, "lock %u was given with token %" PRIu64 " while token %" PRIu64 " still had %.6f s",
				   (*e)->key, (*e)->token, (*last)->token,
				   (double)(held_until(all, last) - (*e)->end) / 1e9);
		last = e;
	}
}

void
rule_lock_rising(struct check *c, struct event_list all)
{
	const uint64_t floor = c->history->lock_tokens[all.at[0]->key];
	const struct event *last = NULL; /* the one with a lower token that began last */

	EACH_EVENT(e, all)
	{
		if (!is_grant(*e))
			continue;
		if ((*e)->token <= floor)
			check_found(c, (struct event_list){ e, 1 },
				    "token %" PRIu64 " is not above %" PRIu64 ", a token of an earlier round",
				    (*e)->token, floor);
		if (last && ((*e)->end < last->start || (*e)->token == last->token))
			check_pair(c, *e, last, "token %" PRIu64 " of lock %u was given, then %" PRIu64,
				   (*e)->token, (*e)->key, last->token);
		if (!last || (*e)->start > last->start)
			last = *e;
	}
}

/* Checks a successful update: the lock must not be released or have another holder. */
static void
check_update(struct check *c, struct event_list all, const struct event *update)
{
	EACH_EVENT(e, all)
	{
		if ((*e)->end >= update->start || (*e)->outcome != OUTCOME_OK)
			continue;
		if ((*e)->kind == EVENT_ACQUIRE && (*e)->token > update->token)
			check_pair(c, *e, update, "lock %u was updated with token %" PRIu64 " after token %" PRIu64 " was given", update->key,
				   update->token, (*e)->token);
		if ((*e)->kind == EVENT_RELEASE && (*e)->token == update->token)
			check_pair(c, *e, update, "lock %u was updated with token %" PRIu64 " after its release",
				   update->key, update->token);
	}
}

void
rule_lock_stale(struct check *c, struct event_list all)
{
	EACH_EVENT(e, all)
	if ((*e)->kind == EVENT_UPDATE && (*e)->outcome == OUTCOME_OK)
		check_update(c, all, *e);
}

/* Reports the events of the holder until its release, and the contradicting event. */
static struct event_list
evidence(struct event_list all, const struct event *commit, const struct event *other,
	 const struct event **room)
{
	struct event_list line = { room, 0 };

	EACH_EVENT(e, all)
	if ((*e)->token == commit->token && line.n < CHECK_EVIDENCE - 1)
		room[line.n++] = *e;
	if (other->token != commit->token)
		room[line.n++] = other;
	return line;
}

/* Every holder writes one more than it read: committed values rise, and each occurs once. */
static void
check_commit(struct check *c, struct event_list all, const struct event *commit)
{
	const struct event *room[CHECK_EVIDENCE];

	EACH_EVENT(e, all)
	{
		if ((*e)->kind == EVENT_READ && (*e)->outcome == OUTCOME_OK && (*e)->start > commit->end &&
		    (*e)->name < commit->name)
			check_found(c, evidence(all, commit, *e, room),
				    "%" PRIu64 " was committed to lock %u, then %" PRIu64 " was read",
				    commit->name, commit->key, (*e)->name);
		if (*e != commit && (*e)->name == commit->name && history_commits(*e) &&
		    (*e)->start > commit->start)
			check_found(c, evidence(all, commit, *e, room),
				    "%" PRIu64 " was committed to lock %u twice: one was lost", commit->name,
				    commit->key);
	}
}

void
rule_state(struct check *c, struct event_list all)
{
	const uint64_t floor = c->history->lock_values[all.at[0]->key];

	EACH_EVENT(e, all)
	{
		if (history_commits(*e))
			check_commit(c, all, *e);
		if ((*e)->kind == EVENT_READ && (*e)->outcome == OUTCOME_OK && (*e)->name < floor)
			check_found(c, (struct event_list){ e, 1 },
				    "%" PRIu64 " was read from lock %u, but an earlier round committed %" PRIu64,
				    (*e)->name, (*e)->key, floor);
	}
}
