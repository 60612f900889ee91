/*
 * receipt.h - a delivered message as one text that settles it: which message, and by
 * which lease.
 *
 *      bytes, in base64url without padding
 *        1   version, 1
 *        1   length of the namespace
 *        8   id             little-endian, as the next two
 *        8   fencing token
 *        n   namespace      1 to 128
 *        n   queue          1 to 128
 *        4   CRC-32C of all bytes before
 *
 * The text has 32 to 371 characters of A-Z a-z 0-9 - _, and no id or UUID looks like one:
 * it begins with A and a letter from Q to Y. It names no shard, because queues move. The
 * checksum finds texts that were cut or changed by accident. It is no secret: whoever
 * settles by a receipt needs the right to do so in its namespace, and the lease must be
 * the current one.
 */
#ifndef BASE_RECEIPT_H
#define BASE_RECEIPT_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	RECEIPT_NAME = 128,                                   /* a name at most */
	RECEIPT_BYTES = 1 + 1 + 8 + 8 + 2 * RECEIPT_NAME + 4, /* at most */
	RECEIPT_TEXT = (RECEIPT_BYTES + 2) / 3 * 4            /* at most, without an end */
};

struct receipt {
	struct slice space, queue;
	uint64_t id, token;
};

/* Its bytes, which base64url makes a text of. Returns how many. */
size_t receipt_encode(const struct receipt *r, char out[static RECEIPT_BYTES]);

/* Append its text. */
void receipt_write(const struct receipt *r, struct buf *b);

/* The names point into room. SLU_EINVAL: "invalid receipt: ...". Names are whole, of a sound
 * length and not empty; whether they are names is the caller's to check. The id is one, and
 * the token is not 0. */
int receipt_parse(struct slice text, char room[static RECEIPT_TEXT], struct receipt *out,
		  struct slu_err *err);

#endif
