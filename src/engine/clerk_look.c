/*
 * clerk_look.c - ops that change nothing.
 */
#include "engine/clerk_in.h"

static void
add_row(struct clerk *k, struct op *op, uint32_t msg, uint64_t after)
{
	struct slu_err err = { 0 };
	const int rc = clerk_row(k, msg, true, &op->rows[op->n_rows], &err);

	if (rc)
		op_fail(op, rc, &err);
	else
		op->rows[op->n_rows++].after = after;
}

/* Fill rows until one fails; then there are none. */
static void
end_rows(struct op *op)
{
	if (!op->rc)
		return;
	op_unpin(op);
	op->n_rows = 0;
}

void
clerk_get(struct clerk *k, struct op *op)
{
	const uint32_t space = ledger_space_find(k->ledger, op->space);
	struct ledger_view v;
	uint32_t msg = SLAB_NONE;

	op->n_rows = 0;
	if (space != SLAB_NONE)
		msg = ledger_find(k->ledger, space, op->id);
	if (msg != SLAB_NONE && op->queue.n) {
		ledger_get(k->ledger, msg, &v);
		if (v.queue != clerk_queue(k, op))
			msg = SLAB_NONE;
	}
	if (msg == SLAB_NONE)
		op_fail(op, SLU_ENOTFOUND, NULL);
	else
		add_row(k, op, msg, 0);
}

void
clerk_peek(struct clerk *k, struct op *op)
{
	const uint32_t max = op->max_rows < LEDGER_PEEK_MAX ? op->max_rows : LEDGER_PEEK_MAX;
	const uint32_t queue = clerk_queue(k, op);
	uint32_t msgs[LEDGER_PEEK_MAX];
	uint32_t n = 0;
	int rc = 0;

	op->n_rows = 0;
	if (queue != SLAB_NONE)
		rc = ledger_peek(k->ledger, queue, msgs, max, &n);
	if (rc)
		op_fail(op, rc, NULL);
	for (uint32_t i = 0; i < n && !op->rc; i++)
		add_row(k, op, msgs[i], 0);
	end_rows(op);
}

void
clerk_watch(struct clerk *k, struct op *op)
{
	const uint32_t queue = clerk_queue(k, op);
	struct ledger_queue_view q;
	struct ledger_view v = { 0 };
	uint32_t msg, n = 0;
	int rc = 0;

	if (queue != SLAB_NONE)
		ledger_queue_get(k->ledger, queue, &q);
	if (queue != SLAB_NONE && !q.policy->paused)
		rc = ledger_peek(k->ledger, queue, &msg, 1, &n);
	if (n > 0)
		ledger_get(k->ledger, msg, &v);
	if (rc)
		op_fail(op, rc, NULL);
	else
		op_watch(op, v.id);
}

/* ---- List ---- */

/* The dead letter after the last one shown. When that one is dead no more, the list
 * starts again: nothing is left out. */
static uint32_t
dead_after(struct clerk *k, const struct op *op, uint32_t queue)
{
	struct ledger_view v;
	uint32_t msg;

	msg = op->cursor ? ledger_find_any(k->ledger, op->cursor) : SLAB_NONE;
	if (msg != SLAB_NONE) {
		ledger_get(k->ledger, msg, &v);
		if (v.state != MSG_DEAD || v.queue != queue)
			msg = SLAB_NONE;
	}
	return ledger_dead_next(k->ledger, queue, msg);
}

static void
list_dead(struct clerk *k, struct op *op, uint32_t queue)
{
	uint32_t msg = dead_after(k, op, queue);

	while (msg != SLAB_NONE && op->n_rows < op->max_rows && !op->rc) {
		struct ledger_view v;

		ledger_get(k->ledger, msg, &v);
		add_row(k, op, msg, v.id);
		msg = ledger_dead_next(k->ledger, queue, msg);
	}
	op->cursor = msg == SLAB_NONE || op->rc ? 0 : op->rows[op->n_rows - 1].id;
}

static void
list_any(struct clerk *k, struct op *op, uint32_t queue)
{
	const struct ledger_browse what = {
		.space = op->space.n ? ledger_space_find(k->ledger, op->space) : SLAB_NONE,
		.queue = queue,
		.state = op->state,
	};
	uint32_t cursor = op->cursor < LEDGER_SCAN_END ? (uint32_t)op->cursor
						       : LEDGER_SCAN_END;
	uint32_t msgs[ENGINE_SCAN_MAX];
	const uint32_t max = op->max_rows < ENGINE_SCAN_MAX ? op->max_rows : ENGINE_SCAN_MAX;
	uint32_t n = 0;

	if (op->space.n == 0 || what.space != SLAB_NONE)
		n = ledger_browse(k->ledger, &what, &cursor, msgs, max);
	else
		cursor = LEDGER_SCAN_END;
	for (uint32_t i = 0; i < n && !op->rc; i++)
		add_row(k, op, msgs[i], (uint64_t)msgs[i] + 1);
	op->cursor = cursor == LEDGER_SCAN_END ? 0 : cursor;
}

void
clerk_list(struct clerk *k, struct op *op)
{
	const uint32_t queue = op->queue.n ? clerk_queue(k, op) : SLAB_NONE;

	op->n_rows = 0;
	if (op->queue.n && queue == SLAB_NONE)
		op->cursor = 0;
	else if (op->queue.n && op->state == MSG_DEAD)
		list_dead(k, op, queue);
	else
		list_any(k, op, queue);
	end_rows(op);
}

/* ---- Results ---- */

void
clerk_result(struct clerk *k, struct op *op)
{
	const uint32_t space = ledger_space_find(k->ledger, op->space);
	struct ledger_result result = { 0 };
	struct slu_err err = { 0 };
	int rc = SLU_ENOTFOUND;

	op->result = (struct op_ref){ 0 };
	if (space != SLAB_NONE)
		rc = ledger_result(k->ledger, space, op->id, &result);
	if (rc == SLU_ENOTFOUND && space != SLAB_NONE &&
	    ledger_find(k->ledger, space, op->id) != SLAB_NONE)
		rc = SLU_ETIMEOUT;
	if (!rc && result.where)
		rc = k->ops->pin(k, result.where, &op->result, NULL, &err);
	op->until = result.until;
	if (rc)
		op_fail(op, rc, &err);
}

/* ---- Queues ---- */

static void
add_queue(struct clerk *k, struct op *op, uint32_t queue)
{
	struct op_queue *out = &op->queues[op->n_queues++];
	const slu_time oldest = ledger_oldest(k->ledger, queue);
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	*out = (struct op_queue){
		.totals = v.totals,
		.oldest = oldest == SLU_NEVER ? -1 : oldest < k->now ? k->now - oldest
								     : 0,
		.warn_depth = v.policy->warn_depth,
		.paused = v.policy->paused,
	};
	memcpy(out->count, v.count, sizeof out->count);
	op_name_queue(out, v.space_name, v.name, v.space_shown, v.shown);
}

void
clerk_stats(struct clerk *k, struct op *op)
{
	const uint32_t queue = clerk_queue(k, op);

	op->n_queues = 0;
	if (queue == SLAB_NONE)
		op_fail(op, SLU_ENOTFOUND, NULL);
	else
		add_queue(k, op, queue);
}

static bool
is_asked_for(const struct ledger_queue_view *v, const struct op *op, uint32_t space)
{
	if (op->space.n && v->space != space)
		return false;
	return op->queue.n ? slice_eq(slice_of(v->name), op->queue)
			   : !slice_eq(slice_of(v->name), SLICE(LOCK_QUEUE));
}

void
clerk_topics(struct clerk *k, struct op *op)
{
	const uint32_t space = op->space.n ? ledger_space_find(k->ledger, op->space)
					   : SLAB_NONE;
	uint32_t queue = op->cursor ? (uint32_t)(op->cursor - 1) : SLAB_NONE;
	struct ledger_queue_view v;
	uint32_t left = ENGINE_SCAN_MAX;
	struct slu_err err = { 0 };
	const int rc = !op->cursor && clerk_has_locks(op) ? clerk_open_locks(k, op, &err) : 0;

	op->n_queues = 0;
	op->cursor = 0;
	if (rc) {
		op_fail(op, rc, &err);
		return;
	}
	while ((queue = ledger_queue_next(k->ledger, queue)) != SLAB_NONE) {
		ledger_queue_get(k->ledger, queue, &v);
		if (is_asked_for(&v, op, space))
			add_queue(k, op, queue);
		if (--left == 0 || op->n_queues == op->max_queues) {
			op->cursor = queue + 1ull;
			return;
		}
	}
}

void
clerk_policy_get(struct clerk *k, struct op *op)
{
	const uint32_t queue = clerk_queue(k, op);
	struct ledger_queue_view v;

	op->policy = policy_default;
	if (queue == SLAB_NONE)
		return;
	ledger_queue_get(k->ledger, queue, &v);
	op->policy = *v.policy;
}

/* ---- Backup ---- */

void
clerk_backup(struct clerk *k, struct op *op)
{
	struct slu_err err = { 0 };

	if (k->ops->backup)
		k->ops->backup(k, op);
	else
		op_fail(op,
			slu_fail(&err, SLU_EINVAL, "engine %s keeps no files: there is nothing "
						   "to copy",
				 k->engine->ops->name),
			&err);
}

/* ---- The shard ---- */

void
clerk_shard(struct clerk *k, struct op *op)
{
	struct ledger_size size;
	struct locks_size locks;

	ledger_size(k->ledger, &size);
	locks_size(k->locks, &locks);
	op->cursor = 0;
	op->on_shard = (struct op_shard){
		.messages = size.messages,
		.keys = size.keys,
		.idempotency = size.idem,
		.results = size.results,
		.forgotten = size.forgotten,
		.locks = locks.keys,
		.leases = locks.leases,
		.states = locks.messages,
		.disk_free = -1,
	};
	if (k->engine->ops->measure)
		k->engine->ops->measure(k->engine, &op->on_shard);
}
