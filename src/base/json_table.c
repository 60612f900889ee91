#include "base/json_table.h"

#include "base/base64.h"
#include "base/parse.h"
#include "base/rfc3339.h"

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stddef.h>

/* What was seen of the rows of a table, a bit each. */
struct seen {
	uint64_t named; /* by the name */
	uint64_t also;  /* by the second name */
	uint64_t given; /* and the value was not null */
};

/* The row whose second name it is, or n. */
static size_t
find_also(const struct json_field *fields, size_t n, const struct json_str *name)
{
	size_t i = 0;

	while (i < n && !(fields[i].also.n > 0 && json_str_is(name, fields[i].also)))
		i++;
	return i;
}

/* The row of a name, or n. Senders keep an order, so the row after the one before is
 * the first guess. */
static size_t
find(const struct json_field *fields, size_t n, size_t guess, const struct json_str *name)
{
	for (size_t i = 0; i < n; i++) {
		const size_t at = guess + i < n ? guess + i : guess + i - n;

		if (json_str_is(name, fields[at].name))
			return at;
	}
	return n;
}

/* A member that has no row. Left unread, it is skipped. */
static void
refuse(struct json *r, const struct json_str *name)
{
	char shown[SHOWN_TEXT];

	json_fail(r, SLU_EINVAL, NULL, "expected no member %s",
		  parse_shown(name->raw, shown));
}

/* The value under one of two names, when that under the other is in place. */
static void
read_again(struct json *r, const struct json_field *f, bool also, const void *place)
{
	const struct slice other_name = also ? f->name : f->also;
	alignas(max_align_t) char room[JSON_ALSO_MAX] = { 0 };
	const struct slice *const one = place;
	const struct slice *const other = (const void *)room;

	assert(f->size >= sizeof *one && f->size <= sizeof room);
	f->read(r, f, room);
	if (r->state != JSON_FAILED && !slice_eq(*one, *other))
		json_fail(r, SLU_EINVAL, NULL, "expected the same value as %.*s, or one of the two",
			  (int)other_name.n, other_name.p);
}

/* Read one value, unless it is null and may be. */
static void
read_field(struct json *r, const struct json_field *f, uint64_t bit, bool also,
	   struct seen *seen, void *out)
{
	uint64_t *const named = also ? &seen->also : &seen->named;
	const bool repeated = *named & bit;
	void *const place = (char *)out + f->offset;

	*named |= bit;
	if (!repeated && !f->required && json_null(r))
		return;
	if (repeated)
		json_fail(r, SLU_EINVAL, NULL, "expected each member once");
	else if (seen->given & bit)
		read_again(r, f, also, place);
	else
		f->read(r, f, place);
	json_blame(r, also ? f->also : f->name);
	seen->given |= bit;
}

static void
check_required(struct json *r, const struct json_field *fields, size_t n,
	       const char *object, uint64_t given)
{
	for (size_t i = 0; i < n; i++)
		if (fields[i].required && !(given >> i & 1))
			json_fail(r, SLU_EINVAL, object, "expected a member \"%.*s\"%s%.*s%s",
				  (int)fields[i].name.n, fields[i].name.p,
				  fields[i].also.n > 0 ? " or \"" : "", (int)fields[i].also.n,
				  fields[i].also.n > 0 ? fields[i].also.p : "", fields[i].also.n > 0 ? "\"" : "");
}

uint64_t
json_fields(struct json *r, const struct json_field *fields, size_t n,
	    enum json_unknown unknown, void *out)
{
	struct seen seen = { 0 };
	struct json_str name;
	const char *object;
	size_t row = 0;

	assert(n <= 64);
	json_object(r);
	object = r->value;
	while (json_member(r, &name)) {
		size_t found = find(fields, n, row, &name);
		const bool also = found == n;

		if (also)
			found = find_also(fields, n, &name);
		if (found == n && unknown == JSON_STRICT)
			refuse(r, &name);
		if (found == n)
			continue;
		read_field(r, &fields[found], (uint64_t)1 << found, also, &seen, out);
		row = found + 1 < n ? found + 1 : 0;
	}
	check_required(r, fields, n, object, seen.given);
	return r->state == JSON_FAILED ? 0 : seen.given;
}

/* For rows that do not say min and max. */
static bool
is_open(const struct json_field *f)
{
	return f->min == 0 && f->max == 0;
}

void
json_read_bool(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(bool));
	*(bool *)place = json_bool(r);
}

void
json_read_i64(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(int64_t));
	*(int64_t *)place = is_open(f) ? json_i64(r, INT64_MIN, INT64_MAX)
				       : json_i64(r, f->min, f->max);
}

void
json_read_i32(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(int32_t) && f->min >= INT32_MIN && f->max <= INT32_MAX);
	*(int32_t *)place = (int32_t)(is_open(f) ? json_i64(r, INT32_MIN, INT32_MAX)
						 : json_i64(r, f->min, f->max));
}

void
json_read_u64(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(uint64_t) && f->min >= 0 && f->max >= 0);
	*(uint64_t *)place = is_open(f) ? json_u64(r, 0, UINT64_MAX)
					: json_u64(r, (uint64_t)f->min, (uint64_t)f->max);
}

void
json_read_double(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(double));
	*(double *)place = json_double(r);
}

void
json_read_text(struct json *r, const struct json_field *f, void *place)
{
	const struct slice text = json_text(r);

	assert(f->size == sizeof text);
	if (text.n < (size_t)f->min)
		json_fail(r, SLU_EINVAL, NULL, "expected at least %" PRId64 " bytes", f->min);
	if (f->max > 0 && text.n > (size_t)f->max)
		json_fail(r, SLU_EINVAL, NULL, "expected at most %" PRId64 " bytes", f->max);
	*(struct slice *)place = text;
}

/* A slash is a letter of base64, and some senders escape slashes. */
void
json_read_base64(struct json *r, const struct json_field *f, void *place)
{
	struct slice *const bytes = place;
	struct json_str s;
	struct slu_err err;
	char *out;

	assert(f->size == sizeof *bytes);
	*bytes = (struct slice){ 0 };
	if (!json_string(r, &s))
		return;
	out = json_take_room(r, s.n);
	if (!out)
		return;
	if (base64_decode(json_str_text(&s, out), out, &bytes->n, &err))
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
	bytes->p = out;
}

void
json_read_time(struct json *r, const struct json_field *f, void *place)
{
	char room[64]; /* more than a moment needs */
	struct json_str s;
	struct slu_err err;

	assert(f->size == sizeof(slu_time));
	if (!json_string(r, &s))
		return;
	if (s.n > sizeof room)
		json_fail(r, SLU_EINVAL, NULL, "expected a time, not %zu bytes", s.n);
	else if (rfc3339_parse(json_str_text(&s, room), place, &err))
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
}

void
json_read_string(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(struct json_str));
	(void)json_string(r, place); /* a failure stays in the reader */
}

void
json_read_raw(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(struct slice));
	*(struct slice *)place = json_skip(r);
}
