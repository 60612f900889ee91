/*
 * sharding.h - the parts of a configuration that name shards: the shards, and the shard of
 * each queue.
 *
 *      sharding:                          shards:
 *        enabled: true                      heavy:
 *        version: 2                           engine: redis
 *        defaultShard: default                address: redis-2:6379
 *        commandMappings:                     password: ${HEAVY_PASSWORD}
 *          render: heavy                      poolSize: 4
 *        tenantOverrides:                   local:
 *          acme: local                        engine: log
 *        previousShards:
 *          commandMappings:
 *            render: default
 *
 * A setting with one value (sharding.enabled, supplier, defaultShard, version, ...) is a row of
 * options.c. This module has the settings with any number of entries.
 *
 *  SHARDING-1  The other settings (engine, data, shards, the engine's own) describe the shard `default`,
 *      unless `shards` has an entry of that name. The shard exists if something names it.
 *  SHARDING-2  Loading finds all faults at once, and each names both sides: the mapping and the shard.
 *  SHARDING-3  previousShards holds where queues lived before. With a defaultShard, or with a supplier
 *      other than static, it is a whole mapping; otherwise it holds what differs from the mapping
 *      in force.
 *  SHARDING-4  Without sharding.enabled all queues live on defaultShard: loading checks the mappings and
 *      does not use them. A configuration without shards has no map.
 *  SHARDING-5  No output shows secrets.
 *  SHARDING-6  An entry of `shards` has the rows below and the rows of its engine (engine/engine.h). The
 *      engine is named by `engine` beside the shards, unless the entry names another.
 *      `<engine>.shards.<name>` is another spelling of `shards.<name>` in which <engine> is the
 *      default: redis.shards.heavy.
 */
#ifndef CONF_SHARDING_H
#define CONF_SHARDING_H

#include "base/option/option.h"
#include "conf/faults.h"
#include "core/shardmap.h"
#include "engine/engine.h"

#include <stdio.h>

struct conf;
struct yaml_entry;

enum {
	SHARDING_SHARDS = 256,
	SHARDING_POOL = 256 /* connections of one node to a shard */
};

/* Words of sharding.supplier and sharding.rangeBy. */
extern const char *const sharding_suppliers[];
extern const char *const sharding_range_by[];

/* One setting of a shard, while the file is read: its engine may come later. */
struct sharding_field {
	char *key, *value, *path;
	unsigned line;
};

/* One entry of `shards`. Texts that are not set are NULL. */
struct sharding_shard {
	char name[SHARDMAP_NAME];
	unsigned line;                   /* of the file; 0: `default`, by the other settings */
	const struct engine_ops *engine; /* NULL: line is 0 */
	const struct engine_ops *alias;  /* SHARDING-6: the engine of the other spelling; NULL: not used */
	char *engine_name;
	uint32_t pool; /* lanes */
	char *folder;
	void *options;  /* values of the engine's own rows; NULL: it has none */
	char **origins; /* a row each: the rows of every shard, then the engine's */

	/* Until sharding_check. */
	struct sharding_field *fields;
	unsigned n_fields;
};

struct sharding_rule {
	enum supplier_by by;
	char *name;  /* as it is written; folded when it was checked */
	char *shard; /* the same */
	unsigned line;
};

/* Who lives where. */
struct sharding_layout {
	char *supplier; /* NULL: static; of the one in force: a row of options.c has it */
	char *standard; /* the same */
	char *range_by; /* the same */
	struct sharding_rule *rules;
	unsigned n_rules;
	char *shards[SHARDING_SHARDS]; /* hash, ring: those to choose from; none: all, by name */
	unsigned n_shards;
	bool said; /* there is something */
};

struct sharding {
	unsigned refs;
	const struct engine_ops *const *engines;
	const char *file;                               /* while it is read */
	struct sharding_shard *shards[SHARDING_SHARDS]; /* by name, once checked */
	unsigned n_shards;
	struct sharding_layout now, before;
	struct conf_faults warnings; /* what is odd and not wrong */
};

/* One reference. engines: the table (engine/engine.h), borrowed. NULL: no memory. */
struct sharding *sharding_new(const struct engine_ops *const *engines);
struct sharding *sharding_ref(struct sharding *s);
void sharding_unref(struct sharding *s); /* NULL is fine */

/* True if the entry of the file is for sharding_take. */
bool sharding_is_part(const struct sharding *s, const char *path);
void sharding_take(struct sharding *s, const char *file, const struct yaml_entry *e,
		   struct conf_faults *faults);

/* When all values are there: SHARDING-2. Adds the shard `default` if something names it. */
void sharding_check(struct conf *c, struct conf_faults *faults);

/* Does a setting name shards? SHARDING-4 */
bool sharding_is_used(const struct conf *c);

/* The map of checked settings; of that version. Returns SLU_ENOMEM. */
int sharding_map(const struct conf *c, uint64_t version, struct shardmap **out,
		 struct slu_err *err);

/* Finds the entry of a shard by its name. Returns NULL if the settings do not have it. */
const struct sharding_shard *sharding_find(const struct sharding *s, const char *name);

/* Where a setting of the shard was set, "FILE:LINE". Returns NULL if it has its default. key: one of the
 * settings that every shard has. */
const char *sharding_origin(const struct sharding_shard *s, const char *key);

/* The first setting that differs, or NULL. */
const char *sharding_differs(const struct sharding_shard *a, const struct sharding_shard *b);

/* As YAML, for --print-config. */
void sharding_print(const struct sharding *s, FILE *out);

/* Tables of a shard's settings, for docs/config.md. */
void sharding_doc(const struct engine_ops *const *engines, FILE *out);

#endif
