/*
 * mover.c - a queue is carried from shard to shard, by a thread that waits for each step.
 */
#include "broker/mover_in.h"

#include "base/mem.h"
#include "broker/broker_in.h"

enum {
	PAGE_QUEUES = 100
};

/* ---- A queue ---- */

static int
dead_of(const struct move *mv, uint64_t *out, struct slu_err *err)
{
	struct op_queue queue = { 0 };
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_STATS);
	w.op.queues = &queue;
	w.op.max_queues = 1;
	rc = wait_at(&w, mv->b, mv->from_lane, err);
	wait_release(&w);
	*out = rc == 0 && w.op.n_queues ? queue.count[MSG_DEAD] : 0;
	return rc == SLU_ENOTFOUND ? 0 : rc;
}

static int
tell(struct move *mv, struct move_told *out, struct slu_err *err)
{
	int rc = look(mv, err);

	if (!rc)
		rc = dead_of(mv, &out->dead, err);
	if (rc)
		return rc;
	out->epoch = mv->here.epoch;
	out->by_hand = !is_mapped(mv);
	out->left = mv->here.messages;
	out->leased = mv->here.leased;
	out->damaged = mv->here.damaged;
	out->remembered = mv->here.remembered;
	out->results = mv->here.results;
	out->there = mv->there.messages;
	out->done = mv->here.messages <= mv->here.damaged && mv->here.batch == 0 &&
		    mv->here.remembered == 0 && mv->here.results == 0 && mv->here.leased == 0;
	return 0;
}

static int
move_all(struct move *mv, const struct move_ask *ask, struct move_told *out,
	 struct slu_err *err)
{
	bool more = true;
	int rc = finish_both(mv, out, err);

	if (!rc)
		rc = set_marks(mv, err);
	if (!rc)
		rc = mover_finish(mv->b, mv->space, mv->queue, mv->to_lane, err); /* begun before */
	while (!rc && more) {
		rc = carry_batch(mv, ask, out, &more, err);
		if (clock_boot(mv->b->clock) >= mv->until)
			break;
	}
	return rc;
}

int
mover_move(struct broker *b, const struct move_ask *asked, struct move_told *out,
	   struct slu_err *err)
{
	struct move_ask ask = *asked;
	struct move mv = {
		.b = b,
		.space = ask.space,
		.queue = ask.queue,
		.from = ask.from,
		.to = ask.to,
		.from_lane = broker_lane_on(b, ask.from, ask.space, ask.queue),
		.to_lane = broker_lane_on(b, ask.to, ask.space, ask.queue),
		.until = clock_boot(b->clock) + ask.budget,
	};
	struct slu_err ignored;
	int rc;

	*out = (struct move_told){ 0 };
	if (mv.from_lane == UINT32_MAX || mv.to_lane == UINT32_MAX)
		return slu_fail(err, SLU_ENOTFOUND, "there is no shard %s",
				mv.from_lane == UINT32_MAX ? ask.from : ask.to);
	if (mv.from_lane == mv.to_lane)
		return slu_fail(err, SLU_EINVAL, "from %s to %s: that is no move", ask.from, ask.to);
	if (ask.batch == 0)
		ask.batch = MOVER_BATCH;
	if (ask.dry)
		return tell(&mv, out, err);
	rc = move_all(&mv, &ask, out, err);
	if (rc)
		(void)tell(&mv, out, &ignored); /* the first failure says more */
	else
		rc = tell(&mv, out, err);
	return rc || !out->done ? rc : lift(&mv, mv.here.counter, err);
}

/* ---- Namespaces ---- */

static int
each_of_page(const struct op *op, int (*each)(void *arg, struct slice space), void *arg)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < op->n_queues; i++)
		rc = each(arg, slice_of(op->queues[i].space));
	return rc;
}

static int
each_of_lane(struct broker *b, uint32_t lane, struct slice queue,
	     int (*each)(void *arg, struct slice space), void *arg, struct slu_err *err)
{
	const struct move mv = { .b = b, .queue = queue };
	struct op_queue *const room = mem_array(PAGE_QUEUES, sizeof *room);
	uint64_t cursor = (uint64_t)lane << BROKER_CURSOR_BITS;
	int rc = room ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for a page of queues");

	while (!rc) {
		struct wait w;

		wait_init(&w, &mv, OP_TOPICS);
		w.op.cursor = cursor;
		w.op.queues = room;
		w.op.max_queues = PAGE_QUEUES;
		rc = wait_for(&w, broker_post(b, &w.op), err);
		cursor = w.op.cursor;
		wait_release(&w);
		if (!rc)
			rc = each_of_page(&w.op, each, arg);
		if (cursor >> BROKER_CURSOR_BITS != lane || (cursor & 0xffffffffffff) == 0)
			break;
	}
	mem_free(room);
	return rc;
}

int
mover_spaces(struct broker *b, const char *shard, struct slice queue,
	     int (*each)(void *arg, struct slice space), void *arg, struct slu_err *err)
{
	const uint32_t lanes = broker_shards(b);
	int rc = 0;

	for (uint32_t i = 0; !rc && i < lanes; i++)
		if (strcmp(broker_shard_name(b, i), shard) == 0)
			rc = each_of_lane(b, i, queue, each, arg, err);
	return rc;
}
