/*
 * status_owners.h - the owners of shards in a store, out of /metrics: a part of `sluice status`.
 *
 *      sluice_shard_owner_info{shard="0",node="vm-1",address="http://10.0.0.1:7171"} 1
 *      sluice_shard_owned{shard="0"} 1
 *      sluice_shard_epoch{shard="0"} 4
 *      sluice_shard_unconfirmed_bytes{shard="0"} 0
 */
#ifndef CLI_SERVER_STATUS_OWNERS_H
#define CLI_SERVER_STATUS_OWNERS_H

#include "base/json/json_out.h"

struct status_owner {
	char shard[140];    /* "0", or with a lane "heavy/0" */
	char address[260];  /* of the owner; "" = no living node owns the shard */
	bool here;          /* the server owns it */
	uint64_t epoch;     /* 0 = no living node owns the shard */
	int64_t groups;     /* on their way to the store; -1 = another node knows */
	int64_t bytes;      /* of these groups */
	double unconfirmed; /* seconds: how long the oldest has been on its way */
};

/* Zeroed = empty. */
struct status_owners {
	struct status_owner *rows;
	size_t n;
};

/* Reads a line of /metrics; other lines and a lack of memory change nothing. */
void status_owners_take(struct status_owners *o, struct slice line);
void status_owners_release(struct status_owners *o);

/* Writes the array "owners", or null if the server has no store. */
void status_owners_put(const struct status_owners *o, struct json_out *w);

/* Prints a line for each owner: its shards and their epochs, "0@4 3@1". */
void status_owners_print(const struct status_owners *o);

#endif
