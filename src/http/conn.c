/*
 * conn.c - a connection's life: open, turns, deadlines, close.
 */
#include "http/conn.h"

#include "base/clock.h"
#include "http/front.h"

#include <assert.h>
#include <sys/socket.h>

/* --- close -------------------------------------------------------------------- */

static void
on_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	request_release(&c->request);
	buf_release(&c->in);
	tls_free(c->tls);
	front_forget(c->front, c);
}

/* C3, C4: one that runs comes back by its answer. */
static void
drop_call(const struct conn *c, struct call *call)
{
	list_remove(&call->node);
	call->drained = call->asks && c->eof && !conn_was_reset(c);
	if (call->state != CALL_RUNNING)
		call_end(call, false);
	else if (call->gone)
		call->gone(call);
}

/* F1 first: callbacks may answer, and then find nobody. */
void
conn_close(struct conn *c)
{
	if (c->generation == 0)
		return;
	if (c->tls)
		conn_tls_bye(c);
	front_count(c->front, SERVER_HANG_UPS, c->n_calls > 0);
	c->generation = 0;
	c->reading = NULL;
	list_remove(&c->node);
	list_remove(&c->dirty);
	while (!list_is_empty(&c->calls))
		drop_call(c, CONTAINER(c->calls.next, struct call, node));
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
has_fragile_call(const struct conn *c)
{
	LIST_EACH(n, &c->calls)
		if (CONTAINER(n, struct call, node)->gone)
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
		conn_close(c); /* T4: an end under TLS is a cut */
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
	struct call *call = c->reading;

	c->last = true;
	if (call && call->taking) {
		conn_close(c); /* its handler has it */
		return;
	}
	if (!call)
		return;
	c->reading = NULL;
	c->n_calls--;
	drop_call(c, call);
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
	if (c->reading && (c->reading->interim.n > 0 || c->reading->taking))
		return WAIT_CALL;
	if (c->reading)
		return WAIT_BODY;
	if (c->begun && c->in.n == 0 && !c->last)
		return WAIT_HEAD;
	return c->n_calls > 0 ? WAIT_CALL : WAIT_IDLE;
}

static slu_time
time_for(const struct conn *c, enum conn_wait wait)
{
	const struct server_conf *conf = &c->front->shared->conf;
	const slu_time times[] = {
		[WAIT_CALL] = SLU_NEVER,
		[WAIT_IDLE] = c->reserved ? conf->header_timeout : conf->idle_timeout,
		[WAIT_SHAKE] = conf->header_timeout,
		[WAIT_START] = conf->start_wait,
		[WAIT_HEAD] = conf->header_timeout,
		[WAIT_BODY] = conf->rate_period,
		[WAIT_SEND] = conf->rate_period,
		[WAIT_LINGER] = conf->linger,
	};

	return times[wait];
}

/* What a client is slow at goes on from turn to turn, until on_end; the rest begins
 * anew with each. */
static void
set_deadline(struct conn *c)
{
	const enum conn_wait wait = waits_for(c);

	if (wait == c->wait && wait != WAIT_IDLE && wait != WAIT_CALL)
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

	if (c->eof && (has_fragile_call(c) || conn_is_held(c))) {
		conn_close(c); /* C5, S10 */
		return;
	}
	if (conn_is_held(c))
		conn_charge_held(c);
	if (c->eof && c->in.n == 0 && (c->reading ? !c->reading->arrived : c->begun))
		drop_cut_off(c);
	if (ended && c->n_calls == 0 && (!c->begun || c->last))
		finish(c);
	if (c->generation == 0)
		return;
	if (read_on(c, !c->eof && c->in.n < CONN_HELD))
		conn_close(c);
	else
		set_deadline(c);
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
		conn_parse(c);
		if (c->broken)
			conn_close(c);
		conn_flush(c);
	} while (c->rest.n > 0 && conn_may_parse(c));
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

void
conn_answer(struct conn *c, struct call *call)
{
	struct front *f = c->front;
	const bool is_last = call->node.next == &c->calls;

	if (call->out.failed)
		buf_clear(&call->out); /* an explanation that found no memory */
	if (call == c->reading)
		conn_end_body(c, call);
	if ((f->draining || f->hands_over) && is_last)
		call->response.keep_alive = false;
	if (!call->response.keep_alive)
		c->last = true;
	call_format(call, front_date(f));
	if (!call->response.keep_alive)
		c->last = true; /* of a body that only the end of the connection ends */
	call->state = CALL_READY;
	if (call->holds)
		c->n_held--;
	c->output += call_unsent(call);
	call_charge(call);
	metrics_add_own(&f->answers, 0, front_series(f->shared, call->route, call->status), 1);
	c->broken |= call->head.failed;
	if (!c->in_turn)
		front_dirty(f, c);
}

void
conn_piece(struct conn *c, struct call *call)
{
	call->state = CALL_READY;
	if (call->broke)
		buf_clear(&call->out);
	else
		call_format_piece(call);
	c->output += call_unsent(call);
	call_charge(call);
	c->broken |= call->broke || call->head.failed || call->out.failed;
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
		conn_refuse_held(c, "starting");
		turn_again(c);
		return;
	}
	if (wait != WAIT_IDLE && wait != WAIT_LINGER)
		front_count(c->front, SERVER_TIMEOUTS, 1);
	if (wait != WAIT_HEAD && wait != WAIT_BODY) {
		conn_close(c);
		return;
	}
	conn_refuse(c, 408, wait == WAIT_HEAD ? "head_too_slow" : "body_too_slow");
	turn_again(c);
}

/* --- open --------------------------------------------------------------------- */

int
conn_open(struct conn *c)
{
	buf_init(&c->in, FRONT_READ + CONN_HELD + (c->tls ? 2 * TLS_RECORD : 0));
	if (request_init(&c->request, c->front->shared->conf.limits))
		return SLU_ENOMEM;
	list_append(&c->front->conns, &c->node);
	rest(c);
	return 0;
}
