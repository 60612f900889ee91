#include "base/clock.h"

#include <time.h>

static slu_time
read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts); /* cannot fail for these clocks */
	return ts.tv_sec * SLU_SEC + ts.tv_nsec;
}

static slu_time
system_mono(struct clock *c)
{
	(void)c;
	return read_clock(CLOCK_MONOTONIC);
}

static slu_time
system_wall(struct clock *c)
{
	(void)c;
	return read_clock(CLOCK_REALTIME);
}

static slu_time
system_boot(struct clock *c)
{
	(void)c;
	return read_clock(CLOCK_BOOTTIME);
}

static void
system_wait(struct clock *c, pthread_cond_t *cond, pthread_mutex_t *mtx,
	    slu_time until)
{
	const struct timespec ts = {
		.tv_sec = until / SLU_SEC,
		.tv_nsec = until % SLU_SEC,
	};

	(void)c;
	if (until == SLU_NEVER)
		pthread_cond_wait(cond, mtx);
	else
		pthread_cond_clockwait(cond, mtx, CLOCK_MONOTONIC, &ts);
}

static const struct clock_ops system_ops = {
	.mono = system_mono,
	.wall = system_wall,
	.boot = system_boot,
	.wait = system_wait,
};

struct clock clock_system = { .ops = &system_ops };
