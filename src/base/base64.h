/*
 * base64.h - bytes as text: RFC 4648, section 4, with padding; and section 5, without.
 *
 * Strict: groups of four, = only at the very end, no line breaks, and the bits that
 * the last group has too many are zero. So each text stands for one run of bytes and
 * each run of bytes has one text.
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

/* Room that is enough for the bytes of a text of n, at most two more than needed. */
static inline size_t
base64_room(size_t n)
{
	return n / 4 * 3;
}

/* Write base64_text(bytes.n) characters, without an end. */
void base64_encode(struct slice bytes, char *out);

/* Write the bytes, set *n to how many. out may be the text itself: the bytes take its
 * place. SLU_EINVAL names the offset of the first wrong character; out may have
 * been written to. */
int base64_decode(struct slice text, char *out, size_t *n, struct slu_err *err);

/*
 * The spelling for URLs, section 5: - and _ for + and /, no padding. As strict.
 */

/* The length of the text of n bytes. */
static inline size_t
base64url_text(size_t n)
{
	return n / 3 * 4 + (n % 3 ? n % 3 + 1 : 0);
}

/* Room to decode a text of n in: more than its bytes need. */
static inline size_t
base64url_room(size_t n)
{
	return (n + 3) / 4 * 4;
}

/* Write base64url_text(bytes.n) characters, without an end. */
void base64url_encode(struct slice bytes, char *out);

/* out has base64url_room(text.n) bytes; else as base64_decode. */
int base64url_decode(struct slice text, char *out, size_t *n, struct slu_err *err);

#endif
