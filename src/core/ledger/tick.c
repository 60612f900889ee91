/*
 * tick.c - timed events.
 *
 * An event is a change only if it does not follow from the records: the end of a lease counts
 * a failure, the end of a ttl makes a dead letter, dlq retention deletes. The end of a delay,
 * of a result and of a remembered key follow from times that are in the records.
 */
#include "core/ledger/ledger_private.h"

enum {
	PROMOTE_STEP = 64 /* messages of a queue before the tick looks at other queues */
};

/* The agenda (LEDGERHEAP-1) */

static void
set_wake(struct ledger *l, struct ledger_queue *q, slu_time at)
{
	const struct rank rank = { .b = rank_time(at), .c = q->hash };

	if (q->pos != HEAP_OUT)
		heap_remove(&l->agenda, q->pos);
	q->wake = at;
	if (at != SLU_NEVER)
		heap_push(&l->agenda, rank, q->handle);
}

void
ledger_wake(struct ledger *l, struct ledger_queue *q, slu_time at)
{
	if (at < q->wake)
		set_wake(l, q, at);
}

/* The moment to delete the first dead letter. */
static slu_time
next_retired(const struct ledger *l, const struct ledger_queue *q)
{
	if (q->dead.first == SLAB_NONE) /* counted dead letters may be set aside */
		return SLU_NEVER;
	if (q->policy->dlq_max && q->count[MSG_DEAD] > q->policy->dlq_max)
		return 0;
	if (!q->policy->dlq_retention)
		return SLU_NEVER;
	return time_add(ledger_msg(l, q->dead.first)->q.due, q->policy->dlq_retention);
}

static slu_time
pause_end(const struct ledger_queue *q)
{
	return q->policy->pause.until ? q->policy->pause.until : SLU_NEVER;
}

static slu_time
next_of_queue(const struct ledger *l, const struct ledger_queue *q)
{
	const slu_time due = queue_next_due(&q->heaps);
	const slu_time retired = next_retired(l, q);

	const slu_time gate = q->gates ? gates_next_due(q->gates) : SLU_NEVER;
	const slu_time resume = pause_end(q);
	const slu_time first = due < retired ? due : retired;
	const slu_time second = gate < resume ? gate : resume;

	if (q->purging)
		return 0;
	return second < first ? second : first;
}

/* The queue with the next event, at its exact time, or NULL. */
static struct ledger_queue *
first_queue(struct ledger *l)
{
	while (l->agenda.n > 0) {
		struct ledger_queue *q = ledger_queue(l, l->agenda.nodes[0].handle);
		const slu_time exact = next_of_queue(l, q);

		if (exact <= q->wake)
			return q;
		set_wake(l, q, exact);
	}
	return NULL;
}

/* Changes */

static void
retire(const struct ledger *l, const struct ledger_queue *q, slu_time now, struct change *out)
{
	const uint32_t h = q->dead.first;

	*out = ledger_begin_for(l, CHANGE_DONE, h, now);
	out->remember = ledger_remember(l, ledger_msg(l, h), out->at);
}

/* The pause ends by itself. The change keeps that, so a later read of the policy finds no pause. */
static void
resume(struct ledger *l, const struct ledger_queue *q, slu_time now, struct change *out)
{
	l->resumed = *q->policy;
	policy_resume(&l->resumed);
	*out = ledger_begin(l, CHANGE_POLICY, now);
	out->queue = q->handle;
	out->policy = &l->resumed;
}

/* Returns true with a change in *out. */
static bool
work_on_queue(struct ledger *l, struct ledger_queue *q, slu_time now, uint32_t *budget,
	      struct change *out)
{
	const uint32_t step = *budget < PROMOTE_STEP ? *budget : PROMOTE_STEP;
	uint32_t n = 1;

	if (q->purging) {
		ledger_purge_some(l, q, budget);
		return false;
	}
	ledger_trend_look(l, q, now);
	if (q->gates && gates_next_due(q->gates) <= now) {
		n = ledger_gates_turn(l, q, now, step);
		set_wake(l, q, next_of_queue(l, q));
	} else if (queue_next_due(&q->heaps) <= now) {
		n = ledger_promote(l, q, now, step);
		set_wake(l, q, next_of_queue(l, q));
	} else if (pause_end(q) <= now) {
		resume(l, q, now, out);
	} else {
		retire(l, q, now, out);
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
	const uint32_t max = ledger_max_attempts(ledger_queue_of(l, m), m);

	*out = ledger_begin_for(l, CHANGE_RETRY, h, now);
	if (ledger_lease(l, m)->canceled) { /* LEDGER-17 */
		out->kind = CHANGE_DONE;
		out->remember = ledger_remember(l, m, out->at);
		return true;
	}
	out->failed = out->expired = true;
	out->due = first_time(&l->deadlines);
	if (m->failures + 1u >= max) {
		out->kind = CHANGE_DIE;
		out->reason = DEAD_MAX_ATTEMPTS;
	}
	return true;
}

/* A message that was purged meanwhile needs no change. */
static bool
end_first_ttl(struct ledger *l, slu_time now, struct change *out)
{
	const uint32_t h = l->ttls.nodes[0].handle;
	const struct msg *m = ledger_msg(l, h);

	if (ledger_is_purged(l, ledger_queue_of(l, m), m, h)) {
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

/* The source of the next event; of two at the same time, the first one above. */
static enum source
next_source(struct ledger *l, slu_time *at)
{
	const struct ledger_queue *q = first_queue(l);
	const slu_time times[] = {
		[SOURCE_NONE] = SLU_NEVER,
		[SOURCE_LEASE] = first_time(&l->deadlines),
		[SOURCE_TTL] = first_time(&l->ttls),
		[SOURCE_TOPIC] = q ? q->wake : SLU_NEVER,
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
		return work_on_queue(l, first_queue(l), now, budget, out);
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

	if (ledger_breaker_next(l, now, out))
		return true; /* of a lease that has just ended */
	while (*budget > 0) {
		const enum source source = next_source(l, &at);

		if (source == SOURCE_NONE || at > now)
			return false;
		*out = ledger_begin(l, CHANGE_NONE, now);
		if (step(l, source, now, budget, out))
			return true;
	}
	return false;
}
