#include "client/http.h"

#include "base/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum {
	HEAD_MAX = 32 * 1024,
	SOURCE_PIECE = 64 * 1024
};

/* CLIENTHTTP-4: how long an answer that was already sent may take to arrive. */
#define DRAIN_TIME (2 * SLU_SEC)

void
http_init(struct http *h, const struct address *address)
{
	*h = (struct http){ .address = *address, .wire = WIRE_NONE };
	answer_init(&h->answer, HTTP_BODY_MAX);
	buf_init(&h->head, HEAD_MAX);
}

void
http_hang_up(struct http *h)
{
	wire_close(&h->wire);
}

void
http_release(struct http *h)
{
	http_hang_up(h);
	answer_release(&h->answer);
	buf_release(&h->head);
}

void
http_encode(struct buf *out, struct slice s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] && strchr(plain, s.p[i]))
			buf_putc(out, s.p[i]);
		else
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)s.p[i]);
	}
}

void
http_param(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_putc(path, strchr(buf_str(path), '?') ? '&' : '?');
	buf_printf(path, "%s=", name);
	http_encode(path, slice_of(value));
}

void
http_param_u64(struct buf *path, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, value); /* fits */
	http_param(path, name, text);
}

static int
write_head(struct http *h, const struct http_call *call, struct slu_err *err)
{
	struct buf *b = &h->head;
	const char *host = h->address.path[0] ? "localhost" : address_authority(&h->address);

	buf_clear(b);
	buf_printf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", call->method, call->path, host);
	if (h->address.token)
		buf_printf(b, "Authorization: Bearer %s\r\n", h->address.token);
	if (call->fields)
		buf_puts(b, call->fields);
	if (call->body.n > 0 || call->source)
		buf_printf(b, "Content-Type: %s\r\n",
			   call->content_type ? call->content_type : "application/json");
	if (call->source)
		buf_printf(b, "Transfer-Encoding: chunked\r\n\r\n%zx", call->body.n);
	else if (call->body.n > 0)
		buf_printf(b, "Content-Length: %zu\r\n", call->body.n);
	else if (strcmp(call->method, "POST") == 0)
		buf_puts(b, "Content-Length: 0\r\n");
	buf_puts(b, "\r\n");
	return b->failed ? slu_fail(err, SLU_ETOOBIG, "%.60s...: request too long",
				    call->path)
			 : 0;
}

/* Parses the received bytes. Returns SLU_EBUSY if the answer is not complete. */
static int
receive_some(struct http *h, struct slu_err *err)
{
	char room[WIRE_READ];
	struct slice in;
	const int rc = wire_receive(&h->wire, room, &in, err);

	if (rc == SLU_EUNKNOWN)
		return slu_fail(err, SLU_EUNKNOWN,
				"%s: the server closed the connection before the answer was complete",
				h->address.text);
	if (rc)
		return rc;
	switch (answer_next(&h->answer, &in)) {
	case ANSWER_MORE:
		return SLU_EBUSY;
	case ANSWER_REFUSED:
		return slu_fail(err, SLU_EUNKNOWN, "%s: malformed answer: %s; is this a "
						   "Sluice server?",
				h->address.text, answer_refusal(&h->answer));
	default:
		break;
	}
	if (in.n > 0 || !h->answer.keep_alive) /* bytes after the answer end the connection too */
		h->spoiled = true;
	h->whole = true;
	return 0;
}

/* Receives bytes. Returns 0 at the end of the answer, SLU_EBUSY before. */
static int
receive_more(struct http *h, const struct patience *until, struct slu_err *err)
{
	const int rc = patience_wait(until, h->wire.fd, POLLIN);

	if (rc == SLU_EDOWN)
		return slu_fail(err, rc, "%s: cannot wait for the answer: %m", h->address.text);
	return rc ? rc : receive_some(h, err);
}

/* Receives the whole answer, or its head if it is read in pieces. */
static int
receive(struct http *h, const struct patience *until, struct slu_err *err)
{
	int rc = SLU_EBUSY;

	while (rc == SLU_EBUSY && !(h->answer.in_pieces && answer_has_head(&h->answer)))
		rc = receive_more(h, until, err);
	return rc == SLU_EBUSY ? 0 : rc;
}

/* CLIENTHTTP-4 */
static int
drain(struct http *h, struct slu_err *err)
{
	const struct patience until = {
		.deadline = clock_mono(&clock_system) + DRAIN_TIME,
		.stop_fd = -1,
	};

	if (!wire_end(&h->wire))
		return SLU_ECANCELED;
	h->spoiled = true;
	return receive(h, &until, err) ? SLU_ECANCELED : 0;
}

/* Sends a body from a source, in chunks. Stops if the server answers meanwhile. */
static int
send_source(struct http *h, const struct http_call *call, struct slu_err *err)
{
	char room[SOURCE_PIECE], size[24];
	int64_t n = 1;
	int rc = 0;

	while (!rc && n > 0 && (h->wire.tls || wire_is_silent(&h->wire))) {
		struct slice parts[3] = { { size, 0 }, { room, 0 }, SLICE("\r\n") };

		n = call->source(call->source_arg, room, sizeof room);
		if (n < 0)
			return slu_fail(err, SLU_EFAILED, "%s: the body could not be read to its end, and "
							  "the call was cancelled",
					h->address.text);
		parts[0].n = (size_t)snprintf(size, sizeof size, "%" PRIx64 "\r\n", (uint64_t)n);
		parts[1].n = (size_t)n;
		rc = wire_send(&h->wire, parts, 3, &call->until);
	}
	h->spoiled = n > 0;
	return rc;
}

static int
send_all(struct http *h, const struct http_call *call, struct slu_err *err)
{
	struct slice parts[] = {
		buf_slice(&h->head), call->body, { "\r\n", call->source ? 2 : 0 }
	};
	int rc = wire_send(&h->wire, parts, 3, &call->until);

	if (!rc && call->source)
		rc = send_source(h, call, err);
	return rc == SLU_EUNKNOWN ? 0 : rc; /* the server may have answered before it closed: 413 */
}

static int
exchange(struct http *h, const struct http_call *call, struct slu_err *err)
{
	int rc;

	answer_begin(&h->answer, strcmp(call->method, "HEAD") == 0);
	h->answer.in_pieces = call->in_pieces;
	h->whole = h->lent = h->spoiled = false;
	rc = send_all(h, call, err);
	if (!rc)
		rc = receive(h, &call->until, err);
	if (rc == SLU_ECANCELED && call->waits)
		rc = drain(h, err);
	if (rc || (h->whole && h->spoiled))
		http_hang_up(h);
	return rc;
}

/* Adds a text to codes without one. */
static int
explain(const struct http *h, const struct http_call *call, int rc, struct slu_err *err)
{
	if (rc == SLU_ETIMEOUT)
		return slu_fail(err, rc, "%s: no answer to %s %.40s in time",
				h->address.text, call->method, call->path);
	if (rc == SLU_ECANCELED)
		return slu_fail(err, rc, "%s: stopped before the answer came", h->address.text);
	return rc;
}

/* The rc of a second try, after a first one that was sent and not answered. */
static int
in_doubt(int rc, struct slu_err *err)
{
	if (rc != SLU_EDOWN)
		return rc;
	if (err)
		err->code = SLU_EUNKNOWN;
	return SLU_EUNKNOWN;
}

static int
connect_to(struct http *h, const struct http_call *call, struct slu_err *err)
{
	const slu_time limit = call->connect_time > 0 ? call->connect_time : SLU_NEVER;
	const slu_time end = time_add(clock_mono(&clock_system), limit);
	struct patience until = call->until;
	int rc;

	if (end < until.deadline)
		until.deadline = end;
	rc = wire_open(&h->wire, &h->address, &until, err);
	return rc == SLU_ETIMEOUT && end < call->until.deadline ? SLU_EDOWN : rc;
}

int
http_begin(struct http *h, const struct http_call *call, struct slu_err *err)
{
	bool kept = h->wire.fd >= 0;
	int rc = write_head(h, call, err);

	h->repeated = false;
	if (rc)
		return rc;
	if (kept && !wire_is_silent(&h->wire)) { /* CLIENTHTTP-1 */
		http_hang_up(h);
		kept = false;
	}
	for (;;) {
		if (h->wire.fd < 0)
			rc = connect_to(h, call, err);
		if (rc)
			return h->repeated ? in_doubt(rc, err) : rc;
		rc = exchange(h, call, err);
		if (rc == SLU_EUNKNOWN && kept && call->repeatable && !call->source &&
		    answer_is_untouched(&h->answer)) {
			kept = false;
			h->repeated = true;
			rc = 0;
			continue;
		}
		return rc ? explain(h, call, rc, err) : 0;
	}
}

int
http_call(struct http *h, const struct http_call *call, struct slu_err *err)
{
	assert(!call->in_pieces);
	return http_begin(h, call, err);
}

/* --- an answer in pieces ----------------------------------------------------------- */

static int
broken(struct http *h, int rc, struct slu_err *err)
{
	http_hang_up(h);
	if (rc == SLU_ETIMEOUT)
		return slu_fail(err, rc, "%s: the rest of the answer did not come in the time "
					 "allowed",
				h->address.text);
	if (rc == SLU_ECANCELED)
		return slu_fail(err, rc, "%s: stopped before the answer was complete", h->address.text);
	return rc;
}

int
http_piece(struct http *h, const struct patience *until, struct slice *piece,
	   struct slu_err *err)
{
	int rc = 0;

	if (h->lent)
		buf_clear(&h->answer.body);
	h->lent = true;
	while (h->answer.body.n == 0 && !h->whole) {
		if (h->wire.fd < 0)
			return slu_fail(err, SLU_EUNKNOWN, "%s: the connection broke before the answer "
							   "was whole",
					h->address.text);
		rc = receive_more(h, until, err);
		if (rc && rc != SLU_EBUSY)
			return broken(h, rc, err);
	}
	*piece = buf_slice(&h->answer.body);
	if (h->whole && h->spoiled)
		http_hang_up(h);
	return 0;
}

int
http_gather(struct http *h, const struct patience *until, struct slu_err *err)
{
	int rc = h->whole ? 0 : SLU_EBUSY;

	while (rc == SLU_EBUSY)
		rc = receive_more(h, until, err);
	if (rc)
		return broken(h, rc, err);
	if (h->spoiled)
		http_hang_up(h);
	return 0;
}
