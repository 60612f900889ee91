/*
 * json_text.h - what stands between the quotes of a JSON string.
 *
 *      "caf\u00e9"      raw   caf\u00e9    9 bytes of the document, as they were sent
 *                       text  café         5 bytes, n
 *
 * The text is valid UTF-8 and never longer than raw. Most strings have no escape:
 * then text and raw are the same bytes and nothing is copied.
 */
#ifndef BASE_JSON_TEXT_H
#define BASE_JSON_TEXT_H

#include "base/bytes.h"

#include <endian.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

struct json_str {
	struct slice raw;
	size_t n;     /* length of the text; raw.n when nothing is escaped */
	bool has_nul; /* the text has a \u0000: no C string can hold it */
};

/* What is wrong with a document, and where. */
struct json_flaw {
	const char *at;
	const char *expected;
};

/* Check the string whose first byte after the quote is p. Returns its closing quote
 * and fills s, or returns NULL and fills flaw. */
const char *json_str_scan(const char *p, const char *end, struct json_str *s,
			  struct json_flaw *flaw);

/* The text: raw itself when nothing is escaped, else written to out, which has room
 * for n bytes and is not terminated. */
struct slice json_str_text(const struct json_str *s, char *out);

bool json_str_is_unescaped(const struct json_str *s, struct slice text);

/* Is this the text? */
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

/*
 * The first byte from p on that is not plain, or end. Plain is ASCII that stands for
 * itself in a string: no quote, backslash or control character.
 *
 * Sixteen at a time where the processor can: what is not ASCII is negative there, and so
 * smaller than a space.
 *
 * Else eight at a time: a subtraction turns the high bit on in a byte that was too
 * small, and what has it on from the start is not ASCII. The borrow of such a byte may
 * turn on others, but only above it, and the lowest is the one we look for.
 */
static inline const char *
json_plain_end(const char *p, const char *end)
{
#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		const __m128i x = _mm_loadu_si128((const __m128i *)p);
		const __m128i found = _mm_or_si128(
			_mm_cmplt_epi8(x, _mm_set1_epi8(' ')),
			_mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')),
				     _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'))));
		const int places = _mm_movemask_epi8(found);

		if (places)
			return p + __builtin_ctz((unsigned)places);
	}
#endif
	for (; end - p >= 8; p += 8) {
		uint64_t x, found;

		memcpy(&x, p, 8);
		x = le64toh(x);
		found = (x - JSON_EVERY(0x20)) | ((x ^ JSON_EVERY('"')) - JSON_EVERY(1)) |
			((x ^ JSON_EVERY('\\')) - JSON_EVERY(1)) | x;
		found &= JSON_EVERY(0x80);
		if (found)
			return p + ((unsigned)__builtin_ctzll(found) >> 3);
	}
	while (p < end && json_is_plain(*p))
		p++;
	return p;
}

#endif
