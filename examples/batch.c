/*
 * batch.c - several tasks of one key in one call: all or none, with nothing of the
 * key between them, and with ids one after the other.
 */
#include <sluice/executor.h>

#include <stdio.h>

static int
say(struct slu_run *run, void *arg)
{
	uint64_t *last = arg;

	printf("task %llu\n", (unsigned long long)run->id);
	if (*last && run->id != *last + 1)
		return slu_fail(&run->err, SLU_EPERMANENT, "something came between");
	*last = run->id;
	return 0;
}

int
main(void)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .queue_size = 3 };
	struct slu_executor_stats stats;
	struct slu_executor *ex;
	struct slu_task tasks[4];
	struct slu_err err;
	uint64_t first = 0, last = 0;
	int rc;

	for (int i = 0; i < 4; i++)
		tasks[i] = (struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), .run = say, .arg = &last };
	if (slu_executor_start(&ex, &config, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	rc = slu_executor_submit_batch(ex, "order-7", tasks, 4, NULL, &first, &err);
	printf("four: %s\n", rc ? err.text : "accepted"); /* never fits: refused at once */
	if (rc == SLU_EINVAL)
		rc = slu_executor_submit_batch(ex, "order-7", tasks, 3, NULL, &first, &err);
	printf("three: %s\n", rc ? err.text : "accepted");

	slu_executor_stop(ex, 0);
	slu_executor_snapshot(ex, SLU_ALL_SHARDS, &stats);
	slu_executor_close(ex);
	return !(rc == 0 && stats.finished == 3 && stats.failed == 0 && last == first + 2);
}
