/*
 * conn_write.c - answers into the kernel, as many as are ready in one write.
 *
 * First libuv is asked to write what it can at once. When the kernel has no room, the
 * rest of the first answer, and no more, is left to libuv; the others follow when that
 * is done. So for every answer it is known whether the kernel has all of it. Under TLS
 * conn_tls.c stands between, and knows the same.
 */
#include "http/conn.h"

#include "http/front.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum {
	PIECES = 64,    /* a write has at most */
	CALL_PIECES = 3 /* of one call: interim, head, body */
};

struct gathered {
	uv_buf_t bufs[PIECES];
	unsigned n;
	size_t bytes;
	bool fragile; /* a call that ends with these bytes wants its client to be there */
};

static struct call *
first_call(struct conn *c)
{
	return list_is_empty(&c->calls) ? NULL : CONTAINER(c->calls.next, struct call, node);
}

static void
add_piece(struct gathered *g, const char *p, size_t n)
{
	if (n == 0)
		return;
	g->bufs[g->n++] = uv_buf_init((char *)p, (unsigned)n);
	g->bytes += n;
}

/* What is unsent of a call, as far as it is known. */
static void
add_call_pieces(struct gathered *g, const struct call *call)
{
	size_t skip = call->written;

	add_piece(g, call->interim.p, call->interim.n);
	if (call->state != CALL_READY)
		return;
	if (skip < call->head.n)
		add_piece(g, call->head.p + skip, call->head.n - skip);
	skip = skip > call->head.n ? skip - call->head.n : 0;
	if (call->has_body)
		add_piece(g, call->out.p + skip, call->out.n - skip);
	g->fragile |= call->gone != NULL;
}

static void
gather(struct conn *c, struct gathered *g)
{
	g->n = 0;
	g->bytes = 0;
	g->fragile = false;
	LIST_EACH(n, &c->calls) {
		const struct call *call = CONTAINER(n, struct call, node);

		if (g->n + CALL_PIECES > PIECES)
			return;
		add_call_pieces(g, call);
		if (call->state != CALL_READY || (call->streams && !call->whole))
			return;
	}
}

/* --- is the client still there? (C4, C5) -------------------------------------- */

/* Before the write: has it closed its side? */
static bool
has_hung_up(const struct conn *c)
{
	uv_os_fd_t fd;
	char byte;
	ssize_t n;

	if (c->eof || uv_fileno(&c->uv.handle, &fd))
		return true;
	if (c->tls) {
		/* Its goodbye stands unread before the end. */
		struct pollfd p = { .fd = fd, .events = POLLRDHUP };

		return poll(&p, 1, 0) > 0;
	}
	n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* After it: did the bytes meet a closed socket? One that closed after it had read
 * them sends no reset. */
bool
conn_was_reset(const struct conn *c)
{
	int error = 0;
	socklen_t len = sizeof error;
	uv_os_fd_t fd;

	return uv_fileno(&c->uv.handle, &fd) ||
	       getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) || error != 0;
}

/* --- writing ------------------------------------------------------------------ */

static size_t
take(size_t *n, size_t most)
{
	const size_t k = *n < most ? *n : most;

	*n -= k;
	return k;
}

static void
end_first(struct conn *c, struct call *call)
{
	list_remove(&call->node);
	c->n_calls--;
	call_end(call, true);
}

void
conn_account(struct conn *c, size_t n)
{
	struct call *call = first_call(c);

	c->moved += n;
	front_count(c->front, SERVER_SENT, n);
	for (; call; call = first_call(c)) {
		const size_t k = take(&n, call->interim.n);

		if (k)
			call->interim = (struct slice){ call->interim.p + k, call->interim.n - k };
		if (call->state != CALL_READY)
			return;
		const size_t own = take(&n, call_unsent(call));

		call->written += own;
		c->output -= own;
		if (call->interim.n > 0 || call_unsent(call) > 0)
			return;
		if (call->streams && !call->whole) {
			call_want_more(call);
			return;
		}
		end_first(c, call);
	}
}

static void
on_written(uv_write_t *req, int status)
{
	struct conn *c = req->data;
	const size_t n = c->writing;

	c->writing = 0;
	if (c->generation == 0)
		return; /* its calls have ended already */
	if (status < 0 || (first_call(c)->gone && conn_was_reset(c))) {
		conn_close(c);
		return;
	}
	conn_account(c, n);
	conn_turn(c);
}

static void
leave_to_libuv(struct conn *c)
{
	struct gathered g = { .n = 0 };

	add_call_pieces(&g, first_call(c));
	assert(g.n > 0);
	c->write.data = c;
	c->writing = g.bytes;
	if (uv_write(&c->write, &c->uv.stream, g.bufs, g.n, on_written)) {
		c->writing = 0;
		conn_close(c);
	}
}

/* The last piece of an answer may have no bytes. */
static bool
end_empty(struct conn *c)
{
	const struct call *call = first_call(c);

	if (!call || call->state != CALL_READY)
		return false;
	conn_account(c, 0);
	return !list_is_empty(&c->calls);
}

/* False: there is no more, or none that can be written now. */
static bool
write_some(struct conn *c)
{
	struct gathered g;
	ssize_t n;

	gather(c, &g);
	if (g.n == 0)
		return end_empty(c);
	if (g.fragile && has_hung_up(c)) {
		conn_close(c);
		return false;
	}
	n = c->tls ? conn_tls_write(c, g.bufs, g.n) : uv_try_write(&c->uv.stream, g.bufs, g.n);
	if (n == UV_EAGAIN)
		n = 0;
	if (n < 0 || (g.fragile && conn_was_reset(c))) {
		conn_close(c);
		return false;
	}
	conn_account(c, (size_t)n);
	if ((size_t)n < g.bytes && !c->tls)
		leave_to_libuv(c); /* the first call is not whole */
	return ((size_t)n == g.bytes || c->tls) && !list_is_empty(&c->calls);
}

void
conn_flush(struct conn *c)
{
	while (c->generation != 0 && c->writing == 0)
		if (!write_some(c))
			break;
	if (c->tls && c->generation != 0 && c->writing == 0)
		conn_tls_flush(c);
	if (c->generation != 0 && c->output > c->front->shared->conf.max_output) {
		front_count(c->front, SERVER_SLOW_READERS, 1);
		conn_close(c);
	}
}
