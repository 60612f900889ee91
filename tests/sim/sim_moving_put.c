/*
 * sim_moving_put.c - messages come: each is accepted once, and once of its idempotency key.
 */
#include "sim_moving.h"

/* What may never have been there is taken for gone, and its id is given again after a restart. */
static void
unforget(struct sim_model *m, uint64_t id)
{
	for (unsigned i = 0; i < m->n_gone; i++)
		if (m->gone[i] == id)
			m->gone[i] = m->gone[--m->n_gone];
}

/* From now on it may be handed out. */
static void
expect_put(struct sim_world *w, const struct sim_call *c, unsigned i)
{
	const struct put_facts *f = &c->facts[i];
	struct sim_msg *x = f->too_big ? NULL : model_add(&w->model);

	unforget(&w->model, f->id);
	if (!x)
		return;
	x->id = f->id;
	x->queue = c->queue;
	x->key = f->key;
	x->idem = f->idem;
	x->prio = c->puts[i].m.prio;
	x->max_attempts = c->puts[i].m.max_attempts;
	x->keep = (f->keep + SLU_SEC - 1) / SLU_SEC * SLU_SEC;
	x->size = f->size;
	x->delayed = c->puts[i].delay > 0;
	x->doubt = DOUBT_IN;
	x->call = c->serial;
	x->from = c->turn;
}

void
world_expect_puts(struct sim_world *w, const struct sim_call *c)
{
	for (unsigned i = 0; c->op.verb == OP_ENQUEUE && i < c->op.n_puts; i++)
		expect_put(w, c, i);
}

/* It was not accepted. */
static void
forget_put(struct sim_world *w, const struct sim_call *c, unsigned i)
{
	const uint64_t id = c->facts[i].id;
	struct sim_msg *x = model_find(&w->model, id);

	if ((x && !(x->doubt & DOUBT_IN)) || (!x && model_is_gone(&w->model, id)))
		world_fail(w, "I2: %" PRIu64 " was refused, and is there", id);
	if (x)
		model_forget(&w->model, x);
}

void
world_forget_puts(struct sim_world *w, const struct sim_call *c)
{
	for (unsigned i = 0; c->op.verb == OP_ENQUEUE && i < c->op.n_puts; i++)
		forget_put(w, c, i);
}

static void
end_existed(struct sim_world *w, const struct sim_call *c, unsigned i)
{
	const uint64_t id = c->puts[i].m.id;
	const struct sim_msg *x = model_find(&w->model, id);

	if (x ? x->queue != c->queue || x->idem != c->facts[i].idem : !model_is_gone(&w->model, id))
		world_fail(w, "I2: %" PRIu64 " is said to have key %d", id, c->facts[i].idem);
	forget_put(w, c, i);
}

/* Was there one with that idempotency key when this was posted, and is it known until now? */
static void
check_idem(struct sim_world *w, const struct sim_call *c, unsigned i)
{
	const int idem = c->facts[i].idem;
	const struct sim_idem *known = idem < 0 ? NULL : &w->model.idems[c->queue][idem];
	const struct sim_msg *x = known ? model_find(&w->model, known->id) : NULL;

	if (x && (!world_is_sure(w, x) ||
		  (world_may_be_dead(w, x) && w->model.queues[c->queue].retires)))
		return; /* it may be gone for long */
	if (known && known->id && !known->doubt && known->turn < c->turn &&
	    (known->live || world_latest(w) < known->must))
		world_fail(w, "I2: %" PRIu64 " was accepted, and %" PRIu64 " has its key %d",
			   c->puts[i].m.id, known->id, idem);
}

static void
end_put(struct sim_world *w, struct sim_call *c, unsigned i)
{
	const struct put_facts *f = &c->facts[i];
	const struct op_put *put = &c->puts[i];
	struct sim_msg *x;

	if (put->existed) {
		end_existed(w, c, i);
		return;
	}
	if (f->too_big)
		world_fail(w, "no segment can hold %" PRIu64, put->m.id);
	check_idem(w, c, i);
	x = model_find(&w->model, f->id);
	if (f->idem >= 0)
		w->model.idems[c->queue][f->idem] = (struct sim_idem){
			.id = f->id,
			.live = x != NULL,
			.doubt = !x,
			.turn = w->turn,
		};
	if (!x)
		return; /* it is gone already */
	x->to = w->turn;
	if (!(x->doubt & DOUBT_IN))
		return;
	x->doubt &= (unsigned)~DOUBT_IN;
	x->since = w->turn;
	x->due = put->m.due;
	x->expires = put->m.expires ? put->m.expires : SLU_NEVER;
}

static void
check_refused(struct sim_world *w, const struct sim_call *c)
{
	const int rc = c->op.rc;
	bool too_big = false;

	for (unsigned i = 0; i < c->op.n_puts; i++)
		too_big |= c->facts[i].too_big;
	if ((rc == SLU_ETOOBIG && too_big) || rc == SLU_EQFULL ||
	    (rc == SLU_EFULL && (w->limited || c->limited || world_is_down(w, c->queue))))
		return;
	world_fail(w, "an enqueue was refused: %d, %s", rc, c->op.err.text);
}

void
judge_enqueue(struct sim_world *w, struct sim_call *c)
{
	if (c->op.rc) {
		check_refused(w, c);
		world_forget_puts(w, c);
		return;
	}
	w->model.queues[c->queue].known = true;
	for (unsigned i = 0; i < c->op.n_puts; i++)
		end_put(w, c, i);
}
