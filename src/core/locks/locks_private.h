/*
 * locks_private.h - the keys of a shard, for core/locks/ alone.
 *
 *      entries    slab     lock keys and states of messages; `names` finds them
 *      order      tree     lock keys, by namespace and key
 *      ends       heap     lock keys, by the end of the lease or of LOCK_KNOWN
 *      freed      list     lock keys that locks_freed will return
 *      loose      slab     documents that were replayed before the key that names them
 *      spaces     slab     namespaces with lock keys; `space_names` finds them
 */
#ifndef CORE_LOCKS_LOCKS_PRIVATE_H
#define CORE_LOCKS_LOCKS_PRIVATE_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/tree.h"
#include "core/locks/locks.h"

/* The key of an entry in `names`: a name, or (id other than 0) a message. */
struct lock_id {
	struct slice space, key;
	uint64_t id;
};

struct entry {
	uint64_t hash;
	struct lock *lock;
	uint64_t where;        /* place of its record, or 0 */
	struct tree_node node; /* in order */
	uint32_t pos;          /* in ends, or HEAP_OUT */
	uint32_t space;        /* of a lock key: handle in spaces */
	bool aside;            /* LOCK-11 */
	struct list freed;
};

/* A key from another shard brings etags of that shard's counter, so an etag names a document only
 * together with its key: the tag. */
struct loose {
	uint64_t tag; /* locks_tag */
	uint64_t where;
};

struct lock_space {
	uint64_t hash;
	uint32_t keys;         /* lock keys */
	uint32_t kept, leased; /* of these, see struct locks_kept */
	uint32_t n;            /* bytes of name */
	char name[LOCK_KEY_MAX];
};

struct locks {
	struct locks_conf conf;
	struct slab entries;
	struct map names;
	struct tree order;
	size_t lock_bytes; /* of the blocks of all entries */
	struct heap ends;
	struct list freed;
	uint32_t of_messages; /* entries that are states of messages */
	uint32_t leases;      /* of lock keys, whose end no tick has seen */
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

/* For a scan of all handles below entries.fresh: NULL if the handle is free. */
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

/* Returns whether its lease is valid at the moment now. */
static inline bool
lock_is_held(const struct lock *lock, slu_time now)
{
	return lock->token && !lock->over && lock->until > now;
}

/* Returns whether it has a lease or a state, so that a move takes it along. A key without either is
 * only remembered (LOCK-8). */
static inline bool
lock_is_kept(const struct lock *lock)
{
	return lock_is_leased(lock) || lock_has_state(lock);
}

/* locks.c */
uint32_t locks_handle(const struct locks *l, struct slice space, struct slice key,
		      uint64_t id); /* or SLAB_NONE */
uint64_t locks_tag(const struct locks *l, const struct lock_ref *ref, uint64_t etag);
int locks_reserve(struct locks *l); /* for one more key; SLU_ENOMEM */
void locks_put_in_place(struct locks *l, uint32_t h, struct lock *next, uint64_t where);
void locks_set_due(struct locks *l, uint32_t h); /* after its lease or LOCK_KNOWN has changed */
void locks_forget(struct locks *l, uint32_t h);

/* space.c: namespaces, which exist while they have a key. enter and leave add and remove a key;
 * count adds (in) or removes its part of struct locks_kept; reserve makes room for one more
 * namespace. */
void locks_spaces_init(struct locks *l);
void locks_spaces_release(struct locks *l);
int locks_spaces_reserve(struct locks *l);
uint32_t locks_space_enter(struct locks *l, struct slice name);
void locks_space_leave(struct locks *l, uint32_t h);
void locks_space_count(struct locks *l, uint32_t h, const struct lock *lock, bool in);

#endif
