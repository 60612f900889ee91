/*
 * base64.h - bytes as text: RFC 4648, section 4 with padding, section 5 without.
 *
 * Strict: groups of four characters, = only at the end, no line breaks, and unused bits
 * of the last group are zero. So a text has one decoding, and bytes have one text.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/bytes.h"

#include <sluice/err.h>

/* The length of the text of n bytes. */
static inline size_t
base64_text(size_t n)
{
	return (n + 2) / 3 * 4;
}

/* The bytes of a text of n characters, or up to two more. */
static inline size_t
base64_room(size_t n)
{
	return n / 4 * 3;
}

/* Writes base64_text(bytes.n) characters, without a NUL. */
void base64_encode(struct slice bytes, char *out);

/* Writes the bytes to out and sets *n to their number. out may be the text itself. Returns
 * SLU_EINVAL, with the offset of the first wrong character; out may have changed then. */
int base64_decode(struct slice text, char *out, size_t *n, struct slu_err *err);

/*
 * The alphabet for URLs, section 5: - and _ for + and /, no padding. Equally strict.
 */

/* The length of the text of n bytes. */
static inline size_t
base64url_text(size_t n)
{
	return n / 3 * 4 + (n % 3 ? n % 3 + 1 : 0);
}

/* The room that base64url_decode needs for a text of n characters. */
static inline size_t
base64url_room(size_t n)
{
	return (n + 3) / 4 * 4;
}

/* Writes base64url_text(bytes.n) characters, without a NUL. */
void base64url_encode(struct slice bytes, char *out);

/* As base64_decode; out has base64url_room(text.n) bytes. */
int base64url_decode(struct slice text, char *out, size_t *n, struct slu_err *err);

#endif
