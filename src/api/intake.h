/*
 * intake.h - the body of a request on its way into a payload, piece by piece.
 *
 *      take(c)    intake_take: count, sum, check and compact (JSON), write ──> call_next
 *      handle(c)  intake_end: sealed ──> done, and the op that has it may be posted
 *      ended(c)   intake_close
 *
 * What is small is done on the loop, the rest on a file thread; memory does not grow with
 * the body (C8 of http/call.h, engine/payload.h). A refusal is answered here.
 */
#ifndef API_INTAKE_H
#define API_INTAKE_H

#include "api/lockd.h"
#include "base/json_compact.h"
#include "engine/payload.h"

enum {
	INTAKE_SUM = 32,             /* bytes of SHA-256 */
	INTAKE_INLINE = UPLOAD_SMALL /* of a body, in all, are handled on the loop */
};

struct intake {
	/* Set by the maker; all else is zero. */
	struct ask *ask;
	struct engine *engine;
	bool json; /* checked, and the space taken out */
	bool sums; /* SHA-256 of the body as it was sent */
	uint64_t max;
	enum lockd_code too_large;

	/* After intake_end. */
	uint64_t bytes; /* as it was sent */
	unsigned char sum[INTAKE_SUM];

	/* Inner. */
	struct payload *payload;
	struct upload upload;
	struct json_compact compact;
	struct buf out;
	void *digest;
	uv_work_t work;
	bool opened;
	int rc;
	struct slu_err err;
	struct message *m;
	void (*done)(struct intake *i);
};

/* A piece is there: c->body. */
void intake_take(struct intake *i);

/* There are no more. done is called on the loop, when m has the payload. */
void intake_end(struct intake *i, struct message *m, void (*done)(struct intake *i));

/* When the op was answered, or without one; again is fine. */
void intake_close(struct intake *i);

#endif
