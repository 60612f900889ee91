/*
 * Threads that do what may block: HELPER-1 and HELPER-2.
 */
#include "test.h"

#include "peer/helper.h"

#include <stdatomic.h>

enum {
	JOBS = 200
};

struct job {
	struct helper_job job;
	unsigned runs;
};

static struct helper helper;
static struct job jobs[JOBS];
static atomic_uint ran;
static pthread_barrier_t meet;

static void
count(struct helper_job *j)
{
	CONTAINER(j, struct job, job)->runs++;
	atomic_fetch_add(&ran, 1);
}

/* Returns when another job of the barrier runs, too. */
static void
meet_another(struct helper_job *j)
{
	(void)pthread_barrier_wait(&meet);
	count(j);
}

TEST(every_job_runs_once_before_a_stop_returns)
{
	helper_init(&helper, "test", 2);
	for (unsigned i = 0; i < JOBS; i++) {
		jobs[i].job.run = count;
		helper_post(&helper, &jobs[i].job);
	}
	helper_stop(&helper);
	CHECK_EQ(JOBS, atomic_load(&ran));
	for (unsigned i = 0; i < JOBS; i++)
		CHECK_EQ(1, jobs[i].runs);
}

/* The first job waits for the second: one thread would wait for ever. */
TEST(a_job_that_blocks_holds_up_no_other)
{
	CHECK_EQ(0, pthread_barrier_init(&meet, NULL, 2));
	helper_init(&helper, "test", 2);
	for (unsigned i = 0; i < 2; i++) {
		jobs[i].job.run = meet_another;
		helper_post(&helper, &jobs[i].job);
	}
	helper_stop(&helper);
	CHECK_EQ(2, atomic_load(&ran));
	pthread_barrier_destroy(&meet);
}

TEST(a_helper_without_jobs_has_no_threads)
{
	helper_init(&helper, "test", 2);
	CHECK_EQ(0, helper.n);
	helper_stop(&helper);
}
