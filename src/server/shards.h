/*
 * shards.h - the shards of a node and their map, by its settings.
 *
 *      settings ──> struct broker_shard_conf per shard, core/shardmap.h
 *      reload   ──> the next map: opens new shards, then routes ops by the map
 *
 *  SHARDS-1  A map replaces another as a whole. It must have a higher version if anything in it
 *      differs.
 *  SHARDS-2  An open shard keeps its settings; the log names changed ones, which need a restart.
 *      A shard that no map names any more stays open until the restart.
 *  SHARDS-3  A server does not start if the data folder has logs and the settings use none of
 *      them: it would seem empty. The log warns of logs that no shard uses.
 *
 * One thread at a time.
 */
#ifndef SERVER_SHARDS_H
#define SERVER_SHARDS_H

#include "server/node_private.h"

/* Makes the data folder. */
int shards_make_data(const struct node *n, struct slu_err *err);

/* Open the broker, and add a part to reload. */
int shards_open(struct node *n, struct slu_err *err);

/* Free the configurations of the engines. After the broker is closed. */
void shards_close(struct node *n);

/* The number of lanes of these settings. */
unsigned shards_lanes(const struct conf *conf);

/* The name of the engine of all shards, or "mixed". standard: the engine of `default`. */
const char *shards_engine(const struct conf *conf, const struct engine_ops *standard);

/* The first engine in use for which `has` returns false, or NULL. */
const struct engine_ops *shards_without(const struct conf *conf, bool (*has)(const struct engine_ops *engine));

/* The engine that the setting `engine` names. */
const struct engine_ops *shards_standard(const struct node *n);

/* SLU_EINVAL if a folder cannot be created, an address is invalid, or a TLS file cannot be read.
 * Opens and creates nothing. Returns SLU_ENOMEM. */
int shards_check(const struct conf *conf, struct slu_err *err);

/* SLU_EINVAL if the folders were written with another number of shards. 0 if shards_check
 * fails. */
int shards_check_stored(const struct conf *conf, struct slu_err *err);

#endif
