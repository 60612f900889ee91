#include "peer/helper.h"

#include <assert.h>

void
helper_init(struct helper *h, const char *name, unsigned most)
{
	assert(most <= HELPER_MOST);
	*h = (struct helper){ .name = name, .most = most };
	pthread_mutex_init(&h->mtx, NULL); /* cannot fail with these attributes */
	pthread_cond_init(&h->news, NULL); /* the same */
	list_init(&h->waiting);
}

/* Under mtx. NULL: no job waits, and the helper stops. */
static struct helper_job *
next_job(struct helper *h)
{
	struct helper_job *job = NULL;

	h->idle++;
	while (list_is_empty(&h->waiting) && !h->stopping)
		pthread_cond_wait(&h->news, &h->mtx);
	h->idle--;
	if (!list_is_empty(&h->waiting)) {
		job = CONTAINER(h->waiting.next, struct helper_job, node);
		list_remove(&job->node);
		h->n_waiting--;
	}
	return job;
}

static void *
work(void *arg)
{
	struct helper *const h = arg;
	struct helper_job *job;

	pthread_mutex_lock(&h->mtx);
	while ((job = next_job(h))) {
		pthread_mutex_unlock(&h->mtx);
		job->run(job);
		pthread_mutex_lock(&h->mtx);
	}
	pthread_mutex_unlock(&h->mtx);
	return NULL;
}

/* Under mtx. */
static void
start_thread(struct helper *h)
{
	if (h->n == h->most || pthread_create(&h->threads[h->n], NULL, work, h))
		return;
	pthread_setname_np(h->threads[h->n++], h->name);
}

void
helper_post(struct helper *h, struct helper_job *job)
{
	bool posted;

	pthread_mutex_lock(&h->mtx);
	list_append(&h->waiting, &job->node);
	if (++h->n_waiting > h->idle)
		start_thread(h);
	posted = h->n > 0;
	if (!posted) {
		list_remove(&job->node);
		h->n_waiting--;
	}
	pthread_cond_signal(&h->news);
	pthread_mutex_unlock(&h->mtx);
	if (!posted)
		job->run(job);
}

void
helper_stop(struct helper *h)
{
	pthread_mutex_lock(&h->mtx);
	h->stopping = true;
	pthread_cond_broadcast(&h->news);
	pthread_mutex_unlock(&h->mtx);
	for (unsigned i = 0; i < h->n; i++)
		pthread_join(h->threads[i], NULL);
	h->n = 0;
	pthread_cond_destroy(&h->news);
	pthread_mutex_destroy(&h->mtx);
}
