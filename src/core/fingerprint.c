#include "core/fingerprint.h"

enum {
	HEX_WORD = 8, /* hex digits that are an id */
	UUID_TEXT = 36
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool
is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool
is_uuid(struct slice s)
{
	if (s.n < UUID_TEXT || (s.n > UUID_TEXT && is_word(s.p[UUID_TEXT])))
		return false;
	for (size_t i = 0; i < UUID_TEXT; i++) {
		const bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s.p[i] != '-' : !is_hex(s.p[i]))
			return false;
	}
	return true;
}

/* The word at the beginning of s; *is_id: it stands for something that has a number. */
static size_t
read_word(struct slice s, bool *is_id)
{
	const bool prefixed = s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X');
	size_t n = 0, hex = prefixed ? 2 : 0, digits = 0;

	for (; n < s.n && is_word(s.p[n]); n++) {
		hex += is_hex(s.p[n]) && !(prefixed && n < 2);
		digits += is_digit(s.p[n]);
	}
	*is_id = hex == n && (prefixed || digits == n || (n >= HEX_WORD && digits));
	return n;
}

struct likeness {
	char *text;
	size_t n;
};

static void
put(struct likeness *l, char c)
{
	if (l->n + 1 < FINGERPRINT_TEXT)
		l->text[l->n++] = c;
}

/* A # that follows # and . : - is the same one. */
static void
put_number(struct likeness *l)
{
	const char *const t = l->text;

	if (l->n > 0 && t[l->n - 1] == '#')
		return;
	if (l->n > 1 && t[l->n - 2] == '#' && (t[l->n - 1] == '.' || t[l->n - 1] == ':' || t[l->n - 1] == '-'))
		l->n--;
	else
		put(l, '#');
}

static void
put_word(struct likeness *l, struct slice word)
{
	for (size_t i = 0; i < word.n; i++) {
		if (is_digit(word.p[i]))
			put_number(l);
		else
			put(l, word.p[i]);
	}
}

static void
put_space(struct likeness *l)
{
	if (l->n > 0 && l->text[l->n - 1] != ' ')
		put(l, ' ');
}

/* Appends what s begins with. Returns its length. */
static size_t
put_next(struct likeness *l, struct slice s)
{
	bool is_id;
	size_t n;

	if (is_space(*s.p))
		put_space(l);
	if (is_space(*s.p))
		return 1;
	if (is_uuid(s)) {
		put_number(l);
		return UUID_TEXT;
	}
	n = read_word(s, &is_id);
	if (is_id && n)
		put_number(l);
	else
		put_word(l, (struct slice){ s.p, n });
	if (n == 0)
		put(l, *s.p);
	return n ? n : 1;
}

/* No character of UTF-8 is cut. */
static void
end(struct likeness *l)
{
	size_t n = l->n;

	while (n > 0 && ((unsigned char)l->text[n - 1] & 0xc0) == 0x80)
		n--;
	if (l->n + 1 == FINGERPRINT_TEXT && n > 0 && (unsigned char)l->text[n - 1] >= 0xc0)
		l->n = n - 1;
	while (l->n > 0 && l->text[l->n - 1] == ' ')
		l->n--;
	l->text[l->n] = '\0';
}

void
fingerprint_of(unsigned reason, struct slice error, struct fingerprint *out)
{
	struct likeness l = { out->text, 0 };
	uint64_t h = 14695981039346656037u; /* FNV-1a */

	while (error.n > 0 && *error.p != '\n' && l.n + 1 < FINGERPRINT_TEXT)
		slice_skip(&error, put_next(&l, error));
	end(&l);
	h = (h ^ reason) * 1099511628211u;
	for (size_t i = 0; i < l.n; i++)
		h = (h ^ (unsigned char)l.text[i]) * 1099511628211u;
	out->hash = h ? h : 1;
}
