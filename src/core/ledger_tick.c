/*
 * ledger_tick.c - what happens by itself when its time has come.
 *
 * Only what cannot be told from the records alone is a change: the end of a lease
 * counts a failure, the end of a ttl is a dead letter, dlq retention deletes. A
 * delay that is over, a result or an idempotency key that is forgotten follow from
 * the times that are written down already.
 */
#include "core/ledger_in.h"

#include <assert.h>

enum {
	PROMOTE_STEP = 64 /* then other topics that are due earlier have their turn */
};

/* The agenda (I1) */

static void
set_wake(struct ledger *l, struct topic *t, slu_time at)
{
	const struct rank rank = { .b = rank_time(at), .c = t->hash };

	if (t->pos != HEAP_OUT)
		heap_remove(&l->agenda, t->pos);
	t->wake = at;
	if (at != SLU_NEVER)
		heap_push(&l->agenda, rank, t->handle);
}

void
ledger_wake(struct ledger *l, struct topic *t, slu_time at)
{
	if (at < t->wake)
		set_wake(l, t, at);
}

/* When the first dead letter is to be deleted. */
static slu_time
next_retired(const struct ledger *l, const struct topic *t)
{
	if (t->dead.first == SLAB_NONE) /* others may be set aside */
		return SLU_NEVER;
	if (t->policy.dlq_max && t->count[MSG_DEAD] > t->policy.dlq_max)
		return 0;
	if (!t->policy.dlq_retention)
		return SLU_NEVER;
	return later(ledger_msg(l, t->dead.first)->q.due, t->policy.dlq_retention);
}

static slu_time
next_of_topic(const struct ledger *l, const struct topic *t)
{
	const slu_time due = queue_next_due(&t->queue);
	const slu_time retired = next_retired(l, t);

	if (t->purging)
		return 0;
	return due < retired ? due : retired;
}

/* The topic to look at first, at its exact time, or NULL. */
static struct topic *
first_topic(struct ledger *l)
{
	while (l->agenda.n > 0) {
		struct topic *t = ledger_topic(l, l->agenda.nodes[0].handle);
		const slu_time exact = next_of_topic(l, t);

		if (exact <= t->wake)
			return t;
		set_wake(l, t, exact);
	}
	return NULL;
}

/* Changes */

static void
retire(const struct ledger *l, const struct topic *t, slu_time now, struct change *out)
{
	const uint32_t h = t->dead.first;

	*out = ledger_begin_for(l, CHANGE_DONE, h, now);
	out->remember = ledger_remember(l, ledger_msg(l, h), out->at);
}

/* True: *out is to be done. */
static bool
work_on_topic(struct ledger *l, struct topic *t, slu_time now, uint32_t *budget,
	      struct change *out)
{
	const uint32_t step = *budget < PROMOTE_STEP ? *budget : PROMOTE_STEP;
	uint32_t n = 1;

	if (t->purging) {
		ledger_purge_some(l, t, budget);
		return false;
	}
	if (queue_next_due(&t->queue) <= now) {
		n = ledger_promote(l, t, now, step);
		set_wake(l, t, next_of_topic(l, t));
	} else {
		retire(l, t, now, out);
	}
	*budget -= n;
	return out->kind != CHANGE_NONE;
}

/* A lease that ran out is a failure; the message is ready again at once. */
static bool
end_first_lease(struct ledger *l, slu_time now, struct change *out)
{
	const uint32_t h = l->deadlines.nodes[0].handle;
	const struct msg *m = ledger_msg(l, h);
	const uint32_t max = ledger_max_attempts(ledger_topic_of(l, m), m);

	*out = ledger_begin_for(l, CHANGE_RETRY, h, now);
	out->failed = out->expired = true;
	out->due = node_time(&l->deadlines, 0);
	if (m->failures + 1u >= max) {
		out->kind = CHANGE_DIE;
		out->reason = DEAD_MAX_ATTEMPTS;
	}
	return true;
}

/* What was purged meanwhile needs no change. */
static bool
end_first_ttl(struct ledger *l, slu_time now, struct change *out)
{
	const uint32_t h = l->ttls.nodes[0].handle;
	const struct msg *m = ledger_msg(l, h);

	if (ledger_is_purged(ledger_topic_of(l, m), m, h)) {
		ledger_ttl_stop(l, h);
		return false;
	}
	*out = ledger_begin_for(l, CHANGE_DIE, h, now);
	out->reason = DEAD_EXPIRED;
	return true;
}

enum source {
	SOURCE_NONE,
	SOURCE_LEASE,
	SOURCE_TTL,
	SOURCE_TOPIC,
	SOURCE_RESULT,
	SOURCE_IDEM,
	SOURCE_IDLE
};

/* What falls due first; of two at once the one that comes first above. */
static enum source
next_source(struct ledger *l, slu_time *at)
{
	const struct topic *t = first_topic(l);
	const slu_time times[] = {
		[SOURCE_NONE] = SLU_NEVER,
		[SOURCE_LEASE] = first_time(&l->deadlines),
		[SOURCE_TTL] = first_time(&l->ttls),
		[SOURCE_TOPIC] = t ? t->wake : SLU_NEVER,
		[SOURCE_RESULT] = results_next_due(&l->results),
		[SOURCE_IDEM] = idem_next_due(&l->idem),
		[SOURCE_IDLE] = ledger_next_look(l),
	};
	enum source first = SOURCE_NONE;

	for (enum source s = SOURCE_LEASE; s <= SOURCE_IDLE; s++)
		if (times[s] < times[first])
			first = s;
	*at = times[first];
	return first;
}

slu_time
ledger_next_due(struct ledger *l)
{
	slu_time at;

	(void)next_source(l, &at); /* the time alone */
	return at;
}

static bool
step(struct ledger *l, enum source source, slu_time now, uint32_t *budget,
     struct change *out)
{
	switch (source) {
	case SOURCE_LEASE:
		--*budget;
		return end_first_lease(l, now, out);
	case SOURCE_TTL:
		--*budget;
		return end_first_ttl(l, now, out);
	case SOURCE_TOPIC:
		return work_on_topic(l, first_topic(l), now, budget, out);
	case SOURCE_RESULT:
		--*budget;
		ledger_drop(l, results_expire(&l->results, now));
		return false;
	case SOURCE_IDLE:
		return ledger_look_for_idle(l, now, budget, out);
	default:
		idem_sweep(&l->idem, now, budget);
		return false;
	}
}

bool
ledger_tick(struct ledger *l, slu_time now, uint32_t *budget, struct change *out)
{
	slu_time at;

	*out = ledger_begin(l, CHANGE_NONE, now);
	while (*budget > 0) {
		const enum source source = next_source(l, &at);

		if (source == SOURCE_NONE || at > now)
			return false;
		if (step(l, source, now, budget, out))
			return true;
	}
	return false;
}
