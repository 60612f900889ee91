/*
 * lock.h - what is known of one lock key: who has it, its documents, what is staged.
 *
 *      acquire ──> lease ──> put, remove, hide: staged, seen by the holder alone
 *                    │
 *                    ├── release, commit     what was staged is the state now
 *                    └── release, rollback;  what was staged is gone
 *                        the lease ends
 *
 * A struct lock is one piece of memory, texts and documents included, and never grows:
 * whoever changes a key makes the next struct lock beside it and puts that in its place
 * (core/locks.h). So a key takes what it says, no more: some 200 bytes, its texts, and
 * 56 bytes a document. Pure, as all of core.
 */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	LOCK_KEY_MAX = 128,   /* folded segments joined by '/' */
	LOCK_NAME_MAX = 128,  /* of an attachment */
	LOCK_OWNER_MAX = 512, /* who says to have it */
	LOCK_DOCS_MAX = 65,   /* the state and 64 attachments */
	LOCK_TXN = 12
};

#define LOCK_TTL   (30 * SLU_SEC)              /* of a lease that nobody said how long */
#define LOCK_KNOWN ((slu_time)86400 * SLU_SEC) /* a key without state, after its last lease */
#define LOCK_QUEUE ".locks"                    /* where lock keys live: a reserved name */

/* A document of a key: its state (no name), or something attached to it. An etag is a
 * number from the ledger's counter, another one for each document ever put. */
struct lock_doc {
	struct slice name;
	uint64_t etag;   /* committed; 0: there is none */
	uint64_t staged; /* put, not committed; 0: there is none */
	uint64_t where;  /* of either, the engine's; 0: not found */
	uint64_t staged_where;
	bool removed; /* its removal is staged */
};

struct lock {
	/* Which: a name, or the state of a message. */
	struct slice space;
	struct slice key; /* n 0: of a message */
	uint64_t id;      /* that message, or 0 */

	/* The lease. A message's state has none of its own: whoever holds the message holds
	 * it, and token is the lease under which things were staged. */
	uint64_t token; /* 0: nobody has had it since it was released */
	slu_time until;
	struct slice owner;
	uint8_t txn[LOCK_TXN];
	bool over;  /* the lease ended by itself: until has passed, and that is noted */
	bool fresh; /* there was no such key before this lease */

	uint64_t version; /* of what is committed */
	slu_time updated; /* when that was; 0: never */
	slu_time known;   /* not leased, nothing committed: until then it is remembered */
	bool hidden;      /* from OP_KEYS */
	bool hides;       /* staged: hidden becomes hide */
	bool hide;

	uint32_t n;
	uint32_t size; /* bytes of its memory, the texts and documents with it */
	struct lock_doc *docs;
};

/* Room to say what a key will be: copy it here, change it, make it lasting. */
struct lock_draft {
	struct lock lock;
	struct lock_doc docs[LOCK_DOCS_MAX + 1];
};

void lock_draft(struct lock_draft *d, const struct lock *from); /* NULL: nothing */

/* One piece of memory with all that `like` says; documents of which there is nothing are
 * left out. NULL: no memory. mem_free frees it. */
struct lock *lock_new(const struct lock *like);

/* The document of that name, or NULL. */
struct lock_doc *lock_doc(const struct lock *lock, struct slice name);

/* What the holder sees: the etag of the document, 0 when there is none (to be). */
static inline uint64_t
lock_seen(const struct lock_doc *doc)
{
	if (doc->staged || doc->removed)
		return doc->staged;
	return doc->etag;
}

/* Is anything staged? Is there a document that counts? */
bool lock_is_staged(const struct lock *lock);
bool lock_has_state(const struct lock *lock);

/* Has it a lease of its own whose end has not been noticed? */
static inline bool
lock_is_leased(const struct lock *lock)
{
	return !lock->id && lock->token && !lock->over;
}

/* K4 of locks.h: staged: as the holder sees it. */
static inline uint64_t
lock_version(const struct lock *lock, bool staged)
{
	return lock->version + (staged && lock_is_staged(lock));
}

/* What was staged counts, or is forgotten. Places that are named no more are told to
 * drop, which may be NULL. */
typedef void lock_drop_fn(void *arg, uint64_t where);
void lock_commit(struct lock *lock, slu_time at, lock_drop_fn *drop, void *arg);
void lock_rollback(struct lock *lock, lock_drop_fn *drop, void *arg);

/* The transaction of a lease whose holder brought none. */
void lock_txn(uint64_t token, uint8_t out[static LOCK_TXN]);

/* `q/<queue>/state/<uuid>` names the state of a message: its queue and id. Such a key
 * belongs to op.queue = that queue, every other one to LOCK_QUEUE. */
bool lock_key_of_message(struct slice key, struct slice *queue, uint64_t *id);

#endif
