/*
 * json.c - the grammar of RFC 8259.
 *
 *                json_array, json_object
 *      AT_VALUE -------------------------> OPENED
 *        |  ^  ^                             | |
 *        |  |  +--- one inside, no comma ----+ |
 * scalar |  |                                  | ] or }: one level up
 *        |  +--- comma, and one more ---+      |
 *        |                              |      |
 *        +----------------------------> BEHIND <
 *                                       |    ^
 *                                       +----+ ] or }: one level up
 *
 * The nesting is a number and one bit a level, so depth costs no stack.
 */
#include "base/json/json_whole.h"

#include "base/parse.h"

#include <assert.h>

/* clang-format off */
/* The type of a value, by its first byte. */
static const uint8_t types[256] = {
	['n'] = JSON_NULL, ['f'] = JSON_FALSE, ['t'] = JSON_TRUE, ['"'] = JSON_STRING,
	['['] = JSON_ARRAY, ['{'] = JSON_OBJECT, ['-'] = JSON_NUMBER,
	['0'] = JSON_NUMBER, ['1'] = JSON_NUMBER, ['2'] = JSON_NUMBER,
	['3'] = JSON_NUMBER, ['4'] = JSON_NUMBER, ['5'] = JSON_NUMBER,
	['6'] = JSON_NUMBER, ['7'] = JSON_NUMBER, ['8'] = JSON_NUMBER,
	['9'] = JSON_NUMBER,
};

static const bool is_space[256] = {
	[' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true,
};
/* clang-format on */

void
json_init(struct json *r, struct slice document, unsigned max_depth)
{
	assert(max_depth <= JSON_DEPTH_MAX);
	r->start = document.n > 0 ? document.p : "";
	r->end = r->start + document.n;
	r->p = r->start;
	r->value = r->start;
	r->state = JSON_AT_VALUE;
	r->depth = 0;
	r->max_depth = max_depth;
	memset(r->objects, 0, sizeof r->objects);
	r->room = NULL;
	r->room_left = 0;
	r->code = SLU_OK;
	r->at = NULL;
	r->expected[0] = '\0';
}

/* Fails at a place. Returns false, for the caller to return. */
static bool __attribute__((cold, noinline))
broken(struct json *r, const char *at, const char *expected)
{
	json_fail(r, SLU_EINVAL, at, "expected %s", expected);
	return false;
}

/* Skips white space. */
static unsigned char __attribute__((noinline))
look_past_space(struct json *r)
{
	while (r->p < r->end && is_space[(unsigned char)*r->p])
		r->p++;
	return r->p < r->end ? (unsigned char)*r->p : 0;
}

/* The next byte that is not space; 0 at the end, which is never valid. */
static inline unsigned char
look(struct json *r)
{
	if (r->p < r->end && (unsigned char)*r->p > ' ')
		return (unsigned char)*r->p;
	return look_past_space(r);
}

/* Every value begins here. Returns JSON_NONE after a failure. */
static inline enum json_type
begin(struct json *r)
{
	enum json_type type;

	if (r->state == JSON_FAILED)
		return JSON_NONE;
	assert(r->state == JSON_AT_VALUE); /* one read for each value */
	type = types[look(r)];
	r->value = r->p;
	if (type == JSON_NONE)
		(void)broken(r, r->p, "a value"); /* the result is JSON_NONE */
	return type;
}

static inline bool
begin_with(struct json *r, enum json_type want)
{
	const enum json_type type = begin(r);

	if (type == want)
		return true;
	if (type != JSON_NONE)
		json_fail(r, SLU_EINVAL, r->p, "expected %s, not %s", json_type_name(want),
			  json_type_name(type));
	return false;
}

enum json_type
json_peek(struct json *r)
{
	return begin(r);
}

static inline bool
in_object(const struct json *r)
{
	const unsigned level = r->depth - 1;

	return r->objects[level / 64] >> level % 64 & 1;
}

static bool
open_level(struct json *r, bool object)
{
	const unsigned level = r->depth;
	const uint64_t bit = (uint64_t)1 << level % 64;

	if (level == r->max_depth) {
		json_fail(r, SLU_EINVAL, r->p, "expected at most %u levels of nesting", level);
		return false;
	}
	if (object)
		r->objects[level / 64] |= bit;
	else
		r->objects[level / 64] &= ~bit;
	r->depth++;
	r->p++;
	r->state = JSON_OPENED;
	return true;
}

void
json_array(struct json *r)
{
	if (begin_with(r, JSON_ARRAY))
		(void)open_level(r, false); /* a failure shows in the state */
}

void
json_object(struct json *r)
{
	if (begin_with(r, JSON_OBJECT))
		(void)open_level(r, true); /* a failure shows in the state */
}

/* Goes to the next element or name. Returns false at the end of the level. */
static inline bool
advance(struct json *r, bool object)
{
	const unsigned char close = object ? '}' : ']';
	unsigned char c;

	if (r->state == JSON_AT_VALUE)
		json_skip(r);
	if (r->state == JSON_FAILED)
		return false;
	assert(r->depth > 0 && in_object(r) == object);
	c = look(r);
	if (c == close) {
		r->p++;
		r->depth--;
		r->state = JSON_BEHIND;
		return false;
	}
	if (r->state == JSON_OPENED)
		return true;
	if (c != ',')
		return broken(r, r->p, object ? "a comma or }" : "a comma or ]");
	r->p++;
	return true;
}

bool
json_element(struct json *r)
{
	if (!advance(r, false))
		return false;
	r->state = JSON_AT_VALUE;
	return begin(r) != JSON_NONE;
}

/* A string with more than plain ASCII, or without an end. */
static bool __attribute__((noinline))
scan_special_string(struct json *r, struct json_str *s)
{
	struct json_flaw flaw;
	const char *const quote = json_str_scan(r->p + 1, r->end, s, &flaw);

	if (!quote)
		return broken(r, flaw.at, flaw.expected);
	r->p = quote + 1;
	r->state = JSON_BEHIND;
	return true;
}

/* From its quote on. */
static inline bool
scan_string(struct json *r, struct json_str *s)
{
	const char *const start = r->p + 1;
	const char *const quote = json_plain_end(start, r->end);
	const size_t n = (size_t)(quote - start);

	if (quote == r->end || *quote != '"')
		return scan_special_string(r, s);
	s->raw.p = start;
	s->raw.n = n;
	s->n = n;
	s->has_nul = false;
	r->p = quote + 1;
	r->state = JSON_BEHIND;
	return true;
}

bool
json_member(struct json *r, struct json_str *name)
{
	if (!advance(r, true))
		return false;
	if (look(r) != '"')
		return broken(r, r->p, "the name of a member, in quotes");
	r->value = r->p;
	if (!scan_string(r, name))
		return false;
	if (look(r) != ':')
		return broken(r, r->p, "a colon");
	r->p++;
	r->state = JSON_AT_VALUE;
	return true;
}

bool
json_member_is(struct json *r, struct slice name)
{
	const bool behind = r->state == JSON_BEHIND;
	const char *const p = r->p + behind;

	if (!behind && r->state != JSON_OPENED)
		return false;
	assert(r->depth > 0 && in_object(r));
	if ((size_t)(r->end - r->p) < name.n + 4 || (behind && *r->p != ','))
		return false;
	if (p[0] != '"' || p[name.n + 1] != '"' || p[name.n + 2] != ':' || memcmp(p + 1, name.p, name.n) != 0)
		return false;
	r->value = p;
	r->p = p + name.n + 3;
	r->state = JSON_AT_VALUE;
	return true;
}

bool
json_object_again(struct json *r, struct slice head)
{
	if (r->state != JSON_AT_VALUE || (size_t)(r->end - r->p) <= head.n || r->depth == r->max_depth ||
	    memcmp(r->p, head.p, head.n) != 0)
		return false;
	(void)open_level(r, true); /* there is a level left */
	r->value = r->p;
	r->p += head.n - 1;
	r->state = JSON_AT_VALUE;
	return true;
}

bool
json_skip_members(struct json *r, struct slice members, size_t value)
{
	const bool behind = r->state == JSON_BEHIND;
	const char *p;

	if (!behind && r->state != JSON_OPENED)
		return false;
	if ((size_t)(r->end - r->p) <= members.n || (behind && *r->p != ','))
		return false;
	p = r->p + behind;
	if (p[1] != members.p[1] || memcmp(p, members.p, members.n) != 0)
		return false; /* most differ in the first letter of the name */
	r->p = p + members.n;
	r->value = p + value;
	r->state = JSON_BEHIND;
	return true;
}

static inline bool
scan_word(struct json *r, const char *word, size_t n)
{
	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
		return broken(r, r->p, "null, true or false");
	r->p += n;
	r->state = JSON_BEHIND;
	return true;
}

/* Skips digits from p on, at least one. Returns their end, or NULL. */
static inline const char *
scan_digits(struct json *r, const char *p)
{
	const char *const start = p;

	while (r->end - p >= 8 && parse_is_8_digits(p))
		p += 8;
	while (p < r->end && *p >= '0' && *p <= '9')
		p++;
	if (p > start)
		return p;
	(void)broken(r, p, "a digit"); /* the result is NULL */
	return NULL;
}

/* Skips a fraction or an exponent at p, if there is one. Returns its end, or NULL. */
static const char *
scan_fraction(struct json *r, const char *p)
{
	if (p < r->end && *p == '.') {
		p = scan_digits(r, p + 1);
		if (!p)
			return NULL;
	}
	if (p < r->end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < r->end && (*p == '+' || *p == '-'))
			p++;
		p = scan_digits(r, p);
	}
	return p;
}

static bool
scan_number(struct json *r)
{
	const char *const first = r->p + (*r->p == '-');
	const char *p = scan_digits(r, first);

	if (!p)
		return false;
	if (*first == '0' && p > first + 1)
		return broken(r, first, "a number without leading zeros");
	p = scan_fraction(r, p);
	if (!p)
		return false;
	r->p = p;
	r->state = JSON_BEHIND;
	return true;
}

/* From the first byte of the value read last to where the reader is. */
static struct slice
span(const struct json *r)
{
	return (struct slice){ r->value, (size_t)(r->p - r->value) };
}

enum {
	SURE_DIGITS = 19 /* every number with so many digits fits into 64 bits */
};

/* The value of up to SURE_DIGITS digits. Returns their end. */
static inline const char *
take_digits(const char *p, const char *end, uint64_t *out)
{
	static const uint32_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000 };
	const char *const sure = end - p < SURE_DIGITS ? end : p + SURE_DIGITS;
	uint64_t v = 0;

	while (end - p >= 8 && p < sure) {
		const uint64_t word = parse_load_8(p);
		const unsigned found = parse_digits_of(word);
		const unsigned n = found < (size_t)(sure - p) ? found : (unsigned)(sure - p);

		assert(n <= 8);
		if (n == 0)
			break;
		v = v * powers[n] + parse_value_of(word << (64 - 8 * n)); /* leading zeros */
		p += n;
		if (n < 8)
			break;
	}
	for (; p < sure && *p >= '0' && *p <= '9'; p++)
		v = 10 * v + (uint64_t)(*p - '0');
	*out = v;
	return p;
}

/* Whether c, behind digits, belongs to their number. */
static inline bool
goes_on(char c)
{
	return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E';
}

bool
json_whole(struct json *r, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *p;
	uint64_t v;

	if (begin(r) != JSON_NUMBER)
		return false;
	p = take_digits(r->p, r->end, &v);
	if (p == r->p || (*r->p == '0' && p > r->p + 1) || (p < r->end && goes_on(*p)) || v < min || v > max)
		return false;
	*out = v;
	r->p = p;
	r->state = JSON_BEHIND;
	return true;
}

struct slice
json_number(struct json *r)
{
	if (!begin_with(r, JSON_NUMBER) || !scan_number(r))
		return (struct slice){ 0 };
	return span(r);
}

bool
json_string(struct json *r, struct json_str *s)
{
	if (!begin_with(r, JSON_STRING) || !scan_string(r, s)) {
		*s = (struct json_str){ 0 };
		return false;
	}
	return true;
}

/* Whether a value comes next. */
static inline bool
next_value(struct json *r, struct json_event *e)
{
	bool good = false;

	e->type = begin(r);
	switch (e->type) {
	case JSON_STRING:
		good = scan_string(r, &e->str);
		break;
	case JSON_NUMBER:
		good = scan_number(r);
		break;
	case JSON_NULL:
		good = scan_word(r, "null", 4);
		break;
	case JSON_TRUE:
		good = scan_word(r, "true", 4);
		break;
	case JSON_FALSE:
		good = scan_word(r, "false", 5);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		good = open_level(r, e->type == JSON_OBJECT);
		break;
	default:
		break;
	}
	e->raw = span(r);
	return good;
}

static bool
next_close(struct json *r, struct json_event *e)
{
	if (r->state == JSON_FAILED)
		return false;
	e->type = JSON_CLOSE;
	e->raw = (struct slice){ r->p - 1, 1 };
	return true;
}

bool
json_next(struct json *r, struct json_event *e)
{
	if (r->state == JSON_FAILED || (r->depth == 0 && r->state == JSON_BEHIND))
		return false;
	if (r->state == JSON_AT_VALUE)
		return next_value(r, e);
	if (!in_object(r))
		return json_element(r) ? next_value(r, e) : next_close(r, e);
	if (!json_member(r, &e->str))
		return next_close(r, e);
	e->type = JSON_MEMBER;
	e->raw = (struct slice){ e->str.raw.p - 1, e->str.raw.n + 2 };
	return true;
}

struct slice
json_skip(struct json *r)
{
	const unsigned depth = r->depth;
	const char *const start = begin(r) != JSON_NONE ? r->p : NULL;
	struct json_event e;

	do {
		if (!json_next(r, &e))
			return (struct slice){ 0 };
	} while (r->depth > depth);
	r->value = start;
	return span(r);
}

int
json_end(struct json *r, struct slu_err *err)
{
	if (r->state == JSON_AT_VALUE)
		json_skip(r);
	assert(r->state == JSON_FAILED || r->depth == 0); /* loops ran to their end */
	if (r->state != JSON_FAILED && (look(r) || r->p < r->end))
		(void)broken(r, r->p, "nothing more"); /* reported below */
	return r->state == JSON_FAILED ? json_report(r, err) : 0;
}
