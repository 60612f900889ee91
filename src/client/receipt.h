/*
 * receipt.h - all that it takes to settle a message: how it is read, and extended.
 */
#ifndef CLIENT_RECEIPT_H
#define CLIENT_RECEIPT_H

#include "client/client.h"
#include "client/decode.h"

/* Rows for a struct slu_receipt: in is the way to its members, or nothing. */
/* clang-format off */
#define RECEIPT_FIELDS(type, in) \
	DECODE(decode_chars, type, in space, "namespace"), \
	DECODE(decode_chars, type, in queue, "queue"), \
	DECODE(decode_chars, type, in id, "message_id"), \
	DECODE(decode_chars, type, in lease_id, "lease_id"), \
	DECODE(decode_chars, type, in txn, "txn_id"), \
	DECODE(decode_chars, type, in etag, "meta_etag"), \
	DECODE(json_read_u64, type, in token, "fencing_token"), \
	DECODE(decode_chars, type, in state.id, "state_lease_id"), \
	DECODE(decode_chars, type, in state.txn, "state_txn_id"), \
	DECODE(decode_chars, type, in state.etag, "state_etag"), \
	DECODE(json_read_u64, type, in state.token, "state_fencing_token"), \
	DECODE(decode_seconds, type, in state.until, "state_lease_expires_at_unix")
/* clang-format on */

/* Where its state is, if it has one. */
void receipt_name_state(struct slu_receipt *r, const char *owner);

/* As slu_client_extend; *until: when the lease ends, on the wall clock. */
int receipt_extend(struct slu_client *c, struct slu_receipt *r, slu_time by, slu_time *until,
		   const struct slu_call *call, struct slu_err *err);

#endif
