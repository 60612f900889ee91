/*
 * locks.h - every lock key of a shard, and every document that is kept beside a message.
 *
 *                acquire                 release, or its time is over
 *      (unknown) ───────> leased ──────────────────────────────────────> free
 *          ^                ^  │ keepalive; put, remove, hide are staged    │
 *          │                │  └──┘                                         │
 *          │                └───────────────────── acquire ─────────────────┤
 *          └────── a day without lease and without state ──────────────────┘
 *
 * As the ledger, beside which it stands: an operation is decided into a change or
 * refused, the change is kept by the engine, then applied. A change is the key whole, as
 * it will be (core/lock.h): so whoever reads changes back needs the last one of each key.
 *
 *         rc = locks_release(l, &ref, false, now, &c, &why);
 *         if (!rc)
 *                 rc = keep(&c);
 *         if (rc)
 *                 locks_undo(&c);
 *         else
 *                 locks_apply(l, &c);     cannot fail: deciding reserved the memory
 *
 * Rules (tests cite them):
 *  K1  A key is held by one lease at a time. Its token is higher than any before it.
 *  K2  A lease ends at its `until`, noticed or not: from then on it gives no right, what
 *      was staged under it is gone, and the key can be had.
 *  K3  What is staged is seen by the holder alone. Commit makes all of it count at once;
 *      rollback, and the end of the lease, forget all of it.
 *  K4  Committing something is one version more, however much was staged: the holder sees
 *      it as committed + 1. Committing nothing is none.
 *  K5  Every document has an etag of its own, which no other of its key ever has.
 *  K6  To release what one does not hold changes nothing and is no failure: it is asked
 *      again when an answer was lost.
 *  K7  The state of a message is held by whoever holds the message, and has no lease of its
 *      own. It is gone with the message. What its holder staged counts when the message is
 *      nacked, also to the dead letters, and is forgotten when the lease runs out, the
 *      claim is returned or the message cannot be read.
 *  K8  A key without lease and without state is forgotten LOCK_KNOWN after its last lease.
 *  K9  What deciding promised, applying has memory for; a change that was refused, or is
 *      undone, has changed nothing.
 *  K10 A place that was given and is named no more is told to conf.drop, once.
 *  K11 A key that moves to another shard (engine/move.h) is set aside first. It has a state and
 *      no lease, can be looked at as before, and it is for who acquires it to ask whether it
 *      is.
 *
 * Pure: no clock, I/O, lock or log. Owned by the shard's thread.
 */
#ifndef CORE_LOCKS_H
#define CORE_LOCKS_H

#include "base/footprint.h"
#include "base/hash.h"
#include "base/slab.h"
#include "core/lock.h"

struct locks;

struct locks_conf {
	struct hash_key secret;
	lock_drop_fn *drop; /* K10; may be NULL */
	void *drop_arg;
};

int locks_new(struct locks **out, const struct locks_conf *conf); /* SLU_ENOMEM */
void locks_free(struct locks *l);

/* Why an operation was refused, or (K6) did nothing. */
enum lock_why {
	LOCK_OK,
	LOCK_HELD,        /* acquire: somebody has it */
	LOCK_KNOWN_KEY,   /* acquire if_absent: there is such a key; put: such a document */
	LOCK_NONE,        /* no lease, or not this one */
	LOCK_EXPIRED,     /* it was this one, and it has ended */
	LOCK_FENCE,       /* this lease, but another fencing token */
	LOCK_TXN_MISSING, /* the transaction must be said */
	LOCK_TXN_OTHER,   /* and is another one */
	LOCK_VERSION,     /* if_version */
	LOCK_ETAG,        /* if_etag */
	LOCK_OF_MESSAGE,  /* its lease is the message's: no acquire, no keepalive */
	LOCK_WHYS
};

/* A key, and by whose right. */
struct lock_ref {
	struct slice space;
	struct slice key;
	uint64_t id;           /* of a message, if it is that one's state; else 0 */
	uint64_t token;        /* of the lease; 0: none */
	uint64_t fence;        /* what the caller takes for its token; 0: not said */
	uint8_t txn[LOCK_TXN]; /* zeros: not said. Of a message's state it is not compared */
	uint64_t held;         /* id: the token of the message's lease now, or 0, */
	slu_time until;        /* and its end */

	int64_t if_version; /* -1: any. Compared with what the holder sees */
	uint64_t if_etag;   /* 0: any */
};

/* What is to happen to a key. */
struct lock_change {
	uint32_t handle;   /* SLAB_NONE: it is new */
	struct lock *next; /* the key as it will be; the change's until it is applied */
	uint64_t number;   /* the highest token or etag that is new in it, or 0 */
	uint64_t where;    /* of its record: for the engine to set */
	bool adds;         /* more to keep: not for the last room of a disk */
	bool late;         /* needs no sync: it will happen again if it is lost */
};

/* ---- Deciding: 0 and a change, or a code, why, and nothing has happened. All may return
 * SLU_ENOMEM. ---- */

struct lock_want {
	struct slice space, key;
	struct slice owner;
	uint8_t txn[LOCK_TXN]; /* zeros: made of the token */
	uint64_t token;        /* the next of the counter */
	slu_time ttl;
	bool if_absent;
};

/* SLU_ELEASE: LOCK_HELD. SLU_EEXISTS: LOCK_KNOWN_KEY. */
int locks_acquire(struct locks *l, const struct lock_want *want, slu_time now,
		  struct lock_change *out, enum lock_why *why);

/*
 * What a holder may do.
 *   SLU_ELEASE     LOCK_NONE, LOCK_EXPIRED, LOCK_FENCE
 *   SLU_EINVAL     LOCK_TXN_MISSING, LOCK_OF_MESSAGE
 *   SLU_ECONFLICT  LOCK_TXN_OTHER, LOCK_VERSION, LOCK_ETAG
 *   SLU_EEXISTS    put with if_absent: there is one of that name
 *   SLU_ETOOBIG    put: more than LOCK_DOCS_MAX
 *
 * keepalive: until now + ttl; a txn that is not said is not missed. put: a document that
 * gets this etag; put its place into next (lock_doc of that name, staged_where). remove:
 * that document, or (all) whatever is attached; *n of them, and with 0 there is no change
 * (out->next NULL).
 */
int locks_keepalive(struct locks *l, const struct lock_ref *ref, slu_time ttl, slu_time now,
		    struct lock_change *out, enum lock_why *why);
int locks_put(struct locks *l, const struct lock_ref *ref, struct slice name, uint64_t etag,
	      bool if_absent, slu_time now, struct lock_change *out, enum lock_why *why);
int locks_remove(struct locks *l, const struct lock_ref *ref, struct slice name, bool all,
		 slu_time now, struct lock_change *out, uint32_t *n, enum lock_why *why);
int locks_hide(struct locks *l, const struct lock_ref *ref, bool hide, slu_time now,
	       struct lock_change *out, enum lock_why *why);

/* K6: 0, *why other than LOCK_OK and no change (out->next NULL) when it is not held; a
 * transaction that is missing or another one is refused all the same. undo: the lease was
 * never handed over, so a key that it made was never there. */
struct lock_end {
	bool commit;
	bool undo;
};

int locks_release(struct locks *l, const struct lock_ref *ref, struct lock_end end,
		  slu_time now, struct lock_change *out, enum lock_why *why);

/* A document as it was committed on another shard. There is no change (out->next NULL) when the
 * key is leased, has a state of a higher version, or of the same and one of that name; what it has
 * of a lower one goes. Put its place into next. SLU_ETOOBIG. */
struct lock_gift {
	struct slice space, key;
	uint64_t id; /* of the message, if it is that one's state */
	struct slice name;
	uint64_t etag;
	uint64_t version; /* of the key, as the next two */
	slu_time updated;
	bool hidden;
};

int locks_give(struct locks *l, const struct lock_gift *gift, struct lock_change *out);

/*
 * K11. names: each behind a byte that says how long it is; those that are not known are passed
 * over. Bringing back is for all of a namespace. To let go is to forget; what is leased stays.
 */
void locks_set_aside(struct locks *l, struct slice space, struct slice names);
void locks_bring_back(struct locks *l, struct slice space);
void locks_let_go(struct locks *l, struct slice space, struct slice names);
bool locks_is_aside(const struct locks *l, const struct lock *lock);
bool locks_next_name(struct slice *names, struct slice *name); /* false: no more, or no name */

/* By what right: 0, or as above. without_txn: a transaction need not be said. */
int locks_check(const struct locks *l, const struct lock_ref *ref, bool without_txn,
		slu_time now, enum lock_why *why);

/* ---- Applying ---- */

void locks_apply(struct locks *l, struct lock_change *c); /* takes c->next */
void locks_undo(struct lock_change *c);                   /* it is not going to be */

/* K7: what becomes of the state of a message. Nothing to keep: it follows from what
 * becomes of the message. */
enum lock_fate {
	LOCK_COMMIT,
	LOCK_FORGET, /* what was staged */
	LOCK_GONE    /* all of it */
};

void locks_message(struct locks *l, uint64_t id, enum lock_fate fate, slu_time at);

/* ---- Time ---- */

/* Do what has fallen due by now, in steps: leases that ended are a change to be kept and
 * applied, keys that are forgotten are not. False: nothing is left, *budget is 0, or there
 * is no memory. */
bool locks_tick(struct locks *l, slu_time now, uint32_t *budget, struct lock_change *out);
slu_time locks_next_due(const struct locks *l);

/* ---- Waking ---- */

/* A key that can be had now and could not before, since this was last asked; its names
 * live until the next change. False: no other. */
bool locks_freed(struct locks *l, struct slice *space, struct slice *key);

/* ---- Looking ---- */

/* NULL when it is not known. Live until the next change. */
const struct lock *locks_find(const struct locks *l, struct slice space, struct slice key);
const struct lock *locks_of_message(const struct locks *l, uint64_t id);

/* The key of a namespace that comes after that one (n 0: the first), in order of their
 * bytes; NULL: no more. Not those of messages. */
const struct lock *locks_after(const struct locks *l, struct slice space, struct slice key);

/* The first key of the namespace that comes after that one (n 0: the first), in the same order. */
const struct lock *locks_space_after(const struct locks *l, struct slice space);

/* Keys of a namespace that have a state, or a lease whose end has not been noticed. */
struct locks_kept {
	uint32_t n;
	uint32_t leased; /* of these */
};

void locks_of_space(const struct locks *l, struct slice space, struct locks_kept *out);

/* All, in no order; *cursor is 0 at first and LOCKS_END after the last, with NULL. */
#define LOCKS_END UINT32_MAX
const struct lock *locks_scan(const struct locks *l, uint32_t *cursor);

struct locks_size {
	uint32_t keys;     /* lock keys */
	uint32_t messages; /* that have a state */
	uint32_t leases;   /* lock keys that are held, or were and nobody has noticed */
};

void locks_size(const struct locks *l, struct locks_size *out);

/* Memory, as of a ledger: core/ledger.h. */
void locks_footprint(const struct locks *l, struct footprint *out);
uint64_t locks_mass(const struct locks *l);
size_t locks_growth(const struct locks *l); /* of one key more */
bool locks_trim(struct locks *l);

/* ---- What a log needs ---- */

/* Where the record of a key is; and that it has moved, or one of its documents has. */
uint64_t locks_where(const struct locks *l, const struct lock *lock);
void locks_move(struct locks *l, const struct lock *lock, uint64_t where);
void locks_move_doc(struct locks *l, const struct lock *lock, uint64_t etag, uint64_t where);

/* What was written down, in order: a key as it was (places are not looked at, but that of
 * its record is taken), a document, which may come before or after the key that names it,
 * and that the shard was opened: leases found end no earlier than `until`. SLU_ENOMEM. */
int locks_replay(struct locks *l, const struct lock *like, uint64_t where);
int locks_replay_doc(struct locks *l, const struct lock_ref *ref, uint64_t etag,
		     uint64_t where);
void locks_opened(struct locks *l, slu_time until);

/* After the last: documents that no key names are dropped, and states of messages that are
 * not there. Returns how many documents are named and were not found. */
uint32_t locks_replayed(struct locks *l, bool (*lives)(void *arg, uint64_t id), void *arg);

/* NULL, or what is wrong: counters, heap and order are compared with a scan. */
const char *locks_scan_check(const struct locks *l);

/* A number that is the same for two that cannot be told apart, wherever their places are. */
uint64_t locks_digest(const struct locks *l);

#endif
