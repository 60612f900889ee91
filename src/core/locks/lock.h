/*
 * lock.h - one lock key: its lease, its documents, and staged changes.
 *
 *      acquire ──> lease ──> put, remove, hide: staged, seen by the holder alone
 *                    │
 *                    ├── release, commit     the staged changes take effect
 *                    └── release, rollback;  the staged changes are gone
 *                        the lease ends
 *
 * A struct lock is one block of memory with its texts and documents, and never grows: a change
 * makes a new struct lock that replaces it (core/locks/locks.h). A key takes about 200 bytes, its
 * texts, and 56 bytes for each document. Pure.
 */
#ifndef CORE_LOCKS_LOCK_H
#define CORE_LOCKS_LOCK_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	LOCK_KEY_MAX = 128,    /* folded segments joined by '/' */
	LOCK_NAME_MAX = 128,   /* of an attachment */
	LOCK_HOLDER_MAX = 512, /* name of the holder */
	LOCK_DOCS_MAX = 65,    /* the state and 64 attachments */
	LOCK_TXN = 12          /* bytes of a transaction id */
};

#define LOCK_TTL   (30 * SLU_SEC)              /* the default of a lease */
#define LOCK_KNOWN ((slu_time)86400 * SLU_SEC) /* a key without state, after its last lease */
#define LOCK_QUEUE ".locks"                    /* the reserved queue of lock keys */

/* A document of a key: its state (without a name), or an attachment. An etag is a number of the
 * ledger's counter, a new one for each put. */
struct lock_doc {
	struct slice name;
	uint64_t etag;         /* of the committed document; 0: none */
	uint64_t staged;       /* etag of the staged document; 0: none */
	uint64_t where;        /* place of the committed document; 0: not found */
	uint64_t staged_where; /* place of the staged document */
	bool removed;          /* its removal is staged */
};

struct lock {
	/* The name of a lock key, or the message whose state this is. */
	struct slice space;
	struct slice key; /* n 0: the state of a message */
	uint64_t id;      /* that message, or 0 */

	/* The lease. The state of a message has no lease of its own: token is the lease of the
	 * message under which changes were staged. */
	uint64_t token; /* 0: released */
	slu_time until; /* end of the lease */
	struct slice holder;
	uint8_t txn[LOCK_TXN];
	bool over;  /* the lease ended by itself, and a tick has seen it */
	bool fresh; /* this lease made the key */

	uint64_t version; /* of the committed state */
	slu_time updated; /* of the last commit; 0: never */
	slu_time known;   /* without lease and documents: the key is forgotten then */
	bool hidden;      /* OP_KEYS leaves it out */
	bool hides;       /* staged: `hidden` becomes `hide` */
	bool hide;        /* the staged value of `hidden` */

	uint32_t n;            /* documents */
	uint32_t size;         /* bytes of the block, with texts and documents */
	struct lock_doc *docs; /* in the same block */
};

/* A key under change: copy it here, change it, then lock_new. */
struct lock_draft {
	struct lock lock;
	struct lock_doc docs[LOCK_DOCS_MAX + 1];
};

void lock_draft(struct lock_draft *d, const struct lock *from); /* from NULL: an empty key */

/* Makes a copy of `like` in one block, without documents that have neither etag nor staged. Returns
 * NULL if memory is out. mem_free frees it. */
struct lock *lock_new(const struct lock *like);

/* The document of that name, or NULL. */
struct lock_doc *lock_doc(const struct lock *lock, struct slice name);

/* The etag that the holder sees, 0 if it sees no document. */
static inline uint64_t
lock_seen(const struct lock_doc *doc)
{
	if (doc->staged || doc->removed)
		return doc->staged;
	return doc->etag;
}

bool lock_is_staged(const struct lock *lock); /* has staged changes */
bool lock_has_state(const struct lock *lock); /* has a committed document */

/* Returns whether it is a lock key with a lease whose end no tick has seen. */
static inline bool
lock_is_leased(const struct lock *lock)
{
	return !lock->id && lock->token && !lock->over;
}

/* The version: committed, or (staged) as the holder sees it. LOCK-4 of locks.h. */
static inline uint64_t
lock_version(const struct lock *lock, bool staged)
{
	return lock->version + (staged && lock_is_staged(lock));
}

/* Apply or discard staged changes. They call drop, which may be NULL, for every place that the key
 * no longer refers to. */
typedef void lock_drop_fn(void *arg, uint64_t where);
void lock_commit(struct lock *lock, slu_time at, lock_drop_fn *drop, void *arg);
void lock_rollback(struct lock *lock, lock_drop_fn *drop, void *arg);

/* Derives a transaction id from the token, for a client that sent none. */
void lock_txn(uint64_t token, uint8_t out[static LOCK_TXN]);

/* Returns whether key has the form `q/<queue>/state/<uuid>`, the state of a message, and fills in
 * its queue and id. Ops on this key go to that queue, ops on other keys to LOCK_QUEUE. */
bool lock_key_of_message(struct slice key, struct slice *queue, uint64_t *id);

#endif
