/*
 * locks_in.h - the keys of a shard, for locks*.c alone.
 *
 *      entries    slab     every key; by name or message in `names`
 *      order      tree     those that have a name, by namespace and key
 *      ends       heap     those with a name that fall due: the end of the lease, or K8
 *      freed      list     for locks_freed
 *      loose      slab     documents that were read before the key that names them
 *      spaces     slab     namespaces that have keys; by name in `space_names`
 */
#ifndef CORE_LOCKS_IN_H
#define CORE_LOCKS_IN_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/tree.h"
#include "core/locks.h"

/* What an entry is looked up by: a name, or (id other than 0) a message. */
struct lock_id {
	struct slice space, key;
	uint64_t id;
};

struct entry {
	uint64_t hash;
	struct lock *lock;
	uint64_t where; /* of its record, or 0 */
	struct tree_node node;
	uint32_t pos;   /* in ends, or HEAP_OUT */
	uint32_t space; /* of a key that has a name */
	bool aside;     /* K11 */
	struct list freed;
};

/* Etags are one counter's, but keys come from other shards with theirs: only with the name
 * of its key an etag says which document it is. */
struct loose {
	uint64_t tag; /* locks_tag */
	uint64_t where;
};

struct lock_space {
	uint64_t hash;
	uint32_t keys;
	uint32_t kept, leased; /* of these: struct locks_kept */
	uint32_t n;
	char name[LOCK_KEY_MAX];
};

struct locks {
	struct locks_conf conf;
	struct slab entries;
	struct map names;
	struct tree order;
	size_t lock_bytes; /* of what the entries point to */
	struct heap ends;
	struct list freed;
	uint32_t of_messages; /* entries that are */
	uint32_t leases;      /* that have not ended, or nobody has noticed */
	struct slab loose;
	struct map loose_etags;
	struct slab spaces;
	struct map space_names;
};

static inline struct entry *
locks_entry(const struct locks *l, uint32_t h)
{
	return slab_at(&l->entries, h);
}

/* For a scan of all handles below entries.fresh: NULL if there is no key of this handle. */
static inline struct lock *
locks_scan_lock(const struct locks *l, uint32_t h)
{
	return slab_has(&l->entries, h) ? locks_entry(l, h)->lock : NULL;
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

/* Would it move, now or when its lease is over? What has neither is only known: K8. */
static inline bool
lock_is_kept(const struct lock *lock)
{
	return lock_is_leased(lock) || lock_has_state(lock);
}

/* locks.c */
uint32_t locks_handle(const struct locks *l, struct slice space, struct slice key,
		      uint64_t id); /* or SLAB_NONE */
uint64_t locks_tag(const struct locks *l, const struct lock_ref *ref, uint64_t etag);
int locks_reserve(struct locks *l); /* one key more: SLU_ENOMEM */
void locks_put_in_place(struct locks *l, uint32_t h, struct lock *next, uint64_t where);
void locks_set_due(struct locks *l, uint32_t h); /* its time has changed */
void locks_forget(struct locks *l, uint32_t h);

/* locks_space.c: a key more or less in a namespace, which is there as long as it has one; and
 * (in) what it is from now on, or was until now. Room for one namespace more is reserved. */
void locks_spaces_init(struct locks *l);
void locks_spaces_release(struct locks *l);
int locks_spaces_reserve(struct locks *l);
uint32_t locks_space_enter(struct locks *l, struct slice name);
void locks_space_leave(struct locks *l, uint32_t h);
void locks_space_count(struct locks *l, uint32_t h, const struct lock *lock, bool in);

#endif
