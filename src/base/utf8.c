/*
 * utf8.c - follows the table of well-formed sequences in RFC 3629, section 4:
 *
 *      00..7f
 *      c2..df  80..bf
 *      e0      a0..bf  80..bf            less would be overlong
 *      e1..ef  80..bf  80..bf            but ed: 80..9f, the rest is surrogates
 *      f0      90..bf  80..bf  80..bf    less would be overlong
 *      f1..f4  80..bf  80..bf  80..bf    but f4: 80..8f, the rest is too high
 */
#include "base/utf8.h"

#include <assert.h>

static bool
is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Returns whether c may follow the first byte of three or four. */
static bool
is_second(unsigned char first, unsigned char c)
{
	switch (first) {
	case 0xe0:
		return c >= 0xa0 && c <= 0xbf;
	case 0xed:
		return c >= 0x80 && c <= 0x9f;
	case 0xf0:
		return c >= 0x90 && c <= 0xbf;
	case 0xf4:
		return c >= 0x80 && c <= 0x8f;
	default:
		return is_tail(c);
	}
}

static size_t
length_by_first(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c < 0xc2)
		return 0;
	if (c < 0xe0)
		return 2;
	if (c < 0xf0)
		return 3;
	return c < 0xf5 ? 4 : 0;
}

size_t
utf8_length(const char *p, const char *end)
{
	const unsigned char *s = (const unsigned char *)p;
	const size_t n = length_by_first(*s);

	if (n <= 1)
		return n;
	if ((size_t)(end - p) < n || !is_second(s[0], s[1]))
		return 0;
	for (size_t i = 2; i < n; i++)
		if (!is_tail(s[i]))
			return 0;
	return n;
}

static char
tail(uint32_t character, unsigned shift)
{
	return (char)(0x80 | (character >> shift & 0x3f));
}

size_t
utf8_put(uint32_t character, char out[static UTF8_MAX])
{
	assert(character <= 0x10ffff && (character & ~0x7ffu) != 0xd800);
	if (character < 0x80) {
		out[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		out[0] = (char)(0xc0 | character >> 6);
		out[1] = tail(character, 0);
		return 2;
	}
	if (character < 0x10000) {
		out[0] = (char)(0xe0 | character >> 12);
		out[1] = tail(character, 6);
		out[2] = tail(character, 0);
		return 3;
	}
	out[0] = (char)(0xf0 | character >> 18);
	out[1] = tail(character, 12);
	out[2] = tail(character, 6);
	out[3] = tail(character, 0);
	return 4;
}

bool
utf8_valid(struct slice s)
{
	for (size_t i = 0; i < s.n;) {
		const size_t n = utf8_length(s.p + i, s.p + s.n);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

struct slice
utf8_cut(struct slice s, size_t n)
{
	if (s.n <= n)
		return s;
	while (n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	return (struct slice){ s.p, n };
}
