/*
 * store.h - what the server of a shard tells about itself.
 *
 *      a thread of its own ── INFO, every STORE_EVERY ──> server
 *              └──> numbers ──> store_take, by whoever shows them
 *
 * So nobody who asks for metrics waits for the server, and one that nobody uses is still
 * known to be gone: store_lost, within STORE_EVERY and the timeout of the connection; and to
 * be back, within STORE_AGAIN. Of a cluster it is the first server that answers.
 */
#ifndef ENGINE_REDIS_STORE_H
#define ENGINE_REDIS_STORE_H

#include "engine/op.h"
#include "engine/redis/wire.h"

#include <pthread.h>

#define STORE_EVERY (2 * SLU_SEC)
#define STORE_AGAIN (250 * SLU_MS)

struct store {
	struct rwire_conf conf;
	pthread_t thread;
	bool started;
	int stop; /* an eventfd */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct op_store told;
	struct slu_err why; /* it did not answer when it was asked last; code 0: it did */
};

int store_start(struct store *s, const struct rwire_conf *conf, struct slu_err *err);
void store_stop(struct store *s); /* zeroed is fine */

/* What it told last; `told` is false if it has not yet. Of a zeroed one, too. */
struct op_store store_take(struct store *s);

/* 0, or SLU_EDOWN: it did not answer. Of a zeroed one: 0. */
int store_lost(struct store *s, struct slu_err *err);

#endif
