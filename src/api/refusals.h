/*
 * refusals.h - counts refused requests, and logs when refusals begin and end.
 *
 *      no valid token, or no scope              sluice_auth_refused_total{reason}, log, audit
 *      a full disk, no memory                   log
 *
 * A client that sends ten requests per second with an expired token causes two log lines, and
 * one line of the audit each 10 s (base/episode.h).
 */
#ifndef API_REFUSALS_H
#define API_REFUSALS_H

#include "auth/refusal.h"
#include "base/bytes.h"
#include "base/episode.h"

struct api;
struct exchange;
struct op;

int refusals_init(struct api *api); /* needs the log and the clock of api. SLU_ENOMEM */
void refusals_release(struct api *api);

/* Counts a refused caller. why: a sentence that contains nothing of the request. */
void refusals_caller(struct api *api, const struct exchange *x, enum refusal reason, const char *why);

/* Notes an op that failed for lack of disk or memory, with its shard. Returns true if it
 * did. */
bool refusals_op(struct api *api, const struct op *op);

/* Notes a request that was refused before it had an op, if rc is SLU_EFULL or SLU_ENOMEM.
 * reason: a literal, or NULL. */
void refusals_request(struct api *api, int rc, const char *reason);

void refusals_metrics(const struct api *api, struct buf *out);

extern const struct episode_kind refusals_of_callers; /* the audit has lines of these */

#endif
