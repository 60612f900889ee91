/*
 * service_beat.c - the beats of the workers of a service, and what an operator asks of them: quiet, resume, stop.
 *
 *      keeper, each BEAT_EACH: beat ──> quiet: pause_fd is readable, receives end, threads wait
 *                                  └──> running: pause_fd is cleared
 *                                  └──> stop: the worker ends
 */
#include "client/consumer.h"

#include "base/clock.h"

#include <unistd.h>

#define BEAT_TIME SLU_SEC /* of one beat, at most: leases wait for it */

void
worker_wake(const struct worker *w)
{
	const uint64_t one = 1;

	(void)!write(w->pause_fd, &one, sizeof one); /* an eventfd takes it */
}

static void
obey(struct worker *w, enum beat_asked asked)
{
	uint64_t old;

	if (asked == BEAT_STOP)
		worker_ask_to_end(w);
	if (asked == BEAT_QUIET && !atomic_exchange(&w->quiet, true))
		worker_wake(w);
	if (asked != BEAT_RUNNING || !atomic_exchange(&w->quiet, false))
		return;
	(void)!read(w->pause_fd, &old, sizeof old); /* it has one, or the worker ends */
	if (worker_is_ending(w))
		worker_wake(w);
}

static enum beat_asked
tell(struct worker *w, bool ends)
{
	const struct client_beat b = {
		.name = w->owner,
		.queue = w->conf.queue,
		.space = w->conf.space,
		.instance = w->instance,
		.slots = w->conf.concurrency,
		.used = atomic_load(&w->used),
		.lost = atomic_load(&w->lost),
		.late = atomic_load(&w->late),
		.ends = ends,
	};

	return client_beat(w->client, &b, ends ? -1 : w->stop_fd, BEAT_TIME);
}

static int
beat(struct kept *k, slu_time until)
{
	struct worker *const w = CONTAINER(k, struct worker, beat);
	const enum beat_asked asked = tell(w, false);

	(void)until; /* the next beat follows */
	obey(w, asked);
	return asked == BEAT_UNKNOWN ? SLU_ENOTFOUND : 0;
}

void
worker_beat_start(struct worker *w)
{
	beat_instance(w->instance);
	w->beat.keep = beat;
	keeper_add(&w->service->keeper, &w->beat, 2 * BEAT_EACH, clock_mono(&clock_system) - BEAT_EACH);
	w->beats = true;
}

void
worker_beat_stop(struct worker *w)
{
	if (!w->beats)
		return;
	keeper_remove(&w->service->keeper, &w->beat);
	if (!w->beat.lost) /* the server has a register */
		(void)tell(w, true);
	w->beats = false;
}
