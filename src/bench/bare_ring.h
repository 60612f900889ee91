/*
 * bare_ring.h - the minimal hand-over of jobs to a worker: a bounded ring under a mutex, drained in
 * batches, which wakes only sleeping threads. No keys, order, retries or deadlines; it reads the clock once
 * per job, as every measurement of jobs needs.
 */
#ifndef BENCH_BARE_RING_H
#define BENCH_BARE_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef void bare_fn(void *arg);

struct bare_job {
	bare_fn *fn;
	void *arg;
};

struct bare_ring {
	pthread_mutex_t mtx;
	pthread_cond_t work;
	pthread_cond_t room;
	uint32_t capacity;
	uint32_t n; /* shared, under mtx, like all members but `batch` */
	uint32_t waiting;
	bool sleeping;
	bool closed;
	struct bare_job *jobs; /* producers fill it; it is swapped with batch */
	struct bare_job *batch;
	pthread_t thread;
};

int bare_ring_start(struct bare_ring *r, uint32_t capacity);
void bare_ring_submit(struct bare_ring *r, bare_fn *fn, void *arg);
void bare_ring_stop(struct bare_ring *r); /* finishes the queued jobs first */

#endif
