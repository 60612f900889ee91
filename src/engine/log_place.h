/*
 * log_place.h - where a record of the log is, in the 48 bits that a ledger keeps.
 *
 *      47        35 34                    12 11 10         0
 *      +-----------+------------------------+--+-----------+
 *      | segment   | offset / 8             |t | size      |
 *      +-----------+------------------------+--+-----------+
 *      low 13 bits   23 bits: up to 64 MiB   |   of the record's body; 0: ask the
 *                                            |   table
 *                                      it carries its group's time
 *
 * So a claim knows how much there is to read without reading. What is larger, or is
 * not the whole body but the end of it (an error, a result), or has its payload in a
 * file of its own, has a row in a table: 24 bytes and a slot of the map.
 *
 *  P1  The segments of a log are never more than LOG_SEGMENTS_MAX, so the low bits of
 *      a number name one of them. The newest has to be told (places_see).
 *  P2  A place is known from places_add to places_drop. 0 is no place.
 */
#ifndef ENGINE_LOG_PLACE_H
#define ENGINE_LOG_PLACE_H

#include "base/map.h"
#include "base/slab.h"
#include "wal/wal.h"

enum {
	LOG_SEGMENTS_MAX = 1 << 13,
	LOG_SEGMENT_SIZE_MAX = 1 << 26,
	PLACE_SMALL = (1 << 11) - 1 /* bytes of a body that needs no row */
};

struct place {
	struct wal_where at; /* of the record */
	uint32_t size;       /* of what is named: the last bytes of its body */
	uint32_t file;       /* that has its payload (log_file.h), or SLAB_NONE */
};

struct places {
	struct slab rows;
	struct map map;
	uint32_t newest; /* segment */
};

void places_init(struct places *p);
void places_release(struct places *p);

/* Room for one more. SLU_ENOMEM. */
int places_reserve(struct places *p);

/* Memory for one row more; and give back what is not needed: true when there is more to do. */
size_t places_growth(const struct places *p);
bool places_trim(struct places *p);

/* There is a segment of this number. */
static inline void
places_see(struct places *p, uint32_t segment)
{
	if (segment > p->newest)
		p->newest = segment;
}

/* body: how long the record's body is. Room was reserved. */
uint64_t places_add(struct places *p, const struct place *place, uint64_t body);
void places_drop(struct places *p, uint64_t where);

void places_get(const struct places *p, uint64_t where, struct place *out);

/* Does where name the record that is there? */
bool places_is(const struct places *p, uint64_t where, struct wal_where at);

#endif
