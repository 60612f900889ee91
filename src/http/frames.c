#include "http/frames.h"

#include "base/mem.h"

#include <assert.h>

enum {
	BODY_AHEAD = 64 * 1024,  /* set aside at once for a body */
	KEPT_ANSWER = 16 * 1024, /* a larger buffer of an answer is freed when its bytes are copied */
	PIECE = 256 * 1024,      /* no answer is added to a piece of so many bytes */
	KEPT_PIECE = 2 * PIECE   /* a larger buffer of pieces is freed when it is empty */
};

struct frames {
	struct exchange *x;  /* the upgrade; NULL: the connection has ended */
	struct list running; /* parts that are read, or that their handlers own */
	struct list done;    /* answered: their bytes are in no piece yet */
	struct list sending; /* their answers are in the piece under way */
	unsigned n_running;
	size_t waiting; /* the cost of done: FRAMES-3 */
	struct buf out; /* the next piece */
	char line[FRAME_LINE];
	size_t n_line;
	uint32_t left;  /* bytes of a body that have not come; without conn.reading they are thrown away */
	bool idle;      /* the next piece may be given */
	bool last;      /* the next piece is the last one */
	bool lacks;     /* no memory for the body that is being read */
	bool malformed; /* the last frame tells of a line: FRAMES-5 */
};

static struct frames *
frames_of(const struct conn *c)
{
	return CONTAINER(c, const struct http_conn, c)->frames;
}

/* The connection, or NULL if it has ended. */
static struct conn *
conn_of(const struct frames *f)
{
	return f->x ? exchange_conn(f->x) : NULL;
}

/* Its turn writes what is ready, and parses what may be parsed now. */
static void
poke(const struct frames *f)
{
	struct conn *const c = conn_of(f);

	if (c && !c->in_turn)
		front_dirty(c->front, c);
}

static void
release(struct frames *f)
{
	if (f->x || f->n_running > 0)
		return;
	buf_release(&f->out);
	mem_free(f);
}

/* --- answers ------------------------------------------------------------------- */

/* Whether the piece that is there is the last one. */
static bool
is_whole(const struct exchange *x)
{
	return !x->streams || x->whole;
}

static void
end_parts(struct list *parts, bool sent)
{
	while (!list_is_empty(parts)) {
		struct exchange *const x = CONTAINER(parts->next, struct exchange, node);

		list_remove(&x->node);
		exchange_part_end(x, sent && is_whole(x));
	}
}

static void
start_part(struct frames *f, struct exchange *x)
{
	list_append(&f->running, &x->node);
	f->n_running++;
}

static void
stop_part(struct frames *f, struct exchange *x)
{
	list_remove(&x->node);
	f->n_running--;
}

/* The part cannot be answered whole: the client must see that. */
static void
cut(const struct frames *f)
{
	struct conn *const c = conn_of(f);

	if (c)
		c->broken = true;
}

/* What an answer holds until it is in a piece: also one without a body. */
static size_t
cost(const struct exchange *x)
{
	return x->out.n + x->charged + CONN_OUTPUT_LOW / FRAMES_MAX;
}

/* EXCHANGE-8: an answer, or a piece of one, is there. */
static void
answered(struct exchange *x)
{
	struct frames *const f = x->part_of;

	stop_part(f, x);
	if (!f->x || x->broke) {
		cut(f);
		exchange_part_end(x, false); /* FRAMES-4 */
		poke(f);
		release(f);
		return;
	}
	if (is_whole(x))
		(void)http_count(call_of(x));
	f->waiting += cost(x);
	exchange_charge(x);
	list_append(&f->done, &x->node);
	poke(f);
}

/* An empty buffer of pieces. */
static void
trim(struct buf *b)
{
	if (b->size > KEPT_PIECE)
		buf_release(b);
}

/* exchange.more of the upgrade: the kernel has the piece. */
static void
more(struct exchange *upgrade)
{
	struct frames *const f = upgrade->user;

	f->idle = true;
	trim(&upgrade->out);
	exchange_charge(upgrade);
	LIST_EACH_SAFE(n, &f->sending) {
		struct exchange *const x = CONTAINER(n, struct exchange, node);

		list_remove(&x->node);
		if (!is_whole(x)) {
			start_part(f, x);
			exchange_want_more(x);
		} else {
			exchange_part_end(x, true);
		}
	}
	poke(f);
}

/* Moves the bytes of a part to the next piece. */
static void
gather(struct frames *f, struct exchange *x)
{
	const struct call *const call = call_of(x);

	list_remove(&x->node);
	list_append(&f->sending, &x->node);
	f->waiting -= cost(x);
	frame_write(&f->out, call->number, call->status, x->out.n, !is_whole(x));
	buf_put(&f->out, x->out.p, x->out.n);
	if (x->out.size > KEPT_ANSWER)
		buf_release(&x->out);
	exchange_charge(x);
}

/* FRAMES-5 */
static void
tell_malformed(struct frames *f)
{
	const struct slice text = SLICE("{\"error\":\"invalid\",\"message\":\"invalid frame; expected NUMBER /PATH BYTES\"}\n");

	frame_write(&f->out, 0, 400, text.n, false);
	buf_put(&f->out, text.p, text.n);
}

/* Gives what is ready as one piece. */
static void
give(struct frames *f)
{
	struct exchange *const x = f->x;
	const struct buf out = x->out;
	bool last;

	if (!f->idle || (list_is_empty(&f->done) && !f->last))
		return;
	while (!list_is_empty(&f->done) && f->out.n < PIECE)
		gather(f, CONTAINER(f->done.next, struct exchange, node));
	last = f->last && list_is_empty(&f->done);
	if (last && f->malformed)
		tell_malformed(f);
	f->idle = false;
	x->out = f->out;
	f->out = out;
	buf_clear(&f->out);
	trim(&f->out);
	exchange_piece(x, last);
}

/* --- the end -------------------------------------------------------------------- */

/* FRAMES-4. A part that its handler owns is answered later; one that asks for its next piece learns it then. */
static void
close_parts(struct frames *f, bool sent)
{
	end_parts(&f->sending, sent);
	end_parts(&f->done, false);
	LIST_EACH_SAFE(n, &f->running) {
		struct exchange *const x = CONTAINER(n, struct exchange, node);

		if (x->state == EXCHANGE_READING) {
			stop_part(f, x);
			exchange_part_end(x, false);
		} else if (!x->asks && x->gone) {
			x->gone(x);
		}
	}
}

static void
gone(struct exchange *x)
{
	if (!x->asks)
		exchange_break(x); /* nobody reads it: `ended` */
}

static void
ended(struct exchange *x, bool sent)
{
	struct frames *const f = x->user;
	struct conn *const c = exchange_conn(x);

	if (c)
		http_conn(c)->frames = NULL;
	f->x = NULL;
	f->n_running++;                     /* keeps f while its parts end */
	close_parts(f, sent || x->drained); /* the client may have closed when it had the whole piece */
	f->n_running--;
	release(f);
}

void
frames_format(struct call *c)
{
	struct conn *const conn = exchange_conn(&c->x);

	c->x.has_body = c->x.out.n > 0;
	if (conn && c->x.whole)
		conn->last = true;
}

/* --- frames --------------------------------------------------------------------- */

static void
refuse(struct call *c, unsigned status, const char *reason)
{
	const struct http_shared *const s = http_shared(c->x.protocol);
	const struct http_refusal why = { status, reason, c->route, c->method, c->path };
	const char *type = "text/plain";

	buf_clear(&c->x.out);
	if (s->conf.describe)
		type = s->conf.describe(&c->x.out, &why, s->arg);
	call_answer(c, status, type, &c->x.out);
}

/* The frame is whole. */
static void
run(struct exchange *x, bool lacks)
{
	struct call *const c = call_of(x);

	x->arrived = true;
	x->state = EXCHANGE_RUNNING;
	c->body = buf_slice(&c->in);
	if (lacks)
		refuse(c, 503, "request_memory");
	else
		c->route->handle(c, exchange_arg(x));
}

/* FRAMES-2 */
static const struct route *
find(const struct conn *c, struct slice path)
{
	unsigned status;
	const struct route *const r = route_find(&http_shared(c->protocol)->routes, SLICE("POST"), path, &status);

	return r && r->framed ? r : NULL;
}

/* FRAMES-1: before its body, of `size` bytes, is read. Returns false if it was answered. */
static bool
admit(struct exchange *x, uint32_t size)
{
	struct call *const c = call_of(x);
	const struct http_shared *const s = http_shared(x->protocol);

	x->state = EXCHANGE_RUNNING;
	if (c->piece.failed)
		refuse(c, 503, "request_memory");
	else if (!c->route)
		refuse(c, 404, "no_such_path");
	else if (s->conf.authorize && !s->conf.authorize(c, s->arg))
		return false;
	else if (size > c->route->max_body)
		refuse(c, 413, "body_too_large");
	else
		x->state = EXCHANGE_READING;
	return x->state == EXCHANGE_READING;
}

static void
begin(struct conn *c, struct frames *f, const struct frame_line *frame)
{
	struct exchange *const x = exchange_part(f->x, answered, f);
	struct call *const call = x ? call_of(x) : NULL;

	if (!x) {
		conn_close(c);
		return;
	}
	start_part(f, x);
	buf_put(&call->piece, frame->path.p, frame->path.n);
	call->number = frame->number;
	call->method = SLICE("POST");
	call->path = buf_slice(&call->piece);
	call->route = call->piece.failed ? NULL : find(c, call->path);
	call->in.max = FRAME_BODY + 1;
	x->exempt = call->route && call->route->settles;
	f->left = frame->size;
	f->lacks = false;
	if (!admit(x, frame->size))
		return; /* its body is thrown away */
	if (frame->size == 0) {
		run(x, f->lacks);
		return;
	}
	(void)buf_reserve(&call->in, frame->size < BODY_AHEAD ? frame->size : BODY_AHEAD); /* otherwise buf_put fails */
	c->reading = x;
}

/* A body without memory is read, and thrown away. */
static void
keep(struct conn *c, struct frames *f, struct exchange *x, struct slice bytes)
{
	struct call *const call = call_of(x);

	if (f->lacks)
		return;
	buf_put(&call->in, bytes.p, bytes.n);
	conn_charge(c->front, x, bytes.n);
	f->lacks = call->in.failed || !conn_has_memory(c->front, x);
	if (!f->lacks)
		return;
	front_count(c->front, SERVER_NO_MEMORY, 1);
	buf_release(&call->in);
	conn_charge(c->front, x, -x->charged);
}

static void
take_body(struct conn *c, struct frames *f)
{
	struct exchange *const x = c->reading;
	const size_t n = c->rest.n < f->left ? c->rest.n : f->left;

	if (x)
		keep(c, f, x, (struct slice){ c->rest.p, n });
	c->moved += n;
	slice_skip(&c->rest, n);
	f->left -= (uint32_t)n;
	if (f->left > 0 || !x)
		return;
	c->reading = NULL;
	c->wait = WAIT_HANDLER; /* the next frame has its full time */
	run(x, f->lacks);
}

/* FRAMES-5 */
static void
refuse_line(struct conn *c, struct frames *f)
{
	front_count(c->front, SERVER_PARSE_ERRORS, 1);
	f->malformed = true;
	f->last = true;
	c->unread = true;
	c->rest.n = 0;
}

static void
take_line(struct conn *c, struct frames *f)
{
	const char *const end = memchr(c->rest.p, '\n', c->rest.n);
	const size_t n = end ? (size_t)(end - c->rest.p) + 1 : c->rest.n;
	struct frame_line frame;
	struct slice line;

	if (f->n_line + n > sizeof f->line) {
		refuse_line(c, f);
		return;
	}
	memcpy(f->line + f->n_line, c->rest.p, n);
	f->n_line += n;
	slice_skip(&c->rest, n);
	if (!end)
		return;
	line = (struct slice){ f->line, f->n_line - 1 };
	f->n_line = 0;
	if (frame_read(line, &frame))
		refuse_line(c, f);
	else
		begin(c, f, &frame); /* f may be gone */
}

static bool
stops(const struct conn *c)
{
	return c->front->draining || c->front->hands_over;
}

/* Everything is answered, and the kernel has it: an answer in pieces is in one of these lists until its end. */
static bool
is_quiet(const struct frames *f)
{
	return f->n_running == 0 && list_is_empty(&f->done) && list_is_empty(&f->sending);
}

bool
frames_may_parse(const struct conn *c)
{
	const struct frames *const f = frames_of(c);

	if (c->generation == 0 || c->last || c->broken || !f || f->last)
		return false;
	if (f->left > 0)
		return true;
	return f->n_running < FRAMES_MAX && f->waiting + c->output <= CONN_OUTPUT_LOW && !stops(c);
}

void
frames_parse(struct conn *c)
{
	struct frames *const f = frames_of(c);

	while (c->rest.n > 0 && frames_may_parse(c)) {
		if (f->left > 0)
			take_body(c, f);
		else
			take_line(c, f);
	}
	if (c->generation == 0 || !f->x)
		return;
	f->last |= stops(c) && is_quiet(f);
	give(f);
}

/* --- the upgrade ---------------------------------------------------------------- */

int
call_frames(struct call *c)
{
	struct conn *const conn = exchange_conn(&c->x);
	struct frames *const f = mem_zalloc(sizeof *f);

	assert(conn && !http_conn(conn)->frames);
	if (!f)
		return SLU_ENOMEM;
	f->x = &c->x;
	list_init(&f->running);
	list_init(&f->done);
	list_init(&f->sending);
	buf_init(&f->out, c->x.out.max);
	http_conn(conn)->frames = f;
	c->upgraded = true;
	c->x.user = f;
	c->x.gone = gone;
	c->x.ended = ended;
	c->x.more = more;
	call_begin(c, 101, NULL);
	return 0;
}
