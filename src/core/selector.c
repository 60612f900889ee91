/*
 * selector.c - conditions as an array of nodes, each before its parts.
 *
 *      {"eq":A,"not":{"or":[{"eq":B},{"eq":C}]}}
 *
 *      0 and   1 eq A   2 not   3 or   4 and   5 eq B   6 and   7 eq C
 *      end 8   end 2    end 8   end 8  end 6   end 6    end 8   end 8
 *
 * The parts of node i begin at i + 1; the next part after a part p is at the end of p. A match
 * goes from the last node to the first, so every part is known before its node: no recursion.
 */
#include "core/selector.h"

#include "base/mem.h"
#include "core/moment.h"

struct selector_node;
struct found;

typedef bool node_test(const struct selector *s, const struct selector_node *n,
		       const struct found *value);

/* A bound of a range. */
struct bound {
	bool given;
	double number;
	struct moment moment;
};

enum {
	BOUND_GT,
	BOUND_GTE,
	BOUND_LT,
	BOUND_LTE,
	/* of dates alone */
	BOUND_SINCE,
	BOUND_AFTER,
	BOUND_BEFORE,
	BOUND_VALUE,
	BOUNDS
};

struct selector_node {
	const struct kind *kind;
	unsigned end;
	struct json_path path;
	unsigned values, n_values; /* in selector.values */
	struct bound bounds[BOUNDS];
	bool moments; /* the bounds are */
	bool numbers; /* the bounds are */
	bool ignore_case;
};

/* A value to compare a field with. */
struct selector_value {
	struct slice text;    /* in small letters, if the node ignores case */
	const uint32_t *back; /* for a node that searches: back_of */
	bool is_number, is_null, is_moment;
	double number;
	struct moment moment;
};

struct selector {
	char *text;     /* a copy of the JSON, and room for what is unescaped */
	uint32_t *back; /* of all values: value.back */
	unsigned n_nodes, n_values;
	unsigned cost;
	struct selector_node nodes[SELECTOR_NODES];
	struct selector_value values[SELECTOR_VALUES];
};

/* A value of a document. */
struct found {
	enum json_type type;
	struct slice text; /* of a scalar; of a string unescaped */
};

/* ---- The tests. ---- */

static bool
test_exists(const struct selector *s, const struct selector_node *n, const struct found *v)
{
	(void)s;
	(void)n;
	return v->type != JSON_NULL;
}

static bool
number_of(struct slice text, double *out)
{
	struct json r;

	json_init(&r, text, 0);
	*out = json_double(&r);
	return json_end(&r, NULL) == 0;
}

static bool
is_scalar(const struct found *v)
{
	return v->type != JSON_ARRAY && v->type != JSON_OBJECT && v->type != JSON_NULL;
}

static bool
is_value(const struct selector_value *want, const struct found *v)
{
	struct moment moment;
	double number;

	if (want->is_null)
		return v->type == JSON_NULL;
	if (!is_scalar(v))
		return false;
	if (slice_eq(want->text, v->text))
		return true;
	if (want->is_moment && v->type == JSON_STRING && moment_parse(v->text, &moment))
		return moment_eq(moment, want->moment);
	return want->is_number && v->type == JSON_NUMBER && number_of(v->text, &number) &&
	       number == want->number;
}

static bool
test_eq(const struct selector *s, const struct selector_node *n, const struct found *v)
{
	for (unsigned i = 0; i < n->n_values; i++)
		if (is_value(&s->values[n->values + i], v))
			return true;
	return false;
}

static bool
begins_with(struct slice text, const struct selector_value *part, bool ignore_case)
{
	const struct slice want = part->text;

	if (text.n < want.n)
		return false;
	if (!ignore_case)
		return want.n == 0 || memcmp(text.p, want.p, want.n) == 0;
	for (size_t i = 0; i < want.n; i++)
		if (ascii_lower(text.p[i]) != want.p[i])
			return false;
	return true;
}

/* Knuth, Morris and Pratt: back[i] is how many bytes at the beginning of the text are also
 * the end of its first i + 1 bytes. A search that has matched i + 1 bytes and meets another
 * byte goes on there, and never back in what it searches. */
static void
back_of(struct slice text, uint32_t *back)
{
	uint32_t matched = 0;

	for (size_t i = 0; i < text.n; i++) {
		while (i > 0 && matched > 0 && text.p[i] != text.p[matched])
			matched = back[matched - 1];
		matched += i > 0 && text.p[i] == text.p[matched];
		back[i] = matched;
	}
}

static bool
contains(struct slice text, const struct selector_value *part, bool ignore_case)
{
	const struct slice want = part->text;
	size_t matched = 0;

	for (size_t i = 0; i < text.n && matched < want.n; i++) {
		const char c = ignore_case ? ascii_lower(text.p[i]) : text.p[i];

		while (matched > 0 && c != want.p[matched])
			matched = part->back[matched - 1];
		matched += c == want.p[matched];
	}
	return matched == want.n;
}

typedef bool text_test(struct slice text, const struct selector_value *part, bool ignore_case);

/* Without a value, the field must only exist. */
static bool
test_text(const struct selector *s, const struct selector_node *n, const struct found *v,
	  text_test *fits)
{
	if (n->n_values == 0)
		return true;
	for (unsigned i = 0; i < n->n_values && is_scalar(v); i++)
		if (fits(v->text, &s->values[n->values + i], n->ignore_case))
			return true;
	return false;
}

static bool
test_prefix(const struct selector *s, const struct selector_node *n, const struct found *v)
{
	return test_text(s, n, v, begins_with);
}

static bool
test_contains(const struct selector *s, const struct selector_node *n, const struct found *v)
{
	return test_text(s, n, v, contains);
}

/* How a comparison with a bound may end. */
enum {
	BELOW = 1,
	SAME = 2,
	ABOVE = 4
};

static const unsigned bound_fits[BOUNDS] = {
	[BOUND_GT] = ABOVE,
	[BOUND_GTE] = ABOVE | SAME,
	[BOUND_LT] = BELOW,
	[BOUND_LTE] = BELOW | SAME,
	[BOUND_SINCE] = ABOVE | SAME,
	[BOUND_AFTER] = ABOVE,
	[BOUND_BEFORE] = BELOW,
};

static bool
fits_moment(const struct selector_node *n, struct slice text)
{
	struct moment m;

	if (!moment_parse(text, &m))
		return false;
	for (unsigned i = 0; i < BOUNDS; i++) {
		const slu_time at = n->bounds[i].moment.at;
		const unsigned how = m.at < at ? BELOW : m.at > at ? ABOVE
								   : SAME;

		if (n->bounds[i].given && i == BOUND_VALUE && !moment_eq(m, n->bounds[i].moment))
			return false;
		if (n->bounds[i].given && i != BOUND_VALUE && !(how & bound_fits[i]))
			return false;
	}
	return true;
}

static bool
fits_number(const struct selector_node *n, struct slice text)
{
	double x;

	if (!number_of(text, &x))
		return false;
	for (unsigned i = 0; i < BOUNDS; i++) {
		const double at = n->bounds[i].number;
		const unsigned how = x < at ? BELOW : x > at ? ABOVE
							     : SAME;

		if (n->bounds[i].given && !(how & bound_fits[i]))
			return false;
	}
	return true;
}

static bool
test_range(const struct selector *s, const struct selector_node *n, const struct found *v)
{
	(void)s;
	return is_scalar(v) && (n->moments ? fits_moment : fits_number)(n, v->text);
}

/* ---- Reading. ---- */

/* An object or array of selectors that is open. */
struct selector_level {
	unsigned node;
	bool array;
};

struct selector_reader {
	struct json r;
	struct selector *s;
	struct selector_level levels[SELECTOR_NESTING];
	unsigned depth;
	slu_time now;
};

typedef void node_read(struct selector_reader *rd, struct selector_node *n);

struct kind {
	struct slice name;
	node_read *read; /* NULL: it is made of others */
	node_test *test;
	bool array;  /* of these */
	bool any;    /* one of its parts must hold; otherwise all must */
	bool negate; /* inverts the result */
	bool ignore_case;
	unsigned bounds;     /* how many of the bounds it may have */
	const char *members; /* it may have, for errors */
};

/* Adds a value, or fails and returns NULL if there are too many. */
static struct selector_value *
add_value(struct selector_reader *rd, struct selector_node *n)
{
	if (rd->s->n_values == SELECTOR_VALUES) {
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected at most %d values", SELECTOR_VALUES);
		return NULL;
	}
	if (n->n_values == 0)
		n->values = rd->s->n_values;
	n->n_values++;
	return &rd->s->values[rd->s->n_values++];
}

static void
set_text(struct selector_value *v, struct slice text)
{
	if (!v)
		return;
	v->text = text;
	v->is_moment = moment_parse(text, &v->moment);
}

static void
read_value(struct selector_reader *rd, struct selector_node *n)
{
	const enum json_type type = json_peek(&rd->r);
	struct selector_value *const v = add_value(rd, n);

	if (!v)
		return;
	if (type == JSON_STRING) {
		set_text(v, json_text(&rd->r));
		return;
	}
	if (type == JSON_ARRAY || type == JSON_OBJECT)
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected a text, number, true, false or null");
	else
		v->text = json_skip(&rd->r);
	v->is_null = type == JSON_NULL;
	v->is_number = type == JSON_NUMBER && number_of(v->text, &v->number);
}

static void
read_field(struct selector_reader *rd, struct selector_node *n)
{
	const struct slice text = json_text(&rd->r);
	char *const room = json_take_room(&rd->r, text.n);
	struct slu_err err;

	n->path.n = 0;
	n->path.through = true;
	if (!room)
		return;
	if (text.n == 0)
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected a path, as in /a/b");
	else if (json_path_add(&n->path, text, room, &err))
		json_fail(&rd->r, SLU_EINVAL, NULL, "%s", err.text);
}

/* a|b|c */
static void
split_any(struct selector_reader *rd, struct selector_node *n, struct slice text)
{
	struct slice part;

	while (text.n > 0) {
		(void)slice_cut(&text, '|', &part);
		part = slice_trim(part, " ");
		if (part.n > 0)
			set_text(add_value(rd, n), part);
	}
}

static void
read_any(struct selector_reader *rd, struct selector_node *n)
{
	if (json_peek(&rd->r) == JSON_STRING) {
		split_any(rd, n, json_text(&rd->r));
	} else {
		json_array(&rd->r);
		while (json_element(&rd->r))
			read_value(rd, n);
	}
	if (n->n_values == 0)
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected at least one value");
}

static void
read_ignore_case(struct selector_reader *rd, struct selector_node *n)
{
	n->ignore_case |= json_bool(&rd->r);
}

static void
read_bound(struct selector_reader *rd, struct selector_node *n, unsigned i)
{
	struct bound *const b = &n->bounds[i];
	struct slice text = { 0 };

	if (b->given)
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected each bound once");
	b->given = true;
	if (n->kind->bounds < BOUNDS && json_peek(&rd->r) != JSON_STRING) {
		b->number = json_double(&rd->r);
		n->numbers = true;
	} else {
		text = json_text(&rd->r);
		n->moments = true;
	}
	if (n->numbers && n->moments)
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected numbers or moments, not both");
	else if (n->numbers)
		return;
	else if (i == BOUND_SINCE && !moment_parse_since(text, rd->now, &b->moment))
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected now, today, yesterday, a day as in 2025-06-01, "
						    "or a moment of RFC 3339");
	else if (i != BOUND_SINCE && !moment_parse(text, &b->moment))
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected %sa day as in 2025-06-01, or a moment of RFC 3339",
			  n->kind->bounds < BOUNDS ? "a number, " : "");
}

static bool
read_bound_of(struct selector_reader *rd, struct selector_node *n, const struct json_str *name)
{
	static const struct slice names[BOUNDS] = {
		[BOUND_GT] = { "gt", 2 },
		[BOUND_GTE] = { "gte", 3 },
		[BOUND_LT] = { "lt", 2 },
		[BOUND_LTE] = { "lte", 3 },
		[BOUND_SINCE] = { "since", 5 },
		[BOUND_AFTER] = { "after", 5 },
		[BOUND_BEFORE] = { "before", 6 },
		[BOUND_VALUE] = { "value", 5 },
	};

	for (unsigned i = 0; i < n->kind->bounds; i++)
		if (json_str_is(name, names[i])) {
			read_bound(rd, n, i);
			return true;
		}
	return false;
}

/* Reads a member of a condition other than its field. Returns false if the name is unknown. */
static bool
read_member_of(struct selector_reader *rd, struct selector_node *n, const struct json_str *name)
{
	if (n->kind->bounds)
		return read_bound_of(rd, n, name);
	if (json_str_is(name, SLICE("value")))
		read_value(rd, n);
	else if (json_str_is(name, SLICE("any")))
		read_any(rd, n);
	else if (json_str_is(name, SLICE("ignoreCase")))
		read_ignore_case(rd, n);
	else
		return false;
	return true;
}

static bool
has_bound(const struct selector_node *n)
{
	for (unsigned i = 0; i < BOUNDS; i++)
		if (n->bounds[i].given)
			return true;
	return false;
}

/* Reads the members of a condition on a field; the kind decides which it uses. */
static void
read_term(struct selector_reader *rd, struct selector_node *n)
{
	bool has_field = false;
	struct json_str name;

	n->moments = n->kind->bounds == BOUNDS;
	json_object(&rd->r);
	while (json_member(&rd->r, &name)) {
		if (json_str_is(&name, SLICE("field"))) {
			if (has_field)
				json_fail(&rd->r, SLU_EINVAL, NULL, "expected one member \"field\"");
			read_field(rd, n);
			has_field = true;
		} else if (!read_member_of(rd, n, &name))
			json_fail(&rd->r, SLU_EINVAL, NULL, "expected %s", n->kind->members);
	}
	if (!has_field)
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected a member \"field\"");
	else if (n->kind->test == test_eq && n->n_values == 0)
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected a value to compare with");
	else if (n->moments && !has_bound(n))
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected a date to compare with");
}

#define TEXT_MEMBERS  "field, value, any or ignoreCase"
#define RANGE_MEMBERS "field, gt, gte, lt or lte"
#define DATE_MEMBERS  "field, value, since, after, before, gt, gte, lt or lte"

/* clang-format off */
static const struct kind kinds[] = {
	{ .name = { "and", 3 },       .array = true },
	{ .name = { "or", 2 },        .array = true, .any = true },
	{ .name = { "not", 3 },       .negate = true },
	{ .name = { "eq", 2 },        .read = read_term, .members = TEXT_MEMBERS, .test = test_eq },
	{ .name = { "in", 2 },        .read = read_term, .members = TEXT_MEMBERS, .test = test_eq },
	{ .name = { "prefix", 6 },    .read = read_term, .members = TEXT_MEMBERS, .test = test_prefix },
	{ .name = { "iprefix", 7 },   .read = read_term, .members = TEXT_MEMBERS, .test = test_prefix, .ignore_case = true },
	{ .name = { "contains", 8 },  .read = read_term, .members = TEXT_MEMBERS, .test = test_contains },
	{ .name = { "icontains", 9 }, .read = read_term, .members = TEXT_MEMBERS, .test = test_contains, .ignore_case = true },
	{ .name = { "range", 5 },     .read = read_term, .members = RANGE_MEMBERS, .test = test_range, .bounds = BOUND_SINCE },
	{ .name = { "date", 4 },      .read = read_term, .members = DATE_MEMBERS, .test = test_range, .bounds = BOUNDS },
	{ .name = { "exists", 6 },    .read = read_field, .test = test_exists },
};
/* clang-format on */

static struct selector_node *
add_node(struct selector_reader *rd, const struct kind *kind)
{
	struct selector_node *const n = &rd->s->nodes[rd->s->n_nodes];

	if (rd->s->n_nodes == SELECTOR_NODES) {
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected at most %d conditions", SELECTOR_NODES);
		return NULL;
	}
	rd->s->n_nodes++;
	n->kind = kind;
	n->ignore_case = kind->ignore_case;
	n->end = rd->s->n_nodes;
	return n;
}

/* Enter the object or array that comes next; its parts are the parts of node. */
static void
open_level(struct selector_reader *rd, const struct selector_node *n, bool array)
{
	if (rd->depth == SELECTOR_NESTING) {
		json_fail(&rd->r, SLU_EINVAL, NULL, "expected less nesting");
		return;
	}
	rd->levels[rd->depth++] = (struct selector_level){
		.node = (unsigned)(n - rd->s->nodes),
		.array = array,
	};
	if (array)
		json_array(&rd->r);
	else
		json_object(&rd->r);
}

/* {..} is `and` of its members. */
static void
open_object(struct selector_reader *rd)
{
	const struct selector_node *const n = add_node(rd, &kinds[0]);

	if (n)
		open_level(rd, n, false);
}

static void
read_member(struct selector_reader *rd, const struct json_str *name)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		struct selector_node *n;

		if (!json_str_is(name, kinds[i].name))
			continue;
		n = add_node(rd, &kinds[i]);
		if (n && kinds[i].read)
			kinds[i].read(rd, n);
		else if (n)
			open_level(rd, n, kinds[i].array);
		return;
	}
	json_fail(&rd->r, SLU_EINVAL, name->raw.p - 1,
		  "expected and, or, not, eq, in, prefix, iprefix, contains, icontains, "
		  "range, date or exists");
}

static void
read_all(struct selector_reader *rd)
{
	struct json_str name;

	open_object(rd);
	while (rd->depth > 0) {
		const struct selector_level l = rd->levels[rd->depth - 1];

		if (l.array ? json_element(&rd->r) : json_member(&rd->r, &name)) {
			if (l.array)
				open_object(rd);
			else
				read_member(rd, &name);
		} else {
			rd->s->nodes[l.node].end = rd->s->n_nodes;
			rd->depth--;
		}
	}
}

/* Text of the selector is its own copy. */
static void
make_small(struct selector *s, struct slice text)
{
	char *const p = text.n ? s->text + (text.p - s->text) : NULL;

	for (size_t i = 0; i < text.n; i++)
		p[i] = ascii_lower(p[i]);
}

static unsigned
cost_of(const struct selector_node *n)
{
	return json_path_cost(&n->path) + n->n_values;
}

/* After reading: prepares the tables that make matching linear. back has an entry for each byte of
 * the JSON. */
static void
prepare(struct selector *s)
{
	uint32_t *back = s->back;

	for (unsigned i = 0; i < s->n_nodes; i++) {
		const struct selector_node *const n = &s->nodes[i];

		s->cost += n->kind->read ? cost_of(n) : 0;
		for (unsigned k = 0; k < n->n_values; k++) {
			struct selector_value *const v = &s->values[n->values + k];

			if (n->ignore_case && n->kind->test != test_eq)
				make_small(s, v->text);
			if (n->kind->test != test_contains)
				continue;
			v->back = back;
			back_of(v->text, back);
			back += v->text.n;
		}
	}
}

int
selector_new(struct selector **out, struct slice json, slu_time now, struct slu_err *err)
{
	struct selector *const s = mem_zalloc(sizeof *s);
	struct selector_reader rd = { .s = s, .now = now };
	int rc;

	*out = NULL;
	if (!s)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	s->text = mem_alloc(3 * json.n + 1);
	s->back = mem_array(json.n + 1, sizeof *s->back);
	if (!s->text || !s->back) {
		selector_free(s);
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	memcpy(s->text, json.p, json.n);
	json_init(&rd.r, (struct slice){ s->text, json.n }, JSON_DEPTH);
	json_room(&rd.r, s->text + json.n, 2 * json.n + 1);
	read_all(&rd);
	rc = json_end(&rd.r, err);
	if (rc) {
		selector_free(s);
		return rc;
	}
	prepare(s);
	*out = s;
	return 0;
}

void
selector_free(struct selector *s)
{
	if (!s)
		return;
	mem_free(s->text);
	mem_free(s->back);
	mem_free(s);
}

bool
selector_is_empty(const struct selector *s)
{
	return s->n_nodes == 1;
}

unsigned
selector_cost(const struct selector *s)
{
	return s->cost;
}

/* ---- Matching. ---- */

struct trial {
	const struct selector *s;
	const struct selector_node *n;
	bool fits;
	bool no_memory;
};

static bool
try_value(void *arg, const struct json_event *value)
{
	struct trial *const t = arg;
	struct found v = { .type = value->type, .text = value->raw };
	char *room = NULL;

	if (value->type == JSON_STRING) {
		if (value->str.n != value->str.raw.n)
			room = mem_alloc(value->str.n + 1);
		t->no_memory = value->str.n != value->str.raw.n && !room;
		if (t->no_memory)
			return false;
		v.text = json_str_text(&value->str, room);
	}
	t->fits = t->n->kind->test(t->s, t->n, &v);
	mem_free(room);
	return !t->fits;
}

/* A condition that is made of others. */
static bool
combine(const struct selector *s, unsigned i, const bool *fits)
{
	const struct selector_node *const n = &s->nodes[i];
	bool any = false, all = true;

	for (unsigned part = i + 1; part < n->end; part = s->nodes[part].end) {
		any |= fits[part];
		all &= fits[part];
	}
	if (n->end == i + 1)
		return true; /* an empty selector */
	return (n->kind->any ? any : all) != n->kind->negate;
}

static bool
is_object(struct slice document)
{
	struct json r;

	json_init(&r, document, JSON_DEPTH_MAX);
	return json_peek(&r) == JSON_OBJECT;
}

static int
try_node(struct trial *t, struct slice document, struct slu_err *err)
{
	const int rc = json_walk(document, &t->n->path, try_value, t, err);

	return t->no_memory ? slu_fail(err, SLU_ENOMEM, "out of memory") : rc;
}

int
selector_match(const struct selector *s, struct slice document, const struct stop *stop,
	       bool *out, struct slu_err *err)
{
	bool fits[SELECTOR_NODES];
	int rc = 0;

	fits[0] = false;
	*out = false;
	if (!is_object(document))
		return 0;
	for (unsigned i = s->n_nodes; i-- > 0 && rc == 0;) {
		struct trial t = { .s = s, .n = &s->nodes[i] };

		if (stop_is_set(stop))
			return slu_fail(err, SLU_ECANCELED, "canceled");
		if (t.n->kind->read)
			rc = try_node(&t, document, err);
		fits[i] = t.n->kind->read ? t.fits : combine(s, i, fits);
	}
	*out = rc == 0 && fits[0];
	return rc;
}
