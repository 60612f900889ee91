/*
 * utf8.h - characters as bytes: UTF-8 as RFC 3629 has it.
 *
 * Strict: no overlong forms, no surrogates, nothing beyond U+10FFFF.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/bytes.h"

enum {
	UTF8_MAX = 4 /* bytes of the longest character */
};

/* The length of the character at p, 1 to 4, or 0 when what stands there is none or
 * is cut off by end. p is before end. */
size_t utf8_length(const char *p, const char *end);

/* Write one character, which is no surrogate and at most 0x10ffff; returns its
 * length. */
size_t utf8_put(uint32_t character, char out[static UTF8_MAX]);

bool utf8_valid(struct slice s);

/* At most n bytes of s, which is valid, without the half of a character at the end. */
struct slice utf8_cut(struct slice s, size_t n);

#endif
