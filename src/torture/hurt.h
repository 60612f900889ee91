/*
 * hurt.h - injects the faults of a round, one after the other.
 *
 *      injector 0   kill node 2 ── pause node 0 ── ...
 *      injector 1   cut node 1 off ── step the clock of node 2 ── ...
 *
 * There is one injector. If nodes take over from each other, there is one for each node, so all nodes may
 * be in trouble at once. A fault hits a node that no other injector has.
 *
 * Injector 0 is the thread of the caller, the others are threads of their own. They live as long as the
 * run: a server ends with the thread that has started it.
 */
#ifndef TORTURE_HURT_H
#define TORTURE_HURT_H

#include "torture/torture.h"

int hurt_open(struct torture *t, struct slu_err *err);
void hurt_close(struct torture *t); /* after the servers have ended; a zeroed struct is fine */

/* Injects faults until `end`, until the history is full, or until the run is to stop. */
int hurt_until(struct torture *t, slu_time end, struct slu_err *err);

#endif
