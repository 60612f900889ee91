/*
 * watch.h - notices of other nodes, received from the server: queues with ready messages, and
 * leases of our streams that were ended or extended.
 *
 *      another node's script ── PUBLISH sluice:ready ──> our thread ──> list ──> poke
 *                                                                         │
 *      the shard's run: watch_take, each queue once  <────────────────────┘
 *
 *  REDISWATCH-1  A notice is delivered at least once, in any order. Our own notices are left
 *      out.
 *  REDISWATCH-2  After a lost connection, and every WATCH_SAFETY, `all` is set: any queue may
 *      be ready. So a lost notice costs at most that long.
 */
#ifndef ENGINE_REDIS_WATCH_H
#define ENGINE_REDIS_WATCH_H

#include "base/bytes.h"
#include "engine/redis/wire.h"

#include <pthread.h>
#include <stdatomic.h>

#define WATCH_SAFETY (5 * SLU_SEC)

struct watch {
	struct rwire_conf conf;
	char address[256];       /* of the server that is subscribed to */
	const char *channel;     /* borrowed */
	char own[24];            /* prefix of our own notices */
	void (*poke)(void *arg); /* wakes the shard */
	void *arg;

	pthread_t thread;
	bool started;
	int stop; /* an eventfd */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct buf names; /* notices, with a NUL behind each */
	bool all;         /* REDISWATCH-2 */
	_Atomic bool news;
};

/* `own`: a number that no other node has. `poke`: wakes the thread that calls watch_take. */
int watch_start(struct watch *w, const struct rwire_conf *conf, const char *channel,
		uint64_t own, void (*poke)(void *arg), void *arg, struct slu_err *err);
void watch_stop(struct watch *w); /* zeroed is fine */

static inline bool
watch_has_news(const struct watch *w)
{
	return atomic_load_explicit(&w->news, memory_order_relaxed);
}

/* Moves the notices into out, with a NUL behind each: "namespace/queue", "namespace/.locks
 * key", or "=<own>: leases" (redis_notice_leases). Returns `all` (REDISWATCH-2). */
bool watch_take(struct watch *w, struct buf *out);

#endif
