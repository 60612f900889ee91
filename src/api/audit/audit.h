/*
 * audit.h - the audit file: one line of JSON per change, with caller, queue and shard.
 *
 *      {"time":"2026-11-15T12:00:00.123Z","who":"alice","verb":"enqueue","namespace":"acme",
 *       "queue":"mail","shard":"heavy","rule":"tenant","count":2,"ids":["73...","73..."],
 *       "outcome":"ok","request_id":"..."}
 *
 * A change of what has settings has "before" and "after" (api/audit/change.h).
 *
 * Every op that changes something or delivers something has a line, also if it failed. An op
 * on several queues has a line per queue. No line contains a payload, a result, a state, a
 * token of a caller or a token of a lease.
 *
 * A request that authorize refuses has no op. Such requests share one line per reason and
 * address each 10 s, with a count.
 *
 *      {"time":"...","verb":"refuse","reason":"expired","address":"10.0.0.7","count":93}
 *
 * `rule` chose the shard (core/supplier.h): tenant, command, default, hash, range, or previous
 * for a shard that the queue is leaving. docs/operations.md has all members.
 */
#ifndef API_AUDIT_H
#define API_AUDIT_H

#include "base/bytes.h"
#include "base/episode.h"

struct apicall;

enum {
	AUDIT_IDS = 16 /* most ids of a line; more are counted */
};

/* Writes the lines of an apicall whose ops are all answered. On its loop. */
void audit_apicall(const struct apicall *a);

/* Writes a line about a change of the server itself, which has no op: verb, caller, outcome rc. */
void audit_action(const struct apicall *a, const char *verb, int rc);

/* The same for a thing of a namespace that has no op: kind ("worker") and its name. */
void audit_named(const struct apicall *a, const char *verb, struct slice namespace, const char *kind, struct slice name,
		 int rc);

/* Writes the line of n refused requests of one reason and address (api/refusals.h). For
 * episodes.tell; arg is a struct api. */
void audit_episode(void *arg, const struct episode *e, uint64_t n);

#endif
