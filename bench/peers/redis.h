/* redis.h - what the two ways of queueing in Redis share. */
#ifndef PEERS_REDIS_H
#define PEERS_REDIS_H

#include "peers/peer.h"
#include "peers/resp.h"

/*
 * Takes one whole reply. `out` is what is in it, still to be read with resp_next; its n is 0
 * when the reply is not whole yet. SLU_EFAILED: it is an error.
 */
int redis_reply(struct peer_conn *c, struct slice *in, struct slice *out, struct slu_err *err);

#endif
