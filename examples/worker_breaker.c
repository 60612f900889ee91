/*
 * worker_breaker.c - a worker that asks a breaker before each attempt. While it is
 * open, jobs go back into the queue until the cool-down ends; that spends none of
 * their attempts. Each destination has a breaker of its own, chosen by the job. A handler
 * may put a job off, too.
 */
#include <sluice/worker.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static atomic_int calls;
static atomic_bool put_off;

/* One breaker for each destination. */
static struct slu_breaker *
breaker_of(const struct slu_job_item *job, void *arg)
{
	return slu_breaker_get(arg, strchr(job->object_id, 'p') ? "push" : "mail");
}

/* A moment of the wall clock, so much from now. */
static slu_time
after(slu_time delay)
{
	struct timespec now;

	timespec_get(&now, TIME_UTC);
	return (slu_time)now.tv_sec * SLU_SEC + now.tv_nsec + delay;
}

/* The destination fails twice, then it is back. */
static int
deliver(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	(void)session;
	(void)arg;
	if (strcmp(job->object_id, "p4") == 0 && !atomic_exchange(&put_off, true))
		return slu_job_defer(after(20 * SLU_MS)); /* not now, and no attempt is spent */
	if (strcmp(job->object_id, "p4") == 0)
		return job->attempts != 1;
	if (atomic_fetch_add(&calls, 1) < 2)
		return slu_fail(err, SLU_EDOWN, "no answer");
	printf("%s delivered at attempt %u\n", job->object_id, job->attempts);
	return 0;
}

static int
deliver_all(struct slu_worker_config *config)
{
	struct slu_worker_stats stats;
	struct slu_worker *w;
	struct slu_err err;

	if (slu_worker_new(&w, config, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (int i = 0; i < 3; i++) {
		char id[] = { 'm', '1' + (char)i, 0 };

		slu_pqueue_enqueue(config->queue, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .object_id = id }, NULL, NULL);
	}
	slu_pqueue_enqueue(config->queue, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .object_id = "p4" }, NULL, NULL);
	if (slu_worker_start(w, &err) == 0)
		slu_worker_stop(w, SLU_STOP_ALL, 0);
	slu_worker_snapshot(w, &stats);
	slu_worker_free(w);
	printf("%llu attempts failed, %llu times put off\n", (unsigned long long)stats.failed,
	       (unsigned long long)stats.deferred);
	return !(stats.done == 4 && stats.failed == 2 && stats.deferred >= 2);
}

int
main(void)
{
	const struct slu_breaker_config rules = { SLU_OPTIONS_INIT(struct slu_breaker_config), .failures = 2, .open_cooldown = 200 * SLU_MS };
	struct slu_worker_config config = {
		SLU_OPTIONS_INIT(struct slu_worker_config),
		.handler = deliver,
		.backoff = { .kind = SLU_BACKOFF_FIXED, .base = 10 * SLU_MS },
	};
	struct slu_breakers *set;
	int rc;

	config.log = slu_log_new(SLU_LOG_OFF, SLU_LOG_LOGFMT, NULL, NULL);
	if (!config.log || slu_breakers_new(&set, &rules, NULL) ||
	    slu_pqueue_new(&config.queue, NULL, NULL))
		return 1;
	config.arg = set;
	config.breaker_of = breaker_of; /* or .breaker, if there is only one destination */
	rc = deliver_all(&config);
	slu_pqueue_free(config.queue, NULL);
	slu_breakers_free(set);
	slu_log_free(config.log);
	return rc || calls != 5;
}
