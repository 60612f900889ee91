/*
 * json_compact.h - JSON that comes in pieces: checked, and the space taken out.
 *
 *         json_compact_init(&c, JSON_DEPTH_MAX);
 *         while (a piece comes)
 *                 rc = json_compact(&c, piece, &out, &err);     out may be emptied between
 *         rc = json_compact_end(&c, &err);
 *
 * It takes what json.h takes and refuses what json.h refuses, wherever the pieces are
 * cut. What comes out is the document byte for byte, without the space between its
 * tokens; never more than came in. Memory does not grow with the document.
 *
 * A number at the very end is over only when json_compact_end says so.
 */
#ifndef BASE_JSON_COMPACT_H
#define BASE_JSON_COMPACT_H

#include "base/json.h"

struct json_compact {
	uint64_t offset; /* bytes read */
	unsigned depth;
	unsigned max_depth;
	uint64_t objects[JSON_DEPTH_MAX / 64]; /* bit a level: is it an object? */
	uint8_t state;                         /* enum state of json_compact.c */
	bool is_name;                          /* the string under way */
	bool high;                             /* the second half of a pair must follow */
	uint8_t digits;                        /* of \u, still to come */
	uint16_t unit;                         /* these digits */
	uint8_t more;                          /* bytes of a character, still to come */
	uint8_t least, most;                   /* the next of them */
	const char *word;                      /* what is left of true, false, null */
	const char *expected;                  /* NULL, or it has failed */
};

void json_compact_init(struct json_compact *c, unsigned max_depth);

/* Append to out what the piece brings. SLU_EINVAL: no JSON, and where. SLU_ETOOBIG: out
 * has no room for it, SLU_ENOMEM. After a failure nothing is left to do. */
int json_compact(struct json_compact *c, struct slice piece, struct buf *out,
		 struct slu_err *err);

/* That was all. SLU_EINVAL: it is not whole. */
int json_compact_end(struct json_compact *c, struct slu_err *err);

#endif
