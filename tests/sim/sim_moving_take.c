/*
 * sim_moving_take.c - messages are handed out, given back and settled by their holders.
 */
#include "sim_moving.h"

/* ---- Claim ---- */

/* Of one key, and neither has been handed out: must y go first? */
static bool
is_before(struct sim_world *w, const struct sim_msg *y, const struct sim_msg *x)
{
	if (y->redriven || x->redriven || !y->to)
		return false;
	if (!y->delayed && !x->delayed)
		return y->from == x->from ? y->id < x->id : y->to < x->from;
	return x->to && y->due + w->skew < x->due;
}

/* LEDGER-3, MOVE-3: one of a key at a time, and in their order. */
static void
check_key(struct sim_world *w, const struct sim_msg *x)
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
check_token(struct sim_world *w, const struct sim_msg *x, uint64_t token)
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
check_stood(struct sim_world *w, const struct op_row *row, const struct sim_msg *x, unsigned lane)
{
	const bool over = world_is_lease_over(w, x);

	if (world_is_held(w, x))
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
keep_lease(struct sim_world *w, const struct sim_call *c, const struct op_row *row)
{
	if (w->n_leases < WORLD_LEASES)
		w->leases[w->n_leases++] = (struct sim_lease){ row->id, row->token, c->queue };
	w->sum.claims++;
	world_note(w, "granted", row->id, row->token, c->op.route.lane);
}

/* A mover with force has ended this lease, and the next one was answered first. */
static bool
is_stale(const struct op_row *row, const struct sim_msg *x)
{
	return x->weak && row->token < x->token;
}

static void
grant(struct sim_world *w, struct sim_call *c, const struct op_row *row)
{
	struct sim_msg *x = model_find(&w->model, row->id);

	if (!x && w->model.queues[c->queue].forcing && model_is_gone(&w->model, row->id))
		return; /* it went back by force, and was deleted, before this was answered */
	if (!x)
		world_fail(w, "I3: %" PRIu64 " was handed out and is %s", row->id,
			   model_is_gone(&w->model, row->id) ? "gone" : "not known");
	if (x->queue != c->queue)
		world_fail(w, "%" PRIu64 " is of another queue", row->id);
	keep_lease(w, c, row);
	if (is_stale(row, x))
		return;
	check_stood(w, row, x, c->op.route.lane);
	check_key(w, x);
	check_token(w, x, row->token);
	x->vague_state |= world_is_settling(w, x, true);
	x->token = row->token;
	x->attempts = row->attempts;
	x->failures = row->failures;
	x->state = M_LEASED;
	x->holds = true;
	x->lane = c->op.route.lane;
	x->until = row->until;
	x->weak = w->model.queues[c->queue].forcing > 0;
	x->doubt = DOUBT_FRESH;
	x->expires = row->expires;
	x->due = row->due;
	world_check_record(w, c->op.engine, row, x);
	if (c->op.claim.stateful)
		world_check_state(w, row, x);
}

void
judge_claim(struct sim_world *w, struct sim_call *c)
{
	if (world_cannot(w, c, c->op.rc))
		return;
	if (c->op.rc)
		world_fail(w, "W4: a claim was refused: %d, %s", c->op.rc, c->op.err.text);
	if (world_is_down(w, c->queue)) /* what a shard granted before it failed is unknown */
		world_doubt_queue(w, c->queue, DOUBT_STATE);
	for (unsigned i = 0; i < c->op.n_rows; i++)
		grant(w, c, &c->op.rows[i]);
}

static void
wait_again(struct sim_world *w, struct sim_msg *x)
{
	x->state = M_WAIT;
	x->since = w->turn;
	x->doubt |= DOUBT_FRESH;
}

void
judge_return(struct sim_world *w, struct sim_call *c)
{
	for (unsigned i = 0; i < c->op.n_rows; i++) {
		const struct op_row *row = &c->op.rows[i];
		struct sim_msg *x = model_find(&w->model, row->id);
		const bool mine = x && x->token == row->token;
		const bool may_stay = w->tight || w->failing || (c->op.claim.spare && i == 0);

		if (row->state != MSG_READY && mine && world_is_held(w, x) && !may_stay)
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
world_gone(struct sim_world *w, struct sim_msg *x, slu_time at)
{
	const unsigned queue = x->queue;
	const uint64_t id = x->id;
	struct sim_idem *idem = x->idem < 0 ? NULL : &w->model.idems[queue][x->idem];

	model_remove(&w->model, x, 1, 1);
	if (idem && idem->id == id)
		idem->must = at + w->model.queues[queue].least_window;
}

static void
ack_one(struct sim_world *w, struct sim_call *c, const struct op_item *it, struct sim_msg *x)
{
	if (x->keep)
		model_add_result(&w->model, &(struct sim_kept){
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
nack_one(struct sim_world *w, const struct op_item *it, struct sim_msg *x)
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

/* Of two ops on their way at once, the op that is answered last may have run first. */
static void
extend_one(struct sim_world *w, const struct sim_call *c, const struct op_item *it, struct sim_msg *x)
{
	x->until = it->until;
	x->doubt |= DOUBT_FRESH | (c->turn < x->extended ? DOUBT_STATE : 0);
	x->extended = w->turn;
	if (w->n_leases < WORLD_LEASES)
		w->leases[w->n_leases++] = (struct sim_lease){ x->id, x->token, x->queue };
}

/* I5: a client that settles a message holds it. One op of several items may be answered long after some of
 * them were carried out, and others may have come between. */
static void
end_settled(struct sim_world *w, struct sim_call *c, unsigned i)
{
	const struct op_item *it = &c->items[i];
	struct sim_msg *x = model_find(&w->model, it->id);
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
end_unsettled(struct sim_world *w, struct sim_call *c, const struct op_item *it)
{
	const struct sim_msg *x = model_find(&w->model, it->id);

	if (world_cannot(w, c, it->rc) || it->rc == SLU_EBUSY || it->rc == SLU_EMOVED ||
	    (it->rc == SLU_ECLOSED && w->draining))
		return;
	if (it->rc != SLU_ENOTFOUND && it->rc != SLU_ELEASE)
		world_fail(w, "%s of %" PRIu64 ": %d", op_verb_name(c->op.verb), it->id, it->rc);
	if (x && x->queue == c->queue && it->token == x->token && world_is_held(w, x))
		world_fail(w, "I5: %s of %" PRIu64 " by token %" PRIu64 ", which has it: %d",
			   op_verb_name(c->op.verb), it->id, it->token, it->rc);
}

void
judge_settle(struct sim_world *w, struct sim_call *c)
{
	for (unsigned i = 0; i < c->op.n_items; i++) {
		if (c->items[i].rc == SLU_EUNKNOWN)
			world_doubt_item(w, c, &c->items[i]);
		if (c->items[i].rc == 0)
			end_settled(w, c, i);
		else
			end_unsettled(w, c, &c->items[i]);
	}
}
