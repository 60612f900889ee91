/*
 * flat_claim.h - GET or POST /dequeue: the best messages of a queue, leased.
 *
 *      GET /dequeue?namespace=payments&topic=process-refund&limit=10&wait=20&lease=30s&owner=web-7
 *      [{"id":1234567890,"payload":"aGVsbG8=","lease_expires_at":"...", ...}]
 *
 *      GET /dequeue?namespace=payments&queue=process-refund&as=text
 *      [{"id":1234567890,"text":"hello","lease_expires_at":"...", ...}]
 *
 * With `wait` it stays until there is something. A client that goes meanwhile, or
 * that does not take the answer whole, has received nothing: what was granted goes
 * back, to its old place and with no failure counted.
 */
#ifndef API_FLAT_CLAIM_H
#define API_FLAT_CLAIM_H

#include "api/flat_view.h"

#include <sluice/err.h>

struct call;

struct flat_claim {
	struct slice namespace;
	struct slice topic;
	uint32_t limit;
	slu_time wait;
	slu_time lease;     /* 0: the queue's */
	struct slice owner; /* n 0: the caller's name */
	struct slice as;
	enum flat_as form; /* what `as` asks for */
};

/* Out of the query, or else out of the JSON of the body. room: as many bytes as the
 * query and twice the body have. */
int flat_claim_decode(struct flat_claim *q, struct slice query, struct slice body,
		      char *room, struct slu_err *err);

void flat_claim(struct call *c, void *api);

#endif
