/*
 * locks_in.h - the keys of a shard, for locks*.c alone.
 *
 *      entries    slab     every key; by name or message in `names`
 *      order      tree     those that have a name, by namespace and key
 *      ends       heap     those with a name that fall due: the end of the lease, or K8
 *      freed      list     for locks_freed
 *      loose      slab     documents that were read before the key that names them
 */
#ifndef CORE_LOCKS_IN_H
#define CORE_LOCKS_IN_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/tree.h"
#include "core/locks.h"

struct entry {
	uint64_t hash;
	struct lock *lock;
	uint64_t where; /* of its record, or 0 */
	struct tree_node node;
	uint32_t pos; /* in ends, or HEAP_OUT */
	bool aside;   /* K11 */
	struct list freed;
};

/* Etags are one counter's, but keys come from other shards with theirs: only with the name
 * of its key an etag says which document it is. */
struct loose {
	uint64_t tag; /* locks_tag */
	uint64_t where;
};

struct locks {
	struct locks_conf conf;
	struct slab entries;
	struct map names;
	struct tree order;
	struct heap ends;
	struct list freed;
	uint32_t of_messages; /* entries that are */
	uint32_t leases;      /* that have not ended, or nobody has noticed */
	struct slab loose;
	struct map loose_etags;
};

static inline struct entry *
locks_entry(const struct locks *l, uint32_t h)
{
	return slab_at(&l->entries, h);
}

static inline void
locks_drop(const struct locks *l, uint64_t where)
{
	if (where && l->conf.drop)
		l->conf.drop(l->conf.drop_arg, where);
}

/* Does its lease give any right at the moment now? */
static inline bool
lock_is_held(const struct lock *lock, slu_time now)
{
	return lock->token && !lock->over && lock->until > now;
}

/* locks.c */
uint32_t locks_handle(const struct locks *l, struct slice space, struct slice key,
		      uint64_t id); /* or SLAB_NONE */
uint64_t locks_tag(const struct locks *l, const struct lock_ref *ref, uint64_t etag);
int locks_reserve(struct locks *l); /* one key more: SLU_ENOMEM */
void locks_put_in_place(struct locks *l, uint32_t h, struct lock *next, uint64_t where);
void locks_set_due(struct locks *l, uint32_t h); /* its time has changed */
void locks_forget(struct locks *l, uint32_t h);

#endif
