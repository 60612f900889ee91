/*
 * limits.h - the fixed limits of the APIs. docs/api.md lists them.
 */
#ifndef API_LIMITS_H
#define API_LIMITS_H

#include "form/limits.h"

enum {
	API_BODY_MAX = 16 << 20,   /* bytes of a request */
	API_SMALL_BODY = 64 << 10, /* bytes of a request without messages */

	API_SETTLE_MAX = 1000, /* items of a request */
	API_CLAIM_MAX = 1000,  /* messages of a claim */
	API_CLAIM_DEFAULT = 10,
	API_PAYLOAD_BYTES = 4 << 20, /* of the records in an answer, which has at least one */
	API_PAGE_MAX = 1000,         /* entries of a list */
	API_PAGE_DEFAULT = 100,

	API_ERROR_MAX = 64 << 10,   /* text of a nack */
	API_RESULT_MAX = 1 << 20,   /* JSON of an ack */
	API_LOOK_BYTES = 16 << 20,  /* of records that a page of a search reads */
	API_COPY_MAX = 100,         /* dead letters that a request puts into another queue */
	API_PLACES_MAX = 1000,      /* queues of a request for their shards */
	API_BACKUP_BYTES = 1 << 20, /* of a file, in one answer */
	API_METRIC_QUEUES = 1000,   /* queues with lines of their own in /metrics, by default */
	API_METRIC_PAGE = 256,      /* queues asked for at a time */
	API_RETRY_AFTER_SECONDS = 1 /* Retry-After of 429 and 503 */
};

#define API_WAIT_MAX SLU_HOUR

#endif
