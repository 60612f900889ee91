/*
 * enqueue.h - POST /enqueue: JSON to messages, ids to JSON.
 *
 *      [{"namespace":"payments","queue":"process-refund","priority":1,
 *        "payload":"aGVsbG8=","deliver_after":"2023-10-27T10:00:00Z"}, ...]
 *      [318497266802130945, ...]
 *
 * form/put.h reads the messages. The answer to a single message is an array of one.
 */
#ifndef API_FLAT_ENQUEUE_H
#define API_FLAT_ENQUEUE_H

#include "form/put.h"

struct apicall;
struct json_out;
struct payload;

/* The messages of a call. */
struct flat_enqueue {
	struct form_puts in;
	struct payload **stored; /* one per put; NULL: no payload is large */

	/* Private to flat_large_store. */
	void (*then)(struct apicall *a);
	struct slu_err err;
};

/* form_puts_decode for a body of application/x-sluice-batch: api/flat/packed.h. */
int flat_enqueue_decode_packed(struct form_puts *e, struct arena *a, struct slice body, int64_t *index,
			       struct slu_err *err);

/* The form of ids in an answer. */
enum flat_ids {
	FLAT_NUMBERS,
	FLAT_UUIDS,
	FLAT_DETAIL /* {"id": 318497266802130944, "uid": "...", "duplicate": false} */
};

/* Writes the ids in the order of place (NULL: of the puts). ok[i] false: writes null; ok
 * NULL: all are fine. */
void flat_enqueue_ids(const struct form_puts *e, const uint32_t *place, enum flat_ids form,
		      const bool *ok, struct json_out *w);

/* Large payloads of a call whose state begins with its struct flat_enqueue. They are stored before the ops
 * that name them. */
bool flat_has_large(struct apicall *a);

/* The engine of the shard that the message goes to. */
struct engine *flat_engine_of(struct apicall *a, const struct message *m);

/* Stores them on a file thread, then calls `then` on the loop; or refuses the call. */
void flat_large_store(struct apicall *a, void (*then)(struct apicall *a));
void flat_large_close(const struct flat_enqueue *e); /* when the ops are answered */

#endif
