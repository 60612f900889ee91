/*
 * audit.h - who has done what, to which queue, and where that was: a line of JSON each.
 *
 *      {"time":"2026-11-15T12:00:00.123Z","who":"alice","verb":"enqueue","namespace":"acme",
 *       "queue":"mail","shard":"heavy","rule":"tenant","count":2,"ids":["73...","73..."],
 *       "outcome":"ok","request_id":"..."}
 *
 * Every op that changes something, or hands something out, has one, whether it went well or
 * not; and one for each queue when it is about several. What messages, results and states contain is in none of
 * them, nor are tokens, neither those of callers nor of leases.
 *
 * A caller that was let in but may not do what it asked for has no op, and a caller that was not
 * let in has no name: of these there is one line a reason and address each 10 s, with a count.
 *
 *      {"time":"...","verb":"refuse","reason":"expired","address":"10.0.0.7","count":93}
 *
 * rule is what chose the shard (core/supplier.h): tenant, command, default, hash, range; or
 * previous, for one that the queue is leaving. docs/operations.md has all members.
 */
#ifndef API_AUDIT_H
#define API_AUDIT_H

#include "base/episode.h"

struct ask;

enum {
	AUDIT_IDS = 16 /* of a line; more are only counted */
};

/* Of an ask whose ops have all been answered, on its loop. */
void audit_ask(const struct ask *a);

/* Of callers that were refused (api/refusals.h), n of one reason and address since the last line
 * about these. An episode_tell; arg is a struct api. */
void audit_episode(void *arg, const struct episode *e, uint64_t n);

#endif
