/*
 * ownership.h - the shards of a node that are in a store: which of them the node owns.
 *
 *      store: URL ──> settings of the store ──> lanes of the shard
 *      membership.h decides ──> broker_order: take, give
 *
 *  OWNERSHIP-1  All nodes of a store have all of its shards as lanes. A lane serves while its node
 *      owns the shard.
 *  OWNERSHIP-2  A clean stop hands all shards over before the process ends.
 *  OWNERSHIP-3  Each shard of the settings (`default`, or an entry of `shards`) with a store has a
 *      store of its own, with its own beats and its own owners. A store that does not answer stops no
 *      other shard.
 *
 * struct ownership is one store; node.ownership is the list of them. One thread at a time opens and
 * starts; the list only grows until ownership_close, and any thread may read it meanwhile.
 */
#ifndef SERVER_OWNERSHIP_H
#define SERVER_OWNERSHIP_H

#include "server/node_private.h"

struct membership;
struct ownership;
struct settings;

/* If the settings of the shard name a store: opens it unless it is open, and sets the lanes, the store
 * and the tenure of conf. shards: how many the settings want, 0 = as many as the store has. Before the
 * broker opens the shard. Returns SLU_EINVAL, SLU_EDOWN, SLU_EEXISTS, SLU_ECORRUPT, SLU_ECANCELED,
 * SLU_ENOMEM. */
int ownership_open(struct node *n, struct broker_shard_conf *conf, uint32_t shards, struct slu_err *err);

/* How many shards the store has. */
uint32_t ownership_shards(const struct ownership *o);

/* The lane of the broker that has shard 0 of the store; fixed once ownership_membership is set. */
uint32_t ownership_first_lane(const struct ownership *o);

/* The next store of the node; NULL behind the last. */
const struct ownership *ownership_next(const struct ownership *o);

/* What all nodes of the store agree on. */
const struct settings *ownership_settings(const struct ownership *o);

/* store.lease */
slu_time ownership_lease(const struct ownership *o);

/* Adds the requests to the store, by enum store_verb (STORE_VERBS of them). *rest: raised to the time
 * that puts wait now for the budget. */
void ownership_count(const struct ownership *o, uint64_t *requests, slu_time *rest);

/* Which node owns which shard; NULL until ownership_start. Stays until ownership_close. */
struct membership *ownership_membership(const struct ownership *o);

/* For stores that were opened and whose shard the broker has: begins to take shards, and waits until
 * each has an owner, at most for a while. */
int ownership_start(struct node *n, struct slu_err *err);

/* nodes_ops.drain of api/nodes.h: in all stores, or in none. */
int ownership_drain(struct node *n, bool drain, struct slu_err *err);

/* Hands all shards over, and gives no more orders. Before the broker is stopped. */
void ownership_leave(struct node *n);

/* After the broker is closed. */
void ownership_close(struct node *n);

#endif
