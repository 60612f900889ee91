#include "base/json/json_out.h"

#include "base/base64.h"
#include "base/json/json.h"
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

/* Called when a level begins or ends. */
static void
set_level(struct json_out *w, unsigned depth)
{
	w->depth = depth;
	w->object = depth > 0 && w->objects >> (depth - 1) & 1;
}

/* Writes a character that is not plain: escaped, beyond ASCII, or U+FFFD for a byte that is not UTF-8.
 * Returns the number of its bytes. */
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

/* Room for n characters without escapes, between quotes; NULL if memory is out. */
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

	if (p && n > 0)
		memcpy(p, text, n);
}

static inline void
put_string(struct buf *b, struct slice s)
{
	if (json_all_plain(s))
		put_plain(b, s.p, s.n); /* most are */
	else
		put_escaped(b, s.p, s.p + s.n);
}

void
json_out_name(struct json_out *w, struct slice name)
{
	assert(w->object && !w->named);
	if (w->behind)
		buf_putc(w->b, ',');
	put_string(w->b, name);
	buf_putc(w->b, ':');
	w->named = true;
}

/* Every value but a member begins here. Returns whether a comma comes before it. */
static inline bool
begin_value(struct json_out *w)
{
	const bool comma = w->behind && !w->named;

	assert(w->named == w->object);
	assert(w->depth > 0 || !w->behind); /* one value */
	w->named = false;
	w->behind = true;
	return comma;
}

/* Writes what is around a name of n bytes, where there is room. Returns the place of the name. */
static inline char *
add_name(struct buf *b, size_t n, bool comma)
{
	char *p = b->p + b->n;

	b->n += n + 3 + comma;
	*p = ',';
	p += comma;
	*p++ = '"';
	p[n] = '"';
	p[n + 1] = ':';
	return p;
}

/* Apart from json_out_member, which then calls nothing and saves no registers. */
static __attribute__((noinline)) char *
grow_for_name(struct buf *b, size_t n, bool comma)
{
	return buf_grow(b, n + 3 + comma) ? add_name(b, n, comma) : NULL;
}

char *
json_out_member(struct json_out *w, size_t n)
{
	const bool comma = w->behind;
	struct buf *const b = w->b;

	assert(w->object && !w->named);
	w->behind = true;
	if (b->failed || n + 3 + comma >= b->size - b->n)
		return grow_for_name(b, n, comma);
	return add_name(b, n, comma);
}

void
json_out_element(struct json_out *w)
{
	if (begin_value(w))
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
	set_level(w, w->depth + 1);
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
	buf_putc(w->b, w->object ? '}' : ']');
	set_level(w, w->depth - 1);
	w->behind = true;
}

void
json_out_open(struct json_out *w, struct buf *b)
{
	json_out_init(w, b);
	json_out_object(w, NULL);
}

void
json_out_finish(struct json_out *w)
{
	json_out_close(w);
	json_out_end(w);
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

static void
put_u64(struct buf *b, uint64_t v)
{
	char digits[DIGITS_ROOM];

	if (!b->failed && b->size - b->n > DIGITS_ROOM)
		b->n = (size_t)(digits_put(b->p + b->n, v) - b->p);
	else
		buf_put(b, digits, (size_t)(digits_put(digits, v) - digits));
}

void
json_out_put_i64(struct json_out *w, int64_t v)
{
	if (v < 0)
		buf_putc(w->b, '-');
	put_u64(w->b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void
json_out_slow_u64(struct json_out *w, struct slice name, uint64_t v)
{
	json_out_begin(w, name);
	put_u64(w->b, v);
}

void
json_out_slow_plain(struct json_out *w, struct slice name, struct slice text)
{
	json_out_begin(w, name);
	put_plain(w->b, text.p, text.n);
}

void
json_out_put_str(struct json_out *w, struct slice text)
{
	put_string(w->b, text);
}

void
json_out_slow_base64(struct json_out *w, struct slice name, struct slice bytes)
{
	char *p;

	json_out_begin(w, name);
	p = add_quoted(w->b, base64_text(bytes.n));
	if (p)
		base64_encode(bytes, p);
}

void
json_out_slow_base64url(struct json_out *w, struct slice name, struct slice bytes)
{
	char *p;

	json_out_begin(w, name);
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
	set_level(w, w->depth + 1);
	assert(w->object); /* the bit of its level is still set */
}

const struct json_out_moment *
json_out_moment_of(struct json_out *w, slu_time t)
{
	struct json_out_moment *m = w->moments;

	if (m[0].n > 0 && m[0].t == t)
		return &m[0];
	if (m[1].n > 0 && m[1].t == t)
		return &m[1];
	m = &w->moments[w->oldest];
	w->oldest = !w->oldest;
	m->t = t;
	m->n = strlen(rfc3339_format(t, m->text));
	return m;
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
