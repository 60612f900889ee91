/*
 * sim_moving_look.c - all that is there, on whichever shard, while queues move or after.
 *
 * A message that is set aside (MOVE-6 of engine/move.h) may be on the other shard already, or have
 * been there and be gone: then what is set aside is a shadow, and will be dropped.
 */
#include "sim_moving.h"

#include "core/ledger/check.h"

/* ---- One row ---- */

static bool
is_waiting(const struct op_row *row)
{
	return row->state != MSG_LEASED && row->state != MSG_DEAD;
}

/* It was leased when it was last heard of. */
static bool
fits_lease(struct sim_world *w, const struct op_row *row, const struct sim_msg *x, bool adopt)
{
	const bool over = world_is_lease_over(w, x);

	if (row->state == MSG_LEASED)
		return row->token == x->token && row->attempts == x->attempts &&
		       row->failures == x->failures && (adopt ? row->until >= x->until : row->until == x->until);
	if (x->weak) /* it went back */
		return row->attempts + 1u == x->attempts || row->failures == x->failures + 1;
	return over && row->attempts == x->attempts && row->failures == x->failures + 1;
}

/* It waited. What was due on one shard is due on the next, whatever its clock says. */
static bool
fits_wait(struct sim_world *w, const struct op_row *row, const struct sim_msg *x)
{
	if (row->attempts != x->attempts || row->failures != x->failures)
		return false;
	if (row->state == MSG_DEAD)
		return world_may_be_dead(w, x) || row->failures >= row->max_attempts;
	if (!is_waiting(row))
		return false;
	return row->expires == x->expires &&
	       (row->due == x->due || (row->due < x->due && x->due <= world_latest(w)));
}

static bool
fits(struct sim_world *w, const struct op_row *row, const struct sim_msg *x, bool adopt)
{
	if (x->state == M_DEAD)
		return row->state == MSG_DEAD && row->attempts == x->attempts &&
		       row->failures == x->failures;
	return x->state == M_LEASED ? fits_lease(w, row, x, adopt) : fits_wait(w, row, x);
}

static void
check_row(struct sim_world *w, const struct op_row *row, const struct sim_msg *x, bool has_error, bool adopt)
{
	const unsigned doubts = adopt && w->lost ? DOUBT_POWER | DOUBT_FRESH : 0;

	if (row->prio != x->prio)
		world_fail(w, "I1: %" PRIu64 " has another priority", x->id);
	if (x->error && !has_error && world_is_sure(w, x))
		world_fail(w, "the error of %" PRIu64 " is lost", row->id);
	if (!world_is_sure(w, x) || (x->doubt & doubts) || !x->to || fits(w, row, x, adopt))
		return;
	world_fail(w,
		   "I1: %" PRIu64 " is not as it was: state %d, want %d; token %" PRIu64 ", %" PRIu64
		   "; until %" PRId64 ", %" PRId64 "; due %" PRId64 ", %" PRId64 "; expires %" PRId64
		   ", %" PRId64 "; attempts %u, %u; failures %u, %u; weak %d",
		   row->id, row->state, x->state, row->token, x->token, row->until, x->until,
		   row->due, x->due, row->expires, x->expires, row->attempts, x->attempts,
		   row->failures, x->failures, x->weak);
}

/* Nobody doubts it but for an op that is on its way: that will say. */
static bool
is_going(struct sim_world *w, const struct sim_msg *x)
{
	return !world_is_sure(w, x) && !(x->doubt & (DOUBT_IN | DOUBT_OUT | DOUBT_STATE));
}

/* What is there is right from now on; but what is only set aside may have been given, and gone.
 * An end of a lease that was not synced may be undone. */
static void
take_over(struct sim_world *w, const struct op_row *row, struct sim_msg *x, unsigned lane, bool taken,
	  bool adopt)
{
	const bool ended = x->state == M_LEASED && row->state != MSG_LEASED;

	x->seen = true;
	if (is_going(w, x) && !adopt)
		return;
	x->state = row->state == MSG_LEASED ? M_LEASED : row->state == MSG_DEAD ? M_DEAD
										: M_WAIT;
	x->holds = row->flags & MSG_HOLDS;
	if (row->state == MSG_LEASED) {
		x->token = row->token;
		x->until = row->until;
	}
	if (x->state == M_WAIT && (ended || !x->since))
		x->since = w->turn;
	x->weak &= x->state == M_LEASED;
	x->due = row->due;
	x->expires = row->expires;
	x->attempts = row->attempts;
	x->failures = row->failures;
	x->lane = lane;
	x->doubt &= (taken ? DOUBT_OUT : 0) | (adopt ? 0 : DOUBT_POWER | DOUBT_FRESH);
	if (ended && !adopt)
		x->doubt |= DOUBT_FRESH;
	if (ended && taken) /* a mover ended the lease; or it was given, handed out and has died there */
		x->doubt |= DOUBT_OUT | DOUBT_STATE;
}

/* ---- All rows ---- */

bool
world_is_taken(struct sim_world *w, unsigned lane, uint64_t id)
{
	struct ledger *l = logengine_ledger(w->shards[lane].engine);
	const uint32_t msg = ledger_find_any(l, id);
	struct ledger_view v = { 0 };

	if (msg != SLAB_NONE)
		ledger_get(l, msg, &v);
	return v.taken;
}

bool
world_has_shadow(struct sim_world *w, uint64_t id)
{
	bool has = false;

	for (unsigned i = 0; i < w->n_shards; i++)
		has |= world_is_taken(w, i, id);
	return has;
}

uint64_t
world_batch(struct sim_world *w, unsigned lane, unsigned queue)
{
	struct ledger *l = logengine_ledger(w->shards[lane].engine);
	const uint32_t h = ledger_queue_find(l, world_space(queue), world_queue(queue));
	struct ledger_moving v = { 0 };

	if (h != SLAB_NONE)
		ledger_moving(l, h, &v);
	return v.batch;
}

static unsigned
lane_of(struct sim_world *w, const struct engine *e)
{
	unsigned lane = 0;

	while (w->shards[lane].engine != e)
		lane++;
	return lane;
}

/* It was given, and something has happened to it since. */
static bool
is_shadow(struct sim_world *w, const struct op_row *row, const struct sim_msg *x)
{
	return world_is_sure(w, x) && x->to && (!fits(w, row, x, true) || (x->error && !row->error.pin));
}

static void
see_row(struct sim_world *w, size_t i, bool adopt)
{
	const struct op_row *row = &w->rows[i];
	struct engine *engine = w->engines[i];
	const unsigned lane = lane_of(w, engine);
	struct sim_msg *x = model_find(&w->model, row->id);
	const bool taken = world_is_taken(w, lane, row->id);
	bool has_error;

	if (taken && (x ? x->seen || is_shadow(w, row, x) : model_is_gone(&w->model, row->id)))
		return;
	if (!x)
		world_fail(w, "I3: %" PRIu64 " is on shard %u, and %s", row->id, lane,
			   model_is_gone(&w->model, row->id) ? "was gone" : "nobody put it");
	if (x->seen)
		world_fail(w, "I8: %" PRIu64 " is there twice", row->id);
	world_check_record(w, engine, row, x);
	has_error = row->error.pin && world_check_text(w, engine, &row->error, 'e', row->id);
	check_row(w, row, x, has_error, adopt);
	x->error = has_error;
	take_over(w, row, x, lane, taken, adopt);
}

/* I1: accepted and not there. */
static void
miss(struct sim_world *w, struct sim_msg *x)
{
	if (world_is_sure(w, x) && !(world_may_be_dead(w, x) && w->model.queues[x->queue].retires))
		world_fail(w, "I1: %" PRIu64 " was accepted and is lost: queue %u, state %d", x->id,
			   x->queue, x->state);
}

/* Is the call that puts it still on its way? */
static bool
is_coming(const struct sim_world *w, const struct sim_msg *x)
{
	bool found = false;

	EACH(i, w->calls)
		found |= w->calls[i].state == CALL_POSTED && w->calls[i].serial == x->call;
	return found;
}

/* It was never there, or may have been: then it is unknown what has become of its key. */
static void
drop(struct sim_world *w, struct sim_msg *x)
{
	struct sim_model *m = &w->model;

	if ((x->doubt & DOUBT_IN) && !(x->doubt & DOUBT_OUT) && !m->queues[x->queue].retires) {
		model_forget(m, x);
		return;
	}
	if (x->idem >= 0)
		m->idems[x->queue][x->idem].doubt = true;
	world_gone(w, x, 0);
}

static void
drop_missing(struct sim_world *w)
{
	struct sim_model *m = &w->model;

	for (unsigned i = 0; i < m->n;) {
		struct sim_msg *x = &m->msgs[i];

		if (!x->seen)
			miss(w, x);
		if (x->seen || is_coming(w, x) || is_going(w, x))
			i++;
		else
			drop(w, x);
	}
}

static void
check_idems(struct sim_world *w)
{
	EACH_MSG(x, &w->model)
	for (const struct sim_msg *y = w->model.msgs; y < x; y++)
		if (x->idem >= 0 && x->idem == y->idem && x->queue == y->queue && x->seen && y->seen)
			world_fail(w, "I2: %" PRIu64 " and %" PRIu64 " have one key", y->id, x->id);
}

/* What was in doubt is not, if its message is there. */
static void
adopt_idems(struct sim_world *w)
{
	EACH_MSG(x, &w->model)
	if (x->idem >= 0 && x->seen && w->model.idems[x->queue][x->idem].doubt)
		w->model.idems[x->queue][x->idem] = (struct sim_idem){
			.id = x->id,
			.live = true,
			.turn = w->turn,
		};
}

static void
check_ledgers(struct sim_world *w)
{
	for (unsigned i = 0; i < w->n_shards; i++) {
		const char *wrong = ledger_scan_check(logengine_ledger(w->shards[i].engine));

		if (!wrong)
			wrong = locks_scan_check(logengine_locks(w->shards[i].engine));
		if (wrong)
			world_fail(w, "I9: shard %u: %s", i, wrong);
	}
}

/* ---- What is beside messages ---- */

static bool
look_at_policy(struct sim_world *w, unsigned queue, bool adopt)
{
	struct model_queue *q = &w->model.queues[queue];
	struct op op;

	op_init(&op, OP_POLICY_GET, world_space(queue), world_queue(queue), NULL, NULL);
	if (!world_call_now(w, &op))
		return false;
	if (op.rc && world_is_down(w, queue))
		return false;
	if (op.rc && w->limited)
		return true; /* no room for the marks of a new map */
	if (op.rc)
		world_fail(w, "the policy of queue %u: %d, %s", queue, op.rc, op.err.text);
	if (!q->doubt && !world_is_behind(w, queue) && !model_same_policy(&op.policy, &q->policy))
		world_fail(w, "the policy of queue %u is lost", queue);
	if (adopt) {
		q->policy = op.policy;
		q->doubt = false;
		q->known = false;
	}
	return true;
}

static bool
look_at_result(struct sim_world *w, unsigned i)
{
	struct sim_kept *r = &w->model.results[i];
	struct op op;

	op_init(&op, OP_RESULT, world_space(r->queue), world_queue(r->queue), NULL, NULL);
	op.id = r->id;
	if (!world_call_now(w, &op))
		return false;
	if (op.rc && !r->doubt && world_latest(w) < r->from)
		world_fail(w, "the result of %" PRIu64 " is lost: %d", r->id, op.rc);
	if (!op.rc && op.result.pin)
		world_check_text(w, op.engine, &op.result, 'r', r->id);
	if (!op.rc && !r->doubt && r->text != (op.result.pin != NULL))
		world_fail(w, "the result of %" PRIu64 " is another", r->id);
	op_unpin(&op);
	return true;
}

static bool
look_beside(struct sim_world *w, bool adopt)
{
	for (unsigned q = 0; q < w->n_queues; q++)
		if (!look_at_policy(w, q, adopt))
			return false;
	for (unsigned i = 0; i < w->model.n_results; i++)
		if (!look_at_result(w, i))
			return false;
	return true;
}

/* ---- All ---- */

static bool
look(struct sim_world *w, bool adopt)
{
	const size_t n = world_list(w);

	if (n == SIZE_MAX)
		return false;
	EACH_MSG(x, &w->model)
	x->seen = false;
	for (int shadows = 0; shadows < 2; shadows++) /* those that are set aside come last */
		for (size_t i = 0; i < n; i++)
			if (world_is_taken(w, lane_of(w, w->engines[i]), w->rows[i].id) == shadows)
				see_row(w, i, adopt);
	world_unlist(w, n);
	drop_missing(w);
	check_idems(w);
	adopt_idems(w);
	check_ledgers(w);
	return look_beside(w, adopt) && world_check_locks(w, adopt);
}

bool
world_look(struct sim_world *w, bool adopt)
{
	static struct sim_model before;
	bool whole;

	before = w->model;
	whole = look(w, adopt);
	if (!whole)
		w->model = before; /* but what fell due may have happened, and been written */
	return whole;
}
