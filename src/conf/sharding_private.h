/*
 * sharding_private.h - the entries of `shards`, for sharding*.c: sharding_shard.c.
 */
#ifndef CONF_SHARDING_PRIVATE_H
#define CONF_SHARDING_PRIVATE_H

#include "conf/sharding.h"

/* Take the entry `rest`, "heavy.address", of the file. alias: see struct sharding_shard. */
void sharding_take_shard(struct sharding *s, const struct engine_ops *alias, const char *rest,
			 const struct yaml_entry *e, struct conf_faults *faults);

/* The fields of every shard become values of its rows. */
void sharding_settle(struct conf *c, struct conf_faults *faults);

void sharding_print_shards(const struct sharding *s, FILE *out);
void sharding_shard_free(struct sharding_shard *s); /* NULL is fine */

#endif
