/*
 * chars.h - the classes of bytes in HTTP/1.1: one table, one bit per class.
 *
 *      CHAR_TOKEN    names of fields and methods (RFC 9110, 5.6.2)
 *      CHAR_VALUE    values of fields: tab, space, printable, and bytes above 127,
 *                    which mean nothing to HTTP and pass through
 *      CHAR_TARGET   path and query as sent (RFC 3986): no '#', no brackets, and
 *                    '%' with any bytes behind it (http/query.h decodes)
 *      CHAR_HOST     host and port. No comma, although RFC 3986 allows it: a proxy may
 *                    join two hosts with it.
 *      CHAR_UPPER    capital letters; or'ed into a letter, the bit makes it small
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

/* s equals `small` if the case of letters is ignored; small has no capitals. */
bool http_same(struct slice s, struct slice small);

/* s without spaces and tabs at both ends. */
struct slice http_trim(struct slice s);

/* Reads a Connection field. Sets *close and *keep_alive if the field has that option. */
void http_connection(struct slice value, bool *close, bool *keep_alive);

#endif
