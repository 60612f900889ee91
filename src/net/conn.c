/*
 * conn.c - a connection's life: open, turns, deadlines, close.
 */
#include "net/conn.h"

#include "base/clock.h"
#include "net/front.h"
#include "net/protocol.h"

#include <assert.h>
#include <sys/socket.h>

enum {
	MOVED = 4 * 1024 /* most bytes that conn_swap_read copies */
};

struct exchange *
conn_add(struct conn *c)
{
	struct exchange *const x = exchange_new(c);

	if (!x)
		return NULL;
	list_append(&c->exchanges, &x->node);
	c->n_exchanges++;
	return x;
}

/* --- close -------------------------------------------------------------------- */

static void
on_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	if (c->protocol->ops->conn_close)
		c->protocol->ops->conn_close(c);
	buf_release(&c->in);
	tls_free(c->tls);
	front_forget(c->front, c);
}

/* EXCHANGE-3, EXCHANGE-4: a running exchange returns by its answer. */
static void
drop(const struct conn *c, struct exchange *x)
{
	list_remove(&x->node);
	x->drained = x->asks && c->eof && !conn_was_reset(c);
	if (x->state != EXCHANGE_RUNNING)
		exchange_end(x, false);
	else if (x->gone)
		x->gone(x);
}

/* NETFRONT-1 first: callbacks may answer, and must not find the connection. */
void
conn_close(struct conn *c)
{
	if (c->generation == 0)
		return;
	if (c->tls)
		conn_tls_bye(c);
	front_count(c->front, SERVER_HANG_UPS, c->n_exchanges > 0);
	c->generation = 0;
	c->reading = NULL;
	list_remove(&c->node);
	list_remove(&c->dirty);
	if (c->writing > uv_stream_get_write_queue_size(&c->uv.stream))
		conn_touch(c);
	while (!list_is_empty(&c->exchanges))
		drop(c, CONTAINER(c->exchanges.next, struct exchange, node));
	uv_close(&c->uv.handle, on_closed);
}

/* --- read --------------------------------------------------------------------- */

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct conn *c = handle->data;

	(void)suggested;
	*buf = uv_buf_init(c->front->read, FRONT_READ);
	if (c->in.n > 0 && c->in.n < CONN_HELD)
		buf->len = CONN_HELD - c->in.n;
}

static bool
wants_client(const struct conn *c)
{
	LIST_EACH(n, &c->exchanges)
		if (CONTAINER(n, struct exchange, node)->gone)
			return true;
	return false;
}

void
conn_take(struct conn *c, const char *p, size_t n)
{
	front_count(c->front, SERVER_RECEIVED, n);
	if (c->lingering || c->last) {
		c->unread = true;
		return;
	}
	if (c->in.n > 0)
		buf_put(&c->in, p, n);
	else
		c->rest = (struct slice){ p, n };
	if (c->in.failed)
		conn_close(c);
	else
		conn_turn(c);
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct conn *c = stream->data;

	if (n > 0 && c->tls) {
		conn_tls_read(c, buf->base, (size_t)n);
	} else if (n > 0) {
		conn_take(c, buf->base, (size_t)n);
	} else if (n == UV_EOF && !c->tls) {
		c->eof = true;
		c->reads = false;
		conn_turn(c);
	} else if (n < 0) {
		conn_close(c); /* TLS-4: under TLS the end of the stream is a cut */
	}
}

static int
read_on(struct conn *c, bool on)
{
	if (on == c->reads)
		return 0;
	c->reads = on;
	if (!on)
		return uv_read_stop(&c->uv.stream);
	return uv_read_start(&c->uv.stream, on_alloc, on_read);
}

bool
conn_may_swap(const struct conn *c, struct slice bytes)
{
	const char *const read = c->front->read, *const end = bytes.p + bytes.n;

	return bytes.p >= read && end <= read + FRONT_READ && c->rest.p + c->rest.n <= end + MOVED;
}

char *
conn_swap_read(struct conn *c, char *instead)
{
	char *const read = c->front->read;

	assert(c->rest.n <= MOVED);
	if (c->rest.n > 0)
		memcpy(instead, c->rest.p, c->rest.n);
	c->rest.p = instead;
	c->front->read = instead;
	return read;
}

/* --- turns -------------------------------------------------------------------- */

/* What could not be parsed waits in `in`, at its front; an empty one costs nothing. */
static void
keep_rest(struct conn *c)
{
	const bool ours = c->in.n > 0;

	if (c->rest.n == 0 || c->last) {
		c->unread |= c->rest.n > 0;
		if (c->in.p)
			buf_release(&c->in);
	} else if (ours) {
		memmove(c->in.p, c->rest.p, c->rest.n);
		c->in.n = c->rest.n;
	} else {
		buf_put(&c->in, c->rest.p, c->rest.n);
	}
	c->rest = (struct slice){ NULL, 0 };
}

/* A request that was cut off by the end of the stream is not answered. */
static void
drop_cut_off(struct conn *c)
{
	struct exchange *x = c->reading;

	c->last = true;
	if (x && x->taking) {
		conn_close(c); /* its handler has it */
		return;
	}
	if (!x)
		return;
	c->reading = NULL;
	c->n_exchanges--;
	drop(c, x);
}

/* Everything is answered and sent. A close with unread bytes would be a reset, which
 * may overtake the answer: so they are read and thrown away for a while. */
static void
finish(struct conn *c)
{
	uv_os_fd_t fd;

	if (c->tls)
		conn_tls_bye(c);
	if (!c->unread || c->eof || uv_fileno(&c->uv.handle, &fd) ||
	    shutdown(fd, SHUT_WR)) {
		conn_close(c);
		return;
	}
	c->lingering = true;
}

static enum conn_wait
waits_for(const struct conn *c)
{
	if (c->lingering)
		return WAIT_LINGER;
	if (c->tls && conn_tls_shaking(c))
		return WAIT_SHAKE;
	if (c->writing > 0)
		return WAIT_SEND;
	if (conn_is_held(c))
		return WAIT_START;
	if (c->reading && (c->reading->ahead.n > 0 || c->reading->taking))
		return WAIT_HANDLER;
	if (c->reading)
		return WAIT_BODY;
	if (c->begun && c->in.n == 0 && !c->last)
		return WAIT_HEAD;
	return c->n_exchanges > 0 ? WAIT_HANDLER : WAIT_IDLE;
}

static slu_time
time_for(const struct conn *c, enum conn_wait wait)
{
	const struct server_conf *conf = &c->front->shared->conf;
	const slu_time times[] = {
		[WAIT_HANDLER] = SLU_NEVER,
		[WAIT_IDLE] = c->reserved               ? conf->header_timeout
			      : c->protocol->ops->stays ? SLU_NEVER
							: conf->idle_timeout,
		[WAIT_SHAKE] = conf->header_timeout,
		[WAIT_START] = conf->start_wait,
		[WAIT_HEAD] = conf->header_timeout,
		[WAIT_BODY] = conf->rate_period,
		[WAIT_SEND] = conf->rate_period,
		[WAIT_LINGER] = conf->linger,
	};

	return times[wait];
}

/* A wait for the client keeps its deadline from turn to turn; other waits begin anew. */
static void
set_deadline(struct conn *c)
{
	const enum conn_wait wait = waits_for(c);

	if (wait == c->wait && wait != WAIT_IDLE && wait != WAIT_HANDLER)
		return;
	c->wait = wait;
	c->moved = 0;
	c->deadline = time_add(loop_now(c->front->loop), time_for(c, wait));
	front_watch(c->front, c->deadline);
}

static void
rest(struct conn *c)
{
	const bool ended = c->last || c->front->draining ||
			   (c->eof && c->in.n == 0);

	if (c->eof && (wants_client(c) || conn_is_held(c))) {
		conn_close(c); /* EXCHANGE-5, SERVER-10 */
		return;
	}
	if (conn_is_held(c))
		conn_charge_held(c);
	if (c->eof && c->in.n == 0 && (c->reading ? !c->reading->arrived : c->begun))
		drop_cut_off(c);
	if (ended && c->n_exchanges == 0 && (!c->begun || c->last))
		finish(c);
	if (c->generation == 0)
		return;
	if (read_on(c, !c->eof && c->in.n < CONN_HELD))
		conn_close(c);
	else
		set_deadline(c);
}

static bool
may_parse(const struct conn *c)
{
	const struct protocol *const p = c->protocol->ops;

	return p->may_parse ? p->may_parse(c) : conn_may_begin(c);
}

void
conn_turn(struct conn *c)
{
	assert(!c->in_turn);
	c->in_turn = true;
	list_remove(&c->dirty);
	if (c->in.n > 0)
		c->rest = buf_slice(&c->in);
	do {
		c->protocol->ops->parse(c);
		if (c->broken)
			conn_close(c);
		conn_flush(c);
	} while (c->rest.n > 0 && may_parse(c));
	c->in_turn = false;
	if (c->generation == 0)
		return;
	keep_rest(c);
	if (c->in.failed)
		conn_close(c);
	else
		rest(c);
}

/* --- answers ------------------------------------------------------------------ */

/* Answered before it was read whole: the rest is not read. */
static bool
cut_reading(struct conn *c, const struct exchange *x)
{
	if (x != c->reading)
		return false;
	c->reading = NULL;
	c->unread |= !x->arrived;
	return !x->arrived;
}

void
conn_answer(struct conn *c, struct exchange *x)
{
	struct front *f = c->front;
	const bool is_last = x->node.next == &c->exchanges;
	const bool ends = cut_reading(c, x) || ((f->draining || f->hands_over) && is_last);

	c->protocol->ops->format(c, x, ends);
	c->last |= ends;
	x->state = EXCHANGE_READY;
	if (x->holds)
		c->n_held--;
	c->output += exchange_unsent(x);
	exchange_charge(x);
	c->broken |= x->head.failed || x->out.failed;
	if (!c->in_turn)
		front_dirty(f, c);
}

void
conn_piece(struct conn *c, struct exchange *x)
{
	x->state = EXCHANGE_READY;
	if (x->broke)
		buf_clear(&x->out);
	else if (c->protocol->ops->format_piece)
		c->protocol->ops->format_piece(x);
	else
		x->has_body = true;
	c->output += exchange_unsent(x);
	exchange_charge(x);
	c->broken |= x->broke || x->head.failed || x->out.failed;
	if (!c->in_turn)
		front_dirty(c->front, c);
}

/* After it was refused, outside of a turn. */
static void
turn_again(struct conn *c)
{
	if (c->generation != 0)
		conn_turn(c);
}

/* --- deadlines ---------------------------------------------------------------- */

static bool
moved_enough(struct conn *c)
{
	const struct server_conf *conf = &c->front->shared->conf;
	const uint64_t want = conf->min_rate * (uint64_t)(conf->rate_period / SLU_MS) / 1000;

	if (c->moved < want || c->moved == 0)
		return false;
	c->moved = 0;
	c->deadline = time_add(loop_now(c->front->loop), conf->rate_period);
	return true;
}

void
conn_expire(struct conn *c)
{
	const enum conn_wait wait = c->wait;

	if ((wait == WAIT_BODY || wait == WAIT_SEND) && moved_enough(c))
		return;
	if (wait == WAIT_START) {
		conn_refuse_held(c, CONN_STARTING);
		turn_again(c);
		return;
	}
	if (wait != WAIT_IDLE && wait != WAIT_LINGER)
		front_count(c->front, SERVER_TIMEOUTS, 1);
	if (wait != WAIT_HEAD && wait != WAIT_BODY) {
		conn_close(c);
		return;
	}
	c->protocol->ops->refuse(c, wait == WAIT_HEAD ? CONN_SLOW_HEAD : CONN_SLOW_BODY);
	turn_again(c);
}

/* --- open --------------------------------------------------------------------- */

int
conn_open(struct conn *c)
{
	buf_init(&c->in, FRONT_READ + CONN_HELD + (c->tls ? 2 * TLS_RECORD : 0));
	if (c->protocol->ops->conn_open && c->protocol->ops->conn_open(c))
		return SLU_ENOMEM;
	list_append(&c->front->conns, &c->node);
	rest(c);
	return 0;
}
