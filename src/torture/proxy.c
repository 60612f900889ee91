#include "torture/proxy.h"

#include "base/mem.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PAIRS = 128,
	WAY_BYTES = 16 << 10,
	FDS = 1 + PROXY_GATES + 2 * PAIRS
};

/* What comes from one side and has not yet gone to the other. */
struct way {
	size_t n, at;
	bool ended;
	char bytes[WAY_BYTES];
};

/* Side 0 is the node, side 1 the store; way i comes from side i. */
struct pair {
	bool open;
	bool spoiled; /* it lacks what was swallowed */
	unsigned gate;
	int side[2];
	struct pollfd *polled[2]; /* of this turn; NULL: the pair is new */
	struct way way[2];
};

struct proxy {
	struct sockaddr_un store;
	unsigned n_gates;
	int gates[PROXY_GATES];
	int wake;
	atomic_int cuts[PROXY_GATES]; /* enum proxy_cut */
	atomic_bool ending;
	pthread_t thread;
	bool running;
	struct pair pairs[PAIRS];
	struct pollfd fds[FDS];
};

/* --- pairs ------------------------------------------------------------------------ */

static void
reset(int fd)
{
	const struct linger hard = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(fd);
}

static void
pair_close(struct pair *p)
{
	reset(p->side[0]);
	reset(p->side[1]);
	p->open = false;
}

static struct pair *
free_pair(struct proxy *x)
{
	for (unsigned i = 0; i < PAIRS; i++)
		if (!x->pairs[i].open)
			return &x->pairs[i];
	return NULL;
}

static void
let_in(struct proxy *x, unsigned gate)
{
	const int node = accept4(x->gates[gate], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int store = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pair *p = free_pair(x);

	if (node >= 0 && store >= 0 && p && atomic_load(&x->cuts[gate]) != CUT_RESET &&
	    connect(store, (struct sockaddr *)&x->store, sizeof x->store) == 0) {
		p->way[0].n = p->way[1].n = 0;
		p->way[0].ended = p->way[1].ended = false;
		p->side[0] = node;
		p->side[1] = store;
		p->polled[0] = p->polled[1] = NULL;
		p->gate = gate;
		p->spoiled = false;
		p->open = true;
		return;
	}
	if (node >= 0)
		reset(node);
	if (store >= 0)
		close(store);
}

/* --- bytes ------------------------------------------------------------------------- */

static bool
swallows(enum proxy_cut cut, unsigned side)
{
	return side == 0 ? cut == CUT_REQUESTS : cut == CUT_ANSWERS || cut == CUT_HALF;
}

/* False: that side is gone. */
static bool
take(struct pair *p, unsigned side, enum proxy_cut cut)
{
	struct way *w = &p->way[side];
	const ssize_t n = read(p->side[side], w->bytes, sizeof w->bytes);

	if (n <= 0) {
		w->ended = true;
		(void)shutdown(p->side[!side], SHUT_WR);
		return n == 0 && !p->way[!side].ended;
	}
	w->at = 0;
	w->n = swallows(cut, side) ? 0 : (size_t)n;
	p->spoiled |= w->n == 0;
	return true;
}

static bool
give(struct pair *p, unsigned side)
{
	struct way *w = &p->way[!side];
	const ssize_t n = send(p->side[side], w->bytes + w->at, w->n, MSG_NOSIGNAL);

	if (n <= 0)
		return false;
	w->at += (size_t)n;
	w->n -= (size_t)n;
	return true;
}

static bool
serve_side(struct pair *p, unsigned side, enum proxy_cut cut)
{
	const short got = p->polled[side]->revents;

	if (got & POLLOUT && !give(p, side))
		return false;
	if (got & POLLIN)
		return take(p, side, cut);
	return !(got & (POLLERR | POLLHUP));
}

static void
serve(struct proxy *x, struct pair *p)
{
	const enum proxy_cut cut = (enum proxy_cut)atomic_load(&x->cuts[p->gate]);

	if (cut == CUT_RESET || (cut == CUT_NONE && p->spoiled)) {
		pair_close(p);
		return;
	}
	if (cut == CUT_HALF && !p->spoiled) {
		(void)shutdown(p->side[0], SHUT_WR);
		p->spoiled = true;
		p->way[1].n = 0;
	}
	if (p->polled[0] && !(serve_side(p, 0, cut) && serve_side(p, 1, cut)))
		pair_close(p);
}

/* --- the thread ---------------------------------------------------------------------- */

static struct pollfd *
watch(struct proxy *x, nfds_t *n, int fd, short events)
{
	x->fds[*n] = (struct pollfd){ .fd = fd, .events = events };
	return &x->fds[(*n)++];
}

/* One that is not to be read or written now is not looked at: it may have ended. */
static void
watch_side(struct proxy *x, nfds_t *n, struct pair *p, unsigned side)
{
	const bool silent = atomic_load(&x->cuts[p->gate]) == CUT_SILENCE;
	const short in = p->way[side].n == 0 && !p->way[side].ended ? POLLIN : 0;
	const short out = p->way[!side].n > 0 ? POLLOUT : 0;
	const short events = silent ? 0 : (short)(in | out);

	p->polled[side] = watch(x, n, events ? p->side[side] : -1, events);
}

static nfds_t
watch_all(struct proxy *x)
{
	nfds_t n = 0;

	(void)watch(x, &n, x->wake, POLLIN);
	for (unsigned i = 0; i < x->n_gates; i++)
		(void)watch(x, &n, x->gates[i], POLLIN);
	for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++)
		for (unsigned side = 0; p->open && side < 2; side++)
			watch_side(x, &n, p, side);
	return n;
}

static void *
run(void *arg)
{
	struct proxy *x = arg;
	eventfd_t told;

	while (!atomic_load(&x->ending)) {
		if (poll(x->fds, watch_all(x), -1) < 0)
			continue;
		(void)eventfd_read(x->wake, &told);
		for (struct pair *p = x->pairs; p < x->pairs + PAIRS; p++)
			if (p->open)
				serve(x, p);
		for (unsigned i = 0; i < x->n_gates; i++)
			if (x->fds[1 + i].revents)
				let_in(x, i);
	}
	return NULL;
}

/* --- open and close -------------------------------------------------------------------- */

static int
open_gate(struct slu_err *err)
{
	const struct sockaddr_in here = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&here, sizeof here) == 0 &&
	    listen(fd, SOMAXCONN) == 0)
		return fd;
	(void)slu_fail(err, SLU_EDOWN, "no port for a proxy: %m");
	if (fd >= 0)
		close(fd);
	return -1;
}

static int
open_all(struct proxy *x, unsigned n_gates, struct slu_err *err)
{
	x->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	while (x->n_gates < n_gates) {
		x->gates[x->n_gates] = open_gate(err);
		if (x->gates[x->n_gates] < 0)
			return SLU_EDOWN;
		x->n_gates++;
	}
	x->running = x->wake >= 0 && pthread_create(&x->thread, NULL, run, x) == 0;
	return x->running ? 0 : slu_fail(err, SLU_ENOMEM, "no thread for a proxy: %m");
}

int
proxy_open(struct proxy **out, const char *path, unsigned n_gates, struct slu_err *err)
{
	struct proxy *x = mem_zalloc(sizeof *x);
	int rc;

	*out = NULL;
	if (!x)
		return slu_fail(err, SLU_ENOMEM, "no memory for a proxy");
	x->store.sun_family = AF_UNIX;
	(void)snprintf(x->store.sun_path, sizeof x->store.sun_path, "%s", path);
	rc = open_all(x, n_gates, err);
	if (rc)
		proxy_close(x);
	else
		*out = x;
	return rc;
}

void
proxy_close(struct proxy *p)
{
	if (!p)
		return;
	atomic_store(&p->ending, true);
	(void)eventfd_write(p->wake, 1);
	if (p->running)
		pthread_join(p->thread, NULL);
	for (unsigned i = 0; i < PAIRS; i++)
		if (p->pairs[i].open)
			pair_close(&p->pairs[i]);
	for (unsigned i = 0; i < p->n_gates; i++)
		close(p->gates[i]);
	if (p->wake >= 0)
		close(p->wake);
	mem_free(p);
}

unsigned
proxy_port(const struct proxy *p, unsigned gate)
{
	struct sockaddr_in here = { 0 };
	socklen_t n = sizeof here;

	(void)getsockname(p->gates[gate], (struct sockaddr *)&here, &n); /* it is bound */
	return ntohs(here.sin_port);
}

void
proxy_cut(struct proxy *p, unsigned gate, enum proxy_cut how)
{
	atomic_store(&p->cuts[gate], how);
	(void)eventfd_write(p->wake, 1);
}
