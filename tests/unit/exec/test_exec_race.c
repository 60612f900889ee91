/* Submit against stop: whatever submit accepted runs and is reported, once. */
#include "exec_help.h"

#include <sched.h>

enum {
	SUBMITTERS = 4,
	RACES = SANITIZED ? 20000 : 1000000,
	PER_ROUND = 500 /* at most, of each submitter */
};

struct race {
	struct slu_executor *ex;
	pthread_barrier_t start;
	_Atomic uint64_t accepted, refused, ran, reported;
	_Atomic uint64_t going; /* submits so far in this round */
	uint64_t batches;       /* every n-th submit is one of 3 */
};

static int
count_run(struct slu_run *run, void *arg)
{
	struct race *race = arg;

	(void)run;
	atomic_fetch_add_explicit(&race->ran, 1, memory_order_relaxed);
	return 0;
}

static void
count_report(const struct slu_run *run, void *arg, int rc)
{
	struct race *race = arg;

	(void)run;
	CHECK_EQ(0, rc);
	atomic_fetch_add_explicit(&race->reported, 1, memory_order_relaxed);
}

static int
submit_once(struct race *race, int i)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), count_run, race, count_report };
	const struct slu_task three[] = { task, task, task };
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NEVER };
	const char key[] = { (char)('a' + i % 26), 0 };
	const uint32_t n = race->batches && i % race->batches == 0 ? 3 : 1;
	const int rc = slu_executor_submit_batch(race->ex, key, three, n, &opts, NULL, NULL);

	if (rc == 0)
		atomic_fetch_add_explicit(&race->accepted, n, memory_order_relaxed);
	else
		CHECK_EQ(SLU_ECLOSED, rc);
	return rc;
}

/* Submits until it is refused: so every round ends in the race. */
static void *
submit_until_closed(void *arg)
{
	struct race *race = arg;

	pthread_barrier_wait(&race->start);
	for (int i = 0; submit_once(race, i) == 0; i++) {
		atomic_fetch_add_explicit(&race->going, 1, memory_order_relaxed);
		if (i % 64 == 63)
			sched_yield();
	}
	atomic_fetch_add(&race->refused, 1);
	return NULL;
}

static void
race_round(struct race *race, uint64_t stop_after)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 2, .queue_size = 64 };
	pthread_t threads[SUBMITTERS];
	struct slu_executor_stats stats;

	CHECK_EQ(0, slu_executor_start(&race->ex, &config, NULL));
	atomic_store(&race->going, 0);
	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, submit_until_closed, race));
	pthread_barrier_wait(&race->start);
	while (atomic_load_explicit(&race->going, memory_order_relaxed) < stop_after)
		sched_yield();
	CHECK_EQ(0, slu_executor_stop(race->ex, 0));
	CHECK_EQ(0, slu_executor_snapshot(race->ex, SLU_ALL_SHARDS, &stats));
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	CHECK_EQ(stats.submitted, stats.finished); /* EXECUTOR-2: once stop has returned */
	CHECK_EQ(0, slu_executor_close(race->ex));
}

static void
race_for(uint64_t races, uint64_t batches)
{
	struct race race = { .batches = batches };
	uint64_t dice = test_seed();
	int rounds = 0;

	pthread_barrier_init(&race.start, NULL, SUBMITTERS + 1);
	while (race.accepted + race.refused < races) {
		race_round(&race, test_random(&dice) % (SUBMITTERS * PER_ROUND));
		CHECK_EQ(race.accepted, race.ran);      /* SQ-27: nothing lost, */
		CHECK_EQ(race.accepted, race.reported); /* SQ-27: nothing twice */
		rounds++;
	}
	CHECK_EQ(rounds * SUBMITTERS, race.refused);
	pthread_barrier_destroy(&race.start);
}

TEST_LIMIT(a_million_submits_racing_stop_lose_nothing, 250)
{
	race_for(RACES, 0); /* SQ-27; SQ-74: shutdown, seeded */
}

TEST_LIMIT(batches_racing_stop_are_accepted_whole_or_not_at_all, 250)
{
	race_for(RACES / 10, 2); /* SQ-F8: all or none, also under stop */
}
