/*
 * move.c - steps of a queue's move, as calls of move.lua; and what a call says of the map.
 */
#include "engine/redis/redis_in.h"

#include "base/hash.h"
#include "base/le.h"
#include "base/limit.h"
#include "engine/redis/piece.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	LEAVING = -2,    /* of what was given: why nothing was */
	KEY_HEAD = 18,   /* bytes of a remembered key before its text */
	HEADER_MAX = 320 /* of what is given, as words */
};

/* ---- The map ---- */

/* Those that go over many queues, or look for theirs, know nothing of where one lives. */
static bool
is_routed(const struct rcall *c)
{
	const struct op *op = c->op;

	if (!op || op->verb == OP_TOPICS || op->verb == OP_SHARD)
		return false;
	return op->verb == OP_ENQUEUE || op->queue.n > 0 ||
	       (c->from < op->n_items && op->items[c->from].queue.n > 0);
}

void
redis_route(const struct rcall *c, char *out, size_t size)
{
	*out = '\0';
	if (is_routed(c) && c->op->epoch)
		(void)snprintf(out, size, " %" PRIu64 " %" PRIu64 " %s", c->op->epoch, c->op->above,
			       c->op->lives ? c->op->lives : "");
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
	(void)snprintf(op->elsewhere, sizeof op->elsewhere, "%s", lives->str);
	op->counter = counter;
}

/* ---- What is given ---- */

static size_t
key_length(const char *head)
{
	return (uint8_t)head[16] | (size_t)(uint8_t)head[17] << 8;
}

/* The next remembered key of the bytes, which it leaves; false: there is none. */
static bool
next_key(struct slice *bytes, slu_time *until, uint64_t *id, struct slice *key)
{
	size_t n;

	if (bytes->n < KEY_HEAD)
		return false;
	n = key_length(bytes->p);
	if (bytes->n - KEY_HEAD < n)
		return false;
	*until = (slu_time)le64_get(bytes->p);
	*id = le64_get(bytes->p + 8);
	*key = (struct slice){ bytes->p + KEY_HEAD, n };
	*bytes = (struct slice){ bytes->p + KEY_HEAD + n, bytes->n - KEY_HEAD - n };
	return true;
}

static uint32_t
count_keys(struct slice bytes)
{
	struct slice key;
	slu_time until;
	uint64_t id;
	uint32_t n = 0;

	while (next_key(&bytes, &until, &id, &key))
		n++;
	return n;
}

static void
give_keys(struct redis *r, const struct op *op, uint32_t at)
{
	struct slice bytes = op->puts[at].m.payload, key;
	char words[64];
	slu_time until;
	uint64_t id;

	while (next_key(&bytes, &until, &id, &key)) {
		(void)snprintf(words, sizeof words, "1 %" PRIu64 " %" PRId64, id, redis_us(until));
		rwire_arg(r->wire, slice_of(words));
		rwire_arg(r->wire, key);
	}
}

static void
give_message(struct redis *r, const struct op *op, uint32_t at)
{
	const struct op_put *put = &op->puts[at];
	const struct op_stood *s = &put->stood;
	const struct message *m = &put->m;
	const slu_time expires = m->expires == SLU_NEVER ? 0 : m->expires;
	char line[REDIS_LINE], digest[REDIS_LINE], words[HEADER_MAX];

	(void)snprintf(words, sizeof words,
		       "0 %" PRIu64 " %u %" PRId32 " %" PRId64 " %" PRId64 " %" PRId64 " %u %" PRId64
		       " %u %u %u %u x%s %s",
		       m->id, s->state, m->prio, redis_us(m->due), redis_us(expires),
		       redis_us(m->accepted), m->max_attempts, redis_us(m->keep), s->attempts,
		       s->failures, s->flags, s->reason, redis_digest(m, digest),
		       redis_line(m, line));
	rwire_arg(r->wire, slice_of(words));
	rwire_arg(r->wire, m->idem);
	rwire_arg(r->wire, (struct slice){ s->error, s->error_size });
	redis_put_record(r, m);
}

/* As an ack would have left it: a mark whether there was one, then the bytes. */
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

/* The message that a document is beside; 0: it is a lock key's. */
static uint64_t
message_before(const struct op *op, uint32_t at)
{
	while (!slice_eq(op->queue, SLICE(LOCK_QUEUE)) && at-- > 0)
		if (op->puts[at].stood.kind == MOVE_MESSAGE)
			return op->puts[at].m.id;
	return 0;
}

/* What the server decides is not in the record of a document: see lock_plan.c. */
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
	uint32_t args; /* of each */
} kinds[] = {
	[MOVE_MESSAGE] = { give_message, 4 },
	[MOVE_REMEMBERED] = { give_keys, 2 },
	[MOVE_RESULT] = { give_result, 2 },
	[MOVE_STATE] = { give_document, 5 },
};

static uint32_t
things_in(const struct op_put *put)
{
	return put->stood.kind == MOVE_REMEMBERED ? count_keys(put->m.payload) : 1;
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
	size_t n = 1 + steps[op->move.step].args;

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
	rwire_u64(r->wire, op->max_bytes);
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

static bool
take_keys(struct op *op, const redisReply *one)
{
	struct op_row *row = &op->rows[op->n_rows];
	struct piece *p;
	size_t size = 0;
	char *at;

	for (size_t i = 1; i < one->elements; i += 3)
		size += KEY_HEAD + (size_t)one->element[i + 2]->len;
	p = piece_new(size);
	if (!p)
		return false;
	at = p->bytes;
	for (size_t i = 1; i < one->elements; i += 3) {
		const redisReply *key = one->element[i + 2];

		le64_put(at, (uint64_t)redis_ns(reply_int(one->element[i + 1])));
		le64_put(at + 8, reply_id(one->element[i]));
		at[16] = (char)(key->len & 0xff);
		at[17] = (char)(key->len >> 8);
		memcpy(at + KEY_HEAD, key->str, (size_t)key->len);
		at += KEY_HEAD + key->len;
	}
	*row = (struct op_row){ .kind = MOVE_REMEMBERED, .payload = piece_ref(p) };
	op->n_rows++;
	return true;
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
		row->payload = piece_ref(piece_of(text->str + 1, (size_t)text->len - 1));
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
	if (!reply_fits(one, "[u(iut)]"))
		return false;
	for (size_t i = 1; i < one->elements; i += 3)
		if (one->element[i + 2]->len > MESSAGE_KEY_MAX)
			return false;
	return true;
}

/* Is it what its kind says? */
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

/* False: there are more than were asked for, or one is not what it says. */
static bool
take_things(struct redis *r, struct op *op, const redisReply *things)
{
	if (things->elements > op->max_rows - op->n_rows)
		return false;
	for (size_t i = 0; i < things->elements; i++)
		if (!is_thing(things->element[i]))
			return false;
	for (size_t i = 0; i < things->elements; i++) {
		if (take_thing(op, things->element[i]))
			continue;
		op_unpin(op);
		op->n_rows = 0;
		redis_refuse(r, op, SLU_ECORRUPT, "redis: what was taken cannot be told");
		break;
	}
	return true;
}

static void
take_given(struct redis *r, struct op *op, int64_t given)
{
	if (given == LEAVING)
		op->rc = limit_fail(&op->err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
				    "something of this batch is on its way from here");
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
	(void)snprintf(m->whom, sizeof m->whom, "%s", f[12]->str);
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
	return take_things(r, c->op, f[11]);
}

/* ---- Which calls ---- */

static int
check_step(struct redis *r, struct op *op)
{
	const enum move_step step = op->move.step;
	const bool comes = step == MOVE_GIVE || step == MOVE_REFUSE;

	if (!op->queue.n || step >= MOVE_STEPS)
		return slu_fail(&r->why, SLU_EINVAL, "a step of a move names a queue");
	if (step == MOVE_TAKE && op->max_rows == 0)
		return slu_fail(&r->why, SLU_EINVAL, "a batch has one row or more");
	if (comes && (!op->move.batch || !op->move.peer[0]))
		return slu_fail(&r->why, SLU_EINVAL, "a batch has a number, and comes from a shard");
	if (op->lives && strlen(op->lives) >= MOVE_SHARD)
		return slu_fail(&r->why, SLU_EINVAL, "a shard's name has at most %d bytes",
				MOVE_SHARD - 1);
	return 0;
}

static int
check_put(struct redis *r, const struct op_put *put)
{
	const uint8_t state = put->stood.state;

	if ((unsigned)put->stood.kind >= sizeof kinds / sizeof kinds[0])
		return slu_fail(&r->why, SLU_EINVAL, "a row of kind %d", (int)put->stood.kind);
	if (put->stood.kind == MOVE_STATE)
		return message_check(&put->m, &r->why);
	if (put->stood.kind != MOVE_MESSAGE)
		return 0;
	if (put->m.id == 0 || state == MSG_LEASED || state < MSG_READY || state > MSG_DEAD)
		return slu_fail(&r->why, SLU_EINVAL,
				"a message without an id, or in a state that does not move");
	return message_check(&put->m, &r->why);
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

/* What has to be known of messages before they are given: priorities, and ids. */
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

/* A queue that is not here has nothing, and no mark. */
static void
answer_none(struct op *op)
{
	struct op_move *m = &op->move;

	m->epoch = m->messages = m->leased = m->damaged = m->remembered = m->results = 0;
	m->lives[0] = m->whom[0] = '\0';
	if (m->step == MOVE_TAKE || m->step == MOVE_LOOK)
		m->batch = 0;
	op->cursor = 0;
}

/* A queue that is not here is made for what has to be remembered of it. */
static bool
makes_queue(enum move_step step)
{
	return step == MOVE_GIVE || step == MOVE_REFUSE || step == MOVE_MARK;
}

int
redis_plan_move(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h = SLAB_NONE;
	int rc = check_step(r, op);

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
