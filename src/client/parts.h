/*
 * parts.h - reads deliveries from a multipart answer: each has a part `meta` and a part `payload` with
 * its length.
 *
 *         parts_begin(&p, link, err);
 *         while (parts_next(&p, &until, &meta, err) == 0 && meta.n > 0)
 *                 while (parts_read(&p, &until, room, sizeof room, &n, err) == 0 && n > 0)
 *                         ...
 *
 *  PARTS-1  A payload ends after its length. The boundary after it may come as late as the next
 *      delivery.
 *  PARTS-2  A body without its last boundary is incomplete: SLU_EUNKNOWN.
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
	struct slice in;  /* bytes that are not parsed yet, in the link's buffer */
	struct buf meta;  /* the meta of the delivery */
	uint64_t left;    /* bytes of the payload that are still to come */
	bool ended;       /* the last boundary was seen */
	bool has_payload; /* the part is open */
};

/* Call it after the head of the answer was read. Returns SLU_EUNKNOWN if the answer is not multipart. */
int parts_begin(struct parts *p, struct link *link, struct slu_err *err);
void parts_release(struct parts *p); /* a zeroed struct is fine */

/*
 * Reads the meta of the next delivery; n 0 = no more deliveries. The payload follows. The rest of the
 * previous payload is dropped. Returns SLU_ETIMEOUT if no delivery began by `idle`: the caller may try
 * again. A delivery that has begun must come by `until`.
 */
int parts_next(struct parts *p, const struct patience *idle, const struct patience *until,
	       struct slice *meta, struct slu_err *err);

/* Reads bytes of the payload; *n is 0 at its end. */
int parts_read(struct parts *p, const struct patience *until, void *room, size_t size, size_t *n,
	       struct slu_err *err);

/* Reads to the end of the answer if it is near, so that the connection can be used again. */
void parts_finish(struct parts *p);

#endif
