#include "base/json/json_table.h"

#include "base/base64.h"
#include "base/parse.h"
#include "base/rfc3339.h"

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stddef.h>

/* The row whose second name it is, or n. */
static size_t
find_also(const struct json_field *fields, size_t n, const struct json_str *name)
{
	size_t i = 0;

	while (i < n && !(fields[i].also.n > 0 && json_str_is(name, fields[i].also)))
		i++;
	return i;
}

/* The row of a name, or n. Senders keep the order of members, so the row `first` is probably right. */
static size_t
find(const struct json_field *fields, size_t n, size_t first, const struct json_str *name)
{
	for (size_t i = 0; i < n; i++) {
		const size_t at = first + i < n ? first + i : first + i - n;

		if (json_str_is(name, fields[at].name))
			return at;
	}
	return n;
}

/* A member without a row. The reader skips it if it is not read. */
static void
refuse(struct json *r, const struct json_str *name)
{
	char shown[SHOWN_TEXT];

	json_fail(r, SLU_EINVAL, NULL, "expected no member %s",
		  parse_shown(name->raw, shown));
}

/* Compares the value of one name with the value of the other name, which is in place. */
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

/* Reads one value, unless it is null and not required. */
static void
read_field(struct json *r, const struct json_field *f, uint64_t bit, bool also,
	   struct json_seen *seen, void *out)
{
	uint64_t *const named = also ? &seen->also : &seen->named;
	const bool repeated = *named & bit;
	void *const place = (char *)out + f->offset;

	*named |= bit;
	if (!repeated && !f->required && json_may_be_null(r) && json_null(r))
		return;
	if (repeated)
		json_fail(r, SLU_EINVAL, NULL, "expected each member once");
	else if (seen->given & bit)
		read_again(r, f, also, place);
	else
		f->read(r, f, place);
	if (r->state == JSON_FAILED)
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

enum {
	OFTEN = 32 /* bytes of a C member that repeats often: a name in two spellings */
};

/* How far an object is with the members that repeat. */
enum again_state {
	AGAIN_NONE, /* it had none so far */
	AGAIN_OPEN, /* the member before is one, and is remembered */
	AGAIN_OVER  /* another member came behind them, or they were copied */
};

/* An object while it is read. */
struct object {
	struct json *r;
	const struct json_field *fields;
	size_t n;
	void *out;
	const char *brace; /* where it begins */
	struct json_seen seen;
	size_t last;              /* 1 + the row that was read last; 0: none */
	struct json_habit *habit; /* NULL: not known */
	struct json_again *again;
	enum again_state state;
};

/* The row that probably comes next: the row that followed in the object before, or in the table. */
static size_t
guess(const struct object *o)
{
	if (o->habit)
		return o->habit->next[o->last];
	return o->last < o->n ? o->last : 0;
}

static void
note_row(struct object *o, size_t row)
{
	if (o->habit)
		o->habit->next[o->last] = (uint8_t)row;
	o->last = row + 1;
}

/* The object has the members that were remembered: copies their values. */
static void
take_again(struct object *o)
{
	const struct json_again *const again = o->again;
	const char *from = (const char *)again->values;

	for (uint64_t rows = again->seen.given; rows; rows &= rows - 1) {
		const struct json_field *const f = &o->fields[__builtin_ctzll(rows)];
		char *const to = (char *)o->out + f->offset;

		if (f->size == OFTEN)
			memcpy(to, from, OFTEN); /* without a call */
		else
			memcpy(to, from, f->size);
		from += f->size;
	}
	o->seen.named |= again->seen.named;
	o->seen.also |= again->seen.also;
	o->seen.given |= again->seen.given;
	o->last = again->last;
	o->state = AGAIN_OVER;
}

/* Takes the members that come next, if they are the members of the object before. The object had none of their rows yet
 * (AGAIN_NONE). */
static void
copy_again(struct object *o)
{
	const struct json_again *const again = o->again;

	if (again->raw.n > 0 && json_skip_members(o->r, again->raw, again->value))
		take_again(o);
}

/* Copies the values of the rows in again->seen. Returns false if they do not fit. */
static bool
keep_values(const struct object *o, struct json_again *again)
{
	size_t n = 0;

	for (uint64_t rows = again->seen.given; rows; rows &= rows - 1) {
		const struct json_field *const f = &o->fields[__builtin_ctzll(rows)];

		if (f->size > sizeof again->values - n)
			return false;
		memcpy((char *)again->values + n, (const char *)o->out + f->offset, f->size);
		n += f->size;
	}
	return true;
}

/* Remembers a member that was read; its name begins, with its quote, at `begin`. */
static void
remember(struct object *o, size_t row, const char *begin)
{
	struct json_again *const again = o->again;
	uint64_t rows = (uint64_t)1 << row;

	if (o->state == AGAIN_NONE)
		again->raw.p = begin;
	else
		rows |= again->seen.named | again->seen.also;
	again->raw.n = (size_t)(o->r->p - again->raw.p);
	again->value = (size_t)(o->r->value - again->raw.p);
	again->seen = (struct json_seen){ o->seen.named & rows, o->seen.also & rows,
					  o->seen.given & rows };
	again->last = o->last;
	again->head.n = 0;
	o->state = AGAIN_OPEN;
	if (o->r->state != JSON_FAILED && keep_values(o, again))
		return;
	again->raw.n = 0;
	o->state = AGAIN_OVER;
}

/* Reads the value of a member with the name at `begin`. */
static void
read_row(struct object *o, size_t row, bool also, const char *begin)
{
	read_field(o->r, &o->fields[row], (uint64_t)1 << row, also, &o->seen, o->out);
	note_row(o, row);
	if (o->again && o->state != AGAIN_OVER && o->fields[row].repeats)
		remember(o, row, begin);
	else if (o->state == AGAIN_OPEN)
		o->state = AGAIN_OVER;
}

static void
read_member(struct object *o, enum json_unknown unknown, size_t first, const struct json_str *name)
{
	const bool guessed = o->n > 0 && o->fields[first].also.n > 0 && json_str_is(name, o->fields[first].also);
	size_t row = guessed ? first : find(o->fields, o->n, first, name);
	const bool also = guessed || row == o->n;

	if (row == o->n)
		row = find_also(o->fields, o->n, name);
	if (row < o->n)
		read_row(o, row, also, name->raw.p - 1);
	else if (unknown == JSON_STRICT)
		refuse(o->r, name);
	if (row == o->n && o->state == AGAIN_OPEN)
		o->state = AGAIN_OVER;
}

/* Remembers the beginning of the object if it has nothing before the member `row`, whose value comes next, but the members
 * that repeat. */
static void
remember_head(struct object *o, size_t row)
{
	struct json_again *const again = o->again;

	if (!again || again->head.n > 0 || again->raw.n == 0 || o->state == AGAIN_NONE ||
	    o->seen.named != again->seen.named || o->seen.also != again->seen.also ||
	    (size_t)(o->r->value - o->brace) != again->raw.n + strlen("{,"))
		return;
	again->head = (struct slice){ o->brace, (size_t)(o->r->p - o->brace) };
	again->follower = row;
}

/* Enters the object. If it begins as the one before, reads the member behind the repeated ones, too. */
static void
enter(struct object *o)
{
	const struct json_again *const again = o->again;

	o->brace = o->r->p;
	if (again && again->head.n > 0 && json_object_again(o->r, again->head)) {
		take_again(o);
		read_row(o, again->follower, false, NULL);
	} else {
		json_object(o->r);
		o->brace = o->r->value;
	}
}

/* Reads the next member, if there is one. Its name is probably the name of the guessed row. */
static bool
read_next(struct object *o, enum json_unknown unknown)
{
	const size_t first = guess(o);
	struct json_str name;

	if (json_object_ends(o->r))
		return false;
	if (o->n > 0 && json_member_is(o->r, o->fields[first].name)) {
		remember_head(o, first);
		read_row(o, first, false, o->r->value);
		return true;
	}
	if (!json_member(o->r, &name))
		return false;
	read_member(o, unknown, first, &name);
	return true;
}

/* Whether the object has all rows that are required. Their set is made once for all objects. */
static bool
has_required(const struct object *o)
{
	struct json_habit *const habit = o->habit;

	if (habit->n != o->n) {
		habit->n = o->n;
		habit->required = 0;
		for (size_t i = 0; i < o->n; i++)
			habit->required |= (uint64_t)o->fields[i].required << i;
	}
	return (habit->required & ~o->seen.given) == 0;
}

static uint64_t
read_object(struct object *o, enum json_unknown unknown)
{
	assert(o->n <= 64);
	enter(o);
	do {
		if (o->again && o->state == AGAIN_NONE)
			copy_again(o);
	} while (read_next(o, unknown));
	if (!o->habit || !has_required(o))
		check_required(o->r, o->fields, o->n, o->brace, o->seen.given);
	return o->r->state == JSON_FAILED ? 0 : o->seen.given;
}

uint64_t
json_fields_again(struct json *r, const struct json_field *fields, size_t n,
		  enum json_unknown unknown, struct json_again *again, void *out)
{
	struct object o = { .r = r, .fields = fields, .n = n, .out = out, .habit = again->habit, .again = again };

	return read_object(&o, unknown);
}

uint64_t
json_fields_habit(struct json *r, const struct json_field *fields, size_t n,
		  enum json_unknown unknown, struct json_habit *habit, void *out)
{
	struct object o = { .r = r, .fields = fields, .n = n, .out = out, .habit = habit };

	return read_object(&o, unknown);
}

uint64_t
json_fields(struct json *r, const struct json_field *fields, size_t n,
	    enum json_unknown unknown, void *out)
{
	return json_fields_habit(r, fields, n, unknown, NULL, out);
}

/* For rows without min and max. */
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

void
json_read_chars(struct json *r, const struct json_field *f, void *place)
{
	char *const out = place;
	struct json_str s;
	struct slice text;

	if (!json_string(r, &s))
		return;
	if (s.has_nul || s.n >= f->size) {
		json_fail(r, SLU_ETOOBIG, NULL, "expected at most %zu bytes", f->size - 1);
		return;
	}
	text = json_str_text(&s, out);
	memmove(out, text.p, text.n);
	out[text.n] = '\0';
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
	char room[64]; /* a moment is shorter */
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
json_read_raw(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(struct slice));
	*(struct slice *)place = json_skip(r);
}
