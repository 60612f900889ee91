#include "cli/lib/ticker.h"

#include "base/clock.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	BAR = 20, /* width of the bar */
	TICK_MS = 200
};

static void
draw(const struct ticker *t)
{
	const slu_time now = clock_mono(&clock_system) - t->began;
	const slu_time most = t->duration > now ? t->duration : now;
	const int full = most ? (int)(now * BAR / most) : 0;

	if (t->duration)
		fprintf(stderr, "\r%s  [%.*s%.*s] %3d %%  %llds of %llds\033[K", t->what, full,
			"####################", BAR - full, "....................",
			most ? (int)(now * 100 / most) : 0, (long long)(now / SLU_SEC),
			(long long)(most / SLU_SEC));
	else
		fprintf(stderr, "\r%s  %llds\033[K", t->what, (long long)(now / SLU_SEC));
	fflush(stderr);
}

static void *
tick(void *arg)
{
	const struct ticker *const t = arg;
	struct pollfd stop = { .fd = t->stop_fd, .events = POLLIN };

	do
		draw(t);
	while (poll(&stop, 1, TICK_MS) == 0);
	fputs("\r\033[K", stderr);
	return NULL;
}

void
ticker_start(struct ticker *t, const char *what, slu_time duration)
{
	*t = (struct ticker){
		.what = what,
		.began = clock_mono(&clock_system),
		.duration = duration,
		.stop_fd = -1,
	};
	if (!isatty(STDERR_FILENO))
		return;
	t->stop_fd = eventfd(0, EFD_CLOEXEC);
	t->on = t->stop_fd >= 0 && pthread_create(&t->thread, NULL, tick, t) == 0;
}

void
ticker_stop(struct ticker *t)
{
	const uint64_t one = 1;

	if (t->on) {
		const ssize_t n = write(t->stop_fd, &one, sizeof one);

		(void)n; /* 8 bytes always fit */
		(void)pthread_join(t->thread, NULL);
	}
	if (t->stop_fd > 0)
		close(t->stop_fd);
	*t = (struct ticker){ 0 };
}
