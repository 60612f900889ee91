/*
 * victim_store.h - the Redis server in which a server of our own keeps its messages; for
 * victim.c and faults.c alone.
 *
 * It listens in a folder that is gone afterwards, and syncs before it answers (appendonly,
 * appendfsync always): so a kill of it may lose nothing.
 */
#ifndef TORTURE_VICTIM_STORE_H
#define TORTURE_VICTIM_STORE_H

#include "torture/victim.h"

/* SLU_EDOWN: it cannot be started, and why. */
int victim_store_open(struct victim *v, struct slu_err *err);
void victim_store_close(struct victim *v); /* there may be none */

/* kill -9; then once more on the same data. */
void victim_store_kill(struct victim *v);
int victim_store_start(struct victim *v, struct slu_err *err);

void victim_store_pause(struct victim *v);
void victim_store_resume(struct victim *v);

/* Until the server serves again, which goes on by itself. SLU_EDOWN: it does not. */
int victim_store_wait(struct victim *v, struct slu_err *err);

/* In the new process of the server: where its store is. */
int victim_store_tell(const struct victim *v);

#endif
