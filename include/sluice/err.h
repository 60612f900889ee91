/*
 * err.h - how calls fail.
 *
 * Every fallible call returns 0 or one of the codes below. Callers branch on the
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

/* May a caller send the same thing again? */
enum slu_retry_hint {
	SLU_RETRY_NO,  /* it will fail again */
	SLU_RETRY_YES, /* later, unchanged */
	SLU_RETRY_KEY, /* only with an idempotency key: it may have happened */
};

/*
 * One row is the whole truth about a failure:
 *    C name, number, name and status on the flat API, name and status on the lockd API,
 *    may the caller try again, what a person reads.
 * A number never changes and is never used again: a new row comes last and has the next.
 */
/* clang-format off */
#define SLU_ERRORS(X) \
	X(EINVAL,     1001, "invalid",         400, "invalid_body",    400, NO,  "invalid request") \
	X(EAUTH,      1002, "unauthorized",    401, "unauthorized",    401, NO,  "no valid credentials") \
	X(EFORBIDDEN, 1003, "forbidden",       403, "namespace_forbidden", 403, NO,  "not allowed for these credentials") \
	X(ENOTFOUND,  1004, "not_found",       404, "not_found",       404, NO,  "no such thing") \
	X(ETIMEOUT,   1005, "timeout",         408, "waiting",         409, YES, "the time allowed has passed") \
	X(ELEASE,     1006, "lease_lost",      409, "lease_required",  403, NO,  "lease expired or not yours") \
	X(EEXISTS,    1007, "exists",          409, "already_exists",  409, NO,  "it is there already") \
	X(ECONFLICT,  1008, "conflict",        409, "version_conflict", 409, NO, "changed by someone else meanwhile") \
	X(ETOOBIG,    1009, "too_large",       413, "payload_too_large", 413, NO, "larger than the limit") \
	X(EBUSY,      1010, "limit_reached",   429, "throttled",       429, YES, "limit reached") \
	X(EQFULL,     1011, "queue_full",      429, "queue_full",      429, YES, "no room in the queue") \
	X(ECANCELED,  1012, "canceled",        499, "waiting",         409, NO,  "canceled by the caller") \
	X(ECORRUPT,   1013, "corrupt",         500, "internal_error",  500, NO,  "stored data is damaged") \
	X(EFAILED,    1014, "failed",          500, "failed",          500, YES, "the task failed") \
	X(EPANIC,     1015, "panic",           500, "panic",           500, YES, "the task panicked") \
	X(EPERMANENT, 1016, "permanent",       500, "permanent",       500, NO,  "the task failed for good") \
	X(ENOMEM,     1017, "out_of_memory",   503, "out_of_memory",   503, YES, "out of memory") \
	X(EFULL,      1018, "disk_full",       503, "disk_full",       503, YES, "no room for new work") \
	X(EDOWN,      1019, "shard_failed",    503, "shard_failed",    503, YES, "not available now") \
	X(ECLOSED,    1020, "closed",          503, "shutdown_draining", 503, YES, "stopped, takes no new work") \
	X(EUNKNOWN,   1021, "outcome_unknown", 503, "outcome_unknown", 503, KEY, "may or may not have happened") \
	X(EMOVED,     1022, "moved",           503, "moved",           503, YES, "the queue has moved to another shard") \
	X(ESTARTING,  1023, "starting",        503, "starting",        503, YES, "reads back what is stored, takes no work yet") \
	X(EROUNDED,   1024, "rounded_id",      400, "rounded_id",      400, NO,  "a JSON parser rounded the id; send the receipt or the uid") \
	X(EMEMORY,    1025, "memory_full",     429, "memory_full",     429, YES, "no memory for more messages, keys and documents") \
	X(EQUOTA,     1026, "quota",           429, "quota",           429, YES, "the namespace holds as much as it may") \
	X(EIDEM,      1027, "idempotency_conflict", 409, "idempotency_conflict", 409, NO, "another payload was sent under this idempotency key") \
	X(ENOTEMPTY,  1028, "not_empty",       409, "not_empty",       409, NO,  "it holds messages")
/* clang-format on */

/* The codes lie above any errno: a task that returns an errno value just failed. */
enum slu_code {
	SLU_OK,
	SLU_CODE_BASE = 1000,
#define X(name, number, ...) SLU_##name = number,
	SLU_ERRORS(X)
#undef X
	SLU_CODE_END
};

/* The code plus one sentence naming the file, key or peer. Lives on the caller's
 * stack; callees fill it and never keep it. */
struct slu_err {
	enum slu_code code;
	/* SLU_EQFULL only: which shard or queue, how much it held, its limit. */
	uint32_t shard;
	uint32_t length;
	uint32_t capacity;
	/* Of what a limit refused: its name, a literal; NULL otherwise. And when trying
	 * again makes sense, from now; 0: soon. */
	const char *limit;
	slu_time retry_after;
	char text[240];
	uint64_t reserved[2]; /* 0 */
};

struct slu_err_row {
	const char *c_name; /* "SLU_EQFULL" */
	const char *flat_name;
	int flat_status;
	const char *lockd_name;
	int lockd_status;
	enum slu_retry_hint retry;
	const char *text;
};

/* The row of a code; an unknown code gets a row of its own ("SLU_?", 500). */
SLU_API const struct slu_err_row *slu_err_row(int code);

/* Fill err (may be NULL) and return code:
 *         return slu_fail(err, SLU_EDOWN, "open %s: %m", path); */
SLU_API int slu_fail(struct slu_err *err, enum slu_code code, const char *fmt, ...)
	SLU_PRINTF(3, 4);

SLU_END_DECLS

#endif
