/*
 * lockd_parts.h - a delivery as two parts of a multipart body.
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
 * The boundary before a part is written together with it. A boundary is made of what
 * nobody knows before: no payload can have it by intent, and none has it by chance.
 */
#ifndef API_LOCKD_PARTS_H
#define API_LOCKD_PARTS_H

#include "api/lockd_id.h"
#include "engine/op.h"

enum {
	LOCKD_BOUNDARY = 36,
	LOCKD_PARTS_TYPE = 80
};

struct lockd_parts {
	char boundary[LOCKD_BOUNDARY];
	char type[LOCKD_PARTS_TYPE]; /* of the body: multipart/related; boundary=... */
	struct lockd_xid txn;        /* that the client brought, or zero */
	bool stateful;               /* set by the maker: the state is leased with the message */
};

/* stateful stays as it is. SLU_EDOWN: no random numbers. */
int lockd_parts_init(struct lockd_parts *p, const struct lockd_xid *txn, struct slu_err *err);

/* Everything of a delivery up to its payload, and that too when the record has it. number:
 * of the message in an answer that has several, or -1. first: nothing stands before. */
void lockd_parts_write(const struct lockd_parts *p, struct buf *out, bool first,
		       int64_t number, const struct op_row *row, const struct message *m);

void lockd_parts_end(const struct lockd_parts *p, struct buf *out);

/* The correlation id of a message: its own, or its id as UUID, written to uuid. */
struct slice lockd_parts_correlation(const struct op_row *row, const struct message *m,
				     char uuid[static LOCKD_UUID_TEXT]);

#endif
