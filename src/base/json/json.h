/*
 * json.h - a JSON reader, exactly RFC 8259: no tree, no allocation, no copy.
 *
 * The caller asks for the value it expects, and the reader goes forward, never back:
 *
 *         json_init(&r, body, JSON_DEPTH);
 *         json_array(&r);
 *         while (json_element(&r)) {
 *                 json_object(&r);
 *                 while (json_member(&r, &key)) {
 *                         if (json_str_is(&key, SLICE("queue")))
 *                                 queue = json_text(&r);
 *                         else if (json_str_is(&key, SLICE("priority")))
 *                                 priority = json_i64(&r, 0, 10);
 *                 }
 *         }
 *         return json_end(&r, &err);
 *
 * The next json_element, json_member or json_end checks and skips a value that the
 * caller did not read. So init and end alone check whether a document is valid. A table
 * reads a whole object: json_table.h.
 *
 * The first error ends the reading: from then on every call does nothing and returns
 * false, 0 or an empty value, loops end, and json_end returns what was expected and
 * where. Check once, there. Until json_end has returned 0, act on nothing that was read.
 *
 * A loop over an array or an object runs to its end. A caller that has seen enough stays
 * in the loop without reading, or calls json_fail.
 *
 * Strings, numbers and spans point into the document and are valid as long as it is.
 */
#ifndef BASE_JSON_JSON_H
#define BASE_JSON_JSON_H

#include "base/json/json_text.h"

#include <sluice/err.h>

enum {
	JSON_DEPTH = 64,      /* the usual max_depth */
	JSON_DEPTH_MAX = 512, /* the largest max_depth */
	JSON_EXPECTED = 160   /* bytes of an error text */
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
	/* only of events (json_next) */
	JSON_MEMBER,
	JSON_CLOSE
};

enum json_state {
	JSON_AT_VALUE, /* before a value */
	JSON_OPENED,   /* behind the opening bracket of an array or object */
	JSON_BEHIND,   /* behind a value */
	JSON_FAILED
};

struct json {
	const char *start, *end;
	const char *p;     /* the next byte to read */
	const char *value; /* the beginning of the value read last */
	unsigned depth;    /* open arrays and objects */
	unsigned max_depth;
	enum json_state state;
	uint64_t objects[JSON_DEPTH_MAX / 64]; /* a bit for each level: 1 for an object */
	char *room;                            /* the free part of what json_room gave */
	size_t room_left;                      /* bytes of room */
	enum slu_code code;                    /* of the failure */
	const char *at;                        /* place of the failure */
	char expected[JSON_EXPECTED];          /* text of the failure */
};

struct json_pos {
	size_t offset; /* bytes from 0 */
	size_t line;   /* from 1 */
	size_t column; /* characters from 1 */
};

/* max_depth: how many arrays and objects may be nested. */
void json_init(struct json *r, struct slice document, unsigned max_depth);

/* Checks that only space follows. Returns 0, or the first failure: its code (SLU_EINVAL, or what
 * json_fail or json_text set), with the place and what was expected there. */
int json_end(struct json *r, struct slu_err *err);

/* The same, for a caller that knows of a failure and cannot read to the end. */
int json_report(const struct json *r, struct slu_err *err);

/* The place of the failure, or of the reader if there was none. */
struct json_pos json_pos(const struct json *r);

/* Fails for a reason of the caller, by custom "expected ...", at a place in the document (NULL: the
 * value or name read last). Only the first failure counts. */
void json_fail(struct json *r, enum slu_code code, const char *at, const char *fmt, ...)
	SLU_PRINTF(4, 5);

/* Puts the name of a member before the text of the failure: "limit: expected a number". */
void json_blame(struct json *r, struct slice name);

/* The type of the next value. Reads nothing. */
enum json_type json_peek(struct json *r);

/* Enter an array or an object, then loop until false. */
void json_array(struct json *r);
bool json_element(struct json *r);
void json_object(struct json *r);
bool json_member(struct json *r, struct json_str *name);

/* Skips the name if the next member has this one, which needs no escapes, and no space stands around it. Otherwise reads
 * nothing and returns false: json_member reads the name, whatever it is. */
bool json_member_is(struct json *r, struct slice name);

/* Skips members that are known to be valid, as another object of the document has them, if the same
 * bytes come next. value: where in `members` the last value begins. Otherwise returns false. */
bool json_skip_members(struct json *r, struct slice members, size_t value);

/* Enters an object that begins with the bytes of `head`: the bytes of another object of the document, from its brace to the
 * colon behind a name. Its members before that name are known to be valid. Otherwise reads nothing and returns false. */
bool json_object_again(struct json *r, struct slice head);

/* Leaves the object if it ends here, without a look past space. Otherwise returns false: json_member looks. */
static inline bool
json_object_ends(struct json *r)
{
	if (r->state != JSON_BEHIND || r->p == r->end || *r->p != '}')
		return false;
	r->p++;
	r->depth--;
	return true;
}

/* Skips null and returns true if it comes next; otherwise returns false. */
bool json_null(struct json *r);

/* Whether json_null may return true: one look at the next byte. */
static inline bool
json_may_be_null(const struct json *r)
{
	return r->p == r->end || *r->p == 'n' || (unsigned char)*r->p <= ' ';
}

bool json_bool(struct json *r);

/* Whole numbers from min to max: digits, and a minus if it is negative. 1.0 and 1e3 are
 * refused. */
int64_t json_i64(struct json *r, int64_t min, int64_t max);
uint64_t json_u64(struct json *r, uint64_t min, uint64_t max);

/* The nearest double. Refuses a number that is too large, or has more than 500 characters. */
double json_double(struct json *r);

/* A number as written. */
struct slice json_number(struct json *r);

/* A string as written; json_str_text unescapes it. Returns false, and an empty string, if the next
 * value is not a string. */
bool json_string(struct json *r, struct json_str *s);

/* The text of a string; \u0000 is refused. An escaped text is written into the room of json_room;
 * the reader fails with SLU_ETOOBIG if that is full. Room of the size of the document is always
 * enough. */
struct slice json_text(struct json *r);
void json_room(struct json *r, char *room, size_t n);

/* Takes n bytes of the room. Fails and returns NULL if fewer are left. */
char *json_take_room(struct json *r, size_t n);

/* Checks a value of any type. Returns its bytes, without the space around it. */
struct slice json_skip(struct json *r);

/*
 * The document as a flat row of events:
 *
 *      {"a":[1]}      JSON_OBJECT  JSON_MEMBER  JSON_ARRAY  JSON_NUMBER  2 x JSON_CLOSE
 */
struct json_event {
	enum json_type type;
	struct slice raw;    /* a scalar, a bracket, or a name with its quotes */
	struct json_str str; /* JSON_STRING and JSON_MEMBER */
};

/* Returns false after the last event, and after a failure. */
bool json_next(struct json *r, struct json_event *e);

/* Checks that text is one JSON value of this type (JSON_NONE: of any), nested at most
 * max_depth deep. Returns SLU_EINVAL, `invalid WHAT: why`, if it is not. */
int json_check(struct slice text, enum json_type type, unsigned max_depth, const char *what,
	       struct slu_err *err);

/* "a string", "null", ... for error texts. */
const char *json_type_name(enum json_type type);

#endif
