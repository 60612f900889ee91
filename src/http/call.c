/*
 * call.c - the pool of calls, and their answers.
 */
#include "http/call.h"

#include "base/log.h"
#include "base/mem.h"
#include "http/chars.h"
#include "http/front.h"

#include <assert.h>
#include <stdio.h>

enum {
	SPARE_CALLS = 256,     /* more are given back to the system */
	SPARE_BYTES = 8 << 20, /* so are their buffers, when they are more than this */
	KEPT_BUFFER = 256 << 10,
	COPIED_BODY = 512, /* a shorter one goes behind the head, into one piece */
	ERROR_HEAD = 512,  /* what a call has from the start, so that it can always be */
	ERROR_BODY = 767,  /* refused: room for a head, and for an error behind it */
	FIELDS_MAX = 16 * 1024,
	SMALL_ANSWER = 16 * 1024 /* not counted: S8 */
};

/* --- pool -------------------------------------------------------------------- */

static void
trim(struct buf *b)
{
	if (b->size > KEPT_BUFFER)
		buf_release(b);
	buf_clear(b);
}

static size_t
buffers_of(const struct call *c)
{
	return c->in.size + c->piece.size + c->out.size + c->head.size + c->fields.size;
}

static void
release_buffers(struct call *c)
{
	buf_release(&c->in);
	buf_release(&c->piece);
	buf_release(&c->out);
	buf_release(&c->head);
	buf_release(&c->fields);
}

static struct call *
call_alloc(const struct front *f)
{
	struct call *c = mem_zalloc(sizeof *c);

	if (!c)
		return NULL;
	buf_init(&c->in, SIZE_MAX);
	buf_init(&c->piece, SIZE_MAX);
	buf_init(&c->out, f->shared->conf.max_output);
	buf_init(&c->head, f->shared->conf.max_output);
	buf_init(&c->fields, FIELDS_MAX);
	return c;
}

static void
call_free(struct call *c)
{
	release_buffers(c);
	mem_free(c);
}

struct call *
call_new(struct front *f)
{
	struct call *c = f->spare;

	if (c) {
		f->spare = c->next_spare;
		f->n_spare--;
		f->spare_bytes -= buffers_of(c);
	} else {
		c = call_alloc(f);
	}
	if (!c)
		return NULL;
	if (!buf_reserve(&c->out, ERROR_BODY) || !buf_reserve(&c->head, ERROR_HEAD + COPIED_BODY)) {
		call_free(c);
		return NULL;
	}
	c->front = f;
	c->began = loop_now(f->loop);
	list_init(&c->node);
	f->n_calls++;
	front_count(f, SERVER_CALLS, 1);
	return c;
}

void
call_free_spare(struct front *f)
{
	while (f->spare) {
		struct call *c = f->spare;

		f->spare = c->next_spare;
		call_free(c);
	}
	f->n_spare = 0;
}

static void
call_recycle(struct front *f, struct call *c)
{
	trim(&c->in);
	trim(&c->piece);
	trim(&c->out);
	trim(&c->head);
	trim(&c->fields);
	if (f->spare_bytes + buffers_of(c) > SPARE_BYTES)
		release_buffers(c);
	memset(c, 0, offsetof(struct call, out)); /* buffers stand behind */
	c->out.max = f->shared->conf.max_output;  /* it may have been taken */
	c->next_spare = f->spare;
	f->spare = c;
	f->n_spare++;
	f->spare_bytes += buffers_of(c);
}

/* The route, not the path: that may have anything in it. */
static void
log_call(const struct call *c, bool sent)
{
	log_debug(c->front->shared->conf.log, "request",
		  F_STR("method", c->route ? c->route->method : NULL),
		  F_STR("route", c->route ? c->route->path : NULL),
		  F_U64("status", c->status), F_U64("bytes_in", c->body.n),
		  F_TIME("seconds", loop_now(c->front->loop) - c->began),
		  F_BOOL("sent", sent), F_CALL(c));
}

void
call_end(struct call *c, bool sent)
{
	struct front *f = c->front;

	assert(list_is_empty(&c->node));
	log_call(c, sent);
	if (c->ended)
		c->ended(c, sent);
	if (c->who)
		f->shared->conf.dismiss(c->who);
	f->n_calls--;
	f->bodies -= c->charged + c->held;
	front_count(f, SERVER_BODIES, -(uint64_t)c->charged);
	front_count(f, SERVER_ANSWERS, -(uint64_t)c->held);
	front_count(f, SERVER_CALLS, (uint64_t)-1);
	front_count(f, SERVER_UNSENT, !sent);
	if (f->n_spare < SPARE_CALLS)
		call_recycle(f, c);
	else
		call_free(c);
	front_check_end(f);
}

/* --- what a handler asks ------------------------------------------------------ */

static struct conn *
conn_of(const struct call *c)
{
	return front_conn(c->front, c->slot, c->generation);
}

struct slice
call_field(const struct call *c, const char *name)
{
	const struct conn *conn = conn_of(c);

	assert(loop_is_here(c->front->loop) && conn); /* C6 */
	return request_header(&conn->request, name);
}

const struct tls_peer *
call_peer(const struct call *c)
{
	const struct conn *conn = conn_of(c);

	assert(loop_is_here(c->front->loop) && conn);
	return conn->tls ? tls_peer(conn->tls) : NULL;
}

bool
call_is_tls(const struct call *c)
{
	const struct conn *conn = conn_of(c);

	assert(loop_is_here(c->front->loop) && conn);
	return conn->tls;
}

bool
call_is_named(const struct call *c, struct slice host)
{
	const struct conn *conn = conn_of(c);

	assert(loop_is_here(c->front->loop) && conn);
	return conn->tls && tls_is_named(conn->tls, host);
}

void
call_address(const struct call *c, char out[static CALL_ADDRESS])
{
	const struct conn *conn = conn_of(c);
	struct sockaddr_storage sa;
	int n = sizeof sa;

	out[0] = '\0';
	if (conn && conn->uv.handle.type != UV_TCP)
		(void)snprintf(out, CALL_ADDRESS, "unix");
	else if (conn && !uv_tcp_getpeername(&conn->uv.tcp, (struct sockaddr *)&sa, &n))
		(void)uv_ip_name((struct sockaddr *)&sa, out, CALL_ADDRESS); /* or it stays empty */
}

bool
call_is_owner(const struct call *c)
{
	const struct conn *conn = conn_of(c);
	struct ucred peer;
	socklen_t n = sizeof peer;
	uv_os_fd_t fd;

	if (!conn || conn->uv.handle.type == UV_TCP || uv_fileno(&conn->uv.handle, &fd) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

struct loop *
call_loop(const struct call *c)
{
	return c->front->loop;
}

unsigned
call_thread(const struct call *c)
{
	return c->front->number;
}

void *
call_arg(const struct call *c)
{
	return c->front->shared->conf.arg;
}

void
call_hold(struct call *c)
{
	struct conn *conn = conn_of(c);

	assert(loop_is_here(c->front->loop) && !c->answered);
	if (!conn || c->holds)
		return;
	c->holds = true;
	conn->n_held++;
}

int
call_add(struct call *c, const char *name, struct slice value)
{
	const size_t n = c->fields.n;

	if (!http_all(value, CHAR_VALUE))
		return SLU_EINVAL;
	buf_put(&c->fields, name, strlen(name) + 1);
	buf_put(&c->fields, value.p, value.n);
	buf_putc(&c->fields, '\0');
	if (!c->fields.failed)
		return 0;
	c->fields.n = n; /* whole or not at all */
	c->fields.failed = false;
	return SLU_ENOMEM;
}

int
call_set(struct call *c, const char *name, struct slice value)
{
	const char *const old = call_added(c, name);

	if (old) {
		const char *const begin = old - strlen(name) - 1;
		const char *const end = old + strlen(old) + 1;
		const char *const last = c->fields.p + c->fields.n;

		memmove(c->fields.p + (begin - c->fields.p), end, (size_t)(last - end));
		c->fields.n -= (size_t)(end - begin);
	}
	return call_add(c, name, value);
}

const char *
call_added(const struct call *c, const char *name)
{
	const char *p = c->fields.p;
	const char *const end = p ? p + c->fields.n : NULL;

	while (p < end) {
		const char *const value = p + strlen(p) + 1;

		if (strcmp(p, name) == 0)
			return value;
		p = value + strlen(value) + 1;
	}
	return NULL;
}

/* --- answers ------------------------------------------------------------------ */

/* Its body found no memory: a short one may. */
static void
explain_lack(struct call *c)
{
	const struct server_conf *conf = &c->front->shared->conf;
	const struct slice none = { 0 };

	buf_clear(&c->out);
	if (!conf->describe)
		return;
	c->type = conf->describe_type;
	conf->describe(&c->out, c->status, "out_of_memory", none, none, conf->arg);
}

static void
deliver(struct call *c)
{
	struct conn *conn = conn_of(c);

	if (conn && c->out.failed)
		explain_lack(c);
	if (conn)
		conn_answer(conn, c);
	else
		call_end(c, false);
}

static void
deliver_work(struct loop_work *w)
{
	deliver(CONTAINER(w, struct call, work));
}

static void
give(struct call *c, unsigned status, const char *type)
{
	assert(!c->answered); /* C2 */
	c->answered = true;
	c->status = status;
	c->type = type;
	if (c->out.failed) {
		c->status = 503;
		c->type = NULL;
		c->streams = false;
	}
	if (loop_is_here(c->front->loop)) {
		deliver(c);
		return;
	}
	c->work.run = deliver_work;
	loop_post(c->front->loop, &c->work);
}

void
call_begin(struct call *c, unsigned status, const char *type)
{
	assert(c->more && !c->streams);
	c->streams = true;
	give(c, status, type);
}

static void
deliver_piece(struct call *c)
{
	struct conn *conn = conn_of(c);

	if (conn)
		conn_piece(conn, c);
	else
		call_end(c, false);
}

static void
deliver_piece_work(struct loop_work *w)
{
	deliver_piece(CONTAINER(w, struct call, work));
}

static void
give_piece(struct call *c)
{
	assert(c->streams && !c->answered);
	c->answered = true;
	if (loop_is_here(c->front->loop)) {
		deliver_piece(c);
		return;
	}
	c->work.run = deliver_piece_work;
	loop_post(c->front->loop, &c->work);
}

void
call_piece(struct call *c, bool last)
{
	assert(c->out.n > 0 || last || c->out.failed);
	c->whole = last;
	c->broke = c->out.failed;
	give_piece(c);
}

void
call_break(struct call *c)
{
	c->broke = true;
	give_piece(c);
}

/* The client may have gone since it was asked for. */
static void
want_more(struct loop_work *w)
{
	struct call *c = CONTAINER(w, struct call, work);

	c->asks = false;
	if (conn_of(c))
		c->more(c);
	else
		call_end(c, false);
}

/* Not at once: other connections have their turn first. */
void
call_want_more(struct call *c)
{
	buf_clear(&c->head);
	buf_clear(&c->out);
	c->written = 0;
	c->has_body = false;
	c->answered = false;
	c->state = CALL_RUNNING;
	c->asks = true;
	c->work.run = want_more;
	loop_post(c->front->loop, &c->work);
}

static void
taken(struct call *c)
{
	struct conn *conn = conn_of(c);

	if (conn)
		conn_taken(conn, c);
	else
		call_end(c, false);
}

static void
taken_work(struct loop_work *w)
{
	taken(CONTAINER(w, struct call, work));
}

void
call_next(struct call *c)
{
	assert(c->taking && !c->answered);
	if (loop_is_here(c->front->loop)) {
		taken(c);
		return;
	}
	c->work.run = taken_work;
	loop_post(c->front->loop, &c->work);
}

void
call_answer(struct call *c, unsigned status, const char *type, struct buf *body)
{
	if (!body) {
		buf_clear(&c->out);
	} else if (body != &c->out) {
		buf_release(&c->out);
		c->out = *body;
		buf_init(body, body->max);
	}
	give(c, status, type);
}

void
call_answer_text(struct call *c, unsigned status, const char *type, struct slice body)
{
	buf_clear(&c->out);
	buf_put(&c->out, body.p, body.n);
	give(c, status, type);
}

/* S8: the memory of the answer, as it is now. */
void
call_charge(struct call *c)
{
	const bool small = c->out.n + c->head.n < SMALL_ANSWER;
	const size_t held = small ? 0 : c->out.size + c->head.size;

	c->front->bodies += held - c->held;
	front_count(c->front, SERVER_ANSWERS, held - c->held);
	c->held = held;
}

typedef int put_field(struct response *w, const char *name, struct slice value);

/* Those that no one has put yet. */
static void
put_fields(struct call *c, put_field *put)
{
	const char *p = c->fields.p + c->headed;
	const char *end = c->fields.p + c->fields.n;

	c->headed = c->fields.n;
	while (p < end) {
		const struct slice name = slice_of(p);
		const struct slice value = slice_of(name.p + name.n + 1);

		/* A name that is no token, or the writer's own, is left out. */
		(void)put(&c->response, name.p, value);
		p = value.p + value.n + 1;
	}
}

/* The size of a chunk goes before it, its end and that of the body behind. */
void
call_format_piece(struct call *c)
{
	struct response *w = &c->response;

	if (c->out.n > 0) {
		c->has_body = response_body_begin(w, c->out.n);
		w->out = &c->out;
		response_body_end(w);
	}
	if (c->whole) {
		w->out = &c->out;
		if (c->fields.n > c->headed)
			put_fields(c, response_trailer);
		response_end(w);
	}
	c->has_body |= c->whole && !w->bodyless;
	w->out = &c->head;
}

void
call_format(struct call *c, const char *date)
{
	struct response *w = &c->response;

	response_status(w, c->status, date);
	if (c->type)
		(void)response_header(w, "Content-Type", slice_of(c->type)); /* ours */
	if (c->fields.n > 0)
		put_fields(c, response_header);
	if (c->streams) {
		response_chunked(w);
		c->whole = w->bodyless;
		call_format_piece(c);
		return;
	}
	response_length(w, c->out.n);
	if (c->out.n > 0) {
		c->has_body = response_body_begin(w, c->out.n);
		response_body_end(w);
	}
	response_end(w);
	if (c->has_body && c->out.n <= COPIED_BODY) {
		buf_put(&c->head, c->out.p, c->out.n);
		c->has_body = false;
	}
}

size_t
call_unsent(const struct call *c)
{
	return c->head.n + (c->has_body ? c->out.n : 0) - c->written;
}
