/*
 * work.h - the clients: producers and consumers that throw dice for all they do, a thread
 * each, and one that asks and hangs up.
 */
#ifndef TORTURE_WORK_H
#define TORTURE_WORK_H

#include "torture/calls.h"
#include "torture/torture.h"

struct crew;

/* They work until t->stopping, or until the history is full. */
int crew_start(struct crew **out, struct torture *t, struct slu_err *err);
void crew_stop(struct crew *crew); /* waits for them; NULL is fine */

/* A caller for whoever is no client: the round's end, a fault. */
int work_caller(struct caller *c, struct torture *t, unsigned number, struct slu_err *err);

/* Push messages of so many bytes until the server refuses one, at most n calls. */
void work_flood(struct caller *c, struct torture *t, uint32_t size, unsigned n);

/* Take and ack all that can be had: what is there can also be had. False: not all
 * could. */
bool work_drain(struct caller *c, struct slu_err *err);

#endif
