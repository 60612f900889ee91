/*
 * formats.h - the format that a store must have before a record type or an op is used: LINE-16 of members/members.h.
 *
 *      lane ── an op of a store ──> formats_op ─────> 3: engine_tenure.need_format(3)
 *      log engine ── a record ────> formats_record ─> 3: the same
 *
 * Nodes of several versions may share a store. A node refuses a log with an unknown record type, and an op from another
 * node with an unknown verb or field. So a new record type, verb or field has a row in formats.c with its format. A node
 * uses it only if the settings of the store (members/settings.h) have that format. A log
 * without a store has no other readers, and asks nothing. A verb that only looks (OP_WHY) needs no row: an older node
 * refuses it, and nothing is lost.
 *
 * To add a record type, verb or field: a row. To add a format: SETTINGS_FORMAT and docs/store-format.md, too.
 */
#ifndef ENGINE_FORMATS_H
#define ENGINE_FORMATS_H

#include "engine/log/record.h"
#include "engine/op.h"

enum {
	FORMATS_FIRST = 1,                   /* every node knows what has no row */
	FORMATS_PINNED = 3,                  /* pinned groups: LINE-17 of line/line.h */
	FORMATS_KEY_DIGESTS = 3,             /* digests in lists of idempotency keys: engine/move_keys.h */
	FORMATS_LAST = 3,                    /* the highest format in the table; SETTINGS_FORMAT is as high */
	FORMATS_OLD_TYPES = LOGENGINE_INTAKE /* record types below this one have no row */
};

/* As formats_record, for a record type that may have a row. */
uint32_t formats_new_record(uint8_t type);

/* The lowest format of a store in which the record type may be written. */
static inline uint32_t
formats_record(uint8_t type)
{
	return type < FORMATS_OLD_TYPES ? FORMATS_FIRST : formats_new_record(type);
}

/* The lowest format of a store in which an engine may run the op, and a node may send it to another node. */
uint32_t formats_op(const struct op *op);

#endif
