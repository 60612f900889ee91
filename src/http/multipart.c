/*
 * multipart.c - the states of a multipart body.
 *
 *      preamble ──┐                                ┌──> end: the rest is ignored
 *                 v                                │ --
 *              delimiter ──> behind it ── CR LF ──> head ──> PART ──> data ──> delimiter
 *                               └── anything else: not a delimiter
 *
 * A delimiter begins with CR and has no other CR. So bytes that began like a delimiter and were
 * not one need no second look, and are equal to the bytes of the delimiter.
 */
#include "http/multipart.h"

#include "base/parse.h"
#include "http/chars.h"

enum state {
	STATE_PREAMBLE,
	STATE_DATA,
	STATE_BEHIND, /* a delimiter */
	STATE_BLANKS, /* behind it */
	STATE_DASH,   /* one of two */
	STATE_LF,
	STATE_HEAD,
	STATE_END,
	STATE_REFUSED
};

/* --- parameters of a field ------------------------------------------------------ */

/* The end of a parameter: the next ';' that is not in quotes. */
static size_t
parameter_end(struct slice s)
{
	bool quoted = false;
	size_t i = 0;

	for (; i < s.n && (quoted || s.p[i] != ';'); i++) {
		if (s.p[i] == '"')
			quoted = !quoted;
		else if (quoted && s.p[i] == '\\' && i + 1 < s.n)
			i++;
	}
	return i;
}

/* Removes the quotes; escapes inside stay: no known name has any. False: no closing quote. */
static bool
unquote(struct slice *s)
{
	if (s->n == 0 || s->p[0] != '"')
		return true;
	if (s->n < 2 || s->p[s->n - 1] != '"')
		return false;
	*s = (struct slice){ s->p + 1, s->n - 2 };
	return true;
}

/* The parameter of that name in what follows the first ';' of a value. */
static bool
parameter(struct slice value, const char *name, struct slice *out)
{
	size_t at = parameter_end(value);

	while (at < value.n) {
		const struct slice rest = { value.p + at + 1, value.n - at - 1 };
		const size_t n = parameter_end(rest);
		const char *const eq = n ? memchr(rest.p, '=', n) : NULL;

		if (eq && http_same(http_trim((struct slice){ rest.p, (size_t)(eq - rest.p) }),
				    slice_of(name))) {
			*out = http_trim((struct slice){ eq + 1, (size_t)(rest.p + n - eq) - 1 });
			return unquote(out);
		}
		at += 1 + n;
	}
	return false;
}

bool
multipart_init(struct multipart *m, struct slice content_type)
{
	const struct slice multipart = SLICE("multipart/");
	struct slice boundary;

	m->state = STATE_PREAMBLE;
	m->why = NULL;
	m->matched = m->ghosts = 2; /* as if a line had ended */
	m->n_head = 0;
	if (content_type.n <= multipart.n ||
	    !http_same((struct slice){ content_type.p, multipart.n }, multipart) ||
	    !parameter(content_type, "boundary", &boundary))
		return false;
	if (boundary.n == 0 || boundary.n > MULTIPART_BOUNDARY ||
	    boundary.p[boundary.n - 1] == ' ')
		return false;
	for (size_t i = 0; i < boundary.n; i++)
		if (boundary.p[i] < ' ' || boundary.p[i] > '~')
			return false;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary.p, boundary.n);
	m->n_delimiter = 4 + boundary.n;
	return true;
}

/* --- heads ---------------------------------------------------------------------- */

static enum multipart_event
refuse(struct multipart *m, const char *why)
{
	m->state = STATE_REFUSED;
	m->why = why;
	return MULTIPART_REFUSED;
}

/* False: not a field. Unknown fields are ignored. */
static bool
take_field(struct multipart *m, struct slice line)
{
	const char *const colon = line.n ? memchr(line.p, ':', line.n) : NULL;
	const struct slice name = { line.p, colon ? (size_t)(colon - line.p) : 0 };
	struct slice value;

	if (name.n == 0 || !http_all(name, CHAR_TOKEN))
		return false;
	value = http_trim((struct slice){ colon + 1, line.n - name.n - 1 });
	if (!http_all(value, CHAR_VALUE))
		return false;
	if (http_same(name, SLICE("content-type")))
		m->type = value;
	if (http_same(name, SLICE("content-disposition")))
		return !parameter(value, "name", &m->name) || m->name.n > 0;
	if (!http_same(name, SLICE("content-length")))
		return true;
	m->has_length = true;
	return parse_u64(value, 0, INT64_MAX, &m->length, NULL) == 0;
}

static enum multipart_event
take_head(struct multipart *m)
{
	size_t begin = 0;

	m->name = m->type = (struct slice){ 0 };
	m->has_length = false;
	m->length = 0;
	for (size_t i = 0; i + 2 < m->n_head; i++) {
		if (m->head[i] != '\r')
			continue;
		if (!take_field(m, (struct slice){ m->head + begin, i - begin }))
			return refuse(m, "a field in the head of a part is not well formed");
		begin = i + 2;
		i++;
	}
	m->state = STATE_DATA;
	m->matched = m->ghosts = 2; /* of a part without data the empty line may be the last */
	return MULTIPART_PART;
}

/* A line at a time; the empty one ends it. */
static enum multipart_event
read_head(struct multipart *m, struct slice *in)
{
	while (in->n > 0) {
		const char c = *in->p;

		if (m->n_head == sizeof m->head)
			return refuse(m, "the head of a part is too long");
		m->head[m->n_head++] = c;
		*in = (struct slice){ in->p + 1, in->n - 1 };
		if (c != '\n')
			continue;
		if (m->n_head - m->line < 2 || m->head[m->n_head - 2] != '\r')
			return refuse(m, "a line in the head of a part does not end in CR LF");
		if (m->n_head - m->line == 2)
			return take_head(m);
		m->line = m->n_head;
	}
	return MULTIPART_MORE;
}

/* --- data ----------------------------------------------------------------------- */

/* The matched part of the delimiter is data. Without a head no part has begun. */
static enum multipart_event
was_none(struct multipart *m, struct slice *data)
{
	*data = (struct slice){ m->delimiter + m->ghosts, m->matched - m->ghosts };
	m->state = m->n_head > 0 ? STATE_DATA : STATE_PREAMBLE;
	m->matched = m->ghosts = 0;
	return data->n > 0 ? MULTIPART_DATA : MULTIPART_MORE;
}

/* Go on with what began like a delimiter. */
static enum multipart_event
match(struct multipart *m, struct slice *in, struct slice *data)
{
	while (in->n > 0 && m->matched < m->n_delimiter && *in->p == m->delimiter[m->matched]) {
		m->matched++;
		slice_skip(in, 1);
	}
	if (m->matched == m->n_delimiter || in->n == 0)
		return MULTIPART_MORE;
	return was_none(m, data);
}

/* Data up to where a delimiter may begin. */
static enum multipart_event
scan(struct multipart *m, struct slice *in, struct slice *data)
{
	const char *const begin = in->p, *const end = begin + in->n;
	const char *p = begin;

	while (p < end && (p = memchr(p, '\r', (size_t)(end - p))) != NULL) {
		const size_t rest = (size_t)(end - p);

		if (memcmp(p, m->delimiter, rest < m->n_delimiter ? rest : m->n_delimiter) == 0)
			break;
		p++;
	}
	if (!p)
		p = end;
	*data = (struct slice){ begin, (size_t)(p - begin) };
	slice_skip(in, data->n);
	if (p < end)
		return data->n > 0 ? MULTIPART_DATA : match(m, in, data);
	return data->n > 0 ? MULTIPART_DATA : MULTIPART_MORE;
}

static enum multipart_event
read_data(struct multipart *m, struct slice *in, struct slice *data)
{
	const enum multipart_event e = m->matched ? match(m, in, data) : scan(m, in, data);

	if (m->matched < m->n_delimiter)
		return e;
	m->state = STATE_BEHIND;
	return e; /* MORE: another state continues with the rest */
}

/* --- behind a delimiter ----------------------------------------------------------- */

static enum multipart_event
read_behind(struct multipart *m, struct slice *in, struct slice *data)
{
	const char c = *in->p;

	if (m->state == STATE_BEHIND && c != '-' && c != '\r' && c != ' ' && c != '\t')
		return was_none(m, data);
	slice_skip(in, 1);
	if (m->state == STATE_DASH && c == '-') {
		m->state = STATE_END;
		return MULTIPART_END;
	}
	if (m->state == STATE_LF && c == '\n') {
		m->state = STATE_HEAD;
		m->n_head = m->line = 0;
		return MULTIPART_MORE;
	}
	if (m->state == STATE_DASH || m->state == STATE_LF)
		return refuse(m, "a boundary is not followed by CR LF");
	if (c == '\r')
		m->state = STATE_LF;
	else if (c == '-' && m->state == STATE_BEHIND)
		m->state = STATE_DASH;
	else if (c == ' ' || c == '\t')
		m->state = STATE_BLANKS;
	else
		return refuse(m, "a boundary is not followed by CR LF");
	return MULTIPART_MORE;
}

static enum multipart_event
step(struct multipart *m, struct slice *in, struct slice *data)
{
	switch ((enum state)m->state) {
	case STATE_PREAMBLE:
	case STATE_DATA:
		return read_data(m, in, data);
	case STATE_HEAD:
		return read_head(m, in);
	default:
		return read_behind(m, in, data);
	}
}

void
multipart_taken(struct multipart *m)
{
	m->matched = m->ghosts = 0;
}

enum multipart_event
multipart_next(struct multipart *m, struct slice *in, struct slice *data)
{
	while (in->n > 0 && m->state != STATE_END && m->state != STATE_REFUSED) {
		const bool skips = m->state == STATE_PREAMBLE ||
				   (m->state == STATE_BEHIND && m->n_head == 0);
		const enum multipart_event e = step(m, in, data);

		if (e != MULTIPART_MORE && !(e == MULTIPART_DATA && skips))
			return e;
	}
	if (m->state == STATE_END)
		return MULTIPART_END;
	return m->state == STATE_REFUSED ? MULTIPART_REFUSED : MULTIPART_MORE;
}
