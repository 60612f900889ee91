/*
 * packed.h - application/x-sluice-batch: messages, ids and outcomes in binary, instead of JSON.
 *
 *      head    "SLB1", kind, number of queues, number of items       12 bytes
 *      queue   namespace and name, each behind its length            once for each queue
 *      item    fixed bytes of the kind, then members, then payload   once for each item
 *
 * All numbers are little-endian. Members are a JSON object with what only some items have, as in
 * the JSON form, or nothing. docs/batch-format.md describes every byte.
 *
 *  PACKED-1  A batch that is cut, has bytes behind its last item, names a queue that it does not
 *           have, or has a zero byte that is not zero, is refused whole.
 *  PACKED-2  What a batch can express has the same effect as its JSON form.
 */
#ifndef API_FLAT_PACKED_H
#define API_FLAT_PACKED_H

#include "form/arena.h"
#include "form/values.h"

#include <sluice/err.h>

struct call;
struct op_put;

enum packed_kind {
	PACKED_PUT = 1,      /* POST /enqueue */
	PACKED_IDS = 2,      /* its answer */
	PACKED_MESSAGES = 3, /* the answer of /dequeue */
	PACKED_SETTLE = 4,   /* POST /ack, /nack, /extend */
	PACKED_OUTCOMES = 5  /* their answer */
};

enum {
	PACKED_HEAD = 12,
	PACKED_PUT_BYTES = 12,
	PACKED_ID_BYTES = 12,
	PACKED_MESSAGE_BYTES = 64,
	PACKED_SETTLE_BYTES = 24,
	PACKED_OUTCOME_BYTES = 16
};

struct packed_queue {
	struct spelled space, queue;
};

/* A batch that is read. Everything points into the body or the arena. */
struct packed {
	struct slice rest; /* the items that are not read yet */
	uint32_t n;        /* items in all */
	uint16_t n_queues;
	struct packed_queue *queues;
};

/* One item. */
struct packed_item {
	const char *fixed;                /* the bytes of its kind */
	const struct packed_queue *queue; /* never NULL */
	struct slice members;             /* n 0: none */
	struct slice payload;             /* PACKED_PUT */
};

extern const char packed_type[]; /* the content type */

/* Whether the body of a call is a batch; whether its client accepts one. On the loop, before the
 * answer. */
bool packed_is_sent(const struct call *c);
bool packed_is_accepted(const struct call *c);

/* Reads head and queues of a batch of one to max items. Returns SLU_EINVAL or SLU_ENOMEM. */
int packed_open(struct packed *b, struct arena *a, struct slice body, enum packed_kind kind, uint32_t max,
		struct slu_err *err);

/* The next item. Returns SLU_EINVAL. */
int packed_put_next(struct packed *b, struct packed_item *item, struct slu_err *err);
int packed_settle_next(struct packed *b, struct packed_item *item, struct slu_err *err);

/* After the last item: returns SLU_EINVAL if bytes are left. */
int packed_end(const struct packed *b, struct slu_err *err);

/* Writes a head without queues, or with the one queue. The caller writes n items. */
void packed_write(struct buf *out, enum packed_kind kind, uint32_t n);
void packed_write_queue(struct buf *out, enum packed_kind kind, struct slice space, struct slice queue);

/* Corrects the number of items in a batch that begins at `at`. */
void packed_count(struct buf *out, size_t at, uint32_t n);

void packed_write_id(struct buf *out, const struct op_put *put);

#endif
