/*
 * flat_settle.h - POST /ack, /nack and /extend: what the holder of a lease says.
 *
 *      {"receipt":"AQiBAAB..."}
 *      {"id":1234567890,"namespace":"payments","topic":"process-refund"}
 *      {"id":1234567890,"uid":"0190...","status":200}
 *
 * One object, or an array of them. For one, the status of the answer is that of the
 * item; an array is 200 and each item has a status of its own. If items failed, the field
 * Sluice-Failed has their number.
 *
 * A receipt (base/receipt.h) stands for namespace, topic, id and lease. Without one,
 * `topic` may be left out where there is one shard: then it is whichever queue the
 * message is in.
 *
 * `lease_id` and `fencing_token` are checked where they are sent: a lease that is not
 * the message's current one gets 409 lease_lost.
 */
#ifndef API_FLAT_SETTLE_H
#define API_FLAT_SETTLE_H

#include "api/arena.h"
#include "engine/op.h"

struct call;
struct json_out;

/* What a body asks for. Texts point into it, or into the memory of the arena. */
struct flat_settle {
	enum op_verb verb; /* OP_ACK, OP_NACK or OP_EXTEND */
	bool many;         /* an array was sent */
	struct op_item *items;
	uint32_t n;
};

/* SLU_EINVAL and *index of the item that is wrong, or -1; SLU_ENOMEM. verb is set. */
int flat_settle_decode(struct flat_settle *s, struct arena *a, struct slice body,
		       int64_t *index, struct slu_err *err);

/* The outcome of one item as an object; rc: of its op. Returns the error that it tells, or
 * 0. */
int flat_settle_outcome(enum op_verb verb, const struct op_item *item, int rc,
			struct json_out *w);

/* Adds the field `Sluice-Failed: n` to an answer with several outcomes, unless n is 0. */
void flat_settle_failed(struct call *c, uint32_t n);

void flat_ack(struct call *c, void *api);
void flat_nack(struct call *c, void *api);
void flat_extend(struct call *c, void *api);

#endif
