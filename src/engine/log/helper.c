/*
 * helper.c - a thread that makes spare segments ahead of need and fills them with
 * zeros: a sync of such a file is faster, and the shard's thread does not wait. The thread
 * also removes payload files.
 */
#include "engine/log/logengine_private.h"

static bool
is_stopping(struct logengine_helper *h)
{
	bool stopping;

	pthread_mutex_lock(&h->mtx);
	stopping = h->stopping;
	pthread_mutex_unlock(&h->mtx);
	return stopping;
}

/* Makes spares until there are enough. On a failure it returns: the shard's thread will
 * meet and report the same failure. */
static void
make_spares(struct logengine *l)
{
	struct slu_err err;

	while (!is_stopping(&l->helper) && wal_wants_spare(l->wal))
		if (wal_prepare(l->wal, &err))
			return;
}

static void *
help(void *arg)
{
	struct logengine *l = arg;
	struct logengine_helper *h = &l->helper;

	pthread_mutex_lock(&h->mtx);
	while (!h->stopping) {
		if (!h->wanted) {
			pthread_cond_wait(&h->cond, &h->mtx);
			continue;
		}
		h->wanted = false;
		pthread_mutex_unlock(&h->mtx);
		logengine_files_sweep(&l->files);
		make_spares(l);
		pthread_mutex_lock(&h->mtx);
	}
	pthread_mutex_unlock(&h->mtx);
	return NULL;
}

static void
wake(struct logengine_helper *h)
{
	pthread_mutex_lock(&h->mtx);
	h->wanted = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->mtx);
}

/* logengine_files.wake */
static void
sweep(void *arg)
{
	struct logengine *l = arg;

	wake(&l->helper);
}

int
logengine_helper_start(struct logengine *l, struct slu_err *err)
{
	struct logengine_helper *h = &l->helper;

	if (pthread_mutex_init(&h->mtx, NULL))
		return slu_fail(err, SLU_ENOMEM, "no mutex for the log's helper");
	if (pthread_cond_init(&h->cond, NULL)) {
		pthread_mutex_destroy(&h->mtx);
		return slu_fail(err, SLU_ENOMEM, "cannot make a condition for the log's helper");
	}
	h->wanted = true;
	if (pthread_create(&h->thread, NULL, help, l)) {
		pthread_cond_destroy(&h->cond);
		pthread_mutex_destroy(&h->mtx);
		return slu_fail(err, SLU_ENOMEM, "cannot start a thread for the log's helper");
	}
	h->started = true;
	logengine_files_set_wake(&l->files, sweep, l);
	return 0;
}

void
logengine_helper_stop(struct logengine *l)
{
	struct logengine_helper *h = &l->helper;

	if (!h->started)
		return;
	logengine_files_set_wake(&l->files, NULL, NULL);
	pthread_mutex_lock(&h->mtx);
	h->stopping = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->mtx);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->cond);
	pthread_mutex_destroy(&h->mtx);
	h->started = false;
}

void
logengine_helper_wake(struct logengine *l)
{
	if (l->helper.started && wal_wants_spare(l->wal))
		wake(&l->helper);
}
