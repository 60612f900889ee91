/*
 * sim_doubt.c - what may and may not have happened when an answer was lost.
 *
 * A run is kept whole or not at all, and within it ops build on each other; so a doubt
 * is what any of the ops may have done, whatever those before it did.
 */
#include "sim_world.h"

/* Has the key's message been there all the time? */
static bool
is_surely_there(struct sim_world *w, const struct sim_msg *x)
{
	if (x->doubt & DOUBT_OUT)
		return false;
	return !x->doubt || !w->model.queues[x->queue].doubt; /* dead, and too many by a new policy */
}

/* Must the key be known, whatever the run did? If its message went in the run, then after
 * the run's first moment, and from then on the key is kept for a window. But an op is judged
 * by the moment of the run, which may be long after. */
static bool
is_surely_known(struct sim_world *w, unsigned queue, const struct sim_idem *idem, slu_time now)
{
	const struct model_queue *q = &w->model.queues[queue];
	const struct world_shard *s = world_shard(w, queue);
	const struct sim_msg *x;

	if (idem->doubt || !idem->id)
		return false;
	if (!idem->live)
		return now < idem->must;
	x = model_find(&w->model, idem->id);
	if (x && is_surely_there(w, x))
		return true;
	return !q->doubt && !s->late && now < s->first + q->policy.window;
}

static void
doubt_put(struct sim_world *w, struct sim_call *c, unsigned i)
{
	const struct put_facts *f = &c->facts[i];
	const struct op_put *put = &c->puts[i];
	const slu_time now = world_now(w, c->queue);
	struct sim_idem *idem = f->idem < 0 ? NULL : &w->model.idems[c->queue][f->idem];
	struct sim_msg *x;

	if (f->too_big || (idem && is_surely_known(w, c->queue, idem, now)))
		return;
	x = model_add(&w->model);
	if (!x)
		world_fail(w, "the model is full");
	x->id = f->id;
	x->queue = c->queue;
	x->key = f->key;
	x->idem = f->idem;
	x->prio = put->m.prio;
	x->due = now + put->delay;
	x->max_attempts = put->m.max_attempts;
	x->keep = (f->keep + SLU_SEC - 1) / SLU_SEC * SLU_SEC;
	x->size = f->size;
	x->doubt = DOUBT_IN | (idem ? DOUBT_OUT : 0); /* its key may have been known */
	x->call = c->serial;
	if (idem)
		idem->doubt = true;
}

static void
doubt_item(struct sim_world *w, const struct sim_call *c, const struct op_item *it)
{
	struct sim_msg *x = model_find(&w->model, it->id);
	const bool acks = c->op.verb == OP_ACK || c->op.verb == OP_FINISH;
	const bool holder = acks || c->op.verb == OP_NACK || c->op.verb == OP_EXTEND;

	if (!x || x->queue != c->queue || (holder && it->token && it->token != x->token))
		return;
	x->doubt |= acks || c->op.verb == OP_DELETE ? DOUBT_OUT : DOUBT_STATE;
	x->ender = c->op.verb == OP_FINISH && !x->ender ? c->serial : UINT32_MAX;
	x->vague_state |= c->op.verb == OP_NACK;
	if (acks && x->keep)
		model_add_result(&w->model, &(struct sim_kept){
						    .id = x->id,
						    .queue = x->queue,
						    .doubt = true,
						    .text = it->text.n > 0,
						    .from = c->op.route.arrived + x->keep,
						    .until = world_now(w, c->queue) + x->keep,
					    });
}

static void
doubt_all(struct sim_world *w, unsigned queue, unsigned doubt)
{
	EACH_MSG(x, &w->model)
	if (x->queue == queue) {
		x->doubt |= doubt;
		x->ender = doubt & DOUBT_OUT ? UINT32_MAX : x->ender;
	}
}

static void
doubt_policy(struct sim_world *w, const struct sim_call *c)
{
	struct model_queue *q = &w->model.queues[c->queue];

	if (!q->doubt)
		q->other = q->policy;
	q->doubt = true;
	if (c->op.verb == OP_POLICY_SET)
		q->other = c->op.policy;
	else
		q->other.paused = c->op.policy.paused;
	EACH_MSG(x, &w->model)
	if (x->queue == c->queue && x->state == M_DEAD)
		x->doubt |= DOUBT_OUT; /* there may be too many now */
}

void
world_doubt(struct sim_world *w, struct sim_call *c)
{
	world_doubt_run(w, w->model.queues[c->queue].shard); /* before it, too */
	for (unsigned i = 0; i < c->op.n_puts && (c->op.verb == OP_ENQUEUE || c->op.verb == OP_INTAKE || c->op.verb == OP_FINISH); i++)
		doubt_put(w, c, i);
	for (unsigned i = 0; i < c->op.n_items; i++)
		doubt_item(w, c, &c->items[i]);
	if (c->op.verb >= OP_ACQUIRE)
		world_doubt_lock(w, c);
	if (c->op.verb == OP_CLAIM || c->op.verb == OP_RETURN)
		doubt_all(w, c->queue, DOUBT_STATE);
	if (c->op.verb == OP_PURGE)
		doubt_all(w, c->queue, DOUBT_OUT);
	if (c->op.verb == OP_POLICY_SET || c->op.verb == OP_PAUSE)
		doubt_policy(w, c);
	if (c->op.verb == OP_FORGET)
		world_doubt_forget(w, c);
	world_doubt_run(w, w->model.queues[c->queue].shard);
}

/* What falls due by itself. */
void
world_doubt_run(struct sim_world *w, unsigned shard)
{
	EACH_MSG(x, &w->model)
	{
		const slu_time now = world_now(w, x->queue);
		const struct policy *p = &w->model.queues[x->queue].policy;

		if (w->model.queues[x->queue].shard != shard)
			continue;
		if ((x->state == M_LEASED && x->until <= now) || x->expires <= now)
			x->doubt |= DOUBT_STATE;
		if (x->state == M_WAIT && x->failures >= model_max_attempts(&w->model, x))
			x->doubt |= DOUBT_STATE; /* a claim that found nothing else may have let it die, and not have been answered */
		if (x->state == M_DEAD && (p->dlq_max || p->dlq_retention))
			x->doubt |= DOUBT_OUT;
		if (x->state != M_DEAD && x->doubt && (p->dlq_max || p->dlq_retention))
			x->doubt |= DOUBT_OUT; /* it may have died, and been one too many */
	}
}
