/*
 * chars.h - which byte may stand where in HTTP/1.1: one table, one bit a place.
 *
 *      CHAR_TOKEN    names of fields and methods (RFC 9110, 5.6.2)
 *      CHAR_VALUE    values of fields: tab, space, printable, and bytes above 127,
 *                    which mean nothing to HTTP and pass through
 *      CHAR_TARGET   path and query as sent (RFC 3986): no '#', no brackets, and
 *                    '%' whatever follows it (http/query.h decodes)
 *      CHAR_HOST     host and port. No comma, though RFC 3986 has it: two hosts
 *                    that a proxy joined are not one.
 *      CHAR_UPPER    capital letters; the bit's value is what makes them small
 *
 * No class has CR, LF or NUL.
 */
#ifndef HTTP_CHARS_H
#define HTTP_CHARS_H

#include "base/bytes.h"

enum http_char_class {
	CHAR_TOKEN = 0x01,
	CHAR_VALUE = 0x02,
	CHAR_TARGET = 0x04,
	CHAR_HOST = 0x08,
	CHAR_UPPER = 0x20
};

extern const unsigned char http_chars[256];

static inline bool
http_is(char c, enum http_char_class cls)
{
	return http_chars[(unsigned char)c] & cls;
}

static inline char
http_small(char c)
{
	return (char)(c | (http_chars[(unsigned char)c] & CHAR_UPPER));
}

/* Every byte of s is of the class; true for an empty s. */
bool http_all(struct slice s, enum http_char_class cls);

/* s is `small` but for the case of letters; small has no capitals. */
bool http_same(struct slice s, struct slice small);

/* Without spaces and tabs at either end. */
struct slice http_trim(struct slice s);

/* The value of a hex digit, or -1. */
int http_hex(char c);

#endif
