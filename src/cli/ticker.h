/*
 * ticker.h - a line on stderr, if that is a terminal, while something runs that cannot tell how
 * far it has come. A thread of its own draws it:
 *
 *      enqueue  [########............]  40 %  2s of 5s
 *      backlog  12s                                         if nobody knows how long it takes
 */
#ifndef CLI_TICKER_H
#define CLI_TICKER_H

#include <sluice/api.h>

#include <pthread.h>

struct ticker {
	const char *what;
	slu_time began, duration; /* 0: not known */
	int stop_fd;
	bool on;
	pthread_t thread;
};

void ticker_start(struct ticker *t, const char *what, slu_time duration);
void ticker_stop(struct ticker *t); /* the line is gone; again is fine */

#endif
