/*
 * migrate.h - runs `sluice admin migrate-shard` in a process of its own, which may be killed, to move
 * the rest of the queue to its new store.
 */
#ifndef TORTURE_MIGRATE_H
#define TORTURE_MIGRATE_H

#include "torture/target.h"

struct migrate {
	pid_t pid;
	char log[STORE_PATH + 16]; /* the output of the process */
};

/* Starts the move of the namespace through that node, from the old store to the new one. */
int migrate_start(struct migrate *c, struct target *v, const char *space, struct slu_err *err);

/* Waits for the end. Returns SLU_ETIMEOUT, after killing the process, if it does not end in time; SLU_EDOWN, with its output, if it failed. */
int migrate_wait(struct migrate *c, slu_time patience, struct slu_err *err);

#endif
