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

#include "base/rfc3339.h"

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

/* The two halves of a value: the comma and the name, then the value. The functions below call both
 * inline, so that the compiler knows the length of the name and copies it without a call: a
 * delivered message has a dozen of them. */

/* Begins a member. Returns the room for its name of n bytes, NULL if the buffer failed. */
char *json_out_member(struct json_out *w, size_t n);

/* Begins a value in an array, or after json_out_name. */
void json_out_element(struct json_out *w);

void json_out_put_u64(struct json_out *w, uint64_t v);
void json_out_put_i64(struct json_out *w, int64_t v);
void json_out_put_str(struct json_out *w, struct slice text);
void json_out_put_plain(struct json_out *w, struct slice text);
void json_out_put_time(struct json_out *w, slu_time t);

static inline struct slice
json_out_own(const char *name)
{
	return name ? slice_of(name) : (struct slice){ 0 };
}

static inline void
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

static inline void
json_out_i64(struct json_out *w, const char *name, int64_t v)
{
	json_out_begin(w, json_out_own(name));
	json_out_put_i64(w, v);
}

static inline void
json_out_u64(struct json_out *w, const char *name, uint64_t v)
{
	json_out_begin(w, json_out_own(name));
	json_out_put_u64(w, v);
}

/* Escapes control characters, quote and backslash. A byte that is not UTF-8 becomes U+FFFD. */
static inline void
json_out_str(struct json_out *w, const char *name, struct slice text)
{
	json_out_begin(w, json_out_own(name));
	json_out_put_str(w, text);
}

/* The same for a text that needs no escapes: ASCII without control characters, quote and backslash. */
static inline void
json_out_plain(struct json_out *w, const char *name, struct slice text)
{
	json_out_begin(w, json_out_own(name));
	json_out_put_plain(w, text);
}

static inline void
json_out_time(struct json_out *w, const char *name, slu_time t) /* RFC 3339 */
{
	json_out_begin(w, json_out_own(name));
	json_out_put_time(w, t);
}

void json_out_base64(struct json_out *w, const char *name, struct slice bytes);
void json_out_base64url(struct json_out *w, const char *name, struct slice bytes);

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
