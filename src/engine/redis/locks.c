/*
 * locks.c - the verbs of lock keys: ops to calls of locks.lua, and its answers to ops.
 */
#include "engine/redis/redis_private.h"

#include "base/limit.h"
#include "engine/redis/replybytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ASK_ARGS = 16,
	KEYS_ARGS = 4,
	TOO_MANY = -1, /* answers of locks.lua beyond enum lock_why */
	AWAY = -2,
	MOVED = -3,
	TXN_TEXT = 2 * LOCK_TXN + 1
};

/* ---- Transactions, as text ---- */

static const char *
txn_text(const uint8_t txn[LOCK_TXN], char out[static TXN_TEXT])
{
	static const uint8_t none[LOCK_TXN];

	out[0] = '\0';
	for (int i = 0; memcmp(txn, none, LOCK_TXN) != 0 && i < LOCK_TXN; i++)
		(void)snprintf(out + (size_t)2 * i, 3, "%02x", txn[i]);
	return out;
}

/* `text`: "" = the transaction made of the token. */
static void
txn_read(const char *text, uint64_t token, uint8_t out[static LOCK_TXN])
{
	memset(out, 0, LOCK_TXN);
	if (token && strlen(text) < TXN_TEXT - 1)
		lock_txn(token, out);
	for (int i = 0; token && strlen(text) >= TXN_TEXT - 1 && i < LOCK_TXN; i++) {
		const char digits[3] = { text[2 * i], text[2 * i + 1] };

		out[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

/* ---- Out ---- */

/* The key, or the message, that the op is about. */
static void
put_which(struct redis *r, const struct op *op)
{
	char id[24] = "";
	struct slice queue;
	uint64_t n;

	if (redis_lock_of_message(op) && lock_key_of_message(op->lock.key, &queue, &n))
		(void)snprintf(id, sizeof id, "%" PRIu64, n);
	rwire_arg(r->wire, op->lock.key);
	rwire_arg(r->wire, slice_of(id));
}

static void
put_txns(struct redis *r, const struct op_lock *q)
{
	uint8_t of_token[LOCK_TXN];
	char text[TXN_TEXT];

	rwire_arg(r->wire, slice_of(txn_text(q->txn, text)));
	lock_txn(q->token, of_token);
	rwire_arg(r->wire, slice_of(txn_text(of_token, text)));
}

static void
put_flags(struct redis *r, const struct op *op)
{
	const struct op_lock *const q = &op->lock;
	char text[64];

	(void)snprintf(text, sizeof text, "%s%s%s%s%s%s", q->if_absent ? "absent " : "",
		       q->rollback ? "rollback " : "", q->undo ? "undo " : "",
		       op->route.waited ? "waited " : "", q->all ? "all " : "", q->hidden ? "hidden" : "");
	rwire_arg(r->wire, slice_of(text));
}

/* The record of a document is the record of a message in two parts. Fields that the server
 * decides are filled in when it is read. */
void
redis_put_document(struct redis *r, const struct message *m)
{
	struct buf *out = &r->wire->out;
	char *p;

	if (!m) {
		rwire_arg(r->wire, SLICE(""));
		rwire_arg(r->wire, SLICE(""));
		return;
	}
	buf_printf(out, "$%zu\r\n", message_head(m));
	p = buf_add(out, message_head(m));
	if (p)
		message_encode_head(m, p);
	buf_put(out, "\r\n", 2);
	rwire_arg(r->wire, m->payload);
}

static void
ask_encode(struct redis *r, const struct rcall *c)
{
	const struct op_lock *q = &c->op->lock;

	put_which(r, c->op);
	rwire_number(r->wire, redis_us(r->now - c->op->route.arrived));
	rwire_arg(r->wire, q->name);
	rwire_arg(r->wire, q->holder);
	rwire_u64(r->wire, q->token);
	rwire_u64(r->wire, q->fence);
	put_txns(r, q);
	rwire_number(r->wire, redis_us(op_lock_ttl(q)));
	rwire_number(r->wire, q->if_version);
	rwire_u64(r->wire, q->if_etag);
	put_flags(r, c->op);
	rwire_u64(r->wire, c->id);
	redis_put_document(r, c->op->verb == OP_STATE_PUT ? &c->op->puts[0].m : NULL);
}

static void
keys_encode(struct redis *r, const struct rcall *c)
{
	rwire_arg(r->wire, c->op->lock.key);
	rwire_number(r->wire, c->op->max_keys);
	rwire_number(r->wire, ENGINE_SCAN_MAX);
	rwire_number(r->wire, c->op->lock.all);
}

/* ---- In ---- */

static const int codes[LOCK_WHYS] = {
	[LOCK_HELD] = SLU_ELEASE,
	[LOCK_KNOWN_KEY] = SLU_EEXISTS,
	[LOCK_NONE] = SLU_ELEASE,
	[LOCK_EXPIRED] = SLU_ELEASE,
	[LOCK_FENCE] = SLU_ELEASE,
	[LOCK_TXN_MISSING] = SLU_EINVAL,
	[LOCK_TXN_OTHER] = SLU_ECONFLICT,
	[LOCK_VERSION] = SLU_ECONFLICT,
	[LOCK_ETAG] = SLU_ECONFLICT,
	[LOCK_OF_MESSAGE] = SLU_EINVAL,
};

/* LOCK-6: the release of a key that is not held succeeds. */
void
redis_lock_refuse(struct redis *r, struct op *op, enum lock_why why)
{
	const struct slice key = op->lock.key;

	op->lock.why = why;
	if (op->verb == OP_RELEASE && codes[why] == SLU_ELEASE)
		return;
	slu_fail(&r->why, (enum slu_code)codes[why], "key %.*s: %s", (int)key.n, key.p,
		 op_lock_reason(why));
	op_fail(op, codes[why], &r->why);
}

/* REDIS-4: whether the op may have happened before. The key has the id of this op unless
 * another op has changed it since. A refused acquire was not granted before: no other op
 * could end its lease. */
static bool
is_unknown(const struct rcall *c, int64_t why)
{
	return c->again && why != LOCK_OK && op_is(c->op->verb, OP_CHANGES);
}

static void
take_refusal(struct redis *r, struct rcall *c, int64_t why)
{
	const struct slice key = c->op->lock.key;

	if (is_unknown(c, why)) {
		op_fail(c->op, SLU_EUNKNOWN, NULL);
	} else if (why == TOO_MANY) {
		slu_fail(&r->why, SLU_ETOOBIG, "key %.*s has %d attachments, the most that a key can have", (int)key.n,
			 key.p, LOCK_DOCS_MAX - 1);
		op_fail(c->op, SLU_ETOOBIG, &r->why);
	} else if (why == AWAY) {
		c->op->rc = limit_fail(&c->op->err, SLU_EBUSY, LIMIT_MOVE, 0,
				       "key %.*s is on its way to another shard", (int)key.n, key.p);
	} else if (why == MOVED) {
		op_fail(c->op, SLU_EMOVED, NULL);
	} else {
		redis_lock_refuse(r, c->op, why > 0 && why < LOCK_WHYS ? (enum lock_why)why : LOCK_NONE);
	}
}

/* The record of a document; of a large one in a list, the part before its payload. Returns
 * NULL if it is malformed or there is no memory. */
static struct replybytes *
document_of(const redisReply *const *f)
{
	const struct slice head = { f[5]->str, (size_t)f[5]->len };
	const size_t n = (size_t)f[6]->len;
	struct message m;
	struct replybytes *p;

	if (message_decode_head(head, &m, NULL) || message_head(&m) != head.n ||
	    (n > 0 && n != m.payload_size))
		return NULL;
	m.number = (uint64_t)reply_int(f[2]);
	m.id = m.id ? m.id : m.number;
	m.accepted = m.due = redis_ns(reply_int(f[4]));
	m.payload = (struct slice){ f[6]->str, (size_t)m.payload_size }; /* only its size is used */
	p = replybytes_new(head.n + n);
	if (!p)
		return NULL;
	message_encode_head(&m, p->bytes);
	if (n)
		memcpy(p->bytes + head.n, f[6]->str, n);
	return p;
}

bool
redis_is_document(const redisReply *reply)
{
	return reply_fits(reply, DOC_SHAPE) && reply->element[0]->len <= LOCK_KEY_MAX;
}

bool
redis_take_document(const redisReply *reply, struct op_ref *out)
{
	const redisReply *const *f = (const redisReply *const *)reply->element;

	*out = (struct op_ref){ 0 };
	if (reply_int(f[2]) == 0)
		return true;
	*out = replybytes_ref(document_of(f));
	return out->pin != NULL;
}

static void
damaged(struct redis *r, struct op *op)
{
	op_drop_rows(op);
	redis_refuse(r, op, SLU_ECORRUPT, "redis: malformed record of a document");
}

/* Returns false if a document is malformed. */
static bool
take_keys(struct redis *r, struct op *op, const redisReply *docs)
{
	const bool leased = op->verb == OP_KEYS && op->lock.all; /* rows without documents */

	for (size_t i = 0; i < docs->elements; i++)
		if (!redis_is_document(docs->element[i]))
			return false;
	for (size_t i = 0; i < docs->elements; i++) {
		const redisReply *const *f = (const redisReply *const *)docs->element[i]->element;
		struct op_key *row = &op->keys[op->n_keys];
		struct op_ref record = { 0 };

		if (op->n_keys == op->max_keys) {
			op->lock.more = true;
			return true;
		}
		if (!leased && !redis_take_document(docs->element[i], &record)) {
			damaged(r, op);
			return true;
		}
		*row = (struct op_key){
			.version = (uint64_t)reply_int(f[1]),
			.etag = (uint64_t)reply_int(f[2]),
			.updated = redis_ns(reply_int(f[3])),
			.record = record,
		};
		memcpy(row->name, f[0]->str, (size_t)f[0]->len);
		op->n_keys++;
	}
	return true;
}

static void
take_lease(struct op_lock *q, const redisReply *const *f)
{
	q->token = (uint64_t)reply_int(f[5]);
	txn_read(f[6]->str, q->token, q->txn);
	if (q->held_by)
		(void)snprintf(q->held_by, LOCK_HOLDER_MAX + 1, "%.*s", (int)f[7]->len, f[7]->str);
}

/* Takes the fields that locks.lua answers for every key. */
static void
take_told(struct op_lock *q, const redisReply *const *f)
{
	q->version = (uint64_t)reply_int(f[1]);
	q->etag = (uint64_t)reply_int(f[2]);
	q->updated = redis_ns(reply_int(f[3]));
	q->until = redis_ns(reply_int(f[4]));
}

static bool
ask_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const redisReply *const *f = (const redisReply *const *)answer->element;
	struct op *op = c->op;
	struct op_lock *q = &op->lock;

	take_told(q, f);
	if (reply_int(f[0]) != LOCK_OK) {
		take_refusal(r, c, reply_int(f[0]));
		return true;
	}
	if (op->verb == OP_ACQUIRE || op->verb == OP_DESCRIBE)
		take_lease(q, f);
	if (op->verb == OP_DESCRIBE)
		q->hidden = reply_int(f[8]);
	op->count = (uint64_t)reply_int(f[9]);
	if (op->verb == OP_ATTACHMENTS)
		return take_keys(r, op, f[10]);
	if (f[10]->elements && !redis_is_document(f[10]->element[0]))
		return false;
	if (f[10]->elements && !redis_take_document(f[10]->element[0], &q->record))
		damaged(r, op);
	return true;
}

static bool
keys_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	if (!take_keys(r, c->op, answer->element[1]))
		return false;
	c->op->lock.more |= reply_int(answer->element[0]) == 1;
	return true;
}

/* The answer about one key, and a page of keys. */
#define TELL_SHAPE "[nuunnuttuu[(" DOC_SHAPE ")]]"
#define KEYS_SHAPE "[u[(" DOC_SHAPE ")]]"

/* clang-format off */
const struct rverb redis_lock_verbs[OP_VERBS] = {
	[OP_ACQUIRE]      = { "acquire",      ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_KEEPALIVE]    = { "keepalive",    ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_RELEASE]      = { "release",      ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_STATE_GET]    = { "state_get",    ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_STATE_PUT]    = { "state_put",    ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_STATE_REMOVE] = { "state_remove", ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_STATE_META]   = { "state_meta",   ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_DESCRIBE]     = { "describe",     ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
	[OP_KEYS]         = { "keys",         KEYS_ARGS, NULL, keys_encode, keys_decode, KEYS_SHAPE },
	[OP_ATTACHMENTS]  = { "attachments",  ASK_ARGS,  NULL, ask_encode,  ask_decode,  TELL_SHAPE },
};
/* clang-format on */
