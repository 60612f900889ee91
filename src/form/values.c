#include "form/values.h"

#include "form/arena.h"
#include "base/id.h"
#include "base/json/json_whole.h"
#include "base/parse.h"
#include "core/names.h"
#include "core/queue/kind.h"
#include "core/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

struct priority_label {
	struct slice name;
	int32_t value;
};

/* clang-format off */
static const struct priority_label labels[] = {
	{ { "high", 4 }, 0 },
	{ { "normal", 6 }, 5 },
	{ { "low", 3 }, 10 },
};
/* clang-format on */

static int
fail_rounded(struct slice id, struct slu_err *err)
{
	return slu_fail(err, SLU_EROUNDED,
			"id %.*s was rounded by a JSON parser; send the receipt, or the id as "
			"\"uid\" string",
			(int)id.n, id.p);
}

/* A double as Python, PHP, Perl and others print it: 3.184972668021309e+17. */
static bool
has_exponent(struct slice s)
{
	static const char letters[] = "0123456789.eE+";

	for (size_t i = 0; i < s.n; i++)
		if (!memchr(letters, s.p[i], sizeof letters - 1))
			return false;
	return s.n > 0 && (memmem(s.p, s.n, "e+", 2) || memmem(s.p, s.n, "E+", 2));
}

int
value_id(struct slice s, struct given_id *out, struct slu_err *err)
{
	uint64_t id;

	if (parse_u64(s, 1, ID_MAX, &id, NULL) == 0)
		*out = (struct given_id){ id, id_is_rounded(id) };
	else if (id_from_uuid(s, &id, NULL) == 0)
		*out = (struct given_id){ id, false };
	else if (has_exponent(s))
		return fail_rounded(s, err);
	else
		return slu_fail(err, SLU_EINVAL, "expected an id: a number or a UUID");
	return 0;
}

int
value_id_failed(struct given_id id, int rc, struct slu_err *err)
{
	char text[24];
	int n;

	if (rc != SLU_ENOTFOUND || !id.rounded)
		return rc;
	n = snprintf(text, sizeof text, "%" PRIu64, id.id);
	return fail_rounded((struct slice){ text, (size_t)n }, err);
}

_Static_assert((int)RECEIPT_NAME == (int)NAME_LONGEST, "every queue has receipts");

/* Copies the name to *at, and moves *at behind it. */
static struct slice
keep_name(struct slice name, char **at)
{
	const struct slice kept = { memcpy(*at, name.p, name.n), name.n };

	*at += name.n;
	return kept;
}

int
value_receipt(struct slice s, char *names, struct receipt *out, struct slu_err *err)
{
	char room[RECEIPT_TEXT];
	struct receipt r;
	const int rc = receipt_parse(s, room, &r, err);

	if (rc)
		return rc;
	if (!name_is_folded(r.space) || !name_is_folded(r.queue) || r.token == VALUE_NO_LEASE)
		return slu_fail(err, SLU_EINVAL, "invalid receipt; expected one of an answer");
	r.space = keep_name(r.space, &names);
	r.queue = keep_name(r.queue, &names);
	*out = r;
	return 0;
}

/* Digits, perhaps with a fraction: seconds. */
static bool
is_seconds(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != '.' && (s.p[i] < '0' || s.p[i] > '9'))
			return false;
	return s.n > 0;
}

int
value_span(struct slice s, slu_time min, slu_time max, slu_time *out, struct slu_err *err)
{
	char text[DURATION_TEXT];
	char low[DURATION_TEXT], high[DURATION_TEXT];
	slu_time span;
	int n;

	n = snprintf(text, sizeof text, "%.*s%s", s.n < sizeof text ? (int)s.n : 0,
		     s.n ? s.p : "", is_seconds(s) ? "s" : "");
	if (n < 0 || (size_t)n >= sizeof text ||
	    parse_duration((struct slice){ text, (size_t)n }, &span, NULL))
		return slu_fail(err, SLU_EINVAL, "expected seconds or a time like 500ms");
	if (span < min || span > max)
		return slu_fail(err, SLU_EINVAL, "expected a time from %s to %s",
				format_duration(min, low, sizeof low),
				format_duration(max, high, sizeof high));
	*out = span;
	return 0;
}

int
value_priority(struct slice s, int32_t *out, struct slu_err *err)
{
	int64_t number;

	for (size_t i = 0; i < COUNT(labels); i++) {
		if (slice_eq(s, labels[i].name)) {
			*out = labels[i].value;
			return 0;
		}
	}
	if (parse_i64(s, INT32_MIN, INT32_MAX, &number, NULL))
		return slu_fail(err, SLU_EINVAL,
				"expected high, normal, low or a whole number of 32 bits");
	*out = (int32_t)number;
	return 0;
}

static void
parse_lease(struct slice s, uint64_t *out)
{
	*out = VALUE_NO_LEASE;
	if (s.n > 2 && memcmp(s.p, "l-", 2) == 0)
		(void)parse_u64((struct slice){ s.p + 2, s.n - 2 }, 1, VALUE_NO_LEASE - 1,
				out, NULL); /* if it fails, VALUE_NO_LEASE stays */
}

const char *
value_lease_text(uint64_t token, char out[static VALUE_LEASE_TEXT])
{
	out[0] = 'l';
	out[1] = '-';
	*digits_put(out + 2, token) = '\0';
	return out;
}

/* --- the same out of JSON ----------------------------------------------------- */

enum {
	WORD_MAX = 64 /* a longer text is no number, label, id or time */
};

/* A number or a short string as text; otherwise empty. */
static struct slice
read_word(struct json *r, char room[static WORD_MAX])
{
	struct json_str s;

	if (json_peek(r) == JSON_NUMBER)
		return json_number(r);
	if (!json_string(r, &s) || s.n > WORD_MAX)
		return (struct slice){ 0 };
	return json_str_text(&s, room);
}

void
json_read_spelled(struct json *r, const struct json_field *f, void *place)
{
	struct spelled *const out = place;
	const struct slice as = json_text(r);
	char folded[NAME_TEXT];
	struct slu_err err;
	char *copy;

	assert(f->size == sizeof *out);
	if (r->state == JSON_FAILED)
		return;
	out->name = out->as = as;
	if (name_is_folded(as))
		return; /* most names are folded already */
	if (name_fold(as, "name", folded, &err)) {
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
		return;
	}
	copy = json_take_room(r, as.n);
	if (!copy)
		return;
	memcpy(copy, folded, as.n);
	out->name.p = copy;
}

void
json_read_name(struct json *r, const struct json_field *f, void *place)
{
	const struct json_field spelled = { .size = sizeof(struct spelled) };
	struct spelled name;

	assert(f->size == sizeof(struct slice));
	json_read_spelled(r, &spelled, &name);
	if (r->state != JSON_FAILED)
		*(struct slice *)place = name.name;
}

void
json_read_id(struct json *r, const struct json_field *f, void *place)
{
	char room[WORD_MAX];
	struct slu_err err;
	uint64_t id;

	assert(f->size == sizeof(struct given_id));
	if (json_whole(r, 1, ID_MAX, &id))
		*(struct given_id *)place = (struct given_id){ id, id_is_rounded(id) };
	else if (value_id(read_word(r, room), place, &err))
		json_fail(r, err.code, NULL, "%s", err.text);
}

void
json_read_receipt(struct json *r, const struct json_field *f, void *place)
{
	char room[RECEIPT_TEXT];
	struct slice text;
	struct slu_err err;
	struct json_str s;
	char *names;

	assert(f->size == sizeof(struct receipt));
	if (!json_string(r, &s))
		return;
	text = s.n <= sizeof room ? json_str_text(&s, room) : s.raw; /* too long for any receipt */
	names = json_take_room(r, text.n);
	if (names && value_receipt(text, names, place, &err))
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
}

void
json_read_span(struct json *r, const struct json_field *f, void *place)
{
	char room[WORD_MAX];
	struct slu_err err;

	assert(f->size == sizeof(slu_time));
	if (value_span(read_word(r, room), f->min, f->max, place, &err))
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
}

void
json_read_priority(struct json *r, const struct json_field *f, void *place)
{
	char room[WORD_MAX];
	struct slu_err err;

	assert(f->size == sizeof(int32_t));
	if (value_priority(read_word(r, room), place, &err))
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
}

void
json_read_lease(struct json *r, const struct json_field *f, void *place)
{
	char room[WORD_MAX];
	struct json_str s;

	assert(f->size == sizeof(uint64_t));
	if (!json_string(r, &s))
		return;
	*(uint64_t *)place = VALUE_NO_LEASE;
	if (s.n <= WORD_MAX)
		parse_lease(json_str_text(&s, room), place);
}

static void
read_checked(struct json *r, const struct json_field *f, void *place,
	     int (*check)(struct slice text, const char *what, struct slu_err *err))
{
	const struct slice text = json_text(r);
	struct slu_err err;

	assert(f->size == sizeof text);
	if (r->state != JSON_FAILED && check(text, "the text", &err))
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
	*(struct slice *)place = text;
}

void
json_read_key(struct json *r, const struct json_field *f, void *place)
{
	read_checked(r, f, place, key_check);
}

void
json_read_share(struct json *r, const struct json_field *f, void *place)
{
	read_checked(r, f, place, share_check);
}

void
json_read_kind(struct json *r, const struct json_field *f, void *place)
{
	read_checked(r, f, place, kind_check);
}

int
value_kind(struct arena *a, struct slice kind, struct slice *out, struct slu_err *err)
{
	char *const text = arena_alloc(a, 1 + kind.n);

	if (!text)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	text[0] = KIND_MARK;
	memcpy(text + 1, kind.p, kind.n);
	*out = (struct slice){ text, 1 + kind.n };
	return 0;
}

int
value_kinds(struct arena *a, struct slice list, struct slice *out, struct slu_err *err)
{
	char *const text = arena_alloc(a, 1 + list.n);
	unsigned n = 0;

	*out = (struct slice){ text, 0 };
	if (!text)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	do {
		const char *const comma = list.n == 0 ? NULL : memchr(list.p, ',', list.n);
		const struct slice kind = { list.p, comma ? (size_t)(comma - list.p) : list.n };

		if (kind_check(kind, "kind", err))
			return SLU_EINVAL;
		if (n++ == KINDS_OF_CLAIM)
			return slu_fail(err, SLU_EINVAL, "invalid kinds; expected at most %d", KINDS_OF_CLAIM);
		text[out->n] = KIND_MARK;
		memcpy(text + out->n + 1, kind.p, kind.n);
		out->n += 1 + kind.n;
		list.p += kind.n + (comma != NULL);
		list.n -= kind.n + (comma != NULL);
	} while (list.n);
	return 0;
}

void
json_read_line(struct json *r, const struct json_field *f, void *place)
{
	read_checked(r, f, place, correlation_check);
}

void
json_read_object(struct json *r, const struct json_field *f, void *place)
{
	struct slice text;

	assert(f->size == sizeof text && f->max > 0);
	if (json_peek(r) != JSON_OBJECT)
		json_object(r); /* the error has the expected form */
	text = json_skip(r);
	if (text.n > (size_t)f->max)
		json_fail(r, SLU_EINVAL, NULL, "expected at most %" PRId64 " bytes", f->max);
	*(struct slice *)place = text;
}

/* The value at which the reader failed, without quotes; empty for an array or object. */
static struct slice
value_at(const struct json *r)
{
	const bool quoted = r->at < r->end && *r->at == '"';
	const char *const begin = r->at + quoted;
	const char *p = begin;

	while (p < r->end && (quoted ? *p != '"' : !strchr(" \t\r\n,:{}[]", *p)))
		p++;
	return (struct slice){ begin, (size_t)(p - begin) };
}

int
json_explain(const struct json *r, int64_t index, struct slu_err *err)
{
	const struct json_pos pos = json_pos(r);
	const struct slice value = value_at(r);
	const char *const form = strstr(r->expected, "expected "); /* the part behind the name of the member */
	char shown[SHOWN_TEXT], item[32] = "";

	assert(r->state == JSON_FAILED);
	if (index >= 0)
		(void)snprintf(item, sizeof item, "item %" PRId64 ": ", index); /* fits */
	(void)parse_shown(value, shown);
	if (value.n == 0 || !form || strstr(form, "each member once") || strstr(r->expected, shown))
		return slu_fail(err, r->code, "%s%s (line %zu, column %zu)", item,
				r->expected, pos.line, pos.column);
	return slu_fail(err, r->code, "%s%.*sinvalid value %s; %s (line %zu, column %zu)", item,
			(int)(form - r->expected), r->expected, shown, form, pos.line, pos.column);
}

int
value_trace(struct arena *a, struct slice parent, struct slice state, struct slice *out)
{
	char text[TRACE_PARENT];
	char *p;

	*out = (struct slice){ 0 };
	if (parent.n == 0 || !trace_parent(parent, text))
		return 0;
	if (!trace_state(state))
		state.n = 0;
	p = arena_alloc(a, sizeof text + state.n);
	if (!p)
		return SLU_ENOMEM;
	memcpy(p, text, sizeof text);
	if (state.n)
		memcpy(p + sizeof text, state.p, state.n);
	*out = (struct slice){ p, sizeof text + state.n };
	return 0;
}
