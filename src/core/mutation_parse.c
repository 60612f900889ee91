#include "base/json/json_out.h"
#include "base/rfc3339.h"
#include "core/mutation.h"

void
mutation_parse(struct mutation_parser *p, struct slice text, char *room, struct buf *value,
	       slu_time now)
{
	*p = (struct mutation_parser){
		.text = text,
		.p = text.p,
		.value = value,
		.now = now,
	};
	p->room = room;
}

static const char *
end_of(const struct mutation_parser *p)
{
	return p->text.p + p->text.n;
}

static int
expected(const struct mutation_parser *p, struct slu_err *err, const char *what)
{
	return slu_fail(err, SLU_EINVAL, "character %zu: expected %s",
			(size_t)(p->p - p->text.p) + 1, what);
}

/* Line feeds separate mutations inside braces, and are blank elsewhere. */
static bool
is_blank(const struct mutation_parser *p, char c)
{
	return c == ' ' || c == '\t' || c == '\r' || (c == '\n' && p->nesting == 0);
}

static bool
ends_mutation(const struct mutation_parser *p, char c)
{
	return p->nesting > 0 && (c == ',' || c == '\n' || c == '}');
}

static void
skip_blanks(struct mutation_parser *p)
{
	while (p->p < end_of(p) && is_blank(p, *p->p))
		p->p++;
}

static struct slice
trim(const struct mutation_parser *p, struct slice s)
{
	return slice_trim(s, p->nesting == 0 ? " \t\r\n" : " \t\r");
}

static bool
take_word(struct mutation_parser *p, struct slice word)
{
	if ((size_t)(end_of(p) - p->p) < word.n || memcmp(p->p, word.p, word.n) != 0)
		return false;
	p->p += word.n;
	return true;
}

static bool
take_remove(struct mutation_parser *p)
{
	static const struct slice words[] = {
		{ "rm:", 3 },
		{ "remove:", 7 },
		{ "delete:", 7 },
		{ "del:", 4 },
	};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (take_word(p, words[i]))
			return true;
	return false;
}

/* Takes the text before '=' or '{', or before the end. */
static struct slice
take_path(struct mutation_parser *p)
{
	const char *const start = p->p;

	while (p->p < end_of(p) && *p->p != '=' && *p->p != '{' && !ends_mutation(p, *p->p))
		p->p++;
	return trim(p, (struct slice){ start, (size_t)(p->p - start) });
}

static bool
take_end(const struct mutation_parser *p, struct slice *s, struct slice end)
{
	if (s->n < end.n || memcmp(s->p + s->n - end.n, end.p, end.n) != 0)
		return false;
	s->n -= end.n;
	*s = trim(p, *s);
	return true;
}

static int
set_path(struct mutation_parser *p, struct slice path, struct slu_err *err)
{
	struct slu_err why;

	p->path.n = p->prefix[p->nesting];
	if (path.n < 2 || path.p[0] != '/')
		return expected(p, err, "a path as in /a/b before this");
	if (json_path_add(&p->path, path, p->room + (path.p - p->text.p), &why))
		return expected(p, err, why.text + strlen("expected "));
	return 0;
}

/* A number as people write it: 007, .5, +1. */
struct mutation_number {
	bool minus;
	struct slice whole, part, power; /* power: with its e */
};

static struct slice
take_digits(const char **p, const char *end)
{
	const char *const start = *p;

	while (*p < end && **p >= '0' && **p <= '9')
		++*p;
	return (struct slice){ start, (size_t)(*p - start) };
}

static bool
is_sign(const char *p, const char *end)
{
	return p < end && (*p == '+' || *p == '-');
}

static bool
read_number(struct slice s, struct mutation_number *n)
{
	const char *p = s.p;
	const char *const end = s.p + s.n;

	*n = (struct mutation_number){ 0 };
	if (is_sign(p, end))
		n->minus = *p++ == '-';
	n->whole = take_digits(&p, end);
	if (p < end && *p == '.') {
		p++;
		n->part = take_digits(&p, end);
	}
	if (n->whole.n + n->part.n == 0)
		return false;
	if (p < end && (*p | 0x20) == 'e') {
		n->power.p = p++;
		p += is_sign(p, end);
		if (take_digits(&p, end).n == 0)
			return false;
		n->power.n = (size_t)(p - n->power.p);
	}
	return p == end;
}

/* Writes the number as JSON does. */
static void
put_number(struct buf *out, struct mutation_number n)
{
	while (n.whole.n > 0 && n.whole.p[0] == '0') {
		n.whole.p++;
		n.whole.n--;
	}
	if (n.minus)
		buf_putc(out, '-');
	if (n.whole.n == 0)
		buf_putc(out, '0');
	buf_put(out, n.whole.p, n.whole.n);
	if (n.part.n > 0)
		buf_putc(out, '.');
	buf_put(out, n.part.p, n.part.n);
	buf_put(out, n.power.p, n.power.n);
}

/* Is it a number that fits a double? */
static bool
is_finite(struct slice json)
{
	struct json r;

	json_init(&r, json, 0);
	(void)json_double(&r);
	return json_end(&r, NULL) == 0;
}

/* Appends text to out as a number. Returns false and changes nothing if it is not a number. */
static bool
try_number(struct buf *out, struct slice text)
{
	const size_t start = out->n;
	struct mutation_number n;

	if (!read_number(text, &n))
		return false;
	put_number(out, n);
	if (out->failed || is_finite((struct slice){ out->p + start, out->n - start }))
		return true;
	out->n = start;
	return false;
}

static void
put_str(struct buf *out, struct slice text)
{
	struct json_out w;

	json_out_init(&w, out);
	json_out_str(&w, NULL, text);
}

/* A word, or what stood in quotes. */
static void
put_plain(struct buf *out, struct slice text)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (slice_is_word(text, words[i])) {
			buf_puts(out, words[i]);
			return;
		}
	if (!try_number(out, text))
		put_str(out, text);
}

static int
put_time(struct mutation_parser *p, struct slice text, struct slu_err *err)
{
	slu_time t = p->now;
	struct json_out w;

	if (!slice_is_word(text, "now") && rfc3339_parse(text, &t, NULL))
		return expected(p, err, "NOW or a moment of RFC 3339 before this");
	json_out_init(&w, p->value);
	json_out_time(&w, NULL, t);
	return 0;
}

static bool
is_quote(char c)
{
	return c == '"' || c == '\'';
}

/* The text between quotes: "..." with the escapes of JSON, if they all are; '...' without. */
static int
unquote(struct slice quoted, struct buf *room, struct slice *text, struct slu_err *err)
{
	const char *const last = quoted.p + quoted.n - 1;
	struct json_flaw flaw = { 0 };
	struct json_str s = { 0 };
	char *place;

	*text = (struct slice){ quoted.p + 1, quoted.n - 2 };
	if (quoted.p[0] == '\'' || json_str_scan(text->p, last + 1, &s, &flaw) != last)
		return 0;
	place = buf_add(room, s.n);
	if (!place && s.n > 0)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	*text = json_str_text(&s, place);
	return 0;
}

static struct slice
take_bare(struct mutation_parser *p)
{
	const char *const start = p->p;

	while (p->p < end_of(p) && !ends_mutation(p, *p->p))
		p->p++;
	return trim(p, (struct slice){ start, (size_t)(p->p - start) });
}

/* Inside braces, up to the quote that ends this text. */
static int
take_quoted(struct mutation_parser *p, struct slice *quoted, struct slu_err *err)
{
	const char *const start = p->p;
	struct json_flaw flaw = { 0 };
	struct json_str s = { 0 };
	const char *end;

	if (*start == '\'') {
		end = memchr(start + 1, '\'', (size_t)(end_of(p) - start - 1));
		if (!end)
			return expected(p, err, "a ' that ends this text");
	} else {
		end = json_str_scan(start + 1, end_of(p), &s, &flaw);
		if (!end) {
			p->p = flaw.at;
			return expected(p, err, flaw.expected);
		}
	}
	p->p = end + 1;
	*quoted = (struct slice){ start, (size_t)(p->p - start) };
	return 0;
}

/* Inside braces, text that looks like an array or object of JSON: its commas are its own. */
static struct slice
take_nested(struct mutation_parser *p)
{
	struct slice text;
	struct json r;

	json_init(&r, (struct slice){ p->p, (size_t)(end_of(p) - p->p) }, JSON_DEPTH);
	text = json_skip(&r);
	if (r.state == JSON_FAILED)
		return take_bare(p);
	p->p += text.n;
	return text;
}

/* The value as it is written, with its quotes. */
static int
take_raw(struct mutation_parser *p, struct slice *raw, struct slu_err *err)
{
	const char first = p->p < end_of(p) ? *p->p : '\0';

	if (p->nesting > 0 && is_quote(first))
		return take_quoted(p, raw, err);
	*raw = p->nesting > 0 && (first == '{' || first == '[') ? take_nested(p) : take_bare(p);
	return 0;
}

/* A number with its sign is added. */
static bool
is_delta(struct slice s)
{
	struct mutation_number n;

	return s.n > 1 && is_sign(s.p, s.p + s.n) && read_number(s, &n);
}

static int
take_value(struct mutation_parser *p, bool is_time, struct mutation *m, struct slu_err *err)
{
	struct slice raw = { 0 }, text;
	struct buf room;
	int rc;

	rc = take_raw(p, &raw, err);
	if (rc)
		return rc;
	if (!is_time && is_delta(raw) && try_number(p->value, raw)) {
		m->kind = MUTATION_ADD;
		return 0;
	}
	text = raw;
	buf_init(&room, p->text.n);
	if (raw.n > 1 && is_quote(raw.p[0]) && raw.p[raw.n - 1] == raw.p[0])
		rc = unquote(raw, &room, &text, err);
	if (rc == 0 && is_time)
		rc = put_time(p, text, err);
	else if (rc == 0)
		put_plain(p->value, text);
	buf_release(&room);
	return rc;
}

/* /path=value, and /path+=value. */
static int
take_set(struct mutation_parser *p, struct slice path, bool is_time, struct mutation *m,
	 struct slu_err *err)
{
	const bool minus = !is_time && take_end(p, &path, SLICE("-"));
	const bool add = minus || (!is_time && take_end(p, &path, SLICE("+")));
	struct mutation_number number;
	struct slice delta;
	int rc;

	rc = set_path(p, path, err);
	if (rc)
		return rc;
	p->p++;
	skip_blanks(p);
	if (!add)
		return take_value(p, is_time, m, err);
	delta = take_bare(p);
	m->kind = MUTATION_ADD;
	if (!read_number(delta, &number))
		return expected(p, err, "a number before this");
	number.minus ^= minus;
	put_number(p->value, number);
	return 0;
}

/* /path++ and /path--. */
static int
take_count(struct mutation_parser *p, struct slice path, bool is_time, struct mutation *m,
	   struct slu_err *err)
{
	const bool up = take_end(p, &path, SLICE("++"));

	if (is_time || (!up && !take_end(p, &path, SLICE("--"))))
		return expected(p, err, "=, ++, -- or { behind a path");
	m->kind = MUTATION_ADD;
	buf_puts(p->value, up ? "1" : "-1");
	return set_path(p, path, err);
}

static int
open_brace(struct mutation_parser *p, struct slice path, struct slu_err *err)
{
	int rc;

	if (p->nesting == MUTATION_NESTING)
		return expected(p, err, "fewer braces inside each other");
	rc = set_path(p, path, err);
	if (rc)
		return rc;
	p->p++;
	p->prefix[++p->nesting] = p->path.n;
	return 0;
}

/* Skips what separates mutations: space, commas, ends of braces. */
static void
skip_between(struct mutation_parser *p)
{
	while (p->p < end_of(p) && (is_blank(p, *p->p) || ends_mutation(p, *p->p))) {
		p->nesting -= *p->p == '}';
		p->p++;
	}
}

static int
take_one(struct mutation_parser *p, struct mutation *m, struct slu_err *err)
{
	const bool remove = take_remove(p);
	const bool is_time = !remove && take_word(p, SLICE("time:"));
	const struct slice path = take_path(p);
	const char next = p->p < end_of(p) ? *p->p : '\0';

	if (remove) {
		m->kind = MUTATION_REMOVE;
		return next == '=' || next == '{' ? expected(p, err, "nothing but a path to remove")
						  : set_path(p, path, err);
	}
	return next == '=' ? take_set(p, path, is_time, m, err)
			   : take_count(p, path, is_time, m, err);
}

/* Enter braces until a mutation begins. */
static int
enter_braces(struct mutation_parser *p, struct slu_err *err)
{
	for (;;) {
		const char *start;
		struct slice path;
		int rc;

		skip_between(p);
		start = p->p;
		if (p->begun && p->nesting == 0 && p->p < end_of(p))
			return expected(p, err, "the end: each text is one mutation");
		path = take_path(p);
		if (p->p == end_of(p) || *p->p != '{') {
			p->p = start;
			return 0;
		}
		rc = open_brace(p, path, err);
		if (rc)
			return rc;
		p->begun = true;
	}
}

int
mutation_next(struct mutation_parser *p, struct mutation *m, struct slu_err *err)
{
	int rc;

	buf_clear(p->value);
	*m = (struct mutation){ .path = &p->path };
	rc = enter_braces(p, err);
	if (rc)
		return rc;
	p->ended = p->p == end_of(p);
	if (p->ended)
		return p->nesting > 0 ? expected(p, err, "a } that ends the braces") : 0;
	p->begun = true;
	rc = take_one(p, m, err);
	if (rc)
		return rc;
	skip_blanks(p);
	if (p->p < end_of(p) && !ends_mutation(p, *p->p))
		return expected(p, err, "a comma or the end");
	if (p->value->failed)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	m->value = buf_slice(p->value);
	return 0;
}
