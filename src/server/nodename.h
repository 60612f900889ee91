/*
 * nodename.h - the name, the life and the address of this server in the stores of its shards.
 *
 *  NODENAME-1  The file `node` in the data folder has the name of the server and its last life. The
 *      process that has the file locked is the only one with this name. So the last life has ended,
 *      and its shards need not wait for a lease.
 *  NODENAME-2  A server has one name and one life, in all of its stores.
 *  NODENAME-3  A server without a store leaves the data folder of a running server with stores alone, also
 *      while that server owns no shard: it has no log open then.
 *
 * One thread at a time; the texts stay until nodename_close.
 */
#ifndef SERVER_NODENAME_H
#define SERVER_NODENAME_H

#include "members/beat.h"

struct node;

struct nodename {
	bool is_open;
	int file; /* `node`, locked */
	uint8_t life[LINE_LIFE];
	uint8_t former[LINE_LIFE]; /* NODENAME-1; zeros = none */
	char name[BEAT_NAME_MAX + 1];
	char address[BEAT_ADDRESS_MAX + 1]; /* where clients reach this server */
};

/* Sets n->nodename, unless it is open. The server listens already. Returns SLU_EEXISTS if another
 * process has the data folder, SLU_EDOWN. */
int nodename_open(struct node *n, struct slu_err *err);

void nodename_close(struct nodename *id); /* zeroed is fine */

/* NODENAME-3: for a server without a store. Returns SLU_EEXISTS if a server with stores has the data folder. */
int nodename_check(const char *folder, struct slu_err *err);

#endif
