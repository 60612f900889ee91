/* Tasks that end their thread: contained and reported like a panic. */
#include "exec_help.h"
#include "test.h"

#include <sluice/worker.h>

#include <pthread.h>

enum {
	EXITS = 5
};

static _Atomic int reports, runs;
static _Atomic bool text_is_right = true;

static int
end_thread(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	runs++;
	pthread_exit(NULL);
}

static int
succeed(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	return 0;
}

static void
note(const struct slu_run *run, void *arg, int rc)
{
	(void)arg;
	if (rc != SLU_EPANIC || !strstr(run->err.text, "pthread_exit"))
		text_is_right = false;
	reports++;
}

static void
exit_in_done(const struct slu_run *run, void *arg, int rc)
{
	(void)run;
	(void)arg;
	(void)rc;
	pthread_exit(NULL);
}

TEST(a_task_that_ends_its_thread_fails_and_the_shard_goes_on)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .max_attempts = 1
	};
	const struct slu_task exits = { SLU_OPTIONS_INIT(struct slu_task), .run = end_thread, .done = note };
	const struct slu_task late = { SLU_OPTIONS_INIT(struct slu_task), .run = succeed, .done = exit_in_done };
	struct slu_executor_stats stats;
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	for (int i = 0; i < EXITS; i++) {
		CHECK_EQ(0, slu_executor_submit(ex, "k", &exits, NULL, NULL, NULL));
		CHECK_EQ(0, slu_executor_submit(ex, "k", &late, NULL, NULL, NULL));
	}
	CHECK_EQ(0, slu_executor_await(ex, "k", SLU_MIN, NULL));
	CHECK_EQ(0, slu_executor_snapshot(ex, SLU_ALL_SHARDS, &stats));
	CHECK_EQ(EXITS, stats.panics);
	CHECK_EQ(EXITS, runs);
	CHECK_EQ(EXITS, reports);
	CHECK(text_is_right);
	CHECK_EQ(0, slu_executor_close(ex));
}

static int
exit_once(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	(void)session;
	(void)arg;
	(void)err;
	if (job->attempts <= 2)
		pthread_exit(NULL);
	return 0;
}

TEST(a_handler_that_ends_its_thread_fails_its_job_and_the_worker_goes_on)
{
	struct slu_worker_config config = {
		SLU_OPTIONS_INIT(struct slu_worker_config),
		.handler = exit_once,
		.backoff.kind = SLU_BACKOFF_NONE
	};
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job), .object_id = "a" };
	struct slu_failure failures[4];
	struct slu_worker_stats stats;
	struct slu_worker *w;

	CHECK_EQ(0, slu_pqueue_new(&config.queue, NULL, NULL));
	CHECK_EQ(0, slu_worker_new(&w, &config, NULL));
	CHECK_EQ(0, slu_worker_start(w, NULL));
	CHECK_EQ(0, slu_pqueue_enqueue(config.queue, &job, NULL, NULL));
	do
		slu_worker_snapshot(w, &stats);
	while (stats.done == 0);
	CHECK_EQ(2, stats.failed);
	CHECK_EQ(2, slu_worker_failures(w, failures, 4));
	CHECK_CONTAINS("pthread_exit", failures[0].error);
	CHECK_STR("SLU_EPANIC", failures[0].type);
	CHECK_EQ(0, slu_worker_stop(w, SLU_STOP_READY, 0));
	slu_worker_free(w);
	slu_pqueue_free(config.queue, NULL);
}
