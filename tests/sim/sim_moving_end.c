/*
 * sim_moving_end.c - how a schedule with moves ends: movers may finish, batches that were
 * left are finished, and one shard gets all. Then all that was accepted can be had.
 */
#include "sim_moving.h"

#include "broker/move/follow.h"

/* ---- Counts ---- */

/* Returns false if the disk failed. An unused queue counts nothing. */
static bool
ask_stats(struct sim_world *w, unsigned queue, struct op_queue *out)
{
	struct op op;

	*out = (struct op_queue){ 0 };
	op_init(&op, OP_STATS, world_space(queue), world_queue(queue), NULL, NULL);
	op.queues = out;
	op.max_queues = 1;
	return world_call_now(w, &op);
}

/* I9: what the shards count of a queue is what was just seen. */
static void
check_counts(struct sim_world *w, unsigned queue)
{
	unsigned n[M_DEAD + 1] = { 0 };
	struct op_queue stats;
	const uint32_t *is = stats.count;

	if (!ask_stats(w, queue, &stats))
		return;
	EACH_MSG(x, &w->model)
	n[x->state] += x->queue == queue && x->seen;
	if (is[MSG_DEAD] != n[M_DEAD] || is[MSG_LEASED] != n[M_LEASED] ||
	    is[MSG_READY] + is[MSG_DELAYED] + is[MSG_HELD] != n[M_WAIT])
		world_fail(w, "I9: queue %u counts %u dead, %u leased; there are %u, %u and %u that wait",
			   queue, is[MSG_DEAD], is[MSG_LEASED], n[M_DEAD], n[M_LEASED], n[M_WAIT]);
}

/* ---- One shard has all ---- */

void
world_pass_hour(struct sim_world *w)
{
	fakeclock_advance(&w->clock, SLU_HOUR);
	world_idle(w);
	world_let_movers_end(w);
}

/* Leases end, and waits; the mender has come. */
static void
pass_hours(struct sim_world *w)
{
	for (int i = 0; i < 4; i++)
		world_pass_hour(w);
}

static void
gather(struct sim_world *w, unsigned queue, unsigned to, bool force)
{
	for (unsigned i = 0; i < w->n_shards; i++)
		if (i != to)
			world_move_queue(w, queue, i, to, force);
}

static void
check_left(struct sim_world *w, unsigned to)
{
	for (unsigned i = 0; i < w->n_shards; i++) {
		struct ledger_size size;
		struct locks_size locks;

		ledger_size(logengine_ledger(w->shards[i].engine), &size);
		locks_size(logengine_locks(w->shards[i].engine), &locks);
		if (i != to && (size.messages || size.results || locks.messages || locks.leases))
			world_fail(w, "SH-72: shard %s still has %u messages, %u results, %u states, %u leases",
				   broker_shard_name(w->broker, i), size.messages, size.results,
				   locks.messages, locks.leases);
	}
	world_count_states(w);
}

/* Somebody asks for each queue now and then. So whatever was left is found, and finished. */
static void
wait_for_moverepair(struct sim_world *w)
{
	struct op_queue stats;

	for (int i = 0; i < 12; i++) {
		for (unsigned q = 0; q < w->n_queues; q++)
			(void)ask_stats(w, q, &stats); /* whatever comes of it */
		fakeclock_advance(&w->clock, FOLLOW_STUCK / 2);
		world_idle(w);
		world_let_movers_end(w);
	}
	for (unsigned i = 0; i < w->n_shards; i++)
		for (unsigned q = 0; q < w->n_queues; q++)
			if (world_batch(w, i, q))
				world_fail(w, "SH-72: a batch of queue %u is left on %s, and nobody finishes it",
					   q, broker_shard_name(w->broker, i));
}

void
world_gather(struct sim_world *w)
{
	const unsigned to = (unsigned)world_dice(w, w->n_shards);
	const bool force = world_chance(w, 50);

	world_let_movers_end(w);
	wait_for_moverepair(w);
	if (!force)
		pass_hours(w);
	for (unsigned q = 0; q < w->n_queues; q++)
		gather(w, q, to, force);
	(void)world_look(w, false);
	for (unsigned q = 0; q < w->n_queues; q++)
		check_counts(w, q);
	pass_hours(w);
	for (unsigned q = MODEL_QUEUES; w->locks && q < MODEL_PLACES; q++)
		gather(w, q, to, false); /* leases have ended by themselves */
	(void)world_look(w, false);
	check_left(w, to);
}

/* ---- All can be had ---- */

static void
send_now(struct sim_world *w, struct sim_call *c)
{
	world_send(w, c);
	for (int i = 0; i < 100 && c->state == CALL_POSTED; i++)
		world_round(w);
	if (c->state == CALL_POSTED)
		world_fail(w, "%s is not answered at the end", op_verb_name(c->op.verb));
}

/* False: nothing is ready. */
static bool
claim_and_ack(struct sim_world *w, unsigned queue)
{
	struct sim_call *c = world_free_call(w);
	struct sim_lease l;

	world_start(w, c, OP_CLAIM, queue);
	c->op.max_rows = 1;
	send_now(w, c);
	if (c->state != CALL_READING)
		return false;
	l = w->leases[--w->n_leases];
	op_unpin(&c->op);
	world_start(w, c, OP_ACK, queue);
	c->items[0] = (struct op_item){ .id = l.id, .token = l.token };
	c->op.n_items = 1;
	send_now(w, c);
	return true;
}

/* The next hours, too: what is delayed, and retries. */
static void
drain_queue(struct sim_world *w, unsigned queue)
{
	struct op op;

	op_init(&op, OP_POLICY_SET, world_space(queue), world_queue(queue), NULL, NULL);
	op.policy = policy_default;
	if (!world_call_now(w, &op) || op.rc)
		world_fail(w, "a policy was refused at the end: %d, %s", op.rc, op.err.text);
	w->model.queues[queue].policy = policy_default;
	for (int i = 0; i < 4; i++) {
		while (claim_and_ack(w, queue))
			;
		fakeclock_advance(&w->clock, SLU_HOUR + w->skew);
		world_idle(w);
	}
}

void
world_drain(struct sim_world *w)
{
	w->n_leases = 0;
	for (unsigned q = 0; q < w->n_queues; q++)
		drain_queue(w, q);
	(void)world_look(w, false);
	EACH_MSG(x, &w->model)
	if (x->state != M_DEAD)
		world_fail(w, "I1: %" PRIu64 " is there, and cannot be had: state %d, due %" PRId64 " at %" PRId64,
			   x->id, x->state, x->due, world_latest(w));
}
