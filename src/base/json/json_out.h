/*
 * json_out.h - writes JSON into a buffer, with commas and escapes.
 *
 *         json_out_open(&w, &b);
 *         json_out_u64(&w, "id", id);
 *         json_out_array(&w, "queues");
 *         json_out_str(&w, NULL, queue);
 *         json_out_close(&w);
 *         json_out_finish(&w);
 *         if (b.failed)
 *                 ...
 *
 * A value inside an object has a name, any other has NULL. The name is a literal without
 * escapes; for any other text, call json_out_name before the value and pass NULL. The
 * output is compact, and one value. Asserts catch misuse: a name outside an object, a
 * close too many.
 */
#ifndef BASE_JSON_JSON_OUT_H
#define BASE_JSON_JSON_OUT_H

#include "base/base64.h"
#include "base/json/digits.h"
#include "base/rfc3339.h"

#include <assert.h>

enum {
	JSON_OUT_DEPTH = 64
};

struct json_out {
	struct buf *b;
	unsigned depth;   /* open arrays and objects */
	uint64_t objects; /* a bit for each level: 1 for an object */
	bool object;      /* the innermost level is an object */
	bool behind;      /* this level has a value already */
	bool named;       /* json_out_name has written the name of the next value */

	/* A cache of the last two moments: messages of one answer often share theirs. */
	struct json_out_moment {
		slu_time t;
		size_t n; /* bytes of text; 0: empty */
		char text[RFC3339_TEXT];
	} moments[2];
	unsigned oldest; /* index of the moment to replace next */
};

void json_out_init(struct json_out *w, struct buf *b); /* b is borrowed until the end */
void json_out_end(const struct json_out *w);           /* asserts: a whole value */

/* The same for a value that is an object: begins the object, ends it. */
void json_out_open(struct json_out *w, struct buf *b);
void json_out_finish(struct json_out *w);

void json_out_object(struct json_out *w, const char *name);
void json_out_array(struct json_out *w, const char *name);
void json_out_close(struct json_out *w); /* the array or object that was opened last */

void json_out_name(struct json_out *w, struct slice name);

/* The compiler must know the name, to copy it without a call: a delivered message has a dozen of them. */
#define JSON_OUT_INLINE static inline __attribute__((always_inline))

/* The two halves of a value: the comma and the name, then the value. */

/* Begins a member. Returns the room for its name of n bytes, NULL if the buffer failed. */
char *json_out_member(struct json_out *w, size_t n);

/* Begins a value in an array, or after json_out_name. */
void json_out_element(struct json_out *w);

void json_out_put_i64(struct json_out *w, int64_t v);
void json_out_put_str(struct json_out *w, struct slice text);

JSON_OUT_INLINE struct slice
json_out_own(const char *name)
{
	return name ? slice_of(name) : (struct slice){ 0 };
}

JSON_OUT_INLINE void
json_out_begin(struct json_out *w, struct slice name)
{
	char *p;

	if (!name.p) {
		json_out_element(w);
		return;
	}
	p = json_out_member(w, name.n);
	if (p)
		memcpy(p, name.p, name.n);
}

void json_out_null(struct json_out *w, const char *name);
void json_out_bool(struct json_out *w, const char *name, bool v);

/* A member, or without a name an element, when the buffer must grow: not inline. */
void json_out_slow_u64(struct json_out *w, struct slice name, uint64_t v);
void json_out_slow_plain(struct json_out *w, struct slice name, struct slice text);

/* Begins a member with a value of at most `max` bytes, and returns the place of the value; json_out_past ends it. NULL: nothing
 * was written, because there is no name, or no room at once. */
JSON_OUT_INLINE char *
json_out_room(struct json_out *w, struct slice name, size_t max)
{
	struct buf *const b = w->b;
	const bool comma = w->behind;
	char *p;

	if (!name.p || b->failed || name.n + 4 + max >= b->size - b->n)
		return NULL;
	assert(w->object && !w->named);
	w->behind = true;
	p = b->p + b->n;
	*p = ',';
	p += comma;
	*p++ = '"';
	memcpy(p, name.p, name.n);
	memcpy(p + name.n, "\":", 2);
	return p + name.n + 2;
}

JSON_OUT_INLINE void
json_out_past(struct json_out *w, const char *end)
{
	w->b->n = (size_t)(end - w->b->p);
}

JSON_OUT_INLINE void
json_out_i64(struct json_out *w, const char *name, int64_t v)
{
	char *p = json_out_room(w, json_out_own(name), 1 + DIGITS_ROOM);

	if (!p) {
		json_out_begin(w, json_out_own(name));
		json_out_put_i64(w, v);
		return;
	}
	*p = '-';
	p += v < 0;
	json_out_past(w, digits_put(p, v < 0 ? -(uint64_t)v : (uint64_t)v));
}

JSON_OUT_INLINE void
json_out_u64(struct json_out *w, const char *name, uint64_t v)
{
	char *const p = json_out_room(w, json_out_own(name), DIGITS_ROOM);

	if (p)
		json_out_past(w, digits_put(p, v));
	else
		json_out_slow_u64(w, json_out_own(name), v);
}

/* Escapes control characters, quote and backslash. A byte that is not UTF-8 becomes U+FFFD. */
JSON_OUT_INLINE void
json_out_str(struct json_out *w, const char *name, struct slice text)
{
	json_out_begin(w, json_out_own(name));
	json_out_put_str(w, text);
}

/* The same for a text that needs no escapes: ASCII without control characters, quote and backslash. */
JSON_OUT_INLINE void
json_out_plain(struct json_out *w, const char *name, struct slice text)
{
	char *const p = json_out_room(w, json_out_own(name), text.n + 2);

	if (!p) {
		json_out_slow_plain(w, json_out_own(name), text);
		return;
	}
	p[0] = p[text.n + 1] = '"';
	if (text.n > 0)
		memcpy(p + 1, text.p, text.n);
	json_out_past(w, p + text.n + 2);
}

/* The text of a moment, from the cache. */
const struct json_out_moment *json_out_moment_of(struct json_out *w, slu_time t);

JSON_OUT_INLINE void
json_out_time(struct json_out *w, const char *name, slu_time t) /* RFC 3339 */
{
	const struct json_out_moment *const m = json_out_moment_of(w, t);
	char *const p = json_out_room(w, json_out_own(name), sizeof m->text + 2);

	if (!p) {
		json_out_slow_plain(w, json_out_own(name), (struct slice){ m->text, m->n });
		return;
	}
	memcpy(p + 1, m->text, sizeof m->text); /* more than needed, in two stores */
	p[0] = p[m->n + 1] = '"';
	json_out_past(w, p + m->n + 2);
}

void json_out_slow_base64(struct json_out *w, struct slice name, struct slice bytes);
void json_out_slow_base64url(struct json_out *w, struct slice name, struct slice bytes);

JSON_OUT_INLINE void
json_out_base64(struct json_out *w, const char *name, struct slice bytes)
{
	const size_t n = base64_text(bytes.n);
	char *const p = json_out_room(w, json_out_own(name), n + 2);

	if (!p) {
		json_out_slow_base64(w, json_out_own(name), bytes);
		return;
	}
	p[0] = p[n + 1] = '"';
	base64_encode(bytes, p + 1);
	json_out_past(w, p + n + 2);
}

JSON_OUT_INLINE void
json_out_base64url(struct json_out *w, const char *name, struct slice bytes)
{
	const size_t n = base64url_text(bytes.n);
	char *const p = json_out_room(w, json_out_own(name), n + 2);

	if (!p) {
		json_out_slow_base64url(w, json_out_own(name), bytes);
		return;
	}
	p[0] = p[n + 1] = '"';
	base64url_encode(bytes, p + 1);
	json_out_past(w, p + n + 2);
}

/* The same in parts. All but the last have a multiple of 3 bytes. The caller may empty the buffer
 * between them:
 *
 *         json_out_base64_begin(&w, "payload");
 *         json_out_base64_part(&w, piece);           as often as needed
 *         json_out_base64_end(&w);
 */
void json_out_base64_begin(struct json_out *w, const char *name);
void json_out_base64_part(struct json_out *w, struct slice bytes);
void json_out_base64_end(struct json_out *w);

/* Removes the last close, of an object, so that members can follow. Only directly after it. */
void json_out_reopen(struct json_out *w);

/* Writes a value that is valid JSON as it is. */
void json_out_raw(struct json_out *w, const char *name, struct slice value);

/* Writes a value that may be any bytes (from a store that another program wrote): as it is if it is
 * valid JSON, otherwise as a string. */
void json_out_stored(struct json_out *w, const char *name, struct slice value);

#endif
