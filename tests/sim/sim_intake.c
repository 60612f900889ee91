/*
 * sim_intake.c - batches from outside: OP_INTAKE.
 */
#include "sim_world.h"

#include <inttypes.h>

/* The messages come in a batch: a new one, or one that its shard may have accepted before. */
void
world_make_batch(struct sim_world *w, struct sim_call *c)
{
	for (unsigned i = 0; i < c->op.n_puts; i++) {
		c->puts[i].m.space = c->op.space;
		c->puts[i].m.queue = c->op.queue;
	}
	c->op.verb = OP_INTAKE;
	c->op.cursor = (uint64_t)broker_lane_of(w->broker, NULL, c->op.space, c->op.queue) << BROKER_CURSOR_BITS;
	c->op.queue = (struct slice){ 0 };
	c->op.intake = (struct op_intake){ .source = { 1 } }; /* world_start has made another verb */
	c->op.intake.batch = w->batches > 0 && world_chance(w, 30) ? 1 + world_dice(w, w->batches) : ++w->batches;
	c->taken = w->taken[w->model.queues[c->queue].shard];
}

/* A batch that its shard had accepted when it was sent is never accepted again. */
void
world_end_intake(struct sim_world *w, struct sim_call *c, slu_time now)
{
	const struct op_intake *q = &c->op.intake;

	if (!c->op.rc && !q->known && q->batch <= c->taken)
		world_fail(w, "I2: batch %" PRIu64 " was accepted after batch %" PRIu64, q->batch, c->taken);
	if (!c->op.rc && q->known && q->batch > q->last)
		world_fail(w, "batch %" PRIu64 " is known, and the last is %" PRIu64, q->batch, q->last);
	if (!c->op.rc && q->known)
		return;
	world_end_enqueue(w, c, now);
	if (c->op.rc)
		return;
	if (q->batch > w->taken[w->model.queues[c->queue].shard])
		w->taken[w->model.queues[c->queue].shard] = q->batch;
	world_shard(w, c->queue)->synced = true;
}
