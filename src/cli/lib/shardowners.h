/*
 * shardowners.h - the owners of shards in a store, out of /metrics: a part of `sluice status` and `sluice top`.
 *
 *      sluice_shard_owner_info{shard="0",node="vm-1",address="http://10.0.0.1:7171"} 1
 *      sluice_shard_owned{shard="0"} 1
 *      sluice_shard_epoch{shard="0"} 4
 *      sluice_shard_unconfirmed_bytes{shard="0"} 0
 */
#ifndef CLI_LIB_SHARDOWNERS_H
#define CLI_LIB_SHARDOWNERS_H

#include "base/json/json_out.h"

struct shardowner {
	char shard[140];    /* "0", or with a lane "heavy/0" */
	char address[260];  /* of the owner; "" = no living node owns the shard */
	bool here;          /* the server owns it */
	uint64_t epoch;     /* 0 = no living node owns the shard */
	int64_t groups;     /* on their way to the store; -1 = another node knows */
	int64_t bytes;      /* of these groups */
	double unconfirmed; /* seconds: how long the oldest has been on its way */
};

/* Zeroed = empty. */
struct shardowners {
	struct shardowner *rows;
	size_t n;
};

/* Reads a line of /metrics; other lines and a lack of memory change nothing. */
void shardowners_take(struct shardowners *o, struct slice line);
void shardowners_read(struct shardowners *o, struct slice text); /* all lines */
void shardowners_release(struct shardowners *o);

/* Writes the array "owners", or null if the server has no store. */
void shardowners_put(const struct shardowners *o, struct json_out *w);

/* Appends a line for each owner: its shards and their epochs, "owner       http://10.0.0.1:7171: 0@4 3@1". */
void shardowners_text(const struct shardowners *o, struct buf *out);

#endif
