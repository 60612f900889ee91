/*
 * json.h - read JSON where it lies: RFC 8259 to the letter, no tree, no allocation.
 *
 * The caller asks for what it expects and the reader moves on, never back:
 *
 *         json_init(&r, body, JSON_DEPTH);
 *         json_array(&r);
 *         while (json_element(&r)) {
 *                 json_object(&r);
 *                 while (json_member(&r, &key)) {
 *                         if (json_str_is(&key, SLICE("topic")))
 *                                 topic = json_text(&r);
 *                         else if (json_str_is(&key, SLICE("priority")))
 *                                 priority = json_i64(&r, 0, 10);
 *                 }
 *         }
 *         return json_end(&r, &err);
 *
 * A value that nobody asked for is checked and skipped by the next json_element,
 * json_member or json_end. So init and end alone tell whether a document is valid.
 * A table can do the whole of an object: json_table.h.
 *
 * The first thing that is wrong ends the reading: from then on every call does
 * nothing and returns false, 0, or nothing, loops end, and json_end says what was
 * expected and where. Ask once, there. Until it returned 0, nothing that was read may
 * be acted upon.
 *
 * Every loop over an array or an object runs to its end, or the reader has failed:
 * who has seen enough goes on without reading, or calls json_fail.
 *
 * Strings, numbers and spans point into the document; they live as long as it does.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/json_text.h"

#include <sluice/err.h>

enum {
	JSON_DEPTH = 64,      /* what to pass as max_depth unless there is a reason */
	JSON_DEPTH_MAX = 512, /* the most that can be passed */
	JSON_EXPECTED = 160
};

enum json_type {
	JSON_NONE, /* the reader has failed */
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
	/* of events alone */
	JSON_MEMBER,
	JSON_CLOSE
};

enum json_state {
	JSON_AT_VALUE, /* one comes next, and was not read yet */
	JSON_OPENED,   /* an array or object, nothing of it was read */
	JSON_BEHIND,   /* a value was read to its end */
	JSON_FAILED
};

struct json {
	const char *start, *end;
	const char *p;     /* what was not read yet */
	const char *value; /* where the value read last begins */
	unsigned depth;
	unsigned max_depth;
	enum json_state state;
	uint64_t objects[JSON_DEPTH_MAX / 64]; /* bit a level: is it an object? */
	char *room;                            /* json_room: what is left of it */
	size_t room_left;
	enum slu_code code; /* of the failure, with its place */
	const char *at;
	char expected[JSON_EXPECTED];
};

struct json_pos {
	size_t offset; /* bytes from 0 */
	size_t line;   /* from 1 */
	size_t column; /* characters from 1 */
};

/* More than max_depth arrays and objects inside each other are refused. */
void json_init(struct json *r, struct slice document, unsigned max_depth);

/* Nothing but space may follow. 0, or the failure: SLU_EINVAL, with the place and
 * what was expected there, unless json_room says otherwise. */
int json_end(struct json *r, struct slu_err *err);

/* What json_end answers, for who cannot go on to the end. The reader has failed. */
int json_report(const struct json *r, struct slu_err *err);

/* Where the failure is, or else how far the reader has come. */
struct json_pos json_pos(const struct json *r);

/* Fail for a reason of the caller's, "expected ..." by custom, at a place in the
 * document; NULL is the value or name read last. The first failure is the one that
 * counts. */
void json_fail(struct json *r, enum slu_code code, const char *at, const char *fmt, ...)
	SLU_PRINTF(4, 5);

/* "expected a number" becomes "limit: expected a number". For who reads a member. */
void json_blame(struct json *r, struct slice name);

/* What comes next, without moving. */
enum json_type json_peek(struct json *r);

/* Enter, then ask until there is no more. */
void json_array(struct json *r);
bool json_element(struct json *r);
void json_object(struct json *r);
bool json_member(struct json *r, struct json_str *name);

/* True, and past it, if null comes next; else nothing happens. */
bool json_null(struct json *r);

bool json_bool(struct json *r);

/* Whole numbers are digits, and perhaps a minus: 1.0 and 1e3 are refused, as is what
 * lies outside min and max. Never rounded. */
int64_t json_i64(struct json *r, int64_t min, int64_t max);
uint64_t json_u64(struct json *r, uint64_t min, uint64_t max);

/* The nearest double. Refused: what is too large for one, and a number written with
 * more than 500 characters. */
double json_double(struct json *r);

/* A number as it is written. */
struct slice json_number(struct json *r);

/* A string as it is written; json_str_text unescapes it. False, and an empty one, when
 * there is none. */
bool json_string(struct json *r, struct json_str *s);

/* The text of a string without \u0000. When it has escapes it is written into the
 * room given before; none left is SLU_ETOOBIG. As much room as the document is long
 * is always enough. */
struct slice json_text(struct json *r);
void json_room(struct json *r, char *room, size_t n);

/* Take n bytes of the room, or fail and return NULL. */
char *json_take_room(struct json *r, size_t n);

/* A whole value, whatever it is: checked, and its exact bytes without the space
 * around it. */
struct slice json_skip(struct json *r);

/*
 * For who wants to see everything: the document as a flat row of events.
 *
 *      {"a":[1]}      JSON_OBJECT  JSON_MEMBER  JSON_ARRAY  JSON_NUMBER  2 x JSON_CLOSE
 */
struct json_event {
	enum json_type type;
	struct slice raw;    /* scalars whole, else the bracket or the name with quotes */
	struct json_str str; /* JSON_STRING and JSON_MEMBER */
};

/* False after the last one, and when the reader has failed. */
bool json_next(struct json *r, struct json_event *e);

/* Check that text is one JSON value of this type (JSON_NONE: of any), nested at most
 * max_depth deep. SLU_EINVAL: `invalid WHAT: why`. */
int json_check(struct slice text, enum json_type type, unsigned max_depth, const char *what,
	       struct slu_err *err);

/* "a string", "null", ... for messages. */
const char *json_type_name(enum json_type type);

#endif
