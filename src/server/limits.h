/*
 * limits.h - where the limits of the settings go, at the start and at a reload.
 *
 *      limits.rate, .burst, .batch, .payload       the gate of the api
 *      limits.queue_*, .waiting                    the quota of the shards
 *      limits.connections, .memory                 the HTTP server
 *      metrics.queues, queue.*                     the api
 *
 * docs/limits.md says what each does.
 */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H

#include "server/node_in.h"

/* A reload_part.commit; arg is the node, whose broker and server are open. */
void limits_commit(void *node, const struct conf *now);

#endif
