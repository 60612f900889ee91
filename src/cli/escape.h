/*
 * escape.h - text of others on a terminal: it is shown, and does nothing else.
 *
 *         ESC [ 2 J        \x1b[2J          control characters (C0, DEL)
 *         U+009B           \u009b           control characters (C1)
 *         U+202E           \u202e           text that would run backwards, and the like
 *         byte 0xff        \xff             not UTF-8
 *
 * Every other character stays as it is, also a backslash.
 */
#ifndef CLI_ESCAPE_H
#define CLI_ESCAPE_H

#include "base/bytes.h"

#include <stdio.h>

enum {
	ESCAPE_MAX = 6 /* bytes that one character becomes at most */
};

/* Take the first character off *text, which is not empty, and write how it is shown. `lines`:
 * \n and \t stay. Returns the bytes written. */
size_t escape_next(struct slice *text, bool lines, char out[static ESCAPE_MAX]);

/* Append all of it. */
void escape_put(struct buf *out, struct slice text, bool lines);

/* Bytes at the end of text that begin a character and lack its rest: 0 to 3. */
size_t escape_cut(struct slice text);

/* Print; lines stay. */
void escape_print(FILE *out, struct slice text);

/* Must a payload that goes to this stream be escaped? It is a terminal, and the user has not
 * asked for it raw. */
bool escape_wanted(FILE *out, bool raw);

#endif
