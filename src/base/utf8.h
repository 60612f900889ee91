/*
 * utf8.h - UTF-8 of RFC 3629.
 *
 * Strict: no overlong forms, no surrogates, nothing beyond U+10FFFF.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/bytes.h"

enum {
	UTF8_MAX = 4 /* bytes of the longest character */
};

/* Returns the length of the character at p, 1 to 4; 0 if the bytes are not valid, or end cuts the
 * character. p is before end. */
size_t utf8_length(const char *p, const char *end);

/* Writes one character, at most 0x10ffff and not a surrogate. Returns its length. */
size_t utf8_put(uint32_t character, char out[static UTF8_MAX]);

bool utf8_valid(struct slice s);

/* Cuts the valid text s to at most n bytes, at the end of a character. */
struct slice utf8_cut(struct slice s, size_t n);

#endif
