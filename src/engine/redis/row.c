/*
 * row.c - reads a message from an answer of the script.
 */
#include "engine/redis/redis_private.h"

#include "base/id.h"
#include "engine/redis/replybytes.h"

/* The record of a message, with the fields that the server decided. */
static struct replybytes *
record_of(const redisReply *bytes, const redisReply *const *f)
{
	struct message m;
	struct replybytes *p;

	if (message_decode((struct slice){ bytes->str, (size_t)bytes->len }, &m, NULL))
		return NULL;
	m.number = (uint64_t)reply_int(f[4]);
	m.expires = redis_ns(reply_int(f[11]));
	m.accepted = redis_ns(reply_int(f[14]));
	m.due = m.due ? m.due : redis_ns(reply_int(f[15])); /* due as requested */
	p = replybytes_new(message_size(&m));
	if (p)
		message_encode(&m, p->bytes);
	return p;
}

bool
redis_is_row(const redisReply *reply)
{
	const redisReply *const *f = (const redisReply *const *)reply->element;

	return reply_fits(reply, ROW_SHAPE) && reply_id(f[0]) > 0 && reply_id(f[0]) <= ID_MAX &&
	       reply_int(f[1]) > MSG_NONE && reply_int(f[1]) < MSG_STATES &&
	       reply_int(f[13]) <= DEAD_REJECTED && f[20]->len <= HOLDER_MAX && f[21]->elements <= 1;
}

bool
redis_take_row(struct op *op, const redisReply *reply)
{
	const redisReply *const *f = (const redisReply *const *)reply->element;
	struct op_row *row = &op->rows[op->n_rows];
	struct replybytes *record;
	struct op_ref checkpoint = { 0 };
	const int64_t expires = reply_int(f[11]);

	record = record_of(f[16], f);
	if (!record || (f[21]->elements && !redis_take_document(f[21]->element[0], &checkpoint))) {
		mem_free(record);
		return false;
	}
	*row = (struct op_row){
		.id = reply_id(f[0]),
		.state = (uint8_t)reply_int(f[1]),
		.prio = (int32_t)reply_int(f[2]),
		.due = redis_ns(reply_int(f[3])),
		.number = (uint64_t)reply_int(f[4]),
		.attempts = (uint16_t)reply_int(f[5]),
		.failures = (uint16_t)reply_int(f[6]),
		.max_attempts = (uint16_t)reply_int(f[7]),
		.token = (uint64_t)reply_int(f[8]),
		.until = redis_ns(reply_int(f[9])),
		.claimed = redis_ns(reply_int(f[10])),
		.expires = expires ? redis_ns(expires) : SLU_NEVER,
		.flags = (uint8_t)reply_int(f[12]),
		.reason = (uint8_t)reply_int(f[13]),
		.record = replybytes_ref(record),
		.holder = shared_text_new((struct slice){ f[20]->str, (size_t)f[20]->len }),
	};
	if (op->verb == OP_CLAIM && op->claim.stateful) {
		row->state_version = (uint64_t)reply_int(f[18]);
		row->state_etag = (uint64_t)reply_int(f[19]);
	}
	if (checkpoint.pin)
		row->checkpoint = checkpoint;
	else if (f[17]->len > 0)
		row->error = replybytes_ref(replybytes_of(f[17]->str, (size_t)f[17]->len));
	op->n_rows++;
	return true;
}

bool
redis_take_rows(struct redis *r, struct op *op, const redisReply *rows,
		bool (*is)(const redisReply *reply),
		bool (*take)(struct op *op, const redisReply *reply))
{
	if (rows->elements > op->max_rows - op->n_rows)
		return false;
	for (size_t i = 0; i < rows->elements; i++)
		if (!is(rows->element[i]))
			return false;
	for (size_t i = 0; i < rows->elements; i++) {
		if (take(op, rows->element[i]))
			continue;
		op_drop_rows(op);
		redis_refuse(r, op, SLU_ECORRUPT, "redis: malformed record of a message");
		break;
	}
	return true;
}
