/*
 * bench_exec.c - compares the executor with a bare ring: empty jobs, one and several producers, a
 * thousand and a million keys, and the duration of a submit.
 */
#include "bench/bare_ring.h"
#include "bench/bench.h"

#include <sluice/executor.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
	QUEUE_SIZE = 4096, /* of both sides */
	FEW_KEYS = 1000,
	MANY_KEYS = 1000000, /* with a queue that holds a task of each */
	KEY_SIZE = 8,
	SUBMITS = 100000, /* for latencies */
	WAKES = 2000
};

static void
sleep_for(slu_time t)
{
	nanosleep(&(struct timespec){ .tv_nsec = t }, NULL);
}

/* --- throughput ----------------------------------------------------------- */

struct exec_load {
	uint32_t producers;
	uint32_t workers;
	uint32_t queue_size;
	uint32_t n_keys;
	uint64_t jobs;           /* in all */
	struct slu_executor *ex; /* one of the two */
	struct bare_ring *rings;
};

struct producer {
	const struct exec_load *load;
	uint32_t index;
	pthread_t thread;
};

static int
empty_task(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	return 0;
}

static void
empty_job(void *arg)
{
	(void)arg;
}

/* Visits the keys in a fixed scattered order, the same for both sides. */
static uint32_t
nth_key(const struct exec_load *load, uint64_t i)
{
	return (uint32_t)(i * 2654435761u % load->n_keys);
}

/* Writes the key instead of reading it from a table, which would cost a cache miss. Not inline: the
 * compiler would write only the bytes that the bare side reads. */
__attribute__((noinline)) static void
spell_key(char key[KEY_SIZE], uint32_t number)
{
	for (int i = 0; i < KEY_SIZE - 1; i++, number /= 10)
		key[i] = (char)('0' + number % 10);
	key[KEY_SIZE - 1] = 0;
}

static void *
produce_ours(void *arg)
{
	const struct producer *p = arg;
	const struct exec_load *load = p->load;
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = empty_task };
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NEVER };

	char key[KEY_SIZE];

	for (uint64_t i = p->index; i < load->jobs; i += load->producers) {
		spell_key(key, nth_key(load, i));
		slu_executor_submit(load->ex, key, &task, &opts, NULL, NULL);
	}
	return NULL;
}

static void *
produce_bare(void *arg)
{
	const struct producer *p = arg;
	const struct exec_load *load = p->load;
	char key[KEY_SIZE];

	for (uint64_t i = p->index; i < load->jobs; i += load->producers) {
		spell_key(key, nth_key(load, i));
		bare_ring_submit(&load->rings[key[0] % load->workers], empty_job, NULL);
	}
	return NULL;
}

static void
produce(const struct exec_load *load, void *(*fn)(void *))
{
	struct producer producers[16];

	for (uint32_t i = 0; i < load->producers; i++) {
		producers[i] = (struct producer){ .load = load, .index = i };
		pthread_create(&producers[i].thread, NULL, fn, &producers[i]);
	}
	for (uint32_t i = 0; i < load->producers; i++)
		pthread_join(producers[i].thread, NULL);
}

static double
million_per_s(uint64_t jobs, slu_time took)
{
	return (double)jobs * 1e3 / (double)took;
}

static double
run_ours(const struct exec_load *wanted)
{
	struct exec_load load = *wanted;
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = load.workers,
		.queue_size = load.queue_size,
	};
	slu_time begin;

	if (slu_executor_start(&load.ex, &config, NULL))
		return 0;
	begin = bench_now();
	produce(&load, produce_ours);
	slu_executor_stop(load.ex, 0);
	begin = bench_now() - begin;
	slu_executor_close(load.ex);
	return million_per_s(load.jobs, begin);
}

static double
run_bare(const struct exec_load *wanted)
{
	struct bare_ring rings[16];
	struct exec_load load = *wanted;
	slu_time begin;

	for (uint32_t i = 0; i < load.workers; i++)
		if (bare_ring_start(&rings[i], load.queue_size))
			return 0;
	load.rings = rings;
	begin = bench_now();
	produce(&load, produce_bare);
	for (uint32_t i = 0; i < load.workers; i++)
		bare_ring_stop(&rings[i]);
	return million_per_s(load.jobs, bench_now() - begin);
}

static double
run_side(void *arg, bool ours)
{
	return ours ? run_ours(arg) : run_bare(arg);
}

/* Many keys or few: the bare ring has no keys. */
static double
run_keys(void *arg, bool many)
{
	const struct exec_load *loads = arg;

	return run_ours(&loads[many]);
}

/* --- what a submit costs the caller ------------------------------------------- */

static int
busy_task(struct slu_run *run, void *arg)
{
	(void)run;
	while (!atomic_load((_Atomic bool *)arg))
		;
	return 0;
}

static void
time_submits(struct slu_executor *ex, struct hist *times, uint32_t n, slu_time pause)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = empty_task };

	*times = (struct hist){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		slu_time begin;

		if (pause)
			sleep_for(pause);
		begin = bench_now();
		slu_executor_submit(ex, "key-000001", &task, NULL, NULL, NULL);
		hist_add(times, bench_now() - begin);
	}
}

static int
submit_latency(struct bench *b, struct exec_load *load)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .queue_size = SUBMITS + 1 };
	struct bench_row row = { .name = "submit p99, worker awake", .aim = "under 2 us" };
	_Atomic bool release = false;
	struct hist times;
	const int rc = slu_executor_start(&load->ex, &config, NULL);

	if (rc)
		return rc;
	bench_progress(b, row.name, 0);
	time_submits(load->ex, &times, SUBMITS, 0); /* touches all memory once */
	slu_executor_await(load->ex, "key-000001", 0, NULL);
	slu_executor_submit(load->ex, "key-000001",
			    &(struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), .run = busy_task, .arg = (void *)&release },
			    NULL, NULL, NULL);
	time_submits(load->ex, &times, SUBMITS, 0);
	atomic_store(&release, true);
	bench_add_time(b, row, &times, 0.99, 2);
	row.name = "submit p50, worker awake";
	bench_add_time(b, row, &times, 0.5, 2);
	slu_executor_await(load->ex, "key-000001", 0, NULL);
	time_submits(load->ex, &times, WAKES, SLU_MS);
	row = (struct bench_row){ .name = "submit p99, wakes the worker", .aim = "told apart" };
	bench_add_time(b, row, &times, 0.99, INFINITY);
	slu_executor_close(load->ex);
	return 0;
}

/* --- what more shards give ------------------------------------------------------- */

static int
waiting_task(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	sleep_for(SLU_MS);
	return 0;
}

static int
computing_task(struct slu_run *run, void *arg)
{
	uint64_t x = run->id;

	for (int i = 0; i < 500000; i++)
		x = x * 6364136223846793005u + 1;
	*(volatile uint64_t *)arg = x;
	return 0;
}

/* Measures tasks per second. Keys are chosen so that tasks spread evenly over the shards. A run of computing
 * tasks is long, because the kernel needs a while to spread threads over cores. */
static double
run_tasks(uint32_t shards, uint32_t n, slu_task_fn *fn)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = shards,
		.queue_size = n,
	};
	struct slu_executor *ex;
	uint64_t sink = 0;
	slu_time begin;
	char key[KEY_SIZE];

	if (slu_executor_start(&ex, &config, NULL))
		return 0;
	begin = bench_now();
	for (uint32_t i = 0, number = 0; i < n; number++) {
		spell_key(key, number);
		if (slu_executor_shard_of(ex, key) != i % shards)
			continue;
		slu_executor_submit(ex, key, &(struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), .run = fn, .arg = &sink },
				    NULL, NULL, NULL);
		i++;
	}
	slu_executor_stop(ex, 0);
	begin = bench_now() - begin;
	slu_executor_close(ex);
	return n * 1e9 / (double)begin;
}

/* Tasks on several shards, or all on one. */
struct tasks {
	uint32_t shards;
	uint32_t n;
	slu_task_fn *fn;
};

static double
run_spread(void *arg, bool many)
{
	const struct tasks *t = arg;

	return run_tasks(many ? t->shards : 1, t->n, t->fn);
}

int
bench_exec(struct bench *b)
{
	struct exec_load one = {
		.producers = 1,
		.workers = 1,
		.queue_size = QUEUE_SIZE,
		.n_keys = FEW_KEYS,
		.jobs = b->jobs,
	};
	struct exec_load keys[] = { one, one }, four = one;
	struct tasks waiting = { 4, 400, waiting_task }, computing = { 2, 2000, computing_task };
	/* clang-format off */
	const struct {
		struct bench_row row;
		bench_side *side;
		void *arg;
	} rows[] = {
		{ { "1 producer, 1 worker", "Mjobs/s", 5, 0, 0.5, "at least 0.5x and 5 Mjobs/s", false }, run_side, &one },
		{ { "1 million live keys (bare: 1 thousand keys)", "Mjobs/s", 0, 0, 0.5, "at least 0.5x", false }, run_keys, keys },
		{ { "4 producers, 2 workers", "Mjobs/s", 0, 0, 0.5, "at least 0.5x", false }, run_side, &four },
		{ { "tasks that wait 1 ms, 4 shards (bare: 1)", "tasks/s", 0, 0, 3.5, "at least 3.5x", false }, run_spread, &waiting },
		{ { "tasks that compute, 2 shards (bare: 1)", "tasks/s", 0, 0, 1.6, "at least 0.8 x 2 cores", false }, run_spread, &computing },
	};
	/* clang-format on */

	keys[1].n_keys = keys[1].queue_size = MANY_KEYS;
	four.producers = 4;
	four.workers = 2;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		bench_compare(b, rows[i].row, false, rows[i].side, rows[i].arg);
	return submit_latency(b, &one);
}
