/*
 * limits.h - the fixed limits of a message as JSON, and of policies. docs/api.md lists them.
 */
#ifndef FORM_LIMITS_H
#define FORM_LIMITS_H

#include "core/queue/policy.h"

enum {
	API_ENQUEUE_MAX = 10000, /* messages of a request */
	API_COPIES_MAX = 16,     /* queues of `copy_to` */
	API_ATTEMPTS_MAX = 65535 /* max_attempts */
};

#define API_LEASE_MAX POLICY_LEASE_MAX
#define API_DELAY_MAX (10 * 366 * 24 * SLU_HOUR) /* of a delay and of a ttl */
#define API_KEEP_MAX  (366 * 24 * SLU_HOUR)      /* of results */

#endif
