/*
 * worker_stop.c - the three ways to stop a worker, each in its turn on one queue:
 * a stopped worker can be started again, and what it left is still there.
 */
#include <sluice/worker.h>

#include <stdio.h>
#include <threads.h>

static int
handle(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	(void)job;
	(void)session;
	(void)arg;
	(void)err;
	thrd_sleep(&(struct timespec){ .tv_nsec = 20 * 1000000 }, NULL);
	return 0;
}

/* Start, stop in this mode, and say how many jobs are left in the queue. */
static int
run_until(struct slu_worker *w, struct slu_pqueue *q, enum slu_stop_mode mode,
	  const char *name)
{
	struct slu_pqueue_stats stats;
	struct slu_err err;
	int rc;

	rc = slu_worker_start(w, &err);
	if (rc) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	rc = slu_worker_stop(w, mode, 5 * SLU_SEC); /* ETIMEOUT: a job runs longer than that */
	slu_pqueue_snapshot(q, &stats);
	printf("%-5s: %u ready and %u scheduled are left\n", name, stats.ready,
	       stats.scheduled);
	return rc ? -1 : (int)stats.depth;
}

int
main(void)
{
	struct slu_worker_config config = { SLU_OPTIONS_INIT(struct slu_worker_config), .handler = handle, .threads = 2 };
	struct slu_worker *w;
	int now, ready, all;

	if (slu_pqueue_new(&config.queue, NULL, NULL) || slu_worker_new(&w, &config, NULL))
		return 1;
	for (int i = 0; i < 10; i++)
		slu_pqueue_enqueue(config.queue, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job) }, NULL, NULL);
	slu_pqueue_enqueue(config.queue, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .delay = 600 * SLU_MS }, NULL, NULL);

	now = run_until(w, config.queue, SLU_STOP_NOW, "now");
	ready = run_until(w, config.queue, SLU_STOP_READY, "ready");
	all = run_until(w, config.queue, SLU_STOP_ALL, "all");
	slu_worker_free(w);
	slu_pqueue_free(config.queue, NULL);
	return !(now > 1 && ready == 1 && all == 0);
}
