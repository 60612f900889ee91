/*
 * sim_finish.c - a message ends and others begin in one step: OP_FINISH.
 */
#include "sim_world.h"

/* The first item ends, and messages begin: in one step. */
void
world_make_finish(struct sim_world *w, struct sim_call *c)
{
	op_make_finish(&c->op);
	c->op.n_items = 1;
	c->op.n_puts = 1 + (uint32_t)world_dice(w, WORLD_EACH);
	for (unsigned i = 0; i < c->op.n_puts; i++) {
		world_make_put(w, c, i);
		c->puts[i].m.space = c->op.space;
		c->puts[i].m.queue = c->op.queue;
	}
}

/* The puts come first, and without the lease none comes. */
void
world_end_finish(struct sim_world *w, struct sim_call *c, slu_time now)
{
	const struct op_item *it = &c->items[0];
	struct sim_msg *x;
	const int want = model_right(&w->model, c->queue, it->id, it->token, c->op.route.arrived, &x);

	if (world_is_hindered(w, c, c->op.rc))
		return;
	if (want || it->rc == SLU_ELEASE || it->rc == SLU_ENOTFOUND) {
		world_check_item(w, c, it, x, want);
		return;
	}
	world_end_enqueue(w, c, now);
	if (c->op.rc)
		return;
	world_ack_one(w, c, it, model_find(&w->model, it->id), now);
	world_shard(w, c->queue)->synced = true;
}
