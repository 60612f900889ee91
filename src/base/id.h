/*
 * id.h - ids of messages: unique without coordination, and rising.
 *
 *       63 62                        22 21       12 11        0
 *      +--+------------------------------+-----------+-----------+
 *      | 0| ms since 2024-01-01 UTC (41) | node (10) | seq (12)  |
 *      +--+------------------------------+-----------+-----------+
 *
 * As a UUID of version 7 an id sorts the same and holds the same bits, and no others:
 *
 *      unix ms (48)  - 7, high 12 of the low 22 bits - 10, low 10 bits, 52 zeros
 *      0190163d-8694 - 7001                          - 8010-000000000000
 *
 * A process has one generator, shared by all threads without a lock. It counts
 * (ms, seq) as one number: a full ms continues in the next one without a wait, and a
 * clock that steps back has no effect. Two processes must not use the same node at the
 * same time. 0 is never an id. The range ends in 2093.
 *
 * The generator skips multiples of 10 and of 64. A JSON parser with numbers of type
 * double rounds an id above 2^53 to one of these: to a multiple of 10 if it prints the
 * double with 17 digits (JavaScript, jq, Go), of 64 if it casts it to an integer. So a
 * rounded id is never the id of another message. Version 0.1.0 did not skip them: its
 * messages may have such ids.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/bytes.h"
#include "base/clock.h"

#include <sluice/err.h>

#include <stdatomic.h>

enum {
	ID_NODE_BITS = 10,
	ID_SEQ_BITS = 12,
	ID_NODE_MAX = (1 << ID_NODE_BITS) - 1,
	ID_UUID_TEXT = 37 /* with the NUL */
};

#define ID_EPOCH (1704067200 * SLU_SEC) /* 2024-01-01T00:00:00Z */
#define ID_MAX   ((uint64_t)INT64_MAX)

struct idgen {
	struct clock *clock; /* its wall time */
	uint64_t node;
	_Atomic uint64_t last; /* shared: ms << ID_SEQ_BITS | seq of the last id */
};

/* highest: the highest id of any node so far, or 0; every new id is higher. Returns SLU_EINVAL if
 * node or highest is out of range. */
int idgen_init(struct idgen *g, struct clock *clock, unsigned node,
	       uint64_t highest, struct slu_err *err);
uint64_t idgen_next(struct idgen *g);

/* The same at a moment of the generator's clock, with the bits of any node: a request with many
 * messages reads the clock once. */
uint64_t idgen_next_at(struct idgen *g, slu_time wall, unsigned node);

/* Makes every further id higher than `highest`, also while other threads use the generator. Returns
 * SLU_EINVAL if it is out of range. */
int idgen_lift(struct idgen *g, uint64_t highest, struct slu_err *err);

slu_time id_time(uint64_t id); /* wall time of its making, to the ms */
unsigned id_node(uint64_t id); /* the node that made it */

/* Returns whether the generator skips this id, and it is above 2^53: then a JSON parser rounded it,
 * unless a message of version 0.1.0 has it. */
bool id_is_rounded(uint64_t id);

/* Writes it in lower case. Returns out. */
const char *id_to_uuid(uint64_t id, char out[static ID_UUID_TEXT]);

/* Accepts what id_to_uuid writes, in either case. Returns SLU_EINVAL for any other UUID. */
int id_from_uuid(struct slice s, uint64_t *out, struct slu_err *err);

/* Accepts a decimal number or a UUID. */
int id_parse(struct slice s, uint64_t *out, struct slu_err *err);

#endif
