#include "broker/move/repair.h"

#include "base/log.h"
#include "base/mem.h"
#include "broker/move/copy.h"
#include "engine/message.h"

#include <pthread.h>

enum {
	JOBS = 64 /* that wait; others come with the next look */
};

struct repair_job {
	char space[MESSAGE_NAME_MAX + 1];
	char queue[MESSAGE_NAME_MAX + 1];
	uint32_t lane;
};

struct moverepair {
	struct broker *broker;
	struct slu_log *log;
	pthread_mutex_t mtx;
	pthread_cond_t news;

	/* shared, under mtx */
	pthread_t thread;
	bool started;
	bool stopping;
	unsigned n;
	struct repair_job jobs[JOBS];
};

int
moverepair_new(struct moverepair **out, struct broker *b, struct slu_log *log, struct slu_err *err)
{
	struct moverepair *const m = mem_zalloc(sizeof *m);

	if (!m)
		return slu_fail(err, SLU_ENOMEM, "no memory for the repair of moves");
	m->broker = b;
	m->log = log;
	pthread_mutex_init(&m->mtx, NULL); /* cannot fail with these attributes */
	pthread_cond_init(&m->news, NULL);
	*out = m;
	return 0;
}

static bool
next_job(struct moverepair *m, struct repair_job *out)
{
	bool has;

	pthread_mutex_lock(&m->mtx);
	while (m->n == 0 && !m->stopping)
		pthread_cond_wait(&m->news, &m->mtx);
	has = !m->stopping;
	if (has)
		*out = m->jobs[0];
	pthread_mutex_unlock(&m->mtx);
	return has;
}

/* The job stays in the list until it is done, so that it is not posted twice. */
static void
forget_job(struct moverepair *m)
{
	pthread_mutex_lock(&m->mtx);
	m->n--;
	memmove(m->jobs, m->jobs + 1, m->n * sizeof m->jobs[0]);
	pthread_mutex_unlock(&m->mtx);
}

static void *
work(void *arg)
{
	struct moverepair *const m = arg;
	struct repair_job job;

	while (next_job(m, &job)) {
		struct slu_err err = { 0 };
		const int rc = movecopy_finish(m->broker, slice_of(job.space), slice_of(job.queue),
					       job.lane, &err);

		if (rc)
			log_warn(m->log, "batch not finished", F_STR("namespace", job.space),
				 F_STR("queue", job.queue), F_STR("why", err.text));
		else
			log_info(m->log, "batch finished", F_STR("namespace", job.space),
				 F_STR("queue", job.queue));
		forget_job(m);
	}
	return NULL;
}

static bool
is_in_line(const struct moverepair *m, struct slice space, struct slice queue, uint32_t lane)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->jobs[i].lane == lane && slice_eq(slice_of(m->jobs[i].space), space) &&
		    slice_eq(slice_of(m->jobs[i].queue), queue))
			return true;
	return false;
}

void
moverepair_post(struct moverepair *m, struct slice space, struct slice queue, uint32_t lane)
{
	pthread_mutex_lock(&m->mtx);
	if (!m->started && !m->stopping)
		m->started = pthread_create(&m->thread, NULL, work, m) == 0;
	if (m->started && m->n < JOBS && !is_in_line(m, space, queue, lane)) {
		struct repair_job *const job = &m->jobs[m->n++];

		*job = (struct repair_job){ .lane = lane };
		memcpy(job->space, space.p, space.n);
		memcpy(job->queue, queue.p, queue.n);
		pthread_cond_signal(&m->news);
	}
	pthread_mutex_unlock(&m->mtx);
}

void
moverepair_stop(struct moverepair *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->mtx);
	m->stopping = true;
	pthread_cond_signal(&m->news);
	pthread_mutex_unlock(&m->mtx);
}

void
moverepair_free(struct moverepair *m)
{
	if (!m)
		return;
	moverepair_stop(m);
	if (m->started)
		pthread_join(m->thread, NULL);
	pthread_cond_destroy(&m->news);
	pthread_mutex_destroy(&m->mtx);
	mem_free(m);
}
