/*
 * move.c - the steps of a queue's move as calls of move.lua, and the route of every call.
 */
#include "engine/redis/redis_private.h"

#include "base/limit.h"
#include "engine/move_keys.h"
#include "engine/redis/replybytes.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	LEAVING = -2,    /* a give was refused: a row is on its way from here */
	HEADER_MAX = 320 /* bytes of the words of a row */
};

/* ---- The map ---- */

/* Whether the call has the home of its queue. Calls over many queues, and calls that search
 * their queue, do not. */
static bool
is_routed(const struct rcall *c)
{
	const struct op *op = c->op;

	if (!op || op_is(op->verb, OP_SPANS))
		return false;
	return op_verbs[op->verb].follows == OP_FOLLOW_PUTS || op->queue.n > 0 ||
	       (c->from < op->n_items && op->items[c->from].queue.n > 0);
}

void
redis_route(const struct rcall *c, char *out, size_t size)
{
	*out = '\0';
	if (is_routed(c) && c->op->home.epoch)
		(void)snprintf(out, size, " %" PRIu64 " %" PRIu64 " %s", c->op->home.epoch, c->op->home.above,
			       c->op->home.lives ? c->op->home.lives : "");
}

static bool
items_miss(const struct rcall *c)
{
	for (uint32_t i = c->from; i < c->to; i++)
		if (c->op->items[i].rc == SLU_ENOTFOUND)
			return true;
	return false;
}

void
redis_point_elsewhere(const struct rcall *c, const redisReply *lives, uint64_t counter)
{
	struct op *op = c->op;
	bool misses;

	if (!lives->len || !is_routed(c))
		return;
	misses = op->n_items ? items_miss(c) : op_finds_nothing(op) || op->rc == SLU_EMOVED;
	if (!misses)
		return;
	(void)snprintf(op->home.elsewhere, sizeof op->home.elsewhere, "%s", lives->str);
	op->home.counter = counter;
}

/* ---- Rows to give ---- */

static void
give_keys(struct redis *r, const struct op *op, uint32_t at)
{
	struct slice rest = op->puts[at].m.payload;
	struct move_key key;
	char words[96], digest[REDIS_HASH_TEXT];

	while (move_key_next(&rest, &key)) {
		(void)snprintf(words, sizeof words, "1 %" PRIu64 " %" PRId64 " x%s", key.id,
			       redis_us(key.until), redis_digest_text(key.digest, digest));
		rwire_arg(r->wire, slice_of(words));
		rwire_arg(r->wire, key.text);
	}
}

static void
give_message(struct redis *r, const struct op *op, uint32_t at)
{
	const struct op_put *put = &op->puts[at];
	const struct op_stood *s = &put->stood;
	const struct message *m = &put->m;
	const slu_time expires = m->expires == SLU_NEVER ? 0 : m->expires;
	char key[REDIS_HASH_TEXT], digest[REDIS_HASH_TEXT], words[HEADER_MAX];

	(void)snprintf(words, sizeof words,
		       "0 %" PRIu64 " %u %" PRId32 " %" PRId64 " %" PRId64 " %" PRId64 " %u %" PRId64
		       " %u %u %u %u x%s %s",
		       m->id, s->state, m->prio, redis_us(m->due), redis_us(expires),
		       redis_us(m->accepted), m->max_attempts, redis_us(m->keep), s->attempts,
		       s->failures, s->flags, s->reason, redis_digest(m, digest),
		       redis_key_hash(m, key));
	rwire_arg(r->wire, slice_of(words));
	rwire_arg(r->wire, m->idem);
	rwire_arg(r->wire, (struct slice){ s->error, s->error_size });
	redis_put_record(r, m);
}

/* A result in the form of an ack: whether there is one, then its bytes. */
static void
give_result(struct redis *r, const struct op *op, uint32_t at)
{
	const struct op_put *put = &op->puts[at];
	const struct slice text = put->m.payload;
	char words[64];

	(void)snprintf(words, sizeof words, "2 %" PRIu64 " %" PRId64, put->m.id,
		       redis_us(put->m.due));
	rwire_arg(r->wire, slice_of(words));
	buf_printf(&r->wire->out, "$%zu\r\n%d", text.n + 1, text.n > 0);
	buf_put(&r->wire->out, text.p, text.n);
	buf_put(&r->wire->out, "\r\n", 2);
}

/* The message that the document belongs to; 0 = it belongs to a lock key. */
static uint64_t
message_before(const struct op *op, uint32_t at)
{
	while (!slice_eq(op->queue, SLICE(LOCK_QUEUE)) && at-- > 0)
		if (op->puts[at].stood.kind == MOVE_MESSAGE)
			return op->puts[at].m.id;
	return 0;
}

/* Fields that the server decides are not in the record of a document: see lock_plan.c. */
static void
give_document(struct redis *r, const struct op *op, uint32_t at)
{
	const struct op_put *put = &op->puts[at];
	struct message m = put->m;
	char words[160];

	m.id = message_before(op, at);
	m.number = 0;
	m.accepted = m.due = m.expires = m.keep = 0;
	(void)snprintf(words, sizeof words,
		       "3 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %d %" PRId64, m.id,
		       put->stood.version, put->m.number, redis_us(put->m.due),
		       (put->stood.flags & MOVE_HIDDEN) != 0, redis_us(put->m.accepted));
	rwire_arg(r->wire, slice_of(words));
	rwire_arg(r->wire, m.key);
	rwire_arg(r->wire, m.idem);
	redis_put_document(r, &m);
}

static const struct {
	void (*give)(struct redis *r, const struct op *op, uint32_t at);
	uint32_t args; /* arguments of one row */
} kinds[] = {
	[MOVE_MESSAGE] = { give_message, 4 },
	[MOVE_REMEMBERED] = { give_keys, 2 },
	[MOVE_RESULT] = { give_result, 2 },
	[MOVE_STATE] = { give_document, 5 },
};

static uint32_t
things_in(const struct op_put *put)
{
	uint32_t n = 1;

	if (put->stood.kind == MOVE_REMEMBERED)
		(void)move_keys_count(put->m.payload, &n, NULL); /* check_put has checked it */
	return n;
}

/* ---- Out ---- */

static const struct {
	const char *name;
	size_t args;
} steps[] = {
	[MOVE_LOOK] = { "look", 0 },
	[MOVE_MARK] = { "mark", 0 },
	[MOVE_TAKE] = { "take", 4 },
	[MOVE_UNTAKE] = { "untake", 1 },
	[MOVE_GIVE] = { "give", 4 },
	[MOVE_DROP] = { "drop", 1 },
	[MOVE_REFUSE] = { "refuse", 2 },
};

size_t
redis_move_count(const struct rcall *c)
{
	const struct op *op = c->op;
	size_t n = steps[op->move.step].args;

	for (uint32_t i = 0; op->move.step == MOVE_GIVE && i < op->n_puts; i++)
		n += (size_t)kinds[op->puts[i].stood.kind].args * things_in(&op->puts[i]);
	return n;
}

static void
encode_take(struct redis *r, const struct rcall *c)
{
	const struct op *op = c->op;

	rwire_u64(r->wire, op->cursor);
	rwire_number(r->wire, op->max_rows);
	rwire_u64(r->wire, op->move.max_bytes);
	rwire_number(r->wire, op->move.force);
}

static void
encode_give(struct redis *r, const struct rcall *c)
{
	const struct op *op = c->op;
	uint64_t n = 0;

	for (uint32_t i = 0; i < op->n_puts; i++)
		n += things_in(&op->puts[i]);
	rwire_arg(r->wire, slice_of(op->move.peer));
	rwire_u64(r->wire, op->move.batch);
	rwire_u64(r->wire, op->move.counter);
	rwire_u64(r->wire, n);
	for (uint32_t i = 0; i < op->n_puts; i++)
		kinds[op->puts[i].stood.kind].give(r, op, i);
}

void
redis_move_encode(struct redis *r, const struct rcall *c)
{
	const enum move_step step = c->op->move.step;

	rwire_arg(r->wire, slice_of(steps[step].name));
	if (step == MOVE_REFUSE)
		rwire_arg(r->wire, slice_of(c->op->move.peer));
	if (step == MOVE_TAKE)
		encode_take(r, c);
	else if (step == MOVE_GIVE)
		encode_give(r, c);
	else if (steps[step].args)
		rwire_u64(r->wire, c->op->move.batch);
}

/* ---- In ---- */

/* A digest has 16 hex digits, or none if it is unknown. */
static bool
is_digest(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (ascii_hex(text.p[i]) < 0)
			return false;
	return text.n == 0 || text.n == 16;
}

static uint64_t
digest_in(struct slice text)
{
	uint64_t digest = 0;

	for (size_t i = 0; i < text.n; i++)
		digest = digest << 4 | (uint64_t)ascii_hex(text.p[i]);
	return digest;
}

static bool
take_keys(struct op *op, const redisReply *one)
{
	struct op_row *row = &op->rows[op->n_rows];
	struct buf text;

	buf_init(&text, SIZE_MAX);
	for (size_t i = 1; i < one->elements; i += 4)
		move_key_put(&text, &(struct move_key){
					    .id = reply_id(one->element[i]),
					    .until = redis_ns(reply_int(one->element[i + 1])),
					    .text = reply_text(one->element[i + 2]),
					    .digest = digest_in(reply_text(one->element[i + 3])),
				    });
	*row = (struct op_row){ .kind = MOVE_REMEMBERED };
	if (!text.failed)
		row->payload = replybytes_ref(replybytes_of(text.p, text.n));
	op->n_rows += row->payload.pin != NULL;
	buf_release(&text);
	return row->payload.pin;
}

static bool
take_result(struct op *op, const redisReply *one)
{
	struct op_row *row = &op->rows[op->n_rows];
	const redisReply *text = one->element[3];

	*row = (struct op_row){
		.kind = MOVE_RESULT,
		.id = reply_id(one->element[1]),
		.due = redis_ns(reply_int(one->element[2])),
	};
	if (text->len > 1) {
		row->payload = replybytes_ref(replybytes_of(text->str + 1, (size_t)text->len - 1));
		if (!row->payload.pin)
			return false;
	}
	op->n_rows++;
	return true;
}

static bool
take_document(struct op *op, const redisReply *one)
{
	const redisReply *doc = one->element[1];
	struct op_ref record;

	if (!redis_take_document(doc, &record) || !record.pin)
		return false;
	op->rows[op->n_rows++] = (struct op_row){
		.kind = MOVE_STATE,
		.state_version = (uint64_t)reply_int(doc->element[1]),
		.state_etag = (uint64_t)reply_int(doc->element[2]),
		.due = redis_ns(reply_int(doc->element[3])),
		.flags = reply_int(one->element[2]) ? MOVE_HIDDEN : 0,
		.record = record,
	};
	return true;
}

static bool
are_keys(const redisReply *one)
{
	if (!reply_fits(one, "[u(iutt)]"))
		return false;
	for (size_t i = 1; i < one->elements; i += 4)
		if (one->element[i + 2]->len > MESSAGE_KEY_MAX || !is_digest(reply_text(one->element[i + 3])))
			return false;
	return true;
}

/* Whether a row has the form of its kind. */
static bool
is_thing(const redisReply *one)
{
	switch (reply_int(one->element[0])) {
	case MOVE_MESSAGE:
		return one->elements == 2 && redis_is_row(one->element[1]);
	case MOVE_REMEMBERED:
		return are_keys(one);
	case MOVE_STATE:
		return one->elements == 3 && redis_is_document(one->element[1]) &&
		       reply_fits(one->element[2], "u");
	case MOVE_RESULT:
		return reply_fits(one, "[uiut]");
	default:
		return false;
	}
}

static bool
take_thing(struct op *op, const redisReply *one)
{
	switch (reply_int(one->element[0])) {
	case MOVE_MESSAGE:
		return redis_take_row(op, one->element[1]);
	case MOVE_REMEMBERED:
		return take_keys(op, one);
	case MOVE_STATE:
		return take_document(op, one);
	default:
		return take_result(op, one);
	}
}

static void
take_given(struct redis *r, struct op *op, int64_t given)
{
	if (given == LEAVING)
		op->rc = limit_fail(&op->err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
				    "a message or a key of this batch is being moved away");
	else if (given < 0)
		redis_refuse(r, op, SLU_EMOVED, slu_err_row(SLU_EMOVED)->text);
	else
		op->move.given = (uint64_t)given;
}

bool
redis_move_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const redisReply *const *f = (const redisReply *const *)answer->element;
	struct op_move *m = &c->op->move;

	m->epoch = (uint64_t)reply_int(f[0]);
	(void)snprintf(m->lives, sizeof m->lives, "%s", f[1]->str);
	(void)snprintf(m->receiver, sizeof m->receiver, "%s", f[12]->str);
	m->messages = (uint64_t)reply_int(f[2]);
	m->leased = (uint64_t)reply_int(f[3]);
	m->damaged = (uint64_t)reply_int(f[4]);
	m->remembered = (uint64_t)reply_int(f[5]);
	m->results = (uint64_t)reply_int(f[6]);
	take_given(r, c->op, reply_int(f[10]));
	if (m->step != MOVE_GIVE)
		m->counter = (uint64_t)reply_int(f[8]);
	if (m->step == MOVE_TAKE || m->step == MOVE_LOOK)
		m->batch = reply_id(f[7]);
	if (m->step != MOVE_TAKE)
		return true;
	c->op->cursor = (uint64_t)reply_int(f[9]);
	return redis_take_rows(r, c->op, f[11], is_thing, take_thing);
}

/* ---- Which calls ---- */

static int
check_put(struct redis *r, const struct op_put *put)
{
	uint32_t n;

	if ((unsigned)put->stood.kind >= sizeof kinds / sizeof kinds[0])
		return slu_fail(&r->why, SLU_EINVAL, "invalid kind of row in a batch: %d", (int)put->stood.kind);
	if (put->stood.kind == MOVE_STATE)
		return message_check(&put->m, &r->why);
	if (put->stood.kind == MOVE_REMEMBERED)
		return move_keys_count(put->m.payload, &n, &r->why);
	if (put->stood.kind != MOVE_MESSAGE)
		return 0;
	if (redis_check_share(&put->m, &r->why))
		return SLU_EINVAL;
	return op_check_given(put, &r->why);
}

static int
check_puts(struct redis *r, struct op *op)
{
	int rc = 0;

	for (uint32_t i = 0; i < op->n_puts && !rc; i++) {
		op->failed = i;
		op->puts[i].m.space = op->space;
		op->puts[i].m.queue = op->queue;
		rc = check_put(r, &op->puts[i]);
	}
	return rc;
}

/* Stores the priorities and ids of messages before they are sent. */
static int
note_puts(struct redis *r, const struct op *op, uint32_t h, struct slu_err *err)
{
	uint64_t highest = 0;
	int rc = 0;

	for (uint32_t i = 0; i < op->n_puts && !rc; i++) {
		if (op->puts[i].stood.kind != MOVE_MESSAGE)
			continue;
		rc = rqueue_add_prio(rqueue_at(r, h), op->puts[i].m.prio);
		highest = op->puts[i].m.id > highest ? op->puts[i].m.id : highest;
	}
	if (rc)
		return slu_fail(err, rc, "no memory for priorities");
	return highest ? redis_ids_note_given(r, highest, err) : 0;
}

/* Answers for a queue that does not exist here: no messages, no mark. */
static void
answer_none(struct op *op)
{
	struct op_move *m = &op->move;

	m->epoch = m->messages = m->leased = m->damaged = m->remembered = m->results = 0;
	m->lives[0] = m->receiver[0] = '\0';
	if (m->step == MOVE_TAKE || m->step == MOVE_LOOK)
		m->batch = 0;
	op->cursor = 0;
}

/* Whether the step creates a queue that does not exist here: it stores something about it. */
static bool
makes_queue(enum move_step step)
{
	return step == MOVE_GIVE || step == MOVE_REFUSE || step == MOVE_MARK;
}

int
redis_plan_move(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h = SLAB_NONE;
	int rc = op_check_move(op, &r->why);

	op->n_rows = 0;
	op->move.given = 0;
	if (!rc && op->move.step == MOVE_GIVE)
		rc = check_puts(r, op);
	if (rc) {
		op_fail(op, rc, &r->why);
		return 0;
	}
	rc = makes_queue(op->move.step) ? redis_make_queue(r, op, &h, err)
					: redis_find_queue(r, op, op->space, op->queue, &h, err);
	if (!rc && h == SLAB_NONE)
		answer_none(op);
	if (!rc && h != SLAB_NONE)
		rc = note_puts(r, op, h, err);
	if (rc || h == SLAB_NONE)
		return rc;
	return rcall_add(r, &redis_verbs[OP_MOVE], op, h) ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for a call");
}
