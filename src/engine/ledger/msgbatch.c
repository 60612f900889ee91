/*
 * msgbatch.c - batches of messages on the shard that has them, and the ends of members: engine/msgbatch.h.
 *
 *      OP_FINISH in MSGBATCH_QUEUE ──> join, close       the batch as it is ──> REPLACE
 *      a change that ends a member ──> tell              an event, before the change
 *      the start of a run          ──> fold              events, or a moment ──> REPLACE, perhaps the callback
 *
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "core/ledger/batches.h"
#include "engine/msgbatch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
	FOLDED = 256 /* events that are looked at in a run, for each namespace */
};

#define STRAY SLU_HOUR /* how long an event waits for its batch, if queues have moved */

void
ledgerengine_batches_release(struct ledgerengine *k)
{
	mem_free(k->batches.queues);
	k->batches = (struct ledgerengine_batches){ 0 };
}

/* ---- A batch as it is ---- */

struct at {
	uint64_t id;
	uint32_t msg;
	struct slice space;
	char *bytes; /* `b` points into them */
	struct msgbatch b;
};

/* The payload of a message; *bytes has it, and is to be freed. */
static int
read_payload(struct ledgerengine *k, uint32_t msg, char **bytes, struct slice *payload, struct slu_err *err)
{
	struct op_row row;
	struct message m = { 0 };
	int rc;

	*bytes = NULL;
	rc = ledgerengine_row(k, msg, false, &row, err);
	if (rc)
		return rc;
	*bytes = mem_alloc((size_t)row.record.size + 1);
	rc = *bytes ? ledgerengine_read(k, &row.record, *bytes, true, err) : SLU_ENOMEM;
	if (!rc)
		rc = message_decode((struct slice){ *bytes, row.record.size }, &m, err);
	op_unpin_row(k->engine, &row);
	*payload = m.payload;
	return rc;
}

static bool
is_batch(const struct ledgerengine *k, uint32_t msg, uint32_t queue)
{
	struct ledger_view v;

	ledger_get(k->ledger, msg, &v);
	return v.queue == queue && (v.state == MSG_DELAYED || v.state == MSG_READY) && ledger_member_of(k->ledger, msg) == MSGBATCH_SELF;
}

static void
close_batch(struct at *at)
{
	mem_free(at->bytes);
	at->bytes = NULL;
}

/* SLU_ENOTFOUND: this shard does not have the batch. The caller closes it. */
static int
open_batch(struct ledgerengine *k, uint32_t queue, uint64_t id, struct at *at, struct slu_err *err)
{
	struct slice payload = { 0 };
	struct ledger_queue_view q;
	int rc;

	*at = (struct at){ .id = id };
	if (queue == SLAB_NONE)
		return SLU_ENOTFOUND;
	ledger_queue_get(k->ledger, queue, &q);
	at->space = slice_of(q.space_name);
	at->msg = ledger_find(k->ledger, q.space, id);
	if (at->msg == SLAB_NONE || !is_batch(k, at->msg, queue))
		return SLU_ENOTFOUND;
	rc = read_payload(k, at->msg, &at->bytes, &payload, err);
	return rc ? rc : msgbatch_decode(payload, &at->b, err);
}

static int
replace(struct ledgerengine *k, const struct at *at, const struct buf *doc, struct slu_err *err)
{
	const struct ledger_offer offer = { .id = at->id, .due = msgbatch_due(&at->b), .owed = true };
	struct message m;
	struct change c;
	int rc;

	msgbatch_name(&m, at->space);
	m.id = at->id;
	m.payload = buf_slice(doc);
	m.payload_size = doc->n;
	rc = ledger_replace(k->ledger, at->msg, &offer, k->now, &c);
	if (!rc && c.kind == CHANGE_NONE)
		return slu_fail(err, SLU_EBUSY, "batch %" PRIu64 " is being moved; nothing was done", at->id);
	m.number = c.number;
	m.accepted = c.at;
	m.due = c.due;
	c.settles = true;
	return rc ? rc : ledgerengine_keep_message(k, &m, &c, err);
}

/* Stores the batch. If it returns a code, nothing was stored. */
static int
store(struct ledgerengine *k, const struct at *at, struct slu_err *err)
{
	struct buf doc;
	int rc;

	buf_init(&doc, MSGBATCH_HEAD + MSGBATCH_SEEN * 8 + MSGBATCH_CALLBACK_MAX);
	msgbatch_encode(&at->b, &doc);
	rc = doc.failed ? SLU_ENOMEM : replace(k, at, &doc, err);
	buf_release(&doc);
	return rc;
}

/* ---- The callback: MSGBATCH-4 ---- */

static int
new_id(struct ledgerengine *k, struct slice space, struct slice queue, uint64_t *id, struct engine_home *home, struct slu_err *err)
{
	int rc = 0;

	*home = (struct engine_home){ .line_always = true, .here = true };
	if (k->home)
		rc = k->home(k->home_arg, space, queue, home, err);
	else /* tests of an engine */
		home->id = hash_next_random(&k->random) >> 2 | 3;
	*id = home->id;
	return rc;
}

/* Returns whether the callback can never begin. */
static bool
never(int rc)
{
	return rc == SLU_EINVAL || rc == SLU_ETOGETHER || rc == SLU_ETOOBIG || rc == SLU_ECORRUPT;
}

static int
begin(struct ledgerengine *k, struct at *at, struct op *op, struct buf *attributes, struct slu_err *err)
{
	struct op_put *const put = op->puts;
	struct engine_home home;
	int rc = message_decode(at->b.message, &put->m, err);

	if (rc)
		return rc;
	msgbatch_attributes(&at->b, at->id, put->m.attributes, attributes);
	if (attributes->failed)
		return SLU_ENOMEM;
	put->m.attributes = buf_slice(attributes);
	put->m.number = 0;
	put->m.accepted = 0;
	put->deadline = put->m.expires;
	put->m.expires = 0;
	put->delay = at->b.delay;
	put->ttl = at->b.ttl;
	rc = new_id(k, put->m.space, put->m.queue, &put->m.id, &home, err);
	if (!rc)
		rc = ledgerengine_find_homes(k, op, err);
	return rc ? rc : ledgerengine_put_all(k, op, true, err);
}

/* The batch ends: begins its callback, and stores it. */
static int
end_batch(struct ledgerengine *k, struct at *at, struct slu_err *err)
{
	struct op_put put = { 0 };
	struct op op = { .verb = OP_INTAKE, .intake.first = 1, .puts = &put, .n_puts = 1 };
	struct buf attributes;
	int rc = 0;

	buf_init(&attributes, MESSAGE_ATTRIBUTES_MAX);
	at->b.closed = true;
	at->b.ended = k->now;
	if (at->b.message.n)
		rc = begin(k, at, &op, &attributes, err);
	at->b.callback = rc ? 0 : put.m.id;
	if (never(rc)) {
		log_warn(k->log, "callback of a batch cannot begin", F_U64("batch", at->id), F_STR("error", err ? err->text : ""));
		op.n_puts = 0;
		rc = 0;
	}
	if (!rc) {
		rc = store(k, at, err);
		if (rc && at->b.callback)
			ledgerengine_put_undo(k, &op, op.n_puts);
	}
	buf_release(&attributes);
	return rc;
}

/* Stores a batch that has changed; it may end. */
static int
advance(struct ledgerengine *k, struct at *at, struct slu_err *err)
{
	enum msgbatch_outcome how;

	if (!msgbatch_ends(&at->b, k->now, &how))
		return store(k, at, err);
	at->b.outcome = how;
	return end_batch(k, at, err);
}

/* ---- Join and close: MSGBATCH-1 ---- */

static int
check_room(const struct op *op, const struct at *at, struct slu_err *err)
{
	if (at->b.closed)
		return slu_fail(err, SLU_ECONFLICT, "batch %" PRIu64 " is closed", at->id);
	if (at->b.members + op->n_puts > MSGBATCH_MEMBERS_MAX)
		return slu_fail(err, SLU_ETOOBIG, "batch %" PRIu64 " has %" PRIu32 " members; expected at most %d", at->id, at->b.members,
				MSGBATCH_MEMBERS_MAX);
	return 0;
}

static int
join(struct ledgerengine *k, struct op *op, struct at *at, struct slu_err *err)
{
	int rc = check_room(op, at, err);

	if (!rc)
		rc = ledgerengine_find_homes(k, op, err);
	if (!rc)
		rc = ledgerengine_put_all(k, op, true, err);
	if (rc == SLU_EMOVED)
		rc = slu_fail(err, SLU_EBUSY, "queue %.*s is being moved; nothing was done", (int)op->puts[op->failed].m.queue.n,
			      op->puts[op->failed].m.queue.p);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < op->n_puts; i++)
		at->b.members += !op->puts[i].existed;
	rc = store(k, at, err);
	if (rc)
		ledgerengine_put_undo(k, op, op->n_puts);
	return rc;
}

bool
ledgerengine_is_of_batch(const struct op *op)
{
	return op->n_items == 1 && slice_eq(op->queue, SLICE(MSGBATCH_QUEUE));
}

void
ledgerengine_batch(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };
	struct at at;
	int rc = open_batch(k, ledgerengine_queue(k, op), op->items->id, &at, &err);

	if (!rc && op->items->nack) {
		at.b.closed = true;
		rc = advance(k, &at, &err);
	} else if (!rc) {
		rc = join(k, op, &at, &err);
	}
	close_batch(&at);
	op->items->rc = rc;
	if (rc)
		op_fail(op, rc, &err);
}

/* ---- Events: MSGBATCH-2, MSGBATCH-5 ---- */

static int
accept_event(struct ledgerengine *k, struct op_put *put, struct slu_err *err)
{
	const struct ledger_offer offer = { .id = put->m.id, .owed = true, .terms = put->m.terms };
	struct change c;
	uint32_t queue;
	int rc = ledger_queue_open(k->ledger, put->m.space, put->m.queue, &queue);

	if (!rc)
		rc = ledger_accept(k->ledger, queue, &offer, k->now, &c);
	if (rc)
		return slu_fail(err, rc == SLU_EMOVED ? SLU_EBUSY : (enum slu_code)rc, "the batches of namespace %.*s: %s", (int)put->m.space.n,
				put->m.space.p, slu_err_row(rc)->text);
	c.settles = true;
	return ledgerengine_put_carry_out(k, put, &c, err);
}

int
ledgerengine_batch_tell(struct ledgerengine *k, struct slice space, uint64_t batch, const struct msgbatch_event *e, uint64_t *told,
			struct slu_err *err)
{
	char text[MSGBATCH_EVENT];
	struct engine_home home;
	struct op_put put;
	int rc;

	put = (struct op_put){ 0 };
	msgbatch_name(&put.m, space);
	msgbatch_event_encode(e, text);
	put.m.terms.batch = batch;
	put.m.payload = (struct slice){ text, sizeof text };
	put.m.payload_size = sizeof text;
	*told = 0;
	rc = new_id(k, space, put.m.queue, &put.m.id, &home, err);
	if (!rc)
		rc = home.here ? accept_event(k, &put, err) : ledgerengine_promise_event(k, &put, err);
	if (!rc)
		*told = home.here ? put.m.id : put.entry;
	return rc;
}

void
ledgerengine_batch_untell(struct ledgerengine *k, uint64_t told)
{
	struct op_put put = { .m = { .id = told, .number = 1 } };
	struct op op = { .verb = OP_INTAKE, .puts = &put, .n_puts = 1 };

	if (told)
		ledgerengine_put_undo(k, &op, 1);
}

/* What the change says to the batch of its message; false: nothing. */
static bool
ends_member(const struct change *c, const struct ledger_view *v, enum msgbatch_what *what)
{
	const bool acked = c->kind == CHANGE_DONE && v->state == MSG_LEASED && !(v->flags & MSG_CANCELED);

	*what = c->kind == CHANGE_REDRIVE ? MSGBATCH_REDRIVEN : acked ? MSGBATCH_ACKED
								      : MSGBATCH_LOST;
	return (v->state == MSG_DEAD) == (c->kind == CHANGE_REDRIVE);
}

int
ledgerengine_batch_change(struct ledgerengine *k, struct change *c, uint64_t *told, struct slu_err *err)
{
	const uint64_t batch = ledger_member_of(k->ledger, c->msg);
	struct msgbatch_event e = { .n = 1 };
	struct ledger_queue_view q;
	struct ledger_view v;
	int rc;

	*told = 0;
	if (batch <= MSGBATCH_SELF)
		return 0;
	ledger_get(k->ledger, c->msg, &v);
	ledger_queue_get(k->ledger, v.queue, &q);
	if (strcmp(q.name, MSGBATCH_QUEUE) == 0 || !ends_member(c, &v, &e.what))
		return 0;
	rc = ledgerengine_batch_tell(k, slice_of(q.space_name), batch, &e, told, err);
	if (never(rc)) {
		log_warn(k->log, "end of a member is not told to its batch", F_U64("batch", batch), F_STR("error", err ? err->text : ""));
		return 0;
	}
	if (rc && rc != SLU_ENOMEM && rc != SLU_EFULL)
		return SLU_EBUSY; /* later */
	if (!rc && ledger_decide_again(k->ledger, c)) {
		ledgerengine_batch_untell(k, *told);
		return SLU_ENOMEM;
	}
	return rc;
}

int
ledgerengine_batch_known(struct ledgerengine *k, struct op *op, struct slu_err *err)
{
	const struct msgbatch_event e = { MSGBATCH_KNOWN, 1 };
	int rc = 0;

	for (uint32_t i = 0; i < op->n_puts && !rc; i++) {
		struct op_put *const put = &op->puts[i];

		if (put->existed && put->m.terms.batch > MSGBATCH_SELF)
			rc = ledgerengine_batch_tell(k, put->m.space, put->m.terms.batch, &e, &put->entry, err);
	}
	return rc;
}

void
ledgerengine_batch_unknown(struct ledgerengine *k, struct op *op)
{
	for (uint32_t i = op->n_puts; i-- > 0;)
		if (op->puts[i].existed)
			ledgerengine_batch_untell(k, op->puts[i].entry);
}

/* ---- A purge: MSGBATCH-7 ---- */

static int
by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorted; told: room for one event each. */
static int
tell_all(struct ledgerengine *k, struct slice space, const uint64_t *of, uint32_t n, struct ledgerengine_told *told, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0, end; i < n && !rc; i = end) {
		struct msgbatch_event e = { .what = MSGBATCH_LOST };

		for (end = i; end < n && of[end] == of[i]; end++)
			e.n++;
		rc = ledgerengine_batch_tell(k, space, of[i], &e, &told->ids[told->n], err);
		told->n += !rc;
	}
	return rc;
}

int
ledgerengine_batch_purge(struct ledgerengine *k, uint32_t queue, struct ledgerengine_told *told, struct slu_err *err)
{
	uint32_t msgs[LEDGERENGINE_MEMBERS];
	uint64_t of[LEDGERENGINE_MEMBERS];
	const uint32_t n = ledger_first_members(k->ledger, queue, msgs, LEDGERENGINE_MEMBERS);
	struct ledger_queue_view q;
	int rc;

	told->n = 0;
	ledger_queue_get(k->ledger, queue, &q);
	if (strcmp(q.name, MSGBATCH_QUEUE) == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		of[i] = ledger_member_of(k->ledger, msgs[i]);
	qsort(of, n, sizeof *of, by_number);
	rc = tell_all(k, slice_of(q.space_name), of, n, told, err);
	if (rc)
		ledgerengine_batch_untold(k, told);
	return rc;
}

void
ledgerengine_batch_untold(struct ledgerengine *k, struct ledgerengine_told *told)
{
	while (told->n > 0)
		ledgerengine_batch_untell(k, told->ids[--told->n]);
}

bool
ledgerengine_has_members(const struct ledgerengine *k, uint32_t queue)
{
	struct ledger_queue_view q;

	ledger_queue_get(k->ledger, queue, &q);
	return ledger_members(k->ledger, queue) > LEDGERENGINE_MEMBERS && strcmp(q.name, MSGBATCH_QUEUE) != 0;
}

int
ledgerengine_remove_members(struct ledgerengine *k, uint32_t queue, uint64_t *n)
{
	uint32_t msgs[LEDGERENGINE_MEMBERS];
	const uint32_t found = ledger_first_members(k->ledger, queue, msgs, LEDGERENGINE_MEMBERS);
	struct ledger_queue_view q;
	int rc = 0;

	ledger_queue_get(k->ledger, queue, &q);
	for (uint32_t i = 0; i < found && !rc; i++) {
		struct ledger_ref ref = { .space = q.space, .queue = queue };
		struct ledger_view v;
		struct change c;

		ledger_get(k->ledger, msgs[i], &v);
		ref.id = v.id;
		rc = ledger_delete(k->ledger, &ref, k->now, &c);
		if (!rc)
			rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL);
		*n += !rc;
	}
	return rc;
}

/* ---- The fold: MSGBATCH-3 ---- */

struct fold {
	uint32_t queue, space;
	const uint32_t *msgs;
	uint32_t n;
	bool seen[FOLDED]; /* by index: was looked at */
	bool waits;        /* something is to be tried again later */
};

/* Returns whether the message is still what was found: a step before may have removed it. */
static bool
is_there(const struct ledgerengine *k, const struct fold *f, uint32_t msg)
{
	uint32_t cursor = msg, found;
	struct ledger_view v;

	if (!ledger_scan(k->ledger, &cursor, &found, 1))
		return false;
	ledger_get(k->ledger, msg, &v);
	return v.queue == f->queue && v.state == MSG_READY && !v.taken && ledger_member_of(k->ledger, msg);
}

static int
drop(struct ledgerengine *k, const struct fold *f, uint64_t id)
{
	const struct ledger_ref ref = { .space = f->space, .queue = f->queue, .id = id };
	struct change c;
	const int rc = ledger_delete(k->ledger, &ref, k->now, &c);

	return rc ? rc : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL);
}

/* The events that the batch has counted before, and that could not be removed. */
static int
drop_seen(struct ledgerengine *k, const struct fold *f, struct msgbatch *b)
{
	int rc = 0;

	for (uint32_t i = 0; i < b->n_seen && !rc; i++)
		if (ledger_find(k->ledger, f->space, b->seen[i]) != SLAB_NONE)
			rc = drop(k, f, b->seen[i]);
	return rc;
}

/* Counts an event that was not counted before. */
static int
count(struct ledgerengine *k, uint32_t msg, struct msgbatch *b)
{
	struct msgbatch_event e;
	struct slice payload;
	struct ledger_view v;
	char *bytes;
	int rc = read_payload(k, msg, &bytes, &payload, NULL);

	if (!rc)
		rc = msgbatch_event_decode(payload, &e, NULL);
	if (!rc) {
		ledger_get(k->ledger, msg, &v);
		msgbatch_count(b, &e);
		b->seen[b->n_seen++] = v.id;
	}
	mem_free(bytes);
	return rc;
}

/* Counts the events of a batch from index i on, which are in the order in which they came. */
static int
count_all(struct ledgerengine *k, struct fold *f, uint32_t i, struct msgbatch *b)
{
	const uint64_t batch = ledger_member_of(k->ledger, f->msgs[i]);
	int rc = drop_seen(k, f, b);

	b->n_seen = 0;
	for (; i < f->n && !rc && b->n_seen < MSGBATCH_SEEN; i++) {
		if (f->seen[i] || !is_there(k, f, f->msgs[i]) || ledger_member_of(k->ledger, f->msgs[i]) != batch)
			continue;
		rc = count(k, f->msgs[i], b);
		f->seen[i] = true;
	}
	return rc;
}

static int
fold_batch(struct ledgerengine *k, struct fold *f, uint32_t i, struct at *at)
{
	struct slu_err err = { 0 };
	uint64_t ids[MSGBATCH_SEEN];
	uint32_t n;
	int rc = count_all(k, f, i, &at->b);

	if (rc)
		return rc;
	n = at->b.n_seen;
	memcpy(ids, at->b.seen, sizeof ids);
	if (n)
		rc = advance(k, at, &err);
	for (uint32_t x = 0; x < n && !rc; x++)
		rc = drop(k, f, ids[x]);
	return rc;
}

/* The batch of an event is not here: it is gone, or on its way. */
static int
stray(struct ledgerengine *k, struct fold *f, const struct ledger_view *v)
{
	if (!ledger_has_moved(k->ledger) || k->now - v->due > STRAY)
		return drop(k, f, v->id);
	return SLU_ENOTFOUND;
}

/* A moment that the batch has waited for. */
static int
fold_moment(struct ledgerengine *k, struct fold *f, struct at *at)
{
	struct slu_err err = { 0 };

	if (at->b.outcome != MSGBATCH_OPEN && k->now >= msgbatch_due(&at->b))
		return drop(k, f, at->id);
	return advance(k, at, &err);
}

static int
fold_one(struct ledgerengine *k, struct fold *f, uint32_t i)
{
	const uint64_t batch = ledger_member_of(k->ledger, f->msgs[i]);
	struct slu_err err = { 0 };
	struct ledger_view v;
	struct at at;
	int rc;

	ledger_get(k->ledger, f->msgs[i], &v);
	rc = open_batch(k, f->queue, batch == MSGBATCH_SELF ? v.id : batch, &at, &err);
	if (rc == SLU_ENOTFOUND && batch != MSGBATCH_SELF)
		rc = stray(k, f, &v);
	else if (!rc)
		rc = batch == MSGBATCH_SELF ? fold_moment(k, f, &at) : fold_batch(k, f, i, &at);
	close_batch(&at);
	return rc;
}

/* Returns whether the queue is to be looked at again. */
static bool
fold_queue(struct ledgerengine *k, uint32_t queue)
{
	uint32_t msgs[FOLDED];
	struct fold f = { .queue = queue, .msgs = msgs };
	struct ledger_queue_view q;

	if (ledger_queue_next(k->ledger, queue ? queue - 1 : SLAB_NONE) != queue) /* it was forgotten */
		return false;
	ledger_queue_get(k->ledger, queue, &q);
	f.space = q.space;
	if (strcmp(q.name, MSGBATCH_QUEUE) != 0)
		return false;
	if (ledger_peek(k->ledger, queue, msgs, FOLDED, &f.n))
		f.waits = true;
	for (uint32_t i = 0; i < f.n; i++) {
		if (f.seen[i] || !is_there(k, &f, msgs[i]))
			continue;
		f.waits |= fold_one(k, &f, i) != 0;
		f.seen[i] = true;
	}
	k->batches.wait |= f.waits;
	ledger_queue_get(k->ledger, queue, &q);
	return f.waits || q.count[MSG_READY] > 0;
}

static void
note_all(struct ledgerengine *k)
{
	for (uint32_t q = ledger_queue_next(k->ledger, SLAB_NONE); q != SLAB_NONE; q = ledger_queue_next(k->ledger, q)) {
		struct ledger_queue_view v;

		ledger_queue_get(k->ledger, q, &v);
		if (v.count[MSG_READY])
			ledgerengine_batches_note(k, q, v.name);
	}
	k->batches.opened = true;
}

void
ledgerengine_batches_note(struct ledgerengine *k, uint32_t queue, const char *name)
{
	struct ledgerengine_batches *const all = &k->batches;

	if (name[0] != '.' || strcmp(name, MSGBATCH_QUEUE) != 0)
		return;
	for (uint32_t i = 0; i < all->n_queues; i++)
		if (all->queues[i] == queue)
			return;
	if (mem_room(&all->queues, &all->queues_room, all->n_queues + 1, sizeof *all->queues))
		all->queues[all->n_queues++] = queue;
	else
		all->opened = false; /* all queues are looked at later */
}

void
ledgerengine_batches_fold(struct ledgerengine *k)
{
	struct ledgerengine_batches *const all = &k->batches;
	uint32_t n = 0;

	if (!all->opened)
		note_all(k);
	all->wait = false;
	for (uint32_t i = 0; i < all->n_queues; i++)
		if (fold_queue(k, all->queues[i]))
			all->queues[n++] = all->queues[i];
	all->n_queues = n;
}

slu_time
ledgerengine_batches_due(const struct ledgerengine *k)
{
	if (!k->batches.opened)
		return k->now;
	if (k->batches.n_queues == 0)
		return SLU_NEVER;
	return k->batches.wait ? time_add(k->now, LEDGERENGINE_LATER) : k->now;
}
