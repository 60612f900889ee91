#include "fiber.h"

#include "test.h"

#include <pthread.h>
#include <stdlib.h>

struct fiber {
	void (*run)(void *arg);
	void *arg;
	pthread_t thread;
	pthread_mutex_t mtx;
	pthread_cond_t news;

	/* shared, under mtx */
	bool its_turn; /* else its owner's */
	bool ended;
};

/* The other one's turn, until it is ours again. Under mtx. */
static void
pass(struct fiber *f, bool to_fiber)
{
	f->its_turn = to_fiber;
	pthread_cond_signal(&f->news);
	while (f->its_turn == to_fiber)
		pthread_cond_wait(&f->news, &f->mtx);
}

static void *
work(void *arg)
{
	struct fiber *f = arg;

	pthread_mutex_lock(&f->mtx);
	while (!f->its_turn)
		pthread_cond_wait(&f->news, &f->mtx);
	pthread_mutex_unlock(&f->mtx);
	f->run(f->arg);
	pthread_mutex_lock(&f->mtx);
	f->ended = true;
	f->its_turn = false;
	pthread_cond_signal(&f->news);
	pthread_mutex_unlock(&f->mtx);
	return NULL;
}

struct fiber *
fiber_new(void (*run)(void *arg), void *arg)
{
	struct fiber *f = calloc(1, sizeof *f);

	CHECK(f != NULL);
	f->run = run;
	f->arg = arg;
	pthread_mutex_init(&f->mtx, NULL);
	pthread_cond_init(&f->news, NULL);
	CHECK_EQ(0, pthread_create(&f->thread, NULL, work, f));
	return f;
}

bool
fiber_resume(struct fiber *f)
{
	bool ended;

	pthread_mutex_lock(&f->mtx);
	pass(f, true);
	ended = f->ended;
	pthread_mutex_unlock(&f->mtx);
	return !ended;
}

void
fiber_yield(struct fiber *f)
{
	pthread_mutex_lock(&f->mtx);
	pass(f, false);
	pthread_mutex_unlock(&f->mtx);
}

void
fiber_free(struct fiber *f)
{
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->news);
	pthread_mutex_destroy(&f->mtx);
	free(f);
}
