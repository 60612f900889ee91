/*
 * parts.h - a delivery as two parts of a multipart body.
 *
 *      --BOUNDARY
 *      Content-Type: application/json
 *      Content-Disposition: form-data; name="meta"
 *
 *      {"message":{"queue":"orders","message_id":"...","lease_id":"...", ...}}
 *
 *      --BOUNDARY
 *      Content-Type: text/plain
 *      Content-Length: 5
 *      Content-Disposition: form-data; name="payload"
 *
 *      hello
 *      --BOUNDARY--
 *
 * Each part is written with the boundary before it. A boundary is random, so no payload
 * contains it, by intent or by chance.
 */
#ifndef API_LOCKD_PARTS_H
#define API_LOCKD_PARTS_H

#include "api/lockd/id.h"
#include "engine/op.h"

enum {
	LOCKD_BOUNDARY = 36,
	LOCKD_PARTS_TYPE = 80
};

struct lockd_parts {
	char boundary[LOCKD_BOUNDARY];
	char type[LOCKD_PARTS_TYPE]; /* of the body: multipart/related; boundary=... */
	struct lockd_xid txn;        /* of the client, or zero */
	bool stateful;               /* set by the caller: the state is leased with the message */
};

/* Does not change stateful. Returns SLU_EDOWN if there are no random numbers. */
int lockd_parts_init(struct lockd_parts *p, const struct lockd_xid *txn, struct slu_err *err);

/* Writes a delivery up to its payload, and the payload if the record has it. number: of the
 * message in an answer with several, or -1. first: it is the first part. */
void lockd_parts_write(const struct lockd_parts *p, struct buf *out, bool first,
		       int64_t number, const struct op_row *row, const struct message *m);

void lockd_parts_end(const struct lockd_parts *p, struct buf *out);

/* The correlation id of a message, or its id as a UUID, written to uuid. */
struct slice lockd_parts_correlation(const struct op_row *row, const struct message *m,
				     char uuid[static LOCKD_UUID_TEXT]);

#endif
