/*
 * watch.h - what other nodes have made claimable: names of queues, heard from the server; and
 * which leases of our streams they have ended or extended.
 *
 *      another node's script ── PUBLISH sluice:ready ──> our thread ──> list ──> poke
 *                                                                         │
 *      the shard's run: watch_take, each queue once  <────────────────────┘
 *
 *  N1  Names are told at least once, in no order; what we published ourselves is left out.
 *  N2  After the connection was lost, and each WATCH_SAFETY, whatever comes, `all` is told:
 *      anything may have happened. So a notice that never came costs that long, and no more.
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
	char address[256];   /* the one that is listened to */
	const char *channel; /* borrowed */
	char own[24];        /* what our own notices begin with */
	void (*poke)(void *arg);
	void *arg;

	pthread_t thread;
	bool started;
	int stop; /* an eventfd */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct buf names; /* each ended by a NUL */
	bool all;
	_Atomic bool news;
};

/* own: any number that no other node has. poke wakes whoever will take. */
int watch_start(struct watch *w, const struct rwire_conf *conf, const char *channel,
		uint64_t own, void (*poke)(void *arg), void *arg, struct slu_err *err);
void watch_stop(struct watch *w); /* zeroed is fine */

static inline bool
watch_has_news(const struct watch *w)
{
	return atomic_load_explicit(&w->news, memory_order_relaxed);
}

/* What has come, into out: names "namespace/queue", or "=<own>: leases" (redis_hear_leases), with
 * a NUL behind each. True: any
 * other may be ready, too. */
bool watch_take(struct watch *w, struct buf *out);

#endif
