/*
 * ageing.c - labels of your own, and a limit to how long the least of them waits
 * under a flood of the others: max_wait.
 */
#include <sluice/pqueue.h>

#include <stdio.h>
#include <string.h>
#include <threads.h>

static const struct slu_priority labels[] = {
	{ "express", 0 },
	{ "letter", 3 },
	{ "parcel", 6 },
};

static int
put(struct slu_pqueue *q, const char *label)
{
	return slu_pqueue_enqueue(q, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .priority = label }, NULL, NULL);
}

/* A parcel, then 40 ms later an express letter. Who comes out first? */
static int
race(slu_time max_wait, const char *want)
{
	const struct slu_pqueue_config config = {
		SLU_OPTIONS_INIT(struct slu_pqueue_config),
		.priorities = labels,
		.n_priorities = sizeof labels / sizeof labels[0],
		.default_label = "letter",
		.max_wait = max_wait,
	};
	struct slu_job_item first;
	struct slu_pqueue *q;
	struct slu_err err;
	int rc;

	rc = slu_pqueue_new(&q, &config, &err);
	if (rc) {
		fprintf(stderr, "%s\n", err.text);
		return rc;
	}
	rc = put(q, "parcel");
	thrd_sleep(&(struct timespec){ .tv_nsec = 40 * 1000000 }, NULL);
	if (!rc)
		rc = put(q, "express");
	if (!rc)
		rc = slu_pqueue_dequeue(q, 0, &first);
	if (!rc)
		printf("max_wait %lld ms: %s first\n", (long long)(max_wait / SLU_MS),
		       first.priority);
	rc = rc || strcmp(first.priority, want) != 0;
	slu_pqueue_free(q, NULL);
	return rc;
}

int
main(void)
{
	return race(0, "express") ||            /* strict */
	       race(10 * SLU_SEC, "express") || /* not yet old enough */
	       race(30 * SLU_MS, "parcel");
}
