#include "net/filejobs.h"

void
filejobs_init(struct filejobs *l, unsigned max)
{
	*l = (struct filejobs){ .max = max };
	pthread_mutex_init(&l->lock, NULL);
	list_init(&l->waiting);
}

static struct file_job *
first_of(struct list *jobs)
{
	return CONTAINER(jobs->next, struct file_job, node);
}

static void
add_waiting(struct filejobs *l, struct file_job *j)
{
	list_init(&j->mates);
	LIST_EACH(n, &l->waiting) {
		struct file_job *const first = CONTAINER(n, struct file_job, node);

		if (slice_eq(first->space, j->space)) {
			list_append(&first->mates, &j->node);
			return;
		}
	}
	list_append(&l->waiting, &j->node);
}

/* FILEJOBS-2: its namespace goes to the end. */
static struct file_job *
take_waiting(struct filejobs *l)
{
	struct file_job *const j = first_of(&l->waiting);
	struct file_job *next;

	list_remove(&j->node);
	if (list_is_empty(&j->mates))
		return j;
	next = first_of(&j->mates);
	list_remove(&next->node);
	list_init(&next->mates);
	while (!list_is_empty(&j->mates)) {
		struct file_job *const mate = first_of(&j->mates);

		list_remove(&mate->node);
		list_append(&next->mates, &mate->node);
	}
	list_append(&l->waiting, &next->node);
	return j;
}

/* The place of a job that is done goes to a job that waits, on its own loop. */
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
		next = take_waiting(l);
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
		add_waiting(l, j);
	pthread_mutex_unlock(&l->lock);
	if (is_free)
		start(&j->start);
}
