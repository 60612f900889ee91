/*
 * copy.c - copies a queue from shard to shard, in a thread that waits for each step.
 */
#include "broker/move/copy_private.h"

#include "base/mem.h"
#include "broker/broker_private.h"

enum {
	PAGE_QUEUES = 100
};

/* ---- A queue ---- */

static int
dead_of(const struct movecopy *mv, uint64_t *out, struct slu_err *err)
{
	struct op_queue queue = { 0 };
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_STATS);
	w.op.queues = &queue;
	w.op.max_queues = 1;
	rc = movewait_at(&w, mv->b, mv->from_lane, err);
	movewait_release(&w);
	*out = rc == 0 && w.op.n_queues ? queue.count[MSG_DEAD] : 0;
	return rc == SLU_ENOTFOUND ? 0 : rc;
}

static int
tell(struct movecopy *mv, struct move_report *out, struct slu_err *err)
{
	int rc = movecopy_look(mv, err);

	if (!rc)
		rc = dead_of(mv, &out->dead, err);
	if (rc)
		return rc;
	out->epoch = mv->here.epoch;
	out->by_hand = !movecopy_is_mapped(mv);
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
move_all(struct movecopy *mv, const struct move_request *ask, struct move_report *out,
	 struct slu_err *err)
{
	bool more = true;
	int rc = movecopy_finish_both(mv, out, err);

	if (!rc)
		rc = movecopy_set_marks(mv, err);
	if (!rc)
		rc = movecopy_holds(mv, err);
	if (!rc)
		rc = movecopy_finish(mv->b, mv->space, mv->queue, mv->to_lane, err); /* a batch of an earlier move */
	while (!rc && more) {
		rc = movecopy_carry_batch(mv, ask, out, &more, err);
		if (clock_boot(mv->b->clock) >= mv->until)
			break;
	}
	return rc ? rc : movecopy_holds(mv, err);
}

int
movecopy_move(struct broker *b, const struct move_request *asked, struct move_report *out,
	      struct slu_err *err)
{
	struct move_request ask = *asked;
	struct movecopy mv = {
		.b = b,
		.space = ask.space,
		.queue = ask.queue,
		.from_lane = broker_lane_on(b, ask.from, ask.space, ask.queue),
		.to_lane = broker_lane_on(b, ask.to, ask.space, ask.queue),
		.until = clock_boot(b->clock) + ask.budget,
	};
	struct slu_err ignored;
	int rc;

	*out = (struct move_report){ 0 };
	if (mv.from_lane == UINT32_MAX || mv.to_lane == UINT32_MAX)
		return slu_fail(err, SLU_ENOTFOUND, "unknown shard: %s",
				mv.from_lane == UINT32_MAX ? ask.from : ask.to);
	if (mv.from_lane == mv.to_lane)
		return slu_fail(err, SLU_EINVAL, "invalid move from %s to %s; expected two shards", ask.from, ask.to);
	mv.from = broker_mark_name(b, mv.from_lane);
	mv.to = broker_mark_name(b, mv.to_lane);
	if (ask.batch == 0)
		ask.batch = MOVECOPY_BATCH;
	if (ask.dry)
		return tell(&mv, out, err);
	rc = move_all(&mv, &ask, out, err);
	if (rc)
		(void)tell(&mv, out, &ignored); /* the first failure says more */
	else
		rc = tell(&mv, out, err);
	return rc || !out->done ? rc : movecopy_lift(&mv, mv.here.counter, err);
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
	const struct movecopy mv = { .b = b, .queue = queue };
	struct op_queue *const room = mem_array(PAGE_QUEUES, sizeof *room);
	uint64_t cursor = (uint64_t)lane << BROKER_CURSOR_BITS;
	int rc = room ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for a page of queues");

	while (!rc) {
		struct movewait w;

		movewait_init(&w, &mv, OP_QUEUES);
		w.op.cursor = cursor;
		w.op.route.local = true;
		w.op.queues = room;
		w.op.max_queues = PAGE_QUEUES;
		rc = movewait_for(&w, broker_post(b, &w.op), err);
		cursor = w.op.cursor;
		movewait_release(&w);
		if (!rc)
			rc = each_of_page(&w.op, each, arg);
		if (cursor >> BROKER_CURSOR_BITS != lane || (cursor & 0xffffffffffff) == 0)
			break;
	}
	mem_free(room);
	return rc;
}

int
movecopy_spaces(struct broker *b, const char *shard, struct slice queue,
		int (*each)(void *arg, struct slice space), void *arg, struct slu_err *err)
{
	const uint32_t lanes = broker_lanes(b);
	int rc = 0;

	for (uint32_t i = 0; !rc && i < lanes; i++)
		if (strcmp(broker_shard_name(b, i), shard) == 0)
			rc = each_of_lane(b, i, queue, each, arg, err);
	return rc;
}
