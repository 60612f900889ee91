/*
 * work.h - the clients: producers and consumers with random choices, a thread each, and one that
 * sends claims and disconnects.
 */
#ifndef TORTURE_WORK_H
#define TORTURE_WORK_H

#include "torture/calls.h"
#include "torture/torture.h"

struct crew;

/* Starts the clients. They run until t->stopping, or until the history is full. */
int crew_start(struct crew **out, struct torture *t, struct slu_err *err);
void crew_stop(struct crew *crew); /* waits for the threads; NULL is allowed */

/* A caller for the end of a round or a fault. */
int work_caller(struct caller *c, struct torture *t, unsigned number, struct slu_err *err);

/* Pushes messages of that size until the server refuses one, at most n calls. */
void work_flood(struct caller *c, struct torture *t, uint32_t size, unsigned n);

/* Takes and acks all messages. Returns false if some could not be taken. */
bool work_drain(struct caller *c, struct slu_err *err);

#endif
