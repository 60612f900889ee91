/*
 * logkit_lock.c - random work on lock keys and on the states of messages.
 *
 * A batch happens whole or not at all. So the model has two of everything: the keys as
 * they were before the batch under way and as they are after it; what is found at the next
 * open is one or the other.
 */
#include "logkit_private.h"

#include "base/id.h"
#include "engine/payload.h"

#include <stdio.h>

/* ---- Documents: all of one follows from its number ---- */

static size_t
document_of(const struct logkit *k, uint32_t doc, char *out)
{
	const size_t n = 1 + (doc * 2654435761u) % k->max_payload;

	for (size_t i = 0; i < n; i++)
		out[i] = (char)(doc * 17 + i * 5);
	return n;
}

static void
check_bytes(const struct logkit *k, struct slice got, uint32_t doc)
{
	static char want[KIT_PAYLOAD];
	const size_t n = doc == KIT_ANY ? 0 : document_of(k, doc, want);

	CHECK(doc == KIT_ANY || slice_eq((struct slice){ want, n }, got));
}

/* False: it cannot be read, and the power is gone; or (lossy) it is back, because what took
 * its place was lost, and has no file any more. */
static bool
read_document(struct logkit *k, const struct op_lock *q, struct message *m)
{
	static char record[80000], payload[KIT_PAYLOAD];
	int rc;

	CHECK(q->record.size <= sizeof record);
	rc = engine_read(k->e, &q->record, 0, q->record.size, record, true, &k->err);
	if (!rc) {
		CHECK_EQ(0, message_decode((struct slice){ record, q->record.size }, m, &k->err));
		CHECK_EQ(q->etag, m->number);
		CHECK_EQ(m->file != 0, q->payload.pin != NULL);
	}
	if (!rc && m->file) {
		rc = engine_read(k->e, &q->payload, 0, q->payload.size, payload, true, &k->err);
		m->payload = (struct slice){ payload, q->payload.size };
	}
	if (rc && !kit_is_dead(k) && !(k->lossy && rc == SLU_ECORRUPT))
		test_fail(__FILE__, __LINE__, "read document %" PRIu64 ": %s", q->etag,
			  k->err.text);
	return rc == 0;
}

/* ---- Ops ---- */

static void
start(struct op *op, struct kit_lock_op *o, enum op_verb verb, uint64_t token)
{
	op_init(op, verb, KIT_SPACE, SLICE(LOCK_QUEUE), NULL, NULL);
	snprintf(o->name, sizeof o->name, "key/%d", o->key);
	op->lock.key = slice_of(o->name);
	op->lock.token = token;
	if (token)
		lock_txn(token, op->lock.txn);
}

/* Bytes, or a file if they are many. False: there was none to be had. */
static bool
give_document(struct logkit *k, struct op *op, struct kit_lock_op *o)
{
	struct message *m = &o->put.m;
	int rc;

	o->doc = ++k->next_doc;
	o->put = (struct op_put){ 0 };
	m->payload = (struct slice){ o->bytes, document_of(k, o->doc, o->bytes) };
	m->payload_size = m->payload.n;
	op->puts = &o->put;
	op->n_puts = 1;
	if (!payload_is_large(k->e, m->payload.n))
		return true;
	rc = payload_store(k->e, m, &o->payload, &k->err);
	k->files += rc == 0;
	if (!rc)
		return true;
	CHECK(rc == SLU_EFULL || kit_is_down(k, rc));
	payload_close(o->payload);
	o->payload = NULL;
	return false;
}

static const enum op_verb held_verbs[] = {
	OP_STATE_PUT,
	OP_STATE_PUT,
	OP_STATE_PUT,
	OP_RELEASE,
	OP_RELEASE,
	OP_KEEPALIVE,
	OP_STATE_REMOVE,
	OP_STATE_GET,
};

bool
kit_make_lock(struct logkit *k, struct op *op, struct kit_lock_op *o, unsigned *used)
{
	const int key = (int)kit_dice(k, KIT_LOCKS);
	const struct kit_lock *l = &k->locks[key];
	const bool held = l->token && l->until > k->now;

	o->payload = NULL;
	o->key = key;
	if (*used >> key & 1 || l->broken)
		return false;
	*used |= 1u << key;
	start(op, o, held ? held_verbs[kit_dice(k, COUNT(held_verbs))] : OP_ACQUIRE,
	      held ? l->token : 0);
	op->lock.ttl = (slu_time)(5 + kit_dice(k, 40)) * SLU_SEC;
	op->lock.rollback = kit_dice(k, 3) == 0;
	return op->verb != OP_STATE_PUT || give_document(k, op, o);
}

/* ---- What an answer means ---- */

static void
end_release(struct logkit *k, struct kit_lock *l, const struct op *op)
{
	if (l->stages && !op->lock.rollback) {
		l->etag = l->staged;
		l->doc = l->staged_doc;
		l->version++;
		k->committed++;
	}
	l->token = 0;
	l->stages = false;
}

static void
check_seen(struct logkit *k, const struct kit_lock *l, struct op *op)
{
	const uint64_t etag = l->stages ? l->staged : l->etag;
	struct message m;

	CHECK_EQ(etag, op->lock.etag, "what the holder sees");
	CHECK_EQ(l->version + l->stages, op->lock.version);
	if (etag && read_document(k, &op->lock, &m))
		check_bytes(k, m.payload, l->stages ? l->staged_doc : l->doc);
}

/* I4, for leases and etags. */
static void
take_number(struct logkit *k, uint64_t number)
{
	if (number <= k->top_token)
		test_fail(__FILE__, __LINE__, "%" PRIu64 " after %" PRIu64, number,
			  k->top_token);
	k->top_token = number;
}

static void
stage(struct kit_lock *l, uint64_t etag, uint32_t doc)
{
	l->stages = true;
	l->staged = etag;
	l->staged_doc = doc;
}

void
kit_end_lock(struct logkit *k, struct op *op, struct kit_lock_op *o)
{
	struct kit_lock *l = &k->locks[o->key];

	*l = k->was[o->key];
	if (op->rc == SLU_EFULL || (op->rc == SLU_ETOOBIG && op->verb == OP_STATE_PUT) ||
	    kit_is_down(k, op->rc))
		return;
	if (op->rc)
		test_fail(__FILE__, __LINE__, "%s of %s: %s", op_verb_name(op->verb), o->name,
			  op->err.text);
	if (op->verb == OP_ACQUIRE) {
		take_number(k, op->lock.token);
		CHECK_EQ(l->etag, op->lock.etag, "committed");
		CHECK_EQ(l->version, op->lock.version);
		l->token = op->lock.token;
		l->stages = false;
		k->locked++;
	}
	if (op->verb == OP_ACQUIRE || op->verb == OP_KEEPALIVE)
		l->until = op->lock.until;
	if (op->verb == OP_STATE_PUT) {
		take_number(k, op->lock.etag);
		stage(l, op->lock.etag, o->doc);
	}
	if (op->verb == OP_STATE_REMOVE && op->count) {
		stage(l, 0, 0);
		l->stages = l->etag != 0; /* what was only staged was never there */
	}
	if (op->verb == OP_RELEASE)
		end_release(k, l, op);
	if (op->verb == OP_STATE_GET)
		check_seen(k, l, op);
}

/* Nobody has heard which number it got. */
#define KIT_UNTOLD UINT64_MAX

void
kit_doubt_lock(struct logkit *k, struct op *op, struct kit_lock_op *o)
{
	struct kit_lock *l = &k->locks[o->key];

	if (op->verb == OP_ACQUIRE) {
		l->token = KIT_UNTOLD;
		l->stages = false;
	}
	if (op->verb == OP_ACQUIRE || op->verb == OP_KEEPALIVE)
		l->until = k->now + op->lock.ttl;
	if (op->verb == OP_STATE_PUT)
		stage(l, KIT_UNTOLD, o->doc);
	if (op->verb == OP_STATE_REMOVE) {
		stage(l, 0, 0);
		l->stages = l->etag != 0;
	}
	if (op->verb == OP_RELEASE)
		end_release(k, l, op);
}

static bool
is_number(const struct logkit *k, uint64_t want, uint64_t got)
{
	return want == KIT_UNTOLD ? got > k->told : want == got;
}

void
kit_settle_locks(struct logkit *k, bool happened)
{
	if (happened)
		memcpy(k->was, k->locks, sizeof k->was);
	else
		memcpy(k->locks, k->was, sizeof k->was);
}

/* ---- Verify ---- */

static bool
run(struct logkit *k, struct op *op)
{
	if (logkit_run(k, op)) {
		CHECK(kit_is_dead(k));
		op_unpin(op);
		return false;
	}
	return true;
}

/* A key as it is found: the lease, what is committed, and what the holder sees. */
struct found {
	struct op lease;
	struct op open; /* documents, pinned */
	struct op held; /* as open, when there is no lease */
};

static bool
look(struct logkit *k, int key, struct found *f)
{
	struct kit_lock_op o = { .key = key };

	start(&f->lease, &o, OP_DESCRIBE, 0);
	if (!run(k, &f->lease))
		return false;
	CHECK_EQ(0, f->lease.rc);
	start(&f->open, &o, OP_STATE_GET, 0);
	if (!run(k, &f->open))
		return false;
	start(&f->held, &o, OP_STATE_GET, f->lease.lock.token);
	if (run(k, &f->held))
		return true;
	op_unpin(&f->open);
	return false;
}

static bool
is_like(const struct logkit *k, const struct kit_lock *l, const struct found *f)
{
	const bool held = l->token && l->until > k->now;
	const uint64_t token = f->lease.lock.token;
	const bool stages = l->stages && token;

	if ((held || token) && !is_number(k, l->token, token))
		return false;
	return is_number(k, l->etag, f->open.lock.etag) && f->open.lock.version == l->version &&
	       is_number(k, stages ? l->staged : l->etag, f->held.lock.etag) &&
	       f->held.lock.version == l->version + stages;
}

/* Lossy: what is there is what must be. */
static void
learn(struct logkit *k, struct kit_lock *l, const struct found *f)
{
	struct message m;

	*l = (struct kit_lock){
		.broken = f->open.rc || f->held.rc,
		.version = f->open.lock.version,
		.etag = f->open.lock.etag,
		.doc = KIT_ANY,
		.stages = f->held.lock.version > f->open.lock.version,
		.staged = f->held.lock.etag,
		.staged_doc = KIT_ANY,
	};
	if (!l->broken && l->etag)
		l->broken = !read_document(k, &f->open.lock, &m);
	if (!l->broken && l->staged)
		l->broken = !read_document(k, &f->held.lock, &m);
}

static void
check_found(struct logkit *k, int key, struct kit_lock *l, struct found *f)
{
	struct kit_lock public;

	if (k->lossy)
		learn(k, l, f);
	if (l->broken)
		return;
	CHECK(f->open.rc == 0 && f->held.rc == 0);
	if (!k->lossy && !is_like(k, l, f) && is_like(k, &k->was[key], f))
		*l = k->was[key];
	if (!k->lossy && !is_like(k, l, f))
		test_fail(__FILE__, __LINE__,
			  "key %d: version %" PRIu64 ", etag %" PRIu64 ", staged %" PRIu64
			  ", token %" PRIu64 "; want %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64,
			  key, f->open.lock.version, f->open.lock.etag, f->held.lock.etag,
			  f->lease.lock.token, l->version, l->etag, l->stages ? l->staged : 0,
			  l->token);
	l->token = f->lease.lock.token;
	l->until = f->lease.lock.until;
	l->etag = f->open.lock.etag;
	l->stages = l->stages && l->token;
	l->staged = l->stages ? f->held.lock.etag : 0;
	k->top_token = l->token > k->top_token ? l->token : k->top_token;
	k->top_token = l->staged > k->top_token ? l->staged : k->top_token;
	public = *l;
	public.stages = false;
	check_seen(k, &public, &f->open);
	check_seen(k, l, &f->held);
	k->named += f->open.lock.payload.pin != NULL;
	k->named += f->held.lock.payload.pin && l->stages && l->staged;
}

static bool
check_key(struct logkit *k, int key)
{
	struct found f;

	if (!look(k, key, &f))
		return false;
	check_found(k, key, &k->locks[key], &f);
	op_unpin(&f.open);
	op_unpin(&f.held);
	return true;
}

/* Not more states than messages: those that are gone have none. */
static bool
check_states(struct logkit *k)
{
	uint64_t in = 0;
	struct op op;

	op_init(&op, OP_SHARD, (struct slice){ 0 }, (struct slice){ 0 }, NULL, NULL);
	if (!run(k, &op))
		return false;
	CHECK_EQ(0, op.rc);
	for (uint64_t id = 1; id < k->next_id; id++)
		in += kit_msg(k, id)->status == KIT_IN;
	CHECK(op.on_shard.states <= in);
	CHECK(locks_scan_check(logengine_locks(k->e)) == NULL);
	return true;
}

bool
kit_check_locks(struct logkit *k)
{
	k->told = k->top_token;
	for (int i = 0; i < KIT_LOCKS; i++)
		if (!check_key(k, i))
			return false;
	kit_settle_locks(k, true);
	return check_states(k);
}

/* ---- The states of messages ---- */

static void
start_state(struct logkit *k, struct op *op, struct kit_lock_op *o, enum op_verb verb,
	    uint64_t token)
{
	const struct slice queue = slice_of(kit_queues[kit_msg(k, o->id)->queue]);
	char uuid[ID_UUID_TEXT];

	op_init(op, verb, KIT_SPACE, queue, NULL, NULL);
	snprintf(o->name, sizeof o->name, "q/%.*s/state/%s", (int)queue.n, queue.p,
		 id_to_uuid(o->id, uuid));
	op->lock.key = slice_of(o->name);
	op->lock.token = token;
	lock_txn(token, op->lock.txn);
}

bool
kit_make_state(struct logkit *k, struct op *op, struct kit_lock_op *o)
{
	const struct kit_held *held;

	o->payload = NULL;
	o->key = -1;
	if (!k->n_held)
		return false;
	held = &k->held[kit_dice(k, k->n_held)];
	if (kit_msg(k, held->id)->status != KIT_IN)
		return false;
	o->id = held->id;
	start_state(k, op, o, OP_STATE_PUT, held->token);
	o->put = (struct op_put){ 0 };
	snprintf(o->bytes, sizeof o->bytes, "state of %" PRIu64, held->id);
	o->put.m.payload = slice_of(o->bytes);
	o->put.m.payload_size = o->put.m.payload.n;
	op->puts = &o->put;
	op->n_puts = 1;
	return true;
}

/* What a nack committed for sure is there, or something later. */
void
kit_check_state(struct logkit *k, const struct op_row *row)
{
	static struct kit_lock_op room;
	struct kit_lock_op *o = &room;
	struct kit_msg *m = kit_msg(k, row->id);
	struct message doc;
	char want[64];
	struct op op;

	o->id = row->id;
	m->staged = 0;
	if (row->state_etag < m->state)
		test_fail(__FILE__, __LINE__, "state %" PRIu64 " of %" PRIu64 " is lost",
			  m->state, row->id);
	if (!row->state_etag)
		return;
	k->states++;
	m->state = row->state_etag;
	start_state(k, &op, o, OP_STATE_GET, row->token);
	if (logkit_run(k, &op) || op.rc) {
		CHECK(kit_is_dead(k) || op.rc == SLU_ELEASE);
		op_unpin(&op);
		return;
	}
	snprintf(want, sizeof want, "state of %" PRIu64, row->id);
	if (read_document(k, &op.lock, &doc))
		CHECK(slice_eq(slice_of(want), doc.payload));
	op_unpin(&op);
}
