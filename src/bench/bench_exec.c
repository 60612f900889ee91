/*
 * bench_exec.c - the executor beside a bare ring: empty jobs, one and several
 * producers, a thousand and a million keys, and how long a submit takes.
 */
#include "bench/bare_ring.h"
#include "bench/bench.h"

#include "base/mem.h"

#include <sluice/executor.h>

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

struct load {
	uint32_t producers;
	uint32_t workers;
	uint32_t queue_size;
	uint32_t n_keys;
	uint64_t jobs;           /* in all */
	struct slu_executor *ex; /* one of the two */
	struct bare_ring *rings;
};

struct producer {
	const struct load *load;
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

/* Walks the keys in a fixed scattered order, the same for both sides. */
static uint32_t
nth_key(const struct load *load, uint64_t i)
{
	return (uint32_t)(i * 2654435761u % load->n_keys);
}

/* Spelled here and not read from a table, which would cost a cache miss of its own.
 * Not inline, or the compiler would spell no more of it than the bare side reads. */
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
	const struct load *load = p->load;
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
	const struct load *load = p->load;
	char key[KEY_SIZE];

	for (uint64_t i = p->index; i < load->jobs; i += load->producers) {
		spell_key(key, nth_key(load, i));
		bare_ring_submit(&load->rings[key[0] % load->workers], empty_job, NULL);
	}
	return NULL;
}

static void
produce(const struct load *load, void *(*fn)(void *))
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
run_ours(const struct load *wanted)
{
	struct load load = *wanted;
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
run_bare(const struct load *wanted)
{
	struct bare_ring rings[16];
	struct load load = *wanted;
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

static void
throughput(struct bench *b, struct load *load, struct bench_row row, double floor)
{
	double ours[BENCH_ROUNDS_MAX], bare[BENCH_ROUNDS_MAX];

	load->jobs = b->jobs;
	for (unsigned i = 0; i < b->rounds; i++) {
		bench_progress(b, row.name, i);
		bare[i] = run_bare(load);
		ours[i] = run_ours(load);
	}
	row.unit = "Mjobs/s";
	row.ours = bench_median(ours, b->rounds);
	row.bare = bench_median(bare, b->rounds);
	row.ratio = row.ours / row.bare;
	row.reached = row.ratio >= 0.5 && row.ours >= floor;
	bench_add(b, &row);
}

/* Not against the bare ring, which knows no keys, but against ourselves with few. */
static void
many_keys(struct bench *b, struct load *load)
{
	struct load many = *load;
	double ours[BENCH_ROUNDS_MAX], few[BENCH_ROUNDS_MAX];
	struct bench_row row = {
		.name = "1 million live keys (bare: 1 thousand keys)",
		.unit = "Mjobs/s",
		.aim = "at least 0.5x",
	};

	many.n_keys = MANY_KEYS;
	many.queue_size = MANY_KEYS;
	for (unsigned i = 0; i < b->rounds; i++) {
		bench_progress(b, row.name, i);
		few[i] = run_ours(load);
		ours[i] = run_ours(&many);
	}
	row.ours = bench_median(ours, b->rounds);
	row.bare = bench_median(few, b->rounds);
	row.ratio = row.ours / row.bare;
	row.reached = row.ratio >= 0.5;
	bench_add(b, &row);
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
time_submits(struct slu_executor *ex, slu_time *times, uint32_t n, slu_time pause)
{
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = empty_task };

	for (uint32_t i = 0; i < n; i++) {
		slu_time begin;

		if (pause)
			sleep_for(pause);
		begin = bench_now();
		slu_executor_submit(ex, "key-000001", &task, NULL, NULL, NULL);
		times[i] = bench_now() - begin;
	}
}

static int
submit_latency(struct bench *b, struct load *load)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .queue_size = SUBMITS + 1 };
	slu_time *times = mem_array(SUBMITS, sizeof *times);
	_Atomic bool release = false;
	struct bench_row row = { .name = "submit p99, worker awake", .unit = "us" };
	int rc;

	rc = times ? slu_executor_start(&load->ex, &config, NULL) : SLU_ENOMEM;
	if (rc)
		goto out;
	bench_progress(b, row.name, 0);
	time_submits(load->ex, times, SUBMITS, 0); /* touches all memory once */
	slu_executor_await(load->ex, "key-000001", 0, NULL);
	slu_executor_submit(load->ex, "key-000001",
			    &(struct slu_task){ SLU_OPTIONS_INIT(struct slu_task), .run = busy_task, .arg = (void *)&release },
			    NULL, NULL, NULL);
	time_submits(load->ex, times, SUBMITS, 0);
	atomic_store(&release, true);
	row.ours = (double)bench_percentile(times, SUBMITS, 0.99) / 1e3;
	row.aim = "under 2 us";
	row.reached = row.ours < 2;
	bench_add(b, &row);
	row.name = "submit p50, worker awake";
	row.ours = (double)bench_percentile(times, SUBMITS, 0.5) / 1e3;
	bench_add(b, &row);
	slu_executor_await(load->ex, "key-000001", 0, NULL);
	time_submits(load->ex, times, WAKES, SLU_MS);
	row = (struct bench_row){ .name = "submit p99, wakes the worker", .unit = "us" };
	row.ours = (double)bench_percentile(times, WAKES, 0.99) / 1e3;
	row.aim = "told apart";
	row.reached = true;
	bench_add(b, &row);
	slu_executor_close(load->ex);
out:
	mem_free(times);
	return rc;
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

/* Tasks per second, spread evenly over the shards by trying keys. It takes the kernel
 * a while to spread threads over cores, so a run of tasks that compute is a long one. */
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

static void
scaling(struct bench *b, struct bench_row row, uint32_t shards, uint32_t n,
	slu_task_fn *fn, double floor)
{
	double many[BENCH_ROUNDS_MAX], one[BENCH_ROUNDS_MAX];

	for (unsigned i = 0; i < b->rounds; i++) {
		bench_progress(b, row.name, i);
		one[i] = run_tasks(1, n, fn);
		many[i] = run_tasks(shards, n, fn);
	}
	row.unit = "tasks/s";
	row.ours = bench_median(many, b->rounds);
	row.bare = bench_median(one, b->rounds);
	row.ratio = row.ours / row.bare;
	row.reached = row.ratio >= floor;
	bench_add(b, &row);
}

int
bench_exec(struct bench *b)
{
	struct load load = {
		.producers = 1,
		.workers = 1,
		.queue_size = QUEUE_SIZE,
		.n_keys = FEW_KEYS,
	};

	throughput(b, &load,
		   (struct bench_row){ .name = "1 producer, 1 worker",
				       .aim = "at least 0.5x and 5 Mjobs/s" },
		   5);
	many_keys(b, &load);
	load.producers = 4;
	load.workers = 2;
	throughput(b, &load,
		   (struct bench_row){ .name = "4 producers, 2 workers",
				       .aim = "at least 0.5x" },
		   0);
	scaling(b,
		(struct bench_row){ .name = "tasks that wait 1 ms, 4 shards (bare: 1)",
				    .aim = "at least 3.5x" },
		4, 400, waiting_task, 3.5);
	scaling(b,
		(struct bench_row){ .name = "tasks that compute, 2 shards (bare: 1)",
				    .aim = "at least 0.8 x 2 cores" },
		2, 2000, computing_task, 1.6);
	return submit_latency(b, &load);
}
