/*
 * escape.h - makes foreign text safe for a terminal: control characters are shown, not executed.
 *
 *         ESC [ 2 J        \x1b[2J          control characters (C0, DEL)
 *         U+009B           \u009b           control characters (C1)
 *         U+202E           \u202e           characters that change the direction of text
 *         byte 0xff        \xff             not UTF-8
 *
 * Every other character stays as it is, a backslash too.
 */
#ifndef CLI_LIB_ESCAPE_H
#define CLI_LIB_ESCAPE_H

#include "base/bytes.h"

#include <stdio.h>

enum {
	ESCAPE_MAX = 6 /* bytes of one escaped character, at most */
};

/* Removes the first character of *text, which is not empty, and writes it escaped. lines: \n and \t
 * stay as they are. Returns the number of bytes written. */
size_t escape_next(struct slice *text, bool lines, char out[static ESCAPE_MAX]);

/* Appends the whole text, escaped. */
void escape_put(struct buf *out, struct slice text, bool lines);

/* How many bytes at the end of the text are the beginning of an incomplete character: 0 to 3. */
size_t escape_cut(struct slice text);

/* Prints the text, escaped; \n and \t stay as they are. */
void escape_print(FILE *out, struct slice text);

/* Must a payload be escaped on this stream? Yes, if the stream is a terminal and the user did not ask
 * for raw bytes. */
bool escape_wanted(FILE *out, bool raw);

#endif
