/*
 * place.h - the place of a record in the log, in the 48 bits that a ledger stores.
 *
 *      47        35 34                    12 11 10         0
 *      +-----------+------------------------+--+-----------+
 *      | segment   | offset / 8             |t | size      |
 *      +-----------+------------------------+--+-----------+
 *      low 13 bits   23 bits: up to 64 MiB   |   of the record's body; 0 = see
 *                                            |   the table
 *                                      the record has its group's time
 *
 * So a claim knows the size of a message without reading it. A larger body, a place that
 * is only the end of a body (an error, a result), and a payload file need a row in a
 * table: 24 bytes and a slot of the map.
 *
 *  PLACE-1  A log has at most LOGENGINE_SEGMENTS_MAX segments, so the low bits of a number
 *      identify a segment. The caller reports the newest segment (places_see).
 *  PLACE-2  A place is valid from places_add to places_drop. 0 is never a place.
 */
#ifndef ENGINE_LOG_PLACE_H
#define ENGINE_LOG_PLACE_H

#include "base/map.h"
#include "base/slab.h"
#include "wal/wal.h"

enum {
	LOGENGINE_SEGMENTS_MAX = 1 << 13,
	LOGENGINE_SEGMENT_SIZE_MAX = 1 << 26,
	PLACE_SMALL = (1 << 11) - 1 /* bytes of a body that needs no row */
};

struct place {
	struct wal_where at; /* of the record */
	uint32_t size;       /* the place means this many bytes at the end of the body */
	uint32_t file;       /* payload file (file.h), or SLAB_NONE */
};

struct places {
	struct slab rows;
	struct map map;
	uint32_t newest; /* segment */
};

void places_init(struct places *p);
void places_release(struct places *p);

/* Reserves memory for one more row. Returns SLU_ENOMEM. */
int places_reserve(struct places *p);

/* The bytes that one more row needs. */
size_t places_growth(const struct places *p);

/* Frees unused memory. Returns true if there is more to do. */
bool places_trim(struct places *p);

/* The log has a segment with this number. */
static inline void
places_see(struct places *p, uint32_t segment)
{
	if (segment > p->newest)
		p->newest = segment;
}

/* Adds a place. `body`: the length of the record's body. The caller has reserved a row. */
uint64_t places_add(struct places *p, const struct place *place, uint64_t body);
void places_drop(struct places *p, uint64_t where);

void places_get(const struct places *p, uint64_t where, struct place *out);

/* Whether `where` is a place in the record at `at`. */
bool places_is(const struct places *p, uint64_t where, struct wal_where at);

#endif
