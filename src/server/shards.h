/*
 * shards.h - the shards of a node, as its settings name them, and their map.
 *
 *      settings ──> struct broker_shard_conf a shard, core/shardmap.h
 *      reload   ──> the next map: shards that are new are opened, then ops are routed by it
 *
 *  M1  A map replaces another whole, or not at all. It must have a higher version if
 *      anything in it differs.
 *  M2  A shard that is open keeps its settings; the log names those that wait for a restart.
 *      One that no map names any more stays open until then.
 *  M3  A server does not start when the data folder holds logs and its settings use none of
 *      them: it would come up empty. Logs beside those in use are named by a warning.
 *
 * What the node is told at start and by reloads; one thread at a time.
 */
#ifndef SERVER_SHARDS_H
#define SERVER_SHARDS_H

#include "server/node_in.h"

/* Open the broker. Adds itself to the reload. */
int shards_open(struct node *n, struct slu_err *err);

/* What engines were told: after the broker is closed. */
void shards_close(struct node *n);

/* How many lanes these settings ask for. */
unsigned shards_lanes(const struct conf *conf);

/* The engine of all of them, or "mixed"; standard: of the one by the other settings. */
const char *shards_engine(const struct conf *conf, const struct engine_ops *standard);

/* Is any of them in Redis? */
bool shards_use_redis(const struct conf *conf);

/* The engine that the settings name beside the shards. NULL: there is none. */
const struct engine_ops *shards_standard(const struct node *n, struct slu_err *err);

/* Folders that are not there and cannot be made, addresses that are none, files of TLS that
 * cannot be read. Opens and makes nothing. SLU_EINVAL, SLU_ENOMEM. */
int shards_check(const struct conf *conf, struct slu_err *err);

/* Does what the folders hold fit the number of shards? 0 also if shards_check has found
 * something. SLU_EINVAL. */
int shards_check_stored(const struct conf *conf, struct slu_err *err);

#endif
