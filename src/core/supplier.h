/*
 * supplier.h - who says on which shard a queue lives.
 *
 *      namespace, queue ──> current    the shard that takes its new messages
 *                      └──> all        every shard that may hold some of it
 *
 * A supplier answers these two questions and nothing else; the names it gives are
 * those of the shards that are configured, which core/shardmap.h knows. These come
 * with Sluice:
 *
 *      default   every queue lives on one shard
 *      static    by tenant, else by command, else the default shard
 *      hash      FNV-1a of namespace, '/', queue, modulo the number of shards
 *      ring      consistent hashing: one shard more moves about 1/N of the queues
 *      range     by where the name of the queue (or namespace) lies in the alphabet
 *
 * Others bring a table of their own:
 *
 *         static const struct supplier_ops by_region = {
 *                 "region", region_current, region_all, region_describe, region_free,
 *         };
 *
 * and run tests/unit/supplier_contract.h, which is the definition of "correct":
 *
 *  P1  The answers depend on the names alone: the same on every node, at any time.
 *  P2  A supplier never changes once made, so any thread may ask it.
 *  P3  `current` is the first of `all`; none is named twice.
 *  P4  A refusal is a code with a sentence, and nothing is named. None of all is not a
 *      refusal: it means the default shard.
 *  P5  Two suppliers that describe themselves alike answer alike.
 *
 * Names come folded (core/names.h).
 */
#ifndef CORE_SUPPLIER_H
#define CORE_SUPPLIER_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	SUPPLIED_MAX = 8 /* shards that may hold messages of one queue */
};

/* A shard, and the rule that chose it: "tenant", "command", "default", "hash". Both live
 * as long as the supplier. */
struct supplied {
	const char *shard;
	const char *rule;
};

struct supplier {
	const struct supplier_ops *ops; /* first member of every supplier's struct */
};

struct supplier_ops {
	const char *name; /* the word users write: `supplier: static` */

	int (*current)(const struct supplier *s, struct slice space, struct slice queue,
		       struct supplied *out, struct slu_err *err);

	/* *n of them, 0 .. SUPPLIED_MAX. */
	int (*all)(const struct supplier *s, struct slice space, struct slice queue,
		   struct supplied out[SUPPLIED_MAX], unsigned *n, struct slu_err *err);

	/* Append all that its answers depend on, as text: P5. */
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
	const char *name; /* folded; FROM: any text */
	const char *shard;
};

struct supplier_conf {
	const char *kind;                  /* NULL: default */
	const char *standard;              /* default, static, range: where all others live */
	const struct supplier_rule *rules; /* static, range: in any order */
	unsigned n_rules;
	const char *const *shards; /* hash, ring: in this order */
	unsigned n_shards;
	bool by_tenant; /* range: of namespaces, not of queues */
};

/*
 * Copies all it is given.
 *   SLU_EINVAL  no such kind, no shard to choose, or a name that is there twice
 *   SLU_ENOMEM
 */
int supplier_new(struct supplier **out, const struct supplier_conf *conf,
		 struct slu_err *err);
void supplier_free(struct supplier *s); /* NULL is fine */

/* FNV-1a of namespace, '/', queue: the same in every release. */
uint32_t supplier_hash(struct slice space, struct slice queue);

#endif
