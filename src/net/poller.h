/*
 * poller.h - whether a loop with nothing to do polls, or sleeps.
 *
 *      nothing to do ──> poller_begin ──┬─ polls ── poller_again ... ──┬─ something came ──> poller_end
 *                                       │                              └─ too long: sleeps
 *                                       └─ sleeps
 *
 * To wake a thread takes tens of microseconds, nearly as long as a sync. A lone client waits for two wake-ups of the
 * network thread in each request: by its request, and by the answer of the shard. A loop that polls needs neither.
 * Meanwhile it looks at all its sockets and timers, and other threads that are ready have the processor first.
 *
 *  POLLER-1  A loop polls only while at most one exchange is on its way (net/front.h). With more, other threads have work
 *            for the processor, and one wake-up serves several.
 *  POLLER-2  It polls only if waits of this kind usually end within POLLER_MOST, and at most POLLER_PATIENCE times as
 *            long as they usually take. So an idle loop sleeps.
 *  POLLER-3  A loop that has not had its processor for POLLER_LATE stops polling, and begins again only after several
 *            waits that were short.
 *  POLLER-4  A process that may use only one processor never polls.
 *
 * Pure: the caller passes the time.
 */
#ifndef NET_POLLER_H
#define NET_POLLER_H

#include "base/time.h"

#include <stdbool.h>

#define POLLER_MOST (250 * SLU_US)
#define POLLER_LATE (100 * SLU_US)

enum {
	POLLER_PATIENCE = 2,
	POLLER_PART = 8 /* the usual time moves by this part of the difference */
};

enum poller_kind {
	POLLER_ANSWER,  /* of another thread, for the one exchange */
	POLLER_REQUEST, /* of any client */
	POLLER_KINDS
};

struct poller {
	bool allowed; /* POLLER-4 */
	enum poller_kind kind;
	slu_time began; /* of the wait; 0: no wait */
	slu_time seen;  /* the last look; 0: does not poll */
	slu_time usual[POLLER_KINDS];
};

/* processors: that the process may use. */
void poller_init(struct poller *p, unsigned processors);

/* A wait begins. Returns whether the loop polls. */
bool poller_begin(struct poller *p, enum poller_kind kind, slu_time now);

/* Nothing has come. Returns whether the loop goes on polling. */
bool poller_again(struct poller *p, slu_time now);

/* The wait is over, by what was waited for or by something else. Without a wait it does nothing. */
void poller_end(struct poller *p, slu_time now);

#endif
