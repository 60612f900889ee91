/*
 * json_text.h - the text between the quotes of a JSON string.
 *
 *      "caf\u00e9"      raw   caf\u00e9    9 bytes of the document
 *                       text  café         5 bytes, n
 *
 * The text is valid UTF-8 and never longer than raw. Without escapes, as in most strings,
 * text and raw are the same bytes, and no function copies them.
 */
#ifndef BASE_JSON_JSON_TEXT_H
#define BASE_JSON_JSON_TEXT_H

#include "base/bytes.h"

#include <endian.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

struct json_str {
	struct slice raw;
	size_t n;     /* bytes of the text; raw.n without escapes */
	bool has_nul; /* the text contains \u0000, so it is not a C string */
};

/* An error in a document. */
struct json_flaw {
	const char *at;       /* its place */
	const char *expected; /* what was expected there */
};

/* Checks the string whose first byte after the quote is p. Returns its closing quote and fills s, or
 * returns NULL and fills flaw. */
const char *json_str_scan(const char *p, const char *end, struct json_str *s,
			  struct json_flaw *flaw);

/* Returns raw without escapes; otherwise unescapes it to out, which has room for n bytes, without a
 * NUL. */
struct slice json_str_text(const struct json_str *s, char *out);

/* Compares an escaped string with a text. */
bool json_str_is_unescaped(const struct json_str *s, struct slice text);

/* Compares a string with a text. */
static inline bool
json_str_is(const struct json_str *s, struct slice text)
{
	if (s->n != text.n)
		return false;
	return s->n == s->raw.n ? memcmp(s->raw.p, text.p, text.n) == 0
				: json_str_is_unescaped(s, text);
}

#define JSON_EVERY(byte) ((uint64_t)0x0101010101010101u * (byte))

static inline bool
json_is_plain(char c)
{
	return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* Not 0 if one of 8 bytes is not plain: the lowest bit that is set is in the first of them. */
static inline uint64_t
json_not_plain_8(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof x);
	x = le64toh(x);
	return ((x - JSON_EVERY(0x20)) | ((x ^ JSON_EVERY('"')) - JSON_EVERY(1)) |
		((x ^ JSON_EVERY('\\')) - JSON_EVERY(1)) | x) &
	       JSON_EVERY(0x80);
}

#ifdef __SSE2__
/* Which of 16 bytes are not plain, a bit each. */
static inline unsigned
json_not_plain(const char *p)
{
	const __m128i x = _mm_loadu_si128((const __m128i *)p);
	const __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
	const __m128i backslash = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
	const __m128i outside = _mm_cmplt_epi8(x, _mm_set1_epi8(' '));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(outside, _mm_or_si128(quote, backslash)));
}
#endif

/* Skips plain bytes, many at a time if the processor can. Others may follow that are plain, too. */
const char *json_skip_plain(const char *p, const char *end);

/*
 * Returns the first byte from p on that is not plain, or end. Plain is ASCII that stands
 * for itself in a string: no quote, backslash or control character.
 *
 * With SSE2, 16 bytes at a time: a byte that is not ASCII is negative, so smaller than a
 * space. From the 33rd byte on, json_skip_plain goes ahead: most strings end before.
 *
 * Otherwise 8 bytes at a time: a subtraction sets the high bit of a byte that was too
 * small; a byte that has it from the start is not ASCII. The borrow of such a byte may set
 * the high bit of others, but only above it, and the lowest byte found is the result.
 */
static inline const char *
json_plain_end(const char *p, const char *end)
{
#ifdef __SSE2__
	for (unsigned blocks = 1; end - p >= 16; p += 16, blocks++) {
		const unsigned places = json_not_plain(p);

		if (places)
			return p + __builtin_ctz(places);
		if (blocks == 2)
			p = json_skip_plain(p + 16, end) - 16;
	}
#endif
	for (; end - p >= 8; p += 8) {
		const uint64_t found = json_not_plain_8(p);

		if (found)
			return p + ((unsigned)__builtin_ctzll(found) >> 3);
	}
	while (p < end && json_is_plain(*p))
		p++;
	return p;
}

/* Whether all bytes are plain. The last 16 are checked at once, perhaps some of them twice. */
static inline bool
json_all_plain(struct slice s)
{
#ifdef __SSE2__
	if (s.n >= 16) {
		unsigned places = json_not_plain(s.p + s.n - 16);

		for (size_t i = 0; i + 16 < s.n; i += 16)
			places |= json_not_plain(s.p + i);
		return !places;
	}
#endif
	if (s.n >= 8)
		return !(json_not_plain_8(s.p) | json_not_plain_8(s.p + s.n - 8));
	for (size_t i = 0; i < s.n; i++)
		if (!json_is_plain(s.p[i]))
			return false;
	return true;
}

#endif
