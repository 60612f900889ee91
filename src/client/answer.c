/*
 * answer.c - the states of the parser:
 *
 *     status -> field... -+-> body ------------------------+-> whole
 *       ^_______(1xx)_____|                                |
 *                         +-> chunk -> data -> data end    |
 *                               |  ^______________|        |
 *                               +-> trailer... ------------+
 */
#include "client/answer.h"

#include "http/chars.h"

enum state {
	STATE_STATUS,
	STATE_FIELD,
	STATE_CHUNK,
	STATE_DATA_END,
	STATE_TRAILER,
	STATES_OF_LINES,
	STATE_BODY = STATES_OF_LINES,
	STATE_DATA,
	STATE_WHOLE,
	STATE_REFUSED
};

void
answer_init(struct answer *a, size_t max_body)
{
	*a = (struct answer){ 0 };
	buf_init(&a->body, max_body);
	buf_init(&a->line, ANSWER_LINE);
	buf_init(&a->fields, 2 * ANSWER_HEAD);
	answer_begin(a, false);
}

void
answer_release(struct answer *a)
{
	buf_release(&a->body);
	buf_release(&a->line);
	buf_release(&a->fields);
}

void
answer_begin(struct answer *a, bool for_head)
{
	struct answer next = {
		.for_head = for_head,
		.body = a->body,
		.line = a->line,
		.fields = a->fields,
		.budget = ANSWER_HEAD,
		.retry_after = ANSWER_NO_RETRY,
	};

	buf_clear(&next.body);
	buf_clear(&next.line);
	buf_clear(&next.fields);
	*a = next;
}

bool
answer_is_untouched(const struct answer *a)
{
	return a->state == STATE_STATUS && a->line.n == 0 && a->interim == 0;
}

bool
answer_has_head(const struct answer *a)
{
	return a->state > STATE_FIELD && a->state != STATE_REFUSED;
}

const char *
answer_refusal(const struct answer *a)
{
	static const char *const texts[] = {
		[ANSWER_FINE] = "no error",
#define X(name, text) [ANSWER_##name] = text,
		ANSWER_REFUSALS(X)
#undef X
	};

	return texts[a->refused];
}

/* --- lines ------------------------------------------------------------------ */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parses HTTP/1.1 200 OK. The words, and the space before them, may be missing. */
static int
line_status(struct answer *a, struct slice line)
{
	const char *p = line.p;

	if (line.n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') ||
	    p[8] != ' ' || !is_digit(p[9]) || !is_digit(p[10]) || !is_digit(p[11]) ||
	    p[9] == '0' || (line.n > 12 && p[12] != ' ') || !http_all(line, CHAR_VALUE))
		return ANSWER_STATUS_LINE;
	a->minor = (uint8_t)(p[7] - '0');
	a->status = (unsigned)((p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0'));
	a->state = STATE_FIELD;
	return 0;
}

static bool
whole_number(struct slice s, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;

	if (s.n == 0 || s.n > 18)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!is_digit(s.p[i]))
			return false;
		n = n * 10 + (uint64_t)(s.p[i] - '0');
	}
	*out = n;
	return n <= max;
}

static int
take_length(struct answer *a, struct slice value)
{
	if (a->has_length || a->chunked)
		return ANSWER_LENGTH_TWICE;
	a->has_length = true;
	return whole_number(value, INT64_MAX, &a->left) ? 0 : ANSWER_LENGTH;
}

static int
take_coding(struct answer *a, struct slice value)
{
	if (a->has_length || a->chunked)
		return ANSWER_LENGTH_TWICE;
	a->chunked = http_same(value, SLICE("chunked"));
	return a->chunked && a->minor == 1 ? 0 : ANSWER_CODING;
}

static int
take_connection(struct answer *a, struct slice value)
{
	http_connection(value, &a->said_close, &a->said_keep_alive);
	return 0;
}

/* Parses Retry-After in seconds. Our servers do not send the other form, a date. */
static int
take_retry(struct answer *a, struct slice value)
{
	uint64_t seconds;

	if (whole_number(value, ANSWER_NO_RETRY - 1, &seconds))
		a->retry_after = (uint32_t)seconds;
	return 0;
}

static const struct answer_special {
	struct slice name;
	int (*take)(struct answer *a, struct slice value);
} specials[] = {
	{ { "connection", 10 }, take_connection },
	{ { "content-length", 14 }, take_length },
	{ { "retry-after", 11 }, take_retry },
	{ { "transfer-encoding", 17 }, take_coding },
};

static bool
split_field(struct slice line, struct slice *name, struct slice *value)
{
	if (!slice_cut(&line, ':', name))
		return false;
	*value = line;
	if (name->n == 0 || !http_all(*name, CHAR_TOKEN) || !http_all(*value, CHAR_VALUE))
		return false;
	*value = http_trim(*value);
	return true;
}

/* Stores a field as name and value, each with a NUL at its end; neither can contain one. */
static int
keep_field(struct answer *a, struct slice name, struct slice value)
{
	for (size_t i = 0; i < name.n; i++)
		buf_putc(&a->fields, http_small(name.p[i]));
	buf_putc(&a->fields, '\0');
	buf_put(&a->fields, value.p, value.n);
	buf_putc(&a->fields, '\0');
	return a->fields.failed ? ANSWER_MEMORY : 0;
}

struct slice
answer_field(const struct answer *a, struct slice name)
{
	struct slice found = { NULL, 0 };
	size_t at = 0;

	while (at < a->fields.n) {
		const struct slice key = slice_of(a->fields.p + at);
		const struct slice value = slice_of(key.p + key.n + 1);

		if (slice_eq(key, name))
			found = value;
		at += key.n + value.n + 2;
	}
	return found;
}

/* Decides what follows the blank line. */
static int
end_head(struct answer *a)
{
	if (a->status < 200) {
		a->state = STATE_STATUS;
		a->has_length = a->chunked = false;
		a->left = 0;
		buf_clear(&a->fields);
		return a->interim++ < ANSWER_INTERIM_MAX ? 0 : ANSWER_INTERIM;
	}
	a->keep_alive = !a->said_close && (a->minor == 1 || a->said_keep_alive);
	if (a->for_head || a->status == 204 || a->status == 304) {
		a->state = STATE_WHOLE;
		return 0;
	}
	if (!a->has_length && !a->chunked)
		return ANSWER_LENGTH_NONE;
	if (a->left > a->body.max && !a->in_pieces)
		return ANSWER_BODY_LONG;
	a->state = a->chunked ? STATE_CHUNK : a->left > 0 ? STATE_BODY
							  : STATE_WHOLE;
	return 0;
}

static int
line_field(struct answer *a, struct slice line)
{
	struct slice name, value;

	if (line.n == 0)
		return end_head(a);
	if (!split_field(line, &name, &value))
		return ANSWER_FIELD;
	for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
		if (http_same(name, specials[i].name))
			return specials[i].take(a, value);
	return keep_field(a, name, value);
}

static int
line_chunk(struct answer *a, struct slice line)
{
	uint64_t size = 0;
	size_t i = 0;

	for (; i < line.n && i < 16 && ascii_hex(line.p[i]) >= 0; i++)
		size = size << 4 | (uint64_t)ascii_hex(line.p[i]);
	if (i == 0 || (i < line.n && line.p[i] != ';') || !http_all(line, CHAR_VALUE))
		return ANSWER_CHUNK;
	if (size > a->body.max - a->body.n && !a->in_pieces)
		return ANSWER_BODY_LONG;
	a->left = size;
	a->budget += (uint32_t)i + 2; /* ANSWER-3: the chunk size is free, extensions count */
	a->state = size > 0 ? STATE_DATA : STATE_TRAILER;
	return 0;
}

static int
line_data_end(struct answer *a, struct slice line)
{
	a->state = STATE_CHUNK;
	a->budget += 2;
	return line.n == 0 ? 0 : ANSWER_CHUNK;
}

static int
line_trailer(struct answer *a, struct slice line)
{
	struct slice name, value;

	if (line.n == 0) {
		a->state = STATE_WHOLE;
		return 0;
	}
	return split_field(line, &name, &value) ? 0 : ANSWER_TRAILER;
}

/* --- bytes ------------------------------------------------------------------ */

static int (*const takers[STATES_OF_LINES])(struct answer *a, struct slice line) = {
	[STATE_STATUS] = line_status,
	[STATE_FIELD] = line_field,
	[STATE_CHUNK] = line_chunk,
	[STATE_DATA_END] = line_data_end,
	[STATE_TRAILER] = line_trailer,
};

static void
refuse(struct answer *a, enum answer_refused why)
{
	a->refused = (uint8_t)why;
	a->state = STATE_REFUSED;
}

static void
take_line(struct answer *a)
{
	const struct slice line = buf_slice(&a->line);
	int rc = ANSWER_LINE_END;

	if (line.n >= 2 && line.p[line.n - 2] == '\r')
		rc = takers[a->state](a, (struct slice){ line.p, line.n - 2 });
	buf_clear(&a->line);
	if (rc)
		refuse(a, (enum answer_refused)rc);
}

/* Collects a whole line in a->line. */
static void
read_line(struct answer *a, struct slice *in)
{
	const size_t rest = ANSWER_LINE - a->line.n;
	const size_t room = rest < a->budget ? rest : a->budget;
	const size_t n = in->n < room ? in->n : room;
	const char *lf = memchr(in->p, '\n', n);
	const size_t got = lf ? (size_t)(lf - in->p) + 1 : n;

	if (!lf && in->n > n) {
		refuse(a, ANSWER_HEAD_LONG);
		return;
	}
	buf_put(&a->line, in->p, got);
	a->budget -= (uint32_t)got;
	slice_skip(in, got);
	if (a->line.failed)
		refuse(a, ANSWER_MEMORY);
	else if (lf)
		take_line(a);
}

static void
read_body(struct answer *a, struct slice *in)
{
	const size_t n = in->n < a->left ? in->n : (size_t)a->left;

	buf_put(&a->body, in->p, n);
	slice_skip(in, n);
	a->left -= n;
	if (a->body.failed)
		refuse(a, ANSWER_MEMORY);
	else if (a->left == 0)
		a->state = a->chunked ? STATE_DATA_END : STATE_WHOLE;
}

enum answer_event
answer_next(struct answer *a, struct slice *in)
{
	while (a->state < STATE_WHOLE && in->n > 0) {
		if (a->state < STATES_OF_LINES)
			read_line(a, in);
		else
			read_body(a, in);
	}
	if (a->state == STATE_REFUSED)
		return ANSWER_REFUSED;
	return a->state == STATE_WHOLE ? ANSWER_WHOLE : ANSWER_MORE;
}
