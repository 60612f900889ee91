/*
 * lockd_id.h - the ids of the lockd dialect: xids, leases, transactions, etags.
 *
 * An xid is 12 bytes, written as 20 characters of 0-9a-v. Nothing of them is stored:
 * they are spellings of what the shard knows.
 *
 *      transaction   any xid that a client brings, else one made of the token
 *      lease         8 bytes  token, the highest byte first
 *                    4 bytes  check of token, transaction and the two lowest bits:
 *                               1  the client brought the transaction
 *                               2  the message has a correlation id of its own
 *      meta_etag     token, end and length of the lease: 1f-19a2c3d4e5f-1e
 *
 * A lease that is not spelled like this, or whose check is wrong, was never given: it
 * gets LOCKD_NO_TOKEN, which no lease has. The bits tell who settles a message what is
 * known from its delivery, so that nobody has to read the message again.
 */
#ifndef API_LOCKD_ID_H
#define API_LOCKD_ID_H

#include "base/bytes.h"

enum {
	LOCKD_XID = 12,
	LOCKD_XID_TEXT = 21, /* with the end, as all here */
	LOCKD_ETAG_TEXT = 44,
	LOCKD_UUID_TEXT = 37
};

#define LOCKD_NO_TOKEN UINT64_MAX

struct lockd_xid {
	unsigned char b[LOCKD_XID];
};

enum lockd_lease_flags {
	LOCKD_TXN_GIVEN = 1,
	LOCKD_CORRELATED = 2
};

const char *lockd_xid_text(const struct lockd_xid *x, char out[static LOCKD_XID_TEXT]);
bool lockd_xid_parse(struct slice s, struct lockd_xid *out); /* false: it is none */
bool lockd_xid_is_zero(const struct lockd_xid *x);

/* Of a lease whose client brought none. */
struct lockd_xid lockd_txn_of(uint64_t token);

/* Is it an id that lockd_txn_of makes? */
bool lockd_txn_is_ours(const struct lockd_xid *txn);

/* flags: LOCKD_TXN_GIVEN is set here. txn zero: none was brought. */
const char *lockd_lease_text(uint64_t token, const struct lockd_xid *txn, unsigned flags,
			     char out[static LOCKD_XID_TEXT]);

/* txn zero: not said, and is then taken for right. *flags as they were. */
uint64_t lockd_lease_parse(struct slice s, const struct lockd_xid *txn, unsigned *flags);

/* The token alone, whatever the transaction is: to tell a wrong one from no lease. */
uint64_t lockd_lease_token(struct slice s);

/* What a delivery, or an extension, is known by. */
struct lockd_meta {
	uint64_t token;
	slu_time until;
	int64_t seconds; /* that the lease was given for */
};

const char *lockd_meta_text(const struct lockd_meta *m, char out[static LOCKD_ETAG_TEXT]);
bool lockd_meta_parse(struct slice s, struct lockd_meta *out);

/* The etag of a document by its number, and back; blanks and quotes around it are
 * passed over. 0: it is none of ours. */
const char *lockd_etag_text(uint64_t etag, char out[static LOCKD_ETAG_TEXT]);
uint64_t lockd_etag_parse(struct slice s);

/* A UUID of version 7 of a moment of the wall clock and 74 bits that nobody guesses. */
const char *lockd_uuid_text(slu_time wall, uint64_t a, uint64_t b,
			    char out[static LOCKD_UUID_TEXT]);

#endif
