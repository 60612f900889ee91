/*
 * ledger_in.h - the state of a ledger, for ledger*.c alone.
 *
 *      spaces, topics     by name      a topic is a queue and what belongs to it
 *      msgs               by id        every message
 *      keys               by hash      every ordering key that a message has
 *      deadlines          heap         leased messages, by the end of the lease
 *      ttls               heap         messages that will expire and are not leased
 *      agenda             heap         topics, by when they want to be looked at
 *
 *  I1  A topic's wake is no later than anything of it falls due. It may be earlier:
 *      what was taken away since is noticed when the time comes.
 *  I2  A key that has a line or a head has a head, but for one that waits for a purge
 *      to free what is first in its line. A head is READY, LEASED or DELAYED.
 *  I3  There is room in `deadlines` and for a lease for one more, once deciding has
 *      said so; in `ttls` for every message with a ttl; in a topic's two heaps for
 *      every message of it.
 *  I4  A purge swaps the topic's heaps for new ones. What is in the old ones (trash),
 *      and what is HELD with a number up to `purged`, is not there any more for
 *      anybody; it is not counted; its memory is freed step by step, lines first.
 */
#ifndef CORE_LEDGER_IN_H
#define CORE_LEDGER_IN_H

#include "base/map.h"
#include "core/chain.h"
#include "core/idem.h"
#include "core/owners.h"
#include "core/results.h"
#include "core/shun.h"

struct space {
	uint64_t hash;
	char *name;
	char *shown; /* NULL: as the name is */
	uint64_t messages;
	uint64_t bytes;
	uint32_t queues;
	bool changed;          /* for ledger_space_changed, as the next */
	uint32_t next_changed; /* or SLAB_NONE */
};

/* An ordering key: at most 64 bytes with its slot in the map. */
struct key {
	uint64_t hash;
	uint32_t topic;
	uint32_t head; /* in the queue, or handed out; or SLAB_NONE */
	struct chain line;
	uint32_t refs;       /* messages that have it, in whatever state */
	uint32_t idle;       /* of these: dead or damaged */
	uint32_t taken : 31; /* of the others: set aside; then all of them are */
	uint32_t picked : 1; /* a batch that is being chosen has it */
	uint32_t prev, next; /* keys of the topic, in one of its two lists */
};

_Static_assert(sizeof(struct key) <= 64 - 11, "a key is small");

/* The lists of a topic's keys: those behind whose head nobody waits, and those with a line.
 * Held messages are found through the second, however many keys there are. */
enum key_list {
	KEYS_PLAIN,
	KEYS_LINED,
	KEY_LISTS
};

/* What a key is looked up by. */
struct key_name {
	uint64_t hash;
	uint32_t topic;
};

struct topic {
	struct queue queue;
	struct policy policy;
	uint64_t hash;
	struct hash_key secret; /* of its keys */
	uint32_t handle;        /* its own */
	uint32_t space;
	char *name;
	char *shown; /* NULL: as the name is */
	uint32_t count[MSG_STATES];
	struct ledger_totals totals;
	struct chain dead;
	struct chain damaged;
	uint32_t leased;          /* the first leased message, or SLAB_NONE */
	uint32_t keys[KEY_LISTS]; /* the first of each list; new ones come before it */
	bool has_policy;
	bool woken;          /* for ledger_woken, as the next */
	uint32_t next_woken; /* or SLAB_NONE */

	slu_time full; /* its bucket: core/bucket.h */
	slu_time used; /* when it was used last; 0: it is not known */

	bool deep;             /* as ledger_deep told it last */
	bool weighed;          /* for ledger_deep, as the next */
	uint32_t next_weighed; /* or SLAB_NONE */

	slu_time wake; /* I1; SLU_NEVER: not in the agenda */
	uint32_t pos;  /* in the agenda */

	/* I4 */
	bool purging;
	struct queue trash;
	struct queue spare; /* the heaps to swap in, made when a purge is decided */
	uint64_t purged;
	uint32_t purge_key;      /* the next key with a line to look at */
	slu_time purge_remember; /* their idempotency keys, until */

	size_t bytes;          /* of its heaps, as ledger_count_topic saw them last */
	uint32_t remembered;   /* idempotency keys whose messages are gone */
	uint32_t results;      /* of messages that are gone */
	struct moving *moving; /* what is known of its moves, or NULL */
};

/* A batch that is set aside. Its messages have their states and are counted, but are in no
 * heap, line or chain. */
struct batch_item {
	uint64_t id;
	uint64_t hash; /* of a key */
	slu_time expires;
	uint32_t msg;
	uint16_t check;
};

struct batch {
	uint64_t number;
	uint64_t where;
	char whom[LEDGER_SHARD]; /* V6 */
	enum batch_kind what;
	uint32_t n;
	uint32_t room;
	struct batch_item items[];
};

/* The last batch that came from a shard, or was refused. */
struct given {
	char peer[LEDGER_SHARD];
	uint64_t batch;
	bool refused;
	uint64_t where;
};

struct moving {
	uint64_t epoch; /* of the mark; 0: there is none */
	char lives[LEDGER_SHARD];
	uint64_t where; /* of the mark */
	struct batch *batch;
	struct batch *next; /* memory for the one that was decided */
	struct given *given;
	uint32_t n_given;
	uint32_t max_given;
};

struct ledger {
	struct ledger_conf conf;
	uint64_t counter;
	uint64_t highest_id; /* of any message that ever was here */
	slu_time now;        /* of the last change; never back */
	struct ledger_limits limits;
	uint32_t rated;  /* topics whose policy has a rate */
	uint32_t marked; /* topics that live elsewhere */

	struct slab msgs;
	struct map ids;
	struct slab leases;
	struct slab more;
	struct heap deadlines;
	struct heap ttls;
	uint32_t with_ttl; /* messages that have one, leased or not */

	struct slab spaces;
	struct map space_names;
	struct slab topics;
	struct map topic_names;
	uint32_t woken;   /* the first of those topics, or SLAB_NONE */
	uint32_t weighed; /* the same */
	uint32_t changed; /* the same of spaces */
	uint32_t found;   /* the topic that was asked for last, or SLAB_NONE: names come in runs */
	struct heap agenda;
	size_t topic_bytes; /* of the heaps of all topics */
	uint32_t look;      /* the next topic that may be idle, while they are looked at; else 0 */
	slu_time look_at;   /* when that begins again */
	struct ledger_totals forgotten;

	struct slab keys;
	struct map key_hashes;

	struct idem idem;
	struct shun shun;     /* L13 */
	struct owners owners; /* of leases */
	struct results results;
};

static inline struct msg *
ledger_msg(const struct ledger *l, uint32_t h)
{
	return slab_at(&l->msgs, h);
}

/* For a scan of all handles below msgs.fresh: NULL if there is no message of this handle. */
static inline struct msg *
ledger_scan_msg(const struct ledger *l, uint32_t h)
{
	return slab_has(&l->msgs, h) && msg_state(ledger_msg(l, h)) != MSG_NONE ? ledger_msg(l, h)
										: NULL;
}

static inline struct topic *
ledger_topic(const struct ledger *l, uint32_t h)
{
	return slab_at(&l->topics, h);
}

static inline bool
ledger_has_topic(const struct ledger *l, uint32_t h)
{
	return h < l->topics.fresh && slab_has(&l->topics, h) && ledger_topic(l, h)->name;
}

static inline struct key *
ledger_key(const struct ledger *l, uint32_t h)
{
	return slab_at(&l->keys, h);
}

static inline struct lease *
ledger_lease(const struct ledger *l, const struct msg *m)
{
	return slab_at(&l->leases, m->link);
}

/* The next leased message of the queue, or SLAB_NONE. */
static inline uint32_t
ledger_lease_next(const struct ledger *l, uint32_t h)
{
	return ledger_lease(l, ledger_msg(l, h))->next;
}

static inline struct more *
ledger_more(const struct ledger *l, const struct msg *m)
{
	return slab_at(&l->more, m->more);
}

/* The key of a keyed message. */
static inline struct key *
ledger_key_of(const struct ledger *l, const struct msg *m)
{
	return ledger_key(l, m->home);
}

static inline uint32_t
ledger_home(const struct ledger *l, const struct msg *m)
{
	return m->flags & MSG_KEYED ? ledger_key_of(l, m)->topic : m->home;
}

static inline struct topic *
ledger_topic_of(const struct ledger *l, const struct msg *m)
{
	return ledger_topic(l, ledger_home(l, m));
}

static inline slu_time
node_time(const struct heap *h, uint32_t pos)
{
	return (slu_time)rank_time((int64_t)h->nodes[pos].b);
}

static inline slu_time
first_time(const struct heap *h)
{
	return h->n ? node_time(h, 0) : SLU_NEVER;
}

/* What max_depth and warn_depth count. */
static inline uint32_t
ledger_depth(const struct topic *t)
{
	return t->count[MSG_READY] + t->count[MSG_DELAYED] + t->count[MSG_LEASED] +
	       t->count[MSG_HELD];
}

/* L12 */
static inline void
ledger_drop(const struct ledger *l, uint64_t where)
{
	if (where && l->conf.drop)
		l->conf.drop(l->conf.drop_arg, where);
}

/* a + b without overflow; both 0 or more. */
static inline slu_time
later(slu_time a, slu_time b)
{
	return a > SLU_NEVER - b ? SLU_NEVER : a + b;
}

static inline uint32_t
ledger_max_attempts(const struct topic *t, const struct msg *m)
{
	return m->max_attempts ? m->max_attempts : t->policy.max_attempts;
}

/* ledger.c: make a message known by its id, for which room was reserved, or not. */
void ledger_list(struct ledger *l, uint32_t h);
void ledger_unlist(struct ledger *l, uint32_t h);

/* With those that were purged and not freed yet. */
uint32_t ledger_find_raw(const struct ledger *l, uint64_t id);

/* ledger_move.c: the end of a ttl, kept in a heap or, while leased, in the lease. */
slu_time ledger_expires(const struct ledger *l, const struct msg *m);
void ledger_ttl_start(struct ledger *l, uint32_t h, slu_time expires);
void ledger_ttl_stop(struct ledger *l, uint32_t h);

/* From state to state. These do not look at lines. */
void ledger_leave(struct ledger *l, struct topic *t, uint32_t h);
void ledger_enter(struct ledger *l, struct topic *t, uint32_t h, enum msg_state to);
void ledger_enter_lease(struct ledger *l, struct topic *t, uint32_t h,
			const struct lease *lease, slu_time until);
void ledger_set_deadline(struct ledger *l, uint32_t h, slu_time until);

/* Into the state it belongs to at the moment now, by its due and its line. */
void ledger_settle(struct ledger *l, struct topic *t, uint32_t h, slu_time now);

/* Make up to max delayed messages whose due has come ready; returns how many. */
uint32_t ledger_promote(struct ledger *l, struct topic *t, slu_time now, uint32_t max);

/* A message that has left its state is no more. remember: until when its idempotency
 * key is known, or 0. The room in its topic's heaps is the caller's to give back. */
void ledger_forget(struct ledger *l, uint32_t h, slu_time remember);

/* ledger_line.c: keys. */
int ledger_key_reserve(struct ledger *l, uint32_t topic, uint64_t hash);
uint32_t ledger_key_head(const struct ledger *l, uint32_t topic,
			 uint64_t hash); /* or SLAB_NONE */
uint32_t ledger_key_attach(struct ledger *l, uint32_t topic, uint64_t hash);
void ledger_key_detach(struct ledger *l, struct topic *t, uint32_t key);
void ledger_join(struct ledger *l, struct topic *t, uint32_t h);
void ledger_lead(struct ledger *l, struct topic *t, uint32_t h); /* be the head */
void ledger_pass(struct ledger *l, struct topic *t, uint32_t h); /* be it no more */
void ledger_advance(struct ledger *l, struct topic *t, struct key *k);

/* ledger_line.c: the key, or SLAB_NONE. */
uint32_t ledger_key_find(const struct ledger *l, uint32_t topic, uint64_t hash);

/* All keys of a topic, those with a line first; SLAB_NONE starts, and ends. */
uint32_t ledger_key_next(const struct ledger *l, const struct topic *t, uint32_t key);

/* Put a message into the line of its key, or take it out. */
void ledger_line_insert(struct ledger *l, struct topic *t, uint32_t h);
void ledger_line_remove(struct ledger *l, struct topic *t, uint32_t h);

/* ledger_apply.c: gone, from whatever state; remember: as in ledger_forget. */
void ledger_drop_message(struct ledger *l, uint32_t h, slu_time remember);

/* ledger_moving.c */
int ledger_moving_reserve(struct ledger *l, const struct change *c);
bool ledger_moving_is_sound(const struct ledger *l, const struct change *c);
void ledger_moving_release(struct topic *t);
void ledger_put_mark(struct ledger *l, const struct change *c);
void ledger_put_aside(struct ledger *l, const struct change *c);
void ledger_put_back(struct ledger *l, const struct change *c);
void ledger_put_out(struct ledger *l, const struct change *c);
void ledger_put_given(struct ledger *l, const struct change *c);

/* The batch that is set aside, or NULL. */
static inline struct batch *
ledger_batch_of(const struct topic *t)
{
	return t->moving ? t->moving->batch : NULL;
}

/* ledger_limit.c: so many messages, bytes and queues more in a namespace, modulo 2^64: less. */
void ledger_space_add(struct ledger *l, uint32_t space, uint64_t messages, uint64_t bytes,
		      uint32_t queues);

/* Bytes of the record there. */
static inline uint64_t
ledger_record_size(const struct ledger *l, uint64_t where)
{
	return where && l->conf.size ? l->conf.size(l->conf.drop_arg, where) : 0;
}

/* ledger_memory.c: heaps of the topic have grown or shrunk. */
void ledger_count_topic(struct ledger *l, struct topic *t);
/* ledger.c: the memory of a topic, and its names. It is in no list. */
void ledger_topic_release(struct ledger *l, struct topic *t);

/* ledger_queue.c: Q1 to Q4. When to look for idle ones, and a slice of that: true, *out is
 * to be done. */
bool ledger_queue_may_go(const struct ledger *l, uint32_t queue);
void ledger_put_forgotten(struct ledger *l, const struct change *c);
slu_time ledger_next_look(const struct ledger *l);
bool ledger_look_for_idle(struct ledger *l, slu_time now, uint32_t *budget,
			  struct change *out);

/* ledger_purge.c */
bool ledger_is_purged(const struct topic *t, const struct msg *m, uint32_t h);
int ledger_purge_reserve(struct ledger *l, struct topic *t);
void ledger_purge_start(struct ledger *l, uint32_t topic, const struct change *c);
void ledger_purge_some(struct ledger *l, struct topic *t, uint32_t *budget);

/* ledger_decide.c: a change at the moment now, or later if time was later before. */
struct change ledger_begin(const struct ledger *l, enum change_kind kind, slu_time now);
struct change ledger_begin_for(const struct ledger *l, enum change_kind kind, uint32_t h,
			       slu_time now);

/* Until when the idempotency key of a message that ends at `at` is known, or 0. */
slu_time ledger_remember(const struct ledger *l, const struct msg *m, slu_time at);

/* ledger_move.c: let ledger_woken name the topic. */
void ledger_mark_woken(struct ledger *l, struct topic *t);

/* ledger_limit.c: its depth may have changed, let ledger_deep look at it. */
void ledger_weigh(struct ledger *l, struct topic *t);

/* ledger_tick.c: look at the topic no later than at. */
void ledger_wake(struct ledger *l, struct topic *t, slu_time at);

/* ledger_view.c: the first of a heap in order. SLU_ENOMEM. */
int ledger_peek_heap(const struct heap *heap, uint32_t *msgs, uint32_t max, uint32_t *n);

/* ledger_put.c: memory for a change; ACCEPT and RESTORE. */
int ledger_reserve(struct ledger *l, const struct change *c);
struct more *ledger_need_more(struct ledger *l, struct msg *m);
void ledger_name_error(struct ledger *l, struct msg *m, uint64_t where);
void ledger_put_new(struct ledger *l, const struct change *c);
void ledger_put_again(struct ledger *l, const struct change *c);

#endif
