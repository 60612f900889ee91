#include "base/json_out.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

#include <assert.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void
json_out_init(struct json_out *w, struct buf *b)
{
	*w = (struct json_out){ .b = b };
}

void
json_out_end(const struct json_out *w)
{
	assert(w->depth == 0 && w->behind);
}

static bool
in_object(const struct json_out *w)
{
	return w->depth > 0 && w->objects >> (w->depth - 1) & 1;
}

/* What is not plain: an escape, a character beyond ASCII, or a byte that is none of
 * these. Returns how many bytes it was. */
static size_t
put_special(struct buf *b, const char *p, const char *end)
{
	static const char letters[256] = {
		['"'] = '"',
		['\\'] = '\\',
		['\b'] = 'b',
		['\f'] = 'f',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't',
	};
	const unsigned char c = (unsigned char)*p;
	const size_t n = utf8_length(p, end);

	if (letters[c])
		buf_put(b, (char[]){ '\\', letters[c] }, 2);
	else if (c < 0x20)
		buf_printf(b, "\\u%04x", c);
	else if (n == 0)
		buf_puts(b, REPLACEMENT);
	else
		buf_put(b, p, n);
	return n > 0 ? n : 1;
}

static void
put_escaped(struct buf *b, const char *p, const char *end)
{
	buf_putc(b, '"');
	while (p < end) {
		const char *const plain_end = json_plain_end(p, end);

		buf_put(b, p, (size_t)(plain_end - p));
		p = plain_end;
		if (p < end)
			p += put_special(b, p, end);
	}
	buf_putc(b, '"');
}

/* Room for n characters that need no escapes, between quotes; NULL: no memory. */
static inline char *
add_quoted(struct buf *b, size_t n)
{
	char *const p = buf_add(b, n + 2);

	if (!p)
		return NULL;
	p[0] = p[n + 1] = '"';
	return p + 1;
}

static void
put_plain(struct buf *b, const char *text, size_t n)
{
	char *const p = add_quoted(b, n);

	if (p)
		memcpy(p, text, n);
}

static void
put_string(struct buf *b, struct slice s)
{
	const char *const end = s.n > 0 ? s.p + s.n : s.p;

	if (s.n > 0 && json_plain_end(s.p, end) == end)
		put_plain(b, s.p, s.n); /* most are */
	else
		put_escaped(b, s.p, end);
}

void
json_out_name(struct json_out *w, struct slice name)
{
	assert(in_object(w) && !w->named);
	if (w->behind)
		buf_putc(w->b, ',');
	put_string(w->b, name);
	buf_putc(w->b, ':');
	w->named = true;
}

/* A name that stands in our own code needs no escapes, and so no look at each letter. */
static void
put_own_name(struct buf *b, struct slice name, bool comma)
{
	char *p = buf_add(b, name.n + 3 + comma);

	if (!p)
		return;
	if (comma)
		*p++ = ',';
	*p++ = '"';
	memcpy(p, name.p, name.n);
	p[name.n] = '"';
	p[name.n + 1] = ':';
}

void
json_out_begin(struct json_out *w, struct slice name)
{
	const bool comma = w->behind && !w->named;

	assert(!(name.p && w->named));
	assert((name.p || w->named) == in_object(w));
	assert(w->depth > 0 || !w->behind); /* one value */
	w->named = false;
	w->behind = true;
	if (name.p)
		put_own_name(w->b, name, comma);
	else if (comma)
		buf_putc(w->b, ',');
}

static void
begin(struct json_out *w, const char *name)
{
	json_out_begin(w, json_out_own(name));
}

static void
open_level(struct json_out *w, const char *name, bool object)
{
	begin(w, name);
	assert(w->depth < JSON_OUT_DEPTH);
	buf_putc(w->b, object ? '{' : '[');
	w->objects &= ~((uint64_t)1 << w->depth);
	w->objects |= (uint64_t)object << w->depth;
	w->depth++;
	w->behind = false;
}

void
json_out_object(struct json_out *w, const char *name)
{
	open_level(w, name, true);
}

void
json_out_array(struct json_out *w, const char *name)
{
	open_level(w, name, false);
}

void
json_out_close(struct json_out *w)
{
	assert(w->depth > 0 && !w->named);
	buf_putc(w->b, in_object(w) ? '}' : ']');
	w->depth--;
	w->behind = true;
}

void
json_out_null(struct json_out *w, const char *name)
{
	begin(w, name);
	buf_put(w->b, "null", 4);
}

void
json_out_bool(struct json_out *w, const char *name, bool v)
{
	begin(w, name);
	buf_puts(w->b, v ? "true" : "false");
}

/* From the last digit to the first, two at a time: printf would take longer than all the
 * rest. */
static void
put_u64(struct buf *b, uint64_t v)
{
	static const char pairs[] =
		"0001020304050607080910111213141516171819"
		"2021222324252627282930313233343536373839"
		"4041424344454647484950515253545556575859"
		"6061626364656667686970717273747576777879"
		"8081828384858687888990919293949596979899";
	char digits[20];
	size_t at = sizeof digits;

	if (v < 10) {
		buf_putc(b, (char)('0' + v));
		return;
	}
	for (; v >= 10; v /= 100)
		memcpy(digits + (at -= 2), pairs + v % 100 * 2, 2);
	if (v > 0)
		digits[--at] = (char)('0' + v);
	buf_put(b, digits + at, sizeof digits - at);
}

void
json_out_put_i64(struct json_out *w, int64_t v)
{
	if (v < 0)
		buf_putc(w->b, '-');
	put_u64(w->b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void
json_out_put_u64(struct json_out *w, uint64_t v)
{
	put_u64(w->b, v);
}

void
json_out_put_str(struct json_out *w, struct slice text)
{
	put_string(w->b, text);
}

void
json_out_base64(struct json_out *w, const char *name, struct slice bytes)
{
	char *p;

	begin(w, name);
	p = add_quoted(w->b, base64_text(bytes.n));
	if (p)
		base64_encode(bytes, p);
}

void
json_out_base64url(struct json_out *w, const char *name, struct slice bytes)
{
	char *p;

	begin(w, name);
	p = add_quoted(w->b, base64url_text(bytes.n));
	if (p)
		base64url_encode(bytes, p);
}

void
json_out_base64_begin(struct json_out *w, const char *name)
{
	begin(w, name);
	buf_putc(w->b, '"');
}

void
json_out_base64_part(struct json_out *w, struct slice bytes)
{
	char *const p = buf_add(w->b, base64_text(bytes.n));

	if (p)
		base64_encode(bytes, p);
}

void
json_out_base64_end(struct json_out *w)
{
	buf_putc(w->b, '"');
}

void
json_out_reopen(struct json_out *w)
{
	assert(w->depth < JSON_OUT_DEPTH && w->behind && !w->named);
	assert(w->b->failed || w->b->p[w->b->n - 1] == '}');
	w->b->n -= w->b->n > 0;
	w->depth++;
	assert(in_object(w)); /* the bit of its level still stands */
}

static const struct json_out_moment *
moment_of(struct json_out *w, slu_time t)
{
	struct json_out_moment *m = w->moments;

	for (unsigned i = 0; i < 2; i++, m++)
		if (m->n > 0 && m->t == t)
			return m;
	m = &w->moments[w->oldest];
	w->oldest = !w->oldest;
	m->t = t;
	m->n = strlen(rfc3339_format(t, m->text));
	return m;
}

void
json_out_put_time(struct json_out *w, slu_time t)
{
	const struct json_out_moment *const m = moment_of(w, t);

	put_plain(w->b, m->text, m->n);
}

void
json_out_raw(struct json_out *w, const char *name, struct slice value)
{
	begin(w, name);
	buf_put(w->b, value.p, value.n);
}

void
json_out_stored(struct json_out *w, const char *name, struct slice value)
{
	if (json_check(value, JSON_NONE, JSON_DEPTH_MAX, "value", NULL) == 0)
		json_out_raw(w, name, value);
	else
		json_out_str(w, name, value);
}
