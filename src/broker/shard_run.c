/*
 * shard_run.c - a batch is formed, run, made durable once, then answered.
 */
#include "broker/shard_in.h"

#include "base/limit.h"
#include "base/log.h"
#include "engine/quota.h"

/* A batch while it is formed. */
struct batch {
	struct op *first;
	struct op *last;
	uint64_t cost;
	uint64_t bytes;
	uint32_t n; /* ops */
};

static void
batch_add(struct batch *b, struct op *op)
{
	op->next = NULL;
	if (b->last)
		b->last->next = op;
	else
		b->first = op;
	b->last = op;
	b->cost += op->cost;
	b->bytes += op->bytes;
	b->n++;
}

/* S1 */
static bool
batch_has_room(const struct batch *b, const struct op *op)
{
	return !b->first || (b->cost + op->cost <= SHARD_BATCH_OPS &&
			     b->bytes + op->bytes <= SHARD_BATCH_BYTES);
}

/* ---- Forming ---- */

/* What takes something from others who want it. */
static bool
takes(const struct op *op)
{
	return op->verb == OP_CLAIM || op->verb == OP_ACQUIRE;
}

/* Claims, acquires and peeks that may wait stand in line before they run, so that whoever
 * came first is served first (D1 of dispatch.h); others only when there is a line already. */
static bool
goes_into_line(struct shard *s, const struct op *op)
{
	if (!takes(op) && op->verb != OP_PEEK && op->verb != OP_WATCH)
		return false;
	if (s->closed || s->draining || op->lock.waited)
		return false;
	if (op->verb == OP_ACQUIRE && op->lock.key.n > LOCK_KEY_MAX)
		return false; /* no key: the engine says so */
	return op->wait > 0 || op->stalled || (takes(op) && dispatch_has_line(&s->dispatch, op));
}

/* S7 */
static int
check_waits(const struct shard *s, const struct op *op, struct slu_err *err)
{
	const uint32_t here = s->quota ? quota_get(&s->quota->queue_waiting) : 0;
	const uint32_t all = s->quota ? quota_get(&s->quota->waiting) : 0;

	const bool key = op->verb == OP_ACQUIRE;
	const struct slice name = key ? op->lock.key : op->queue;

	if (op->wait == 0 || op->stalled)
		return 0;
	if (here && op->verb != OP_RESULT && dispatch_waiting(&s->dispatch, op) >= here)
		return limit_fail(err, SLU_EBUSY, LIMIT_QUEUE_WAITING, 0,
				  "%s %.*s: %u wait for it already", key ? "key" : "queue",
				  (int)name.n, name.p, here);
	if (all && quota_get(&s->quota->waits) - s->told + dispatch_count(&s->dispatch) >= all)
		return limit_fail(err, SLU_EBUSY, LIMIT_WAITING, 0,
				  "%u wait for messages, results and keys already", all);
	return 0;
}

static void
put_into_line(struct shard *s, struct op *op)
{
	struct slu_err err = { 0 };
	int rc;

	rc = check_waits(s, op, &err);
	if (!rc)
		rc = dispatch_park(&s->dispatch, op, !op->stalled);
	if (!rc && op->verb == OP_WATCH)
		dispatch_moved(&s->dispatch, op->space, op->queue); /* each knows another head */
	if (!rc)
		return;
	op_fail(op, rc, err.code ? &err : NULL);
	shard_answer(s, op);
}

/* S8. Only its own claims make a flow fuller, and it has one at a time. */
static void
limit_rows(const struct shard *s, struct op *op)
{
	const uint32_t room = op->verb == OP_CLAIM ? flow_room(&s->flows, op) : UINT32_MAX;

	op->stalled = room == 0;
	if (room > 0 && room < op->max_rows)
		op->max_rows = room;
}

static void
add_turns(struct shard *s, struct batch *b)
{
	struct op *op;

	while ((op = turns_first(&s->turns)) != NULL && batch_has_room(b, op)) {
		turns_take(&s->turns);
		limit_rows(s, op);
		if (goes_into_line(s, op)) {
			b->cost += op->cost;
			put_into_line(s, op);
		} else {
			batch_add(b, op);
		}
	}
}

/* Those who waited go first. */
static void
add_joined(struct shard *s, struct batch *b)
{
	struct op *last;
	struct op *first = dispatch_join(&s->dispatch, SHARD_BATCH_OPS, &last);

	if (!first)
		return;
	for (const struct op *op = first; op != last; op = op->next)
		b->n++;
	b->n++;
	last->next = b->first;
	b->first = first;
	if (!b->last)
		b->last = last;
}

/* The links of a list turned around. */
static struct op *
reversed(struct op *op)
{
	struct op *done = NULL;

	while (op) {
		struct op *next = op->next;

		op->next = done;
		done = op;
		op = next;
	}
	return done;
}

/* S2: nothing falls due before an op that arrived earlier and runs later. Claims that
 * wait hold up nothing. */
static struct op *
set_before(struct op *first, slu_time limit)
{
	struct op *op = reversed(first);

	EACH_OP(o, op)
	{
		const slu_time arrived = o->waiter == SLAB_NONE ? o->arrived : limit;

		limit = arrived < limit ? arrived : limit;
		o->before = limit;
	}
	return reversed(op);
}

/* ---- Answering ---- */

static void
count_items(struct shard *s, const struct op *op)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < op->n_items; i++)
		n += op->items[i].rc == 0 && !op->items[i].taken;
	if (op->verb == OP_ACK)
		shard_count(s, SHARD_ACKED, n);
	else if (op->verb == OP_NACK)
		shard_count(s, SHARD_NACKED, n);
	else if (op->verb == OP_DELETE)
		shard_count(s, SHARD_DELETED, n);
}

static void
count_op(struct shard *s, const struct op *op)
{
	uint64_t n = 0;

	if (op->rc)
		return;
	if (op->verb == OP_CLAIM)
		shard_count(s, SHARD_DELIVERED, op->n_rows);
	if (op->verb == OP_CLAIM && op->n_rows)
		meter_time(&s->meter, METER_CLAIM_WAIT, s->now - op->arrived);
	for (uint32_t i = 0; op->verb == OP_RETURN && i < op->n_rows; i++)
		n += op->rows[i].state == MSG_READY;
	shard_count(s, SHARD_RETURNED, n);
	n = 0;
	for (uint32_t i = 0; op->verb == OP_ENQUEUE && i < op->n_puts; i++)
		n += !op->puts[i].existed;
	shard_count(s, SHARD_ACCEPTED, n);
	count_items(s, op);
}

/* The page after the last of this shard is the first of the next. */
static void
span_cursor(const struct shard *s, struct op *op)
{
	if (!op->spans)
		return;
	if (op->cursor)
		op->cursor |= (uint64_t)s->index << BROKER_CURSOR_BITS;
	else if (s->index + 1 < atomic_load(s->shards))
		op->cursor = ((uint64_t)s->index + 1) << BROKER_CURSOR_BITS;
}

/* Whoever waits for the result of what is gone. */
static void
tell_gone(struct shard *s, const struct op *op)
{
	if ((op->verb == OP_PURGE || op->verb == OP_MOVE || op->verb == OP_FORGET) && op->rc == 0)
		dispatch_gone_all(&s->dispatch);
	if (op->verb != OP_ACK && op->verb != OP_DELETE)
		return;
	for (uint32_t i = 0; i < op->n_items; i++)
		if (op->items[i].rc == 0)
			dispatch_gone(&s->dispatch, op->items[i].id);
}

/* An op that found nothing and may wait; all but results are in line already. */
static bool
still_waits(struct shard *s, struct op *op)
{
	struct slu_err err;

	if (op->elsewhere[0] && s->relays)
		return false; /* it waits where the queue lives */
	if (op->verb == OP_ACQUIRE)
		return op->rc && op->lock.why == LOCK_HELD && op->waiter != SLAB_NONE;
	if (op->verb == OP_WATCH)
		return op->rc == SLU_ETIMEOUT && op->waiter != SLAB_NONE;
	if (op->verb == OP_CLAIM || op->verb == OP_PEEK)
		return op->rc == 0 && op->n_rows == 0 && op->waiter != SLAB_NONE;
	if (op->verb != OP_RESULT || op->rc != SLU_ETIMEOUT || s->closed || op->wait == 0)
		return false;
	if (check_waits(s, op, &err)) {
		op_fail(op, SLU_EBUSY, &err);
		return false;
	}
	return dispatch_park(&s->dispatch, op, false) == 0;
}

/* S10. A queue that lives elsewhere is asked there, at once. */
static bool
steps_back(struct shard *s, struct op *op)
{
	if (op->verb != OP_CLAIM || op->rc || op->n_rows || !op->passed)
		return false;
	if (s->closed || s->draining || (op->elsewhere[0] && s->relays))
		return false;
	dispatch_leave(&s->dispatch, op);
	dispatch_ready(&s->dispatch, op->space, op->queue, op->passed);
	shard_put_off(s, op, op->again);
	return true;
}

/* What a claim or acquire could not take is for the next in line. */
static void
leave_line(struct shard *s, struct op *op)
{
	const bool was_waiting = op->waiter != SLAB_NONE;

	dispatch_leave(&s->dispatch, op);
	if (was_waiting && op->verb == OP_CLAIM && op->rc)
		dispatch_ready(&s->dispatch, op->space, op->queue, 1);
	else if (was_waiting && op->verb == OP_ACQUIRE && op->rc)
		dispatch_freed(&s->dispatch, op->space, op->lock.key);
}

/* Verbs that may change what stands at the head of a queue, though nothing becomes ready. */
static const bool moves_head[OP_VERBS] = {
	[OP_CLAIM] = true,
	[OP_DELETE] = true,
	[OP_PURGE] = true,
	[OP_PAUSE] = true,
	[OP_POLICY_SET] = true,
	[OP_FORGET] = true,
};

/* A message that was granted has no other lease: in a shared store the end of the lease before
 * may not have been reported yet. */
static void
count_leases(struct shard *s, const struct op *op)
{
	for (uint32_t i = 0; s->flows.by_time && i < op->n_rows; i++)
		shard_make_room(s, flow_settle(&s->flows, op->rows[i].id, 0));
	flow_grant(&s->flows, op, s->now);
}

static void
answer_one(struct shard *s, struct op *op)
{
	if (moves_head[op->verb] && op->rc == 0)
		dispatch_moved(&s->dispatch, op->space, op->queue);
	if (op->verb == OP_MOVE && op->move.step != MOVE_LOOK && op->rc == 0)
		dispatch_ready(&s->dispatch, op->space, op->queue, UINT32_MAX);
	if (op->verb == OP_STATS)
		op->count = dispatch_waiting(&s->dispatch, op);
	if (op->verb == OP_CLAIM)
		count_leases(s, op);
	leave_line(s, op);
	meter_op(&s->meter, op->verb, s->took);
	count_op(s, op);
	span_cursor(s, op);
	shard_answer(s, op);
}

/* S8 */
static void
readmit(struct shard *s)
{
	struct op *next;

	for (struct op *op = s->roomy; op; op = next) {
		int rc;

		next = op->next;
		op->arrived = s->now;
		rc = s->failed ? SLU_EDOWN : turns_add(&s->turns, op);
		if (!rc)
			continue;
		op_fail(op, rc, NULL);
		op->n_rows = 0;
		shard_answer(s, op);
	}
	s->roomy = NULL;
}

static void
answer_all(struct shard *s, struct op *batch)
{
	struct op *next, *answers = NULL;
	struct op **tail = &answers;

	for (struct op *op = batch; op; op = next) {
		next = op->next;
		if (steps_back(s, op) || still_waits(s, op))
			continue;
		*tail = op;
		tail = &op->next;
	}
	*tail = NULL;
	EACH_OP(op, answers)
	tell_gone(s, op);
	for (struct op *op = answers; op; op = next) {
		next = op->next;
		answer_one(s, op);
	}
}

/* ---- Failing (S4) ---- */

static void
fail_op(struct shard *s, struct op *op, int rc, const struct slu_err *err)
{
	op_unpin(op);
	op->n_rows = 0;
	op->n_keys = 0;
	op_fail(op, rc, err);
	dispatch_leave(&s->dispatch, op);
	shard_answer(s, op);
}

static void
fail_all(struct shard *s, struct op *batch, int rc, const struct slu_err *err)
{
	struct op *op, *next;

	s->why = *err;
	s->failed = rc;
	log_error(s->log, "shard failed", F_U64("shard", s->index), F_STR("why", err->text));
	for (op = batch; op; op = next) {
		next = op->next;
		fail_op(s, op, rc, err);
	}
	while ((op = turns_take(&s->turns)) != NULL)
		fail_op(s, op, SLU_EDOWN, NULL);
}

/* ---- Running ---- */

/* Leases of streams that ended unreported. */
static void
expire_flows(struct shard *s)
{
	uint64_t flow;

	while ((flow = flow_expire(&s->flows, s->now)) != 0)
		shard_make_room(s, flow);
	readmit(s);
}

void
shard_run(struct shard *s)
{
	struct slu_err err = { 0 };
	struct batch b = { 0 };
	slu_time due, began;
	int rc;

	expire_flows(s);
	add_turns(s, &b);
	add_joined(s, &b);
	due = turns_oldest(&s->turns);
	due = due < s->now ? due : s->now;
	if (!b.first && s->engine->ops->next_due(s->engine) > due)
		return;
	s->crowded = b.first != b.last;
	b.first = set_before(b.first, due);
	shard_count(s, SHARD_BATCHES, 1);
	if (b.n)
		meter_time(&s->meter, METER_BATCH, b.n);
	began = clock_mono(s->clock);
	rc = s->engine->ops->run(s->engine, b.first, due, s->now, &err);
	s->took = clock_mono(s->clock) - began;
	if (rc)
		fail_all(s, b.first, rc, &err);
	else
		answer_all(s, b.first);
	if (s->deaths)
		dispatch_moved(&s->dispatch, (struct slice){ 0 }, (struct slice){ 0 });
	s->deaths = false;
	readmit(s);
}
