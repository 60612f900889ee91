/*
 * parts.h - deliveries out of an answer that is a multipart body: for each one part `meta`
 * and one part `payload`, which says its length.
 *
 *         parts_begin(&p, link, err);
 *         while (parts_next(&p, &until, &meta, err) == 0 && meta.n > 0)
 *                 while (parts_read(&p, &until, room, sizeof room, &n, err) == 0 && n > 0)
 *                         ...
 *
 *  A1  A payload is over when its length is, also while the boundary behind it has not
 *      come: that may be as late as the next delivery.
 *  A2  A body that ends without its last boundary was not whole: SLU_EUNKNOWN.
 */
#ifndef CLIENT_PARTS_H
#define CLIENT_PARTS_H

#include "client/client.h"
#include "http/multipart.h"

enum {
	PARTS_META_MAX = 1 << 20
};

struct parts {
	struct link *link; /* borrowed */
	struct multipart multipart;
	struct slice in;  /* what was not looked at yet, in the link's buffer */
	struct buf meta;  /* of the delivery */
	uint64_t left;    /* bytes of its payload still to come */
	bool ended;       /* the last boundary was seen */
	bool has_payload; /* the part is open */
};

/* Once the head of the answer is there. SLU_EUNKNOWN: it is not multipart. */
int parts_begin(struct parts *p, struct link *link, struct slu_err *err);
void parts_release(struct parts *p); /* zeroed is fine */

/*
 * The next delivery: its meta, as it was sent, and payload to follow; n 0: there is none
 * any more. What was left of the payload before is dropped. SLU_ETIMEOUT: nothing came by
 * `idle`; then it may be asked again. A delivery that has begun has until `until`.
 */
int parts_next(struct parts *p, const struct patience *idle, const struct patience *until,
	       struct slice *meta, struct slu_err *err);

/* *n is 0 at the end of the payload. */
int parts_read(struct parts *p, const struct patience *until, void *room, size_t size, size_t *n,
	       struct slu_err *err);

/* Read to the end of the answer, if that is near: then the connection can be used again. */
void parts_finish(struct parts *p);

#endif
