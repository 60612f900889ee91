/*
 * step.c - OP_MOVE: sets a batch of a queue aside, shows it, ends it. engine/move.h has the rules.
 */
#include "engine/ledger/move/move_private.h"

#include "base/le.h"
#include "base/limit.h"
#include "base/mem.h"
#include "engine/move_keys.h"

enum {
	KEYS_MAX = 1 << 20, /* bytes of the keys of a batch */
	KEY_SIZE = 26       /* bytes of a key beside its text */
};

/* ---- TAKE ---- */

/* SH-75: returns leased messages, as many as a batch may have. */
static int
end_leases(struct ledgerengine *k, uint32_t queue, uint32_t max, struct slu_err *err)
{
	uint32_t *msgs = mem_array(max + 1, sizeof *msgs);
	uint32_t n;
	int rc = 0;

	if (!msgs)
		return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	n = ledger_leased(k->ledger, queue, msgs, max);
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct ledger_ref ref = { .queue = queue };
		struct ledger_queue_view q;
		struct ledger_view v;
		struct change c;

		ledger_get(k->ledger, msgs[i], &v);
		ledger_queue_get(k->ledger, queue, &q);
		ref.space = q.space;
		ref.id = v.id;
		ref.token = v.token;
		if (!ledger_return(k->ledger, &ref, k->now, &c)) /* otherwise the lease has just ended */
			rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
	}
	mem_free(msgs);
	return rc;
}

uint64_t
ledgerengine_record_size(struct ledgerengine *k, uint64_t where)
{
	struct op_ref record = { 0 }, payload = { 0 };
	uint64_t size;

	if (k->ops->pin(k, where, &record, &payload, NULL))
		return 0;
	size = (uint64_t)record.size + payload.size;
	engine_unpin(k->engine, &record);
	engine_unpin(k->engine, &payload);
	return size;
}

static uint64_t
size_of(void *arg, uint64_t where)
{
	return ledgerengine_record_size(arg, where);
}

/* Keeps the batch, then sets it aside. The ids are in the order of the batch. */
static int
set_aside(struct ledgerengine *k, uint32_t queue, struct change_move *say, struct slu_err *err)
{
	const size_t size = say->n * sizeof(uint64_t);
	char *text = mem_alloc(size);
	struct change c;
	int rc;

	if (!text)
		return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	for (uint32_t i = 0; i < say->n; i++)
		le64_put(text + i * sizeof(uint64_t), say->ids[i]);
	rc = ledger_take(k->ledger, queue, say, k->now, &c);
	if (!rc)
		rc = ledgerengine_carry_out(k, &c, (struct slice){ text, size }, err);
	mem_free(text);
	return rc;
}

static int
take_messages(struct ledgerengine *k, const struct op *op, uint32_t queue, struct slu_err *err)
{
	const struct ledger_bound bound = { op->max_rows, op->move.max_bytes, size_of, k };
	struct change_move say = { .what = BATCH_MESSAGES };
	uint32_t *msgs = NULL;
	uint64_t *ids;
	int rc;

	rc = ledger_pick(k->ledger, queue, &bound, &msgs, &say.n);
	if (rc == SLU_EBUSY)
		return limit_fail(err, SLU_EBUSY, LIMIT_MOVE, 0, "queue %.*s is being purged",
				  (int)op->queue.n, op->queue.p);
	if (rc || say.n == 0)
		return rc;
	ids = mem_array(say.n, sizeof *ids);
	for (uint32_t i = 0; ids && i < say.n; i++) {
		struct ledger_view v;

		ledger_get(k->ledger, msgs[i], &v);
		ids[i] = v.id;
	}
	say.ids = ids;
	rc = ids ? set_aside(k, queue, &say, err)
		 : slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	mem_free(ids);
	mem_free(msgs);
	return rc;
}

static int
take_results(struct ledgerengine *k, const struct op *op, uint32_t queue, struct slu_err *err)
{
	struct change_move say = { .what = BATCH_RESULTS };
	uint64_t *ids;
	int rc = 0;

	if (ledger_results(k->ledger, queue) == 0)
		return 0;
	ids = mem_array(op->max_rows, sizeof *ids);
	if (!ids)
		return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	say.ids = ids;
	say.n = ledger_results_of(k->ledger, queue, ids, op->max_rows);
	if (say.n)
		rc = set_aside(k, queue, &say, err);
	mem_free(ids);
	return rc;
}

/* ---- Remembered keys ---- */

struct keys_aside {
	struct ledgerengine_recall to;
	struct ledgerengine *k;
	uint32_t queue;
	uint64_t max_bytes;
	struct buf text;  /* in the form of move_keys.h */
	struct buf ids;   /* of uint64_t */
	struct buf marks; /* of struct idem_mark */
};

static bool
add_key(struct ledgerengine_recall *to, uint64_t id, struct slice text)
{
	struct keys_aside *s = CONTAINER(to, struct keys_aside, to);
	struct move_key key = { .id = id, .text = text };
	struct change known;

	if (!ledger_remembers(s->k->ledger, s->queue, text, id, s->k->now, &known))
		return true;
	key.until = known.remember;
	key.digest = known.digest;
	if (s->text.n + text.n + KEY_SIZE > s->max_bytes && to->wanted)
		return false;
	move_key_put(&s->text, &key);
	buf_put(&s->ids, &id, sizeof id);
	buf_put(&s->marks, &known.idem, sizeof known.idem);
	to->wanted++;
	return !s->text.failed && !s->ids.failed && !s->marks.failed;
}

static int
set_keys_aside(struct keys_aside *s, struct slu_err *err)
{
	struct change_move say = {
		.what = BATCH_KEYS,
		.ids = (const uint64_t *)s->ids.p,
		.marks = (const struct idem_mark *)s->marks.p,
		.n = s->to.wanted,
	};
	struct change c;
	int rc;

	if (s->text.failed || s->ids.failed || s->marks.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	rc = ledger_take(s->k->ledger, s->queue, &say, s->k->now, &c);
	return rc ? rc : ledgerengine_carry_out(s->k, &c, buf_slice(&s->text), err);
}

static int
take_keys(struct ledgerengine *k, const struct op *op, uint32_t queue, struct slu_err *err)
{
	struct keys_aside s = {
		.to = { .tell = add_key },
		.k = k,
		.queue = queue,
		.max_bytes = op->move.max_bytes && op->move.max_bytes < KEYS_MAX ? op->move.max_bytes : KEYS_MAX,
	};
	bool end = false;
	int rc;

	if (ledger_remembered(k->ledger, queue) == 0)
		return 0;
	buf_init(&s.text, 2 * KEYS_MAX);
	buf_init(&s.ids, 2 * KEYS_MAX);
	buf_init(&s.marks, 2 * KEYS_MAX);
	rc = k->ops->recall(k, queue, &s.to, &end, err);
	if (!rc && s.to.wanted)
		rc = set_keys_aside(&s, err);
	else if (!rc && !end)
		rc = limit_fail(err, SLU_EBUSY, LIMIT_MOVE, 0, "the log is being searched for "
							       "idempotency keys");
	buf_release(&s.text);
	buf_release(&s.ids);
	buf_release(&s.marks);
	return rc;
}

/* ---- The answer of TAKE: a page of the batch ---- */

static bool
fits(const struct op *op, const struct op_row *row)
{
	return op->n_rows == 0 || !op->move.max_bytes ||
	       op->route.bytes + row->record.size + row->payload.size <= op->move.max_bytes;
}

static int
message_row(struct ledgerengine *k, uint32_t msg, struct op_row *row, struct slu_err *err)
{
	const int rc = ledgerengine_row(k, msg, true, row, err);

	row->kind = MOVE_MESSAGE;
	return rc;
}

static int
result_row(struct ledgerengine *k, uint64_t id, struct op_row *row, struct slu_err *err)
{
	struct ledger_result result;

	*row = (struct op_row){ .id = id, .kind = MOVE_RESULT };
	if (!ledger_result_any(k->ledger, id, &result))
		return SLU_ENOTFOUND; /* forgotten meanwhile */
	row->due = result.until;
	return result.where ? k->ops->pin(k, result.where, &row->payload, NULL, err) : 0;
}

static void
count_row(struct op *op)
{
	const struct op_row *row = &op->rows[op->n_rows++];

	op->route.bytes += (uint64_t)row->record.size + row->payload.size;
}

/* The committed documents; without a holder nothing is staged. */
int
ledgerengine_add_states(struct ledgerengine *k, struct op *op, const struct lock *lock, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; lock && i < lock->n && !rc; i++) {
		const struct lock_doc *doc = &lock->docs[i];
		struct op_row *row = &op->rows[op->n_rows];

		*row = (struct op_row){
			.id = lock->id,
			.kind = MOVE_STATE,
			.flags = lock->hidden ? MOVE_HIDDEN : 0,
			.due = lock->updated,
			.state_version = lock->version,
			.state_etag = doc->etag,
		};
		if (!doc->etag || !doc->where) /* damaged: every start reports it */
			continue;
		rc = k->ops->pin(k, doc->where, &row->record, &row->payload, err);
		if (!rc)
			count_row(op);
	}
	return rc;
}

/* Adds the i-th of the batch with its documents, if they fit. */
static int
add_row(struct ledgerengine *k, struct op *op, uint32_t queue, uint32_t i, bool *more,
	struct slu_err *err)
{
	struct op_row *row = &op->rows[op->n_rows];
	uint32_t msg;
	const uint64_t id = ledger_batch_at(k->ledger, queue, i, &msg);
	const struct lock *lock = msg == SLAB_NONE ? NULL : locks_of_message(k->locks, id);
	int rc;

	*more = op->n_rows + 1 + (lock ? lock->n : 0) <= op->max_rows;
	if (!*more)
		return op->n_rows ? 0 : slu_fail(err, SLU_EINVAL, "invalid number of rows: %u; expected %d for a message with documents", op->max_rows, LOCK_DOCS_MAX + 1);
	rc = msg == SLAB_NONE ? result_row(k, id, row, err) : message_row(k, msg, row, err);
	if (rc)
		return rc == SLU_ENOTFOUND ? 0 : rc;
	*more = fits(op, row);
	if (!*more) {
		op_unpin_row(k->engine, row);
		return 0;
	}
	count_row(op);
	return ledgerengine_add_states(k, op, lock, err);
}

/* All remembered keys of a batch are one row. */
static int
show_keys(struct ledgerengine *k, struct op *op, const struct ledger_moving *v, struct slu_err *err)
{
	struct op_row *row = &op->rows[0];
	const int rc = k->ops->pin(k, v->where, &row->payload, NULL, err);

	if (rc)
		return rc;
	*row = (struct op_row){ .kind = MOVE_REMEMBERED, .payload = row->payload };
	op->n_rows = 1;
	op->cursor = 0;
	return 0;
}

static int
show_batch(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	struct ledger_moving v;
	uint64_t i = op->cursor;
	bool more = true;
	int rc = 0;

	ledger_moving(k->ledger, queue, &v);
	op->n_rows = 0;
	op->route.bytes = 0;
	if (v.what == BATCH_KEYS)
		return show_keys(k, op, &v, err);
	if (v.what == BATCH_LOCKS)
		return ledgerengine_show_locks(k, op, v.n, err);
	while (!rc && more && i < v.n && op->n_rows < op->max_rows) {
		rc = add_row(k, op, queue, (uint32_t)i, &more, err);
		i += more;
	}
	op->cursor = i < v.n ? i : 0;
	if (rc)
		op_drop_rows(op);
	return rc;
}

static bool
has_batch(const struct ledgerengine *k, uint32_t queue)
{
	struct ledger_moving v;

	ledger_moving(k->ledger, queue, &v);
	return v.batch != 0;
}

/* No message is left that a remembered key might belong with. */
static bool
is_drained(const struct ledgerengine *k, uint32_t queue)
{
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	return v.depth == 0;
}

static int
take_next(struct ledgerengine *k, const struct op *op, uint32_t queue, struct slu_err *err)
{
	int rc = 0;

	if (ledgerengine_has_locks(op))
		return ledgerengine_take_locks(k, op, queue, err);
	if (op->move.force)
		rc = end_leases(k, queue, op->max_rows, err);
	if (!rc)
		rc = take_messages(k, op, queue, err);
	if (!rc && !has_batch(k, queue) && is_drained(k, queue))
		rc = take_keys(k, op, queue, err);
	if (!rc && !has_batch(k, queue) && is_drained(k, queue))
		rc = take_results(k, op, queue, err);
	return rc;
}

static bool
is_late(const struct ledgerengine *k, const struct op *op, uint32_t queue)
{
	struct ledger_moving v;

	ledger_moving(k->ledger, queue, &v);
	return op->home.epoch && op->home.epoch < v.epoch;
}

static int
step_take(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	int rc = 0;

	op->n_rows = 0;
	if (queue != SLAB_NONE && is_late(k, op, queue))
		return slu_fail(err, SLU_EMOVED, "queue %.*s has been sent to another shard since",
				(int)op->queue.n, op->queue.p);
	if (queue == SLAB_NONE && ledgerengine_has_locks(op)) /* the namespace may have keys */
		rc = ledgerengine_open_queue(k, op, op->space, op->queue, &queue, err);
	if (rc || queue == SLAB_NONE)
		return rc;
	if (!has_batch(k, queue)) {
		op->cursor = 0;
		rc = take_next(k, op, queue, err);
	}
	return rc ? rc : show_batch(k, op, queue, err);
}

/* ---- DROP, UNTAKE ---- */

/* The change itself does not name the messages. */
static void
observe_batch(struct ledgerengine *k, enum change_kind kind, uint32_t queue, const struct ledger_moving *v)
{
	uint32_t msg;

	for (uint32_t i = 0; k->observe && v->what == BATCH_MESSAGES && i < v->n; i++)
		k->observe(k->observe_arg,
			   &(struct change){ .kind = kind, .id = ledger_batch_at(k->ledger, queue, i, &msg) });
}

static int
step_end(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	const enum change_kind kind = op->move.step == MOVE_DROP ? CHANGE_DROP : CHANGE_UNTAKE;
	struct change_move say = { .batch = op->move.batch, .space = op->space };
	struct ledger_moving v;
	struct change c;
	struct buf names;
	int rc;

	if (queue == SLAB_NONE)
		return 0;
	ledger_moving(k->ledger, queue, &v);
	say.what = v.what;
	buf_init(&names, SIZE_MAX);
	if (v.what == BATCH_LOCKS)
		ledgerengine_name_locks(k, op, &names);
	say.names = buf_slice(&names);
	(void)ledger_end_batch(k->ledger, kind, queue, &say, k->now, &c); /* cannot fail */
	if (c.kind != CHANGE_NONE)
		observe_batch(k, kind, queue, &v);
	if (names.failed)
		rc = slu_fail(err, SLU_ENOMEM, "no memory for the end of a batch");
	else
		rc = c.kind == CHANGE_NONE ? 0 : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
	buf_release(&names);
	return rc;
}

/* ---- The rest ---- */

static int
step_look(struct ledgerengine *k, struct op *op, uint32_t queue, struct slu_err *err)
{
	(void)k;
	(void)op;
	(void)queue;
	(void)err;
	return 0; /* ledgerengine_before has set the mark */
}

static void
tell(struct ledgerengine *k, struct op_move *m, uint32_t queue)
{
	struct ledger_queue_view q;
	struct ledger_moving v;

	ledger_queue_get(k->ledger, queue, &q);
	ledger_moving(k->ledger, queue, &v);
	for (int s = MSG_READY; s < MSG_STATES; s++)
		m->messages += q.count[s];
	m->damaged = q.count[MSG_DAMAGED];
	m->leased = ledger_bound_by_lease(k->ledger, queue);
	m->remembered = ledger_remembered(k->ledger, queue);
	m->results = ledger_results(k->ledger, queue);
	m->epoch = v.epoch;
	memcpy(m->lives, v.lives, strlen(v.lives) + 1);
	if (m->step == MOVE_TAKE || m->step == MOVE_LOOK)
		m->batch = v.batch;
	memcpy(m->receiver, v.receiver, strlen(v.receiver) + 1);
}

static int (*const steps[])(struct ledgerengine *k, struct op *op, uint32_t queue,
			    struct slu_err *err) = {
	[MOVE_LOOK] = step_look,
	[MOVE_MARK] = step_look,
	[MOVE_TAKE] = step_take,
	[MOVE_UNTAKE] = step_end,
	[MOVE_GIVE] = ledgerengine_give,
	[MOVE_DROP] = step_end,
	[MOVE_REFUSE] = ledgerengine_refuse,
};

static void
clear_answer(struct op_move *m)
{
	m->epoch = m->messages = m->leased = m->damaged = 0;
	m->remembered = m->results = m->given = 0;
	m->lives[0] = m->receiver[0] = 0;
	if (m->step == MOVE_TAKE || m->step == MOVE_LOOK)
		m->batch = 0;
}

void
ledgerengine_move(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	struct slu_err err = { 0 };
	struct locks_kept kept;
	int rc;

	clear_answer(&op->move);
	rc = op_check_move(op, &err);
	if (!rc)
		rc = steps[op->move.step](k, op, queue, &err);
	if (rc) {
		op_fail(op, rc, &err);
		return;
	}
	if (op->move.step != MOVE_GIVE)
		op->move.counter = ledger_counter(k->ledger);
	if (ledgerengine_queue(k, op) != SLAB_NONE)
		tell(k, &op->move, ledgerengine_queue(k, op));
	if (ledgerengine_has_locks(op)) {
		locks_of_space(k->locks, op->space, &kept);
		op->move.messages = kept.n;
		op->move.leased = kept.leased;
	}
}
