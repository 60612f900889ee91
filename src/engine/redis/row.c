/*
 * row.c - a message as the script answers it.
 */
#include "engine/redis/redis_in.h"

#include "base/id.h"
#include "engine/redis/piece.h"

/* What the server decided is not in the bytes that it was given. */
static struct piece *
record_of(const redisReply *bytes, const redisReply *const *f)
{
	struct message m;
	struct piece *p;

	if (message_decode((struct slice){ bytes->str, (size_t)bytes->len }, &m, NULL))
		return NULL;
	m.number = (uint64_t)reply_int(f[4]);
	m.expires = redis_ns(reply_int(f[11]));
	m.accepted = redis_ns(reply_int(f[14]));
	m.due = m.due ? m.due : redis_ns(reply_int(f[15])); /* as it was asked for */
	p = piece_new(message_size(&m));
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
	       reply_int(f[13]) <= DEAD_REJECTED && f[20]->len <= OWNER_MAX;
}

bool
redis_take_row(struct op *op, const redisReply *reply)
{
	const redisReply *const *f = (const redisReply *const *)reply->element;
	struct op_row *row = &op->rows[op->n_rows];
	struct piece *record;
	const int64_t expires = reply_int(f[11]);

	record = record_of(f[16], f);
	if (!record)
		return false;
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
		.record = piece_ref(record),
		.owner = shared_text_new((struct slice){ f[20]->str, (size_t)f[20]->len }),
	};
	if (op->stateful) {
		row->state_version = (uint64_t)reply_int(f[18]);
		row->state_etag = (uint64_t)reply_int(f[19]);
	}
	if (f[17]->len > 0)
		row->error = piece_ref(piece_of(f[17]->str, (size_t)f[17]->len));
	op->n_rows++;
	return true;
}
