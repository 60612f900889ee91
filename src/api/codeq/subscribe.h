/*
 * subscribe.h - tells subscribers of created tasks (api/codeq/subscribers.h).
 *
 *      codeq_ready_note for each command, then codeq_ready_send ──> then(a)
 *
 * A call is sent once; if it fails, or the server has no room for its message, the next task calls again.
 */
#ifndef API_CODEQ_SUBSCRIBE_H
#define API_CODEQ_SUBSCRIBE_H

#include "api/codeq/webhook.h"

struct codeq_ready {
	struct apicall *apicall;
	struct slice trace; /* of the calls */

	/* Private. */
	struct op_put *puts;
	uint32_t n;
	struct slice command, body;
	uint64_t task;
	void (*then)(struct apicall *a);
};

/* The command has a task that is ready. */
void codeq_ready_note(struct codeq_ready *r, struct slice queue, struct slice command, uint64_t task);

/* Uses a->op and a->part. `then` runs on the loop, in every case. */
void codeq_ready_send(struct codeq_ready *r, void (*then)(struct apicall *a));

#endif
