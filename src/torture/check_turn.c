/*
 * check_turn.c - whose turn it is, what limits keep back, acks that enqueue: I11, I12, I13.
 *
 * A delivery has the share, priority and attribute of its push. A delivery whose push has no known id counts for
 * nothing, so the rules find less than there is, and never more.
 */
#include "torture/check_private.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Limits of leased messages ---- */

/* A moment at which a lease certainly begins to be held, or may have ended. */
struct turn_step {
	slu_time at;
	const struct event *claim;
	int change; /* 1 or -1 */
};

static int
by_moment(const void *a, const void *b)
{
	const struct turn_step *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->change - y->change; /* ends first */
}

/* When the first call that may have ended or changed the lease began, by the clock of the clients. */
static slu_time
held_until(const struct torture_message *m, const struct event *claim)
{
	slu_time until = claim->start + (claim->until - claim->granted);

	for (int kind = EVENT_ACK; kind <= EVENT_EXTEND; kind++)
		EACH_EVENT(e, m->of[kind])
	if ((*e)->token == claim->token && (*e)->start < until)
		until = (*e)->start;
	return until;
}

/* The steps of the leases of a value of the attribute; 0: of all. Sorted. */
static size_t
find_steps(const struct check *c, unsigned host, struct turn_step *steps)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_messages;) {
		struct torture_message m;
		bool counts = !host;

		i = check_next_message(c, i, &m);
		EACH_EVENT(e, m.of[EVENT_PUSH])
		counts |= (*e)->outcome == OUTCOME_OK && (*e)->host == host;
		EACH_EVENT(e, m.of[EVENT_CLAIM])
		{
			const slu_time until = held_until(&m, *e);

			if (!counts || until <= (*e)->end)
				continue;
			steps[n++] = (struct turn_step){ (*e)->end, *e, 1 };
			steps[n++] = (struct turn_step){ until, *e, -1 };
		}
	}
	qsort(steps, n, sizeof *steps, by_moment);
	return n;
}

static void
check_held(struct check *c, unsigned host, uint32_t limit, struct turn_step *steps)
{
	const size_t n = find_steps(c, host, steps);
	uint32_t held = 0;

	for (size_t i = 0; i < n; i++) {
		held += (uint32_t)steps[i].change;
		if (held > limit && steps[i].change > 0) {
			check_found(c, (struct event_list){ &steps[i].claim, 1 }, "%u messages of %s were leased, the limit is %u", held,
				    host ? "one host" : "the queue", limit);
			return;
		}
	}
}

void
rule_concurrency(struct check *c)
{
	const struct history_limits *limits = &c->history->limits;
	struct turn_step *steps = limits->concurrency ? mem_array(2 * c->n_tokens + 1, sizeof *steps) : NULL;

	if (!steps)
		return;
	check_held(c, 0, limits->concurrency, steps);
	for (unsigned host = 1; host <= 3; host++)
		check_held(c, host, limits->attribute_concurrency, steps);
	mem_free(steps);
}

/* ---- Rate ---- */

static int
by_grant(const void *a, const void *b)
{
	const slu_time x = (*(const struct event *const *)a)->granted, y = (*(const struct event *const *)b)->granted;

	return x < y ? -1 : x > y;
}

/* A bucket that is full at the first delivery. */
void
rule_rate(struct check *c)
{
	const struct history_limits *limits = &c->history->limits;
	const struct event **all = limits->rate ? mem_array(c->n_tokens + 1, sizeof(void *)) : NULL;
	double tokens = limits->burst;
	slu_time last = 0;

	if (!all)
		return;
	memcpy(all, c->by_token, c->n_tokens * sizeof(void *));
	qsort(all, c->n_tokens, sizeof(void *), by_grant);
	for (size_t i = 0; i < c->n_tokens; i++) {
		tokens += i ? (double)(all[i]->granted - last) / 1e9 * limits->rate : 0;
		tokens = (tokens < limits->burst ? tokens : limits->burst) - 1;
		last = all[i]->granted;
		if (tokens >= -1)
			continue; /* the server rounds to its clock */
		check_found(c, (struct event_list){ &all[i], 1 }, "%.0f deliveries more than %u a second and a burst of %u",
			    -tokens, limits->rate, limits->burst);
		break;
	}
	mem_free(all);
}

/* ---- Shares ---- */

/* Faults while the message waited: tags are not stored, so each may begin a new count. */
static unsigned
faults_between(const struct check *c, slu_time from, slu_time to)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->history->n; i++) {
		const struct event *e = &c->history->events[i];

		n += e->kind == EVENT_FAULT && e->start <= to && e->end >= from;
	}
	return n;
}

/* The push of a claimed message, also if it was not answered: the delivery tells that it happened. */
static const struct event *
push_of(const struct check *c, const struct event *claim)
{
	const struct event *push = check_note(c, claim)->push;
	const struct event_list all = check_name(c, claim->name);

	for (size_t i = 0; i < all.n && !push; i++)
		push = all.at[i]->kind == EVENT_PUSH && all.at[i]->outcome == OUTCOME_UNKNOWN ? all.at[i] : NULL;
	return push;
}

/* Counts deliveries of other shares since the message was accepted, or since the last delivery of its share. */
static void
count_others(const struct check *c, size_t at, const struct event *push, unsigned count[4], const struct event *first[4])
{
	for (size_t i = at; i-- > 0;) {
		const struct event *e = c->by_token[i];
		const struct event *of = push_of(c, e);

		if (e->end < push->start)
			return; /* and all before it */
		if (!of || of->priority != push->priority)
			continue;
		if (of->share == push->share)
			return;
		if (e->start <= push->end)
			continue;
		count[of->share % 4]++;
		first[of->share % 4] = e;
	}
}

static void
check_wait(struct check *c, size_t at, const struct event *push)
{
	const uint32_t *weights = c->history->limits.weights;
	const uint32_t own = weights[push->share % 4];
	const struct event *first[4] = { 0 };
	unsigned count[4] = { 0 };

	count_others(c, at, push, count, first);
	for (unsigned s = 0; s < 4; s++) {
		unsigned n;

		if (count[s] * own <= own + weights[s])
			continue;
		n = faults_between(c, push->start, c->by_token[at]->end);
		if (count[s] * own > (own + weights[s]) * (n + 1) + n * own)
			check_found(c, (struct event_list){ (const struct event *[]){ push, first[s], c->by_token[at] }, 3 },
				    "message %" PRIu64 " of share %u waited for %u deliveries of share %u", push->name, push->share,
				    count[s], s);
	}
}

/* Messages that wait for nothing but their turn. A redrive makes a message wait again. */
void
rule_share(struct check *c)
{
	const bool checked = c->history->limits.weights[0] && !c->history->taken_over;

	for (size_t i = 0; checked && i < c->n_tokens; i++) {
		const struct event *e = c->by_token[i];
		const struct event *push = check_note(c, e)->push;

		if (push && check_note(c, e)->is_first && e->attempts == 1 && !push->waits && !push->host &&
		    !check_is_redriven(c, e))
			check_wait(c, i, push);
	}
}

/* ---- Acks that enqueue ---- */

static bool
is_seen(struct event_list all)
{
	EACH_EVENT(e, all)
	if ((*e)->kind == EVENT_CLAIM || (*e)->kind == EVENT_ROW)
		return true;
	return false;
}

/* Was the message there after the ack with that token? */
static bool
is_seen_after(struct event_list all, const struct event *push)
{
	EACH_EVENT(e, all)
	if (((*e)->kind == EVENT_CLAIM && (*e)->token > push->token) || ((*e)->kind == EVENT_ROW && (*e)->start > push->end))
		return true;
	return false;
}

/* Acks with a known outcome are checked by the rules of I1. */
void
rule_atomic(struct check *c)
{
	for (size_t i = 0; i < c->history->n; i++) {
		const struct event *push = &c->history->events[i];
		bool child, parent;

		if (push->kind != EVENT_PUSH || !push->parent || push->outcome != OUTCOME_UNKNOWN)
			continue;
		child = is_seen(check_name(c, push->name));
		parent = is_seen_after(check_name(c, push->parent), push);
		if (child == parent)
			check_found(c, (struct event_list){ &push, 1 },
				    child ? "message %" PRIu64 " is there, and the ack of %" PRIu64 " that enqueued it did not happen"
					  : "message %" PRIu64 " is not there, and the ack of %" PRIu64 " that enqueued it happened",
				    push->name, push->parent);
	}
}
