/*
 * claim.h - GET or POST /dequeue: the best messages of a queue, leased.
 *
 *      GET /dequeue?namespace=payments&queue=process-refund&limit=10&wait=20&lease=30s&owner=web-7
 *      [{"id":1234567890,"payload":"aGVsbG8=","lease_expires_at":"...", ...}]
 *
 *      GET /dequeue?namespace=payments&queue=process-refund&as=text
 *      [{"id":1234567890,"text":"hello","lease_expires_at":"...", ...}]
 *
 * With `wait` the claim waits for a message. If the client hangs up, or does not receive the
 * whole answer, the messages return to their old place, and no failure is counted.
 */
#ifndef API_FLAT_CLAIM_H
#define API_FLAT_CLAIM_H

#include "api/flat/view.h"

#include <sluice/err.h>

struct flat_claim {
	struct slice namespace;
	struct slice queue;
	uint32_t limit;
	slu_time wait;
	slu_time lease;     /* 0: the lease of the queue */
	struct slice owner; /* n 0: the caller's name */
	struct slice as;
	struct slice kinds; /* a list with commas; no pointer: every message */
	enum flat_as form;  /* the form that `as` names */
};

/* Reads the query, or the JSON body if the query is empty. room has query.n + 2 * body.n
 * bytes. */
int flat_claim_decode(struct flat_claim *q, struct slice query, struct slice body,
		      char *room, struct slu_err *err);

#endif
