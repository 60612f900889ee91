/*
 * bench_pqueue.c - compares the priority queue with a plain heap, and measures how soon an idle worker
 * has a job.
 */
#include "bench/bare_heap.h"
#include "bench/bench.h"

#include <sluice/worker.h>

#include <stdatomic.h>
#include <time.h>

enum {
	PICKUPS = 2000
};

static const char *const labels[] = { "high", "normal", "low" };
static const int32_t values[] = { 0, 5, 10 };

/* The same random numbers for both sides. */
static unsigned
roll(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*state >> 33) % 3;
}

/* --- push and pop --------------------------------------------------------- */

static void
push_bare(struct bare_heap *h, uint64_t seq, unsigned label)
{
	bare_heap_push(h, (struct bare_item){ bench_now(), seq, values[label], (uint32_t)seq });
}

/* Measures ns for a push and a pop, with `items` in the heap. */
static double
run_bare(const struct bench *b)
{
	struct bare_heap heap;
	uint64_t dice = 1;
	slu_time begin;

	if (bare_heap_init(&heap, (uint32_t)b->items + 1))
		return 0;
	for (uint64_t i = 0; i < b->items; i++)
		push_bare(&heap, i, roll(&dice));
	begin = bench_now();
	for (uint64_t i = 0; i < b->jobs; i++) {
		push_bare(&heap, b->items + i, roll(&dice));
		(void)bare_heap_pop(&heap);
	}
	begin = bench_now() - begin;
	bare_heap_release(&heap);
	return (double)begin / (double)b->jobs;
}

static double
run_ours(const struct bench *b)
{
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .max_in_memory = (uint32_t)b->items + 1 };
	struct slu_pqueue *q;
	struct slu_job_item item;
	uint64_t dice = 1;
	slu_time begin;

	if (slu_pqueue_new(&q, &config, NULL))
		return 0;
	for (uint64_t i = 0; i < b->items; i++)
		slu_pqueue_enqueue(q, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .priority = labels[roll(&dice)] }, NULL,
				   NULL);
	begin = bench_now();
	for (uint64_t i = 0; i < b->jobs; i++) {
		slu_pqueue_enqueue(q, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .priority = labels[roll(&dice)] }, NULL,
				   NULL);
		(void)slu_pqueue_dequeue(q, 0, &item);
	}
	begin = bench_now() - begin;
	slu_pqueue_free(q, NULL);
	return (double)begin / (double)b->jobs;
}

static double
run_side(void *arg, bool ours)
{
	return ours ? run_ours(arg) : run_bare(arg);
}

static void
push_pop(struct bench *b)
{
	static char name[64];
	const struct bench_row row = {
		.name = name,
		.unit = "ns",
		.aim = "at least 0.77x (within 1.3x of the time)",
		.ratio = 1 / 1.3,
	};

	(void)snprintf(name, sizeof name, "push and pop, %llu items queued",
		       (unsigned long long)b->items);
	bench_compare(b, row, true, run_side, b);
}

/* --- pick-up ----------------------------------------------------------------- */

struct pickup {
	slu_time enqueued;
	slu_time took;
	_Atomic bool done;
};

static int
note_time(const struct slu_job_item *job, void *session, void *arg, struct slu_err *err)
{
	struct pickup *p = job->data;

	(void)session;
	(void)arg;
	(void)err;
	p->took = bench_now() - p->enqueued;
	atomic_store(&p->done, true);
	return 0;
}

static void
pick_up(struct slu_pqueue *q, struct pickup *p)
{
	const struct timespec pause = { .tv_nsec = SLU_MS };

	nanosleep(&pause, NULL); /* let the worker fall asleep */
	p->enqueued = bench_now();
	slu_pqueue_enqueue(q, &(struct slu_job){ SLU_OPTIONS_INIT(struct slu_job), .data = p }, NULL, NULL);
	while (!atomic_load(&p->done))
		nanosleep(&pause, NULL);
}

static int
pickup_latency(struct bench *b)
{
	struct slu_worker_config config = { SLU_OPTIONS_INIT(struct slu_worker_config), .handler = note_time };
	struct bench_row row = { .name = "idle worker has the job, p99", .aim = "under 200 us" };
	struct slu_worker *w = NULL;
	struct hist times = { 0 };
	int rc = slu_pqueue_new(&config.queue, NULL, NULL);

	if (!rc)
		rc = slu_worker_new(&w, &config, NULL);
	if (!rc)
		rc = slu_worker_start(w, NULL);
	bench_progress(b, "idle worker has the job", 0);
	for (unsigned i = 0; i < PICKUPS && !rc; i++) {
		struct pickup p = { 0 };

		pick_up(config.queue, &p);
		hist_add(&times, p.took);
	}
	if (!rc) {
		bench_add_time(b, row, &times, 0.99, 200);
		row.name = "idle worker has the job, p50";
		bench_add_time(b, row, &times, 0.5, 200);
	}
	slu_worker_free(w);
	slu_pqueue_free(config.queue, NULL);
	return rc;
}

int
bench_pqueue(struct bench *b)
{
	push_pop(b);
	return pickup_latency(b);
}
