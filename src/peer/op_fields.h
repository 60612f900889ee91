/*
 * op_fields.h - every field of an op that travels between nodes, one row each.
 *
 *      { "lease", 40, FIELD_TIME, ... asked by CLAIM }
 *
 * A row has the number of the field in messages (its tag), its place in memory, and the verbs
 * whose question or answer has it. A list (puts, items, rows ...) has rows of its own for its
 * elements. op_codec.c and op_values.c read it.
 *
 *  FIELDS-1  A number is never given to another field. A row that is removed leaves a gap.
 *  FIELDS-2  The rows of a table are in the order of their tags.
 *  FIELDS-3  A verb without a number (op_wire) does not travel: a node asks itself alone.
 */
#ifndef PEER_OP_FIELDS_H
#define PEER_OP_FIELDS_H

#include "engine/op.h"

enum op_field_kind {
	FIELD_U8,
	FIELD_U16,
	FIELD_U32, /* also enums */
	FIELD_U64,
	FIELD_I32,
	FIELD_TIME,    /* signed, 64 bits */
	FIELD_VERSION, /* the same; -1 is not written */
	FIELD_BOOL,
	FIELD_SLICE,   /* of at most `most` bytes */
	FIELD_TEXT,    /* char[size], with a NUL */
	FIELD_BYTES,   /* char[size] */
	FIELD_U32S,    /* uint32_t[size / 4] */
	FIELD_U64S,    /* uint64_t[size / 8] */
	FIELD_HOLDER,  /* struct shared_text * */
	FIELD_LIMIT,   /* const char *, the name of a limit */
	FIELD_HELD_BY, /* char *: room for a text of `most` bytes; the question says whether there is room */
	FIELD_REF,     /* struct op_ref: the bytes that it refers to */
	FIELD_LIST,    /* pointer to elements */
	FIELD_KINDS
};

struct op_field;

struct op_list {
	const struct op_field *fields; /* of an element */
	unsigned n_fields;
	size_t size;    /* of an element */
	uint16_t count; /* offset of the number of elements in struct op */
	uint16_t room;  /* offset of the number of elements that fit, for answers */
	bool same;      /* an answer has as many elements as its question */
};

struct op_field {
	const char *name;
	uint8_t tag;    /* 1 or more */
	uint8_t kind;   /* enum op_field_kind */
	uint16_t at;    /* offset in struct op, or in the element */
	uint16_t size;  /* bytes in memory */
	uint32_t most;  /* SLICE, HOLDER: bytes; U8, U32: the highest value, 0: any */
	uint64_t asked; /* verbs whose question has it: 1 << verb */
	uint64_t told;  /* verbs whose answer has it */
	const struct op_list *list;
};

extern const struct op_field op_fields[];
extern const unsigned n_op_fields;

/* The number of a verb in messages; 0: the verb does not travel. */
extern const uint8_t op_wire[OP_VERBS];

_Static_assert(OP_VERBS <= 64, "a verb is a bit");

#endif
