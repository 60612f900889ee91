/*
 * flat_enqueue.h - POST /enqueue: messages out of JSON, ids into JSON.
 *
 *      [{"namespace":"payments","topic":"process-refund","priority":1,
 *        "payload":"aGVsbG8=","deliver_after":"2023-10-27T10:00:00Z"}, ...]
 *      [318497266802130945, ...]
 *
 * One message may also come as an object without the brackets. It is answered like an
 * array of one.
 *
 * A payload is base64 in `payload`, a string in `text`, or any value in `json`, whose
 * bytes are kept as they were written. docs/api.md lists all members.
 */
#ifndef API_FLAT_ENQUEUE_H
#define API_FLAT_ENQUEUE_H

#include "api/arena.h"
#include "engine/op.h"

struct call;
struct json_out;

/* What a body asks for. Texts point into it, or into the memory of the arena. */
struct flat_enqueue {
	struct op_put *puts;
	uint32_t n;
};

/* SLU_EINVAL and *index of the item that is wrong, or -1; SLU_ENOMEM. */
int flat_enqueue_decode(struct flat_enqueue *e, struct arena *a, struct slice body,
			int64_t *index, struct slu_err *err);

/* How ids are answered. */
enum flat_ids {
	FLAT_NUMBERS,
	FLAT_UUIDS,
	FLAT_DETAIL /* {"id": 318497266802130944, "uid": "...", "duplicate": false} */
};

/* The ids in order of place (NULL: as the puts are). ok[i] false: null stands for it;
 * NULL: all are. */
void flat_enqueue_ids(const struct flat_enqueue *e, const uint32_t *place, enum flat_ids form,
		      const bool *ok, struct json_out *w);

void flat_enqueue(struct call *c, void *api);

#endif
