#include "core/lql.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/parse.h"

static const char *const conditions[] = {
	"eq",
	"in",
	"prefix",
	"iprefix",
	"contains",
	"icontains",
	"range",
	"date",
	"exists",
};

void
lql_init(struct lql *l)
{
	l->n = 0;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct slice
trim(struct slice s)
{
	return slice_trim(s, " \t\r\n");
}

static int
invalid(struct slice text, const char *expected, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	return slu_fail(err, SLU_EINVAL, "invalid expression %s; expected %s", parse_shown(text, shown),
			expected);
}

/* ---- Reading. ---- */

static bool
ends_word(char c)
{
	return c == '.' || c == '{' || c == '=';
}

/* The word at the beginning of *s, which is cut off. */
static struct slice
take_word(struct slice *s)
{
	struct slice word = { s->p, 0 };

	while (word.n < s->n && !ends_word(word.p[word.n]))
		word.n++;
	slice_skip(s, word.n);
	return trim(word);
}

static bool
take_char(struct slice *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	slice_skip(s, 1);
	return true;
}

static const char *
condition_of(struct slice word)
{
	for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++)
		if (slice_is_word(word, conditions[i]))
			return conditions[i];
	return NULL;
}

bool
lql_is_expression(struct slice text)
{
	const struct slice word = take_word(&text);

	return (word.n > 0 && word.p[0] == '/') || slice_is_word(word, "and") || slice_is_word(word, "or") ||
	       slice_is_word(word, "not") || condition_of(word);
}

/* Takes and.1.not.eq off *rest: the words before the condition, and the condition. */
static int
read_head(struct slice *rest, struct lql_expression *e, struct slu_err *err)
{
	static const char expected[] = "a path as in /a/b, or [and|or][.number][.not].condition, where "
				       "condition is eq, in, prefix, iprefix, contains, icontains, range, "
				       "date or exists";
	const struct slice all = *rest;
	struct slice word = take_word(rest);
	const bool joined = slice_is_word(word, "and") || slice_is_word(word, "or");
	uint64_t number;

	e->any = slice_is_word(word, "or");
	e->number = -1;
	if (joined && take_char(rest, '.'))
		word = take_word(rest);
	if (joined && parse_u64(word, 0, UINT32_MAX, &number, NULL) == 0 && take_char(rest, '.')) {
		e->number = (int64_t)number;
		word = take_word(rest);
	}
	e->negate = slice_is_word(word, "not");
	if (e->negate && take_char(rest, '.'))
		word = take_word(rest);
	e->name = condition_of(word);
	return e->name ? 0 : invalid(all, expected, err);
}

/* Reads what follows the condition: {...}, .key=value, or =value of exists. */
static int
read_tail(struct slice rest, struct lql_expression *e, struct slu_err *err)
{
	const struct slice all = rest;

	if (take_char(&rest, '{')) {
		if (rest.n == 0 || rest.p[rest.n - 1] != '}')
			return invalid(all, "a } at its end", err);
		e->body = trim((struct slice){ rest.p, rest.n - 1 });
		return e->body.n > 0 ? 0 : invalid(all, "something between the braces", err);
	}
	if (take_char(&rest, '.'))
		e->key = take_word(&rest);
	else
		e->key = SLICE("field");
	if (!take_char(&rest, '=') || e->key.n == 0)
		return invalid(all, "{..} or .name=value behind the condition", err);
	e->value = trim(rest);
	return 0;
}

static const struct operator
{
	struct slice text;
	const char *name;
	struct slice key;
	bool negate;
}
operators[] = {
	{ { "!=", 2 }, "eq", { "value", 5 }, true },
	{ { "==", 2 }, "eq", { "value", 5 }, false },
	{ { ">=", 2 }, "range", { "gte", 3 }, false },
	{ { "<=", 2 }, "range", { "lte", 3 }, false },
	{ { "=", 1 }, "eq", { "value", 5 }, false },
	{ { ">", 1 }, "range", { "gt", 2 }, false },
	{ { "<", 1 }, "range", { "lt", 2 }, false },
};

static const struct operator*
	operator_at(struct slice s)
{
	for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
		if (s.n >= operators[i].text.n && memcmp(s.p, operators[i].text.p, operators[i].text.n) == 0)
			return &operators[i];
	return NULL;
}

static int
read_shorthand(struct slice text, struct lql_expression *e, struct slu_err *err)
{
	for (size_t i = 0; i < text.n; i++) {
		const struct operator* const o = operator_at((struct slice){ text.p + i, text.n - i });

		if (!o)
			continue;
		e->number = -1;
		e->name = o->name;
		e->negate = o->negate;
		e->field = trim((struct slice){ text.p, i });
		e->key = o->key;
		e->value = trim((struct slice){ text.p + i + o->text.n, text.n - i - o->text.n });
		return e->value.n > 0 ? 0 : invalid(text, "a value at its end", err);
	}
	return invalid(text, "a comparison as in /a=1, with = != > >= < or <=", err);
}

int
lql_add(struct lql *l, struct slice expression, struct slu_err *err)
{
	struct lql_expression *const e = &l->expressions[l->n];
	struct slice rest = trim(expression);
	int rc;

	if (l->n == LQL_MAX)
		return slu_fail(err, SLU_EINVAL, "too many expressions; expected at most %d", LQL_MAX);
	*e = (struct lql_expression){ 0 };
	if (rest.n > 0 && rest.p[0] == '/') {
		rc = read_shorthand(rest, e, err);
	} else {
		rc = read_head(&rest, e, err);
		if (!rc)
			rc = read_tail(rest, e, err);
	}
	l->n += rc == 0;
	return rc;
}

/* How long the expression at the beginning of text is. */
static int
measure(struct slice text, size_t *n, struct slu_err *err)
{
	unsigned depth = 0;
	bool quoted = false;

	for (*n = 0; *n < text.n; ++*n) {
		const char c = text.p[*n];

		if (c == '\\')
			*n += *n + 1 < text.n;
		else if (c == '"')
			quoted = !quoted;
		else if (quoted)
			continue;
		else if (c == '{')
			depth++;
		else if (c == '}' && depth > 0)
			depth--;
		else if ((c == ',' || c == '\n') && depth == 0)
			return 0;
	}
	return quoted || depth > 0 ? invalid(text, quoted ? "a quote that ends the text" : "a } that ends the braces", err) : 0;
}

int
lql_add_text(struct lql *l, struct slice text, struct slu_err *err)
{
	int rc = 0;

	while (text.n > 0 && rc == 0) {
		struct slice one = { text.p, 0 };

		rc = measure(text, &one.n, err);
		slice_skip(&text, one.n + (one.n < text.n));
		one = trim(one);
		if (rc == 0 && one.n > 0)
			rc = lql_add(l, one, err);
	}
	return rc;
}

/* ---- Writing. ---- */

/* The text without the quotes around it. Escapes of JSON stay. */
static struct slice
unquote(struct slice s, bool *quoted)
{
	*quoted = s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0];
	return *quoted ? (struct slice){ s.p + 1, s.n - 2 } : s;
}

static bool
is_json(struct slice s, enum json_type type)
{
	return json_check(s, type, JSON_DEPTH, "", NULL) == 0;
}

/* Writes a text. A text in quotes that is valid JSON stays as it is. */
static void
put_text(struct json_out *w, struct slice raw)
{
	bool quoted;
	const struct slice text = unquote(raw, &quoted);

	if (quoted && raw.p[0] == '"' && is_json(raw, JSON_STRING))
		json_out_raw(w, NULL, raw);
	else
		json_out_str(w, NULL, text);
}

/* Writes a value: a word or number of JSON if it has no quotes, otherwise a text. */
static void
put_value(struct json_out *w, struct slice raw)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (slice_is_word(raw, words[i])) {
			json_out_raw(w, NULL, slice_of(words[i]));
			return;
		}
	if (is_json(raw, JSON_NUMBER))
		json_out_raw(w, NULL, raw);
	else
		put_text(w, raw);
}

static int
put_flag(struct json_out *w, struct slice raw, struct slu_err *err)
{
	const bool yes = slice_is_word(raw, "true") || slice_is_word(raw, "t");

	json_out_bool(w, NULL, yes);
	if (!yes && !slice_is_word(raw, "false") && !slice_is_word(raw, "f"))
		return invalid(raw, "true or false for ignoreCase", err);
	return 0;
}

static struct slice
key_of(struct slice key)
{
	static const struct {
		const char *from;
		struct slice to;
	} names[] = {
		{ "f", { "field", 5 } },
		{ "v", { "value", 5 } },
		{ "a", { "any", 3 } },
		{ "ic", { "ignoreCase", 10 } },
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (slice_is_word(key, names[i].from))
			return names[i].to;
	return key;
}

static int
put_member(struct json_out *w, const struct lql_expression *e, struct slice key, struct slice value,
	   struct slu_err *err)
{
	const bool range = strcmp(e->name, "range") == 0;
	bool quoted;
	const struct slice inner = unquote(value, &quoted);

	key = key_of(key);
	json_out_name(w, key);
	if (slice_eq(key, SLICE("ignoreCase")))
		return put_flag(w, inner, err);
	if (slice_eq(key, SLICE("any")) && is_json(value, JSON_ARRAY))
		json_out_raw(w, NULL, value);
	else if (range && is_json(inner, JSON_NUMBER))
		json_out_raw(w, NULL, inner);
	else if (slice_eq(key, SLICE("value")) && strcmp(e->name, "date") != 0)
		put_value(w, value);
	else
		put_text(w, value);
	return 0;
}

/* How long the value at the beginning of s is: to its quote, its bracket, or the next blank or
 * comma. */
static size_t
value_size(struct slice s)
{
	struct json_str str;
	struct json_flaw flaw;
	const char *end = NULL;
	size_t n = 0;

	if (s.n > 0 && s.p[0] == '[') {
		struct json r;

		json_init(&r, s, JSON_DEPTH);
		n = json_skip(&r).n;
	} else if (s.n > 0 && s.p[0] == '"') {
		end = json_str_scan(s.p + 1, s.p + s.n, &str, &flaw);
	} else if (s.n > 0 && s.p[0] == '\'') {
		end = memchr(s.p + 1, '\'', s.n - 1);
	}
	if (end)
		n = (size_t)(end - s.p) + 1;
	while (n < s.n && !is_blank(s.p[n]) && s.p[n] != ',')
		n++;
	return n;
}

/* key=value,key=value */
static int
put_body(struct json_out *w, const struct lql_expression *e, struct slu_err *err)
{
	struct slice rest = e->body;
	int rc = 0;

	while (rest.n > 0 && rc == 0) {
		const char *const equals = memchr(rest.p, '=', rest.n);
		const struct slice key = trim((struct slice){ rest.p, equals ? (size_t)(equals - rest.p) : 0 });
		struct slice value;

		if (key.n == 0)
			return invalid(rest, "name=value", err);
		rest.n -= (size_t)(equals + 1 - rest.p);
		rest.p = equals + 1;
		rest = trim(rest);
		value = (struct slice){ rest.p, value_size(rest) };
		slice_skip(&rest, value.n);
		rc = put_member(w, e, key, value, err);
		rest = trim(rest);
		while (take_char(&rest, ','))
			rest = trim(rest);
	}
	return rc;
}

/* Whether both belong to one condition, as eq.field=/a and eq.value=1 do. */
static bool
is_same(const struct lql_expression *a, const struct lql_expression *b)
{
	return strcmp(a->name, "exists") != 0 && !a->body.n && !b->body.n && !a->field.n && !b->field.n && a->name == b->name &&
	       a->any == b->any && a->number == b->number && a->negate == b->negate;
}

/* Whether an earlier expression of the same condition has written it. */
static bool
is_later_part(const struct lql *l, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (is_same(&l->expressions[k], &l->expressions[i]))
			return true;
	return false;
}

/* Whether the condition has this name twice. */
static bool
is_repeated(const struct lql *l, unsigned first, unsigned i)
{
	for (unsigned k = first; k < i; k++)
		if (is_same(&l->expressions[k], &l->expressions[i]) &&
		    slice_eq(key_of(l->expressions[k].key), key_of(l->expressions[i].key)))
			return true;
	return false;
}

/* eq.field=/a and eq.value=1 */
static int
put_parts(struct json_out *w, const struct lql *l, unsigned first, struct slu_err *err)
{
	int rc = 0;

	for (unsigned i = first; i < l->n && rc == 0; i++) {
		const struct lql_expression *const e = &l->expressions[i];

		if (!is_same(&l->expressions[first], e))
			continue;
		if (is_repeated(l, first, i))
			return invalid(e->key, "each name of a condition once: number them, as in and.1.eq.field", err);
		rc = put_member(w, e, e->key, e->value, err);
	}
	return rc;
}

static int
put_exists(struct json_out *w, const struct lql_expression *e)
{
	struct slice path = e->value;

	if (e->body.n > 0) {
		const char *const equals = memchr(e->body.p, '=', e->body.n);

		path = e->body;
		if (equals && path.p[0] != '/')
			path = trim((struct slice){ equals + 1, (size_t)(path.p + path.n - equals - 1) });
	}
	json_out_name(w, SLICE("exists"));
	put_text(w, path);
	return 0;
}

static int
put_condition(struct json_out *w, const struct lql *l, unsigned i, struct slu_err *err)
{
	const struct lql_expression *const e = &l->expressions[i];
	int rc = 0;

	if (strcmp(e->name, "exists") == 0)
		return put_exists(w, e);
	json_out_object(w, e->name);
	if (e->body.n > 0) {
		rc = put_body(w, e, err);
	} else if (e->field.n > 0) {
		json_out_str(w, "field", e->field);
		rc = put_member(w, e, e->key, e->value, err);
	} else {
		rc = put_parts(w, l, i, err);
	}
	json_out_close(w);
	return rc;
}

static int
put_expression(struct json_out *w, const struct lql *l, unsigned i, struct slu_err *err)
{
	const struct lql_expression *const e = &l->expressions[i];
	int rc;

	json_out_object(w, NULL);
	if (e->negate)
		json_out_object(w, "not");
	rc = put_condition(w, l, i, err);
	if (e->negate)
		json_out_close(w);
	json_out_close(w);
	return rc;
}

/* Writes the conditions that must all hold: all without `or`, or all `or` with that number. */
static int
put_all(struct json_out *w, const struct lql *l, bool any, int64_t number, struct slu_err *err)
{
	int rc = 0;

	json_out_array(w, "and");
	for (unsigned i = 0; i < l->n && rc == 0; i++) {
		const struct lql_expression *const e = &l->expressions[i];

		if (e->any == any && (!any || e->number == number) && !is_later_part(l, i))
			rc = put_expression(w, l, i, err);
	}
	json_out_close(w);
	return rc;
}

/* Whether no `or` before it has its number. */
static bool
is_first(const struct lql *l, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (l->expressions[k].any && l->expressions[k].number == l->expressions[i].number)
			return false;
	return true;
}

static int
put_any(struct json_out *w, const struct lql *l, struct slu_err *err)
{
	int rc = 0;

	json_out_array(w, "or");
	for (unsigned i = 0; i < l->n && rc == 0; i++) {
		const struct lql_expression *const e = &l->expressions[i];

		if (!e->any || is_later_part(l, i))
			continue;
		if (e->number < 0) {
			rc = put_expression(w, l, i, err);
		} else if (is_first(l, i)) {
			json_out_object(w, NULL);
			rc = put_all(w, l, true, e->number, err);
			json_out_close(w);
		}
	}
	json_out_close(w);
	return rc;
}

int
lql_write(const struct lql *l, struct buf *out, struct slu_err *err)
{
	struct json_out w;
	int rc;

	json_out_open(&w, out);
	rc = put_all(&w, l, false, 0, err);
	if (rc == 0)
		rc = put_any(&w, l, err);
	json_out_close(&w);
	if (rc == 0 && out->failed)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	return rc;
}
