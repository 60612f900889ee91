/*
 * links.h - the links of a node with --store to the other nodes of the store (peer/peernet.h).
 *
 *      --listen peer://HOST:PORT ──> links_open ──> the port is in the beats of this node
 *      --listen peers://HOST:PORT: the same, and all links of this node use TLS
 *      members: the owner of a shard ──> links_set_owner
 *
 * A node without an address for other nodes has no links: it answers 503 `moved` for shards of other nodes,
 * and other nodes answer 503 `moved` for its shards.
 */
#ifndef SERVER_LINKS_H
#define SERVER_LINKS_H

#include "members/members.h"
#include "peer/peernet.h"
#include "server/node_private.h"

/* Returns whether an address of `listen` is for other nodes: "peer://..." or "peers://...". */
bool links_is_address(const char *address);

/* Returns whether `listen` has an address for other nodes with TLS: "peers://...". */
bool links_use_tls(const struct conf *conf);

/* SLU_EINVAL if `listen` has an address for other nodes, and the server has no store, or a map of shards. */
int links_check(const struct conf *conf, struct slu_err *err);

/* Listens on the address for other nodes, and sets n->links; leaves it NULL if `listen` has no such
 * address. After links_check and after the store is open, before the broker is opened. */
int links_open(struct node *n, struct slu_err *err);

/* PEER-5: the owner of a shard counts the streams of all nodes. The numbers of this node begin at random. */
int links_number_streams(struct node *n, struct slu_err *err);

/* The owner of a shard has changed. epoch: in which the owner took the shard; 0: no living node owns it. owner: NULL
 * if no other node owns it. links NULL is fine. */
void links_set_owner(struct peernet *links, uint32_t shard, uint64_t epoch, const struct members_node *owner);

#endif
