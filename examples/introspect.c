/*
 * introspect.c - looking into an executor while it works: where a key goes, how one
 * task is doing, numbers, metrics.
 */
#include <sluice/executor.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

static atomic_bool open_gate;

static int
wait_at_gate(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	while (!atomic_load(&open_gate))
		thrd_sleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return 0;
}

static enum slu_task_state
show_status(struct slu_executor *ex, uint64_t id)
{
	static const char *const names[] = { "queued", "held", "running", "retrying", "finished" };
	struct slu_task_status status = { 0 };

	if (slu_executor_status(ex, id, &status) == 0)
		printf("task %llu: %s, %u before it\n", (unsigned long long)id,
		       names[status.state], status.position);
	return status.state;
}

int
main(void)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 2, .metrics_namespace = "shop" };
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = wait_at_gate };
	struct slu_executor_stats stats;
	struct slu_executor *ex;
	uint64_t id;
	char *text;
	int right = 0;

	if (slu_executor_start(&ex, &config, NULL))
		return 1;
	printf("basket-9 goes to shard %u\n", slu_executor_shard_of(ex, "basket-9"));
	if (slu_executor_submit(ex, "basket-9", &task, NULL, NULL, NULL) ||
	    slu_executor_submit(ex, "basket-9", &task, NULL, &id, NULL))
		return 1;
	right += show_status(ex, id) == SLU_TASK_QUEUED; /* behind the first */
	atomic_store(&open_gate, true);
	slu_executor_await(ex, "basket-9", 0, NULL); /* counts as a task, too */
	right += show_status(ex, id) == SLU_TASK_FINISHED;

	if (slu_executor_snapshot(ex, SLU_ALL_SHARDS, &stats) == 0)
		printf("%llu submitted, %u queued, %zu bytes of queues\n",
		       (unsigned long long)stats.submitted, stats.queued, stats.buffer_bytes);
	if (slu_executor_metrics(ex, &text) == 0) { /* what a scrape is answered with */
		right += strstr(text, "shop_shardqueue_queue_depth{shard=\"1\"} 0\n") != NULL;
		slu_free(text);
	}
	return slu_executor_close(ex) || right != 3 || stats.submitted != 3;
}
