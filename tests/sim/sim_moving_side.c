/*
 * sim_moving_side.c - operators, views, and the states of messages.
 */
#include "sim_moving.h"

/* ---- Operators ---- */

static void
redrive_one(struct sim_world *w, const struct op_item *it, struct sim_msg *x)
{
	if (!world_may_be_dead(w, x))
		world_fail(w, "I8: %" PRIu64 " was redriven, and is not dead", x->id);
	x->state = M_WAIT;
	x->since = w->turn;
	x->due = it->until;
	x->redriven = true;
	x->failures = 0;
	x->expires = SLU_NEVER;
	x->doubt = x->weak ? DOUBT_STATE : 0; /* it may have been given back before it died */
	x->holds = false;
	x->weak = false;
}

/* What is set aside is not found by them: MOVE-6. */
void
judge_manage(struct sim_world *w, struct sim_call *c)
{
	const struct op_item *it = &c->items[0];
	struct sim_msg *x = model_find(&w->model, it->id);

	if (it->rc == SLU_EUNKNOWN)
		world_doubt_item(w, c, it);
	if (it->rc)
		return;
	if (!x || x->queue != c->queue || (c->op.verb == OP_DELETE && world_is_held(w, x)))
		world_fail(w, "I5: %s of %" PRIu64, op_verb_name(c->op.verb), it->id);
	if (c->op.verb == OP_DELETE) {
		world_gone(w, x, c->came);
		return;
	}
	redrive_one(w, it, x);
}

/* What waited all the time is gone. */
void
judge_purge(struct sim_world *w, struct sim_call *c)
{
	const bool claiming = world_is_claiming(w, c->queue);
	struct sim_model *m = &w->model;

	if (c->op.rc) {
		if (!world_cannot(w, c, c->op.rc))
			world_fail(w, "W4: a purge was refused: %d, %s", c->op.rc, c->op.err.text);
		return;
	}
	for (unsigned i = 0; i < m->n;) {
		struct sim_msg *x = &m->msgs[i];
		const bool mine = x->queue == c->queue;

		if (mine && world_is_sure(w, x) && x->state == M_WAIT && x->to && x->since < c->turn &&
		    !claiming && !world_may_be_dead(w, x)) {
			world_gone(w, x, c->came);
			continue;
		}
		if (mine && !world_is_held(w, x))
			x->doubt |= DOUBT_OUT;
		i++;
	}
}

/* It has, or may have, this policy. */
void
world_note_policy(struct sim_world *w, unsigned queue, const struct policy *p)
{
	struct model_queue *q = &w->model.queues[queue];

	q->least_window = p->window < q->least_window ? p->window : q->least_window;
	q->least_attempts = p->max_attempts < q->least_attempts ? p->max_attempts : q->least_attempts;
	q->retires |= p->dlq_max || p->dlq_retention;
}

/* One mover is slower than another: the policy that it knew may come after this one. */
static bool
is_crowded(struct sim_world *w, unsigned queue)
{
	bool crowded = false;

	EACH(i, w->movers) {
		struct mover *m = &w->movers[i];

		if (!m->fiber || m->queue != queue)
			continue;
		crowded |= m->crowded;
		m->behind = true;
	}
	return crowded;
}

/* Of a queue that has nothing, and the policy that all have, nothing moves: where it lives then
 * the answer may not have arrived. */
static bool
is_blank(struct sim_world *w, unsigned queue)
{
	const struct model_queue *q = &w->model.queues[queue];
	bool has = q->doubt || !model_same_policy(&q->policy, &policy_default);

	EACH_MSG(x, &w->model)
	has |= x->queue == queue && x->to;
	return !has;
}

void
judge_policy(struct sim_world *w, struct sim_call *c)
{
	struct model_queue *q = &w->model.queues[c->queue];

	if (c->op.rc == SLU_ENOTFOUND && c->op.verb == OP_PAUSE &&
	    (!q->known || is_blank(w, c->queue)))
		return;
	if (world_cannot(w, c, c->op.rc))
		return;
	if (c->op.rc)
		world_fail(w, "%s was refused: %d, %s", op_verb_name(c->op.verb), c->op.rc,
			   c->op.err.text);
	if (c->op.verb != OP_POLICY_GET)
		q->doubt |= is_crowded(w, c->queue) || world_is_setting(w, c->queue);
	if (c->op.verb == OP_PAUSE)
		q->policy.paused = c->op.policy.paused;
	else if (c->op.verb == OP_POLICY_SET)
		q->policy = c->op.policy;
	if (!q->doubt && !world_is_setting(w, c->queue) && !world_is_behind(w, c->queue) &&
	    q->set < c->turn && !model_same_policy(&q->policy, &c->op.policy))
		world_fail(w, "queue %u has another policy", c->queue);
	if (c->op.verb != OP_POLICY_GET) {
		q->set = w->turn;
		q->known = true;
	}
}

/* ---- Looking ---- */

void
judge_get(struct sim_world *w, struct sim_call *c)
{
	const struct sim_msg *x = model_find(&w->model, c->op.id);

	if (c->op.rc == 0 && (!x || x->queue != c->queue) && !c->shadow &&
	    !world_is_taken(w, c->op.route.lane, c->op.id))
		world_fail(w, "I3: get of %" PRIu64 ", which is gone", c->op.id);
	if (c->op.rc == 0 && x)
		world_check_record(w, c->op.engine, &c->rows[0], x);
	if (c->op.rc && c->op.rc != SLU_ENOTFOUND && !world_cannot(w, c, c->op.rc))
		world_fail(w, "get of %" PRIu64 ": %d", c->op.id, c->op.rc);
	if (c->op.rc == SLU_ENOTFOUND && x && x->queue == c->queue && world_is_sure(w, x) &&
	    x->to && x->to < c->turn && !world_may_be_dead(w, x))
		world_fail(w, "I1: get does not find %" PRIu64, c->op.id);
}

void
judge_look(struct sim_world *w, struct sim_call *c)
{
	if (c->op.rc && c->op.rc != SLU_ENOTFOUND && !world_cannot(w, c, c->op.rc))
		world_fail(w, "%s was refused: %d, %s", op_verb_name(c->op.verb), c->op.rc,
			   c->op.err.text);
	for (unsigned i = 0; c->op.verb == OP_PEEK && i < c->op.n_rows; i++)
		if (!model_find(&w->model, c->rows[i].id))
			world_fail(w, "I3: a peek shows %" PRIu64, c->rows[i].id);
}

void
judge_result(struct sim_world *w, struct sim_call *c)
{
	const int rc = c->op.rc;
	unsigned at;
	const bool kept = model_keeps_result(&w->model, c->op.id, &at);
	const struct sim_kept *r = &w->model.results[at];
	const bool mine = kept && slice_eq(world_space(r->queue), c->op.space);
	const struct sim_msg *x = model_find(&w->model, c->op.id);

	if (rc == 0 && !kept && x && world_is_settling(w, x, false))
		return; /* its giver has no answer yet */
	if (rc == 0 && (!mine || (!r->doubt && r->text != (c->op.result.pin != NULL))))
		world_fail(w, "%" PRIu64 " has a result that nobody gave", c->op.id);
	if (rc == 0 && c->op.result.pin)
		world_check_text(w, c->op.engine, &c->op.result, 'r', c->op.id);
	if (rc && rc != SLU_ETIMEOUT && rc != SLU_ENOTFOUND && !world_cannot(w, c, rc) &&
	    !(rc == SLU_ECLOSED && w->draining))
		world_fail(w, "a result was refused: %d", rc);
	if ((rc == SLU_ENOTFOUND || rc == SLU_ETIMEOUT) && mine && r->queue == c->queue &&
	    !r->doubt && world_latest(w) < r->from && c->op.wait == 0 && r->turn < c->turn)
		world_fail(w, "the result of %" PRIu64 " is lost: %d", c->op.id, rc);
}

/* ---- Locks ---- */

/* The state of a message: its holder may write it. */
static void
end_state(struct sim_world *w, const struct sim_call *c)
{
	struct sim_msg *x = model_find(&w->model, c->op.id);
	const bool mine = x && x->queue == c->queue && x->token == c->op.lock.token;

	if (c->op.rc == SLU_EFULL && w->limited)
		return;
	if (c->op.rc && c->op.rc != SLU_ELEASE && !world_cannot(w, c, c->op.rc))
		world_fail(w, "state of %" PRIu64 ": %d, %s", c->op.id, c->op.rc, c->op.err.text);
	if (c->op.rc == SLU_ELEASE && mine && world_is_held(w, x))
		world_fail(w, "I5: token %" PRIu64 " has %" PRIu64 ", and not its state",
			   c->op.lock.token, c->op.id);
	if (c->op.rc)
		return;
	if (!mine || (world_is_sure(w, x) && x->state != M_LEASED))
		world_fail(w, "I5: state of %" PRIu64 " by token %" PRIu64 ", which does not have it",
			   c->op.id, c->op.lock.token);
	x->staged = c->op.lock.etag;
	x->staged_by = x->token;
}

/* An op on a key is done by one shard, and answered at once: so what the answer must be is known. */
void
moving_lock(struct sim_world *w, struct sim_call *c)
{
	if (c->queue < MODEL_QUEUES)
		end_state(w, c);
	else
		world_end_lock(w, c, world_lane_now(w, c->op.route.lane));
}
