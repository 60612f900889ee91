/*
 * digest.h - the MD5 sums that SDKs compare, and the SHA-256 of a body.
 *
 * The sum of message attributes is over all of them, sorted by name. For each:
 *
 *      4  length of the name, big-endian, as the others     n  name
 *      4  length of the type, with its suffix               n  type
 *      1  1: String or Number, 2: Binary
 *      4  length of the value                               n  value
 */
#ifndef API_SQS_DIGEST_H
#define API_SQS_DIGEST_H

#include "api/sqs/request.h"

enum {
	SQS_MD5 = 33,   /* in hex, with the NUL */
	SQS_SHA256 = 65 /* the same */
};

/* Write hex and return out. */
const char *sqs_md5(struct slice text, char out[static SQS_MD5]);
const char *sqs_sha256(struct slice text, char out[static SQS_SHA256]);

/* The same for one text behind the other. */
const char *sqs_sha256_pair(struct slice first, struct slice second, char out[static SQS_SHA256]);

/* Sorts the attributes. NULL: no memory. */
const char *sqs_md5_attributes(struct sqs_attribute *items, uint32_t n, char out[static SQS_MD5]);

#endif
