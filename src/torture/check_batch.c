/*
 * check_batch.c - batches call back once: I14.
 */
#include "torture/check_private.h"

#include <inttypes.h>

/* The callbacks of a batch: how many messages. */
static unsigned
callbacks(const struct check *c, uint64_t name, const struct event *found[2])
{
	unsigned n = 0;

	for (size_t i = 0; i < c->history->n; i++) {
		const struct event *e = &c->history->events[i];

		if (e->kind != EVENT_CALLBACK || e->name != name)
			continue;
		if (n < 2)
			found[n] = e;
		n++;
	}
	return n;
}

/* At the end of a round all members have ended. */
void
rule_batch(struct check *c)
{
	for (size_t i = 0; i < c->history->n; i++) {
		const struct event *e = &c->history->events[i];
		const struct event *found[3] = { NULL };
		unsigned n;

		if (e->kind != EVENT_BATCH)
			continue;
		n = callbacks(c, e->name, found);
		found[2] = e;
		if (n > 1)
			check_found(c, (struct event_list){ found, 3 }, "batch %" PRIu64 " called back %u times", e->name, n);
		else if (n == 1 && e->outcome == OUTCOME_FAILED)
			check_pair(c, found[0], e, "batch %" PRIu64 " called back, and was never closed", e->name);
		else if (n == 0 && e->outcome == OUTCOME_OK)
			check_found(c, (struct event_list){ &found[2], 1 }, "batch %" PRIu64 " was closed and did not call back", e->name);
	}
}
