#include "client/wire.h"

#include "net/tls.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PARTS_MAX = 4
};

static bool
would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK;
}

/* --- plain ---------------------------------------------------------------------- */

static void
advance(struct iovec *parts, unsigned n, size_t done)
{
	for (unsigned i = 0; i < n; i++) {
		const size_t part = done < parts[i].iov_len ? done : parts[i].iov_len;

		parts[i].iov_base = (char *)parts[i].iov_base + part;
		parts[i].iov_len -= part;
		done -= part;
	}
}

/* Removes the sent bytes from the parts after a short write. */
static int
send_plain(int fd, const struct slice *parts, unsigned n, const struct patience *until)
{
	struct iovec io[PARTS_MAX];
	struct msghdr msg = { .msg_iov = io, .msg_iovlen = n };
	size_t left = 0;

	for (unsigned i = 0; i < n; i++) {
		io[i] = (struct iovec){ (void *)parts[i].p, parts[i].n };
		left += parts[i].n;
	}
	while (left > 0) {
		const ssize_t k = sendmsg(fd, &msg, MSG_NOSIGNAL);
		int rc = 0;

		if (k < 0 && would_block())
			rc = patience_wait(until, fd, POLLOUT);
		else if (k < 0 && errno != EINTR)
			rc = SLU_EUNKNOWN;
		if (rc)
			return rc == SLU_EDOWN ? SLU_EUNKNOWN : rc;
		advance(io, n, k > 0 ? (size_t)k : 0);
		left -= k > 0 ? (size_t)k : 0;
	}
	return 0;
}

/* --- TLS ------------------------------------------------------------------------ */

/* The texts of TLS errors, with what to do. */
static const char *const hints[] = {
	[TLS_FAULT_OTHER] = "TLS failed",
	[TLS_FAULT_UNKNOWN_CA] = "the server's certificate is not signed by a trusted CA; "
				 "set ca_file to the CA that signed it",
	[TLS_FAULT_EXPIRED] = "the server's certificate has expired or is not valid yet; renew it, or "
			      "set this machine's clock",
	[TLS_FAULT_HOST] = "the server's certificate is for another name; use a name of the certificate",
	[TLS_FAULT_NO_CERT] = "the server requires a client certificate; set cert and cert_key",
	[TLS_FAULT_CERT_REFUSED] = "the server does not trust our certificate; is cert the right one?",
	[TLS_FAULT_NOT_TLS] = "the server does not use TLS; write http:// instead of https://",
	[TLS_FAULT_OUT_OF_MEMORY] = "no memory for TLS",
};

static int
distrusted(const struct wire *w, struct slu_err *err)
{
	const enum tls_fault f = w->room->fault;
	const bool down = f == TLS_FAULT_OTHER || f == TLS_FAULT_NOT_TLS ||
			  f == TLS_FAULT_OUT_OF_MEMORY;

	return slu_fail(err, down ? SLU_EDOWN : SLU_EFORBIDDEN, "%s: %s (%s)", w->address->text,
			hints[f], w->room->why);
}

static int
send_out(struct wire *w, const struct patience *until)
{
	struct slice out = tls_out(w->tls);
	int rc;

	if (out.n == 0)
		return 0;
	rc = send_plain(w->fd, &out, 1, until);
	if (!rc)
		(void)tls_sent(w->tls, out.n); /* which bytes: all */
	return rc;
}

static int
send_sealed(struct wire *w, struct slice *parts, unsigned n, const struct patience *until)
{
	int rc = 0;

	for (unsigned i = 0; i < n && !rc;) {
		const size_t room = tls_room_for(w->tls);
		const size_t k = parts[i].n < room ? parts[i].n : room;

		rc = k > 0 || parts[i].n == 0 ? tls_put(w->tls, parts[i].p, k) : 0;
		slice_skip(&parts[i], k);
		if (parts[i].n == 0) {
			i++;
			continue;
		}
		if (!rc)
			rc = tls_put_end(w->tls);
		if (!rc)
			rc = send_out(w, until);
	}
	if (!rc)
		rc = tls_put_end(w->tls);
	return rc == SLU_EDOWN ? SLU_EUNKNOWN : rc ? rc
						   : send_out(w, until);
}

/* Sends pending protocol bytes now if that is possible at once; otherwise they go out with the next
 * send. */
static int
receive_sealed(struct wire *w, struct slice raw, struct slice *in, struct slu_err *err)
{
	const struct patience now = { .deadline = 0, .stop_fd = -1 };
	const enum tls_state state = tls_take(w->tls, raw, in);

	if (state == TLS_FAILED)
		return distrusted(w, err);
	if (in->n > 0)
		return 0;
	(void)send_out(w, &now); /* the next read sees that the server closed */
	return state == TLS_ENDED ? SLU_EUNKNOWN : SLU_EBUSY;
}

static int
shake(struct wire *w, const struct patience *until, struct slu_err *err)
{
	char room[WIRE_READ];
	struct slice raw = { NULL, 0 }, plain;

	for (;;) {
		const enum tls_state state = tls_take(w->tls, raw, &plain);
		const int sent = send_out(w, until);
		ssize_t n;
		int rc;

		if (state == TLS_FAILED)
			return distrusted(w, err);
		if (state != TLS_SHAKING || sent)
			return sent;
		rc = patience_wait(until, w->fd, POLLIN);
		if (rc)
			return rc;
		n = recv(w->fd, room, sizeof room, 0);
		if (n == 0 || (n < 0 && !would_block() && errno != EINTR))
			return SLU_EUNKNOWN;
		raw = (struct slice){ room, n > 0 ? (size_t)n : 0 };
	}
}

static int
open_tls(struct wire *w, const struct patience *until, struct slu_err *err)
{
	const struct address *const a = w->address;
	int rc;

	w->room = tls_room_new();
	w->tls = w->room ? tls_new(a->context, w->room, a->host) : NULL;
	if (!w->tls)
		return slu_fail(err, SLU_ENOMEM, "%s: out of memory for TLS", a->text);
	rc = shake(w, until, err);
	if (rc == SLU_EUNKNOWN)
		return slu_fail(err, SLU_EDOWN, "%s: the server closed the connection in the TLS handshake",
				a->text);
	if (rc == SLU_ETIMEOUT)
		return slu_fail(err, rc, "%s: no TLS handshake in time", a->text);
	if (rc == SLU_ECANCELED)
		return slu_fail(err, rc, "%s: stopped while connecting", a->text);
	return rc;
}

/* --- both ----------------------------------------------------------------------- */

int
wire_open(struct wire *w, const struct address *a, const struct patience *until,
	  struct slu_err *err)
{
	int rc;

	*w = (struct wire){ .fd = -1, .address = a };
	if (a->tls && !a->context)
		return slu_fail(err, SLU_EINVAL, "%s: https is not supported here; use http://", a->text);
	rc = address_connect(a, until, &w->fd, err);
	if (!rc && a->tls)
		rc = open_tls(w, until, err);
	if (rc)
		wire_close(w);
	return rc;
}

void
wire_close(struct wire *w)
{
	tls_free(w->tls);
	tls_room_free(w->room);
	if (w->fd >= 0)
		close(w->fd);
	*w = WIRE_NONE;
}

bool
wire_is_silent(const struct wire *w)
{
	char c;
	const ssize_t n = recv(w->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 && would_block();
}

int
wire_send(struct wire *w, struct slice *parts, unsigned n, const struct patience *until)
{
	return w->tls ? send_sealed(w, parts, n, until) : send_plain(w->fd, parts, n, until);
}

int
wire_receive(struct wire *w, char room[static WIRE_READ], struct slice *in,
	     struct slu_err *err)
{
	const ssize_t n = recv(w->fd, room, WIRE_READ, 0);

	if (n < 0 && (would_block() || errno == EINTR))
		return SLU_EBUSY;
	if (n <= 0)
		return SLU_EUNKNOWN;
	*in = (struct slice){ room, (size_t)n };
	return w->tls ? receive_sealed(w, *in, in, err) : 0;
}

bool
wire_end(struct wire *w)
{
	const struct patience now = { .deadline = 0, .stop_fd = -1 };

	if (w->tls) {
		tls_put_bye(w->tls);
		(void)send_out(w, &now); /* then the end of the stream ends it */
	}
	return shutdown(w->fd, SHUT_WR) == 0;
}
