/*
 * conn_write.c - writes answers to the socket, all ready ones in one write.
 *
 * First it writes as much as the kernel takes at once. If the kernel has no room, libuv gets the
 * rest of the first answer, and no more; the other answers follow when that is done. So it knows
 * for every answer whether the kernel has all of it. Under TLS conn_tls.c seals the bytes and
 * keeps the same account.
 */
#include "net/front.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum {
	PIECES = 64,        /* a write has at most */
	EXCHANGE_PIECES = 3 /* of one exchange: ahead, head, out */
};

struct gathered {
	uv_buf_t bufs[PIECES];
	unsigned n;
	size_t bytes;
	bool fragile; /* an exchange that ends with these bytes has `gone` */
};

static struct exchange *
first(struct conn *c)
{
	return list_is_empty(&c->exchanges) ? NULL : CONTAINER(c->exchanges.next, struct exchange, node);
}

static void
add_piece(struct gathered *g, const char *p, size_t n)
{
	if (n == 0)
		return;
	g->bufs[g->n++] = uv_buf_init((char *)p, (unsigned)n);
	g->bytes += n;
}

/* The unsent bytes of an exchange, as far as they are known. */
static void
add_exchange(struct gathered *g, const struct exchange *x)
{
	size_t skip = x->written;

	add_piece(g, x->ahead.p, x->ahead.n);
	if (x->state != EXCHANGE_READY)
		return;
	if (skip < x->head.n)
		add_piece(g, x->head.p + skip, x->head.n - skip);
	skip = skip > x->head.n ? skip - x->head.n : 0;
	if (x->has_body)
		add_piece(g, x->out.p + skip, x->out.n - skip);
	g->fragile |= x->gone != NULL;
}

static void
gather(struct conn *c, struct gathered *g)
{
	g->n = 0;
	g->bytes = 0;
	g->fragile = false;
	LIST_EACH(n, &c->exchanges) {
		const struct exchange *x = CONTAINER(n, struct exchange, node);

		if (g->n + EXCHANGE_PIECES > PIECES)
			return;
		add_exchange(g, x);
		if (x->state != EXCHANGE_READY || (x->streams && !x->whole))
			return;
	}
}

/* --- is the client still there? (EXCHANGE-4, EXCHANGE-5) --------------------------------- */

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
		/* Its close_notify is unread before the end. */
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

void
conn_touch(struct conn *c)
{
	struct exchange *const x = first(c);

	if (x)
		x->touched = true;
}

static void
end_first(struct conn *c, struct exchange *x)
{
	list_remove(&x->node);
	c->n_exchanges--;
	exchange_end(x, true);
}

void
conn_account(struct conn *c, size_t n)
{
	struct exchange *x = first(c);

	c->moved += n;
	front_count(c->front, SERVER_SENT, n);
	for (; x; x = first(c)) {
		const size_t k = take(&n, x->ahead.n);

		if (k)
			x->ahead = (struct slice){ x->ahead.p + k, x->ahead.n - k };
		if (x->state != EXCHANGE_READY)
			return;
		const size_t own = take(&n, exchange_unsent(x));

		x->written += own;
		c->output -= own;
		if (x->ahead.n > 0 || exchange_unsent(x) > 0)
			return;
		if (x->streams && !x->whole) {
			exchange_want_more(x);
			return;
		}
		end_first(c, x);
	}
}

static void
on_written(uv_write_t *req, int status)
{
	struct conn *c = req->data;
	const size_t n = c->writing;

	c->writing = 0;
	if (c->generation == 0)
		return; /* its exchanges have ended already */
	conn_touch(c);
	if (status < 0 || (first(c)->gone && conn_was_reset(c))) {
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

	add_exchange(&g, first(c));
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
	const struct exchange *x = first(c);

	if (!x || x->state != EXCHANGE_READY)
		return false;
	conn_account(c, 0);
	return !list_is_empty(&c->exchanges);
}

/* False: no more bytes, or none that can be written now. */
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
	if (n > 0)
		conn_touch(c);
	if (n < 0 || (g.fragile && conn_was_reset(c))) {
		conn_close(c);
		return false;
	}
	conn_account(c, (size_t)n);
	if ((size_t)n < g.bytes && !c->tls)
		leave_to_libuv(c); /* the first answer is not whole */
	return ((size_t)n == g.bytes || c->tls) && !list_is_empty(&c->exchanges);
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
