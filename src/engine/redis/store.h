/*
 * store.h - figures of a shard's server, for metrics and health.
 *
 *      a thread of its own ── INFO, every STORE_EVERY ──> server
 *              └──> numbers ──> rstore_take
 *
 * So a request for metrics never waits for the server. The loss of an unused server is
 * noticed, too (rstore_lost): within STORE_EVERY plus the timeout of the connection; its
 * return within STORE_AGAIN. Of a cluster it is the first server that answers.
 */
#ifndef ENGINE_REDIS_STORE_H
#define ENGINE_REDIS_STORE_H

#include "engine/op.h"
#include "engine/redis/wire.h"

#include <pthread.h>

#define STORE_EVERY (2 * SLU_SEC)
#define STORE_AGAIN (250 * SLU_MS)

struct rstore {
	struct rwire_conf conf;
	pthread_t thread;
	bool started;
	int stop; /* an eventfd */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct op_store told;
	struct slu_err why; /* why the last INFO had no answer; code 0 = it had one */
};

int rstore_start(struct rstore *s, const struct rwire_conf *conf, struct slu_err *err);
void rstore_stop(struct rstore *s); /* zeroed is fine */

/* The last figures; `told` is false if there are none yet. A zeroed store is fine. */
struct op_store rstore_take(struct rstore *s);

/* Returns SLU_EDOWN if the last INFO had no answer. A zeroed store is fine. */
int rstore_lost(struct rstore *s, struct slu_err *err);

#endif
