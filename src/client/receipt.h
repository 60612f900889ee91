/*
 * receipt.h - the receipt of a message: its JSON fields, and how its lease is extended.
 */
#ifndef CLIENT_RECEIPT_H
#define CLIENT_RECEIPT_H

#include "client/client.h"
#include "client/decode.h"

/* Rows for a struct slu_receipt. in: the path to it in the type, or empty. */
/* clang-format off */
#define RECEIPT_FIELDS(type, in) \
	JSON_ROW("namespace", json_read_chars, type, in space), \
	JSON_ROW("queue", json_read_chars, type, in queue), \
	JSON_ROW("message_id", json_read_chars, type, in id), \
	JSON_ROW("lease_id", json_read_chars, type, in lease_id), \
	JSON_ROW("txn_id", json_read_chars, type, in txn), \
	JSON_ROW("meta_etag", json_read_chars, type, in etag), \
	JSON_ROW("fencing_token", json_read_u64, type, in token), \
	JSON_ROW("state_lease_id", json_read_chars, type, in state.id), \
	JSON_ROW("state_txn_id", json_read_chars, type, in state.txn), \
	JSON_ROW("state_etag", json_read_chars, type, in state.etag), \
	JSON_ROW("state_fencing_token", json_read_u64, type, in state.token), \
	JSON_ROW("state_lease_expires_at_unix", decode_seconds, type, in state.until)
/* clang-format on */

/* Sets namespace, key and owner of the message's state, if it has one. */
void receipt_name_state(struct slu_receipt *r, const char *owner);

/* Like slu_client_extend. *until: when the lease ends, on the wall clock. */
int receipt_extend(struct slu_client *c, struct slu_receipt *r, slu_time by, slu_time *until,
		   const struct slu_call *call, struct slu_err *err);

#endif
