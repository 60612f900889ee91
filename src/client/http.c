#include "client/http.h"

#include "base/clock.h"

#include <poll.h>

enum {
	HEAD_MAX = 16 * 1024
};

/* K4: how long what was on its way may take to arrive. */
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

static int
write_head(struct http *h, const struct http_call *call, struct slu_err *err)
{
	struct buf *b = &h->head;
	const char *host = h->address.path[0] ? "localhost" : address_authority(&h->address);

	buf_clear(b);
	buf_printf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", call->method, call->path, host);
	if (h->address.token)
		buf_printf(b, "Authorization: Bearer %s\r\n", h->address.token);
	if (call->body.n > 0)
		buf_printf(b, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			   call->body.n);
	else if (strcmp(call->method, "POST") == 0)
		buf_puts(b, "Content-Length: 0\r\n");
	buf_puts(b, "\r\n");
	return b->failed ? slu_fail(err, SLU_ETOOBIG, "%.60s...: too long for a request",
				    call->path)
			 : 0;
}

/* Take what is there: 0 when the answer is whole, SLU_EBUSY when it is not yet. */
static int
receive_some(struct http *h, struct slu_err *err)
{
	char room[WIRE_READ];
	struct slice in;
	const int rc = wire_receive(&h->wire, room, &in, err);

	if (rc == SLU_EUNKNOWN)
		return slu_fail(err, SLU_EUNKNOWN,
				"%s: the server closed the connection before it answered whole",
				h->address.text);
	if (rc)
		return rc;
	switch (answer_next(&h->answer, &in)) {
	case ANSWER_MORE:
		return SLU_EBUSY;
	case ANSWER_REFUSED:
		return slu_fail(err, SLU_EUNKNOWN, "%s: the answer is not understood: %s; is this a "
						   "Sluice server?",
				h->address.text, answer_refusal(&h->answer));
	default:
		break;
	}
	if (in.n > 0) /* more than was asked for: the next answer would be wrong */
		h->answer.keep_alive = false;
	return 0;
}

static int
receive(struct http *h, const struct patience *until, struct slu_err *err)
{
	int rc = SLU_EBUSY;

	while (rc == SLU_EBUSY) {
		rc = patience_wait(until, h->wire.fd, POLLIN);
		if (rc == SLU_EDOWN)
			return slu_fail(err, rc, "%s: cannot wait for the answer: %m",
					h->address.text);
		if (!rc)
			rc = receive_some(h, err);
	}
	return rc;
}

/* K4 */
static int
drain(struct http *h, struct slu_err *err)
{
	const struct patience until = {
		.deadline = clock_mono(&clock_system) + DRAIN_TIME,
		.stop_fd = -1,
	};

	h->answer.keep_alive = false;
	if (!wire_end(&h->wire))
		return SLU_ECANCELED;
	return receive(h, &until, err) ? SLU_ECANCELED : 0;
}

static int
exchange(struct http *h, const struct http_call *call, struct slu_err *err)
{
	struct slice parts[] = { buf_slice(&h->head), call->body };
	int rc;

	answer_begin(&h->answer, strcmp(call->method, "HEAD") == 0);
	rc = wire_send(&h->wire, parts, 2, &call->until);
	if (rc == SLU_EUNKNOWN)
		rc = 0; /* it may have answered before it closed: 413 */
	if (!rc)
		rc = receive(h, &call->until, err);
	if (rc == SLU_ECANCELED && call->waits)
		rc = drain(h, err);
	if (rc || !h->answer.keep_alive)
		http_hang_up(h);
	return rc;
}

/* What the codes without a text mean here. */
static int
explain(const struct http *h, const struct http_call *call, int rc, struct slu_err *err)
{
	if (rc == SLU_ETIMEOUT)
		return slu_fail(err, rc, "%s: no answer to %s %.40s within the time allowed",
				h->address.text, call->method, call->path);
	if (rc == SLU_ECANCELED)
		return slu_fail(err, rc, "%s: stopped before the answer came", h->address.text);
	return rc;
}

int
http_call(struct http *h, const struct http_call *call, struct slu_err *err)
{
	bool kept = h->wire.fd >= 0;
	int rc = write_head(h, call, err);

	if (rc)
		return rc;
	if (kept && !wire_is_silent(&h->wire)) { /* K1 */
		http_hang_up(h);
		kept = false;
	}
	for (;;) {
		if (h->wire.fd < 0)
			rc = wire_open(&h->wire, &h->address, &call->until, err);
		if (rc)
			return rc;
		rc = exchange(h, call, err);
		if (rc == SLU_EUNKNOWN && kept && call->repeatable &&
		    answer_is_untouched(&h->answer)) {
			kept = false;
			rc = 0;
			continue;
		}
		return rc ? explain(h, call, rc, err) : 0;
	}
}
