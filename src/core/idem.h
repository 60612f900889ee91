/*
 * idem.h - idempotency keys: which are in use, and which are remembered.
 *
 *      message accepted            message gone               its time is over
 *            v                          v                            v
 *         idem_add  ----- live ----- idem_end ----- remembered ----- swept
 *
 * A key is known by 80 bits of keyed hash over namespace, queue and text: a second
 * key with the same bits would be taken for the first and its message lost, so 64
 * were too few. 24 bytes and a slot of the map (at most 10.7) each.
 *
 *  IDEM-1  A key is remembered to the second if that is at most two hours ahead, else
 *          to the end of the hour; never for less than asked. One bit of `until` says
 *          which of the two the other 15 count, modulo 2^15.
 *  IDEM-2  A key that is over does not count any more, swept or not.
 *  IDEM-3  Every remembered key ends after `swept`, and less than 2^15 seconds or hours
 *          after it. So `until` has one meaning, however long nobody has looked.
 *
 * The sweep looks at all entries, in slices, and drops those that are over: once a
 * minute while some end at a second, else once an hour. If it has not run for hours
 * (a machine that slept, a log that is read back), the next key to be remembered
 * first sweeps whole: IDEM-3.
 *
 * A strict queue remembers a digest of the payload beside the key: 16 bytes and a slot
 * of a second map. Keys of other queues have none.
 *
 * Inner part of the ledger.
 */
#ifndef CORE_IDEM_H
#define CORE_IDEM_H

#include "base/map.h"
#include "base/slab.h"
#include "core/change.h"

enum {
	IDEM_LIVE = UINT16_MAX /* struct idem_entry: its message is there */
};

struct idem_entry {
	uint32_t hash[2]; /* in halves, so that there is no gap */
	uint32_t id[2];   /* 0: this memory is free */
	uint16_t check;
	uint16_t until; /* IDEM-1, or IDEM_LIVE */
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
	uint32_t remembered;
	uint32_t brief;    /* of these: to the second */
	uint32_t cursor;   /* the sweep goes on here */
	slu_time sweeping; /* the moment it is for, or 0 when there is none */
	slu_time swept;    /* all that was over at this moment is dropped */

	/* How many are remembered of a queue is counted there; NULL: nobody wants to know. */
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

/* For a scan of all handles below entries.fresh: NULL if there is no key of this handle. */
const struct idem_entry *idem_entry(const struct idem *i, uint32_t handle);

/* What is known at the moment now, or SLAB_NONE. */
uint32_t idem_find(const struct idem *i, struct idem_mark mark, slu_time now);
uint64_t idem_id(const struct idem *i, uint32_t handle);
struct idem_mark idem_mark(const struct idem *i, uint32_t handle);

/* Until when it is remembered, or 0 while it is live. */
slu_time idem_until(const struct idem *i, uint32_t handle);

/* Room for one more, and for its digest. SLU_ENOMEM. */
int idem_reserve(struct idem *i);
int idem_reserve_digest(struct idem *i);

/* A live one, which must not be known; room was reserved. */
uint32_t idem_add(struct idem *i, struct idem_mark mark, uint32_t queue, uint64_t id,
		  slu_time now);

/* What the payload under a key was, or 0: not known. Once set it stays. */
uint64_t idem_digest(const struct idem *i, uint32_t handle);
void idem_set_digest(struct idem *i, uint32_t handle, uint64_t digest); /* reserved */

/* IDEM-1: how long a key is remembered that shall be so until then. What was rounded,
 * rounded once more and perhaps later, is the same: a log that moves a key forward does
 * not change it. */
slu_time idem_round(slu_time until, slu_time now);

/* Its message is gone: remember it until then (not at all if that is over), or forget it. */
void idem_end(struct idem *i, uint32_t handle, slu_time until, slu_time now);
void idem_drop(struct idem *i, uint32_t handle);

/* Forget all that are remembered of a queue; *left is how many that are, counted down by
 * dropping them. Looks at all keys of the shard, unless there are none. */
void idem_drop_all(struct idem *i, uint32_t queue, const uint32_t *left);

/* Drop what is over. False when there is nothing (more) to do. */
bool idem_sweep(struct idem *i, slu_time now, uint32_t *budget);
slu_time idem_next_due(const struct idem *i); /* or SLU_NEVER */

#endif
