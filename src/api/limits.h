/*
 * limits.h - every limit of the flat API, in one place. docs/api.md lists them.
 */
#ifndef API_LIMITS_H
#define API_LIMITS_H

#include "core/policy.h"

enum {
	API_BODY_MAX = 16 << 20,                /* bytes of a request */
	API_SMALL_BODY = 64 << 10,              /* of one that says little */
	LOCKD_BODY_MAX = (1 << 30) + (1 << 20), /* of an enqueue in parts: MESSAGE_PAYLOAD_MAX and more */

	API_ENQUEUE_MAX = 10000, /* items of a call */
	API_SETTLE_MAX = 1000,
	API_CLAIM_MAX = 1000,
	API_CLAIM_DEFAULT = 10,
	API_PAYLOAD_BYTES = 4 << 20, /* of the records in an answer; at least one is */
	API_PAGE_MAX = 1000,         /* entries of a list */
	API_PAGE_DEFAULT = 100,

	API_ERROR_MAX = 64 << 10,   /* text of a nack */
	API_RESULT_MAX = 1 << 20,   /* JSON of an ack */
	API_ATTEMPTS_MAX = 65535,   /* max_attempts */
	API_LOOK_BYTES = 16 << 20,  /* of the records that one page of a search reads */
	API_COPY_MAX = 100,         /* dead letters that a call puts into another queue */
	API_BACKUP_BYTES = 1 << 20, /* of a file, in one answer */
	API_METRIC_QUEUES = 1000,   /* with numbers of their own in /metrics, unless told otherwise */
	API_METRIC_PAGE = 256,      /* of these, asked for at a time */
	API_RETRY_AFTER_SECONDS = 1 /* said with 429 and 503 */
};

#define API_WAIT_MAX  SLU_HOUR
#define API_LEASE_MAX POLICY_LEASE_MAX
#define API_DELAY_MAX (10 * 366 * 24 * SLU_HOUR) /* and ttl */
#define API_KEEP_MAX  (366 * 24 * SLU_HOUR)      /* of results */

#endif
