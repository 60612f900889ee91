/*
 * lane_run.c - forms a batch, runs it, answers it. lane_commit.c has what happens in between.
 */
#include "broker/lane_private.h"

#include "base/limit.h"
#include "broker/outbox.h"

/* A batch while it is formed. */
struct batch {
	struct op *first;
	struct op *last;
	uint64_t cost;
	uint64_t bytes;
	uint64_t max_cost;  /* LANE-1 */
	uint64_t max_bytes; /* LANE-1 */
	uint32_t n;         /* ops */
};

static void
batch_add(struct batch *b, struct op *op)
{
	op->route.next = NULL;
	if (b->last)
		b->last->route.next = op;
	else
		b->first = op;
	b->last = op;
	b->cost += op->route.cost;
	b->bytes += op->route.bytes;
	b->n++;
}

/* LANE-1 */
static bool
batch_has_room(const struct batch *b, const struct op *op)
{
	return !b->first || (b->cost + op->route.cost <= b->max_cost &&
			     b->bytes + op->route.bytes <= b->max_bytes);
}

/* ---- Forming ---- */

/* LANE-8. Only claims of a stream use its credit, and a stream has one claim at a time. */
static void
limit_rows(const struct lane *s, struct op *op)
{
	const uint32_t room = op->verb == OP_CLAIM ? credit_room(&s->credits, op) : UINT32_MAX;

	op->route.stalled = room == 0;
	if (room > 0 && room < op->max_rows)
		op->max_rows = room;
}

static void
add_fairqueue(struct lane *s, struct batch *b)
{
	struct op *op;

	while ((op = fairqueue_first(&s->fairqueue)) != NULL && batch_has_room(b, op)) {
		const uint64_t cost = op->route.cost; /* an op that is parked may be answered at once */

		fairqueue_take(&s->fairqueue);
		limit_rows(s, op);
		if (lane_parks(s, op))
			b->cost += cost;
		else
			batch_add(b, op);
	}
}

/* Ops that waited go first. */
static void
add_joined(struct lane *s, struct batch *b)
{
	struct op *last;
	struct op *first = dispatch_join(&s->dispatch, (uint32_t)b->max_cost, &last);

	if (!first)
		return;
	for (const struct op *op = first; op != last; op = op->route.next)
		b->n++;
	b->n++;
	last->route.next = b->first;
	b->first = first;
	if (!b->last)
		b->last = last;
}

/* Reverses a list. */
static struct op *
reversed(struct op *op)
{
	struct op *done = NULL;

	while (op) {
		struct op *next = op->route.next;

		op->route.next = done;
		done = op;
		op = next;
	}
	return done;
}

/* LANE-2: nothing falls due before an op that arrived earlier and runs later. Ops that waited delay
 * nothing. */
static struct op *
set_before(struct op *first, slu_time limit)
{
	struct op *op = reversed(first);

	EACH_OP(o, op)
	{
		const slu_time arrived = o->route.waiter == SLAB_NONE ? o->route.arrived : limit;

		limit = arrived < limit ? arrived : limit;
		o->route.before = limit;
	}
	return reversed(op);
}

/* ---- Answering ---- */

/* The page behind the last of this lane is the first of the next lane. */
void
lane_span_cursor(const struct lane *s, struct op *op)
{
	if (!op->route.spans)
		return;
	if (op->cursor)
		op->cursor |= (uint64_t)s->index << BROKER_CURSOR_BITS;
	else if (s->index + 1 < atomic_load(s->lanes))
		op->cursor = ((uint64_t)s->index + 1) << BROKER_CURSOR_BITS;
}

/* Wakes the waits for results of messages that are gone. */
static void
tell_gone(struct lane *s, const struct op *op)
{
	if (!op_is(op->verb, OP_ENDS))
		return;
	if (op->n_items == 0 && op->rc == 0 && op->verb != OP_FINISH)
		dispatch_gone_all(&s->dispatch);
	for (uint32_t i = 0; i < op->n_items; i++)
		if (op->items[i].rc == 0)
			dispatch_gone(&s->dispatch, op->items[i].id);
}

/* Wakes the ops that wait for what the op has changed. */
static void
wake_others(struct lane *s, const struct op *op)
{
	tell_gone(s, op);
	if (op_is(op->verb, OP_SHIFTS_HEAD) && op->rc == 0)
		dispatch_head_changed(&s->dispatch, op->space, op->queue);
}

/* LANE-10 */
static bool
steps_back(struct lane *s, struct op *op)
{
	if (op->verb != OP_CLAIM || op->rc || op->n_rows || !op->claim.passed)
		return false;
	if (s->closed || s->draining)
		return false;
	dispatch_leave(&s->dispatch, op);
	dispatch_ready(&s->dispatch, op->space, op->queue, op->claim.passed);
	lane_put_off(s, op, op->claim.again);
	return true;
}

/* LANE-21 */
static bool
goes_on(struct lane *s, struct op *op)
{
	if (!op_is_begun(op) || op->rc)
		return false;
	if (s->closed || s->draining) {
		op_fail(op, SLU_EUNKNOWN, NULL);
		return false;
	}
	lane_put_off(s, op, s->now);
	return true;
}

/* ---- After a verb ---- */

typedef void after_fn(struct lane *s, struct op *op);

static void
after_enqueue(struct lane *s, struct op *op)
{
	uint64_t n = 0;

	for (uint32_t i = 0; !op->rc && i < op->n_puts; i++)
		n += !op->puts[i].existed && !op->puts[i].pending;
	lane_count(s, LANE_ACCEPTED, n);
}

static void
after_intake(struct lane *s, struct op *op)
{
	if (!op->intake.known)
		after_enqueue(s, op);
}

/* A message that was granted has no other lease: a shared store may not have reported the end of the
 * lease before. */
static void
after_claim(struct lane *s, struct op *op)
{
	for (uint32_t i = 0; s->credits.by_time && i < op->n_rows; i++)
		lane_make_room(s, credit_settle(&s->credits, op->rows[i].id, 0));
	credit_grant(&s->credits, op, s->now);
	if (op->rc || !op->n_rows)
		return;
	lane_count(s, LANE_DELIVERED, op->n_rows);
	meter_time(&s->meter, METER_CLAIM_WAIT, s->now - op->route.arrived);
}

static void
after_return(struct lane *s, struct op *op)
{
	uint64_t n = 0;

	for (uint32_t i = 0; !op->rc && i < op->n_rows; i++)
		n += op->rows[i].state == MSG_READY;
	lane_count(s, LANE_RETURNED, n);
}

static uint64_t
items_done(const struct op *op)
{
	uint64_t n = 0;

	for (uint32_t i = 0; !op->rc && i < op->n_items; i++)
		n += op->items[i].rc == 0 && !op->items[i].taken;
	return n;
}

static void
after_ack(struct lane *s, struct op *op)
{
	lane_count(s, LANE_ACKED, items_done(op));
}

static void
after_nack(struct lane *s, struct op *op)
{
	lane_count(s, LANE_NACKED, items_done(op));
}

static void
after_finish(struct lane *s, struct op *op)
{
	after_enqueue(s, op);
	if (op->n_items && !op->items->remove)
		lane_count(s, op->items->nack ? LANE_NACKED : LANE_ACKED, op->rc == 0);
}

/* The message that was replaced is gone. */
static void
after_schedule(struct lane *s, struct op *op)
{
	after_enqueue(s, op);
	lane_count(s, LANE_DELETED, op->rc == 0 && op->items->number != 0);
	if (op->rc == 0)
		lane_notice(s, op->queue);
}

static void
after_delete(struct lane *s, struct op *op)
{
	if (!outbox_is(op->space))
		lane_count(s, LANE_DELETED, items_done(op));
}

static void
after_stats(struct lane *s, struct op *op)
{
	op->count = dispatch_waiting(&s->dispatch, op);
}

/* The claims that wait and take a message of this kind. */
static uint64_t
waiting_for_kind(const struct lane *s, struct slice space, struct slice queue, struct slice kind)
{
	char line[1 + KIND_MAX] = { KIND_MARK };

	if (!kind.n || kind.n > KIND_MAX)
		return dispatch_takers(&s->dispatch, space, queue, (struct slice){ 0 });
	memcpy(line + 1, kind.p, kind.n);
	return dispatch_takers(&s->dispatch, space, queue, (struct slice){ line, 1 + kind.n });
}

static void
after_limits(struct lane *s, struct op *op)
{
	for (uint32_t i = 0; !op->rc && op->limits.by_kind && i < op->n_uses; i++)
		op->uses[i].waiting = dispatch_takers(&s->dispatch, op->space, op->queue, slice_of(op->uses[i].name));
}

/* The op may have asked without the name of the queue. */
static void
after_why(struct lane *s, struct op *op)
{
	if (op->rc || !op->n_queues)
		return;
	op->count = waiting_for_kind(s, op->space, slice_of(op->queues->name), slice_of(op->kind));
	if (op->count == 0 && op->rows->state == MSG_READY)
		why_add(&op->why, &(struct why_fact){ .why = WHY_NO_CONSUMER });
}

static void
after_describe(struct lane *s, struct op *op)
{
	op->count = dispatch_waiting_for_key(&s->dispatch, op->space, op->lock.key);
}

/* What the broker does after some verbs. */
static after_fn *const after[OP_VERBS] = {
	[OP_ENQUEUE] = after_enqueue,
	[OP_INTAKE] = after_intake,
	[OP_CLAIM] = after_claim,
	[OP_RETURN] = after_return,
	[OP_ACK] = after_ack,
	[OP_NACK] = after_nack,
	[OP_FINISH] = after_finish,
	[OP_SCHEDULE] = after_schedule,
	[OP_DELETE] = after_delete,
	[OP_STATS] = after_stats,
	[OP_WHY] = after_why,
	[OP_LIMITS] = after_limits,
	[OP_DESCRIBE] = after_describe,
};

static void
answer_one(struct lane *s, struct op *op)
{
	if (after[op->verb])
		after[op->verb](s, op);
	meter_op(&s->meter, op->verb, s->took);
	lane_span_cursor(s, op);
	if (!outbox_holds(s->outbox, op, s->now))
		lane_answer(s, op);
}

/* LANE-8 */
static void
readmit(struct lane *s)
{
	struct op *next;

	for (struct op *op = s->resumed; op; op = next) {
		int rc;

		next = op->route.next;
		op->route.arrived = s->now;
		rc = s->failed ? (int)s->down.code : fairqueue_add(&s->fairqueue, op);
		if (!rc)
			continue;
		op_fail(op, rc, s->failed ? &s->down : NULL);
		op->n_rows = 0;
		lane_answer(s, op);
	}
	s->resumed = NULL;
}

/* LANE-11 */
static void
end_lapsed(struct lane *s)
{
	struct op *op;

	while ((op = dispatch_lapsed(&s->dispatch)) != NULL)
		lane_end_wait(s, op, 0);
}

/* Returns the ops of the batch that have their answer, by route.next. The others wait, or run again
 * later. */
static struct op *
take_answers(struct lane *s, struct op *batch)
{
	struct op *next, *answers = NULL;
	struct op **tail = &answers;

	for (struct op *op = batch; op; op = next) {
		next = op->route.next;
		if (!op_is_elsewhere(op) && (steps_back(s, op) || goes_on(s, op) || lane_still_waits(s, op)))
			continue;
		op->route.open = true;
		*tail = op;
		tail = &op->route.next;
	}
	*tail = NULL;
	EACH_OP(op, answers)
	{
		wake_others(s, op);
		lane_unpark(s, op);
	}
	return answers;
}

static void
answer_all(struct lane *s)
{
	struct op *next;

	for (struct op *op = s->batch; op; op = next) {
		next = op->route.next;
		s->answered++;
		answer_one(s, op);
	}
}

/* ---- Failing (LANE-4) ---- */

void
lane_fail_op(struct lane *s, struct op *op, int rc, const struct slu_err *err)
{
	op_unpin(op);
	op->n_rows = 0;
	op->n_keys = 0;
	op_fail(op, rc, err);
	lane_answer(s, op);
}

void
lane_fail_queued(struct lane *s)
{
	struct op *op;

	while ((op = fairqueue_take(&s->fairqueue)) != NULL)
		lane_fail_op(s, op, (int)s->down.code, &s->down);
}

static void
fail_all(struct lane *s, int rc, const struct slu_err *err)
{
	struct op *op, *next;

	lane_fail_engine(s, rc, err);
	for (op = s->batch; op; op = next) {
		next = op->route.next;
		dispatch_leave(&s->dispatch, op);
		lane_fail_op(s, op, rc, err);
	}
	lane_fail_queued(s);
}

/* ---- Running ---- */

/* Ends leases of streams whose end was not reported. */
static void
expire_credits(struct lane *s)
{
	uint64_t stream;

	while ((stream = credit_expire(&s->credits, s->now)) != 0)
		dispatch_lapse(&s->dispatch, stream);
	end_lapsed(s);
}

/* Wakes the ops to which the run has given something. */
static void
wake(struct lane *s)
{
	if (s->deaths)
		dispatch_head_changed(&s->dispatch, (struct slice){ 0 }, (struct slice){ 0 });
	s->deaths = false;
	end_lapsed(s);
	readmit(s);
}

void
lane_end_batch(struct lane *s, int rc, const struct slu_err *err)
{
	s->took = clock_mono(s->clock) - s->began;
	s->open = false;
	s->answered = 0;
	if (rc)
		fail_all(s, rc, err);
	else
		answer_all(s);
	s->batch = NULL;
	readmit(s);
}

/* Forms a batch. Returns false if there is nothing to run. */
static bool
form(struct lane *s, struct batch *b, slu_time *due)
{
	expire_credits(s);
	add_fairqueue(s, b);
	add_joined(s, b);
	*due = fairqueue_oldest(&s->fairqueue);
	*due = *due < s->now ? *due : s->now;
	if (!b->first && s->engine->ops->next_due(s->engine) > *due)
		return false;
	s->crowded = b->first != b->last;
	b->first = set_before(b->first, *due);
	lane_count(s, LANE_BATCHES, 1);
	if (b->n)
		meter_time(&s->meter, METER_BATCH, b->n);
	return true;
}

/* Runs the next batch. */
static void
run_next(struct lane *s)
{
	struct slu_err err;
	const bool far = s->late && s->took > LANE_FAR;
	struct batch b = {
		.max_cost = far ? LANE_FAR_OPS : LANE_BATCH_OPS,
		.max_bytes = far ? LANE_FAR_BYTES : LANE_BATCH_BYTES,
	};
	slu_time due;
	int rc;

	no_err(&err);
	if (!form(s, &b, &due))
		return;
	s->ran = s->now;
	s->began = clock_mono(s->clock);
	rc = s->engine->ops->run(s->engine, b.first, due, s->now, &err);
	s->open = rc == ENGINE_LATER;
	s->late = false;
	s->batch = b.first;
	if (!rc || s->open) {
		s->batch = take_answers(s, b.first);
		wake(s);
	}
	if (!s->open)
		lane_end_batch(s, rc, &err);
}

void
lane_run(struct lane *s)
{
	if (!s->open && !lane_gathers(s))
		run_next(s);
	if (s->open)
		lane_commit(s);
}
