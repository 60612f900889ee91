/*
 * json_compact.h - checks JSON that arrives in pieces, and removes its white space.
 *
 *         json_compact_init(&c, JSON_DEPTH_MAX);
 *         while (a piece comes)
 *                 rc = json_compact(&c, piece, &out, &err);     out may be emptied between
 *         rc = json_compact_end(&c, &err);
 *
 * It accepts and refuses the same documents as json.h, however they are cut into pieces.
 * The output is the document byte for byte, without the space between its tokens. Memory
 * does not grow with the document. A number at the end of the document is complete only
 * at json_compact_end.
 */
#ifndef BASE_JSON_JSON_COMPACT_H
#define BASE_JSON_JSON_COMPACT_H

#include "base/json/json.h"

struct json_compact {
	uint64_t offset; /* bytes read */
	unsigned depth;  /* open arrays and objects */
	unsigned max_depth;
	uint64_t objects[JSON_DEPTH_MAX / 64]; /* a bit for each level: 1 for an object */
	uint8_t state;                         /* enum state of json_compact.c */
	bool is_name;                          /* the present string is a name */
	bool high;                             /* the second half of a surrogate pair must follow */
	uint8_t digits;                        /* of \u, still to come */
	uint16_t unit;                         /* value of the digits of \u so far */
	uint8_t more;                          /* bytes of a UTF-8 character, still to come */
	uint8_t least, most;                   /* range of the next of these bytes */
	const char *word;                      /* the rest of true, false or null */
	const char *expected;                  /* text of the failure, or NULL */
};

void json_compact_init(struct json_compact *c, unsigned max_depth);

/* Appends the output of one piece to out. Returns SLU_EINVAL if the document is not valid, with the
 * place; SLU_ETOOBIG if out is full; SLU_ENOMEM. After a failure, call neither function again. */
int json_compact(struct json_compact *c, struct slice piece, struct buf *out,
		 struct slu_err *err);

/* Ends the document. Returns SLU_EINVAL if it is incomplete. */
int json_compact_end(struct json_compact *c, struct slu_err *err);

#endif
