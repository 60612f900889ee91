#include "bench/sockets.h"

#include "bench/bench.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TIME (10 * SLU_SEC)

enum {
	EVENTS = 256
};

static void
watch(const struct sockets *s, struct socket *c, int op, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	(void)epoll_ctl(s->epoll, op, c->fd, &e); /* the descriptors are open */
}

/* Raises the limit of open files to the maximum. */
static void
allow_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* on an error a connection fails later */
	}
}

int
sockets_open(struct sockets *s, struct slu_err *err)
{
	allow_files();
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	return s->epoll < 0 ? slu_fail(err, SLU_EDOWN, "epoll: %m") : 0;
}

void
sockets_close(struct sockets *s)
{
	if (s->epoll > 0)
		close(s->epoll);
	s->epoll = 0;
}

int
socket_connect(struct sockets *s, struct socket *c, struct slu_err *err)
{
	const struct patience until = { .deadline = bench_now() + CONNECT_TIME, .stop_fd = -1 };
	const int rc = address_connect(s->address, &until, &c->fd, err);

	if (!rc)
		watch(s, c, EPOLL_CTL_ADD, EPOLLIN);
	return rc;
}

void
socket_close(struct socket *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void
set_blocked(const struct sockets *s, struct socket *c, bool blocked)
{
	if (c->blocked != blocked)
		watch(s, c, EPOLL_CTL_MOD, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
	c->blocked = blocked;
}

int
socket_send(struct sockets *s, struct socket *c, struct slu_err *err)
{
	while (c->sent < c->out.n) {
		const ssize_t n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			set_blocked(s, c, true);
			return 0;
		}
		if (n < 0 && errno != EINTR)
			return slu_fail(err, SLU_EDOWN, "%s: send: %m", s->address->text);
		c->sent += n > 0 ? (size_t)n : 0;
	}
	set_blocked(s, c, false);
	return 0;
}

int
socket_receive(struct sockets *s, struct socket *c, void *room, size_t size, size_t *n,
	       struct slu_err *err)
{
	const ssize_t got = recv(c->fd, room, size, 0);

	*n = got > 0 ? (size_t)got : 0;
	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	return slu_fail(err, SLU_EDOWN, "%s closed a connection", s->address->text);
}

int
sockets_turn(struct sockets *s, int timeout_ms, int *n, struct slu_err *err)
{
	struct epoll_event events[EVENTS];
	int rc = 0;

	*n = epoll_wait(s->epoll, events, EVENTS, timeout_ms);
	for (int i = 0; i < *n && !rc; i++) {
		struct socket *const c = events[i].data.ptr;

		if (events[i].events & EPOLLOUT)
			rc = s->writable ? s->writable(s, c, err) : socket_send(s, c, err);
		if (!rc && events[i].events & ~(uint32_t)EPOLLOUT)
			rc = s->readable(s, c, err);
	}
	return rc;
}
