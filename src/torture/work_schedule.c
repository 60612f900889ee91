/*
 * work_schedule.c - a client that sets schedules, and then acts on them.
 */
#include "torture/work_private.h"

#include "torture/times.h"

enum {
	SCHEDULES = 3,
	PAUSE_MS = 100
};

/* Sets a schedule, until one try is answered or refused. The same definition again changes nothing. */
static bool
set_one(struct torture_worker *w, uint64_t name, unsigned interval_s)
{
	const bool jitters = dice_chance(&w->caller.dice, 50);

	while (work_goes_on(w)) {
		if (caller_set_schedule(&w->caller, name, interval_s, jitters) == OUTCOME_OK)
			return true;
		sleep_ms(PAUSE_MS);
	}
	return false;
}

/* The first is left alone, the second runs by hand, too, and the third is paused now and then. */
static void
act(struct torture_worker *w, const uint64_t names[static SCHEDULES])
{
	if (dice_chance(&w->caller.dice, 50)) {
		(void)caller_act_on_schedule(&w->caller, names[1], "run");
		return;
	}
	(void)caller_act_on_schedule(&w->caller, names[2], "pause");
	sleep_ms(dice_below(&w->caller.dice, 1500));
	(void)caller_act_on_schedule(&w->caller, names[2], "resume");
}

void
work_schedules(struct torture_worker *w)
{
	uint64_t names[SCHEDULES];
	bool set = true;

	for (unsigned i = 0; i < SCHEDULES; i++) {
		names[i] = atomic_fetch_add(&w->torture->next_name, 1);
		set = set && set_one(w, names[i], 1 + i / 2);
	}
	while (set && work_goes_on(w)) {
		act(w, names);
		sleep_ms(PAUSE_MS + dice_below(&w->caller.dice, 1000));
	}
}
