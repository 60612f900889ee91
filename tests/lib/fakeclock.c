#include "fakeclock.h"

#include <assert.h>

static struct fakeclock *
of(struct clock *c)
{
	return (struct fakeclock *)c;
}

static slu_time
fake_mono(struct clock *c)
{
	slu_time now;

	pthread_mutex_lock(&of(c)->mtx);
	now = of(c)->mono;
	pthread_mutex_unlock(&of(c)->mtx);
	return now;
}

static slu_time
fake_wall(struct clock *c)
{
	slu_time now;

	pthread_mutex_lock(&of(c)->mtx);
	now = of(c)->wall;
	pthread_mutex_unlock(&of(c)->mtx);
	return now;
}

/* Returns a free place, or -1 when the moment has come already. */
static int
enlist(struct fakeclock *f, pthread_cond_t *cond, pthread_mutex_t *mtx,
       slu_time until)
{
	int i = 0;

	pthread_mutex_lock(&f->mtx);
	while (i < FAKECLOCK_SLEEPERS && f->sleepers[i].cond)
		i++;
	assert(i < FAKECLOCK_SLEEPERS);
	if (until > f->mono) {
		f->sleepers[i].cond = cond;
		f->sleepers[i].mtx = mtx;
		f->sleepers[i].until = until;
	} else {
		i = -1;
	}
	pthread_mutex_unlock(&f->mtx);
	return i;
}

static void
fake_wait(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx,
	  slu_time until)
{
	struct fakeclock *f = of(c);
	const int place = enlist(f, cond, mtx, until);

	if (place < 0)
		return;
	pthread_cond_wait(cond, mtx);
	pthread_mutex_lock(&f->mtx);
	f->sleepers[place].cond = NULL;
	pthread_mutex_unlock(&f->mtx);
}

static const struct clock_ops fake_ops = {
	.mono = fake_mono,
	.wall = fake_wall,
	.wait = fake_wait,
};

void
fakeclock_init(struct fakeclock *f, slu_time mono, slu_time wall)
{
	*f = (struct fakeclock){ .clock.ops = &fake_ops, .mono = mono, .wall = wall };
	pthread_mutex_init(&f->mtx, NULL);
}

void
fakeclock_release(struct fakeclock *f)
{
	pthread_mutex_destroy(&f->mtx);
}

/* A sleeper holds its own mutex until it really sleeps, so taking that mutex
 * before the broadcast makes sure that the wake-up is not lost. */
static void
wake(pthread_cond_t *cond, pthread_mutex_t *mtx)
{
	pthread_mutex_lock(mtx);
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mtx);
}

void
fakeclock_advance(struct fakeclock *f, slu_time by)
{
	pthread_mutex_lock(&f->mtx);
	f->mono += by;
	f->wall += by;
	for (int i = 0; i < FAKECLOCK_SLEEPERS; i++) {
		pthread_cond_t *cond = f->sleepers[i].cond;
		pthread_mutex_t *mtx = f->sleepers[i].mtx;

		if (!cond || f->sleepers[i].until > f->mono)
			continue;
		pthread_mutex_unlock(&f->mtx);
		wake(cond, mtx);
		pthread_mutex_lock(&f->mtx);
	}
	pthread_mutex_unlock(&f->mtx);
}

void
fakeclock_set_wall(struct fakeclock *f, slu_time wall)
{
	pthread_mutex_lock(&f->mtx);
	f->wall = wall;
	pthread_mutex_unlock(&f->mtx);
}

int
fakeclock_sleepers(struct fakeclock *f)
{
	int n = 0;

	pthread_mutex_lock(&f->mtx);
	for (int i = 0; i < FAKECLOCK_SLEEPERS; i++)
		n += f->sleepers[i].cond && f->sleepers[i].until > f->mono;
	pthread_mutex_unlock(&f->mtx);
	return n;
}

slu_time
fakeclock_until(struct fakeclock *f)
{
	slu_time first = SLU_NEVER;

	pthread_mutex_lock(&f->mtx);
	for (int i = 0; i < FAKECLOCK_SLEEPERS; i++)
		if (f->sleepers[i].cond && f->sleepers[i].until < first)
			first = f->sleepers[i].until;
	pthread_mutex_unlock(&f->mtx);
	return first;
}
