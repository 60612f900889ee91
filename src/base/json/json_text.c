#include "base/json/json_text.h"

#include "base/utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* 32 bytes at a time; the comparisons are the same as in json_not_plain. */
__attribute__((target("avx2"))) static const char *
skip_32(const char *p, const char *end)
{
	for (; end - p >= 32; p += 32) {
		const __m256i x = _mm256_loadu_si256((const __m256i *)p);
		const __m256i quote = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('"'));
		const __m256i backslash = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\'));
		const __m256i outside = _mm256_cmpgt_epi8(_mm256_set1_epi8(' '), x);
		const __m256i odd = _mm256_or_si256(outside, _mm256_or_si256(quote, backslash));

		if (!_mm256_testz_si256(odd, odd))
			break;
	}
	return p;
}
#endif

const char *
json_skip_plain(const char *p, const char *end)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return skip_32(p, end);
#endif
	(void)end;
	return p;
}

/* An escape: its length in the document, and its character. */
struct escape {
	size_t raw;
	uint32_t character;
};

/* clang-format off */
/* The character of each escape except \u; 0: not an escape. */
static const char shorts[256] = {
	['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b',
	['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
};
/* clang-format on */

/* \uXXXX at p as its number, or -1. */
static int32_t
read_unit(const char *p, const char *end)
{
	int32_t unit = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		const int digit = ascii_hex(p[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* Checks an escape by RFC 8259. Surrogates come in pairs: a character beyond U+FFFF is d800..dbff, then
 * dc00..dfff. */
static const char *
read_unicode(const char *p, const char *end, struct escape *e)
{
	const int32_t unit = read_unit(p, end);
	int32_t second;

	if (unit < 0)
		return "four hex digits after \\u";
	*e = (struct escape){ .raw = 6, .character = (uint32_t)unit };
	if (unit < 0xd800 || unit > 0xdfff)
		return NULL;
	second = read_unit(p + 6, end);
	if (unit > 0xdbff || second < 0xdc00 || second > 0xdfff)
		return "surrogates in pairs";
	e->raw = 12;
	e->character = 0x10000 + ((uint32_t)unit - 0xd800) * 0x400 +
		       ((uint32_t)second - 0xdc00);
	return NULL;
}

/* Reads the escape at p, which is a backslash. Returns NULL, or what was expected. */
static const char *
read_escape(const char *p, const char *end, struct escape *e)
{
	const unsigned char c = end - p < 2 ? 0 : (unsigned char)p[1];

	if (c == 'u')
		return read_unicode(p, end, e);
	*e = (struct escape){ .raw = 2, .character = (unsigned char)shorts[c] };
	return shorts[c] ? NULL : "one of \" \\ / b f n r t u after a backslash";
}

/* Reads one escape or one character that is not plain: adds it to s, advances p. */
static const char *
scan_special(const char **p, const char *end, struct json_str *s)
{
	struct escape e = { 0 };
	char text[UTF8_MAX];
	const char *expected;
	size_t n;

	if ((unsigned char)**p < 0x20)
		return "control characters escaped in a string";
	if (**p != '\\') {
		n = utf8_length(*p, end);
		*p += n;
		s->n += n;
		return n > 0 ? NULL : "UTF-8";
	}
	expected = read_escape(*p, end, &e);
	if (expected)
		return expected;
	*p += e.raw;
	s->n += utf8_put(e.character, text);
	s->has_nul |= e.character == 0;
	return NULL;
}

const char *
json_str_scan(const char *p, const char *end, struct json_str *s,
	      struct json_flaw *flaw)
{
	const char *const start = p;

	*s = (struct json_str){ 0 };
	for (;;) {
		const char *const plain_end = json_plain_end(p, end);

		s->n += (size_t)(plain_end - p);
		p = plain_end;
		if (p == end)
			flaw->expected = "a quote to end the string";
		else if (*p == '"')
			break;
		else
			flaw->expected = scan_special(&p, end, s);
		flaw->at = p;
		if (flaw->expected)
			return NULL;
	}
	s->raw = (struct slice){ start, (size_t)(p - start) };
	return p;
}

/* The next part of raw, which was checked before: the character of an escape, written to out, or all
 * text up to the next escape. Advances p. */
static struct slice
next_piece(const char **p, const char *end, char out[static UTF8_MAX])
{
	const char *const start = *p;
	struct escape e = { 0 };
	const char *stop;

	if (*start == '\\') {
		(void)read_escape(start, end, &e); /* scanned before: it is good */
		*p += e.raw;
		return (struct slice){ out, utf8_put(e.character, out) };
	}
	stop = memchr(start, '\\', (size_t)(end - start));
	*p = stop ? stop : end;
	return (struct slice){ start, (size_t)(*p - start) };
}

struct slice
json_str_text(const struct json_str *s, char *out)
{
	const char *p = s->raw.p;
	char escaped[UTF8_MAX];
	size_t n = 0;

	if (s->n == s->raw.n)
		return s->raw;
	while (n < s->n) {
		const struct slice piece = next_piece(&p, s->raw.p + s->raw.n, escaped);

		memcpy(out + n, piece.p, piece.n);
		n += piece.n;
	}
	return (struct slice){ out, n };
}

/* json_str_is for texts of the same length. */
bool
json_str_is_unescaped(const struct json_str *s, struct slice text)
{
	const char *p = s->raw.p;
	const char *const end = p + s->raw.n;
	char escaped[UTF8_MAX];

	while (p < end) {
		const struct slice piece = next_piece(&p, end, escaped);

		if (memcmp(piece.p, text.p, piece.n) != 0)
			return false;
		text.p += piece.n;
	}
	return true;
}
