#include "core/queue/rules.h"

#include "base/json/json.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum {
	NUMBER_TEXT = 48 /* bytes of a number, with the NUL */
};

enum compare {
	IS,
	IS_NOT,
	LESS,
	LESS_OR_SAME,
	MORE,
	MORE_OR_SAME,
	IN
};

/* Longer signs first: the first that fits counts. */
static const struct {
	struct slice sign;
	enum compare compare;
} signs[] = {
	{ { "!=", 2 }, IS_NOT },
	{ { "<=", 2 }, LESS_OR_SAME },
	{ { ">=", 2 }, MORE_OR_SAME },
	{ { "=", 1 }, IS },
	{ { "<", 1 }, LESS },
	{ { ">", 1 }, MORE },
};

static const struct {
	struct slice name;
	int32_t prio;
} words[] = {
	{ { "high", 4 }, 0 },
	{ { "normal", 6 }, 5 },
	{ { "low", 3 }, 10 },
};

/* ---- Words ---- */

static void
skip_space(struct slice *s)
{
	while (s->n && *s->p == ' ')
		slice_skip(s, 1);
}

static bool
take_sign(struct slice *s, struct slice sign)
{
	skip_space(s);
	if (s->n < sign.n || memcmp(s->p, sign.p, sign.n) != 0)
		return false;
	slice_skip(s, sign.n);
	return true;
}

static bool
is_word(char c)
{
	return (unsigned char)c > ' ' && !strchr("\"'=!<>(),:;", c);
}

/* A word, or a text in quotes. n 0 and p NULL: neither. */
static struct slice
take_value(struct slice *s)
{
	struct slice out = { 0 };

	skip_space(s);
	if (s->n && *s->p == '"') {
		const char *const end = memchr(s->p + 1, '"', s->n - 1);

		if (!end)
			return out;
		out = (struct slice){ s->p + 1, (size_t)(end - s->p - 1) };
		slice_skip(s, out.n + 2);
		return out;
	}
	while (out.n < s->n && is_word(s->p[out.n]))
		out.n++;
	out.p = out.n ? s->p : NULL;
	slice_skip(s, out.n);
	return out;
}

static bool
take_word(struct slice *s, struct slice word)
{
	struct slice rest = *s;

	if (!slice_eq(take_value(&rest), word))
		return false;
	*s = rest;
	return true;
}

/* The next rule, without the semicolon; the text becomes shorter. */
static struct slice
take_rule(struct slice *text)
{
	struct slice rule = { text->p, 0 };
	bool quoted = false;

	skip_space(text);
	rule.p = text->p;
	while (rule.n < text->n && (quoted || rule.p[rule.n] != ';')) {
		quoted ^= rule.p[rule.n] == '"';
		rule.n++;
	}
	slice_skip(text, rule.n < text->n ? rule.n + 1 : rule.n);
	while (rule.n && rule.p[rule.n - 1] == ' ')
		rule.n--;
	return rule;
}

/* ---- Conditions ---- */

static bool
read_number(struct slice text, double *out)
{
	char copy[NUMBER_TEXT];
	char *end;

	if (text.n == 0 || text.n >= sizeof copy || !(isdigit((unsigned char)text.p[0]) || strchr("+-.", text.p[0])))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	*out = strtod(copy, &end);
	return !*end && isfinite(*out);
}

/* A member of the attributes: a text, or the characters of another value. */
struct rules_attribute {
	bool found;
	struct json_str text;
};

static void
find_member(struct slice attributes, struct slice name, struct rules_attribute *out)
{
	struct json_str key;
	struct json r;

	out->found = false;
	if (!attributes.n)
		return;
	json_init(&r, attributes, JSON_DEPTH);
	json_object(&r);
	while (!out->found && json_member(&r, &key)) { /* the rest was checked when the message came */
		if (!json_str_is(&key, name))
			continue;
		if (json_peek(&r) == JSON_STRING)
			out->found = json_string(&r, &out->text);
		else if (json_peek(&r) != JSON_OBJECT && json_peek(&r) != JSON_ARRAY && json_peek(&r) != JSON_NULL) {
			out->text.raw = json_skip(&r);
			out->text.n = out->text.raw.n;
			out->found = true;
		}
	}
}

/* RULES-2 */
static bool
compares(const struct rules_attribute *m, enum compare how, struct slice value)
{
	double a = 0, b = 0;
	const bool numbers = read_number(m->text.raw, &a) && read_number(value, &b);
	const bool same = numbers ? a == b : json_str_is(&m->text, value);

	switch (how) {
	case IS_NOT:
		return !same;
	case LESS:
		return numbers && a < b;
	case LESS_OR_SAME:
		return numbers && a <= b;
	case MORE:
		return numbers && a > b;
	case MORE_OR_SAME:
		return numbers && a >= b;
	default:
		return same;
	}
}

static bool
take_list(struct slice *s, const struct rules_attribute *m, bool *holds)
{
	*holds = false;
	if (!take_sign(s, SLICE("(")))
		return false;
	do {
		const struct slice value = take_value(s);

		if (!value.p)
			return false;
		*holds |= m->found && compares(m, IN, value);
	} while (take_sign(s, SLICE(",")));
	return take_sign(s, SLICE(")"));
}

/* Reads a condition, and whether it holds. Returns false if it is malformed. */
static bool
take_condition(struct slice *s, struct slice attributes, bool *holds)
{
	const struct slice name = take_value(s);
	struct rules_attribute m = { 0 };
	struct slice value;

	if (!name.p || !name.n)
		return false;
	find_member(attributes, name, &m);
	if (take_word(s, SLICE("in")))
		return take_list(s, &m, holds);
	for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
		if (!take_sign(s, signs[i].sign))
			continue;
		value = take_value(s);
		*holds = value.p && m.found && compares(&m, signs[i].compare, value);
		return value.p;
	}
	return false;
}

/* ---- Actions ---- */

static bool
take_prio(struct slice *s, struct rules_effect *out)
{
	struct slice value;
	double n;

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (take_word(s, words[i].name)) {
			out->prio = words[i].prio;
			return true;
		}
	if (!take_word(s, SLICE("priority")))
		return false;
	value = take_value(s);
	if (!read_number(value, &n) || n < INT32_MIN || n > INT32_MAX || n != (int32_t)n)
		return false;
	out->prio = (int32_t)n;
	return true;
}

static bool
take_action(struct slice *s, struct rules_effect *out)
{
	if (take_word(s, SLICE("delay")))
		return !out->delay && parse_duration(take_value(s), &out->delay, NULL) == 0 && out->delay > 0 &&
		       out->delay <= RULES_DELAY_MAX;
	if (out->sets_prio || !take_prio(s, out))
		return false;
	out->sets_prio = true;
	return true;
}

/* ---- Rules ---- */

/* Reads a rule. conditions: how many may still come. Returns false if the rule is malformed. */
static bool
read_rule(struct slice rule, struct slice attributes, unsigned *conditions, bool *holds, struct rules_effect *out)
{
	struct slice s = rule;

	*out = (struct rules_effect){ .rule = rule };
	*holds = true;
	do {
		bool one = false;

		if ((*conditions)-- == 0 || !take_condition(&s, *holds ? attributes : (struct slice){ 0 }, &one)) {
			*conditions = 0;
			return false;
		}
		*holds &= one;
	} while (take_word(&s, SLICE("and")));
	if (!take_sign(&s, SLICE(":")))
		return false;
	do {
		if (!take_action(&s, out))
			return false;
	} while (take_sign(&s, SLICE(",")));
	skip_space(&s);
	return s.n == 0;
}

int
rules_check(struct slice rules, struct slu_err *err)
{
	unsigned conditions = RULES_CONDITIONS;
	struct rules_effect effect;
	bool holds;

	while (rules.n) {
		const struct slice rule = take_rule(&rules);

		if (!read_rule(rule, (struct slice){ 0 }, &conditions, &holds, &effect))
			return slu_fail(err, SLU_EINVAL,
					"invalid rule: %.*s; expected rules such as risk > 0.8: high; source in (a, b): low, delay 30s with at most %d conditions",
					(int)(rule.n < 80 ? rule.n : 80), rule.p, RULES_CONDITIONS);
	}
	return 0;
}

void
rules_apply(struct slice rules, struct slice attributes, struct rules_effect *out)
{
	unsigned conditions = RULES_CONDITIONS;
	bool holds;

	while (rules.n)
		if (read_rule(take_rule(&rules), attributes, &conditions, &holds, out) && holds)
			return; /* RULES-1 */
	*out = (struct rules_effect){ 0 };
}

struct slice
rules_member(struct slice attributes, struct slice name, char *room, size_t max)
{
	struct rules_attribute m = { 0 };

	find_member(attributes, name, &m);
	if (!m.found || m.text.has_nul)
		return (struct slice){ 0 };
	return utf8_cut(m.text.n <= max ? json_str_text(&m.text, room) : m.text.raw, max);
}
