#include "engine/op.h"

#include "engine/attempts.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	SHOWN_KEY = 100 /* bytes: a longer idempotency key is not part of an error's text */
};

/* Of the part that is a verb's own. The parts are in one union, and the largest has more bytes than the rest of an op. */
static size_t
own_size(enum op_verb verb)
{
#define SIZE(member) sizeof(((struct op *)0)->member)
	static const uint16_t sizes[OP_FAMILIES] = {
		[OP_OF_CLAIM] = SIZE(claim),
		[OP_OF_LOCK] = SIZE(lock),
		[OP_OF_POLICY] = SIZE(policy),
		[OP_OF_BACKUP] = SIZE(backup),
		[OP_OF_MOVE] = SIZE(move),
		[OP_OF_SHARD] = SIZE(on_shard),
		[OP_OF_PRESENCE] = SIZE(presence),
		[OP_OF_INTAKE] = SIZE(intake),
		[OP_OF_FINISH] = SIZE(unlock),
		[OP_OF_WHY] = offsetof(struct op, kind) + SIZE(kind) - offsetof(struct op, why),
		[OP_OF_LIMITS] = SIZE(limits),
		[OP_OF_TREND] = SIZE(trend),
	};
#undef SIZE

	return sizes[op_verbs[verb].family];
}

void
op_init(struct op *op, enum op_verb verb, struct slice space, struct slice queue,
	void (*done)(struct op *op), void *owner)
{
	memset(op, 0, offsetof(struct op, err));
	no_err(&op->err);
	memset(&op->engine, 0, offsetof(struct op, claim) - offsetof(struct op, engine));
	memset(&op->claim, 0, own_size(verb));
	memset(&op->home, 0, sizeof *op - offsetof(struct op, home));
	op->verb = verb;
	op->space = space;
	op->queue = queue;
	op->done = done;
	op->owner = owner;
	op->route.waiter = SLAB_NONE;
	if (op_is_of(verb, OP_OF_LOCK))
		op->lock.if_version = -1;
}

void
op_make_finish(struct op *op)
{
	op->verb = OP_FINISH;
	op->unlock = (struct op_unlock){ 0 };
}

struct op_names
op_names(const struct op *op, uint32_t i)
{
	struct op_names own = { 0 };

	if (op_is_step(op))
		own = (struct op_names){ op->space, op->queue };
	else if (i < op->n_puts)
		own = (struct op_names){ op->puts[i].m.space, op->puts[i].m.queue };
	else if (i < op->n_items)
		own = (struct op_names){ op->items[i].space, op->items[i].queue };
	return (struct op_names){ own.space.n ? own.space : op->space, own.queue.n ? own.queue : op->queue };
}

void
op_name_puts(struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++) {
		struct op_put *const put = &op->puts[i];

		put->m.space = put->m.space.n ? put->m.space : op->space;
		put->m.queue = put->m.queue.n ? put->m.queue : op->queue;
		if (put->as.queue.n == 0)
			put->as = op->as;
	}
}

void
op_begin_put(struct op_put *put)
{
	if (put->ruled) {
		put->m.prio = put->own_prio;
		put->m.due = put->own_due;
	}
	if (put->own_id)
		put->m.id = put->own_id;
	if (put->undated)
		put->m.due = 0;
	put->ruled = false;
	put->m.rule = put->m.value = (struct slice){ 0 };
	put->own_id = 0;
	put->undated = put->m.due == 0;
	put->existed = put->replaced = false;
	put->m.number = 0;
}

void
op_watch(struct op *op, uint64_t head)
{
	if (head == op->id)
		op_fail(op, SLU_ETIMEOUT, NULL);
	op->id = head;
}

bool
op_finds_nothing(const struct op *op)
{
	switch (op_verbs[op->verb].follows) {
	case OP_FOLLOW_CLAIM:
		return !op->rc && op->n_rows == 0;
	case OP_FOLLOW_FIRST:
	case OP_FOLLOW_RESULT:
		return op->rc == SLU_ENOTFOUND;
	case OP_FOLLOW_WATCH:
		return op->id == 0;
	case OP_FOLLOW_KEYS:
		return !op->rc && op->n_keys == 0;
	case OP_FOLLOW_SUM:
	case OP_FOLLOW_PAGES:
	case OP_FOLLOW_ALL:
	case OP_FOLLOW_HOME:
		return true; /* another shard has more of it */
	default:
		return false;
	}
}

void
op_fail(struct op *op, int rc, const struct slu_err *err)
{
	op->rc = rc;
	if (err && err->code == (enum slu_code)rc)
		op->err = *err;
	else
		(void)slu_fail(&op->err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
}

void
op_set_pause(struct policy *to, const struct policy *from, uint8_t sets)
{
	if (!sets || sets & OP_SETS_PAUSE) {
		to->paused = from->paused;
		to->pause = from->pause;
	}
	if (sets & OP_SETS_DRAIN)
		to->draining = from->draining;
}

static void
copy_name(char out[static NAME_TEXT], const char *name)
{
	(void)snprintf(out, NAME_TEXT, "%s", name); /* always fits */
}

void
op_name_queue(struct op_queue *q, const char *space, const char *name,
	      const char *space_shown, const char *shown)
{
	copy_name(q->space, space);
	copy_name(q->name, name);
	copy_name(q->space_shown, space_shown ? space_shown : space);
	copy_name(q->shown, shown ? shown : name);
}

int
op_fail_moved(const struct op *op, struct slu_err *err)
{
	return slu_fail(err, SLU_ECONFLICT,
			"queue %.*s was moved between shards and cannot be deleted: its shard keeps "
			"the number of the move",
			(int)op->queue.n, op->queue.p);
}

int
op_fail_not_empty(const struct op *op, uint64_t messages, struct slu_err *err)
{
	return slu_fail(err, SLU_ENOTEMPTY,
			"queue %.*s holds %" PRIu64 " messages; purge it and its dead letters, or "
			"delete it with force",
			(int)op->queue.n, op->queue.p, messages);
}

int
op_fail_key(const struct message *m, struct slu_err *err)
{
	if (m->idem.n > SHOWN_KEY)
		return slu_fail(err, SLU_EIDEM, "queue %.*s: %s", (int)m->queue.n, m->queue.p,
				slu_err_row(SLU_EIDEM)->text);
	return slu_fail(err, SLU_EIDEM, "queue %.*s: another payload was sent under the "
					"idempotency key %.*s",
			(int)m->queue.n, m->queue.p, (int)m->idem.n, m->idem.p);
}

int
op_check_lock(const struct op *op, struct slu_err *err)
{
	const struct op_lock *const q = &op->lock;
	struct slice queue;
	uint64_t id;

	if (q->name.n > LOCK_NAME_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid attachment name; expected at most %d bytes",
				LOCK_NAME_MAX);
	if (q->holder.n > LOCK_HOLDER_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid owner; expected at most %d bytes", LOCK_HOLDER_MAX);
	if (slice_eq(op->queue, SLICE(LOCK_QUEUE)))
		return q->key.n > 0 && q->key.n <= LOCK_KEY_MAX
			       ? 0
			       : slu_fail(err, SLU_EINVAL, "invalid lock key; expected 1 to %d bytes", LOCK_KEY_MAX);
	if (!lock_key_of_message(q->key, &queue, &id) || !slice_eq(queue, op->queue))
		return slu_fail(err, SLU_EINVAL, "invalid key %.*s; expected the state of a message of queue %.*s",
				(int)q->key.n, q->key.p, (int)op->queue.n, op->queue.p);
	return 0;
}

int
op_check_move(const struct op *op, struct slu_err *err)
{
	const struct op_move *const m = &op->move;
	const bool comes = m->step == MOVE_GIVE || m->step == MOVE_REFUSE;

	if (!op->queue.n || m->step >= MOVE_STEPS)
		return slu_fail(err, SLU_EINVAL, "invalid step of a move; expected a known step and a queue");
	if (m->step == MOVE_TAKE && op->max_rows == 0)
		return slu_fail(err, SLU_EINVAL, "invalid number of rows: 0; expected 1 or more");
	if (comes && (!m->batch || !m->peer[0] || !memchr(m->peer, 0, MOVE_SHARD)))
		return slu_fail(err, SLU_EINVAL, "invalid batch; expected a number and the name of a shard");
	if (op->home.lives && strlen(op->home.lives) >= MOVE_SHARD)
		return slu_fail(err, SLU_EINVAL, "invalid shard name; expected at most %d bytes", MOVE_SHARD - 1);
	return 0;
}

int
op_check_given(const struct op_put *put, struct slu_err *err)
{
	const uint8_t state = put->stood.state;

	if (put->m.id == 0 || state == MSG_LEASED || state < MSG_READY || state > MSG_DEAD)
		return slu_fail(err, SLU_EINVAL, "invalid message in a batch; expected an id, and a state that moves");
	return message_check(&put->m, err);
}

static const char *const reasons[LOCK_WHYS] = {
	[LOCK_HELD] = "leased",
	[LOCK_KNOWN_KEY] = "exists already",
	[LOCK_NONE] = "not held by this lease",
	[LOCK_EXPIRED] = "the lease has ended",
	[LOCK_FENCE] = "the fencing token is not the token of the lease",
	[LOCK_TXN_MISSING] = "the transaction is missing",
	[LOCK_TXN_OTHER] = "the lease has another transaction",
	[LOCK_VERSION] = "another version",
	[LOCK_ETAG] = "the state has another etag",
	[LOCK_OF_MESSAGE] = "leased with its message; claim or extend the message",
};

const char *
op_lock_reason(enum lock_why why)
{
	return reasons[why];
}

bool
op_unwant(struct op *op, enum op_unwanted why)
{
	int wanted = OP_WANTED;
	int none = OP_CANCEL_NONE;

	if (why == OP_CANCELED)
		atomic_store(&op->route.unwanted, why);
	else
		(void)atomic_compare_exchange_strong(&op->route.unwanted, &wanted, why);
	return atomic_compare_exchange_strong(&op->route.canceled, &none, OP_CANCEL_ASKED);
}

slu_time
op_lock_ttl(const struct op_lock *q)
{
	const slu_time ttl = q->ttl > 0 ? q->ttl : LOCK_TTL;

	return ttl < POLICY_LEASE_MAX ? ttl : POLICY_LEASE_MAX;
}

struct slice
op_error_text(struct slice text)
{
	while (text.n && text.p[0] == '\0') /* ATTEMPTS-1 of engine/attempts.h */
		slice_skip(&text, 1);
	return (struct slice){ text.p, text.n < ATTEMPTS_ERROR ? text.n : ATTEMPTS_ERROR };
}

void
op_unpin_row(struct engine *e, struct op_row *row)
{
	engine_unpin(e, &row->record);
	engine_unpin(e, &row->payload);
	engine_unpin(e, &row->error);
	shared_text_unref(row->holder);
	row->holder = NULL;
}

void
op_drop_rows(struct op *op)
{
	op_unpin(op);
	op->n_rows = op->n_keys = 0;
}

void
op_unpin(struct op *op)
{
	for (uint32_t i = 0; i < op->n_rows; i++)
		op_unpin_row(op->engine, &op->rows[i]);
	for (uint32_t i = 0; i < op->n_keys; i++) {
		engine_unpin(op->engine, &op->keys[i].record);
		engine_unpin(op->engine, &op->keys[i].payload);
	}
	if (op_is_of(op->verb, OP_OF_LOCK)) {
		engine_unpin(op->engine, &op->lock.record);
		engine_unpin(op->engine, &op->lock.payload);
	}
	engine_unpin(op->engine, &op->result);
}
