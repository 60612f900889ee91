/*
 * ticker.h - a line on stderr, if stderr is a terminal, for work that cannot report its progress. A
 * thread of its own draws the line:
 *
 *      enqueue  [########............]  40 %  2s of 5s
 *      backlog  12s                                         if the duration is not known
 */
#ifndef CLI_LIB_TICKER_H
#define CLI_LIB_TICKER_H

#include <sluice/api.h>

#include <pthread.h>

struct ticker {
	const char *what;
	slu_time began, duration; /* 0 = not known */
	int stop_fd;
	bool on;
	pthread_t thread;
};

void ticker_start(struct ticker *t, const char *what, slu_time duration);
void ticker_stop(struct ticker *t); /* removes the line; may be called again */

#endif
