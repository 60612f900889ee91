#include "store/web/xml.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	TAG_MAX = 64
};

bool
xml_next(struct slice *rest, const char *name, struct slice *text)
{
	char open[TAG_MAX], close[TAG_MAX];
	const char *end;

	snprintf(open, sizeof open, "<%s>", name);
	snprintf(close, sizeof close, "</%s>", name);
	if (!slice_skip_past(rest, open))
		return false;
	end = rest->n > 0 ? memmem(rest->p, rest->n, close, strlen(close)) : NULL;
	if (!end)
		return false;
	*text = (struct slice){ rest->p, (size_t)(end - rest->p) };
	slice_skip(rest, text->n + strlen(close));
	return true;
}

struct slice
xml_find(struct slice document, const char *name)
{
	struct slice text;

	return xml_next(&document, name, &text) ? text : (struct slice){ 0 };
}

/* The byte of an entity: what stands between & and ;. Returns 0 if it is not one byte. */
static char
entity(struct slice s)
{
	static const struct {
		const char *name;
		char byte;
	} rows[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' } };
	char digits[8];
	long n;

	for (size_t i = 0; i < COUNT(rows); i++)
		if (slice_eq(s, slice_of(rows[i].name)))
			return rows[i].byte;
	if (s.n < 2 || s.n > sizeof digits || s.p[0] != '#')
		return 0;
	snprintf(digits, sizeof digits, "%.*s", (int)s.n - 1, s.p + 1);
	n = digits[0] == 'x' ? strtol(digits + 1, NULL, 16) : strtol(digits, NULL, 10);
	return n > 0 && n < 128 ? (char)n : 0;
}

bool
xml_text(struct slice text, char *out, size_t size)
{
	size_t n = 0;

	while (text.n > 0) {
		struct slice name;
		char c = text.p[0];

		slice_skip(&text, 1);
		if (c == '&')
			c = slice_cut(&text, ';', &name) ? entity(name) : 0;
		if (c == 0 || n + 1 >= size)
			return false;
		out[n++] = c;
	}
	out[n] = '\0';
	return true;
}
