/*
 * verbs.c - encodes ops as calls of the script, and decodes its answers.
 */
#include "engine/redis/redis_private.h"

#include "base/hash.h"
#include "base/limit.h"
#include "engine/redis/replybytes.h"
#include "engine/quota.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	PUT_ARGS = 12,
	ITEM_ARGS = 7
};

void
redis_refuse(struct redis *r, struct op *op, int rc, const char *text)
{
	slu_fail(&r->why, (enum slu_code)rc, "%s", text);
	op_fail(op, rc, &r->why);
}

/* ---- Enqueue ---- */

/* How many puts the call sends. */
static size_t
count_puts(const struct rcall *c)
{
	size_t n = 0;

	for (uint32_t i = 0; i < c->op->n_puts; i++)
		n += !c->op->puts[i].taken;
	return n;
}

static size_t
enqueue_count(const struct rcall *c)
{
	return PUT_ARGS * count_puts(c);
}

static uint32_t
queue_index(const struct redis *r, const struct rcall *c, const struct message *m)
{
	return c->queues ? rqueue_at(r, rqueue_find(r, m->space, m->queue))->at : 1;
}

void
redis_put_record(struct redis *r, const struct message *m)
{
	const size_t n = message_size(m);
	struct buf *out = &r->wire->out;
	char *p;

	buf_printf(out, "$%zu\r\n", n);
	p = buf_add(out, n);
	if (p)
		message_encode(m, p);
	buf_put(out, "\r\n", 2);
}

const char *
redis_key_hash(const struct message *m, char out[static REDIS_HASH_TEXT])
{
	static const struct hash_key fixed = { 1, 2 };

	*out = '\0';
	if (m->key.n)
		(void)snprintf(out, REDIS_HASH_TEXT, "%016" PRIx64, hash_keyed(&fixed, m->key.p, m->key.n));
	return out;
}

int
redis_check_share(const struct message *m, struct slu_err *err)
{
	if (m->terms.unique)
		return slu_fail(err, SLU_EINVAL, "engine redis has no unique messages; use engine log");
	if (m->terms.batch)
		return slu_fail(err, SLU_EINVAL, "engine redis has no batches; use engine log");
	if (terms_any(&m->terms))
		return slu_fail(err, SLU_EINVAL, "engine redis has no lease, retry and max_runtime of a message; use engine log");
	if (kind_is(m->share))
		return slu_fail(err, SLU_EINVAL, "engine redis has no kinds; use engine log");
	return m->share.n ? slu_fail(err, SLU_EINVAL, "engine redis has no shares; use engine log") : 0;
}

/* Sent for every queue: only the script knows whether the queue is strict. */
const char *
redis_digest_text(uint64_t digest, char out[static REDIS_HASH_TEXT])
{
	*out = '\0';
	if (digest)
		(void)snprintf(out, REDIS_HASH_TEXT, "%016" PRIx64, digest);
	return out;
}

const char *
redis_digest(const struct message *m, char out[static REDIS_HASH_TEXT])
{
	const uint64_t digest = m->file ? m->digest : message_digest(m->payload);

	return redis_digest_text(m->idem.n ? digest : 0, out);
}

/* A deadline that is past leaves the shortest ttl. */
static slu_time
ttl_of(const struct redis *r, const struct op_put *put)
{
	if (!put->deadline)
		return put->ttl;
	return put->deadline > r->now + SLU_US ? put->deadline - r->now : SLU_US;
}

static void
encode_put(struct redis *r, const struct rcall *c, const struct op_put *put)
{
	const struct message *m = &put->m;
	char key[REDIS_HASH_TEXT], digest[REDIS_HASH_TEXT];

	rwire_number(r->wire, queue_index(r, c, m));
	rwire_u64(r->wire, m->id);
	rwire_number(r->wire, m->prio);
	rwire_number(r->wire, redis_us(put->delay));
	rwire_number(r->wire, redis_us(m->due));
	rwire_number(r->wire, redis_us(ttl_of(r, put)));
	rwire_number(r->wire, m->max_attempts);
	rwire_number(r->wire, redis_us(m->keep));
	rwire_arg(r->wire, slice_of(redis_key_hash(m, key)));
	rwire_arg(r->wire, m->idem);
	rwire_arg(r->wire, slice_of(redis_digest(m, digest)));
	if (m->file)
		rwire_arg(r->wire, SLICE("")); /* MOVE-2: the payload is elsewhere */
	else
		redis_put_record(r, m);
}

static void
enqueue_encode(struct redis *r, const struct rcall *c)
{
	const struct quota *q = r->outer.quota;

	for (uint32_t i = 0; c->queues && i < c->n_queues; i++)
		rqueue_at(r, c->queues[i])->at = i + 1;
	rwire_u64(r->wire, c->said);
	rwire_number(r->wire, q ? quota_get(&q->depth) : 0);
	rwire_number(r->wire, q ? quota_get(&q->rate) : 0);
	rwire_number(r->wire, q ? quota_get(&q->burst) : 0);
	rwire_number(r->wire, r->outer.max_idem);
	rwire_number(r->wire, c->op->home.known);
	rwire_number(r->wire, (int64_t)count_puts(c));
	for (uint32_t i = 0; i < c->op->n_puts; i++)
		if (!c->op->puts[i].taken)
			encode_put(r, c, &c->op->puts[i]);
}

/* The index of the nth put that was sent. */
static uint32_t
sent_put(const struct op *op, int64_t nth)
{
	uint32_t i;

	for (i = 0; i < op->n_puts; i++) {
		nth -= !op->puts[i].taken;
		if (nth < 0)
			return i;
	}
	return 0;
}

static void
enqueue_refused(struct rcall *c, const redisReply *answer)
{
	struct op *op = c->op;
	const redisReply *const what = answer->element[0];
	const struct slice *queue;

	op->failed = sent_put(op, reply_int(answer->element[1]));
	queue = &op->puts[op->failed].m.queue;
	if (reply_is(what, "unknown"))
		op_fail(op, SLU_EUNKNOWN, NULL);
	else if (reply_is(what, "rate") && answer->elements == 4)
		op->rc = limit_fail(&op->err, SLU_EBUSY, LIMIT_QUEUE_RATE,
				    redis_ns(reply_int(answer->element[2])),
				    "queue %.*s: more than %u messages a second", (int)queue->n,
				    queue->p, (unsigned)reply_int(answer->element[3]));
	else if (reply_is(what, "depth"))
		op->rc = limit_fail(&op->err, SLU_EQFULL, LIMIT_DEPTH, 0, "queue %.*s: %s",
				    (int)queue->n, queue->p, slu_err_row(SLU_EQFULL)->text);
	else if (reply_is(what, "drain"))
		op->rc = slu_fail(&op->err, SLU_EDRAINING, "queue %.*s: %s", (int)queue->n, queue->p,
				  slu_err_row(SLU_EDRAINING)->text);
	else if (reply_is(what, "body"))
		op->rc = op_fail_key(&op->puts[op->failed].m, &op->err);
	else if (reply_is(what, "move"))
		op->rc = limit_fail(&op->err, SLU_EBUSY, LIMIT_MOVE, 0,
				    "queue %.*s: an ordering key is on its way to another shard",
				    (int)queue->n, queue->p);
	else
		op->rc = limit_fail(&op->err, SLU_EBUSY, LIMIT_IDEMPOTENCY, 0, "queue %.*s: %s",
				    (int)queue->n, queue->p, slu_err_row(SLU_EBUSY)->text);
}

static void
put_accepted(struct redis *r, struct op_put *put, const redisReply *one)
{
	struct message *m = &put->m;

	put->existed = one->elements < 6;
	put->own_id = put->existed ? m->id : 0;
	put->max_attempts = (uint16_t)reply_int(one->element[one->elements - 1]);
	m->id = reply_id(one->element[0]);
	if (put->existed)
		return;
	m->number = (uint64_t)reply_int(one->element[1]);
	m->accepted = redis_ns(reply_int(one->element[2]));
	m->due = redis_ns(reply_int(one->element[3]));
	m->expires = redis_ns(reply_int(one->element[4]));
	rqueue_at(r, rqueue_find(r, m->space, m->queue))->totals.accepted++;
}

/* The first put that is not for this shard, or n_puts. */
static uint32_t
first_moved(const struct op *op, const redisReply *puts)
{
	for (uint32_t i = 0; i < puts->elements; i++)
		if (puts->element[i]->elements == 0)
			return sent_put(op, i);
	return op->n_puts;
}

static bool
enqueue_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const redisReply *puts = answer->element[1];
	struct op *op = c->op;
	uint32_t moved, at = 0;

	if (reply_is(answer->element[0], "taken") != (puts->type == REDIS_REPLY_ARRAY))
		return false;
	if (puts->type != REDIS_REPLY_ARRAY) {
		enqueue_refused(c, answer);
		return true;
	}
	if (puts->elements != count_puts(c))
		return false;
	moved = first_moved(op, puts);
	for (uint32_t i = 0; i < op->n_puts; i++) {
		const redisReply *one = op->puts[i].taken ? NULL : puts->element[at++];

		if (!one || !one->elements)
			continue;
		put_accepted(r, &op->puts[i], one);
		op->puts[i].taken = true;
	}
	if (moved == op->n_puts)
		return true;
	op->failed = moved; /* MOVE-2 */
	redis_refuse(r, op, SLU_EMOVED, slu_err_row(SLU_EMOVED)->text);
	return true;
}

/* ---- Claim ---- */

static void
claim_encode(struct redis *r, const struct rcall *c)
{
	const struct op *op = c->op;
	const slu_time lease = op->claim.lease < POLICY_LEASE_MAX ? op->claim.lease : POLICY_LEASE_MAX;

	rwire_number(r->wire, op->max_rows);
	rwire_number(r->wire, redis_us(lease));
	rwire_number(r->wire, (int64_t)op->claim.max_bytes);
	rwire_u64(r->wire, c->id);
	rwire_u64(r->wire, op->claim.stream);
	rwire_arg(r->wire, (struct slice){ op->claim.holder.p, op->claim.holder.n < HOLDER_MAX ? op->claim.holder.n : HOLDER_MAX });
}

static bool
claim_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	c->op->n_rows = 0;
	if (!redis_take_rows(r, c->op, answer->element[0], redis_is_row, redis_take_row))
		return false;
	c->op->claim.passed = (uint32_t)reply_int(answer->element[1]);
	c->op->claim.again = redis_later(r->now, redis_ns(reply_int(answer->element[2])));
	rqueue_at(r, c->queue)->totals.delivered += c->op->n_rows;
	for (uint32_t i = 0; i < c->op->n_rows; i++)
		meter_time(&r->outer.meter, METER_MESSAGE_WAIT,
			   redis_later(c->op->rows[i].claimed, -c->op->rows[i].due));
	return true;
}

/* ---- Items ---- */

static size_t
items_count(const struct rcall *c)
{
	return (size_t)ITEM_ARGS * (c->to - c->from);
}

/* LOCK-12: the record of the document in two parts, with the size of the first one before them. */
static void
put_checkpoint(struct redis *r, const struct rcall *c, const struct op_item *it)
{
	const struct rqueue *const q = rqueue_at(r, c->queue);
	const struct message m = {
		.id = it->id,
		.space = slice_of(q->space),
		.queue = slice_of(q->name),
		.type = SLICE("application/json"),
		.payload = it->text,
		.payload_size = it->text.n,
	};
	const size_t head = message_head(&m);
	struct buf *const out = &r->wire->out;
	char *p;

	rwire_number(r->wire, (int64_t)head);
	buf_printf(out, "$%zu\r\n", head + it->text.n);
	p = buf_add(out, head);
	if (p)
		message_encode_head(&m, p);
	buf_put(out, it->text.p, it->text.n);
	buf_put(out, "\r\n", 2);
}

static void
encode_item(struct redis *r, const struct rcall *c, const struct op_item *it)
{
	const bool lease = c->op->verb == OP_EXTEND && it->time > POLICY_LEASE_MAX;

	rwire_u64(r->wire, it->id);
	rwire_u64(r->wire, it->token);
	rwire_number(r->wire, it->time < 0 ? -1 : redis_us(lease ? POLICY_LEASE_MAX : it->time));
	rwire_number(r->wire, it->defer);
	rwire_number(r->wire, it->dead);
	if (c->op->verb == OP_EXTEND && it->text.n) {
		put_checkpoint(r, c, it);
		return;
	}
	rwire_number(r->wire, it->text.n > 0);
	rwire_arg(r->wire, c->op->verb == OP_NACK ? op_error_text(it->text) : it->text);
}

static void
begin_items(struct redis *r, const struct rcall *c)
{
	rwire_number(r->wire, redis_us(r->now - c->op->route.arrived));
	rwire_number(r->wire, c->op->home.formers);
	rwire_number(r->wire, c->to - c->from);
}

static void
items_encode(struct redis *r, const struct rcall *c)
{
	begin_items(r, c);
	for (uint32_t i = c->from; i < c->to; i++)
		encode_item(r, c, &c->op->items[i]);
}

/* The change of each verb, for the count of unsettled deliveries. */
static const enum change_kind change_kinds[OP_VERBS] = {
	[OP_ACK] = CHANGE_DONE,
	[OP_NACK] = CHANGE_RETRY,
	[OP_EXTEND] = CHANGE_EXTEND,
	[OP_RETURN] = CHANGE_RETURN,
	[OP_QUARANTINE] = CHANGE_QUARANTINE,
	[OP_DELETE] = CHANGE_DONE,
};

static void
tell_changed(struct redis *r, enum change_kind kind, uint64_t id, slu_time until)
{
	if (kind && r->outer.changed)
		r->outer.changed(r->outer.changed_arg,
				 &(struct change){ .kind = kind, .id = id, .until = until });
}

void
redis_notice_leases(struct redis *r, const char *text)
{
	uint64_t id, token;
	int64_t left;

	while (redis_take_u64(&text, 10, &id) && redis_take_u64(&text, 10, &token) &&
	       redis_take_i64(&text, &left)) {
		struct change c = { .kind = CHANGE_RETURN, .id = id, .token = token, .until = r->now };

		if (left > 0) {
			c.kind = CHANGE_EXTEND;
			c.until = time_add(r->now, redis_ns(left));
		} else if (left < 0) {
			c.kind = CHANGE_RETRY;
			c.expired = true;
		}
		if (r->outer.changed)
			r->outer.changed(r->outer.changed_arg, &c);
	}
}

static const int item_codes[] = { 0, SLU_ENOTFOUND, SLU_ELEASE, SLU_ECONFLICT };

static int
code_of(const redisReply *one)
{
	const int64_t code = reply_int(one->element[0]);

	return code < 4 ? item_codes[code] : SLU_ENOTFOUND;
}

/* Whether there is an answer for each item, and every success has all its fields. */
static bool
are_items(const struct rcall *c, const redisReply *answer)
{
	if (answer->elements != c->to - c->from)
		return false;
	for (size_t i = 0; i < answer->elements; i++)
		if ((code_of(answer->element[i]) == 0) != (answer->element[i]->elements == 4))
			return false;
	return true;
}

static bool
items_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	if (!are_items(c, answer))
		return false;
	for (uint32_t i = c->from; i < c->to; i++) {
		const redisReply *one = answer->element[i - c->from];
		struct op_item *it = &c->op->items[i];

		it->rc = code_of(one);
		if (it->rc && c->again)
			it->rc = SLU_EUNKNOWN;
		if (it->rc)
			continue;
		it->until = redis_ns(reply_int(one->element[1]));
		it->died = reply_int(one->element[2]);
		tell_changed(r, it->died ? CHANGE_DIE : change_kinds[c->op->verb], it->id,
			     redis_later(it->until, r->skew));
		if (c->op->verb == OP_ACK || c->op->verb == OP_NACK)
			meter_time(&r->outer.meter, METER_PROCESSING,
				   redis_later(r->now, -redis_ns(reply_int(one->element[3]))));
	}
	return true;
}

static void
return_encode(struct redis *r, const struct rcall *c)
{
	begin_items(r, c);
	for (uint32_t i = c->from; i < c->to; i++) {
		const struct op_item it = {
			.id = c->op->rows[i].id,
			.token = c->op->rows[i].token,
			.defer = i < c->op->claim.spare,
		};

		encode_item(r, c, &it);
	}
}

static bool
return_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	if (!are_items(c, answer))
		return false;
	for (uint32_t i = c->from; i < c->to; i++) {
		struct op_row *const row = &c->op->rows[i];

		row->state = code_of(answer->element[i - c->from]) ? MSG_NONE : MSG_READY;
		if (row->state == MSG_READY)
			tell_changed(r, CHANGE_RETURN, row->id, 0);
	}
	return true;
}

/* ---- Looking ---- */

static void
id_encode(struct redis *r, const struct rcall *c)
{
	rwire_u64(r->wire, c->op->id);
}

static bool
get_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	c->op->n_rows = 0;
	if (answer->elements > 0 && (!redis_is_row(answer) || c->op->max_rows == 0))
		return false;
	if (answer->elements == 0)
		op_fail(c->op, SLU_ENOTFOUND, NULL);
	else if (!redis_take_row(c->op, answer))
		redis_refuse(r, c->op, SLU_ECORRUPT, "redis: malformed record of a message");
	return true;
}

static void
peek_encode(struct redis *r, const struct rcall *c)
{
	rwire_number(r->wire, c->op->max_rows < LEDGER_PEEK_MAX ? c->op->max_rows : LEDGER_PEEK_MAX);
}

static bool
peek_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	c->op->n_rows = 0;
	return redis_take_rows(r, c->op, answer, redis_is_row, redis_take_row);
}

static void
watch_encode(struct redis *r, const struct rcall *c)
{
	(void)c;
	rwire_number(r->wire, 1);
}

static bool
watch_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const redisReply *const row = answer->elements > 0 ? answer->element[0] : NULL;

	(void)r;
	if (row && !redis_is_row(row))
		return false;
	op_watch(c->op, row ? reply_id(row->element[0]) : 0);
	return true;
}

static void
list_encode(struct redis *r, const struct rcall *c)
{
	rwire_number(r->wire, c->op->state);
	rwire_u64(r->wire, c->op->cursor);
	rwire_number(r->wire, c->op->max_rows - c->op->n_rows);
	rwire_number(r->wire, ENGINE_SCAN_MAX);
}

/* Whether the cursor of a list can be followed: numbers rise; dead letters go by id and need at
 * least one row. */
static bool
goes_on(const struct op *op, uint64_t cursor, size_t rows)
{
	return cursor == 0 || (op->state == MSG_DEAD ? rows > 0 : cursor > op->cursor);
}

static bool
list_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const uint64_t cursor = reply_id(answer->element[0]);
	const uint32_t first = c->op->n_rows;
	struct op *op = c->op;

	if (!goes_on(op, cursor, answer->element[1]->elements) ||
	    !redis_take_rows(r, op, answer->element[1], redis_is_row, redis_take_row))
		return false;
	op->cursor = cursor;
	for (uint32_t i = first; i < op->n_rows; i++)
		op->rows[i].after = op->state == MSG_DEAD ? op->rows[i].id : op->rows[i].number;
	return true;
}

static bool
result_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const int64_t found = reply_int(answer->element[0]);
	struct op *op = c->op;

	(void)r;
	if ((found == 1) != (answer->elements == 3))
		return false;
	op->result = (struct op_ref){ 0 };
	if (found == 1) {
		const redisReply *text = answer->element[2];

		op->until = redis_ns(reply_int(answer->element[1]));
		if (text->len > 1 || (text->len == 1 && *text->str == '1'))
			op->result = replybytes_ref(replybytes_of(text->str + 1, (size_t)text->len - 1));
		return true;
	}
	op_fail(op, found == 2 ? SLU_ETIMEOUT : SLU_ENOTFOUND, NULL);
	return true;
}

/* ---- Queues ---- */

static bool
stats_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	static const enum msg_state states[] = { MSG_READY, MSG_DELAYED, MSG_LEASED,
						 MSG_HELD, MSG_DEAD, MSG_DAMAGED };
	const struct rqueue *q = rqueue_at(r, c->queue);
	struct op_queue *out = c->stats;
	slu_time oldest;

	*out = (struct op_queue){ .totals = q->totals, .now = r->now };
	op_name_queue(out, q->space, q->name, q->space_shown, q->shown);
	for (int i = 0; i < 6; i++)
		out->count[states[i]] = (uint32_t)reply_int(answer->element[i]);
	oldest = reply_int(answer->element[6]) < 0 ? -1 : redis_ns(reply_int(answer->element[6]));
	out->oldest = oldest < 0 ? -1 : oldest < r->now ? r->now - oldest
							: 0;
	out->warn_depth = (uint32_t)reply_int(answer->element[7]);
	out->paused = reply_int(answer->element[8]) & 1;
	out->draining = reply_int(answer->element[8]) & 2;
	if (c->op->verb != OP_SHARD)
		return true;
	for (int i = 0; i < 6; i++)
		c->op->on_shard.messages += out->count[states[i]];
	c->op->on_shard.keys += (uint64_t)reply_int(answer->element[9]);
	c->op->on_shard.idempotency += (uint64_t)reply_int(answer->element[10]);
	c->op->on_shard.results += (uint64_t)reply_int(answer->element[11]);
	c->op->on_shard.locks += (uint64_t)reply_int(answer->element[12]);
	c->op->on_shard.leases += (uint64_t)reply_int(answer->element[13]);
	c->op->on_shard.states += (uint64_t)reply_int(answer->element[14]);
	return true;
}

static void
purge_encode(struct redis *r, const struct rcall *c)
{
	rwire_u64(r->wire, c->cursor);
	rwire_u64(r->wire, c->limit);
	rwire_number(r->wire, ENGINE_SCAN_MAX);
}

/* REDIS-11: one slice. Purged messages stay purged if a later slice fails. */
static bool
purge_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const uint64_t next = answer->elements == 3 ? reply_id(answer->element[1]) : 0;
	struct op *op = c->op;

	(void)r;
	if (next && next <= c->cursor)
		return false; /* the purge would never end */
	c->goes_on = false;
	if (answer->elements < 3) {
		op->rc = limit_fail(&op->err, SLU_EBUSY, LIMIT_MOVE, 0,
				    "queue %.*s: some of it is on its way to another shard",
				    (int)op->queue.n, op->queue.p);
		return true;
	}
	op->count += (uint64_t)reply_int(answer->element[0]);
	c->cursor = next;
	c->limit = reply_id(answer->element[2]);
	c->goes_on = c->cursor != 0;
	c->done = !c->goes_on;
	return true;
}

static void
forget_encode(struct redis *r, const struct rcall *c)
{
	rwire_number(r->wire, c->op->force);
	rwire_number(r->wire, ENGINE_SCAN_MAX);
}

/* REDIS-11: one slice, like a purge. */
static bool
forget_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	const int64_t n = reply_int(answer->element[0]);
	const int64_t more = answer->elements > 1 ? reply_int(answer->element[1]) : 0;
	struct op *op = c->op;
	struct slu_err err = { 0 };

	(void)r;
	if (n == 0 && more)
		return false; /* the calls would never end */
	c->goes_on = n >= 0 && more;
	c->done = !c->goes_on;
	if (n == -1)
		op_fail(op, op_fail_moved(op, &err), &err);
	else if (n < 0)
		op_fail(op, op_fail_not_empty(op, (uint64_t)more, &err), &err);
	else
		op->count += (uint64_t)n;
	return true;
}

static void
policy_encode(struct redis *r, const struct rcall *c)
{
	char text[256] = "";

	if (c->op->verb == OP_POLICY_SET)
		redis_policy_text(&c->op->policy, text, sizeof text);
	rwire_arg(r->wire, slice_of(text));
}

static void
pause_encode(struct redis *r, const struct rcall *c)
{
	const uint8_t sets = c->op->sets ? c->op->sets : OP_SETS_PAUSE;

	rwire_number(r->wire, sets & OP_SETS_PAUSE ? c->op->policy.paused : -1);
	rwire_number(r->wire, sets & OP_SETS_DRAIN ? c->op->policy.draining : -1);
}

static bool
policy_decode(struct redis *r, struct rcall *c, const redisReply *answer)
{
	if (c->op->verb == OP_POLICY_SET)
		return true;
	c->op->policy = policy_default;
	if (answer->len > 0 && redis_policy_read(answer->str, &c->op->policy))
		redis_refuse(r, c->op, SLU_ECORRUPT, "redis: malformed policy");
	return true;
}

/* Shapes of answers. An enqueue: for each message nothing (it lives elsewhere), the id of the
 * first one under its key, or the fields that were decided; or a refusal. An item: why it was
 * refused, or its new fields. */
#define PUTS_SHAPE   "{[t[({[]|[iu]|[iunnnu]})]]|[tu]|[tuuu]}"
#define ITEMS_SHAPE  "[({[u]|[unun]})]"
#define ROWS_SHAPE   "[(" ROW_SHAPE ")]"
#define CLAIM_SHAPE  "[" ROWS_SHAPE "uu]"
#define GET_SHAPE    "{[]|" ROW_SHAPE "}"
#define LIST_SHAPE   "[i" ROWS_SHAPE "]"
#define RESULT_SHAPE "{[u]|[unt]}"
#define STATS_SHAPE  "[uuuuuunuuuuuuuu]"
#define PURGE_SHAPE  "{[n]|[uii]}"

/* clang-format off */
const struct rverb redis_verbs[OP_VERBS] = {
	[OP_ENQUEUE]      = { "enqueue", 7, enqueue_count, enqueue_encode, enqueue_decode, PUTS_SHAPE },
	[OP_CLAIM]        = { "claim",   6, NULL,          claim_encode,   claim_decode,   CLAIM_SHAPE },
	[OP_RETURN]       = { "return",  3, items_count,   return_encode,  return_decode,  ITEMS_SHAPE },
	[OP_ACK]          = { "ack",     3, items_count,   items_encode,   items_decode,   ITEMS_SHAPE },
	[OP_NACK]         = { "nack",    3, items_count,   items_encode,   items_decode,   ITEMS_SHAPE },
	[OP_EXTEND]       = { "extend",  3, items_count,   items_encode,   items_decode,   ITEMS_SHAPE },
	[OP_REDRIVE]      = { "redrive", 3, items_count,   items_encode,   items_decode,   ITEMS_SHAPE },
	[OP_DELETE]       = { "delete",  3, items_count,   items_encode,   items_decode,   ITEMS_SHAPE },
	[OP_QUARANTINE]   = { "aside",   3, items_count,   items_encode,   items_decode,   ITEMS_SHAPE },
	[OP_GET]          = { "get",     1, NULL,          id_encode,      get_decode,     GET_SHAPE },
	[OP_PEEK]         = { "peek",    1, NULL,          peek_encode,    peek_decode,    ROWS_SHAPE },
	[OP_WATCH]        = { "watch",   1, NULL,          watch_encode,   watch_decode,   ROWS_SHAPE },
	[OP_LIST]         = { "list",    4, NULL,          list_encode,    list_decode,    LIST_SHAPE },
	[OP_RESULT]       = { "result",  1, NULL,          id_encode,      result_decode,  RESULT_SHAPE },
	[OP_STATS]        = { "stats",   0, NULL,          NULL,           stats_decode,   STATS_SHAPE },
	[OP_QUEUES]       = { "stats",   0, NULL,          NULL,           stats_decode,   STATS_SHAPE },
	[OP_SHARD]        = { "stats",   0, NULL,          NULL,           stats_decode,   STATS_SHAPE },
	[OP_PURGE]        = { "purge",   3, NULL,          purge_encode,   purge_decode,   PURGE_SHAPE },
	[OP_FORGET]       = { "forget",  2, NULL,          forget_encode,  forget_decode,  "{[n]|[nu]}" },
	[OP_PAUSE]        = { "pause",   2, NULL,          pause_encode,   policy_decode,  "t" },
	[OP_POLICY_GET]   = { "policy",  1, NULL,          policy_encode,  policy_decode,  "t" },
	[OP_MOVE]         = { "move",    1, redis_move_count, redis_move_encode, redis_move_decode, MOVE_SHAPE },
	[OP_POLICY_SET]   = { "policy",  1, NULL,          policy_encode,  policy_decode,  "t" },
};
/* clang-format on */

const struct rverb redis_tick_verb = { .name = "tick", .shape = "n" };
