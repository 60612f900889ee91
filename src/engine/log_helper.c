/*
 * log_helper.c - a thread that makes spare segments ahead, written with zeros: a sync
 * of such a file is faster, and the shard's thread does not wait for it to be made. It
 * also removes payload files, which nobody waits for either.
 */
#include "engine/log_in.h"

static bool
is_stopping(struct log_helper *h)
{
	bool stopping;

	pthread_mutex_lock(&h->mtx);
	stopping = h->stopping;
	pthread_mutex_unlock(&h->mtx);
	return stopping;
}

/* Until there are enough, or one cannot be made: the shard's thread will say so. */
static void
make_spares(struct log_engine *l)
{
	struct slu_err err;

	while (!is_stopping(&l->helper) && wal_wants_spare(l->wal))
		if (wal_prepare(l->wal, &err))
			return;
}

static void *
help(void *arg)
{
	struct log_engine *l = arg;
	struct log_helper *h = &l->helper;

	pthread_mutex_lock(&h->mtx);
	while (!h->stopping) {
		if (!h->wanted) {
			pthread_cond_wait(&h->cond, &h->mtx);
			continue;
		}
		h->wanted = false;
		pthread_mutex_unlock(&h->mtx);
		log_files_sweep(&l->files);
		make_spares(l);
		pthread_mutex_lock(&h->mtx);
	}
	pthread_mutex_unlock(&h->mtx);
	return NULL;
}

int
log_helper_start(struct log_engine *l, struct slu_err *err)
{
	struct log_helper *h = &l->helper;

	if (pthread_mutex_init(&h->mtx, NULL))
		return slu_fail(err, SLU_ENOMEM, "no mutex for the log's helper");
	if (pthread_cond_init(&h->cond, NULL)) {
		pthread_mutex_destroy(&h->mtx);
		return slu_fail(err, SLU_ENOMEM, "no condition for the log's helper");
	}
	h->wanted = true;
	if (pthread_create(&h->thread, NULL, help, l)) {
		pthread_cond_destroy(&h->cond);
		pthread_mutex_destroy(&h->mtx);
		return slu_fail(err, SLU_ENOMEM, "no thread for the log's helper");
	}
	h->started = true;
	l->files.wake_arg = l;
	l->files.wake = log_helper_sweep;
	return 0;
}

void
log_helper_stop(struct log_engine *l)
{
	struct log_helper *h = &l->helper;

	if (!h->started)
		return;
	l->files.wake = NULL; /* who unpins now is alone */
	pthread_mutex_lock(&h->mtx);
	h->stopping = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->mtx);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->cond);
	pthread_mutex_destroy(&h->mtx);
	h->started = false;
}

static void
wake(struct log_helper *h)
{
	pthread_mutex_lock(&h->mtx);
	h->wanted = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->mtx);
}

void
log_helper_wake(struct log_engine *l)
{
	if (l->helper.started && wal_wants_spare(l->wal))
		wake(&l->helper);
}

void
log_helper_sweep(void *arg)
{
	struct log_engine *l = arg;

	wake(&l->helper);
}
