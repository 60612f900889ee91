#include "net/filejobs.h"

void
filejobs_init(struct filejobs *l, unsigned max)
{
	*l = (struct filejobs){ .max = max };
	pthread_mutex_init(&l->lock, NULL);
	list_init(&l->waiting);
}

/* The place of a job that is done goes to the job that waits longest, on its own loop. */
static void
free_place(struct filejobs *l)
{
	struct file_job *next = NULL;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	if (list_is_empty(&l->waiting))
		l->running--;
	else
		next = CONTAINER(l->waiting.next, struct file_job, node);
	if (next)
		list_remove(&next->node);
	pthread_mutex_unlock(&l->lock);
	if (next)
		loop_post(next->loop, &next->start);
}

static void
run_on_file_thread(uv_work_t *work)
{
	struct file_job *const j = work->data;

	j->rc = j->run(j);
}

static void
back_on_loop(uv_work_t *work, int status)
{
	struct file_job *const j = work->data;

	(void)status; /* it is never canceled */
	free_place(j->all);
	j->then(j, j->rc);
}

static void
start(struct loop_work *w)
{
	struct file_job *const j = CONTAINER(w, struct file_job, start);

	j->work.data = j;
	j->rc = SLU_ENOMEM;
	if (uv_queue_work(loop_uv(j->loop), &j->work, run_on_file_thread, back_on_loop))
		back_on_loop(&j->work, 0);
}

void
filejobs_run(struct filejobs *l, struct file_job *j)
{
	bool is_free;

	j->all = l;
	j->start.run = start;
	if (!l) {
		start(&j->start);
		return;
	}
	pthread_mutex_lock(&l->lock);
	is_free = l->running < l->max;
	if (is_free)
		l->running++;
	else
		list_append(&l->waiting, &j->node);
	pthread_mutex_unlock(&l->lock);
	if (is_free)
		start(&j->start);
}
