/*
 * known.h - what a thread has just learned of a queue, so that the next request need not ask.
 *
 *      known_find ──> a copy, at most KNOWN_AGE old
 *                └──> no: ask the shard, then known_put
 *
 * The value is a few bytes that a dialect chooses; names of two dialects differ. A request that changes what was
 * learned calls known_changed: no thread of this node finds an older value then. Another node of a store
 * finds older values until they are KNOWN_AGE old.
 *
 * Each thread has its own slots and reads them without a lock.
 */
#ifndef API_KNOWN_H
#define API_KNOWN_H

#include "base/bytes.h"

#include <sluice/err.h>

#define KNOWN_AGE SLU_SEC

enum {
	KNOWN_SLOTS = 256, /* queues of a thread; a power of two */
	KNOWN_VALUE = 32   /* bytes of a value at most */
};

struct known;

/* Returns SLU_ENOMEM. */
int known_new(struct known **out, unsigned threads);
void known_free(struct known *k); /* NULL is fine */

/* The number of changes so far, for known_put: read it before the shard is asked. */
uint64_t known_changes(const struct known *k);

/* Copies the value of n bytes to out. Returns false if the thread does not know the queue. */
bool known_find(const struct known *k, unsigned thread, struct slice space, struct slice queue, slu_time now,
		void *out, size_t n);

/* Keeps a value that was asked for after known_changes returned `changes`. Without memory it keeps
 * nothing. */
void known_put(struct known *k, unsigned thread, struct slice space, struct slice queue, slu_time now,
	       uint64_t changes, const void *value, size_t n);

void known_changed(struct known *k);

#endif
