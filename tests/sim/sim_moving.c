/*
 * sim_moving.c - the judge of schedules in which queues move.
 *
 * An op of such a queue may be asked on one shard after the other, so its answer does not say
 * when it was carried out, and what is handed out next hangs on where it is. This judge does
 * not know what each answer must be. It knows what must not be, whoever moves, stands still or
 * dies: what was accepted is lost or there twice, what is gone comes back, two have one
 * lease, or one key; a token does not rise; a key is out of order; who holds a lease is
 * refused, who does not is not.
 *
 * Which of two things came first it knows by `turn`: an op is posted in one and answered in a
 * later one, and what it does happens between them.
 */
#include "sim_world.h"

#include "broker/relay.h"

/* ---- What is sure ---- */

slu_time
world_latest(struct world *w)
{
	slu_time t = 0;

	for (unsigned i = 0; i < w->n_shards; i++)
		t = world_lane_now(w, i) > t ? world_lane_now(w, i) : t;
	return t;
}

static slu_time
earliest(struct world *w)
{
	return world_latest(w) - w->skew;
}

/* Is an op on its way that may settle it? One that asks several shards may have done so
 * long before it is answered. */
static bool
is_settling(struct world *w, const struct model_msg *x, bool note)
{
	bool found = false;

	EACH(i, w->calls) {
		struct call *c = &w->calls[i];
		const bool purge = c->op.verb == OP_PURGE && c->queue == x->queue;

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
world_is_sure(struct world *w, const struct model_msg *x)
{
	return !(x->doubt & (DOUBT_IN | DOUBT_OUT | DOUBT_STATE)) && !is_settling(w, x, false);
}

bool
world_is_lease_over(struct world *w, const struct model_msg *x)
{
	return x->state == M_LEASED && x->until <= world_lane_now(w, x->lane);
}

/* Somebody has it for sure. */
static bool
is_held(struct world *w, const struct model_msg *x)
{
	return world_is_sure(w, x) && x->state == M_LEASED && !x->weak && !world_is_lease_over(w, x);
}

bool
world_may_be_dead(struct world *w, const struct model_msg *x)
{
	const unsigned most = x->max_attempts ? x->max_attempts
					      : w->model.queues[x->queue].least_attempts;

	return x->state == M_DEAD || x->expires <= world_latest(w) || !world_is_sure(w, x) ||
	       x->failures + world_is_lease_over(w, x) >= most;
}

/* ---- Doubts ---- */

static void
doubt_item(struct world *w, const struct call *c, const struct op_item *it)
{
	struct model_msg *x = model_find(&w->model, it->id);

	if (!x || x->queue != c->queue)
		return;
	x->doubt |= c->op.verb == OP_ACK || c->op.verb == OP_DELETE ? DOUBT_OUT : DOUBT_STATE;
	x->vague_state |= c->op.verb == OP_NACK;
	x->redriven |= c->op.verb == OP_REDRIVE;
	if (c->op.verb == OP_ACK && x->keep)
		model_add_result(&w->model, &(struct model_result){
						    .id = x->id,
						    .queue = x->queue,
						    .doubt = true,
						    .text = it->text.n > 0,
					    });
}

static void
doubt_queue(struct world *w, unsigned queue, unsigned doubt)
{
	EACH_MSG(x, &w->model)
	if (x->queue == queue)
		x->doubt |= doubt;
}

/* Nobody knows what became of it. */
static void
doubt(struct world *w, struct call *c)
{
	for (unsigned i = 0; i < c->op.n_items; i++)
		doubt_item(w, c, &c->items[i]);
	if (c->op.verb == OP_ENQUEUE)
		for (unsigned i = 0; i < c->op.n_puts; i++)
			if (c->facts[i].idem >= 0)
				w->model.idems[c->queue][c->facts[i].idem].doubt = true;
	if (c->op.verb == OP_CLAIM || c->op.verb == OP_RETURN)
		doubt_queue(w, c->queue, DOUBT_STATE);
	if (c->op.verb == OP_PURGE)
		doubt_queue(w, c->queue, DOUBT_OUT);
	if (c->op.verb == OP_POLICY_SET || c->op.verb == OP_PAUSE)
		w->model.queues[c->queue].doubt = true;
	if (c->op.verb >= OP_ACQUIRE)
		world_doubt_lock(w, c);
}

/* ---- Enqueue ---- */

/* It has, or may have, this policy. */
static void
note_policy(struct world *w, unsigned queue, const struct policy *p)
{
	struct model_queue *q = &w->model.queues[queue];

	q->least_window = p->window < q->least_window ? p->window : q->least_window;
	q->least_attempts = p->max_attempts < q->least_attempts ? p->max_attempts : q->least_attempts;
	q->retires |= p->dlq_max || p->dlq_retention;
}

/* What may never have been there is taken for gone, and its id is given again after a restart. */
static void
unforget(struct model *m, uint64_t id)
{
	for (unsigned i = 0; i < m->n_gone; i++)
		if (m->gone[i] == id)
			m->gone[i] = m->gone[--m->n_gone];
}

/* From now on it may be handed out. */
static void
moving_posts(struct world *w, struct call *c)
{
	c->turn = ++w->turn;
	c->came = earliest(w);
	memset(c->early, 0, sizeof c->early);
	if (c->op.verb == OP_POLICY_SET)
		note_policy(w, c->queue, &c->op.policy);
	for (unsigned i = 0; c->op.verb == OP_ENQUEUE && i < c->op.n_puts; i++) {
		const struct put_facts *f = &c->facts[i];
		struct model_msg *x = f->too_big ? NULL : model_add(&w->model);

		unforget(&w->model, f->id);
		if (!x)
			continue;
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
}

/* It was not accepted. */
static void
forget_put(struct world *w, const struct call *c, unsigned i)
{
	const uint64_t id = c->facts[i].id;
	struct model_msg *x = model_find(&w->model, id);

	if ((x && !(x->doubt & DOUBT_IN)) || (!x && model_is_gone(&w->model, id)))
		world_fail(w, "I2: %" PRIu64 " was refused, and is there", id);
	if (x)
		model_forget(&w->model, x);
}

static void
forget_puts(struct world *w, const struct call *c)
{
	for (unsigned i = 0; c->op.verb == OP_ENQUEUE && i < c->op.n_puts; i++)
		forget_put(w, c, i);
}

static void
end_existed(struct world *w, const struct call *c, unsigned i)
{
	const uint64_t id = c->puts[i].m.id;
	const struct model_msg *x = model_find(&w->model, id);

	if (x ? x->queue != c->queue || x->idem != c->facts[i].idem : !model_is_gone(&w->model, id))
		world_fail(w, "I2: %" PRIu64 " is said to have key %d", id, c->facts[i].idem);
	forget_put(w, c, i);
}

/* Was there one with that idempotency key when this was posted, and is it known until now? */
static void
check_idem(struct world *w, const struct call *c, unsigned i)
{
	const int idem = c->facts[i].idem;
	const struct model_idem *known = idem < 0 ? NULL : &w->model.idems[c->queue][idem];
	const struct model_msg *x = known ? model_find(&w->model, known->id) : NULL;

	if (x && (!world_is_sure(w, x) || (world_may_be_dead(w, x) && w->model.queues[c->queue].retires)))
		return; /* it may be gone for long */
	if (known && known->id && !known->doubt && known->turn < c->turn &&
	    (known->live || world_latest(w) < known->must))
		world_fail(w, "I2: %" PRIu64 " was accepted, and %" PRIu64 " has its key %d",
			   c->puts[i].m.id, known->id, idem);
}

static void
end_put(struct world *w, struct call *c, unsigned i)
{
	const struct put_facts *f = &c->facts[i];
	const struct op_put *put = &c->puts[i];
	struct model_msg *x;

	if (put->existed) {
		end_existed(w, c, i);
		return;
	}
	if (f->too_big)
		world_fail(w, "no segment can hold %" PRIu64, put->m.id);
	check_idem(w, c, i);
	x = model_find(&w->model, f->id);
	if (f->idem >= 0)
		w->model.idems[c->queue][f->idem] = (struct model_idem){ .id = f->id, .live = x != NULL, .doubt = !x, .turn = w->turn };
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
check_refused(struct world *w, const struct call *c)
{
	const int rc = c->op.rc;
	bool too_big = false;

	for (unsigned i = 0; i < c->op.n_puts; i++)
		too_big |= c->facts[i].too_big;
	if ((rc == SLU_ETOOBIG && too_big) || rc == SLU_EQFULL ||
	    (rc == SLU_EFULL && (w->limited || world_is_down(w, c->queue))))
		return;
	world_fail(w, "an enqueue was refused: %d, %s", rc, c->op.err.text);
}

static void
end_enqueue(struct world *w, struct call *c)
{
	if (c->op.rc) {
		check_refused(w, c);
		forget_puts(w, c);
		return;
	}
	w->model.queues[c->queue].known = true;
	for (unsigned i = 0; i < c->op.n_puts; i++)
		end_put(w, c, i);
}

/* ---- Claim ---- */

/* Of one key, and neither has been handed out: must y go first? */
static bool
is_before(struct world *w, const struct model_msg *y, const struct model_msg *x)
{
	if (y->redriven || x->redriven || !y->to)
		return false;
	if (!y->delayed && !x->delayed)
		return y->from == x->from ? y->id < x->id : y->to < x->from;
	return x->to && y->due + w->skew < x->due;
}

/* L3, V3: one of a key at a time, and in their order. */
static void
check_key(struct world *w, const struct model_msg *x)
{
	EACH_MSG(y, &w->model)
	{
		if (y == x || y->queue != x->queue || y->key != x->key || x->key < 0 ||
		    world_may_be_dead(w, y))
			continue;
		if (y->holds)
			world_fail(w, "I4, I6: %" PRIu64 " of key %d was handed out, and %" PRIu64 " leads it",
				   x->id, x->key, y->id);
		if (!x->holds && is_before(w, y, x))
			world_fail(w, "I6: %" PRIu64 " of key %d was handed out before %" PRIu64,
				   x->id, x->key, y->id);
	}
}

static void
check_token(struct world *w, const struct model_msg *x, uint64_t token)
{
	uint64_t *top = x->key < 0 ? NULL : &w->model.key_top[x->queue][x->key];

	if (token <= x->token || (top && token <= *top))
		world_fail(w, "I4: token %" PRIu64 " of %" PRIu64 " after %" PRIu64, token, x->id,
			   top && *top > x->token ? *top : x->token);
	if (top)
		*top = token;
}

/* How it stood before it was handed out. */
static void
check_stood(struct world *w, const struct op_row *row, const struct model_msg *x, unsigned lane)
{
	const bool over = world_is_lease_over(w, x);

	if (is_held(w, x))
		world_fail(w, "I4: %" PRIu64 " was handed out by token %" PRIu64 ", and %" PRIu64 " has it",
			   x->id, row->token, x->token);
	if (!world_is_sure(w, x) || x->weak)
		return;
	if (x->state == M_DEAD)
		world_fail(w, "I8: %" PRIu64 " is dead, and was handed out", x->id);
	if (row->attempts != x->attempts + 1 || row->failures != x->failures + over)
		world_fail(w, "I4: delivery %u of %" PRIu64 " after %u, failures %u after %u",
			   row->attempts, x->id, x->attempts, row->failures, x->failures);
	if (!over && x->to && x->due > world_lane_now(w, lane) + w->skew)
		world_fail(w, "I7: %" PRIu64 " was handed out before it is due", x->id);
}

static void
grant(struct world *w, struct call *c, const struct op_row *row)
{
	struct model_msg *x = model_find(&w->model, row->id);

	if (!x)
		world_fail(w, "I3: %" PRIu64 " was handed out and is %s", row->id,
			   model_is_gone(&w->model, row->id) ? "gone" : "not known");
	if (x->queue != c->queue)
		world_fail(w, "%" PRIu64 " is of another queue", row->id);
	check_stood(w, row, x, c->op.shard);
	check_key(w, x);
	check_token(w, x, row->token);
	x->vague_state |= is_settling(w, x, true);
	x->token = row->token;
	x->attempts = row->attempts;
	x->failures = row->failures;
	x->state = M_LEASED;
	x->holds = true;
	x->lane = c->op.shard;
	x->until = row->until;
	x->weak = w->model.queues[c->queue].forcing > 0;
	x->doubt = DOUBT_FRESH;
	x->expires = row->expires;
	x->due = row->due;
	world_check_record(w, c->op.engine, row, x);
	if (c->op.stateful)
		world_check_state(w, row, x);
	if (w->n_leases < WORLD_LEASES)
		w->leases[w->n_leases++] = (struct lease){ x->id, x->token, c->queue };
	w->sum.claims++;
	world_note(w, "granted", row->id, row->token, c->op.shard);
}

/* Calls of the disk fail, and what needs one is refused: nothing has happened. */
static bool
cannot(struct world *w, const struct call *c, int rc)
{
	if (rc == SLU_EFULL)
		return w->failing || w->tight || w->disk->dead;
	return (rc == SLU_EDOWN || rc == SLU_EUNKNOWN) && world_is_down(w, c->queue);
}

static void
end_claim(struct world *w, struct call *c)
{
	if (cannot(w, c, c->op.rc))
		return;
	if (c->op.rc)
		world_fail(w, "W4: a claim was refused: %d, %s", c->op.rc, c->op.err.text);
	if (world_is_down(w, c->queue)) /* what a shard granted that then failed, nobody knows */
		doubt_queue(w, c->queue, DOUBT_STATE);
	for (unsigned i = 0; i < c->op.n_rows; i++)
		grant(w, c, &c->op.rows[i]);
}

static void
wait_again(struct world *w, struct model_msg *x)
{
	x->state = M_WAIT;
	x->since = w->turn;
	x->doubt |= DOUBT_FRESH;
}

static void
end_return(struct world *w, struct call *c)
{
	for (unsigned i = 0; i < c->op.n_rows; i++) {
		const struct op_row *row = &c->op.rows[i];
		struct model_msg *x = model_find(&w->model, row->id);
		const bool mine = x && x->token == row->token;

		if (row->state != MSG_READY && mine && is_held(w, x) && !w->tight && !w->failing)
			world_fail(w, "I5: %" PRIu64 " did not go back", row->id);
		if (row->state != MSG_READY)
			continue;
		if (!mine || (world_is_sure(w, x) && x->state != M_LEASED))
			world_fail(w, "I5: %" PRIu64 " went back, and token %" PRIu64 " did not have it",
				   row->id, row->token);
		wait_again(w, x);
		x->attempts--;
	}
}

/* ---- Settle ---- */

/* The key is remembered from then on. */
void
world_gone(struct world *w, struct model_msg *x, slu_time at)
{
	const unsigned queue = x->queue;
	const uint64_t id = x->id;
	struct model_idem *idem = x->idem < 0 ? NULL : &w->model.idems[queue][x->idem];

	model_remove(&w->model, x, 1, 1);
	if (idem && idem->id == id)
		idem->must = at + w->model.queues[queue].least_window;
}

static void
ack_one(struct world *w, struct call *c, const struct op_item *it, struct model_msg *x)
{
	if (x->keep)
		model_add_result(&w->model, &(struct model_result){
						    .id = x->id,
						    .queue = c->queue,
						    .text = it->text.n > 0,
						    .from = c->came + x->keep,
						    .turn = w->turn,
					    });
	world_gone(w, x, c->came);
	w->sum.settled++;
}

static void
nack_one(struct world *w, const struct op_item *it, struct model_msg *x)
{
	x->failures += it->dead || !it->defer;
	x->error = x->error || it->text.n;
	if (x->staged && x->staged_by == x->token)
		x->etag = x->staged;
	if (it->died) {
		if (!it->dead && !world_may_be_dead(w, x))
			world_fail(w, "I8: %" PRIu64 " is dead after %u failures", x->id, x->failures);
		model_die(&w->model, x, it->dead ? DEAD_REJECTED : DEAD_MAX_ATTEMPTS, 0);
		return;
	}
	wait_again(w, x);
	x->due = it->until;
}

/* Of two that were on their way at once the one that is answered last may have been the first. */
static void
extend_one(struct world *w, const struct call *c, const struct op_item *it, struct model_msg *x)
{
	x->until = it->until;
	x->doubt |= DOUBT_FRESH | (c->turn < x->extended ? DOUBT_STATE : 0);
	x->extended = w->turn;
	if (w->n_leases < WORLD_LEASES)
		w->leases[w->n_leases++] = (struct lease){ x->id, x->token, x->queue };
}

/* I5: whoever settles has it. One op of several items may be answered long after some of
 * them were carried out, and others may have come between. */
static void
end_settled(struct world *w, struct call *c, unsigned i)
{
	const struct op_item *it = &c->items[i];
	struct model_msg *x = model_find(&w->model, it->id);
	const bool late = c->early[i] || (c->op.n_items > 1 && c->op.verb != OP_ACK);
	const bool mine = x && x->queue == c->queue && (!it->token || it->token == x->token) &&
			  (x->state == M_LEASED || !world_is_sure(w, x));

	if (!mine && !late)
		world_fail(w, "I5: %s of %" PRIu64 " by token %" PRIu64 ", which does not have it",
			   op_verb_name(c->op.verb), it->id, it->token);
	if (!mine)
		return;
	world_note(w, "settled", it->id, it->token, (uint64_t)it->until);
	if (c->op.verb == OP_ACK)
		ack_one(w, c, it, x);
	else if (c->op.verb == OP_NACK)
		nack_one(w, it, x);
	else
		extend_one(w, c, it, x);
}

static void
end_unsettled(struct world *w, struct call *c, const struct op_item *it)
{
	const struct model_msg *x = model_find(&w->model, it->id);

	if (cannot(w, c, it->rc) || it->rc == SLU_EBUSY || it->rc == SLU_EMOVED || (it->rc == SLU_ECLOSED && w->draining))
		return;
	if (it->rc != SLU_ENOTFOUND && it->rc != SLU_ELEASE)
		world_fail(w, "%s of %" PRIu64 ": %d", op_verb_name(c->op.verb), it->id, it->rc);
	if (x && x->queue == c->queue && it->token == x->token && is_held(w, x))
		world_fail(w, "I5: %s of %" PRIu64 " by token %" PRIu64 ", which has it: %d",
			   op_verb_name(c->op.verb), it->id, it->token, it->rc);
}

static void
end_settle(struct world *w, struct call *c)
{
	for (unsigned i = 0; i < c->op.n_items; i++) {
		if (c->items[i].rc == SLU_EUNKNOWN)
			doubt_item(w, c, &c->items[i]);
		if (c->items[i].rc == 0)
			end_settled(w, c, i);
		else
			end_unsettled(w, c, &c->items[i]);
	}
}

/* ---- Operators ---- */

/* What is set aside is not found by them: V6. */
static void
end_manage(struct world *w, struct call *c)
{
	const struct op_item *it = &c->items[0];
	struct model_msg *x = model_find(&w->model, it->id);

	if (it->rc == SLU_EUNKNOWN)
		doubt_item(w, c, it);
	if (it->rc)
		return;
	if (!x || x->queue != c->queue || (c->op.verb == OP_DELETE && is_held(w, x)))
		world_fail(w, "I5: %s of %" PRIu64, op_verb_name(c->op.verb), it->id);
	if (c->op.verb == OP_DELETE) {
		world_gone(w, x, c->came);
		return;
	}
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

/* Is a claim on its way? It may have been granted something just before, and not be answered. */
static bool
is_claiming(const struct world *w, unsigned queue)
{
	bool found = false;

	EACH(i, w->calls) {
		const struct call *c = &w->calls[i];

		found |= c->state == CALL_POSTED && c->queue == queue && c->op.verb == OP_CLAIM;
	}
	return found;
}

/* What waited all the time is gone. */
static void
end_purge(struct world *w, struct call *c)
{
	const bool claiming = is_claiming(w, c->queue);
	struct model *m = &w->model;

	if (c->op.rc) {
		if (!cannot(w, c, c->op.rc))
			world_fail(w, "W4: a purge was refused: %d, %s", c->op.rc, c->op.err.text);
		return;
	}
	for (unsigned i = 0; i < m->n;) {
		struct model_msg *x = &m->msgs[i];
		const bool mine = x->queue == c->queue;

		if (mine && world_is_sure(w, x) && x->state == M_WAIT && x->to && x->since < c->turn &&
		    !claiming && !world_may_be_dead(w, x)) {
			world_gone(w, x, c->came);
			continue;
		}
		if (mine && !is_held(w, x))
			x->doubt |= DOUBT_OUT;
		i++;
	}
}

/* Is another op on its way that sets it? */
static bool
is_setting(const struct world *w, unsigned queue)
{
	bool found = false;

	EACH(i, w->calls) {
		const struct call *c = &w->calls[i];

		found |= c->state == CALL_POSTED && c->queue == queue &&
			 (c->op.verb == OP_POLICY_SET || c->op.verb == OP_PAUSE);
	}
	return found;
}

/* One who moves it is slower than another: the policy that he knew may come after this one. */
static bool
is_crowded(struct world *w, unsigned queue)
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

static void
end_policy(struct world *w, struct call *c)
{
	struct model_queue *q = &w->model.queues[c->queue];

	if (c->op.rc == SLU_ENOTFOUND && c->op.verb == OP_PAUSE && !q->known)
		return;
	if (cannot(w, c, c->op.rc))
		return;
	if (c->op.rc)
		world_fail(w, "%s was refused: %d, %s", op_verb_name(c->op.verb), c->op.rc,
			   c->op.err.text);
	if (c->op.verb != OP_POLICY_GET)
		q->doubt |= is_crowded(w, c->queue) || is_setting(w, c->queue);
	if (c->op.verb == OP_PAUSE)
		q->policy.paused = c->op.policy.paused;
	else if (c->op.verb == OP_POLICY_SET)
		q->policy = c->op.policy;
	if (!q->doubt && !is_setting(w, c->queue) && !world_is_behind(w, c->queue) && q->set < c->turn &&
	    !model_same_policy(&q->policy, &c->op.policy))
		world_fail(w, "queue %u has another policy", c->queue);
	if (c->op.verb != OP_POLICY_GET) {
		q->set = w->turn;
		q->known = true;
	}
}

/* ---- Looking ---- */

static void
end_get(struct world *w, struct call *c)
{
	const struct model_msg *x = model_find(&w->model, c->op.id);

	if (c->op.rc == 0 && (!x || x->queue != c->queue) && !world_is_taken(w, c->op.shard, c->op.id))
		world_fail(w, "I3: get of %" PRIu64 ", which is gone", c->op.id);
	if (c->op.rc == 0 && x)
		world_check_record(w, c->op.engine, &c->rows[0], x);
	else if (!cannot(w, c, c->op.rc) && c->op.rc != SLU_ENOTFOUND)
		world_fail(w, "get of %" PRIu64 ": %d", c->op.id, c->op.rc);
	else if (c->op.rc == SLU_ENOTFOUND && x && x->queue == c->queue && world_is_sure(w, x) && x->to &&
		 x->to < c->turn && !world_may_be_dead(w, x))
		world_fail(w, "I1: get does not find %" PRIu64, c->op.id);
}

static void
end_look(struct world *w, struct call *c)
{
	if (c->op.rc && c->op.rc != SLU_ENOTFOUND && !cannot(w, c, c->op.rc))
		world_fail(w, "%s was refused: %d, %s", op_verb_name(c->op.verb), c->op.rc,
			   c->op.err.text);
	for (unsigned i = 0; c->op.verb == OP_PEEK && i < c->op.n_rows; i++)
		if (!model_find(&w->model, c->rows[i].id))
			world_fail(w, "I3: a peek shows %" PRIu64, c->rows[i].id);
}

static void
end_result(struct world *w, struct call *c)
{
	const int rc = c->op.rc;
	unsigned at;
	const bool kept = model_keeps_result(&w->model, c->op.id, &at);
	const struct model_result *r = &w->model.results[at];
	const bool mine = kept && slice_eq(world_space(r->queue), c->op.space);
	const struct model_msg *x = model_find(&w->model, c->op.id);

	if (rc == 0 && !kept && x && is_settling(w, x, false))
		return; /* who gave it has no answer yet */
	if (rc == 0 && (!mine || (!r->doubt && r->text != (c->op.result.pin != NULL))))
		world_fail(w, "%" PRIu64 " has a result that nobody gave", c->op.id);
	if (rc == 0 && c->op.result.pin)
		world_check_text(w, c->op.engine, &c->op.result, 'r', c->op.id);
	if (rc && rc != SLU_ETIMEOUT && rc != SLU_ENOTFOUND && !cannot(w, c, rc) &&
	    !(rc == SLU_ECLOSED && w->draining))
		world_fail(w, "a result was refused: %d", rc);
	if ((rc == SLU_ENOTFOUND || rc == SLU_ETIMEOUT) && mine && r->queue == c->queue &&
	    !r->doubt && world_latest(w) < r->from && c->op.wait == 0 && r->turn < c->turn)
		world_fail(w, "the result of %" PRIu64 " is lost: %d", c->op.id, rc);
}

/* ---- Locks ---- */

static bool
is_of_message(const struct call *c)
{
	return c->queue < MODEL_QUEUES;
}

/* The state of a message: whoever has it may write it. */
static void
end_state(struct world *w, const struct call *c)
{
	struct model_msg *x = model_find(&w->model, c->op.id);
	const bool mine = x && x->queue == c->queue && x->token == c->op.lock.token;

	if (c->op.rc == SLU_EFULL && w->limited)
		return;
	if (c->op.rc && c->op.rc != SLU_ELEASE && !cannot(w, c, c->op.rc))
		world_fail(w, "state of %" PRIu64 ": %d, %s", c->op.id, c->op.rc, c->op.err.text);
	if (c->op.rc == SLU_ELEASE && mine && is_held(w, x))
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
static void
end_lock(struct world *w, struct call *c)
{
	if (is_of_message(c))
		end_state(w, c);
	else
		world_end_lock(w, c, world_lane_now(w, c->op.shard));
}

/* ---- All ---- */

typedef void end_fn(struct world *w, struct call *c);

static end_fn *const ends[OP_VERBS] = {
	[OP_ENQUEUE] = end_enqueue,
	[OP_CLAIM] = end_claim,
	[OP_RETURN] = end_return,
	[OP_ACK] = end_settle,
	[OP_NACK] = end_settle,
	[OP_EXTEND] = end_settle,
	[OP_REDRIVE] = end_manage,
	[OP_DELETE] = end_manage,
	[OP_GET] = end_get,
	[OP_PEEK] = end_look,
	[OP_RESULT] = end_result,
	[OP_STATS] = end_look,
	[OP_PURGE] = end_purge,
	[OP_PAUSE] = end_policy,
	[OP_POLICY_GET] = end_policy,
	[OP_POLICY_SET] = end_policy,
	[OP_ACQUIRE] = end_lock,
	[OP_KEEPALIVE] = end_lock,
	[OP_RELEASE] = end_lock,
	[OP_STATE_GET] = end_lock,
	[OP_STATE_PUT] = end_lock,
	[OP_STATE_REMOVE] = end_lock,
	[OP_DESCRIBE] = end_lock,
};

/* Answers after which nothing has happened. */
static bool
is_refusal(struct world *w, const struct call *c)
{
	const int rc = c->op.rc;

	if (rc == SLU_ECANCELED && !c->canceled)
		world_fail(w, "%u was canceled by nobody", c->serial);
	if (rc == SLU_EDOWN && !world_is_down(w, c->queue))
		world_fail(w, "%u failed: %d, %s", c->serial, rc, c->op.err.text);
	if (rc == SLU_ECLOSED && !w->draining)
		world_fail(w, "%u: nobody has closed anything", c->serial);
	return rc == SLU_ECANCELED || rc == SLU_EDOWN || rc == SLU_ECLOSED || rc == SLU_EMOVED ||
	       rc == SLU_EBUSY;
}

static bool
moving_hears(struct world *w, struct call *c)
{
	w->turn++;
	if (w->dying || c->op.rc == SLU_EUNKNOWN) {
		if (!w->dying && !op_changes(c->op.verb) && !world_is_down(w, c->queue))
			world_fail(w, "%u: nothing has failed, and its outcome is unknown", c->serial);
		doubt(w, c);
		return false;
	}
	if (is_refusal(w, c)) {
		if (c->op.verb == OP_CLAIM) /* a former shard may have granted it something, and failed */
			doubt_queue(w, c->queue, w->failing || w->disk->dead ? DOUBT_STATE : 0);
		forget_puts(w, c);
		return false;
	}
	ends[c->op.verb](w, c);
	return true;
}

/* ---- Rounds ---- */

static void
moving_begins(struct world *w)
{
	(void)w;
}

/* Claims and extends are synced within a second. */
static void
moving_ends(struct world *w, unsigned shard)
{
	const slu_time mono = clock_mono(&w->clock.clock);

	world_see_hurt(w, shard);
	EACH_MSG(x, &w->model)
	{
		if (x->lane != shard || w->shards[shard].hurt)
			continue;
		if (x->written + SLU_SEC <= mono)
			x->doubt &= (unsigned)~DOUBT_POWER;
		if (x->doubt & DOUBT_FRESH) {
			x->doubt = (x->doubt | DOUBT_POWER) & (unsigned)~DOUBT_FRESH;
			x->written = mono;
		}
	}
}

static void
moving_misses(struct world *w, unsigned shard)
{
	(void)w;
	(void)shard;
}

/* Can anything of the queue be claimed, on whichever shard? A batch that is set aside may
 * hold it up. */
static bool
is_ready(struct world *w, unsigned queue)
{
	bool ready = false;

	for (unsigned i = 0; i < w->n_shards; i++) {
		struct ledger *l = log_ledger(w->shards[i].engine);
		const uint32_t h = ledger_queue_find(l, world_space(queue), world_queue(queue));
		struct ledger_queue_view v;
		uint32_t msg, n;

		if (h == SLAB_NONE)
			continue;
		if (world_batch(w, i, queue))
			return false;
		ledger_queue_get(l, h, &v);
		if (v.policy->paused)
			return false;
		ready |= ledger_peek(l, h, &msg, 1, &n) == 0 && n > 0;
	}
	return ready;
}

/* Who waits where the queue lives is told when another shard has something, or asks there again
 * after a second. */
static void
check_starving(struct world *w, struct call *c, slu_time now)
{
	if (!is_ready(w, c->queue))
		c->starved = 0;
	else if (!c->starved)
		c->starved = now;
	else if (c->starved + 2 * RELAY_SLICE < now)
		world_fail(w, "claim %u waits, and there is something", c->serial);
}

static void
moving_rests(struct world *w)
{
	const slu_time now = clock_boot(&w->clock.clock);

	EACH(i, w->calls) {
		struct call *c = &w->calls[i];

		if (c->state != CALL_POSTED || world_is_down(w, c->queue))
			continue;
		if (!c->rested)
			c->rested = now;
		if (c->ends < now && c->rested + RELAY_BUSY + SLU_SEC < now)
			world_fail(w, "%s %u waits for too long", op_verb_name(c->op.verb), c->serial);
		if (c->op.verb == OP_CLAIM && !c->canceled)
			check_starving(w, c, now);
	}
}

static bool
moving_adopts(struct world *w)
{
	for (unsigned i = 0; i < w->n_shards; i++)
		for (unsigned k = 0; k < i; k++) {
			const slu_time apart = w->shards[i].offset - w->shards[k].offset;

			w->skew = apart > w->skew ? apart : -apart > w->skew ? -apart
									      : w->skew;
		}
	return world_look(w, true);
}

static void
moving_verifies(struct world *w)
{
	for (unsigned i = 0; i < w->n_shards; i++)
		if (w->shards[i].failed)
			return;
	(void)world_look(w, false);
}

const struct judge judge_moving = {
	.posts = moving_posts,
	.hears = moving_hears,
	.begins = moving_begins,
	.ends = moving_ends,
	.misses = moving_misses,
	.rests = moving_rests,
	.adopts = moving_adopts,
	.verifies = moving_verifies,
};
