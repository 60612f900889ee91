/*
 * lane_wait.c - ops that wait: which ops are parked, how a wait ends.
 */
#include "broker/lane_private.h"

#include "base/limit.h"
#include "engine/quota.h"

/* ---- The rules, by enum op_wait ---- */

static bool
has_no_rows(const struct op *op)
{
	return op->rc == 0 && op->n_rows == 0;
}

static bool
timed_out(const struct op *op)
{
	return op->rc == SLU_ETIMEOUT;
}

static bool
is_held(const struct op *op)
{
	return op->rc && op->lock.why == LOCK_HELD;
}

static const struct wait_rule {
	/* The engine has found nothing: the op goes on waiting. */
	bool (*found_nothing)(const struct op *op);
	bool parks;     /* is parked before it runs, if it may wait (DISPATCH-1 of dispatch.h) */
	bool takes;     /* takes something that others want: it does not overtake them */
	bool asks_last; /* runs once more when its time is over: the engine has the answer */
	int over;       /* rc when its time is over */
	int closed;     /* rc when the lane closes */
} rules[OP_WAITS] = {
	[OP_WAIT_MESSAGE] = { has_no_rows, .parks = true, .takes = true },
	[OP_WAIT_LOOK] = { has_no_rows, .parks = true },
	[OP_WAIT_HEAD] = { timed_out, .parks = true, .over = SLU_ETIMEOUT, .closed = SLU_ECLOSED },
	[OP_WAIT_KEY] = { is_held, .parks = true, .takes = true, .asks_last = true, .closed = SLU_ECLOSED },
	[OP_WAIT_RESULT] = { timed_out, .over = SLU_ETIMEOUT, .closed = SLU_ECLOSED },
};

static enum op_wait
wait_of(const struct op *op)
{
	return op_verbs[op->verb].waits;
}

/* ---- In ---- */

/* Ops that may wait are parked before they run, so that the first that came is served first;
 * an op that takes something does so, too, if it may not wait and others do. */
static bool
is_parked_first(const struct lane *s, const struct op *op)
{
	const struct wait_rule *const rule = &rules[wait_of(op)];

	if (!rule->parks || s->closed || s->draining || op->route.waited)
		return false;
	if (wait_of(op) == OP_WAIT_KEY && op->lock.key.n > LOCK_KEY_MAX)
		return false; /* no key: the engine refuses it */
	return op->wait > 0 || op->route.stalled || (rule->takes && dispatch_has_waiters(&s->dispatch, op));
}

/* LANE-7 */
static int
check_waits(const struct lane *s, const struct op *op, struct slu_err *err)
{
	const uint32_t here = s->quota ? quota_get(&s->quota->queue_waiting) : 0;
	const uint32_t all = s->quota ? quota_get(&s->quota->waiting) : 0;
	const bool key = wait_of(op) == OP_WAIT_KEY;
	const struct slice name = key ? op->lock.key : op->queue;

	if (op->wait == 0 || op->route.stalled)
		return 0;
	if (here && wait_of(op) != OP_WAIT_RESULT && dispatch_waiting(&s->dispatch, op) >= here)
		return limit_fail(err, SLU_EBUSY, LIMIT_QUEUE_WAITING, 0,
				  "%s %.*s: %u wait for it already", key ? "key" : "queue",
				  (int)name.n, name.p, here);
	if (all && quota_get(&s->quota->waits) - s->told + dispatch_count(&s->dispatch) >= all)
		return limit_fail(err, SLU_EBUSY, LIMIT_WAITING, 0,
				  "%u wait for messages, results and keys already", all);
	return 0;
}

static void
park(struct lane *s, struct op *op)
{
	struct slu_err err = { 0 };
	int rc;

	rc = check_waits(s, op, &err);
	if (!rc)
		rc = dispatch_park(&s->dispatch, op, !op->route.stalled);
	if (!rc && wait_of(op) == OP_WAIT_HEAD)
		dispatch_head_changed(&s->dispatch, op->space, op->queue); /* each watch compares with a head of its own */
	if (!rc)
		return;
	op_fail(op, rc, err.code ? &err : NULL);
	lane_answer(s, op);
}

bool
lane_parks(struct lane *s, struct op *op)
{
	if (!is_parked_first(s, op))
		return false;
	park(s, op);
	return true;
}

/* ---- After a run ---- */

/* LANE-18: a stream of another node. When this node stops, the other node sends the claim to the next owner. */
static bool
is_stream_of_other(const struct op *op)
{
	return op->route.forwarded && op->verb == OP_CLAIM && op->claim.stream && op->wait > 0;
}

bool
lane_still_waits(struct lane *s, struct op *op)
{
	const struct wait_rule *const rule = &rules[wait_of(op)];
	struct slu_err err;

	if (!rule->found_nothing || !rule->found_nothing(op))
		return false;
	if (s->draining && is_stream_of_other(op)) {
		op_fail(op, SLU_ECLOSED, NULL);
		return false;
	}
	if (rule->parks)
		return op->route.waiter != SLAB_NONE;
	if (s->closed || op->wait == 0)
		return false;
	if (check_waits(s, op, &err)) {
		op_fail(op, SLU_EBUSY, &err);
		return false;
	}
	return dispatch_park(&s->dispatch, op, false) == 0;
}

void
lane_unpark(struct lane *s, struct op *op)
{
	const bool leaves_some = op->route.waiter != SLAB_NONE && op->rc && rules[wait_of(op)].takes;

	dispatch_leave(&s->dispatch, op);
	if (leaves_some && wait_of(op) == OP_WAIT_KEY)
		dispatch_freed(&s->dispatch, op->space, op->lock.key);
	else if (leaves_some)
		dispatch_ready(&s->dispatch, op->space, op->queue, 1);
}

/* ---- The end of a wait ---- */

/* err explains it. */
static void
end_wait(struct lane *s, struct op *op, int rc, const struct slu_err *err)
{
	if (rc)
		op_fail(op, rc, err);
	else
		op->rc = 0;
	op->n_rows = 0;
	lane_answer(s, op);
}

void
lane_end_wait(struct lane *s, struct op *op, int rc)
{
	end_wait(s, op, rc == SLU_EDOWN ? (int)s->down.code : rc, &s->down);
}

static void
expire_wait(struct lane *s, struct op *op)
{
	const struct wait_rule *const rule = &rules[wait_of(op)];

	if (!rule->asks_last) {
		lane_end_wait(s, op, rule->over);
		return;
	}
	op->route.waited = true;
	op->route.arrived = s->now; /* or LANE-2 would hold up the rest */
	if (fairqueue_add(&s->fairqueue, op))
		lane_end_wait(s, op, SLU_ENOMEM);
}

/* LANE-20 */
static void
end_lapsed(struct lane *s)
{
	struct slu_err err;
	struct op *op;

	(void)slu_fail(&err, SLU_EMOVED, "shard %u: its store has not answered this node for so long that another node may own the shard",
		       s->index);
	while ((op = dispatch_any(&s->dispatch, true)) != NULL)
		end_wait(s, op, SLU_EMOVED, &err);
	if (!s->open)
		return;
	LIST_EACH_SAFE(n, &s->fairqueue.ages) {
		op = CONTAINER(n, struct op, route.age);
		if (op->wait == 0)
			continue;
		fairqueue_remove(&s->fairqueue, op);
		end_wait(s, op, SLU_EMOVED, &err);
	}
}

void
lane_end_waits(struct lane *s)
{
	const bool all = s->closed || s->failed;
	struct op *op;

	if (!all && atomic_load(&s->lapsed))
		end_lapsed(s);
	if (!all && !s->draining)
		return;
	while ((op = dispatch_any(&s->dispatch, !all)) != NULL) {
		if (!all && is_stream_of_other(op))
			lane_end_wait(s, op, SLU_ECLOSED);
		else if (s->hurried && !all)
			expire_wait(s, op);
		else
			lane_end_wait(s, op, s->failed ? SLU_EDOWN : rules[wait_of(op)].closed);
	}
}

void
lane_end_wait_away(struct lane *s, struct op *op)
{
	const struct wait_rule *const rule = &rules[wait_of(op)];

	lane_end_wait(s, op, s->hurried && !rule->asks_last ? rule->over : rule->closed);
}

void
lane_expire_waits(struct lane *s)
{
	struct op *op;

	while ((op = dispatch_expire(&s->dispatch, s->now)) != NULL)
		expire_wait(s, op);
}
