/*
 * pqueue_fixture.h - a priority queue on a clock of the test's, its log lines in
 * memory, and consumers that sleep in threads.
 */
#ifndef TESTS_PQUEUE_FIXTURE_H
#define TESTS_PQUEUE_FIXTURE_H

#include "fakeclock.h"
#include "test.h"

#include "exec/pqueue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define WALL_AT_START (1700000000 * SLU_SEC)

static struct {
	struct fakeclock clock;
	struct slu_pqueue *q;
	struct slu_log *log;
	char lines[16 * 1024]; /* cut when full */
	size_t n_lines;
} f;

static const struct slu_pqueue_config defaults;

static inline void
keep_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	if (n >= sizeof f.lines - f.n_lines)
		return;
	memcpy(f.lines + f.n_lines, line, n);
	f.n_lines += n;
	f.lines[f.n_lines] = '\0';
}

static inline void
teardown(void)
{
	slu_pqueue_free(f.q, NULL);
	slu_log_free(f.log);
	fakeclock_release(&f.clock);
	memset(&f, 0, sizeof f);
}

/* Replaces the queue that a test begins with. */
static inline void
setup(enum slu_log_level level, struct slu_pqueue_config config)
{
	struct slu_err err;

	teardown();
	fakeclock_init(&f.clock, 1000 * SLU_SEC, WALL_AT_START);
	f.log = slu_log_new(level, SLU_LOG_LOGFMT, keep_line, NULL);
	config.struct_size = sizeof config;
	config.log = f.log;
	CHECK_EQ(0, pqueue_new_on(&f.q, &config, &f.clock.clock, &err));
}

static inline void
setup_default(void)
{
	setup(SLU_LOG_OFF, defaults);
}

FIXTURE(setup_default, teardown);

/* A job without ids; label NULL is the default one. */
static inline uint64_t
put(const char *label, slu_time delay)
{
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job), .priority = label, .delay = delay };
	struct slu_err err;
	uint64_t seq;

	CHECK_EQ(0, slu_pqueue_enqueue(f.q, &job, &seq, &err));
	return seq;
}

/* The seq of what comes out without waiting, or 0. */
static inline uint64_t
pull(void)
{
	struct slu_job_item item;
	const int rc = slu_pqueue_dequeue(f.q, 0, &item);

	CHECK(rc == 0 || rc == SLU_ETIMEOUT || rc == SLU_ECLOSED);
	return rc ? 0 : item.seq;
}

static inline struct slu_pqueue_stats
stats_of(void)
{
	struct slu_pqueue_stats stats;

	slu_pqueue_snapshot(f.q, &stats);
	return stats;
}

/* One call in a thread of its own: dequeue, take (with a waiter) or stop. */
struct pop_caller {
	struct pqueue_waiter *w;
	slu_time timeout;
	enum slu_stop_mode mode;
	struct slu_job_item item;
	int rc;
	_Atomic bool done;
	pthread_t thread;
};

static inline void *
call_dequeue(void *arg)
{
	struct pop_caller *c = arg;
	uint32_t handle;

	if (!c->w)
		c->rc = slu_pqueue_dequeue(f.q, c->timeout, &c->item);
	else
		c->rc = pqueue_take(f.q, c->w, c->timeout, &c->item, &handle);
	if (c->w && !c->rc)
		pqueue_finish(f.q, handle);
	atomic_store(&c->done, true);
	return NULL;
}

static inline void *
call_stop(void *arg)
{
	struct pop_caller *c = arg;

	c->rc = slu_pqueue_stop(f.q, c->mode, c->timeout);
	atomic_store(&c->done, true);
	return NULL;
}

/* Returns once it sleeps: then `sleepers` threads do. */
static inline void
start(struct pop_caller *c, void *(*call)(void *), int sleepers)
{
	CHECK_EQ(0, pthread_create(&c->thread, NULL, call, c));
	WAIT_UNTIL(fakeclock_sleepers(&f.clock) == sleepers);
}

static inline int
finish(struct pop_caller *c)
{
	pthread_join(c->thread, NULL);
	return c->rc;
}

static inline int
count_of(const char *part, const char *whole)
{
	int n = 0;

	for (const char *p = strstr(whole, part); p; p = strstr(p + 1, part))
		n++;
	return n;
}

#endif
