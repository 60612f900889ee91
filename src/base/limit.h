/*
 * limit.h - the limits that can refuse a request, one row each.
 *
 *         return limit_fail(err, SLU_EBUSY, LIMIT_RATE, wait,
 *                           "namespace %.*s: more than %u messages a second", ...);
 *
 * The name is the field `limit` of an error and the label of sluice_limits_hit_total;
 * docs/limits.md describes each limit and its setting.
 */
#ifndef BASE_LIMIT_H
#define BASE_LIMIT_H

#include <sluice/err.h>

/* clang-format off */
#define LIMITS(X) \
	X(RATE,          "rate") \
	X(QUEUE_RATE,    "queue_rate") \
	X(DEPTH,         "depth") \
	X(QUEUES,        "queues") \
	X(IDEMPOTENCY,   "idempotency_keys") \
	X(PAYLOAD,       "payload") \
	X(BATCH,         "batch") \
	X(BODY,          "body") \
	X(WAITING,       "waiting") \
	X(QUEUE_WAITING, "queue_waiting") \
	X(CONSUMERS,     "consumers") \
	X(CONNECTIONS,   "connections") \
	X(MEMORY,        "request_memory") \
	X(MOVE,          "move") \
	X(INDEX_MEMORY,  "index_memory") \
	X(NAMESPACE_MESSAGES, "namespace_messages") \
	X(NAMESPACE_BYTES, "namespace_bytes") \
	X(UPLOADS,       "uploads") \
	X(SHARES,        "shares") \
	X(OUTBOX,        "outbox") \
	X(TASKS,         "tasks") \
	X(KINDS,         "kinds")
/* clang-format on */

enum limit {
#define X(name, text) LIMIT_##name,
	LIMITS(X)
#undef X
	LIMIT_COUNT
};

const char *limit_name(enum limit limit);

/* Returns LIMIT_COUNT if name is NULL or unknown. */
enum limit limit_by_name(const char *name);

/* slu_fail for a limit. after: how long the client should wait before it tries again; 0: not long. */
int limit_fail(struct slu_err *err, enum slu_code code, enum limit limit, slu_time after,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
