/*
 * receipt.h - a delivered message as one text that settles it: names the message and
 * its lease.
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
 * The text has 32 to 371 characters of A-Z a-z 0-9 - _. It begins with A and a letter from
 * Q to Y, so no id or UUID looks like a receipt. It names no shard, because queues move. The
 * checksum finds texts that were cut or changed by accident. A receipt is not a secret: a
 * client that settles by it needs the right to do so in its namespace, and the lease must
 * be the current one.
 */
#ifndef BASE_RECEIPT_H
#define BASE_RECEIPT_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	RECEIPT_NAME = 128,                                   /* bytes of a name at most */
	RECEIPT_BYTES = 1 + 1 + 8 + 8 + 2 * RECEIPT_NAME + 4, /* bytes at most */
	RECEIPT_TEXT = (RECEIPT_BYTES + 2) / 3 * 4            /* characters at most, without a NUL */
};

struct receipt {
	struct slice space, queue;
	uint64_t id, token;
};

/* Writes the bytes, before base64url. Returns their number. */
size_t receipt_encode(const struct receipt *r, char out[static RECEIPT_BYTES]);

/* Appends the text. */
void receipt_write(const struct receipt *r, struct buf *b);

/* The names point into room. Returns SLU_EINVAL, "invalid receipt: ...". Checks the length of the
 * names, that the id is valid and that the token is not 0; the caller checks the characters of the
 * names. */
int receipt_parse(struct slice text, char room[static RECEIPT_TEXT], struct receipt *out,
		  struct slu_err *err);

#endif
