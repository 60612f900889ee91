/*
 * supplier.h - chooses the shard of a queue.
 *
 *      namespace, queue ──> current    the shard for new messages
 *                      └──> all        every shard that may have messages
 *
 * A supplier returns names of shards; core/shardmap.h has the numbers. Sluice has these:
 *
 *      default   every queue lives on one shard
 *      static    by tenant, else by command, else the default shard
 *      hash      FNV-1a of namespace, '/', queue, modulo the number of shards
 *      ring      consistent hashing: one more shard moves about 1/N of the queues
 *      range     by the name of the queue (or namespace) in the order of bytes
 *
 * Another supplier is a table of its own:
 *
 *         static const struct supplier_ops by_region = {
 *                 "region", region_current, region_all, region_describe, region_free,
 *         };
 *
 * It is correct if it passes tests/unit/core/supplier_contract.h:
 *
 *  SUPPLIER-1  The result depends on the names alone: the same on every node, at any time.
 *  SUPPLIER-2  A supplier never changes, so any thread may call it.
 *  SUPPLIER-3  `current` is the first of `all`; `all` has no shard twice.
 *  SUPPLIER-4  A failure is a code with a text, and no shard. An empty `all` is not a failure: it
 *              means the default shard.
 *  SUPPLIER-5  Two suppliers with the same description give the same results.
 *
 * Names are folded (core/names.h).
 */
#ifndef CORE_SUPPLIER_H
#define CORE_SUPPLIER_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	SUPPLIED_MAX = 8 /* shards that may hold messages of one queue */
};

/* A shard, and the rule that chose it: "tenant", "command", "default", "hash". Both are valid as
 * long as the supplier. */
struct supplied {
	const char *shard;
	const char *rule;
};

struct supplier {
	const struct supplier_ops *ops; /* first member of every supplier's struct */
};

struct supplier_ops {
	const char *name; /* in the settings: `supplier: static` */

	int (*current)(const struct supplier *s, struct slice space, struct slice queue,
		       struct supplied *out, struct slu_err *err);

	/* Fills in *n shards, 0 .. SUPPLIED_MAX. */
	int (*all)(const struct supplier *s, struct slice space, struct slice queue,
		   struct supplied out[SUPPLIED_MAX], unsigned *n, struct slu_err *err);

	/* Appends a text of everything that its results depend on: SUPPLIER-5. */
	void (*describe)(const struct supplier *s, struct buf *out);

	void (*free)(struct supplier *s);
};

enum supplier_by {
	SUPPLIER_TENANT,  /* static: this namespace */
	SUPPLIER_COMMAND, /* static: this queue, in any namespace */
	SUPPLIER_FROM     /* range: from this name on */
};

struct supplier_rule {
	enum supplier_by by;
	const char *name; /* folded; SUPPLIER_FROM: any text */
	const char *shard;
};

struct supplier_conf {
	const char *kind;                  /* NULL: default */
	const char *standard;              /* default, static, range: the shard of all others */
	const struct supplier_rule *rules; /* static, range: in any order */
	unsigned n_rules;
	const char *const *shards; /* hash, ring: in this order */
	unsigned n_shards;
	bool by_tenant; /* range: of namespaces instead of queues */
};

/*
 * Copies conf and all it points to. Returns SLU_ENOMEM, or SLU_EINVAL if the kind is unknown, there
 * is no shard to choose, or a name is not unique.
 */
int supplier_new(struct supplier **out, const struct supplier_conf *conf,
		 struct slu_err *err);
void supplier_free(struct supplier *s); /* NULL is fine */

/* FNV-1a of namespace, '/', queue: the same in every release. */
uint32_t supplier_hash(struct slice space, struct slice queue);

#endif
