/*
 * whybatch.h - the batch that a message is, is a member of, or is the callback of (engine/msgbatch.h): for GET /why.
 *
 *      GET of the message ──> its batch, or its attributes ──> GET of the batch ──> then(a)
 *
 * All functions run on the loop.
 */
#ifndef API_FLAT_WHYBATCH_H
#define API_FLAT_WHYBATCH_H

#include "api/apicall.h"
#include "engine/msgbatch.h"

struct whybatch {
	uint64_t id;      /* of the batch; 0: the message has no batch, or the batch cannot be read */
	const char *role; /* of the message: "batch", "member" or "callback" */
	struct msgbatch b;

	/* Private. */
	struct slice space;
	uint64_t of; /* the message */
	bool itself; /* the message is in the queue of the batches */
	struct op_row row;
	void (*then)(struct apicall *a);
};

/* Fills in w, which lives as long as the call, and calls `then`. Uses a->op and a->part. Space and queue live as long. */
void whybatch_find(struct apicall *a, struct whybatch *w, struct slice space, struct slice queue, uint64_t id,
		   void (*then)(struct apicall *a));

enum {
	WHYBATCH_TEXT = 160
};

/* Why the batch has not called back, or how it did. Returns out. */
const char *whybatch_text(const struct whybatch *w, char out[static WHYBATCH_TEXT]);

/* Writes the member `batch`, if there is one. */
void whybatch_write(struct json_out *w, const struct whybatch *it);

#endif
