#include "client/http.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	HEAD_MAX = 16 * 1024,
	READ_SIZE = 64 * 1024
};

/* K4: how long what was on its way may take to arrive. */
#define DRAIN_TIME (2 * SLU_SEC)

void
http_init(struct http *h, const struct address *address)
{
	*h = (struct http){ .address = *address, .fd = -1 };
	answer_init(&h->answer, HTTP_BODY_MAX);
	buf_init(&h->head, HEAD_MAX);
}

void
http_hang_up(struct http *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
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
	const char *host = h->address.path[0] ? "localhost" : h->address.text;

	buf_clear(b);
	buf_printf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", call->method, call->path, host);
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

/* Nothing may have come on a connection that waits for a request: neither an end (K1)
 * nor bytes, which would be taken for the next answer. */
static bool
is_usable(int fd)
{
	char c;
	const ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Head and body; the pieces that are left after a short write. */
static int
send_all(struct http *h, struct slice body, const struct patience *until)
{
	struct iovec parts[2] = {
		{ h->head.p, h->head.n },
		{ (void *)body.p, body.n },
	};
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	size_t left = h->head.n + body.n;

	while (left > 0) {
		const ssize_t n = sendmsg(h->fd, &msg, MSG_NOSIGNAL);
		size_t done = n > 0 ? (size_t)n : 0;

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			const int rc = patience_wait(until, h->fd, POLLOUT);

			if (rc)
				return rc;
			continue;
		}
		if (n < 0 && errno != EINTR)
			return SLU_EUNKNOWN;
		left -= done;
		for (int i = 0; i < 2; i++) {
			const size_t part = done < parts[i].iov_len ? done : parts[i].iov_len;

			parts[i].iov_base = (char *)parts[i].iov_base + part;
			parts[i].iov_len -= part;
			done -= part;
		}
	}
	return 0;
}

/* Take what is there: 0 when the answer is whole, SLU_EBUSY when it is not yet. */
static int
receive_some(struct http *h, struct slu_err *err)
{
	char room[READ_SIZE];
	const ssize_t n = recv(h->fd, room, sizeof room, 0);
	struct slice in = { room, n > 0 ? (size_t)n : 0 };

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return SLU_EBUSY;
	if (n <= 0)
		return slu_fail(err, SLU_EUNKNOWN,
				"%s: the server closed the connection before it answered whole",
				h->address.text);
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
		rc = patience_wait(until, h->fd, POLLIN);
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
	if (shutdown(h->fd, SHUT_WR) != 0)
		return SLU_ECANCELED;
	return receive(h, &until, err) ? SLU_ECANCELED : 0;
}

static int
exchange(struct http *h, const struct http_call *call, struct slu_err *err)
{
	int rc;

	answer_begin(&h->answer, strcmp(call->method, "HEAD") == 0);
	rc = send_all(h, call->body, &call->until);
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
	if (rc == SLU_EDOWN)
		return slu_fail(err, rc, "%s: cannot wait for the answer: %m", h->address.text);
	if (rc == SLU_ECANCELED)
		return slu_fail(err, rc, "%s: stopped before the answer came", h->address.text);
	return rc;
}

int
http_call(struct http *h, const struct http_call *call, struct slu_err *err)
{
	bool kept = h->fd >= 0;
	int rc = write_head(h, call, err);

	if (rc)
		return rc;
	if (kept && !is_usable(h->fd)) {
		http_hang_up(h);
		kept = false;
	}
	for (;;) {
		if (h->fd < 0)
			rc = address_connect(&h->address, &call->until, &h->fd, err);
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
