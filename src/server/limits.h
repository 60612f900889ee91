/*
 * limits.h - applies the limits of the settings, at the start and at a reload.
 *
 *      limits.rate, .burst, .batch, .payload       the rate limit of the api
 *      limits.queue_*, .waiting                    the quota of the shards
 *      limits.index_memory, .queues                the same
 *      limits.namespace_*, .quotas                 the namespaces of the shards
 *      limits.connections, .memory                 the HTTP server
 *      metrics.queues, queue.*                     the api
 *
 * docs/limits.md describes each limit.
 */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H

#include "server/node_private.h"

/* A reload_part; arg is the node, whose broker and server are open at the commit. */
int limits_prepare(void *node, const struct conf *old, const struct conf *next,
		   struct slu_err *err);
void limits_commit(void *node, const struct conf *now);
void limits_abandon(void *node);

/* SLU_EINVAL if an engine in use does not support a limit. */
int limits_check(const struct conf *conf, struct slu_err *err);

#endif
