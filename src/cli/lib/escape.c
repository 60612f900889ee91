#include "cli/lib/escape.h"

#include "base/utf8.h"

#include <unistd.h>

/* Bidirectional controls, and line separators other than the line feed. */
static bool
is_layout(uint32_t c)
{
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Decodes 1 to 4 bytes that are one character. */
static uint32_t
character(const char *p, size_t n)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)p[0] & masks[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)p[i] & 0x3f);
	return c;
}

static size_t
put_hex(char *out, char kind, uint32_t value, unsigned digits)
{
	out[0] = '\\';
	out[1] = kind;
	for (unsigned i = 0; i < digits; i++)
		out[2 + i] = "0123456789abcdef"[value >> 4 * (digits - 1 - i) & 15];
	return 2 + digits;
}

static size_t
put_control(char *out, char c)
{
	static const char names[] = { ['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r' };

	if ((size_t)(unsigned char)c >= sizeof names || !names[(unsigned char)c])
		return put_hex(out, 'x', (unsigned char)c, 2);
	out[0] = '\\';
	out[1] = names[(unsigned char)c];
	return 2;
}

size_t
escape_next(struct slice *text, bool lines, char out[static ESCAPE_MAX])
{
	const char *const p = text->p;
	const size_t n = utf8_length(p, p + text->n);
	const uint32_t c = n ? character(p, n) : 0;

	slice_skip(text, n ? n : 1);
	if (n == 0)
		return put_hex(out, 'x', (unsigned char)*p, 2);
	if (lines && (c == '\n' || c == '\t')) {
		*out = *p;
		return 1;
	}
	if (c < 0x20 || c == 0x7f)
		return put_control(out, *p);
	if ((c >= 0x80 && c < 0xa0) || is_layout(c))
		return put_hex(out, 'u', c, 4);
	memcpy(out, p, n);
	return n;
}

void
escape_put(struct buf *out, struct slice text, bool lines)
{
	char shown[ESCAPE_MAX];

	while (text.n > 0)
		buf_put(out, shown, escape_next(&text, lines, shown));
}

size_t
escape_cut(struct slice text)
{
	for (size_t back = 1; back <= 3 && back <= text.n; back++) {
		const unsigned char c = (unsigned char)text.p[text.n - back];

		if ((c & 0xc0) == 0x80)
			continue;
		return c >= 0xc0 && back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u
								       : 2u)
			       ? back
			       : 0;
	}
	return 0;
}

void
escape_print(FILE *out, struct slice text)
{
	char shown[ESCAPE_MAX];

	while (text.n > 0) {
		const size_t n = escape_next(&text, true, shown);

		(void)fwrite(shown, 1, n, out); /* the caller checks the stream at the end */
	}
}

bool
escape_wanted(FILE *out, bool raw)
{
	return !raw && isatty(fileno(out));
}
