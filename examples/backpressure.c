/*
 * backpressure.c - what submit says when it cannot take a task: full (later),
 * closed (never again), anything else (a mistake, or canceled).
 */
#include <sluice/executor.h>

#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

static atomic_bool begun, open_gate;

/* Keeps its shard busy until the gate opens. */
static int
wait_at_gate(struct slu_run *run, void *arg)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	(void)run;
	(void)arg;
	atomic_store(&begun, true);
	while (!atomic_load(&open_gate))
		thrd_sleep(&ms, NULL);
	return 0;
}

/* Callers branch on the code, never on the text. */
static int
submit(struct slu_executor *ex, const char *key, slu_time timeout)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = wait_at_gate };
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = timeout };
	struct slu_err err;
	int rc = slu_executor_submit(ex, key, &task, &opts, NULL, &err);

	switch (rc) {
	case SLU_OK:
		printf("%s: accepted\n", key);
		break;
	case SLU_EQFULL: /* slow down: wait longer, drop it, or answer 429 */
		printf("%s: shard %u holds %u of %u\n", key, err.shard, err.length,
		       err.capacity);
		break;
	case SLU_ECLOSED: /* stopping: submit nothing more */
		printf("%s: closed\n", key);
		break;
	default:
		printf("%s: %s\n", key, err.text);
	}
	return rc;
}

int
main(void)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .queue_size = 2 };
	struct slu_executor *ex;
	int right = 0;

	if (slu_executor_start(&ex, &config, NULL))
		return 1;
	right += submit(ex, "runs", 0) == SLU_OK;
	while (!atomic_load(&begun))
		thrd_yield();
	right += submit(ex, "waits-1", 0) == SLU_OK;
	right += submit(ex, "waits-2", 0) == SLU_OK;
	right += submit(ex, "too-many", SLU_NOWAIT) == SLU_EQFULL;
	right += submit(ex, "waited-in-vain", 20 * SLU_MS) == SLU_EQFULL;
	atomic_store(&open_gate, true);
	right += submit(ex, "gets-room", 5 * SLU_SEC) == SLU_OK;
	right += submit(ex, "", 0) == SLU_EINVAL;
	slu_executor_stop(ex, 0);
	right += submit(ex, "late", 0) == SLU_ECLOSED;
	return slu_executor_close(ex) || right != 8;
}
