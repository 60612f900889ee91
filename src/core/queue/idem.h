/*
 * idem.h - idempotency keys of messages, and of messages that are gone.
 *
 *      message accepted            message gone               the window has ended
 *            v                          v                            v
 *         idem_add  ----- live ----- idem_end ----- remembered ----- swept
 *
 * A key is stored as 80 bits of keyed hash over namespace, queue and text: a second key
 * with the same bits counts as the first, and its message is lost. It takes 24 bytes and
 * a slot of the map (at most 10.7 bytes).
 *
 *  IDEM-1  The end of a remembered key is exact to the second if it is at most two hours
 *          ahead, otherwise rounded up to the hour. One bit of `until` tells seconds from
 *          hours, the other 15 are their number modulo 2^15.
 *  IDEM-2  An expired key is unknown, also before the sweep.
 *  IDEM-3  Every remembered key ends after `swept`, and less than 2^15 seconds or hours
 *          after it, so that `until` is unambiguous.
 *
 * The sweep looks at all entries, in slices, and drops expired ones: once a minute while
 * some end at a second, otherwise once an hour. If it has not run for hours (the machine
 * was suspended, a log is replayed), the next key to remember first runs a whole sweep,
 * for IDEM-3.
 *
 * A strict queue also stores a digest of the payload: 16 bytes and a slot of a second map.
 *
 * Part of the ledger.
 */
#ifndef CORE_QUEUE_IDEM_H
#define CORE_QUEUE_IDEM_H

#include "base/map.h"
#include "base/slab.h"
#include "core/change.h"

enum {
	IDEM_LIVE = UINT16_MAX /* idem_entry.until: its message exists */
};

struct idem_entry {
	uint32_t hash[2]; /* in halves, to avoid a gap */
	uint32_t id[2];   /* of the message; 0: free memory */
	uint16_t check;   /* the rest of the hash */
	uint16_t until;   /* IDEM-1, or IDEM_LIVE */
	uint32_t queue;
};

_Static_assert(sizeof(struct idem_entry) == 24, "an idempotency key is small");

struct idem_digest {
	uint64_t digest; /* not 0 */
	uint32_t key;    /* handle of the entry */
	uint32_t pad;
};

struct idem {
	struct slab entries;
	struct map map;
	struct slab digests;
	struct map digest_of; /* by handle of the entry */
	uint32_t remembered;  /* keys whose message is gone */
	uint32_t brief;       /* of these, keys that end at a second */
	uint32_t cursor;      /* where the sweep continues */
	slu_time sweeping;    /* the moment that the present sweep is for, or 0 */
	slu_time swept;       /* keys that had expired at this moment are gone */

	/* Returns the counter of remembered keys of a queue; NULL: no such counters. */
	uint32_t *(*count)(void *arg, uint32_t queue);
	void *arg;
};

void idem_init(struct idem *i);
void idem_release(struct idem *i);

static inline uint32_t
idem_count(const struct idem *i)
{
	return map_count(&i->map);
}

static inline bool
idem_is_set(struct idem_mark m)
{
	return m.hash != 0;
}

/* For a scan of all handles below entries.fresh: NULL if the handle is free. */
const struct idem_entry *idem_entry(const struct idem *i, uint32_t handle);

/* Returns SLAB_NONE if the key is unknown at the moment now. */
uint32_t idem_find(const struct idem *i, struct idem_mark mark, slu_time now);
uint64_t idem_id(const struct idem *i, uint32_t handle);
struct idem_mark idem_mark(const struct idem *i, uint32_t handle);

/* Until when it is remembered; 0 while its message exists. */
slu_time idem_until(const struct idem *i, uint32_t handle);

/* Reserve room for one more key, and for its digest. Return SLU_ENOMEM if memory is out. */
int idem_reserve(struct idem *i);
int idem_reserve_digest(struct idem *i);

/* Adds the key of a message; it must be unknown, and room reserved. */
uint32_t idem_add(struct idem *i, struct idem_mark mark, uint32_t queue, uint64_t id,
		  slu_time now);

/* The digest of the payload of a key; 0: unknown. It is set once; room was reserved. */
uint64_t idem_digest(const struct idem *i, uint32_t handle);
void idem_set_digest(struct idem *i, uint32_t handle, uint64_t digest);

/* Rounds the end of a key as IDEM-1 requires. Rounding twice, even later, gives the same: a log that
 * relocates a key does not change it. */
slu_time idem_round(slu_time until, slu_time now);

/* The message is gone: remembers its key until then; not at all if `until` is past. */
void idem_end(struct idem *i, uint32_t handle, slu_time until, slu_time now);

/* Forgets a key. */
void idem_drop(struct idem *i, uint32_t handle);

/* Forgets all remembered keys of a queue. *left is their number, which each drop lowers. Scans all
 * keys of the shard unless *left is 0. */
void idem_drop_all(struct idem *i, uint32_t queue, const uint32_t *left);

/* Drops expired keys. Returns false if nothing is left to do. */
bool idem_sweep(struct idem *i, slu_time now, uint32_t *budget);
slu_time idem_next_due(const struct idem *i); /* or SLU_NEVER */

#endif
