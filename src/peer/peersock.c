/*
 * peersock.c - the socket of a link, with or without TLS.
 *
 *      link_give ──> out ──> [tls_put ──> records] ──> send
 *      recv ──> [tls_take] ──> link_take
 */
#include "peer/peernet_private.h"

#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READ = TLS_READ, /* bytes at once */
	READS = 16       /* of one link before others have their turn */
};

_Static_assert((int)TLS_BINDING == (int)HELLO_BINDING, "the key of a session binds the proofs");

/* ---- Open and close ---- */

static void
lost(struct peersock *s)
{
	char why[128];

	(void)snprintf(why, sizeof why, "%m");
	link_lose(&s->link, why);
}

/* The caller sends first. */
static int
open_tls(struct peersock *s, struct peernet *p, bool calls)
{
	struct tls_context *const x = tls_slot_get(p->tls);
	struct slice none;

	s->tls = x ? tls_new(x, p->tls_room, calls ? "" : NULL) : NULL;
	tls_context_unref(x);
	if (!s->tls)
		return x ? SLU_ENOMEM : SLU_EDOWN;
	if (calls)
		(void)tls_take(s->tls, (struct slice){ 0 }, &none); /* a failure shows in its state */
	return 0;
}

int
peersock_open(struct peersock *s, struct peernet *p, int fd, enum hello_role role,
	      const struct link_events *events, const uint8_t *other)
{
	struct link_conf conf = { .role = role, .events = events, .secret = p->secret };
	int rc = hash_random(conf.nonce, sizeof conf.nonce, NULL);

	*s = (struct peersock){ .fd = fd, .room = p->tls_room };
	if (!rc && p->tls)
		rc = open_tls(s, p, role == HELLO_CALLER);
	if (rc)
		return rc;
	memcpy(conf.life, p->life, HELLO_LIFE);
	if (other)
		memcpy(conf.other, other, HELLO_LIFE);
	buf_init(&s->out, SIZE_MAX);
	link_init(&s->link, &conf, peernet_now());
	return 0;
}

void
peersock_connected(struct peersock *s)
{
	int error = 0;
	socklen_t n = sizeof error;

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &n) || error) {
		errno = error;
		lost(s);
	}
	s->connecting = false;
}

void
peersock_shut(int fd)
{
	if (fd >= 0)
		close(fd);
}

void
peersock_close(struct peersock *s)
{
	peersock_shut(s->fd);
	s->fd = -1;
	tls_free(s->tls);
	s->tls = NULL;
	link_release(&s->link);
	buf_release(&s->out);
}

/* ---- Bytes out ---- */

/* Returns how many bytes the kernel took. */
static size_t
send_bytes(struct peersock *s, struct slice bytes)
{
	const ssize_t n = send(s->fd, bytes.p, bytes.n, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		lost(s);
	return n < 0 ? 0 : (size_t)n;
}

static struct slice
rest(const struct peersock *s)
{
	return (struct slice){ s->out.p + s->written, s->out.n - s->written };
}

/* Returns whether s->out has bytes to send. */
static bool
fetch(struct peersock *s)
{
	if (s->written < s->out.n)
		return true;
	buf_clear(&s->out);
	s->written = 0;
	return link_give(&s->link, &s->out);
}

static void
write_plain(struct peersock *s)
{
	size_t n = 1;

	while (n > 0 && fetch(s)) {
		n = send_bytes(s, rest(s));
		s->written += n;
	}
}

/* Returns whether all records that TLS has made have left. */
static bool
send_records(struct peersock *s)
{
	size_t n = 1;

	while (n > 0 && tls_out(s->tls).n > 0) {
		n = send_bytes(s, tls_out(s->tls));
		(void)tls_sent(s->tls, n); /* plain bytes count as written when TLS has them */
	}
	return tls_out(s->tls).n == 0;
}

static void
write_sealed(struct peersock *s)
{
	while (send_records(s) && tls_state(s->tls) == TLS_OPEN && fetch(s)) {
		const size_t room = tls_room_for(s->tls), left = rest(s).n;
		const size_t n = left < room ? left : room;

		if (tls_put(s->tls, rest(s).p, n) || tls_put_end(s->tls))
			link_lose(&s->link, "TLS failed");
		s->written += n;
	}
}

void
peersock_write(struct peersock *s)
{
	if (s->link.state == LINK_BROKEN || s->connecting)
		return;
	if (s->tls)
		write_sealed(s);
	else
		write_plain(s);
}

bool
peersock_has_bytes(const struct peersock *s)
{
	return s->tls ? tls_out(s->tls).n > 0 : s->written < s->out.n;
}

/* ---- Bytes in ---- */

/* TLS-3: the alert says why; it may not arrive. */
static void
refuse_tls(struct peersock *s)
{
	char why[TLS_WHY + 8];

	(void)snprintf(why, sizeof why, "TLS: %s", s->room->why);
	(void)send_records(s);
	link_lose(&s->link, why);
}

static void
take_sealed(struct peersock *s, struct slice wire)
{
	const bool shook = tls_state(s->tls) != TLS_SHAKING;
	uint8_t binding[TLS_BINDING];
	struct slice plain;
	const enum tls_state state = tls_take(s->tls, wire, &plain);

	if (!shook && (state == TLS_OPEN || state == TLS_ENDED)) {
		if (!tls_binding(s->tls, binding))
			link_lose(&s->link, "no key from libssl");
		link_bind(&s->link, binding);
	}
	if (plain.n > 0)
		(void)link_take(&s->link, plain.p, plain.n, peernet_now()); /* the state says the rest */
	if (state == TLS_FAILED)
		refuse_tls(s);
	else if (state == TLS_ENDED)
		link_lose(&s->link, "the other node closed it");
}

void
peersock_read(struct peersock *s)
{
	char bytes[READ];

	for (int i = 0; i < READS && s->link.state != LINK_BROKEN; i++) {
		const ssize_t n = recv(s->fd, bytes, sizeof bytes, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n == 0)
			errno = ECONNRESET;
		if (n <= 0)
			lost(s);
		else if (s->tls)
			take_sealed(s, (struct slice){ bytes, (size_t)n });
		else
			(void)link_take(&s->link, bytes, (size_t)n, peernet_now()); /* the state says the rest */
		if (n < (ssize_t)sizeof bytes)
			return; /* that was all */
	}
}
