/*
 * conn_tls.c - TLS between the socket and the turns of a connection.
 *
 *      read ──> tls_take ──> conn_take            as if the plain bytes had been read
 *      answers ──> tls_put ──> uv_try_write ──> conn_account, record by record
 *                                    └─ what the kernel has no room for flies: it is
 *                                       left to libuv, and nothing is sealed meanwhile
 */
#include "base/log.h"
#include "net/front.h"
#include "net/protocol.h"

#include <assert.h>
#include <stdio.h>

#define TELL_EVERY SLU_SEC

int
conn_tls_open(struct conn *c)
{
	struct front *const f = c->front;
	struct tls_context *const x = tls_slot_get(&f->shared->tls);

	c->tls = tls_new(x, f->tls_room, NULL);
	tls_context_unref(x);
	return c->tls ? 0 : SLU_ENOMEM;
}

bool
conn_tls_shaking(const struct conn *c)
{
	return tls_state(c->tls) == TLS_SHAKING;
}

/* --- out ---------------------------------------------------------------------- */

static void
on_landed(uv_write_t *req, int status)
{
	struct conn *const c = req->data;
	const size_t n = tls_landed(c->tls);

	c->writing = 0;
	if (c->generation == 0)
		return; /* its exchanges have ended already */
	conn_touch(c);
	if (status < 0 || (n > 0 && conn_was_reset(c))) {
		conn_close(c);
		return;
	}
	conn_account(c, n);
	conn_turn(c);
}

/* What waits, into the kernel; the rest is left to libuv. Plain bytes that are out. */
static ssize_t
send_out(struct conn *c)
{
	struct slice out = tls_out(c->tls);
	uv_buf_t buf = uv_buf_init((char *)out.p, (unsigned)out.n);
	ssize_t whole;
	int n;

	assert(c->writing == 0);
	n = uv_try_write(&c->uv.stream, &buf, 1);
	if (n == UV_EAGAIN)
		n = 0;
	if (n < 0)
		return n;
	whole = (ssize_t)tls_sent(c->tls, (size_t)n);
	if (tls_out(c->tls).n == 0)
		return whole;
	out = tls_fly(c->tls);
	buf = uv_buf_init((char *)out.p, (unsigned)out.n);
	c->write.data = c;
	c->writing = out.n;
	n = uv_write(&c->write, &c->uv.stream, &buf, 1, on_landed);
	return n < 0 ? n : whole;
}

ssize_t
conn_tls_write(struct conn *c, const uv_buf_t *bufs, unsigned n)
{
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		const size_t room = tls_room_for(c->tls);
		const size_t k = bufs[i].len < room ? bufs[i].len : room;

		rc = tls_put(c->tls, bufs[i].base, k);
		if (k < bufs[i].len)
			break;
	}
	if (!rc)
		rc = tls_put_end(c->tls);
	return rc ? UV_EPIPE : send_out(c);
}

void
conn_tls_flush(struct conn *c)
{
	if (tls_out(c->tls).n > 0 && send_out(c) < 0)
		conn_close(c);
}

void
conn_tls_bye(struct conn *c)
{
	if (c->n_exchanges > 0 || c->writing > 0)
		return;
	tls_put_bye(c->tls);
	if (tls_out(c->tls).n > 0) {
		const struct slice out = tls_out(c->tls);
		const uv_buf_t buf = uv_buf_init((char *)out.p, (unsigned)out.n);
		const int n = uv_try_write(&c->uv.stream, &buf, 1);

		(void)tls_sent(c->tls, n > 0 ? (size_t)n : 0); /* if it fails, the client gets no reason */
	}
}

/* --- in ----------------------------------------------------------------------- */

/* At most one line per TELL_EVERY, for any number of clients. */
static void
tell_failure(struct conn *c)
{
	struct front *const f = c->front;
	const slu_time now = loop_now(f->loop);

	front_count(f, SERVER_HANDSHAKES_FAILED, 1);
	if (f->tls_told && now < f->tls_told + TELL_EVERY)
		return;
	f->tls_told = now;
	log_info(f->shared->conf.log, "TLS connection refused",
		 F_STR("reason", f->tls_room->why));
}

/* TLS-3: the alert is sent, and read before the end: a reset would overtake it. */
static void
fail(struct conn *c)
{
	tell_failure(c);
	if (c->n_exchanges > 0) {
		conn_close(c);
		return;
	}
	c->unread = true;
	c->last = true;
	c->begun = false;
	conn_turn(c);
}

/* The client forgot the s of https: the answer is plain, as its bytes were. */
static void
answer_plain(struct conn *c)
{
	snprintf(c->front->tls_room->why, TLS_WHY, "plain bytes came");
	tell_failure(c);
	tls_free(c->tls);
	c->tls = NULL;
	c->protocol->ops->refuse(c, CONN_PLAIN);
	if (c->generation != 0)
		conn_turn(c);
}

static void
take_plain(struct conn *c, struct slice plain, enum tls_state state)
{
	if (plain.n > 0)
		conn_take(c, plain.p, plain.n);
	if (c->generation == 0 || (plain.n > 0 && state != TLS_ENDED))
		return;
	c->eof |= state == TLS_ENDED;
	conn_turn(c);
}

void
conn_tls_read(struct conn *c, const char *p, size_t n)
{
	const bool shaking = conn_tls_shaking(c);
	struct slice plain;
	enum tls_state state;

	if (c->lingering || tls_state(c->tls) == TLS_FAILED)
		return; /* thrown away */
	if (tls_is_fresh(c->tls) && p[0] != TLS_FIRST_BYTE) {
		answer_plain(c);
		return;
	}
	state = tls_take(c->tls, (struct slice){ p, n }, &plain);
	if (state == TLS_FAILED) {
		fail(c);
		return;
	}
	front_count(c->front, SERVER_HANDSHAKES, shaking && state != TLS_SHAKING);
	take_plain(c, plain, state);
}
