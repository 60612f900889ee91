/*
 * carry.h - what a store still has of the queue, which lives on another now, is carried there: `sluice admin migrate-shard`, in a process of its own, which may be killed.
 */
#ifndef TORTURE_CARRY_H
#define TORTURE_CARRY_H

#include "torture/victim.h"

struct carry {
	pid_t pid;
	char log[STORE_PATH + 16]; /* what it says */
};

/* Of the namespace, by way of that node, from where it may be to where it lives. */
int carry_start(struct carry *c, struct victim *v, const char *space, struct slu_err *err);

/* Has it done so? SLU_ETIMEOUT: not yet, and it is killed. SLU_EDOWN: it says why not. */
int carry_wait(struct carry *c, slu_time patience, struct slu_err *err);

#endif
