/*
 * elsewhere.c - ops meet queues that live on another shard: engine/move.h.
 */
#include "engine/ledger/move/move_private.h"

#include "base/limit.h"

#include <assert.h>

_Static_assert((int)MOVE_SHARD == (int)LEDGER_SHARD, "one length for the name of a shard");

/* ---- Marks: MOVE-1 ---- */

int
ledgerengine_open_queue(struct ledgerengine *k, const struct op *op, struct slice space, struct slice name,
			uint32_t *out, struct slu_err *err)
{
	const int rc = ledger_queue_open_as(k->ledger, space, name, &op->as, out);

	if (rc == SLU_EBUSY)
		return limit_fail(err, SLU_EBUSY, LIMIT_QUEUES, 0, "queue %.*s: %s", (int)name.n,
				  name.p, slu_err_row(rc)->text);
	return rc ? slu_fail(err, (enum slu_code)rc, "queue %.*s: %s", (int)name.n, name.p,
			     slu_err_row(rc)->text)
		  : 0;
}

static int
mark(struct ledgerengine *k, const struct op *op, struct slice space, struct slice name,
     struct slu_err *err)
{
	const struct change_move say = { .epoch = op->home.epoch,
					 .shard = op->home.lives ? op->home.lives : "" };
	const bool written = op->verb == OP_MOVE && op->move.step == MOVE_MARK;
	uint32_t queue = ledger_queue_find(k->ledger, space, name);
	struct change c = { .kind = CHANGE_NONE };
	int rc = 0;

	if (queue == SLAB_NONE && !say.shard[0] && !written)
		return 0;
	if (strlen(say.shard) >= MOVE_SHARD)
		return slu_fail(err, SLU_EINVAL, "invalid shard name; expected at most %d bytes",
				MOVE_SHARD - 1);
	if (queue == SLAB_NONE)
		rc = ledgerengine_open_queue(k, op, space, name, &queue, err);
	if (!rc)
		rc = ledger_mark(k->ledger, queue, &say, written, k->now, &c);
	if (rc || c.kind == CHANGE_NONE)
		return rc;
	return ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
}

/* Returns false if the op has failed. */
static bool
mark_all(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < op->n_puts && !rc && !op_is_step(op); i++) /* home.lives is of the item */
		if (op->puts[i].m.queue.n)
			rc = mark(k, op, op->puts[i].m.space.n ? op->puts[i].m.space : op->space,
				  op->puts[i].m.queue, &err);
	for (uint32_t i = 0; i < op->n_items && !rc; i++)
		if (op->items[i].queue.n)
			rc = mark(k, op, op->items[i].space.n ? op->items[i].space : op->space,
				  op->items[i].queue, &err);
	if (!rc && op->queue.n)
		rc = mark(k, op, op->space, op->queue, &err);
	if (rc)
		op_fail(op, rc, &err);
	return !rc;
}

bool
ledgerengine_is_elsewhere(const struct ledgerengine *k, const struct op *op, uint32_t queue,
			  char out[static MOVE_SHARD])
{
	struct ledger_moving v;
	const char *where;

	if (queue == SLAB_NONE || !ledger_is_elsewhere(k->ledger, queue, op->home.epoch))
		return false;
	ledger_moving(k->ledger, queue, &v);
	where = v.lives[0] ? v.lives : MOVE_UNKNOWN;
	memcpy(out, where, strlen(where) + 1);
	return true;
}

/* ---- An op that finds nothing asks elsewhere: MOVE-4, MOVE-5 ---- */

static bool
items_miss(struct ledgerengine *k, struct op *op)
{
	for (uint32_t i = 0; i < op->n_items; i++) {
		const struct op_names names = op_names(op, i);

		if (op->items[i].taken || op->items[i].rc != SLU_ENOTFOUND || !names.queue.n)
			continue;
		if (ledgerengine_is_elsewhere(k, op, ledger_queue_find(k->ledger, names.space, names.queue), op->home.elsewhere))
			return true;
	}
	return false;
}

static void
point_elsewhere(struct ledgerengine *k, struct op *op)
{
	if (op->n_items)
		(void)items_miss(k, op); /* op->home says where */
	else if (op->queue.n && op_finds_nothing(op))
		(void)ledgerengine_is_elsewhere(k, op, ledgerengine_queue(k, op), op->home.elsewhere); /* the same */
}

/* ---- Lock verbs: MOVE-5 ---- */

/* A key without a state and lease is unknown here. A key that is set aside has its holder on another
 * shard. An acquire with an old map must first learn that a former shard may have the key set
 * aside. */
static bool
is_key_elsewhere(const struct ledgerengine *k, const struct op *op, const struct lock_ref *ref,
		 const char *lives)
{
	const struct lock *lock = locks_find(k->locks, ref->space, ref->key);
	const bool late = lives[0] == MOVE_UNKNOWN[0] && op->verb == OP_ACQUIRE && !op->route.waited;

	if (lock && op->lock.token && locks_is_aside(k->locks, lock))
		return true;
	return !lock || (!lock_is_leased(lock) && (late || !lock_has_state(lock)));
}

/* A message that is set aside has no holder here: its holder, if any, has it from another shard. */
static bool
is_message_elsewhere(const struct ledgerengine *k, const struct op *op, uint64_t id)
{
	struct ledger_view v;

	if (id == LEDGERENGINE_NO_MESSAGE || !op->lock.token)
		return id == LEDGERENGINE_NO_MESSAGE;
	ledger_get(k->ledger, ledger_find_any(k->ledger, id), &v);
	return v.taken;
}

/* MOVE-5: returns true if a lock verb must go to another shard; op->home names it. */
static bool
is_lock_elsewhere(const struct ledgerengine *k, struct op *op)
{
	char lives[MOVE_SHARD];
	struct lock_ref ref;

	if (!ledgerengine_is_elsewhere(k, op, ledgerengine_queue(k, op), lives) ||
	    ledgerengine_lock_ref(k, op, &ref, NULL)) /* the verb itself reports what is wrong */
		return false;
	if (ref.id ? !is_message_elsewhere(k, op, ref.id) : !is_key_elsewhere(k, op, &ref, lives))
		return false;
	memcpy(op->home.elsewhere, lives, sizeof lives);
	return true;
}

/* ---- Puts: MOVE-2, MOVE-4, MOVE-11 ---- */

static bool
is_done(const struct op_put *put)
{
	return put->taken || put->existed || put->m.number;
}

static void
fail_moved(const struct ledgerengine *k, struct op *op, uint32_t i)
{
	const struct message *const m = &op->puts[i].m;
	struct slu_err err;

	if (!op->home.known)
		(void)ledgerengine_is_elsewhere(k, op, ledger_queue_find(k->ledger, m->space, m->queue), op->home.elsewhere); /* op->home says where */
	op->failed = i;
	op_fail(op, slu_fail(&err, SLU_EMOVED, "queue %.*s lives on shard %s", (int)m->queue.n, m->queue.p, op->home.elsewhere),
		&err);
}

/* All puts were looked at: sets `taken`, and fails the op with SLU_EMOVED if a put is not taken. Leaves
 * `taken` alone if the op has no map and met no mark. */
static void
end_puts(const struct ledgerengine *k, struct op *op)
{
	bool routed = op->home.epoch;

	for (uint32_t i = 0; i < op->n_puts; i++)
		routed |= op->puts[i].taken || !is_done(&op->puts[i]);
	for (uint32_t i = 0; routed && i < op->n_puts; i++) {
		op->puts[i].taken = is_done(&op->puts[i]);
		if (!op->puts[i].taken && !op->rc)
			fail_moved(k, op, i);
	}
}

/* ---- Before and after an op ---- */

/* Returns false if the op has failed. */
static bool
open_locks(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };
	const int rc = ledgerengine_open_locks(k, op, &err);

	op->n_queues = 0;
	if (rc)
		op_fail(op, rc, &err);
	return !rc;
}

bool
ledgerengine_before(struct ledgerengine *k, struct op *op)
{
	op->home.elsewhere[0] = 0;
	if (op->home.epoch && !mark_all(k, op))
		return false;
	ledger_set_counter(k->ledger, op->home.above); /* kept with the next token */
	if (op->verb == OP_QUEUES && !op->cursor && ledgerengine_has_locks(op))
		return open_locks(k, op);
	if (op_verbs[op->verb].follows != OP_FOLLOW_LOCK ||
	    (!op->home.epoch && !ledger_has_moved(k->ledger)) || !is_lock_elsewhere(k, op))
		return true;
	op_fail(op, SLU_EMOVED, NULL);
	if (op->verb == OP_ACQUIRE && k->ops->sync)
		k->ops->sync(k); /* otherwise the last lease here comes back after a power cut */
	op->home.counter = ledger_counter(k->ledger);
	return false;
}

void
ledgerengine_after(struct ledgerengine *k, struct op *op)
{
	if (op->verb == OP_ENQUEUE && !op->rc)
		end_puts(k, op);
	if (op->home.epoch || ledger_has_moved(k->ledger))
		point_elsewhere(k, op);
	op->home.counter = ledger_counter(k->ledger);
}
