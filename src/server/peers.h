/*
 * peers.h - the other nodes that use our shards: do they have the same map?
 *
 *      every 2 s, on each shard that is shared:  who was here ──> leave our own name
 *
 *  N1  A node lives if its beat has risen since we saw it first; it is gone when it did not
 *      rise for a few looks. So what a node that is gone has left behind alarms nobody.
 *  N2  A map that differs from ours, of a node that lives, is logged once, and once more when
 *      they agree again. How many there are now is in api->disagreements.
 *  N3  Somebody else's name under our own number means that two nodes have the same node.id,
 *      and may give the same ids: said loudly, api->twins.
 *
 * Owned by the thread that runs the node.
 */
#ifndef SERVER_PEERS_H
#define SERVER_PEERS_H

#include "server/node_in.h"

#define PEERS_EVERY (2 * SLU_SEC)

/* Hear who was there, and ask again. False: no shard is shared. */
bool peers_tick(struct node *n);

/* After the broker is closed: it has answered all that was asked. */
void peers_close(struct node *n);

#endif
