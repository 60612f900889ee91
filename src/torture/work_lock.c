/*
 * work_lock.c - clients that take a lock, read the number in its state, write the next one, and
 * release the lock. The number must equal the commits.
 */
#include "torture/times.h"
#include "torture/work_private.h"

enum {
	TTL_S = 1,     /* ttl of a lock that is abandoned or held too long */
	LONG_TTL_S = 3 /* mostly longer than a restart */
};

/* Reads the value and writes the next one. Returns the staged value, or 0. */
static uint64_t
count(struct torture_worker *w, const struct lock_held *held)
{
	uint64_t value;

	if (caller_read_state(&w->caller, held->lock, held, &value) != OUTCOME_OK)
		return 0;
	return caller_update(&w->caller, held, value + 1) == OUTCOME_OK ? value + 1 : 0;
}

/* Waits until the lease has ended: another client may have the lock then. */
static void
come_late(struct torture_worker *w, const struct lock_held *held)
{
	uint64_t value;

	if (caller_read_state(&w->caller, held->lock, held, &value) != OUTCOME_OK)
		return;
	sleep_ms(TTL_S * 1000 + dice_below(&w->caller.dice, 300));
	value = caller_update(&w->caller, held, value + 1) == OUTCOME_OK ? value + 1 : 0;
	(void)caller_release_lock(&w->caller, held, value, false);
}

static void
hold(struct torture_worker *w, const struct lock_held *held)
{
	const unsigned chance = (unsigned)dice_below(&w->caller.dice, 100);
	uint64_t value;

	if (chance < 1) {
		come_late(w, held);
		return;
	}
	value = count(w, held);
	if (chance < 2)
		return;           /* abandoned: staged values are dropped with the lease */
	if (chance < 20 && value) /* a holder may write several times */
		(void)caller_update(&w->caller, held, value);
	(void)caller_release_lock(&w->caller, held, value, chance >= 90);
}

void
work_locks(struct torture_worker *w)
{
	struct dice *d = &w->caller.dice;

	while (work_goes_on(w)) {
		const uint32_t lock = 1 + (uint32_t)dice_below(d, HISTORY_LOCKS);
		const bool stalls = atomic_load(&w->torture->stalls);
		const unsigned ttl = dice_chance(d, 50) ? LONG_TTL_S : TTL_S;
		const unsigned wait = dice_chance(d, 8);
		struct lock_held held;
		uint64_t value;

		if (dice_chance(d, 20))
			(void)caller_read_state(&w->caller, lock, NULL, &value);
		if (caller_acquire(&w->caller, lock, ttl, wait, &held) != OUTCOME_OK)
			sleep_ms(WORK_IDLE_MS);
		else if (stalls && ttl == TTL_S && dice_chance(d, 15))
			come_late(w, &held);
		else
			hold(w, &held);
	}
}
