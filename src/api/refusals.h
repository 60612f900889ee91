/*
 * refusals.h - what a server turns away: counted, logged when it begins and when it ends.
 *
 *      a caller without a good token or scope   sluice_auth_refused_total{reason}, log, audit
 *      a full disk, no memory                   log
 *
 * A client that asks ten times a second with an expired token makes two log lines, and one line
 * of the audit each 10 s (base/episode.h).
 */
#ifndef API_REFUSALS_H
#define API_REFUSALS_H

#include "auth/refusal.h"
#include "base/bytes.h"
#include "base/episode.h"

struct api;
struct call;
struct op;

int refusals_init(struct api *api); /* SLU_ENOMEM; the log and the clock of api are set */
void refusals_release(struct api *api);

/* The caller of c was refused. why: a sentence without anything that the caller has sent. */
void refusals_caller(struct api *api, const struct call *c, enum refusal reason, const char *why);

/* An op was answered: if for want of disk or memory, that is noted, with its shard. True: it
 * was. */
bool refusals_op(struct api *api, const struct op *op);

/* A request was refused with this code before it had an op: noted if it is SLU_EFULL or
 * SLU_ENOMEM. reason is a literal, or NULL. */
void refusals_request(struct api *api, int rc, const char *reason);

void refusals_metrics(const struct api *api, struct buf *out);

extern const struct episode_kind refusals_of_callers; /* the kind that the audit has lines of */

#endif
