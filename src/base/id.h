/*
 * id.h - the names of messages: unique without asking anybody, and rising.
 *
 *       63 62                        22 21       12 11        0
 *      +--+------------------------------+-----------+-----------+
 *      | 0| ms since 2024-01-01 UTC (41) | node (10) | seq (12)  |
 *      +--+------------------------------+-----------+-----------+
 *
 * As a UUID of version 7 it sorts the same and holds the same, nothing else:
 *
 *      unix ms (48)  - 7, high 12 of the low 22 bits - 10, low 10 bits, 52 zeros
 *      0190163d-8694 - 7001                          - 8010-000000000000
 *
 * One generator a process, shared by all threads without a lock. It counts in
 * (ms, seq) as one number: a ms that is used up flows over into the next without
 * waiting, and a clock that steps back changes nothing, the count goes on. Two
 * processes must not have the same node at the same time. 0 is never an id. The
 * count lasts until 2093.
 *
 * The generator skips multiples of 10 and of 64. A JSON parser that keeps numbers as
 * doubles rounds an id above 2^53 to such a multiple: of 10 where the double is printed
 * with 17 digits (JavaScript, jq, Go), of 64 where it is cast to an integer. So a rounded
 * id is never the id of another message. Version 0.1.0 did not skip them: a message that
 * it stored may still have such an id.
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
	ID_UUID_TEXT = 37 /* with the end */
};

#define ID_EPOCH (1704067200 * SLU_SEC) /* 2024-01-01T00:00:00Z */
#define ID_MAX   ((uint64_t)INT64_MAX)

struct idgen {
	struct clock *clock; /* its wall time */
	uint64_t node;
	_Atomic uint64_t last; /* shared: ms << ID_SEQ_BITS | seq of the last id */
};

/* highest is the highest id known from before, of whatever node, or 0: every id will
 * be later. SLU_EINVAL when node or highest is out of range. */
int idgen_init(struct idgen *g, struct clock *clock, unsigned node,
	       uint64_t highest, struct slu_err *err);
uint64_t idgen_next(struct idgen *g);

/* Once it is in use: every id from now on will be later than that one. SLU_EINVAL. */
int idgen_lift(struct idgen *g, uint64_t highest, struct slu_err *err);

/* When it was made, on the wall clock, to the ms; and by which node. */
slu_time id_time(uint64_t id);
unsigned id_node(uint64_t id);

/* Is it an id that the generator skips, above 2^53? Unless a message of version 0.1.0
 * has it, a JSON parser rounded it. */
bool id_is_rounded(uint64_t id);

/* Lower-case. Returns out. */
const char *id_to_uuid(uint64_t id, char out[static ID_UUID_TEXT]);

/* SLU_EINVAL for any UUID but one that id_to_uuid writes, in either case. */
int id_from_uuid(struct slice s, uint64_t *out, struct slu_err *err);

/* A decimal number or a UUID, as APIs and command lines take it. */
int id_parse(struct slice s, uint64_t *out, struct slu_err *err);

#endif
