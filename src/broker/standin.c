#include "broker/standin.h"

#include "broker/lane.h"

/* Attends to the lanes whose thread hangs. Returns true if a batch ran since the last look. */
static bool
look(struct standin *st)
{
	const slu_time slow = clock_mono(st->clock) - LANE_SLOW;
	const uint32_t n = atomic_load(st->n);
	const uint64_t before = st->batches;
	bool commits = false;

	st->batches = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct lane *const s = st->lanes[i];
		const slu_time since = atomic_load(&s->committing);

		st->batches += atomic_load_explicit(&s->totals[LANE_BATCHES], memory_order_relaxed);
		commits |= since != 0;
		if (since && since <= slow)
			lane_attend(s);
	}
	return commits || st->batches != before;
}

/* Announces that the thread sleeps; then looks once more, because a commit that began before the
 * announcement wakes nobody. Under mtx. */
static void
fall_asleep(struct standin *st)
{
	st->quiet = 0;
	atomic_store(&st->awake, false);
	if (look(st))
		atomic_store(&st->awake, true);
}

static void *
stand_in(void *arg)
{
	struct standin *st = arg;

	pthread_mutex_lock(&st->mtx);
	while (!st->stopping) {
		if (!atomic_load(&st->awake)) {
			pthread_cond_wait(&st->news, &st->mtx);
			continue;
		}
		clock_wait(st->clock, &st->news, &st->mtx, clock_mono(st->clock) + STANDIN_PERIOD);
		st->quiet = look(st) ? 0 : st->quiet + 1;
		if (st->quiet >= STANDIN_QUIET)
			fall_asleep(st);
	}
	pthread_mutex_unlock(&st->mtx);
	return NULL;
}

int
standin_start(struct standin *st, struct clock *clock, struct lane *const *lanes,
	      const _Atomic uint32_t *n, struct slu_err *err)
{
	if (st->started)
		return 0;
	*st = (struct standin){ .clock = clock, .lanes = lanes, .n = n };
	pthread_mutex_init(&st->mtx, NULL); /* cannot fail with these attributes */
	pthread_cond_init(&st->news, NULL);
	if (pthread_create(&st->thread, NULL, stand_in, st)) {
		pthread_cond_destroy(&st->news);
		pthread_mutex_destroy(&st->mtx);
		return slu_fail(err, SLU_EDOWN, "cannot start a thread");
	}
	st->started = true;
	pthread_setname_np(st->thread, "stand-in");
	return 0;
}

void
standin_rouse(struct standin *st)
{
	pthread_mutex_lock(&st->mtx);
	atomic_store(&st->awake, true);
	pthread_cond_signal(&st->news);
	pthread_mutex_unlock(&st->mtx);
}

void
standin_stop(struct standin *st)
{
	if (!st->started)
		return;
	pthread_mutex_lock(&st->mtx);
	st->stopping = true;
	pthread_cond_signal(&st->news);
	pthread_mutex_unlock(&st->mtx);
	pthread_join(st->thread, NULL);
	pthread_cond_destroy(&st->news);
	pthread_mutex_destroy(&st->mtx);
	st->started = false;
}
