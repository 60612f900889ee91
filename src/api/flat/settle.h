/*
 * settle.h - POST /ack, /nack and /extend: settles leased messages.
 *
 *      {"receipt":"AQiBAAB..."}
 *      {"id":1234567890,"namespace":"payments","queue":"process-refund"}
 *      {"id":1234567890,"uid":"0190...","status":200}
 *
 * The body is one object, or an array. One object: the answer has the status of the item. An
 * array: the answer is 200, each item has its own status, and the field Sluice-Failed has the
 * number of failed items, if any failed.
 *
 * A receipt (base/receipt.h) names namespace, queue, id and lease. Without a receipt, and with
 * one shard, `queue` may be left out: the server finds the queue of the message.
 *
 * If `lease_id` or `fencing_token` is sent and is not the current lease of the message, the
 * item gets 409 lease_lost.
 *
 * An item of /extend may have `checkpoint`: JSON that the next claim of the message gets (LOCK-12 of core/locks/locks.h).
 *
 * An item of /ack or /nack may have `enqueue`: messages as in /enqueue, and `release`: a lock key. They are accepted, and it
 * is released, with the item, or nothing of it happens (finish.c).
 */
#ifndef API_FLAT_SETTLE_H
#define API_FLAT_SETTLE_H

#include "form/arena.h"
#include "engine/op.h"

struct apicall;
struct call;
struct json_out;

/* What happens with an ack or nack, in one step: JSON; n 0: nothing. */
struct flat_step {
	struct slice enqueue, release;
};

static inline bool
flat_step_is(const struct flat_step *step)
{
	return step->enqueue.n || step->release.n;
}

/* The items of a body. Texts point into the body or into the arena. */
struct flat_settle {
	enum op_verb verb; /* OP_ACK, OP_NACK or OP_EXTEND */
	bool many;         /* an array was sent */
	struct op_item *items;
	struct flat_step *steps; /* one for each item */
	uint32_t n;
	uint32_t n_with; /* items that are more than an ack or nack */
};

/* Reads the items of a body. The caller has set s->verb. Returns SLU_EINVAL and sets *index to the
 * invalid item, -1 = the body itself is invalid; or SLU_ENOMEM. */
int flat_settle_decode(struct flat_settle *s, struct arena *a, struct slice body,
		       int64_t *index, struct slu_err *err);

/* The same for a body of application/x-sluice-batch: api/flat/packed.h. */
int flat_settle_decode_packed(struct flat_settle *s, struct arena *a, struct slice body, int64_t *index,
			      struct slu_err *err);

/* Why an item was refused, in the words of this API. Returns the code, which may be another one. */
int flat_settle_explain(const struct op_item *item, int rc, struct slu_err *err);

/* Writes the members of an outcome; rc 0: it succeeded. */
void flat_settle_write(enum op_verb verb, const struct op_item *item, int rc, const char *text, struct json_out *w);

/* Runs the items of a call whose state begins with its struct flat_settle, each as an op of its own: those that are more than
 * an ack or nack as OP_FINISH. */
void flat_finish(struct apicall *a, struct flat_settle *s);

/* Writes the outcome of an item as an object. rc: the code of its op. Returns the code that
 * it wrote, or 0. */
int flat_settle_outcome(enum op_verb verb, const struct op_item *item, int rc,
			struct json_out *w);

/* The same as an item of PACKED_OUTCOMES. */
int flat_settle_packed_outcome(enum op_verb verb, const struct op_item *item, int rc, struct buf *out);

/* Adds the field `Sluice-Failed: n` to an answer with several outcomes, unless n is 0. */
void flat_settle_failed(struct call *c, uint32_t n);

#endif
