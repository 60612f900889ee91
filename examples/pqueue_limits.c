/*
 * pqueue_limits.c - a queue with limits, a consumer thread, and a stop that hands
 * out what is ready and leaves what is not yet due.
 */
#include <sluice/pqueue.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int taken; /* the consumer's, until it is joined */

/* Takes jobs until the queue is stopped and has nothing left for it. */
static void *
consume(void *arg)
{
	struct slu_job_item item;

	while (slu_pqueue_dequeue(arg, SLU_NEVER, &item) == 0) {
		free(item.data);
		taken++;
	}
	return NULL;
}

static int
put(struct slu_pqueue *q, slu_time delay)
{
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job), .delay = delay, .data = malloc(16) };
	struct slu_err err;
	int rc = slu_pqueue_enqueue(q, &job, NULL, &err);

	if (rc) {
		printf("refused: %s\n", err.text);
		free(job.data); /* still the caller's */
	}
	return rc;
}

int
main(void)
{
	const struct slu_pqueue_config config = {
		SLU_OPTIONS_INIT(struct slu_pqueue_config),
		.max_in_memory = 4,
		.max_scheduled = 1,
		.warn_depth = 3, /* one line on stderr each time it is reached */
	};
	struct slu_pqueue *q;
	pthread_t consumer;
	int right = 0;

	if (slu_pqueue_new(&q, &config, NULL))
		return 1;
	right += put(q, SLU_HOUR) == 0;
	right += put(q, SLU_HOUR) == SLU_EQFULL; /* max_scheduled */
	for (int i = 0; i < 3; i++)
		right += put(q, 0) == 0;
	right += put(q, 0) == SLU_EQFULL; /* max_in_memory */

	if (pthread_create(&consumer, NULL, consume, q))
		return 1;
	right += slu_pqueue_stop(q, SLU_STOP_READY, 5 * SLU_SEC) == 0;
	pthread_join(consumer, NULL);
	right += put(q, 0) == SLU_ECLOSED;
	printf("%d taken, %u left\n", taken, slu_pqueue_purge(q, free));
	slu_pqueue_free(q, free);
	return !(right == 8 && taken == 3);
}
