/*
 * total.h - how many messages there are: the `of` of "looked at n of m", for calls that look page by page.
 *
 * It adds up the counts that the shards keep, and looks at no message. Used on the loop of its call.
 */
#ifndef API_ADMIN_TOTAL_H
#define API_ADMIN_TOTAL_H

#include "api/apicall.h"

struct admin_total {
	struct slice namespace; /* n 0: all */
	struct slice queue;     /* n 0: all but reserved ones */
	enum msg_state only;    /* MSG_NONE: all */
	void (*then)(struct apicall *a);

	uint64_t of;
	bool known; /* false: too many queues to add up, or a shard did not answer */

	/* Private. */
	struct op_queue *queues;
	unsigned pages;
};

/* Fills t, a member of the state of the handler, as `ask` says, and calls `then`. Uses a->op. Without memory the call is
 * refused, and `then` is not called. */
void admin_total_count(struct apicall *a, struct admin_total *t, const struct admin_total *ask);

#endif
