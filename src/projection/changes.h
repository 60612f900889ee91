/*
 * changes.h - which messages of a lane have changed since the projection last looked at them.
 *
 *      note(id)  ──>  oldest  id  id  id  id  newest  ──>  take: ids that are old enough
 *
 * Only the id of a message and the time of its first change are kept: the projection reads the state of the
 * message when it takes the id.
 *
 *  CHANGES-1  A message that is accepted and ends before its id is taken leaves no trace.
 *  CHANGES-2  Beyond `max` ids, or if memory is out, all ids are forgotten and nothing is noted until
 *      changes_begin: the copy must be rebuilt.
 *
 * The caller passes the time and serialises the calls.
 */
#ifndef PROJECTION_CHANGES_H
#define PROJECTION_CHANGES_H

#include "base/map.h"
#include "base/slab.h"
#include "base/time.h"

enum changes_kind {
	CHANGES_ACCEPTED, /* the message is new: the copy does not have it */
	CHANGES_CHANGED,  /* the message has another state */
	CHANGES_ENDED     /* the message is gone */
};

struct changes {
	struct slab slab;
	struct map map;
	uint32_t oldest, newest; /* handles, or SLAB_NONE */
	uint32_t max;            /* ids that are kept */
	bool lost;               /* CHANGES-2 */
};

/* Begins with `lost` set. */
void changes_init(struct changes *c, uint32_t max);
void changes_release(struct changes *c);

/* Forgets all ids, and notes changes from now on. */
void changes_begin(struct changes *c);

/* Forgets all ids, and notes nothing until changes_begin. */
void changes_lose(struct changes *c);

void changes_note(struct changes *c, uint64_t id, enum changes_kind kind, slu_time now);

/* Removes up to max ids that were noted at `until` or before, oldest first. Returns how many. */
uint32_t changes_take(struct changes *c, slu_time until, uint64_t *ids, uint32_t max);

/* Returns whether the message was accepted since changes_begin and is not taken yet. */
bool changes_is_new(const struct changes *c, uint64_t id);

/* When the oldest id was noted; SLU_NEVER: no ids. */
slu_time changes_oldest(const struct changes *c);

static inline uint32_t
changes_count(const struct changes *c)
{
	return map_count(&c->map);
}

#endif
