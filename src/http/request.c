/*
 * request.c - the states of a connection that sends requests.
 *
 *     start -> field... -> head -+-> body ----------------------------+-> end -> next
 *      (lines)                   |                                    |            |
 *                                +-> chunk -> data -> data end        |    start or closed
 *                                      |  ^______________|            |
 *                                      +-> trailer... ----------------+
 *
 * A state reads a line (its row in `lines` has the limit and the function), or passes bytes of a
 * body on, or gives an event. Bytes are scanned once: a partial line waits in r->head, and only
 * new bytes are searched for its end.
 */
#include "http/request.h"

#include "base/mem.h"
#include "http/chars.h"
#include "http/head.h"

#include <assert.h>

enum {
	KEPT_SIZE = 2048 /* a larger head is not kept; its memory goes back after its request */
};

enum state {
	STATE_NEXT, /* a request begins; the one before is forgotten */
	STATE_START,
	STATE_FIELD,
	STATE_HEAD,
	STATE_BODY,
	STATE_CHUNK,
	STATE_DATA,
	STATE_DATA_END,
	STATE_TRAILER,
	STATE_END,
	STATE_CLOSED,
	STATE_REFUSED,
	STATES
};

const struct request_limits request_limits_default = {
	.head = 16 * 1024,
	.target = 8 * 1024,
	.headers = 64,
	.body = (uint64_t)1 << 40, /* each route has a limit of its own */
};

static const struct request_refusal refusals[] = {
	[REFUSE_NOTHING] = { 500, "nothing" },
#define X(name, status, reason) [REFUSE_##name] = { status, reason },
	REQUEST_REFUSALS(X)
#undef X
};

int
request_init(struct request *r, const struct request_limits *limits)
{
	assert(limits->head <= REQUEST_HEAD_MAX && limits->headers > 0);
	assert(limits->body <= INT64_MAX);
	*r = (struct request){ .limits = limits };
	buf_init(&r->head, limits->head + REQUEST_LINE);
	buf_init(&r->sent, KEPT_SIZE);
	r->fields = mem_array(limits->headers, sizeof r->fields[0]);
	return r->fields ? 0 : SLU_ENOMEM;
}

void
request_release(struct request *r)
{
	buf_release(&r->head);
	buf_release(&r->sent);
	mem_free(r->fields);
	r->fields = NULL;
}

const struct request_refusal *
request_refusal(const struct request *r)
{
	return &refusals[r->refused];
}

static void
refuse(struct request *r, int why)
{
	r->refused = (uint8_t)why;
	r->state = STATE_REFUSED;
}

void
request_limit_body(struct request *r, uint64_t max)
{
	r->room = max;
	if (r->length > max)
		refuse(r, REFUSE_BODY_LONG);
}

static int
line_start(struct request *r, struct slice line)
{
	if (line.n > 0) {
		r->state = STATE_FIELD;
		return head_request_line(r, line);
	}
	r->head.n = 0;
	return r->blank_lines++ < REQUEST_BLANK_LINES ? 0 : REFUSE_BLANK_LINES;
}

/* Chunk lines and trailers go behind the head. There must be room for them now:
 * later the head may not move, for callers have slices of it. */
static int
reserve_line(struct request *r)
{
	static const char nothing[REQUEST_LINE];
	const size_t n = r->head.n;

	buf_put(&r->head, nothing, sizeof nothing);
	if (r->head.failed)
		return REFUSE_MEMORY;
	r->head.n = n;
	return 0;
}

/* All lines of the head are read: what a body may need from here on. */
static void
enter_head(struct request *r)
{
	r->state = STATE_HEAD;
	r->left = r->length;
	r->room = r->limits->body;
	r->budget = r->limits->head;
}

static int
line_field(struct request *r, struct slice line)
{
	int rc;

	if (line.n > 0)
		return head_field(r, line);
	rc = r->chunked ? reserve_line(r) : 0;
	if (rc == 0)
		rc = head_end(r);
	if (rc == 0 && r->length > r->limits->body)
		rc = REFUSE_BODY_LONG;
	enter_head(r);
	return rc;
}

/* REQUEST-6: bytes that mean nothing, yet must be read. */
static bool
spend(struct request *r, size_t n)
{
	if (n > r->budget)
		return false;
	r->budget -= (uint32_t)n;
	return true;
}

static int
line_chunk(struct request *r, struct slice line)
{
	uint64_t size = 0;
	size_t i = 0;

	for (; i < line.n && ascii_hex(line.p[i]) >= 0; i++) {
		if (size >> 59 != 0)
			return REFUSE_CHUNK_SIZE;
		size = size << 4 | (uint64_t)ascii_hex(line.p[i]);
	}
	if (i == 0 || (i < line.n && line.p[i] != ';'))
		return REFUSE_CHUNK_SIZE;
	line = (struct slice){ line.p + i, line.n - i };
	if (!http_all(line, CHAR_VALUE) || !spend(r, line.n))
		return REFUSE_CHUNK_EXTENSION;
	if (size > r->room)
		return REFUSE_BODY_LONG;
	r->room -= size;
	r->left = size;
	r->state = size > 0 ? STATE_DATA : STATE_TRAILER;
	return 0;
}

static int
line_data_end(struct request *r, struct slice line)
{
	r->state = STATE_CHUNK;
	return line.n == 0 ? 0 : REFUSE_CHUNK_END;
}

static int
line_trailer(struct request *r, struct slice line)
{
	if (line.n == 0) {
		r->state = STATE_END;
		return 0;
	}
	return spend(r, line.n) ? head_trailer(r, line) : REFUSE_TRAILERS_LONG;
}

/* The function of a state for its line, and the limit: max 0 is the rest of the whole head. Lines
 * of the head stay; others make room for the next. */
static const struct line_state {
	int (*take)(struct request *r, struct slice line);
	size_t max;
	enum request_refused too_long;
} lines[STATES] = {
	[STATE_START] = { line_start, 0, REFUSE_TARGET_LONG },
	[STATE_FIELD] = { line_field, 0, REFUSE_HEAD_LONG },
	[STATE_CHUNK] = { line_chunk, REQUEST_LINE, REFUSE_CHUNK_EXTENSION },
	[STATE_DATA_END] = { line_data_end, 2, REFUSE_CHUNK_END },
	[STATE_TRAILER] = { line_trailer, REQUEST_LINE, REFUSE_TRAILERS_LONG },
};

/* Copies up to the end of the line. False: no end yet, or refused. */
static bool
gather(struct request *r, const struct line_state *s, struct slice *in)
{
	const size_t limit = s->max ? r->line + s->max : r->limits->head;
	const size_t room = limit - r->head.n;
	const size_t n = in->n < room ? in->n : room;
	const char *lf = memchr(in->p, '\n', n);
	const size_t got = lf ? (size_t)(lf - in->p) + 1 : n;

	if (!lf && in->n > room) {
		refuse(r, s->too_long);
		return false;
	}
	buf_put(&r->head, in->p, got);
	slice_skip(in, got);
	if (r->head.failed)
		refuse(r, REFUSE_MEMORY);
	return lf && !r->head.failed;
}

static int
take_line(struct request *r, const struct line_state *s)
{
	const size_t n = r->head.n - r->line;
	const char *p = r->head.p + r->line;
	int rc;

	if (n < 2 || p[n - 2] != '\r')
		return REFUSE_BARE_LF;
	rc = s->take(r, (struct slice){ p, n - 2 });
	if (s->max)
		r->head.n = r->line;
	r->line = r->head.n;
	return rc;
}

static void
read_line(struct request *r, struct slice *in)
{
	const struct line_state *s = &lines[r->state];
	int rc;

	if (!gather(r, s, in))
		return;
	rc = take_line(r, s);
	if (rc)
		refuse(r, rc);
}

/* REQUEST-8. */
static bool
repeat(struct request *r, struct slice *in)
{
	const struct slice sent = buf_slice(&r->sent);

	if (sent.n == 0 || in->n < sent.n || memcmp(in->p, sent.p, sent.n) != 0)
		return false;
	slice_skip(in, sent.n);
	r->repeated = true;
	enter_head(r);
	return true;
}

/* Keeps a head that came in one piece. It may be lost for lack of memory, and is parsed then. */
static void
keep_sent(struct request *r, struct slice head)
{
	if (head.n > KEPT_SIZE || r->head.size > KEPT_SIZE)
		return;
	buf_put(&r->sent, head.p, head.n);
	if (r->sent.failed)
		buf_clear(&r->sent);
}

static void
begin(struct request *r)
{
	struct request next = {
		.head = r->head,
		.sent = r->sent,
		.fields = r->fields,
		.limits = r->limits,
		.state = STATE_START,
	};

	if (next.head.size > KEPT_SIZE)
		buf_release(&next.head);
	buf_clear(&next.head);
	buf_clear(&next.sent);
	*r = next;
}

/* Reads lines while the state has lines and there are bytes. */
static void
read_lines(struct request *r, struct slice *in)
{
	while (lines[r->state].take && in->n > 0)
		read_line(r, in);
}

static void
read_head(struct request *r, struct slice *in)
{
	const struct slice all = *in;

	if (repeat(r, in))
		return;
	begin(r);
	read_lines(r, in);
	if (r->state == STATE_HEAD)
		keep_sent(r, (struct slice){ all.p, all.n - in->n });
}

static enum request_event
pass_bytes(struct request *r, struct slice *in, struct slice *body)
{
	const size_t n = in->n < r->left ? in->n : (size_t)r->left;

	if (n == 0)
		return REQUEST_MORE;
	*body = (struct slice){ in->p, n };
	slice_skip(in, n);
	r->left -= n;
	if (r->left == 0)
		r->state = r->chunked ? STATE_DATA_END : STATE_END;
	return REQUEST_BODY;
}

static void
leave_head(struct request *r)
{
	if (r->chunked)
		r->state = STATE_CHUNK;
	else
		r->state = r->length > 0 ? STATE_BODY : STATE_END;
}

enum request_event
request_next(struct request *r, struct slice *in, struct slice *body)
{
	if (r->state == STATE_NEXT)
		read_head(r, in);
	else
		read_lines(r, in);

	switch ((enum state)r->state) {
	case STATE_HEAD:
		leave_head(r);
		return REQUEST_HEAD;
	case STATE_BODY:
	case STATE_DATA:
		return pass_bytes(r, in, body);
	case STATE_END:
		r->state = r->keep_alive ? STATE_NEXT : STATE_CLOSED;
		return REQUEST_END;
	case STATE_CLOSED:
		in->n = 0; /* nothing is read behind the last request */
		return REQUEST_MORE;
	case STATE_REFUSED:
		return REQUEST_REFUSED;
	default:
		return REQUEST_MORE;
	}
}
