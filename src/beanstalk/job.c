/*
 * job.c - the reservations of a connection.
 */
#include "beanstalk/beanstalk_private.h"

#include "base/mem.h"

#include <stdio.h>

struct bean_job *
bean_job_find(const struct bean_conn *bc, uint64_t id)
{
	for (unsigned i = 0; i < bc->n_jobs; i++)
		if (bc->jobs[i].id == id)
			return &bc->jobs[i];
	return NULL;
}

int
bean_job_add(struct bean_conn *bc, const struct bean_job *job)
{
	if (bc->n_jobs == bc->max_jobs) {
		const unsigned max = bc->max_jobs ? 2 * bc->max_jobs : 4;
		struct bean_job *const jobs = mem_realloc(bc->jobs, max * sizeof *jobs);

		if (!jobs)
			return SLU_ENOMEM;
		bc->jobs = jobs;
		bc->max_jobs = max;
	}
	bc->jobs[bc->n_jobs] = *job;
	tubes_keep(&((struct bean_shared *)bc->c.protocol->shared)->tubes, job->tube);
	bc->n_jobs++;
	return 0;
}

void
bean_job_drop(struct bean_conn *bc, uint64_t id)
{
	struct bean_job *const job = bean_job_find(bc, id);

	if (!job)
		return;
	tubes_close(&((struct bean_shared *)bc->c.protocol->shared)->tubes, job->tube);
	bc->n_jobs--;
	memmove(job, job + 1, (size_t)(bc->jobs + bc->n_jobs - job) * sizeof *job);
}

slu_time
bean_job_next_end(const struct bean_conn *bc, slu_time now)
{
	slu_time first = SLU_NEVER;

	for (unsigned i = 0; i < bc->n_jobs; i++)
		if (bc->jobs[i].until > now && bc->jobs[i].until < first)
			first = bc->jobs[i].until;
	return first;
}

/* A nack that nobody waits for. */
struct release {
	struct op op;
	struct op_item item;
	char space[NAME_TEXT], queue[NAME_TEXT];
};

static void
released(struct op *op)
{
	mem_free(op->owner);
}

static void
release(struct api *api, const char *space, const struct bean_job *job, bool is_failure)
{
	struct release *const r = mem_alloc(sizeof *r);

	if (!r)
		return; /* the lease ends by itself */
	memset(r, 0, sizeof *r);
	(void)snprintf(r->space, sizeof r->space, "%s", space);
	(void)snprintf(r->queue, sizeof r->queue, "%s", job->tube->name);
	op_init(&r->op, OP_NACK, slice_of(r->space), slice_of(r->queue), released, r);
	r->item = (struct op_item){
		.id = job->id,
		.token = job->token,
		.defer = !is_failure,
		.text = SLICE("connection closed"),
	};
	r->op.items = &r->item;
	r->op.n_items = 1;
	if (broker_post(api->broker, &r->op))
		mem_free(r); /* stopped: the lease ends by itself */
}

void
bean_jobs_release(struct bean_conn *bc)
{
	const struct front *const f = bc->c.front;
	struct bean_shared *const s = bc->c.protocol->shared;

	for (unsigned i = 0; i < bc->n_jobs; i++) {
		release(f->shared->conf.arg, s->conf.space, &bc->jobs[i], !f->draining);
		tubes_close(&s->tubes, bc->jobs[i].tube);
	}
	mem_free(bc->jobs);
	bc->jobs = NULL;
	bc->n_jobs = bc->max_jobs = 0;
}
