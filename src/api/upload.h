/*
 * upload.h - stores the body of a request as a payload, piece by piece.
 *
 *      take(c)    upload_take: count, sum, check and compact (JSON), write ──> call_next
 *      handle(c)  upload_end: sealed ──> done, and the op with the payload may be posted
 *      ended(c)   upload_close
 *
 * A small body is handled on the loop, a larger one on a file thread. Memory does not grow
 * with the body (CALL-8, engine/payload.h). Uses apicall.part.
 */
#ifndef API_UPLOAD_H
#define API_UPLOAD_H

#include "api/handler.h"
#include "base/json/json_compact.h"
#include "engine/payload.h"

enum {
	UPLOAD_SUM = 32,             /* bytes of SHA-256 */
	UPLOAD_INLINE = UPLOAD_SMALL /* bodies up to this size stay on the loop */
};

struct upload {
	/* Set by the caller; the rest is zero. */
	struct apicall *apicall;
	struct engine *engine;
	bool json; /* check it, and remove white space */
	bool sums; /* compute the SHA-256 of the body as sent */
	uint64_t max;
	void (*refuse)(struct upload *i); /* answers the call with err */

	struct slu_err err; /* for `refuse` */

	/* After upload_end. */
	uint64_t bytes; /* as sent */
	unsigned char sum[UPLOAD_SUM];

	/* Private. */
	struct payload *payload;
	struct upload_share upload;
	struct json_compact compact;
	struct buf out;
	void *digest;
	bool opened;
	struct message *m;
	void (*done)(struct upload *i);
};

/* Takes the piece c->body. */
void upload_take(struct upload *i);

/* The body is whole: calls done on the loop when m has the payload. */
void upload_end(struct upload *i, struct message *m, void (*done)(struct upload *i));

/* After the op was answered, or instead of it; may be called twice. */
void upload_close(struct upload *i);

#endif
