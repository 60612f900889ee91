/*
 * decode.h - JSON texts into arrays of characters, for tables of json_table.h:
 *
 *         { .name = SLICE("lease_id"), .read = decode_chars, .offset = ..., .size = 24 }
 *         JSON_CHARS(struct slu_lease, id, "lease_id")
 *
 * A text that does not fit, with its end, is refused: half a name is another name.
 */
#ifndef CLIENT_DECODE_H
#define CLIENT_DECODE_H

#include "base/json_table.h"

json_read decode_chars;   /* a string */
json_read decode_raw;     /* any value, as it is written */
json_read decode_seconds; /* slu_time: a moment in seconds since 1970 */

#define DECODE(how, type, member, key)                  \
	{                                               \
		.name = { key, sizeof key - 1 },        \
		.read = how,                            \
		.offset = offsetof(type, member),       \
		.size = sizeof(((type *)NULL)->member), \
	}

#endif
