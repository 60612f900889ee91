/*
 * json_out.h - write JSON into a buffer; commas and escapes are done here.
 *
 *         json_out_init(&w, &b);
 *         json_out_object(&w, NULL);
 *         json_out_u64(&w, "id", id);
 *         json_out_array(&w, "topics");
 *         json_out_str(&w, NULL, topic);
 *         json_out_close(&w);
 *         json_out_close(&w);
 *         json_out_end(&w);
 *         if (b.failed)
 *                 ...
 *
 * A name goes with everything inside an object and with nothing else. It stands in our
 * own code and needs no escapes; for any other, json_out_name comes first and the name
 * is NULL. Compact, one value.
 * Misuse (a name where none belongs, a close too many) is a bug and asserted.
 */
#ifndef BASE_JSON_OUT_H
#define BASE_JSON_OUT_H

#include "base/rfc3339.h"

enum {
	JSON_OUT_DEPTH = 64
};

struct json_out {
	struct buf *b;
	unsigned depth;
	uint64_t objects; /* bit a level: is it an object? */
	bool behind;      /* a value stands before, on this level */
	bool named;       /* json_out_name was called for the next value */

	/* The last two moments that were written: the messages of an answer mostly share
	 * theirs, and a calendar is slow. */
	struct json_out_moment {
		slu_time t;
		size_t n; /* 0: none yet */
		char text[RFC3339_TEXT];
	} moments[2];
	unsigned oldest; /* of them */
};

void json_out_init(struct json_out *w, struct buf *b); /* b is borrowed until the end */
void json_out_end(const struct json_out *w);           /* asserts: a whole value */

void json_out_object(struct json_out *w, const char *name);
void json_out_array(struct json_out *w, const char *name);
void json_out_close(struct json_out *w); /* whichever was opened last */

void json_out_name(struct json_out *w, struct slice name);

/* The two halves of a member: what stands before its value (the name, or a comma), and the
 * value. Numbers, texts and times are written by both here, inline, so that the compiler counts
 * the letters of the name: every message that is handed out has a dozen of them. */
void json_out_begin(struct json_out *w, struct slice name);
void json_out_put_u64(struct json_out *w, uint64_t v);
void json_out_put_i64(struct json_out *w, int64_t v);
void json_out_put_str(struct json_out *w, struct slice text);
void json_out_put_time(struct json_out *w, slu_time t);

static inline struct slice
json_out_own(const char *name)
{
	return name ? slice_of(name) : (struct slice){ 0 };
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

/* Escaped: control characters, quote, backslash. A byte that is not UTF-8 becomes
 * U+FFFD. */
static inline void
json_out_str(struct json_out *w, const char *name, struct slice text)
{
	json_out_begin(w, json_out_own(name));
	json_out_put_str(w, text);
}

static inline void
json_out_time(struct json_out *w, const char *name, slu_time t) /* RFC 3339 */
{
	json_out_begin(w, json_out_own(name));
	json_out_put_time(w, t);
}

void json_out_base64(struct json_out *w, const char *name, struct slice bytes);
void json_out_base64url(struct json_out *w, const char *name, struct slice bytes);

/* The same in parts, each but the last a multiple of 3 bytes; the buffer may be emptied
 * between them:
 *
 *         json_out_base64_begin(&w, "payload");
 *         json_out_base64_part(&w, piece);           as often as needed
 *         json_out_base64_end(&w);
 */
void json_out_base64_begin(struct json_out *w, const char *name);
void json_out_base64_part(struct json_out *w, struct slice bytes);
void json_out_base64_end(struct json_out *w);

/* Take the last close back, which nothing was written behind: it was an object's. */
void json_out_reopen(struct json_out *w);

/* A value that is valid JSON already, byte for byte. */
void json_out_raw(struct json_out *w, const char *name, struct slice value);

/* A value that should be JSON, from a place that may hold anything (a store that another
 * program wrote): byte for byte if it is valid, as a string if it is not. */
void json_out_stored(struct json_out *w, const char *name, struct slice value);

#endif
