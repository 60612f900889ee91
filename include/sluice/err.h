/*
 * err.h - error codes.
 *
 * A function that can fail returns 0 or one of the codes below. Callers branch on the
 * code, never on the text:
 *
 *         struct slu_err err;
 *
 *         switch (slu_executor_submit(ex, key, &task, NULL, NULL, &err)) {
 *         case SLU_OK:      break;
 *         case SLU_EQFULL:  slow_down(err.shard, err.length, err.capacity); break;
 *         case SLU_ECLOSED: return;
 *         default:          fprintf(stderr, "%s\n", err.text);
 *         }
 */
#ifndef SLUICE_ERR_H
#define SLUICE_ERR_H

#include <sluice/api.h>

SLU_BEGIN_DECLS

/* Whether the caller may repeat the request. */
enum slu_retry_hint {
	SLU_RETRY_NO,  /* it will fail again */
	SLU_RETRY_YES, /* later, unchanged */
	SLU_RETRY_KEY, /* only with an idempotency key: it may have happened */
};

/*
 * One row for each error: C name, number, name and HTTP status on the flat API, retry hint, text.
 * A number never changes and is never used again: a new row comes last and gets the next number.
 */
/* clang-format off */
#define SLU_ERRORS(X) \
	X(EINVAL,     1001, "invalid",         400, NO,  "invalid request") \
	X(EAUTH,      1002, "unauthorized",    401, NO,  "no valid credentials") \
	X(EFORBIDDEN, 1003, "forbidden",       403, NO,  "not allowed for these credentials") \
	X(ENOTFOUND,  1004, "not_found",       404, NO,  "not found") \
	X(ETIMEOUT,   1005, "timeout",         408, YES, "timed out") \
	X(ELEASE,     1006, "lease_lost",      409, NO,  "lease expired or not yours") \
	X(EEXISTS,    1007, "exists",          409, NO,  "exists already") \
	X(ECONFLICT,  1008, "conflict",        409, NO, "changed by another client meanwhile") \
	X(ETOOBIG,    1009, "too_large",       413, NO, "larger than the limit") \
	X(EBUSY,      1010, "limit_reached",   429, YES, "limit reached") \
	X(EQFULL,     1011, "queue_full",      429, YES, "no room in the queue") \
	X(ECANCELED,  1012, "canceled",        499, NO,  "canceled by the caller") \
	X(ECORRUPT,   1013, "corrupt",         500, NO,  "stored data is damaged") \
	X(EFAILED,    1014, "failed",          500, YES, "the task failed") \
	X(EPANIC,     1015, "panic",           500, YES, "the task panicked") \
	X(EPERMANENT, 1016, "permanent",       500, NO,  "the task failed for good") \
	X(ENOMEM,     1017, "out_of_memory",   503, YES, "out of memory") \
	X(EFULL,      1018, "disk_full",       503, YES, "no room for new work") \
	X(EDOWN,      1019, "shard_failed",    503, YES, "not available now") \
	X(ECLOSED,    1020, "closed",          503, YES, "stopped; new work is refused") \
	X(EUNKNOWN,   1021, "outcome_unknown", 503, KEY, "may or may not have happened") \
	X(EMOVED,     1022, "moved",           503, YES, "the queue has moved to another shard") \
	X(ESTARTING,  1023, "starting",        503, YES, "reads back what is stored, takes no work yet") \
	X(EROUNDED,   1024, "rounded_id",      400, NO,  "a JSON parser rounded the id; send the receipt or the uid") \
	X(EMEMORY,    1025, "memory_full",     429, YES, "no memory for more messages, keys and documents") \
	X(EQUOTA,     1026, "quota",           429, YES, "the quota of the namespace is used up") \
	X(EIDEM,      1027, "idempotency_conflict", 409, NO, "another payload was sent under this idempotency key") \
	X(ENOTEMPTY,  1028, "not_empty",       409, NO,  "the queue has messages") \
	X(ESPANS,     1029, "spans_shards",    400, NO,  "the queues are on several shards") \
	X(ETOGETHER,  1030, "not_together",    409, NO,  "cannot be one step with the message; nothing was done") \
	X(EOUTBOX,    1031, "outbox_full",     503, YES, "too many messages are on their way to another shard") \
	X(ESTOP,      1032, "message_canceled", 409, NO, "the message was canceled; stop its work and settle it") \
	X(EDRAINING,  1033, "queue_draining",  409, NO,  "the queue is being drained and takes no new messages")
/* clang-format on */

/* All codes are above any errno, so that a task may return an errno value as a failure. */
enum slu_code {
	SLU_OK,
	SLU_CODE_BASE = 1000,
#define X(name, number, ...) SLU_##name = number,
	SLU_ERRORS(X)
#undef X
	SLU_CODE_END
};

/* The code, and a sentence that names the file, key or peer. The caller owns it; functions fill it
 * and keep no pointer to it. */
struct slu_err {
	enum slu_code code;
	uint32_t shard;       /* SLU_EQFULL: the shard or queue */
	uint32_t length;      /* SLU_EQFULL: how many it holds */
	uint32_t capacity;    /* SLU_EQFULL: its limit */
	const char *limit;    /* name of the limit that refused, a literal; otherwise NULL */
	slu_time retry_after; /* of a limit: wait this long before a retry; 0: not long */
	char text[240];
	const char *owner;    /* SLU_EMOVED of a server: address of the node that owns the shard; otherwise NULL */
	uint64_t reserved[1]; /* 0 */
};

struct slu_err_row {
	const char *c_name;     /* "SLU_EQFULL" */
	const char *flat_name;  /* in the flat API and in logs */
	int flat_status;        /* HTTP status in the flat API */
	const char *lockd_name; /* deprecated: flat_name; a dialect has names of its own */
	int lockd_status;       /* deprecated: flat_status */
	enum slu_retry_hint retry;
	const char *text;
};

/* The row of a code; for an unknown code a row with "SLU_?" and 500. */
SLU_API const struct slu_err_row *slu_err_row(int code);

/* Fills err, which may be NULL, and returns code:
 *         return slu_fail(err, SLU_EDOWN, "open %s: %m", path); */
SLU_API int slu_fail(struct slu_err *err, enum slu_code code, const char *fmt, ...)
	SLU_PRINTF(3, 4);

SLU_END_DECLS

#endif
