#include "bench/bare_ring.h"

#include "base/mem.h"
#include "bench/bench.h"

#include <sluice/err.h>

/* Swaps the full array for the empty one; the caller holds mtx. Returns how many jobs it has. */
static uint32_t
take_batch(struct bare_ring *r)
{
	struct bare_job *full = r->jobs;
	const uint32_t n = r->n;

	r->jobs = r->batch;
	r->batch = full;
	r->n = 0;
	if (r->waiting)
		pthread_cond_broadcast(&r->room);
	return n;
}

static void *
work(void *arg)
{
	struct bare_ring *r = arg;
	slu_time latest = 0;
	uint32_t n;

	do {
		pthread_mutex_lock(&r->mtx);
		while (r->n == 0 && !r->closed) {
			r->sleeping = true;
			pthread_cond_wait(&r->work, &r->mtx);
		}
		r->sleeping = false;
		n = take_batch(r);
		pthread_mutex_unlock(&r->mtx);
		for (uint32_t i = 0; i < n; i++) {
			r->batch[i].fn(r->batch[i].arg);
			latest = bench_now();
		}
	} while (n);
	(void)latest;
	return NULL;
}

int
bare_ring_start(struct bare_ring *r, uint32_t capacity)
{
	*r = (struct bare_ring){ .capacity = capacity };
	r->jobs = mem_array(capacity, sizeof *r->jobs);
	r->batch = mem_array(capacity, sizeof *r->batch);
	if (!r->jobs || !r->batch)
		return SLU_ENOMEM;
	pthread_mutex_init(&r->mtx, NULL);
	pthread_cond_init(&r->work, NULL);
	pthread_cond_init(&r->room, NULL);
	return pthread_create(&r->thread, NULL, work, r) ? SLU_EDOWN : 0;
}

void
bare_ring_submit(struct bare_ring *r, bare_fn *fn, void *arg)
{
	bool wake;

	pthread_mutex_lock(&r->mtx);
	while (r->n == r->capacity) {
		r->waiting++;
		pthread_cond_wait(&r->room, &r->mtx);
		r->waiting--;
	}
	r->jobs[r->n++] = (struct bare_job){ fn, arg };
	wake = r->sleeping;
	r->sleeping = false;
	pthread_mutex_unlock(&r->mtx);
	if (wake)
		pthread_cond_signal(&r->work);
}

void
bare_ring_stop(struct bare_ring *r)
{
	pthread_mutex_lock(&r->mtx);
	r->closed = true;
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->mtx);
	pthread_join(r->thread, NULL);
	pthread_mutex_destroy(&r->mtx);
	pthread_cond_destroy(&r->work);
	pthread_cond_destroy(&r->room);
	mem_free(r->jobs);
	mem_free(r->batch);
}
