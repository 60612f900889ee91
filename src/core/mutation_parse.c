#include "base/json_out.h"
#include "base/parse.h"
#include "base/rfc3339.h"
#include "core/mutation.h"

void
mutation_parse(struct mutation_parser *p, struct slice text, char *room, struct buf *value,
	       slu_time now)
{
	*p = (struct mutation_parser){
		.text = text,
		.p = text.p,
		.room = room,
		.value = value,
		.now = now,
	};
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

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool
ends_mutation(const struct mutation_parser *p, char c)
{
	return c == ',' || c == '\n' || (c == '}' && p->nesting > 0);
}

static void
skip_blanks(struct mutation_parser *p)
{
	while (p->p < end_of(p) && is_blank(*p->p))
		p->p++;
}

static struct slice
trim(struct slice s)
{
	while (s.n > 0 && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
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

/* What stands before '=' or '{', or before the end. */
static struct slice
take_path(struct mutation_parser *p)
{
	const char *const start = p->p;

	while (p->p < end_of(p) && *p->p != '=' && *p->p != '{' && !ends_mutation(p, *p->p))
		p->p++;
	return trim((struct slice){ start, (size_t)(p->p - start) });
}

static bool
take_end(struct slice *s, struct slice end)
{
	if (s->n < end.n || memcmp(s->p + s->n - end.n, end.p, end.n) != 0)
		return false;
	s->n -= end.n;
	*s = trim(*s);
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
	for (unsigned i = 0; i < p->path.n; i++)
		if (p->path.steps[i].kind != JSON_STEP_NAME)
			return expected(p, err, "a path without wildcards before this");
	return 0;
}

static bool
word_is(struct slice s, const char *word)
{
	for (size_t i = 0; i < s.n; i++)
		if ((s.p[i] | 0x20) != word[i] || !word[i])
			return false;
	return word[s.n] == '\0';
}

/* Is all of it one number of JSON? */
static bool
is_number(struct slice s)
{
	struct json r;

	json_init(&r, s, 0);
	(void)json_number(&r);
	return s.n > 0 && !is_blank(s.p[0]) && json_end(&r, NULL) == 0;
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
		if (word_is(text, words[i])) {
			buf_puts(out, words[i]);
			return;
		}
	if (is_number(text))
		buf_put(out, text.p, text.n);
	else
		put_str(out, text);
}

static int
put_time(struct mutation_parser *p, struct slice text, struct slu_err *err)
{
	slu_time t = p->now;
	struct json_out w;

	if (!word_is(text, "now") && rfc3339_parse(text, &t, NULL))
		return expected(p, err, "NOW or a moment of RFC 3339 before this");
	json_out_init(&w, p->value);
	json_out_time(&w, NULL, t);
	return 0;
}

/* Text in quotes; "..." with the escapes of JSON, '...' without any. */
static int
take_quoted(struct mutation_parser *p, struct buf *room, struct slice *text,
	    struct slu_err *err)
{
	const char *const start = p->p + 1;
	struct json_flaw flaw = { 0 };
	struct json_str s = { 0 };
	const char *end;

	if (*p->p == '\'') {
		end = memchr(start, '\'', (size_t)(end_of(p) - start));
		if (!end)
			return expected(p, err, "a ' that ends this text");
		*text = (struct slice){ start, (size_t)(end - start) };
	} else {
		char *place;

		end = json_str_scan(start, end_of(p), &s, &flaw);
		if (!end) {
			p->p = flaw.at;
			return expected(p, err, flaw.expected);
		}
		place = buf_add(room, s.n);
		if (!place && s.n > 0)
			return slu_fail(err, SLU_ENOMEM, "out of memory");
		*text = json_str_text(&s, place);
	}
	p->p = end + 1;
	return 0;
}

/* An array or object, as it stands. */
static int
take_json(struct mutation_parser *p, struct slu_err *err)
{
	struct slice value;
	struct json r;

	json_init(&r, (struct slice){ p->p, (size_t)(end_of(p) - p->p) }, JSON_DEPTH);
	value = json_skip(&r);
	if (r.state == JSON_FAILED) {
		p->p += json_pos(&r).offset;
		return expected(p, err, "JSON");
	}
	buf_put(p->value, value.p, value.n);
	p->p += value.n;
	return 0;
}

static struct slice
take_bare(struct mutation_parser *p)
{
	const char *const start = p->p;

	while (p->p < end_of(p) && !ends_mutation(p, *p->p))
		p->p++;
	return trim((struct slice){ start, (size_t)(p->p - start) });
}

/* A number with its sign, so that a plus is one, too. */
static bool
is_delta(struct slice s)
{
	if (s.n < 2 || (s.p[0] != '+' && s.p[0] != '-'))
		return false;
	return is_number((struct slice){ s.p + 1, s.n - 1 }) && s.p[1] != '-';
}

static int
take_value(struct mutation_parser *p, bool is_time, struct mutation *m, struct slu_err *err)
{
	const char first = p->p < end_of(p) ? *p->p : '\0';
	struct slice text = { 0 };
	struct buf room;
	int rc = 0;

	if (!is_time && (first == '{' || first == '['))
		return take_json(p, err);
	buf_init(&room, p->text.n);
	if (first == '"' || first == '\'')
		rc = take_quoted(p, &room, &text, err);
	else
		text = take_bare(p);
	if (rc)
		goto out;
	if (is_time)
		rc = put_time(p, text, err);
	else if (first != '"' && first != '\'' && is_delta(text)) {
		m->kind = MUTATION_ADD;
		buf_put(p->value, text.p + (first == '+'), text.n - (first == '+'));
	} else
		put_plain(p->value, text);
out:
	buf_release(&room);
	return rc;
}

/* /path=value, and /path+=value. */
static int
take_set(struct mutation_parser *p, struct slice path, bool is_time, struct mutation *m,
	 struct slu_err *err)
{
	const bool minus = !is_time && take_end(&path, SLICE("-"));
	const bool add = minus || (!is_time && take_end(&path, SLICE("+")));
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
	if (!is_number(delta))
		return expected(p, err, "a number before this");
	m->kind = MUTATION_ADD;
	if (minus && delta.p[0] == '-') {
		delta.p++;
		delta.n--;
	} else if (minus)
		buf_putc(p->value, '-');
	buf_put(p->value, delta.p, delta.n);
	return 0;
}

/* /path++ and /path--. */
static int
take_count(struct mutation_parser *p, struct slice path, bool is_time, struct mutation *m,
	   struct slu_err *err)
{
	const bool up = take_end(&path, SLICE("++"));

	if (is_time || (!up && !take_end(&path, SLICE("--"))))
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

/* What stands between mutations: space, commas, ends of braces. */
static void
skip_between(struct mutation_parser *p)
{
	while (p->p < end_of(p) && (is_blank(*p->p) || ends_mutation(p, *p->p))) {
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
		path = take_path(p);
		if (p->p == end_of(p) || *p->p != '{') {
			p->p = start;
			return 0;
		}
		rc = open_brace(p, path, err);
		if (rc)
			return rc;
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
