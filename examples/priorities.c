/*
 * priorities.c - a queue that hands out the most urgent job that is due. A delayed
 * job, however urgent, never holds up one that is ready.
 */
#include <sluice/pqueue.h>

#include <stdio.h>
#include <string.h>

static struct slu_pqueue *
fill_queue(void)
{
	static const struct slu_job jobs[] = {
		{ SLU_OPTIONS_INIT(struct slu_job), .object_id = "backfill", .priority = "low" },
		{ SLU_OPTIONS_INIT(struct slu_job), .object_id = "alarm", .priority = "high", .delay = 300 * SLU_MS },
		{ SLU_OPTIONS_INIT(struct slu_job), .object_id = "report-1" }, /* no label: normal */
		{ SLU_OPTIONS_INIT(struct slu_job), .object_id = "report-2", .correlation_id = "request-77" },
		{ SLU_OPTIONS_INIT(struct slu_job), .object_id = "far-off", .delay = SLU_HOUR },
	};
	struct slu_pqueue *q;
	struct slu_err err;

	if (slu_pqueue_new(&q, NULL, &err))
		return NULL;
	for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
		if (slu_pqueue_enqueue(q, &jobs[i], NULL, &err))
			fprintf(stderr, "%s\n", err.text);
	if (slu_pqueue_enqueue(q, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .priority = "urgent" }, NULL, &err))
		printf("refused: %s\n", err.text);
	return q;
}

int
main(void)
{
	static const char *const want[] = { "report-1", "report-2", "backfill", "alarm" };
	struct slu_pqueue *q = fill_queue();
	struct slu_pqueue_stats stats;
	struct slu_job_item item;
	char *text;
	int right = 0;

	if (!q)
		return 1;
	if (slu_pqueue_peek(q, &item, 1) == 1) /* look without taking */
		printf("next would be %s\n", item.object_id);
	slu_pqueue_snapshot(q, &stats);
	printf("%u ready, %u scheduled\n", stats.ready, stats.scheduled);

	for (int i = 0; i < 4; i++) /* the fourth waits until the alarm is due */
		if (slu_pqueue_dequeue(q, SLU_SEC, &item) == 0) {
			printf("%s (%s %d)\n", item.object_id, item.priority, item.priority_value);
			right += strcmp(item.object_id, want[i]) == 0;
		}
	right += slu_pqueue_dequeue(q, 0, &item) == SLU_ETIMEOUT; /* nothing is due */
	if (slu_pqueue_metrics(q, &text) == 0) {
		right += strstr(text, "sluice_pqueue_queue_scheduled 1\n") != NULL;
		slu_free(text);
	}
	printf("%u thrown away\n", slu_pqueue_purge(q, NULL));
	slu_pqueue_free(q, NULL);
	return right != 6 || stats.ready != 3 || stats.scheduled != 2;
}
