/*
 * sharding.h - the parts of a configuration that name shards: which there are, and which
 * queue lives on which.
 *
 *      sharding:                          redis:
 *        enabled: true                      shards:
 *        version: 2                           heavy:
 *        defaultShard: default                  address: redis-2:6379
 *        commandMappings:                       password: ${HEAVY_PASSWORD}
 *          render: heavy                        poolSize: 4
 *        tenantOverrides:                     local:
 *          acme: local                          engine: log
 *        previousShards:
 *          commandMappings:
 *            render: default
 *
 * What has one value (sharding.enabled, supplier, defaultShard, version, ...) is a row of
 * options.c as any other setting; here is what has as many entries as somebody likes.
 *
 *  G1  The shard called `default` is what the other settings say (engine, data, redis.*,
 *      shards), unless redis.shards has one of that name. It is there if something names it.
 *  G2  All faults are found at once, and each names both sides: what is mapped, and to
 *      which shard.
 *  G3  previousShards says where queues lived before. With a defaultShard, or with a
 *      supplier other than static, it is a whole mapping of its own; else it says what
 *      differs from the one in force.
 *  G4  Without sharding.enabled all queues live on defaultShard: mappings are checked and not
 *      used. Where nobody speaks of shards at all there is no map.
 *  G5  Secrets are shown nowhere.
 */
#ifndef CONF_SHARDING_H
#define CONF_SHARDING_H

#include "conf/faults.h"
#include "conf/option.h"
#include "core/shardmap.h"

#include <stdio.h>

struct conf;
struct yaml_entry;

enum {
	SHARDING_SHARDS = 256,
	SHARDING_POOL = 256 /* connections of one node to a shard */
};

enum sharding_engine {
	SHARDING_REDIS,
	SHARDING_LOG,
	SHARDING_MEMORY
};

/* Words of sharding.supplier and sharding.rangeBy. */
extern const char *const sharding_suppliers[];
extern const char *const sharding_range_by[];

/* One of redis.shards. Texts that need not be set are NULL when they are not. */
struct sharding_shard {
	char name[SHARDMAP_NAME];
	unsigned line; /* of the file; 0: `default`, by the other settings */
	enum sharding_engine engine;
	char *address, *username, *password;
	uint32_t db;
	uint32_t pool; /* lanes */
	char *prefix;
	slu_time timeout;
	bool tls;
	char *tls_ca, *tls_cert, *tls_key, *tls_name;
	char *folder;
	char *origins[16]; /* a row each */
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
	const char *file;                               /* while it is read */
	struct sharding_shard *shards[SHARDING_SHARDS]; /* by name, once checked */
	unsigned n_shards;
	struct sharding_layout now, before;
	struct conf_faults warnings; /* what is odd and not wrong */
};

struct sharding *sharding_new(void); /* NULL: no memory. One reference */
struct sharding *sharding_ref(struct sharding *s);
void sharding_unref(struct sharding *s); /* NULL is fine */

/* Is the entry of the file one of ours? Then take it. */
bool sharding_is_part(const char *path);
void sharding_take(struct sharding *s, const char *file, const struct yaml_entry *e,
		   struct conf_faults *faults);

/* When all values are there: G2. Adds the shard `default` if something names it. */
void sharding_check(struct conf *c, struct conf_faults *faults);

/* Does anybody speak of shards? G4 */
bool sharding_is_used(const struct conf *c);

/* The map of checked settings; of that version. SLU_ENOMEM. */
int sharding_map(const struct conf *c, uint64_t version, struct shardmap **out,
		 struct slu_err *err);

/* NULL: there is none. */
const struct sharding_shard *sharding_find(const struct sharding *s, const char *name);

/* The first setting that differs, or NULL. */
const char *sharding_differs(const struct sharding_shard *a, const struct sharding_shard *b);

/* As YAML, for --print-config. */
void sharding_print(const struct sharding *s, FILE *out);

/* Settings of a shard, for docs/config.md. */
void sharding_doc(FILE *out);

#endif
