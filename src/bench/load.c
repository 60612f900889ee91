#include "bench/load.h"

#include "base/mem.h"
#include "bench/bench.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS = 256,
	READ_SIZE = 256 * 1024,
	ANSWER_MAX = 64 * 1024 * 1024
};

/* What a run needs besides the load. */
struct run {
	struct load *load;
	unsigned active;
	int epoll;
	char *room;
};

static void
watch(struct run *r, struct load_conn *c, int op, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	(void)epoll_ctl(r->epoll, op, c->fd, &e); /* of descriptors that are open */
}

static int
send_on(struct run *r, struct load_conn *c, struct slu_err *err)
{
	while (c->sent < c->request.n) {
		const ssize_t n = send(c->fd, c->request.p + c->sent, c->request.n - c->sent,
				       MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			if (!c->blocked)
				watch(r, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
			c->blocked = true;
			return 0;
		}
		if (n < 0 && errno != EINTR)
			return slu_fail(err, SLU_EDOWN, "%s: send: %m", r->load->address->text);
		c->sent += n > 0 ? (size_t)n : 0;
	}
	if (c->blocked)
		watch(r, c, EPOLL_CTL_MOD, EPOLLIN);
	c->blocked = false;
	return 0;
}

static int
open_one(struct run *r, struct load_conn *c, struct slu_err *err)
{
	const struct patience until = { .deadline = bench_now() + 10 * SLU_SEC, .stop_fd = -1 };
	const int rc = address_connect(r->load->address, &until, &c->fd, err);

	if (!rc)
		watch(r, c, EPOLL_CTL_ADD, EPOLLIN);
	return rc;
}

static int
begin(struct run *r, struct load_conn *c, struct slu_err *err)
{
	c->request = (struct slice){ 0 };
	c->active = r->load->next(r->load, c);
	c->idle = c->active && c->request.n == 0;
	if (!c->active)
		r->active--;
	if (!c->active || c->idle)
		return 0;
	answer_begin(&c->answer, false);
	c->sent = 0;
	c->began = bench_now();
	if (c->fd < 0) {
		const int rc = open_one(r, c, err);

		if (rc)
			return rc;
	}
	return send_on(r, c, err);
}

int
load_go(struct load *l, struct load_conn *c, struct slu_err *err)
{
	return c->idle ? begin(l->run, c, err) : 0;
}

static int
answered(struct run *r, struct load_conn *c, struct slu_err *err)
{
	struct load *l = r->load;
	int rc = 0;

	hist_add(l->hist, bench_now() - c->began);
	l->requests++;
	if (l->fresh) {
		close(c->fd);
		c->fd = -1;
	}
	if (l->answered)
		rc = l->answered(l, c, err);
	else if (c->answer.status >= 300)
		rc = slu_fail(err, SLU_EFAILED, "%s answered with status %u: %.100s",
			      l->address->text, c->answer.status, buf_str(&c->answer.body));
	return rc ? rc : begin(r, c, err);
}

static int
receive(struct run *r, struct load_conn *c, struct slu_err *err)
{
	const ssize_t n = recv(c->fd, r->room, READ_SIZE, 0);
	struct slice in = { r->room, n > 0 ? (size_t)n : 0 };

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return slu_fail(err, SLU_EDOWN, "%s closed a connection", r->load->address->text);
	switch (answer_next(&c->answer, &in)) {
	case ANSWER_WHOLE:
		return answered(r, c, err);
	case ANSWER_REFUSED:
		return slu_fail(err, SLU_EDOWN, "%s: the answer is not understood: %s",
				r->load->address->text, answer_refusal(&c->answer));
	default:
		return r->load->more ? r->load->more(r->load, c, err) : 0;
	}
}

static int
turn(struct run *r, struct slu_err *err)
{
	struct epoll_event events[EVENTS];
	const int n = epoll_wait(r->epoll, events, EVENTS, -1);
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		struct load_conn *c = events[i].data.ptr;

		if (events[i].events & EPOLLOUT)
			rc = send_on(r, c, err);
		if (!rc && events[i].events & ~(uint32_t)EPOLLOUT)
			rc = receive(r, c, err);
	}
	return rc;
}

/* As many descriptors as the system lets us have. */
static void
allow_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* a connection will fail and say so */
	}
}

static int
open_all(struct run *r, struct slu_err *err)
{
	struct load *l = r->load;

	allow_files();
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	r->room = mem_alloc(READ_SIZE);
	r->load->conns = mem_array(l->connections, sizeof *r->load->conns);
	if (r->epoll < 0 || !r->room || !r->load->conns)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u connections", l->connections);
	for (unsigned i = 0; i < l->connections; i++)
		r->load->conns[i].fd = -1;
	for (unsigned i = 0; i < l->connections; i++) {
		struct load_conn *c = &r->load->conns[i];
		int rc;

		c->index = i;
		c->active = true;
		answer_init(&c->answer, ANSWER_MAX);
		buf_init(&c->own, ANSWER_MAX);
		rc = l->fresh ? 0 : open_one(r, c, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void
close_all(struct run *r)
{
	for (unsigned i = 0; r->load->conns && i < r->load->connections; i++) {
		if (r->load->conns[i].fd >= 0)
			close(r->load->conns[i].fd);
		answer_release(&r->load->conns[i].answer);
		buf_release(&r->load->conns[i].own);
	}
	mem_free(r->load->conns);
	mem_free(r->room);
	if (r->epoll >= 0)
		close(r->epoll);
}

int
load_run(struct load *l, struct slu_err *err)
{
	struct run r = { .load = l, .epoll = -1, .active = l->connections };
	const slu_time start = bench_now();
	slu_time begun = start;
	int rc;

	l->run = &r;
	l->requests = 0;
	rc = open_all(&r, err);
	if (!rc)
		begun = bench_now();
	for (unsigned i = 0; i < l->connections && !rc; i++)
		rc = begin(&r, &l->conns[i], err);
	while (!rc && r.active > 0 && !l->quit)
		rc = turn(&r, err);
	l->elapsed = bench_now() - begun;
	close_all(&r);
	return rc;
}
