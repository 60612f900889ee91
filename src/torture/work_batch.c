/*
 * work_batch.c - a client that makes batches.
 */
#include "torture/work_private.h"

#include "torture/times.h"

enum {
	MEMBERS = 5,
	PAUSE_MS = 30
};

static void
put_members(struct torture_worker *w, uint64_t batch)
{
	const unsigned n = (unsigned)dice_below(&w->caller.dice, MEMBERS + 1);
	struct push_item items[MEMBERS];

	for (unsigned i = 0; i < n; i++) {
		items[i] = work_item(w->torture, &w->caller.dice);
		items[i].idempotent = false;
		items[i].batch = batch;
	}
	if (n && caller_push(&w->caller, items, n) == OUTCOME_OK)
		atomic_fetch_add(&w->torture->ahead, n);
}

void
work_batches(struct torture_worker *w)
{
	while (work_goes_on(w)) {
		const uint64_t name = atomic_fetch_add(&w->torture->next_name, 1);
		uint64_t id;

		if (caller_open_batch(&w->caller, name, &id) == OUTCOME_OK) {
			put_members(w, id);
			(void)caller_close_batch(&w->caller, name, id); /* its outcome is in the history */
		}
		sleep_ms(PAUSE_MS);
	}
}
