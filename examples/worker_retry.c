/*
 * worker_retry.c - a worker tries again by itself, hands what cannot be done to a
 * dead-letter function, and keeps a list of what failed lately.
 */
#include <sluice/worker.h>

#include <stdio.h>
#include <string.h>

static int
handle(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	(void)session;
	(void)arg;
	if (strcmp(job->object_id, "broken") == 0)
		return slu_fail(err, SLU_EPERMANENT, "cannot be read");
	if (strcmp(job->object_id, "flaky") == 0 && job->attempts < 3)
		return slu_fail(err, SLU_EDOWN, "no answer");
	printf("%s: done at attempt %u\n", job->object_id, job->attempts);
	return 0;
}

static void
bury(const struct slu_job_item *job, const struct slu_err *err, void *arg)
{
	(void)arg;
	printf("%s: dead, %s\n", job->object_id, err->text);
}

static int
run_jobs(struct slu_worker *w)
{
	struct slu_worker_stats stats;
	struct slu_failure list[8];
	uint32_t n;
	char *text;

	/* What waits for its retry counts as scheduled: STOP_ALL waits for it. */
	if (slu_worker_start(w, NULL) || slu_worker_stop(w, SLU_STOP_ALL, 0))
		return 1;
	n = slu_worker_failures(w, list, 8); /* newest first */
	for (uint32_t i = 0; i < n; i++)
		printf("failed: %s, attempt %u, %s: %s\n", list[i].object_id,
		       list[i].attempt, list[i].type, list[i].error);
	slu_worker_snapshot(w, &stats);
	if (slu_worker_metrics(w, &text))
		return 1;
	n += strstr(text, "sluice_worker_job_failures_total 3\n") != NULL;
	slu_free(text);
	return !(n == 4 && stats.done == 2 && stats.retried == 2 && stats.dead == 1);
}

int
main(void)
{
	static const char *const ids[] = { "fine", "flaky", "broken" };
	struct slu_worker_config config = {
		SLU_OPTIONS_INIT(struct slu_worker_config),
		.handler = handle,
		.backoff = { .kind = SLU_BACKOFF_FIXED, .base = 10 * SLU_MS },
		.dead_letter = bury,
	};
	struct slu_worker *w;
	int rc;

	if (slu_pqueue_new(&config.queue, NULL, NULL) || slu_worker_new(&w, &config, NULL))
		return 1;
	for (int i = 0; i < 3; i++)
		slu_pqueue_enqueue(config.queue, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .object_id = ids[i] }, NULL, NULL);
	rc = run_jobs(w); /* the failures are logged to stderr, too */
	slu_worker_free(w);
	slu_pqueue_free(config.queue, NULL);
	return rc;
}
