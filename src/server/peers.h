/*
 * peers.h - the other nodes that use our shards: compares their maps with ours.
 *
 *      every 2 s, on each shared shard:  read the entries of all nodes ──> write our own
 *
 *  PRESENCE-1  A node is alive if its beat has risen since we first saw it; it is gone if the beat
 *      did not rise for MISSED checks. So the entry of a dead node causes no alarm.
 *  PRESENCE-2  If the map of a live node differs from ours, that is logged once, and again when they
 *      agree. api->disagreements: how many nodes differ now.
 *  PRESENCE-3  An entry of another process under our number means that two nodes have the same
 *      node.id and may give the same ids: logged as an error, and counted in api->twins.
 *
 * Owned by the thread that runs the node.
 */
#ifndef SERVER_PEERS_H
#define SERVER_PEERS_H

#include "server/node_private.h"

#define PEERS_EVERY (2 * SLU_SEC)

/* Handle the last answers, and ask again. False: no shard is shared. */
bool peers_tick(struct node *n);

/* After the broker is closed, which has answered all ops. */
void peers_close(struct node *n);

#endif
