/*
 * locks.h - the lock keys of a shard, and the documents of lock keys and of messages.
 *
 *                acquire                 release, or the lease ends
 *      (unknown) ───────> leased ──────────────────────────────────────> free
 *          ^                ^  │ keepalive; put, remove, hide are staged    │
 *          │                │  └──┘                                         │
 *          │                └───────────────────── acquire ─────────────────┤
 *          └────── a day without lease and without state ──────────────────┘
 *
 * Works as the ledger (core/ledger/ledger.h), beside which it stands: an operation is decided
 * into a change or refused, the engine keeps the change, then it is applied. A change is the
 * complete new key (core/locks/lock.h), so a replay needs only the last change of each key.
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
 *  LOCK-1   One lease at a time holds a key. Its token is higher than all tokens before it.
 *  LOCK-2   A lease ends at its `until`, even before the tick: from then on it gives no right,
 *           its staged changes are gone, and the key can be acquired.
 *  LOCK-3   Only the holder sees staged changes. A commit makes all of them take effect at once;
 *           a rollback and the end of the lease discard all of them.
 *  LOCK-4   A commit of staged changes raises the version by one, however many they are: the
 *           holder sees the committed version + 1. A commit of nothing does not.
 *  LOCK-5   Every document has an etag that no other document of its key ever has.
 *  LOCK-6   A release by a client that does not hold the key changes nothing and succeeds:
 *           clients repeat a release whose answer was lost.
 *  LOCK-7   The holder of a message holds its state, which has no lease of its own and goes with
 *           the message. A nack, also one to the dead letters, commits staged changes. The end
 *           of the lease, a return and a quarantine discard them.
 *  LOCK-8   A key without lease and without state is forgotten LOCK_KNOWN after its last lease.
 *  LOCK-9   Deciding reserves the memory that applying needs. A change that was refused, or is
 *           undone, has changed nothing.
 *  LOCK-10  conf.drop is called once for every place that no key refers to any more.
 *  LOCK-11  A key that moves to another shard (engine/move.h) is first set aside. It has a state
 *           and no lease, and can be looked at. Before an acquire, the caller must check
 *           locks_is_aside.
 *  LOCK-12  The state of a message may be put and committed in one change: a checkpoint. It then
 *           outlives the lease, whatever ends it, and everything that was staged takes effect.
 *  LOCK-13  A lease may end in one change with a new state: everything takes effect, and the key is free. A message
 *           that is settled brings it, so a caller that does not hold the key is refused (unlike LOCK-6).
 *
 * Pure: no clock, I/O, lock or log. Owned by the shard's thread.
 */
#ifndef CORE_LOCKS_LOCKS_H
#define CORE_LOCKS_LOCKS_H

#include "base/footprint.h"
#include "base/hash.h"
#include "base/slab.h"
#include "core/locks/lock.h"

struct locks;

struct locks_conf {
	struct hash_key secret;
	lock_drop_fn *drop; /* LOCK-10; may be NULL */
	void *drop_arg;
};

int locks_new(struct locks **out, const struct locks_conf *conf); /* SLU_ENOMEM */
void locks_free(struct locks *l);

/* Why an operation was refused, or (LOCK-6) did nothing. */
enum lock_why {
	LOCK_OK,
	LOCK_HELD,        /* acquire: another lease holds the key */
	LOCK_KNOWN_KEY,   /* acquire with if_absent: the key exists; put: the document does */
	LOCK_NONE,        /* the key has no lease, or another one */
	LOCK_EXPIRED,     /* this lease has ended */
	LOCK_FENCE,       /* this lease, but another fencing token */
	LOCK_TXN_MISSING, /* the request has no transaction */
	LOCK_TXN_OTHER,   /* the lease has another transaction */
	LOCK_VERSION,     /* if_version does not match */
	LOCK_ETAG,        /* if_etag does not match */
	LOCK_OF_MESSAGE,  /* the state of a message: no acquire, no keepalive */
	LOCK_WHYS
};

/* A key, and the lease of the caller. */
struct lock_ref {
	struct slice space;
	struct slice key;
	uint64_t id;           /* the message whose state this is, or 0 */
	uint64_t token;        /* of the lease; 0: none */
	uint64_t fence;        /* fencing token that the caller sent; 0: none */
	uint8_t txn[LOCK_TXN]; /* zeros: none. Not compared for the state of a message */
	uint64_t held;         /* with id: token of the message's present lease, or 0 */
	slu_time until;        /* with id: end of that lease */

	int64_t if_version; /* as the holder sees it; -1: any */
	uint64_t if_etag;   /* 0: any */
};

/* A change of a key. */
struct lock_change {
	uint32_t handle;   /* SLAB_NONE: a new key */
	struct lock *next; /* the new content of the key; owned by the change until it is applied */
	uint64_t number;   /* the highest new token or etag in it, or 0 */
	uint64_t where;    /* place of its record; set by the engine */
	bool adds;         /* needs more room: not for the reserve of a full disk */
	bool late;         /* needs no sync: it happens again if it is lost */
	bool reserved;     /* its record has room: keeping it cannot fail */
};

/* ---- Deciding: returns 0 and fills in a change, or returns a code, fills in why, and changes
 * nothing. Every function may return SLU_ENOMEM. ---- */

struct lock_want {
	struct slice space, key;
	struct slice holder;
	uint8_t txn[LOCK_TXN]; /* zeros: derived from the token */
	uint64_t token;        /* the next of the counter */
	slu_time ttl;
	bool if_absent; /* only if the key is unknown */
};

/* Returns SLU_ELEASE (LOCK_HELD) or SLU_EEXISTS (LOCK_KNOWN_KEY). */
int locks_acquire(struct locks *l, const struct lock_want *want, slu_time now,
		  struct lock_change *out, enum lock_why *why);

/*
 * Operations of the holder. They return
 *   SLU_ELEASE     LOCK_NONE, LOCK_EXPIRED, LOCK_FENCE
 *   SLU_EINVAL     LOCK_TXN_MISSING, LOCK_OF_MESSAGE
 *   SLU_ECONFLICT  LOCK_TXN_OTHER, LOCK_VERSION, LOCK_ETAG
 *   SLU_EEXISTS    put with if_absent: a document of that name exists
 *   SLU_ETOOBIG    put: more than LOCK_DOCS_MAX documents
 *
 * locks_keepalive  extends the lease to now + ttl; ref needs no transaction
 * locks_put        stages a document with this etag. Write its place into the document of that
 *                  name in out->next, staged_where
 * locks_remove     stages the removal of a document, or (all) of all attachments. *n is their
 *                  number; if it is 0 there is no change (out->next is NULL)
 * locks_hide       stages whether OP_KEYS leaves the key out
 */
int locks_keepalive(struct locks *l, const struct lock_ref *ref, slu_time ttl, slu_time now,
		    struct lock_change *out, enum lock_why *why);
int locks_put(struct locks *l, const struct lock_ref *ref, struct slice name, uint64_t etag,
	      bool if_absent, slu_time now, struct lock_change *out, enum lock_why *why);
int locks_remove(struct locks *l, const struct lock_ref *ref, struct slice name, bool all,
		 slu_time now, struct lock_change *out, uint32_t *n, enum lock_why *why);
int locks_hide(struct locks *l, const struct lock_ref *ref, bool hide, slu_time now,
	       struct lock_change *out, enum lock_why *why);

/* LOCK-12: the change, of a locks_put, commits at the moment `at`. The place of the document is `where`
 * of the document in out->next then. */
void locks_put_commits(struct lock_change *out, slu_time at);

/* How a lease ends. */
struct lock_end {
	bool commit; /* or roll back */
	bool undo;   /* the client never got the lease: a key that it made goes, too */
};

/* LOCK-6: if the caller does not hold the key, returns 0 with *why other than LOCK_OK and without a
 * change (out->next is NULL). A missing or different transaction is refused. */

int locks_release(struct locks *l, const struct lock_ref *ref, struct lock_end end,
		  slu_time now, struct lock_change *out, enum lock_why *why);

/* LOCK-13. etag: of the new state, or 0. The place of the state is `where` of the document without a name in out->next then.
 * Returns a code as locks_put: a key that the caller does not hold is refused. */
int locks_finish(struct locks *l, const struct lock_ref *ref, uint64_t etag, slu_time now, struct lock_change *out,
		 enum lock_why *why);

/* A committed document of another shard. */
struct lock_gift {
	struct slice space, key;
	uint64_t id;       /* the message whose state this is, or 0 */
	struct slice name; /* of the document */
	uint64_t etag;     /* of the document */
	uint64_t version;  /* of the key */
	slu_time updated;  /* of the key */
	bool hidden;       /* of the key */
};

/* Adds the document. No change (out->next is NULL) if the key is leased, has a higher version, or
 * has the same version and a document of that name. Documents of a lower version go. Write its
 * place into out->next. Returns SLU_ETOOBIG if there are too many. */
int locks_give(struct locks *l, const struct lock_gift *gift, struct lock_change *out);

/*
 * LOCK-11. names: each name behind a byte with its length; unknown names are ignored.
 *
 * locks_set_aside   sets the keys aside
 * locks_bring_back  undoes that for all keys of a namespace
 * locks_let_go      forgets the keys, except leased ones
 * locks_next_name   splits names; returns false at the end, or if they are malformed
 */
void locks_set_aside(struct locks *l, struct slice space, struct slice names);
void locks_bring_back(struct locks *l, struct slice space);
void locks_let_go(struct locks *l, struct slice space, struct slice names);
bool locks_is_aside(const struct locks *l, const struct lock *lock);
bool locks_next_name(struct slice *names, struct slice *name);

/* Checks the lease of the caller: returns 0, or a code as above. without_txn: ref needs no
 * transaction. */
int locks_check(const struct locks *l, const struct lock_ref *ref, bool without_txn,
		slu_time now, enum lock_why *why);

/* ---- Applying ---- */

void locks_apply(struct locks *l, struct lock_change *c); /* takes c->next */
void locks_undo(struct lock_change *c);                   /* frees a change that is not applied */

/* LOCK-7: what happens to the state of a message. The engine stores nothing for it: it follows from
 * the change of the message. */
enum lock_fate {
	LOCK_COMMIT,
	LOCK_FORGET, /* discard staged changes */
	LOCK_GONE    /* remove the state */
};

void locks_message(struct locks *l, uint64_t id, enum lock_fate fate, slu_time at);

/* ---- Time ---- */

/* Does what is due by now, in steps. Returns true with a change to keep and apply, for a lease that
 * ended; forgetting keys needs no change. Returns false if nothing is left to do, *budget is 0, or
 * memory is out. */
bool locks_tick(struct locks *l, slu_time now, uint32_t *budget, struct lock_change *out);
slu_time locks_next_due(const struct locks *l);

/* ---- Waking ---- */

/* Fills in the next key that became free since the last call returned it; the names are valid until
 * the next change. Returns false if there is no more. */
bool locks_freed(struct locks *l, struct slice *space, struct slice *key);

/* ---- Looking: results are valid until the next change. ---- */

/* Return NULL if the key, or the state of the message, is unknown. */
const struct lock *locks_find(const struct locks *l, struct slice space, struct slice key);
const struct lock *locks_of_message(const struct locks *l, uint64_t id);

/* The next key of a namespace after this one (n 0: the first), in the order of bytes; NULL: no
 * more. Without states of messages. */
const struct lock *locks_after(const struct locks *l, struct slice space, struct slice key);

/* The first key of the next namespace after this one (n 0: the first), in the same order. */
const struct lock *locks_space_after(const struct locks *l, struct slice space);

/* Keys of a namespace that have a state, or a lease whose end no tick has seen. */
struct locks_kept {
	uint32_t n;
	uint32_t leased; /* of these, keys with a lease */
};

void locks_of_space(const struct locks *l, struct slice space, struct locks_kept *out);

/* Scans all keys, in no order. *cursor is 0 at first; after the last it is LOCKS_END, and the result
 * NULL. */
#define LOCKS_END UINT32_MAX
const struct lock *locks_scan(const struct locks *l, uint32_t *cursor);

struct locks_size {
	uint32_t keys;     /* lock keys */
	uint32_t messages; /* messages with a state */
	uint32_t leases;   /* lock keys with a lease whose end no tick has seen */
};

void locks_size(const struct locks *l, struct locks_size *out);

/* Memory: as the functions of core/ledger/ledger.h. */
void locks_footprint(const struct locks *l, struct footprint *out);
uint64_t locks_mass(const struct locks *l);
size_t locks_growth(const struct locks *l); /* for one more key */
bool locks_trim(struct locks *l);

/* ---- For a log ---- */

/* The place of a key's record; the new place of the record, and of one of its documents. */
uint64_t locks_where(const struct locks *l, const struct lock *lock);
void locks_relocate(struct locks *l, const struct lock *lock, uint64_t where);
void locks_relocate_doc(struct locks *l, const struct lock *lock, uint64_t etag, uint64_t where);

/* Replay records in their order. They return SLU_ENOMEM if memory is out.
 *
 * locks_replay      a key as it was; `where` is the place of its record, places in `like` have no
 *                   meaning
 * locks_replay_doc  a document, before or after the key that names it
 * locks_opened      the shard was opened: its leases end no earlier than `until`
 */
int locks_replay(struct locks *l, const struct lock *like, uint64_t where);
int locks_replay_doc(struct locks *l, const struct lock_ref *ref, uint64_t etag,
		     uint64_t where);
void locks_opened(struct locks *l, slu_time until);

/* After the last record: drops documents that no key names, and states of messages that do not
 * exist. Returns how many named documents were not found. */
uint32_t locks_replayed(struct locks *l, bool (*lives)(void *arg, uint64_t id), void *arg);

/* Compares counters, heap and order with a scan. Returns NULL, or what is wrong. */
const char *locks_scan_check(const struct locks *l);

#endif
