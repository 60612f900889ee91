#include "peers/load.h"

#include "base/mem.h"
#include "bench/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS = 256,
	READ_SIZE = 64 * 1024,
	BUFFER_MAX = 256 * 1024 * 1024,
	SEND_EARLY = 256 * 1024, /* of requests that have no answer */
	PATIENCE_MS = 60 * 1000, /* with a peer that says nothing after the end of a phase */
	IN_VAIN_MS = 1000        /* the same, where somebody may wait in vain */
};

/* --- bytes ---------------------------------------------------------------------- */

static void
watch(struct load *l, struct conn *c, int op, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	(void)epoll_ctl(l->epoll, op, c->fd, &e); /* of descriptors that are open */
}

static void
set_blocked(struct load *l, struct conn *c, bool blocked)
{
	if (c->blocked != blocked)
		watch(l, c, EPOLL_CTL_MOD, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
	c->blocked = blocked;
}

static int
send_on(struct load *l, struct conn *c, struct slu_err *err)
{
	if (c->out.failed || c->held.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory for requests");
	while (c->sent < c->out.n) {
		const ssize_t n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			set_blocked(l, c, true);
			return 0;
		}
		if (n < 0 && errno != EINTR)
			return slu_fail(err, SLU_EDOWN, "%s: send: %m", l->protocol->name);
		c->sent += n > 0 ? (size_t)n : 0;
	}
	c->sent = 0;
	buf_clear(&c->out);
	set_blocked(l, c, false);
	return 0;
}

/* Goes on with its next operations until there is an answer to wait for. */
static int
go_on(struct load *l, struct conn *c, struct slu_err *err)
{
	while (c->active && c->awaited == 0 && c->out.n < SEND_EARLY) {
		if (l->phase->next(l, c)) {
			if (c->awaited == 0)
				l->phase->done(l, c);
		} else {
			c->active = false;
			l->active--;
		}
	}
	return send_on(l, c, err);
}

static int
read_answers(struct load *l, struct conn *c, struct slu_err *err)
{
	struct slice in = buf_slice(&c->in);
	size_t before;
	int rc = 0;

	if (c->in.n < c->need)
		return 0;
	c->need = 0;
	do {
		before = in.n;
		if (before > 0)
			rc = l->protocol->answer(c, &in, err);
	} while (!rc && in.n < before);
	if (in.n > 0)
		memmove(c->in.p, in.p, in.n);
	c->in.n = in.n;
	return rc;
}

static int
receive(struct load *l, struct conn *c, struct slu_err *err)
{
	const bool waited = c->awaited > 0;
	ssize_t n;
	int rc;

	if (!buf_room(&c->in, READ_SIZE))
		return slu_fail(err, SLU_ENOMEM, "no memory for answers");
	n = recv(c->fd, c->in.p + c->in.n, c->in.size - c->in.n - 1, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return slu_fail(err, SLU_EDOWN, "%s closed a connection", l->protocol->name);
	c->in.n += (size_t)n;
	rc = read_answers(l, c, err);
	if (!rc && waited && c->awaited == 0)
		l->phase->done(l, c);
	return rc ? rc : go_on(l, c, err);
}

static int
turn(struct load *l, bool *stalled, struct slu_err *err)
{
	const slu_time left = l->until - bench_now();
	const bool in_vain = l->protocol->consume && l->phase->waits;
	const int patience = in_vain ? IN_VAIN_MS : PATIENCE_MS;
	struct epoll_event events[EVENTS];
	const int n = epoll_wait(l->epoll, events, EVENTS, patience + (left > 0 ? (int)(left / SLU_MS) : 0));
	int rc = 0;

	*stalled = n == 0;
	if (*stalled && !in_vain)
		return slu_fail(err, SLU_EDOWN, "%s does not answer", l->protocol->name);
	for (int i = 0; i < n && !rc; i++) {
		struct conn *c = events[i].data.ptr;

		if (events[i].events & EPOLLOUT)
			rc = go_on(l, c, err);
		if (!rc && events[i].events & ~(uint32_t)EPOLLOUT)
			rc = receive(l, c, err);
	}
	return rc;
}

/* --- phases --------------------------------------------------------------------- */

/*
 * A peer that delivers by itself may hand a message to a connection that has just ended;
 * whoever waits for it waits in vain. So when the time is up and nothing comes any more, the
 * phase is over: its length is counted to what was done last.
 */
int
load_phase(struct load *l, const struct phase *phase, struct slu_err *err)
{
	const slu_time begun = bench_now();
	bool stalled = false;
	int rc = 0;

	memset(&l->took, 0, sizeof l->took);
	l->phase = phase;
	l->messages = l->begun = 0;
	l->last = begun;
	l->active = l->connections;
	for (unsigned i = 0; i < l->connections && !rc; i++) {
		l->conns[i].active = true;
		l->conns[i].step = 0;
		l->conns[i].awaited = 0; /* nobody waits any more for what came in vain */
		rc = go_on(l, &l->conns[i], err);
	}
	while (!rc && l->active > 0 && !stalled)
		rc = turn(l, &stalled, err);
	for (unsigned i = 0; i < l->connections; i++)
		l->conns[i].active = false; /* what still comes is read, and nothing follows */
	l->elapsed = l->last - begun;
	return rc;
}

static bool
next_step(struct load *l, struct conn *c)
{
	if (c->step++ > 0 || (l->step->first_only && c->index > 0))
		return false;
	l->step->say(c);
	return true;
}

static void
did_step(struct load *l, struct conn *c)
{
	(void)c;
	l->last = bench_now();
}

int
load_steps(struct load *l, const struct step *steps, struct slu_err *err)
{
	static const struct phase phase = { "step", next_step, did_step, false };
	int rc = 0;

	l->until = bench_now() + 60 * SLU_SEC;
	for (l->step = steps; !rc && l->step && l->step->say; l->step++)
		rc = load_phase(l, &phase, err);
	return rc;
}

/* --- opening and closing -------------------------------------------------------- */

static int
open_one(struct load *l, struct conn *c, struct slu_err *err)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)l->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int on = 1;

	buf_init(&c->out, BUFFER_MAX);
	buf_init(&c->in, BUFFER_MAX);
	buf_init(&c->held, BUFFER_MAX);
	c->work = l->work;
	c->own = mem_zalloc(l->protocol->own_size + 1);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!c->own || c->fd < 0)
		return slu_fail(err, SLU_ENOMEM, "no memory for a connection");
	if (connect(c->fd, (const struct sockaddr *)&to, sizeof to) != 0)
		return slu_fail(err, SLU_EDOWN, "127.0.0.1:%u: connect: %m", l->port);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(c->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	watch(l, c, EPOLL_CTL_ADD, EPOLLIN);
	return 0;
}

static void
set_nonblocking(int fd)
{
	(void)fcntl(fd, F_SETFL, O_NONBLOCK); /* of a socket that is open */
}

int
load_open(struct load *l, struct slu_err *err)
{
	const struct rlimit files = { 4096, 4096 };
	int rc = 0;

	(void)setrlimit(RLIMIT_NOFILE, &files); /* a connection will fail and say so */
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->conns = mem_array(l->connections, sizeof *l->conns);
	if (l->epoll < 0 || !l->conns)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u connections", l->connections);
	for (unsigned i = 0; i < l->connections; i++) {
		l->conns[i].fd = -1;
		l->conns[i].index = i;
	}
	for (unsigned i = 0; i < l->connections && !rc; i++) {
		rc = open_one(l, &l->conns[i], err);
		if (!rc)
			set_nonblocking(l->conns[i].fd);
	}
	return rc ? rc : load_steps(l, l->protocol->hello, err);
}

void
load_close(struct load *l)
{
	for (unsigned i = 0; l->conns && i < l->connections; i++) {
		struct conn *c = &l->conns[i];

		if (c->fd >= 0)
			close(c->fd);
		buf_release(&c->out);
		buf_release(&c->in);
		buf_release(&c->held);
		mem_free(c->own);
	}
	mem_free(l->conns);
	if (l->conns)
		close(l->epoll);
	l->conns = NULL;
}
