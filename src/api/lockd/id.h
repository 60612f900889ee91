/*
 * id.h - the ids of the lockd dialect: xids, leases, transactions, etags.
 *
 * An xid is 12 bytes, written as 20 characters of 0-9a-v. The server stores none of them: they
 * encode values that the shard has.
 *
 *      transaction   an xid of the client, or one made from the token
 *      lease         8 bytes  token, the highest byte first
 *                    4 bytes  check of token, transaction and the two lowest bits:
 *                               1  the client sent the transaction
 *                               2  the message has a correlation id of its own
 *      meta_etag     token, end and length of the lease: 1f-19a2c3d4e5f-1e
 *
 * A lease id of another form, or with a wrong check, is LOCKD_NO_TOKEN, which no lease has.
 * With the two bits the handler of a settle does not need to read the message again.
 */
#ifndef API_LOCKD_ID_H
#define API_LOCKD_ID_H

#include "base/bytes.h"

enum {
	LOCKD_XID = 12,
	LOCKD_XID_TEXT = 21, /* with the NUL, as all here */
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
bool lockd_xid_parse(struct slice s, struct lockd_xid *out); /* false: not an xid */
bool lockd_xid_is_zero(const struct lockd_xid *x);

/* The transaction of a lease whose client sent none. */
struct lockd_xid lockd_txn_of(uint64_t token);

/* Returns true if lockd_txn_of makes this id. */
bool lockd_txn_is_ours(const struct lockd_xid *txn);

/* Sets LOCKD_TXN_GIVEN in flags. txn zero: the client sent none. */
const char *lockd_lease_text(uint64_t token, const struct lockd_xid *txn, unsigned flags,
			     char out[static LOCKD_XID_TEXT]);

/* txn zero: not sent, and not checked. Sets *flags to the flags of the lease. */
uint64_t lockd_lease_parse(struct slice s, const struct lockd_xid *txn, unsigned *flags);

/* The token without a check of the transaction: a wrong transaction is not a wrong lease. */
uint64_t lockd_lease_token(struct slice s);

/* The values of a meta_etag. */
struct lockd_meta {
	uint64_t token;
	slu_time until;
	int64_t seconds; /* length of the lease */
};

const char *lockd_meta_text(const struct lockd_meta *m, char out[static LOCKD_ETAG_TEXT]);
bool lockd_meta_parse(struct slice s, struct lockd_meta *out);

/* The etag of a document number, and back; blanks and quotes around it are ignored. 0: not an
 * etag of this server. */
const char *lockd_etag_text(uint64_t etag, char out[static LOCKD_ETAG_TEXT]);
uint64_t lockd_etag_parse(struct slice s);

/* A UUID of version 7 of a moment on the wall clock and 74 random bits. */
const char *lockd_uuid_text(slu_time wall, uint64_t a, uint64_t b,
			    char out[static LOCKD_UUID_TEXT]);

#endif
