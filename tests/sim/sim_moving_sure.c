/*
 * sim_moving_sure.c - what is sure of a message that may be on any shard, and what is unknown.
 */
#include "sim_moving.h"

/* ---- What is sure ---- */

slu_time
world_latest(struct sim_world *w)
{
	slu_time t = 0;

	for (unsigned i = 0; i < w->n_shards; i++)
		t = world_lane_now(w, i) > t ? world_lane_now(w, i) : t;
	return t;
}

slu_time
world_earliest(struct sim_world *w)
{
	return world_latest(w) - w->skew;
}

/* Is an op on its way that may settle it? One that asks several shards may have done so
 * long before it is answered. */
bool
world_is_settling(struct sim_world *w, const struct sim_msg *x, bool note)
{
	bool found = false;

	EACH(i, w->calls) {
		struct sim_call *c = &w->calls[i];
		const bool purge = (c->op.verb == OP_PURGE || c->op.verb == OP_FORGET) &&
				   c->queue == x->queue;

		if (c->state != CALL_POSTED || c->returning)
			continue;
		found |= purge;
		for (unsigned k = 0; k < c->op.n_items; k++)
			if (c->items[k].id == x->id) {
				found = true;
				c->early[k] |= note;
			}
	}
	return found;
}

bool
world_is_sure(struct sim_world *w, const struct sim_msg *x)
{
	return !(x->doubt & (DOUBT_IN | DOUBT_OUT | DOUBT_STATE)) && !world_is_settling(w, x, false);
}

bool
world_is_lease_over(struct sim_world *w, const struct sim_msg *x)
{
	return x->state == M_LEASED && x->until <= world_lane_now(w, x->lane);
}

/* Somebody has it for sure. */
bool
world_is_held(struct sim_world *w, const struct sim_msg *x)
{
	return world_is_sure(w, x) && x->state == M_LEASED && !x->weak && !world_is_lease_over(w, x);
}

bool
world_may_be_dead(struct sim_world *w, const struct sim_msg *x)
{
	const unsigned most = x->max_attempts ? x->max_attempts
					      : w->model.queues[x->queue].least_attempts;

	return x->state == M_DEAD || x->expires <= world_latest(w) || !world_is_sure(w, x) ||
	       x->failures + world_is_lease_over(w, x) >= most;
}

/* ---- On their way ---- */

/* Is a claim on its way? It may have been granted something just before, and not be answered. */
bool
world_is_claiming(const struct sim_world *w, unsigned queue)
{
	bool found = false;

	EACH(i, w->calls) {
		const struct sim_call *c = &w->calls[i];

		found |= c->state == CALL_POSTED && c->queue == queue && c->op.verb == OP_CLAIM;
	}
	return found;
}

/* Is another op on its way that sets it? */
bool
world_is_setting(const struct sim_world *w, unsigned queue)
{
	bool found = false;

	EACH(i, w->calls) {
		const struct sim_call *c = &w->calls[i];

		found |= c->state == CALL_POSTED && c->queue == queue &&
			 (c->op.verb == OP_POLICY_SET || c->op.verb == OP_PAUSE || c->op.verb == OP_FORGET);
	}
	return found;
}

static bool
only_looks(enum op_verb verb)
{
	return verb == OP_GET || verb == OP_PEEK || verb == OP_RESULT || verb == OP_STATS;
}

/* Calls of the disk fail, and what needs one is refused: nothing has happened. Who looks is told
 * of a full disk when there is no room for the marks of a new map. */
bool
world_cannot(struct sim_world *w, const struct sim_call *c, int rc)
{
	if (rc == SLU_EFULL && only_looks(c->op.verb) && c->limited)
		return true;
	if (rc == SLU_EFULL)
		return w->failing || w->tight || c->failing || c->tight || w->disk->dead;
	return (rc == SLU_EDOWN || rc == SLU_EUNKNOWN) && world_is_down(w, c->queue);
}

/* ---- Doubts ---- */

void
world_doubt_item(struct sim_world *w, const struct sim_call *c, const struct op_item *it)
{
	struct sim_msg *x = model_find(&w->model, it->id);

	if (!x || x->queue != c->queue)
		return;
	x->doubt |= c->op.verb == OP_ACK || c->op.verb == OP_DELETE ? DOUBT_OUT : DOUBT_STATE;
	x->vague_state |= c->op.verb == OP_NACK;
	x->redriven |= c->op.verb == OP_REDRIVE;
	if (c->op.verb == OP_ACK && x->keep)
		model_add_result(&w->model, &(struct sim_kept){
						    .id = x->id,
						    .queue = x->queue,
						    .doubt = true,
						    .text = it->text.n > 0,
					    });
}

void
world_doubt_queue(struct sim_world *w, unsigned queue, unsigned doubt)
{
	EACH_MSG(x, &w->model)
	if (x->queue == queue)
		x->doubt |= doubt;
}

/* Nobody knows what became of it. */
void
world_doubt_call(struct sim_world *w, struct sim_call *c)
{
	for (unsigned i = 0; i < c->op.n_items; i++)
		world_doubt_item(w, c, &c->items[i]);
	if (c->op.verb == OP_ENQUEUE)
		for (unsigned i = 0; i < c->op.n_puts; i++)
			if (c->facts[i].idem >= 0)
				w->model.idems[c->queue][c->facts[i].idem].doubt = true;
	if (c->op.verb == OP_CLAIM || c->op.verb == OP_RETURN)
		world_doubt_queue(w, c->queue, DOUBT_STATE);
	if (c->op.verb == OP_PURGE)
		world_doubt_queue(w, c->queue, DOUBT_OUT);
	if (c->op.verb == OP_POLICY_SET || c->op.verb == OP_PAUSE)
		w->model.queues[c->queue].doubt = true;
	if (c->op.verb == OP_FORGET)
		world_doubt_forget(w, c);
	if (c->op.verb >= OP_ACQUIRE)
		world_doubt_lock(w, c);
}
