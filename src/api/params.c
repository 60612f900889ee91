#include "api/params.h"

#include "api/holder.h"
#include "form/values.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "core/names.h"
#include "http/query.h"

#include <assert.h>
#include <stdio.h>

enum {
	SMALL_QUERY = 1024 /* a longer query is checked in allocated memory */
};

static struct slice
slice_in(struct param_text text)
{
	return (struct slice){ text.p, text.n };
}

int
param_read_name(const struct param *p, struct param_text text, void *place,
		struct slu_err *err)
{
	char folded[NAME_TEXT];
	int rc;

	assert(p->size == sizeof(struct slice));
	rc = name_fold(slice_in(text), "name", folded, err);
	if (rc)
		return rc;
	memcpy(text.p, folded, text.n);
	*(struct slice *)place = slice_in(text);
	return 0;
}

int
param_read_spelling(const struct param *p, struct param_text text, void *place,
		    struct slu_err *err)
{
	char folded[NAME_TEXT];
	const int rc = name_fold(slice_in(text), "name", folded, err);

	assert(p->size == sizeof(struct slice));
	if (!rc)
		*(struct slice *)place = slice_in(text);
	return rc;
}

int
param_read_id(const struct param *p, struct param_text text, void *place,
	      struct slu_err *err)
{
	assert(p->size == sizeof(struct given_id));
	return value_id(slice_in(text), place, err);
}

int
param_read_receipt(const struct param *p, struct param_text text, void *place,
		   struct slu_err *err)
{
	assert(p->size == sizeof(struct receipt));
	return value_receipt(slice_in(text), text.p, place, err);
}

int
param_read_span(const struct param *p, struct param_text text, void *place,
		struct slu_err *err)
{
	assert(p->size == sizeof(slu_time));
	return value_span(slice_in(text), p->min, p->max, place, err);
}

int
param_read_count(const struct param *p, struct param_text text, void *place,
		 struct slu_err *err)
{
	uint64_t number;

	assert(p->size == sizeof(uint32_t));
	if (parse_u64(slice_in(text), (uint64_t)p->min, (uint64_t)p->max, &number,
		      NULL))
		return slu_fail(err, SLU_EINVAL, "expected a whole number from %d to %d",
				(int)p->min, (int)p->max);
	*(uint32_t *)place = (uint32_t)number;
	return 0;
}

int
param_read_number(const struct param *p, struct param_text text, void *place,
		  struct slu_err *err)
{
	assert(p->size == sizeof(uint64_t));
	if (parse_u64(slice_in(text), 0, UINT64_MAX, place, NULL))
		return slu_fail(err, SLU_EINVAL, "expected a whole number");
	return 0;
}

int
param_read_flag(const struct param *p, struct param_text text, void *place,
		struct slu_err *err)
{
	const struct slice s = slice_in(text);

	assert(p->size == sizeof(bool));
	if (!slice_eq(s, SLICE("true")) && !slice_eq(s, SLICE("false")))
		return slu_fail(err, SLU_EINVAL, "expected true or false");
	*(bool *)place = *text.p == 't';
	return 0;
}

int
param_read_word(const struct param *p, struct param_text text, void *place,
		struct slu_err *err)
{
	(void)err; /* any text is valid */
	assert(p->size == sizeof(struct slice));
	*(struct slice *)place = slice_in(text);
	return 0;
}

int
param_read_owner(const struct param *p, struct param_text text, void *place,
		 struct slu_err *err)
{
	assert(p->size == sizeof(struct slice));
	*(struct slice *)place = slice_in(text);
	return holder_check(slice_in(text), err);
}

/* --- one after the other ------------------------------------------------------ */

struct filling {
	const struct param *rows;
	size_t n;
	char *out;
	uint64_t given; /* a bit for each row */
	uint64_t also;  /* the same, by the second name */
};

static int
read_one(const struct param *p, const char *name, struct param_text text, void *place, struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	struct slu_err why;

	if (!p->read(p, text, place, &why))
		return 0;
	(void)parse_shown(slice_in(text), shown);
	if (strstr(why.text, shown)) /* the text has the value */
		return slu_fail(err, why.code, "%s: %s", name, why.text);
	return slu_fail(err, why.code, "%s: invalid value %s; %s", name, shown, why.text);
}

enum {
	NAMES_TEXT = 512 /* bytes of the list of names */
};

static int
refuse_repeated(const char *name, struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL, "invalid parameter %s: given twice; expected once", name);
}

static int
refuse_escapes(struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL, "invalid query; expected name=value&name=value after the ?, "
					 "with %% as %%25");
}

/* The names of the rows as "a, b, c". */
static const char *
list_names(const struct filling *f, char text[static NAMES_TEXT])
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < f->n && n < NAMES_TEXT; i++)
		n += (size_t)snprintf(text + n, NAMES_TEXT - n, "%s%s%s%s", i ? ", " : "",
				      f->rows[i].name, f->rows[i].also ? ", " : "",
				      f->rows[i].also ? f->rows[i].also : "");
	return text;
}

static int
refuse_unknown(const struct filling *f, struct slice name, struct slu_err *err)
{
	char shown[SHOWN_TEXT], names[NAMES_TEXT], written[NEAREST_MAX + 1] = "";
	const size_t n = name.n < sizeof written ? name.n : 0; /* a longer name is similar to none */
	struct nearest best = nearest_to(written);

	(void)parse_shown(name, shown);
	if (f->n == 0)
		return slu_fail(err, SLU_EINVAL, "invalid parameter %s; expected none", shown);
	memcpy(written, name.p, n);
	for (size_t i = 0; i < f->n; i++) {
		nearest_try(&best, f->rows[i].name);
		if (f->rows[i].also)
			nearest_try(&best, f->rows[i].also);
	}
	(void)list_names(f, names);
	if (best.name)
		return slu_fail(err, SLU_EINVAL, "invalid parameter %s; did you mean %s? Expected one of %s",
				shown, best.name, names);
	return slu_fail(err, SLU_EINVAL, "invalid parameter %s; expected one of %s", shown, names);
}

/* Reads the value of the second name, and compares it with the value of the first. */
static int
read_again(const struct param *p, bool also, struct param_text text, const struct slice *place,
	   struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	struct slice other;
	int rc;

	assert(p->size == sizeof other);
	rc = read_one(p, also ? p->also : p->name, text, &other, err);
	if (rc || slice_eq(*place, other))
		return rc;
	return slu_fail(err, SLU_EINVAL, "%s: expected the same value as %s, or only one of them; got %s",
			also ? p->also : p->name, also ? p->name : p->also, parse_shown(other, shown));
}

static int
take(struct filling *f, struct slice name, struct param_text text, struct slu_err *err)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct param *const p = &f->rows[i];
		const uint64_t bit = (uint64_t)1 << i;
		const bool also = p->also && slice_eq(name, slice_of(p->also));
		uint64_t *const given = also ? &f->also : &f->given;

		if (!also && !slice_eq(name, slice_of(p->name)))
			continue;
		if (*given & bit)
			return refuse_repeated(also ? p->also : p->name, err);
		*given |= bit;
		if (f->given & f->also & bit)
			return read_again(p, also, text, (const void *)(f->out + p->offset), err);
		return read_one(p, also ? p->also : p->name, text, f->out + p->offset, err);
	}
	return refuse_unknown(f, name, err);
}

/* Handles the rows that the request left out. */
static int
complete(const struct filling *f, struct slu_err *err)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct param *const p = &f->rows[i];

		if ((f->given | f->also) >> i & 1)
			continue;
		if (p->required)
			return slu_fail(err, SLU_EINVAL, "%s%s%s: is required", p->name, p->also ? " or " : "",
					p->also ? p->also : "");
		if (p->otherwise)
			*(uint32_t *)(void *)(f->out + p->offset) = p->otherwise;
	}
	return 0;
}

int
params_query(const struct param *rows, size_t n, struct slice query, char *room,
	     void *out, struct slu_err *err)
{
	struct filling f = { .rows = rows, .n = n, .out = out };
	struct query_param p;
	struct query q;

	assert(n <= 64);
	query_init(&q, query, room, query.n);
	while (query_next(&q, &p)) {
		/* The value was decoded into room, which may be changed. */
		const size_t at = p.value.n ? (size_t)(p.value.p - room) : 0;
		const struct param_text text = { room + at, p.value.n };
		const int rc = take(&f, p.name, text, err);

		if (rc)
			return rc;
	}
	if (q.rc)
		return refuse_escapes(err);
	return complete(&f, err);
}

/* The bit of the name, or 0 if the list does not have it. */
static uint64_t
bit_of(struct slice name, const char *const *names)
{
	for (unsigned i = 0; names && names[i]; i++) {
		assert(i < 64);
		if (slice_eq(name, slice_of(names[i])))
			return (uint64_t)1 << i;
	}
	return 0;
}

static int
check(struct query *q, const char *const *once, bool open, struct slu_err *err)
{
	const struct filling none = { 0 };
	char name[NEAREST_MAX + 1];
	struct query_param p;
	uint64_t given = 0;

	while (query_next(q, &p)) {
		const uint64_t bit = bit_of(p.name, once);

		if (!bit && !open)
			return refuse_unknown(&none, p.name, err);
		if (bit & given) {
			(void)snprintf(name, sizeof name, "%.*s", (int)p.name.n, p.name.p); /* a known name fits */
			return refuse_repeated(name, err);
		}
		given |= bit;
	}
	return q->rc ? refuse_escapes(err) : 0;
}

int
params_check(struct slice query, const char *const *once, bool open, struct slu_err *err)
{
	char small[SMALL_QUERY];
	char *const large = query.n > sizeof small ? mem_alloc(query.n) : NULL;
	struct query q;
	int rc;

	if (query.n > sizeof small && !large)
		return slu_fail(err, SLU_ENOMEM, "no memory for a query");
	query_init(&q, query, large ? large : small, query.n);
	rc = check(&q, once, open, err);
	mem_free(large);
	return rc;
}

/* Copies the text of the next value into the room of the reader. */
static struct param_text
read_value(struct json *r)
{
	const enum json_type type = json_peek(r);
	struct param_text copy = { 0 };
	struct slice text = { 0 };

	if (type == JSON_STRING)
		text = json_text(r);
	else if (type == JSON_NUMBER || type == JSON_TRUE || type == JSON_FALSE)
		text = json_skip(r);
	else
		json_fail(r, SLU_EINVAL, r->p, "expected a string or a number");
	copy.p = json_take_room(r, text.n);
	if (copy.p && text.n > 0) {
		memcpy(copy.p, text.p, text.n);
		copy.n = text.n;
	}
	return copy;
}

int
params_json(const struct param *rows, size_t n, struct slice body, char *room,
	    void *out, struct slu_err *err)
{
	struct filling f = { .rows = rows, .n = n, .out = out };
	struct json_str name;
	struct json r;
	int rc = 0;

	assert(n <= 64);
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, 2 * body.n);
	json_object(&r);
	while (json_member(&r, &name)) {
		const struct param_text text = read_value(&r);

		if (text.p && !rc)
			rc = take(&f, name.raw, text, err);
	}
	if (json_end(&r, NULL))
		return json_explain(&r, -1, err);
	return rc ? rc : complete(&f, err);
}
