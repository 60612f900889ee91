/*
 * json_value.c - values as C types, and whole documents, on top of json.c.
 */
#include "base/json/json_whole.h"

#include "base/parse.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
	DOUBLE_TEXT = 500 /* characters of a number for json_double */
};

const char *
json_type_name(enum json_type type)
{
	static const char *const names[] = {
		[JSON_NONE] = "nothing",
		[JSON_NULL] = "null",
		[JSON_FALSE] = "false",
		[JSON_TRUE] = "true",
		[JSON_NUMBER] = "a number",
		[JSON_STRING] = "a string",
		[JSON_ARRAY] = "an array",
		[JSON_OBJECT] = "an object",
		[JSON_MEMBER] = "a member",
		[JSON_CLOSE] = "an end",
	};

	return names[type];
}

int
json_check(struct slice text, enum json_type type, unsigned max_depth, const char *what,
	   struct slu_err *err)
{
	struct slu_err why;
	struct json r;

	json_init(&r, text, max_depth);
	if (type != JSON_NONE && json_peek(&r) != type)
		json_fail(&r, SLU_EINVAL, r.p, "expected %s", json_type_name(type));
	if (json_end(&r, &why))
		return slu_fail(err, SLU_EINVAL, "invalid %s: %s", what, why.text);
	return 0;
}

bool
json_null(struct json *r)
{
	return json_peek(r) == JSON_NULL && json_skip(r).n > 0;
}

bool
json_bool(struct json *r)
{
	const enum json_type type = json_peek(r);

	if (type == JSON_TRUE || type == JSON_FALSE)
		return json_skip(r).n > 0 && type == JSON_TRUE;
	if (type != JSON_NONE)
		json_fail(r, SLU_EINVAL, NULL, "expected true or false, not %s",
			  json_type_name(type));
	return false;
}

/* -0 is a whole number too. */
static struct slice
without_minus_zero(struct slice raw)
{
	return slice_eq(raw, SLICE("-0")) ? SLICE("0") : raw;
}

int64_t
json_i64(struct json *r, int64_t min, int64_t max)
{
	const struct slice raw = without_minus_zero(json_number(r));
	int64_t v = 0;

	if (raw.n > 0 && parse_i64(raw, min, max, &v, NULL))
		json_fail(r, SLU_EINVAL, NULL,
			  "expected a whole number from %" PRId64 " to %" PRId64, min, max);
	return v;
}

uint64_t
json_u64(struct json *r, uint64_t min, uint64_t max)
{
	struct slice raw;
	uint64_t v = 0;

	if (json_whole(r, min, max, &v))
		return v; /* nearly all */
	raw = without_minus_zero(json_number(r));
	if (raw.n > 0 && parse_u64(raw, min, max, &v, NULL))
		json_fail(r, SLU_EINVAL, NULL,
			  "expected a whole number from %" PRIu64 " to %" PRIu64, min, max);
	return v;
}

/* strtod needs a NUL, and the decimal point of the C locale. newlocale("C") returns a constant of
 * libc and allocates nothing. */
static double
to_double(struct slice raw)
{
	char text[DOUBLE_TEXT + 1];

	memcpy(text, raw.p, raw.n);
	text[raw.n] = '\0';
	return strtod_l(text, NULL, newlocale(LC_ALL_MASK, "C", NULL));
}

double
json_double(struct json *r)
{
	const struct slice raw = json_number(r);
	double v;

	if (raw.n == 0)
		return 0;
	if (raw.n > DOUBLE_TEXT) {
		json_fail(r, SLU_EINVAL, NULL, "expected at most %d digits", DOUBLE_TEXT);
		return 0;
	}
	v = to_double(raw);
	if (isfinite(v))
		return v;
	json_fail(r, SLU_EINVAL, NULL, "expected a number that a double can hold");
	return 0;
}

void
json_room(struct json *r, char *room, size_t n)
{
	r->room = room;
	r->room_left = n;
}

char *
json_take_room(struct json *r, size_t n)
{
	char *const taken = r->room;

	if (n > r->room_left) {
		json_fail(r, SLU_ETOOBIG, NULL, "no room for %zu bytes", n);
		return NULL;
	}
	r->room += n;
	r->room_left -= n;
	return taken;
}

struct slice
json_text(struct json *r)
{
	struct json_str s;
	char *out;

	if (!json_string(r, &s) || s.n == s.raw.n)
		return s.raw;
	if (s.has_nul) {
		json_fail(r, SLU_EINVAL, NULL, "expected a string without \\u0000");
		return (struct slice){ 0 };
	}
	out = json_take_room(r, s.n);
	return out ? json_str_text(&s, out) : (struct slice){ 0 };
}

void
json_fail(struct json *r, enum slu_code code, const char *at, const char *fmt, ...)
{
	va_list ap;

	if (r->state == JSON_FAILED)
		return;
	r->state = JSON_FAILED;
	r->code = code;
	r->at = at ? at : r->value;
	va_start(ap, fmt);
	(void)vsnprintf(r->expected, sizeof r->expected, fmt, ap); /* may be cut */
	va_end(ap);
}

void
json_blame(struct json *r, struct slice name)
{
	const size_t n = name.n < 40 ? name.n : 40;

	if (r->state != JSON_FAILED)
		return;
	memmove(r->expected + n + 2, r->expected, sizeof r->expected - n - 2);
	memcpy(r->expected, name.p, n);
	memcpy(r->expected + n, ": ", 2);
	r->expected[sizeof r->expected - 1] = '\0';
}

struct json_pos
json_pos(const struct json *r)
{
	const char *const at = r->state == JSON_FAILED ? r->at : r->p;
	struct json_pos pos = { (size_t)(at - r->start), 1, 1 };

	for (const char *p = r->start; p < at; p++) {
		if (*p == '\n') {
			pos.line++;
			pos.column = 1;
		} else if ((*p & 0xc0) != 0x80) { /* no second byte of a character */
			pos.column++;
		}
	}
	return pos;
}

int
json_report(const struct json *r, struct slu_err *err)
{
	const struct json_pos pos = json_pos(r);

	return slu_fail(err, r->code, "line %zu, column %zu (byte %zu): %s%s", pos.line,
			pos.column, pos.offset, r->expected,
			r->at == r->end ? ", not the end" : "");
}
