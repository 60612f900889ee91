/*
 * ledger_private.h - the state of a ledger, for core/ledger/ alone.
 *
 *      spaces, queues     by name      namespaces and queues
 *      msgs               by id        every message
 *      keys               by hash      every ordering key of a message
 *      deadlines          heap         leased messages, by the end of the lease
 *      ttls               heap         messages with a ttl that are not leased
 *      agenda             heap         queues, by the next moment that concerns them
 *
 *  LEDGERHEAP-1  A queue's wake is not later than the next moment that concerns it. It may be
 *                earlier, if the reason is gone: then the tick finds nothing to do.
 *  LEDGERHEAP-2  A key with messages in its sequence has a head, except while a purge has to free
 *                the first in its sequence. A head is READY, LEASED or DELAYED.
 *  LEDGERHEAP-3  Deciding reserves room in `deadlines` and for one more lease. There is always
 *                room in `ttls` for every message with a ttl, and in the two heaps of a queue
 *                for every message of it.
 *  LEDGERHEAP-4  A purge swaps the queue's heaps for new ones. Messages in the old ones (trash),
 *                and HELD messages with a number up to `purged`, do not exist any more for any
 *                caller and do not count; their memory is freed in steps, sequences first.
 */
#ifndef CORE_LEDGER_LEDGER_PRIVATE_H
#define CORE_LEDGER_LEDGER_PRIVATE_H

#include "base/map.h"
#include "base/time.h"
#include "core/ledger/use.h"
#include "core/queue/chain.h"
#include "core/queue/gates.h"
#include "core/queue/trend.h"
#include "core/queue/idem.h"
#include "core/queue/kind.h"
#include "core/queue/holders.h"
#include "core/queue/pace.h"
#include "core/queue/results.h"
#include "core/queue/shares.h"
#include "core/queue/shun.h"
#include "core/queue/values.h"

struct space {
	uint64_t hash;
	char *name;
	char *shown; /* NULL: the name */
	uint64_t messages;
	uint64_t bytes;
	uint32_t queues;
	bool changed;          /* in the list of ledger_space_changed */
	uint32_t next_changed; /* in that list, or SLAB_NONE */
};

/* An ordering key: at most 64 bytes with its slot in the map. */
struct order_key {
	uint64_t hash;
	uint32_t queue;
	uint32_t head;       /* the message in the queue or leased, or SLAB_NONE */
	struct chain held;   /* the sequence behind the head */
	uint32_t refs;       /* messages with this key, in any state */
	uint32_t idle;       /* of these, dead or damaged messages */
	uint32_t taken : 31; /* of the others, messages set aside: all or none */
	uint32_t picked : 1; /* ledger_pick has chosen it */
	uint32_t prev, next; /* in one of the two lists of the queue */
};

_Static_assert(sizeof(struct order_key) <= 64 - 11, "a key is small");

/* The lists of a queue's keys. The second leads to all held messages, however many keys there
 * are. */
enum key_list {
	KEYS_PLAIN, /* without held messages */
	KEYS_LINED, /* with held messages */
	KEY_LISTS
};

enum {
	SPOT_KIND = 1u << 31 /* in msg_spot.flow: the other bits are a strand of the kinds of the queue */
};

_Static_assert((unsigned)SPOT_KIND &(unsigned)SHARES_PLAIN, "both are no flow");

/* The place of messages with a share, a kind or a value: their key, flow and strand. `refs` is behind the first 8 bytes, which a
 * free item of a slab does not keep. */
struct msg_spot {
	uint32_t queue;
	uint32_t key;      /* SLAB_NONE: no key */
	uint32_t flow;     /* of the shares of the queue, or SHARES_PLAIN; or SPOT_KIND and a strand of its kinds */
	uint32_t strand;   /* of the values of the queue, or SLAB_NONE */
	uint32_t refs;     /* messages, in any state; 0: it is free */
	uint32_t key_gate; /* GATES-5 */
};

/* Flow and strand of a message, as in its spot. */
struct spot_place {
	uint32_t flow;
	uint32_t strand;
};

/* An ordering key for a look-up. */
struct key_name {
	uint64_t hash;
	uint32_t queue;
};

struct ledger_queue {
	struct queue heaps;
	const struct policy *policy; /* own_policy, or the default */
	struct policy *own_policy;   /* NULL: never set */
	uint64_t hash;
	struct hash_key secret; /* of the hashes of its keys */
	uint32_t handle;        /* in queues */
	uint32_t space;         /* handle of its namespace */
	char *name;
	char *shown; /* NULL: the name */
	uint32_t count[MSG_STATES];
	struct ledger_totals totals;
	struct chain dead;
	struct chain damaged;
	uint32_t leased;          /* the first leased message, or SLAB_NONE */
	uint32_t keys[KEY_LISTS]; /* the first key of each list; new keys come before it */
	bool has_policy;          /* not the default one */
	bool woken;               /* in the list of ledger_woken */
	uint32_t next_woken;      /* in that list, or SLAB_NONE */
	bool leaving;             /* in the list of ledger_leaving */
	uint32_t next_leaving;    /* in that list, or SLAB_NONE */

	struct shares *shares;     /* NULL: no message has a share (LEDGERSHARE-1) */
	uint32_t n_shares;         /* at the last count */
	struct gates *gates;       /* NULL: the policy has no rate (LEDGERGATE-1) */
	struct values *values;     /* NULL: no message has a value (LEDGERVALUE-2) */
	struct values *kinds;      /* NULL: no message has a kind (LEDGERKIND-1) */
	struct breakers *breakers; /* NULL: none has failed (LEDGERBREAKER-1) */
	uint32_t members;          /* the list of LEDGERBATCH-1: its first entry, or SLAB_NONE */
	uint32_t n_members;        /* entries of the list */

	slu_time full; /* state of its bucket (core/bucket.h) */
	slu_time used; /* its last use; 0: unknown */
	struct pace pace;

	struct trend *trend;  /* NULL: none (LEDGERTREND-1) */
	slu_time trend_look;  /* ledger_trend_look has work from then on */
	slu_time trend_moved; /* the last event */
	uint32_t trend_prev;  /* in the list of trends, or SLAB_NONE */
	uint32_t trend_next;

	bool deep;             /* the last result of ledger_deep */
	bool weighed;          /* in the list of ledger_deep */
	uint32_t next_weighed; /* in that list, or SLAB_NONE */

	slu_time wake; /* LEDGERHEAP-1; SLU_NEVER: not in the agenda */
	uint32_t pos;  /* in the agenda */

	/* LEDGERHEAP-4 */
	bool purging;
	struct queue trash;
	struct queue spare;      /* new heaps, made when a purge is decided */
	uint64_t purged;         /* number of the purge */
	uint32_t purge_key;      /* the next key with held messages to look at */
	slu_time purge_remember; /* until when their idempotency keys are remembered */

	size_t bytes;              /* of its heaps, at the last ledger_count_heaps */
	uint32_t remembered;       /* idempotency keys whose message is gone */
	uint32_t results;          /* of messages that are gone */
	struct queue_moves *moves; /* NULL: it has never moved */
};

/* A batch that is set aside. Its messages have a state and count, but are in no heap, sequence or
 * chain. */
struct taken_item {
	uint64_t id;      /* of the message */
	uint64_t hash;    /* idem_mark of a key */
	slu_time expires; /* end of the message's ttl */
	uint32_t msg;     /* the message, or SLAB_NONE */
	uint16_t check;   /* idem_mark of a key */
};

struct taken_batch {
	uint64_t number;
	uint64_t where;              /* place of its record */
	char receiver[LEDGER_SHARD]; /* the shard that gets the batch (MOVE-6) */
	enum batch_kind what;
	uint32_t n;    /* items */
	uint32_t room; /* items that fit */
	struct taken_item items[];
};

/* The last batch that came from a shard, or was refused. */
struct given_batch {
	char peer[LEDGER_SHARD]; /* that shard */
	uint64_t batch;          /* its number */
	bool refused;
	uint64_t where; /* place of its record */
};

struct queue_moves {
	uint64_t epoch;            /* of the mark; 0: no mark */
	char lives[LEDGER_SHARD];  /* the shard of the mark; empty: this one */
	uint64_t where;            /* place of the mark's record */
	struct taken_batch *batch; /* NULL: none is set aside */
	struct taken_batch *next;  /* memory for a decided batch */
	struct given_batch *given;
	uint32_t n_given;
	uint32_t max_given;
};

/* The last batch of a source. */
struct intake_source {
	struct change_intake said;
	uint64_t where; /* place of its record */
};

struct ledger {
	struct ledger_conf conf;
	uint64_t counter;
	uint64_t highest_id; /* of all messages so far */
	slu_time now;        /* of the last change; never goes back */
	struct ledger_limits limits;
	struct policy resumed; /* of the change that ends a pause, until it is applied */
	uint32_t rated;        /* queues whose policy has a rate */
	uint32_t marked;       /* queues that live on another shard */

	struct slab msgs;
	struct map ids;
	struct slab leases;
	struct slab more;
	struct slab terms; /* struct own_terms */
	struct heap deadlines;
	struct heap ttls;
	uint32_t with_ttl; /* messages with a ttl, leased or not */

	struct slab spaces;
	struct map space_names;
	struct slab queues;
	struct map queue_names;
	uint32_t woken;   /* the first queue of the list of ledger_woken, or SLAB_NONE */
	uint32_t leaving; /* the first queue of the list of ledger_leaving, or SLAB_NONE */
	uint32_t weighed; /* of ledger_deep */
	uint32_t changed; /* the first namespace of the list of ledger_space_changed */
	uint32_t found;   /* the queue found last, or SLAB_NONE: names come in runs */
	struct heap agenda;
	size_t heaps_bytes;             /* of the heaps of all queues */
	uint32_t uncounted;             /* a queue whose heaps ledger_apply will count, or SLAB_NONE */
	bool counts_later;              /* in ledger_apply */
	uint32_t look;                  /* the next queue to check during a search for idle ones; otherwise 0 */
	slu_time look_at;               /* start of the next search */
	struct ledger_totals forgotten; /* of queues that are gone */

	struct slab keys;
	struct map key_hashes;
	uint32_t found_key; /* the key that a new message asked for last, or SLAB_NONE: it asks more than once */

	struct slab spots;
	struct spot_place place; /* LEDGERSPOT-3 */
	uint64_t placed;         /* LEDGERSPOT-3: the number of the change that `place` is of; 0: none */
	uint32_t n_shares;       /* of all queues */
	uint32_t broken;         /* the queue with dirty circuits, or SLAB_NONE */
	bool replaying;          /* LEDGERSHARE-2, LEDGERTREND-4 */

	struct trend *sum;          /* of all queues; NULL: none yet */
	uint32_t count[MSG_STATES]; /* messages of all queues, by state */
	uint32_t n_trends;
	uint32_t trend_first; /* the list of trends: LEDGERTREND-2 */
	uint32_t trend_last;

	struct idem idem;
	struct shun shun;       /* LEDGER-13 */
	struct holders holders; /* of leases */
	struct results results;

	struct intake_source *sources; /* LEDGER-14 */
	uint32_t n_sources;
	uint32_t max_sources;
};

static inline struct msg *
ledger_msg(const struct ledger *l, uint32_t h)
{
	return SLAB_AT(&l->msgs, h, struct msg);
}

/* For a scan of all handles below msgs.fresh: NULL if the handle is free. */
static inline struct msg *
ledger_scan_msg(const struct ledger *l, uint32_t h)
{
	return slab_has(&l->msgs, h) && msg_state(ledger_msg(l, h)) != MSG_NONE ? ledger_msg(l, h)
										: NULL;
}

static inline struct ledger_queue *
ledger_queue(const struct ledger *l, uint32_t h)
{
	return SLAB_AT_FEW(&l->queues, h, struct ledger_queue);
}

static inline bool
ledger_has_queue(const struct ledger *l, uint32_t h)
{
	return h < l->queues.fresh && slab_has(&l->queues, h) && ledger_queue(l, h)->name;
}

static inline struct order_key *
ledger_key(const struct ledger *l, uint32_t h)
{
	return SLAB_AT(&l->keys, h, struct order_key);
}

static inline struct lease *
ledger_lease(const struct ledger *l, const struct msg *m)
{
	return SLAB_AT(&l->leases, m->link, struct lease);
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
	return SLAB_AT(&l->more, m->more, struct more);
}

/* ---- batches.c: LEDGERBATCH-1; m has a `more` ---- */

void ledger_member_enter(struct ledger *l, struct ledger_queue *q, const struct msg *m);
void ledger_member_leave(struct ledger *l, struct ledger_queue *q, const struct msg *m);

/* Empties the list. */
void ledger_members_purge(struct ledger *l, struct ledger_queue *q);

/* Returns whether a purge takes messages of the state. */
static inline bool
ledger_is_purgeable(enum msg_state state)
{
	return state == MSG_READY || state == MSG_DELAYED || state == MSG_HELD;
}

/* Terms of a message; zeros: the terms of its queue. */
static inline const struct terms *
ledger_terms(const struct ledger *l, const struct msg *m)
{
	static const struct terms none;
	const uint32_t at = m->more == SLAB_NONE ? 0 : ledger_more(l, m)->keep;

	return at & MORE_TERMS ? &((const struct own_terms *)slab_at(&l->terms, at & ~MORE_TERMS))->terms : &none;
}

/* LEDGER-16: the message, which may be unique, has no key any more. */
void ledger_free_key(struct ledger *l, struct msg *m);

/* The entry of an idempotency key at the moment now, or SLAB_NONE. */
uint32_t ledger_key_known(const struct ledger *l, struct idem_mark mark, slu_time now);

/* How long the result of a message is kept, in seconds; 0: not. */
static inline uint32_t
ledger_keep(const struct ledger *l, const struct msg *m)
{
	const uint32_t at = m->more == SLAB_NONE ? 0 : ledger_more(l, m)->keep;

	return at & MORE_TERMS ? ((const struct own_terms *)slab_at(&l->terms, at & ~MORE_TERMS))->keep : at;
}

static inline struct msg_spot *
ledger_spot(const struct ledger *l, uint32_t h)
{
	return SLAB_AT(&l->spots, h, struct msg_spot);
}

/* The flow of a message, or SHARES_PLAIN; the strand of its value, or SLAB_NONE. */
static inline uint32_t
ledger_flow_of(const struct ledger *l, const struct msg *m)
{
	const uint32_t flow = m->flags & MSG_AT_SPOT ? ledger_spot(l, m->home)->flow : SHARES_PLAIN;

	return flow & SPOT_KIND ? SHARES_PLAIN : flow;
}

/* The strand of its kind, or SLAB_NONE. */
static inline uint32_t
ledger_kind_of(const struct ledger *l, const struct msg *m)
{
	const uint32_t flow = m->flags & MSG_AT_SPOT ? ledger_spot(l, m->home)->flow : SHARES_PLAIN;

	return flow != SHARES_PLAIN && flow & SPOT_KIND ? flow & ~(uint32_t)SPOT_KIND : SLAB_NONE;
}

static inline uint32_t
ledger_strand_of(const struct ledger *l, const struct msg *m)
{
	return m->flags & MSG_AT_SPOT ? ledger_spot(l, m->home)->strand : SLAB_NONE;
}

/* The key of a keyed message. */
static inline uint32_t
ledger_key_handle(const struct ledger *l, const struct msg *m)
{
	return m->flags & MSG_AT_SPOT ? ledger_spot(l, m->home)->key : m->home;
}

static inline struct order_key *
ledger_key_of(const struct ledger *l, const struct msg *m)
{
	return ledger_key(l, ledger_key_handle(l, m));
}

static inline uint32_t
ledger_home(const struct ledger *l, const struct msg *m)
{
	if (!(m->flags & (MSG_KEYED | MSG_AT_SPOT)))
		return m->home;
	return m->flags & MSG_AT_SPOT ? ledger_spot(l, m->home)->queue : ledger_key(l, m->home)->queue;
}

static inline struct ledger_queue *
ledger_queue_of(const struct ledger *l, const struct msg *m)
{
	return ledger_queue(l, ledger_home(l, m));
}

static inline slu_time
node_time(const struct heap_node *node)
{
	return (slu_time)rank_time((int64_t)node->b);
}

static inline slu_time
first_time(const struct heap *h)
{
	return h->n ? node_time(h->nodes) : SLU_NEVER;
}

/* ledger_oldest without the messages of shares. */
slu_time ledger_oldest_plain(const struct ledger *l, const struct ledger_queue *q);

/* The messages that count against max_depth and warn_depth. */
static inline uint32_t
ledger_depth(const struct ledger_queue *q)
{
	return q->count[MSG_READY] + q->count[MSG_DELAYED] + q->count[MSG_LEASED] +
	       q->count[MSG_HELD];
}

/* LEDGER-12 */
static inline void
ledger_drop(const struct ledger *l, uint64_t where)
{
	if (where && l->conf.drop)
		l->conf.drop(l->conf.drop_arg, where);
}

static inline uint32_t
ledger_max_attempts(const struct ledger_queue *q, const struct msg *m)
{
	return m->max_attempts ? m->max_attempts : q->policy->max_attempts;
}

/* ---- ledger.c ---- */

/* Add a message to the map of ids, for which room was reserved, or remove it. */
void ledger_list(struct ledger *l, uint32_t h);
void ledger_unlist(struct ledger *l, uint32_t h);

/* Also finds purged messages that are not freed yet. */
uint32_t ledger_find_raw(const struct ledger *l, uint64_t id);

/* Frees the memory of a queue and its names. It is in no list. */
void ledger_queue_release(struct ledger *l, struct ledger_queue *q);

/* ---- state.c ---- */

/* The end of a ttl, stored in a heap or, while leased, in the lease. */
slu_time ledger_expires(const struct ledger *l, const struct msg *m);
void ledger_ttl_start(struct ledger *l, uint32_t h, slu_time expires);
void ledger_ttl_stop(struct ledger *l, uint32_t h);

/* Change the state of a message. They do not change sequences. */
void ledger_leave(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_enter(struct ledger *l, struct ledger_queue *q, uint32_t h, enum msg_state to);

/* Puts a message whose state is READY into its heap. */
void ledger_make_ready(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* Put a ready message to the front, where claims look, or remove it from there: core/queue/values.h. */
void ledger_front_enter(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_front_leave(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* The same below the kinds: in the heap of the queue, or in the flow of its share. */
void ledger_heap_enter(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_heap_leave(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* Removes a ready or delayed message from its heap. */
void ledger_unqueue(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_enter_lease(struct ledger *l, struct ledger_queue *q, uint32_t h,
			const struct lease *lease, slu_time until);
void ledger_set_deadline(struct ledger *l, uint32_t h, slu_time until);

/* Puts a message into the state that its due and its sequence require at the moment now. */
void ledger_settle(struct ledger *l, struct ledger_queue *q, uint32_t h, slu_time now);

/* Makes up to max delayed messages ready whose due has come. Returns their number. */
uint32_t ledger_promote(struct ledger *l, struct ledger_queue *q, slu_time now, uint32_t max);

/* Frees a message that has left its state. remember: until when its idempotency key is known, or 0.
 * The caller gives back the room in the queue's heaps. */
void ledger_forget(struct ledger *l, uint32_t h, slu_time remember);

/* Adds the queue to the list of ledger_woken. */
void ledger_mark_woken(struct ledger *l, struct ledger_queue *q);

/* Adds the queue to the list of ledger_leaving, if its dead letters leave it. */
void ledger_mark_leaving(struct ledger *l, struct ledger_queue *q);

/* ---- trend.c ---- */

/* Ends the steps that are over, and gives the queue a trend. */
void ledger_trend_step(struct ledger *l, struct ledger_queue *q, slu_time now);

/* Before each change of the queue, and before messages of it become ready (TREND-2). */
static inline void
ledger_trend_look(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	if (now >= q->trend_look)
		ledger_trend_step(l, q, now);
}

/* Notes a new message; a change of a message that is still as before it. */
void ledger_trend_in(struct ledger *l, struct ledger_queue *q, slu_time now);
void ledger_trend_note(struct ledger *l, struct ledger_queue *q, const struct msg *m, const struct change *c);

/* Frees the trend of a queue, if it has one. */
void ledger_trend_drop(struct ledger *l, struct ledger_queue *q);

/* ---- order.c: ordering keys ---- */

int ledger_key_reserve(struct ledger *l, uint32_t queue, uint64_t hash);
uint32_t ledger_key_head(const struct ledger *l, uint32_t queue,
			 uint64_t hash); /* or SLAB_NONE */
uint32_t ledger_key_attach(struct ledger *l, uint32_t queue, uint64_t hash);
void ledger_key_detach(struct ledger *l, struct ledger_queue *q, uint32_t key);
void ledger_join(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_lead(struct ledger *l, struct ledger_queue *q, uint32_t h); /* become the head */
void ledger_pass(struct ledger *l, struct ledger_queue *q, uint32_t h); /* stop being the head */
void ledger_advance(struct ledger *l, struct ledger_queue *q, struct order_key *k);

/* Returns the key, or SLAB_NONE. */
uint32_t ledger_key_find(const struct ledger *l, uint32_t queue, uint64_t hash);

/* The next key of a queue, keys with held messages first. SLAB_NONE: as argument the start, as result
 * the end. */
uint32_t ledger_key_next(const struct ledger *l, const struct ledger_queue *q, uint32_t key);

/* Add a message to the sequence of its key, or remove it. */
void ledger_line_insert(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_line_remove(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* ---- spot.c ---- */

/* Reserves the memory that a message with a share or a value needs. */
int ledger_spot_reserve(struct ledger *l, const struct change *c);

/* Give a new message its spot, behind its key, or take the spot of a message that goes. */
void ledger_spot_attach(struct ledger *l, struct ledger_queue *q, struct msg *m, const struct change *c);
void ledger_spot_detach(struct ledger *l, struct ledger_queue *q, const struct msg *m);

/* Give a message that is in no heap another priority, and with it the spot of that priority; and the memory for it. */
int ledger_priority_reserve(struct ledger *l, uint32_t h, int32_t prio);
void ledger_priority_set(struct ledger *l, struct ledger_queue *q, uint32_t h, int32_t prio);

/* A message with a spot is leased, or its lease has ended. */
void ledger_spot_lease(struct ledger *l, struct ledger_queue *q, const struct msg *m, bool begins);

/* ---- value.c: of a queue that has values, or gets them by ledger_value_reserve ---- */

/* Reserves the memory that a message with a value needs, and finds its strand. *strand: a guess, or SLAB_NONE. */
int ledger_value_reserve(struct ledger *l, struct ledger_queue *q, struct slice value, uint32_t flow, uint32_t *strand);

/* Adds a new message to its strand. */
void ledger_value_attach(struct ledger *l, struct ledger_queue *q, uint32_t strand);

/* Of any queue: LEDGERVALUE-2. */
void ledger_value_rest(struct ledger *l, struct ledger_queue *q);

/* The queue has shares now: counts the messages without a share that wait behind their values, or their kinds. */
void ledger_value_count_plain(struct ledger *l, struct ledger_queue *q, const struct values *v);

/* The message is to wait behind its value or kind: before it leaves the front, so that its level of shares is not empty in
 * between. It does not wait any more: after it has come to the front. */
void ledger_wait_behind(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_unwait(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* A message of the strand becomes ready, or is not ready any more. */
void ledger_value_enter(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h);
void ledger_value_leave(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h);

/* A message of the strand is leased, or its lease has ended. */
void ledger_value_lease(struct ledger *l, struct ledger_queue *q, uint32_t strand, bool begins);

/* Of any queue: the gate of a value is closed, or open. */
void ledger_value_close(struct ledger *l, struct ledger_queue *q, uint64_t hash, bool closed);

/* Returns whether a purge has removed a ready message that waits behind its value. */
bool ledger_value_is_trash(const struct ledger *l, const struct ledger_queue *q, uint32_t h);

/* Sets the limit by the policy. */
void ledger_value_set(struct ledger *l, struct ledger_queue *q);

/* Of any queue: the hash of the value of a message, and the leased messages of that value; 0: no value. */
uint64_t ledger_value_hash(const struct ledger *l, const struct ledger_queue *q, const struct msg *m);
uint32_t ledger_value_leased(const struct ledger *l, const struct ledger_queue *q, const struct msg *m);

/* ---- share.c ---- */

/* Reserves the memory that a message with a share needs, and finds its flow. *flow: a guess, or SLAB_NONE. */
int ledger_share_reserve(struct ledger *l, struct ledger_queue *q, const struct change *c, uint32_t *flow);

/* Returns whether a message with this share keeps the number of shares within its limit. */
bool ledger_share_fits(const struct ledger *l, const struct ledger_queue *q, struct slice share);

/* Adds a new message to its flow. */
void ledger_share_attach(struct ledger *l, struct ledger_queue *q, uint32_t flow);

/* LEDGERSHARE-1, of a queue that has shares. */
void ledger_share_rest(struct ledger *l, struct ledger_queue *q);

/* The share of a message; n 0: none. */
struct slice ledger_share_name(const struct ledger *l, const struct msg *m);

/* Its share or kind, as KIND-1 says. */
struct slice ledger_line_of(const struct ledger *l, const struct msg *m);

/* For every ready message of a queue that has shares, also for messages without one: it becomes ready, it
 * is not ready any more, it is delivered. */
void ledger_share_enter(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_share_leave(struct ledger *l, struct ledger_queue *q, uint32_t h);
void ledger_share_charge(struct ledger *l, struct ledger_queue *q, uint32_t h);

/* Returns whether a purge has removed a ready message with a share. */
bool ledger_share_is_trash(const struct ledger *l, const struct ledger_queue *q, uint32_t h);

/* Sets the weights and the limit by the policy. */
void ledger_share_set(struct ledger *l, struct ledger_queue *q);

/* The memory or the number of the shares may have changed. */
void ledger_share_count(struct ledger *l, struct ledger_queue *q);

/* Returns whether a limit or a closed gate holds all messages without a share back. */
bool ledger_plain_is_limited(const struct ledger_queue *q);

/* The message that a claim gets, or SLAB_NONE. */
uint32_t ledger_best(const struct ledger_queue *q);

/* The limit of leased messages that holds a ready message back now, and whose limit it is; 0: none. */
uint32_t ledger_limit_of(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_kind *kind);

/* How many candidates are delivered before a ready message, at most `most` + 1; also if memory is out. */
uint32_t ledger_share_ahead(const struct ledger_queue *q, uint32_t h, uint32_t most);

/* Fills msgs with the first ready messages in the order of delivery. Returns SLU_ENOMEM. */
int ledger_peek_ready(const struct ledger *l, const struct ledger_queue *q, uint32_t *msgs, uint32_t max, uint32_t *n);

/* ---- breaker.c: of a queue that has breakers ---- */

int ledger_breaker_reserve(struct ledger *l, const struct change *c); /* BREAKER, of any queue */
void ledger_put_breaker(struct ledger *l, const struct change *c);

/* Of any queue: the moment of the gate has come. */
void ledger_breaker_turn(const struct ledger_queue *q, struct queue_gate *x, slu_time now);

/* A message was claimed; its lease ends by the change c. */
void ledger_breaker_claim(struct ledger *l, struct ledger_queue *q, uint32_t msg, const struct change *c);
void ledger_breaker_end(struct ledger *l, struct ledger_queue *q, uint32_t msg, const struct change *c);

/* The policy was set; the shard was opened. */
void ledger_breakers_set(struct ledger *l, struct ledger_queue *q, slu_time now);
void ledger_breakers_open(struct ledger *l, struct ledger_queue *q, const struct change *c);

/* ---- apply.c ---- */

/* Removes a message from any state. remember: as in ledger_forget. */
void ledger_drop_message(struct ledger *l, uint32_t h, slu_time remember);

/* ---- move.c ---- */

int ledger_moving_reserve(struct ledger *l, const struct change *c);
bool ledger_moving_is_sound(const struct ledger *l, const struct change *c);
void ledger_moving_release(struct ledger_queue *q);
void ledger_put_mark(struct ledger *l, const struct change *c);
void ledger_put_aside(struct ledger *l, const struct change *c);
void ledger_put_back(struct ledger *l, const struct change *c);
void ledger_put_out(struct ledger *l, const struct change *c);
void ledger_put_given(struct ledger *l, const struct change *c);

/* intake.c */
int ledger_intake_reserve(struct ledger *l);
void ledger_put_intake(struct ledger *l, const struct change *c);

/* The batch of the queue that is set aside, or NULL. */
static inline struct taken_batch *
ledger_batch_of(const struct ledger_queue *q)
{
	return q->moves ? q->moves->batch : NULL;
}

/* ---- limit.c ---- */

/* Adds to the numbers of a namespace; modulo 2^64, so also subtracts. */
void ledger_space_add(struct ledger *l, uint32_t space, uint64_t messages, uint64_t bytes,
		      uint32_t queues);

void ledger_list_weighed(struct ledger *l, struct ledger_queue *q);

/* The depth of the queue may have changed: adds it to the list of ledger_deep. */
static inline void
ledger_weigh(struct ledger *l, struct ledger_queue *q)
{
	if (!q->weighed && (q->policy->warn_depth || q->deep))
		ledger_list_weighed(l, q);
}

/* The bytes of a message, by ledger_conf.size. */
static inline uint64_t
ledger_record_size(const struct ledger *l, uint64_t where)
{
	return where && l->conf.size ? l->conf.size(l->conf.drop_arg, where) : 0;
}

/* ---- memory.c ---- */

/* The heaps of the queue have grown or shrunk. */
void ledger_count_heaps(struct ledger *l, struct ledger_queue *q);

void ledger_count_uncounted(struct ledger *l);

/* From here on until `later` is false again, the heaps of a queue are counted once, at the end. No queue may be removed
 * meanwhile. */
static inline void
ledger_count_later(struct ledger *l, bool later)
{
	l->counts_later = later;
	if (l->uncounted != SLAB_NONE)
		ledger_count_uncounted(l);
}

/* ---- queue.c: LEDGERQUEUE-1 to LEDGERQUEUE-4 ---- */

bool ledger_queue_may_go(const struct ledger *l, uint32_t queue);
void ledger_put_forgotten(struct ledger *l, const struct change *c);

/* The start of the next search for idle queues, and a slice of it: returns true with a change to
 * write down and apply. */
slu_time ledger_next_look(const struct ledger *l);
bool ledger_look_for_idle(struct ledger *l, slu_time now, uint32_t *budget,
			  struct change *out);

/* ---- purge.c ---- */

bool ledger_is_purged(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, uint32_t h);
int ledger_purge_reserve(struct ledger *l, struct ledger_queue *q);
void ledger_purge_start(struct ledger *l, uint32_t queue, const struct change *c);
void ledger_purge_some(struct ledger *l, struct ledger_queue *q, uint32_t *budget);

/* ---- decide.c ---- */

/* A change at the moment now, but not before the last change. */
struct change ledger_begin(const struct ledger *l, enum change_kind kind, slu_time now);
struct change ledger_begin_for(const struct ledger *l, enum change_kind kind, uint32_t h,
			       slu_time now);

/* Reserves the memory for a change and sets *out to it. Without memory there is no change. */
int ledger_promise(struct ledger *l, const struct change *c, struct change *out);

/* Until when the idempotency key of a message that ends at `at` is remembered, or 0. */
slu_time ledger_remember(const struct ledger *l, const struct msg *m, slu_time at);

/* ---- tick.c ---- */

/* The tick looks at the queue at this moment, or earlier. */
void ledger_wake(struct ledger *l, struct ledger_queue *q, slu_time at);

/* ---- put.c: ACCEPT and RESTORE ---- */

/* Reserves the memory that applying a change needs. */
int ledger_reserve(struct ledger *l, const struct change *c);
void ledger_name_error(struct ledger *l, struct msg *m, uint64_t where);
void ledger_put_new(struct ledger *l, const struct change *c);
void ledger_put_again(struct ledger *l, const struct change *c);

#include "core/ledger/ledger_gate.h" /* a part of this header */

#endif
