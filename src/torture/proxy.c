#include "torture/proxy.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PAIRS = 128,
	WAY_BYTES = 16 << 10,
	CAME_MAX = 64, /* connections of proxy_join that the thread has not seen; more are closed */
	FDS = 1 + PROXY_GATES + 2 * PAIRS
};

/* Bytes that came from one side and are not sent to the other yet. */
struct proxy_way {
	size_t n, at;
	bool ended;
	char bytes[WAY_BYTES];
};

/* Side 0 is the node, side 1 the store; ways[i] comes from side i. */
struct proxy_pair {
	bool open;
	bool spoiled; /* it lost bytes in a cut */
	unsigned gate;
	int side[2];
	struct pollfd *polled[2]; /* poll entries of this turn; NULL = the pair is new */
	struct proxy_way way[2];
};

struct proxy {
	union {
		struct sockaddr any;
		struct sockaddr_un path;
		struct sockaddr_in port;
	} store;
	socklen_t store_size;
	unsigned n_gates;
	int gates[PROXY_GATES];
	int wake;
	atomic_int cuts[PROXY_GATES]; /* enum proxy_cut */
	atomic_bool ending;
	pthread_t thread;
	bool running;

	/* Under mtx: connections of proxy_join. */
	pthread_mutex_t mtx;
	struct {
		unsigned gate;
		int node, other;
	} came[CAME_MAX];
	unsigned n_came;

	/* The thread's. */
	struct proxy_pair pairs[PAIRS];
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
pair_close(struct proxy_pair *p)
{
	reset(p->side[0]);
	reset(p->side[1]);
	p->open = false;
}

static struct proxy_pair *
free_pair(struct proxy *x)
{
	for (unsigned i = 0; i < PAIRS; i++)
		if (!x->pairs[i].open)
			return &x->pairs[i];
	return NULL;
}

/* Takes the sockets. store: -1 = there is no store. */
static void
pair_open(struct proxy *x, unsigned gate, int node, int store)
{
	struct proxy_pair *p = free_pair(x);

	if (node >= 0 && store >= 0 && p && atomic_load(&x->cuts[gate]) != CUT_RESET) {
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

static void
let_in(struct proxy *x, unsigned gate)
{
	const int node = accept4(x->gates[gate], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int store = socket(x->store.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* A connection on this machine is made or refused at once. */
	if (store >= 0 && (connect(store, &x->store.any, x->store_size) != 0 || fcntl(store, F_SETFL, O_NONBLOCK) != 0)) {
		close(store);
		store = -1;
	}
	pair_open(x, gate, node, store);
}

static void
let_in_joined(struct proxy *x)
{
	pthread_mutex_lock(&x->mtx);
	while (x->n_came > 0) {
		x->n_came--;
		pair_open(x, x->came[x->n_came].gate, x->came[x->n_came].node, x->came[x->n_came].other);
	}
	pthread_mutex_unlock(&x->mtx);
}

/* --- bytes ------------------------------------------------------------------------- */

static bool
swallows(enum proxy_cut cut, unsigned side)
{
	return side == 0 ? cut == CUT_REQUESTS : cut == CUT_ANSWERS || cut == CUT_HALF;
}

/* Returns false if that side closed. */
static bool
take(struct proxy_pair *p, unsigned side, enum proxy_cut cut)
{
	struct proxy_way *w = &p->way[side];
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
give(struct proxy_pair *p, unsigned side)
{
	struct proxy_way *w = &p->way[!side];
	const ssize_t n = send(p->side[side], w->bytes + w->at, w->n, MSG_NOSIGNAL);

	if (n <= 0)
		return false;
	w->at += (size_t)n;
	w->n -= (size_t)n;
	return true;
}

static bool
serve_side(struct proxy_pair *p, unsigned side, enum proxy_cut cut)
{
	const short got = p->polled[side]->revents;

	if (got & POLLOUT && !give(p, side))
		return false;
	if (got & POLLIN)
		return take(p, side, cut);
	return !(got & (POLLERR | POLLHUP));
}

static void
serve(struct proxy *x, struct proxy_pair *p)
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

/* A socket that is not to be read or written now is not polled. */
static void
watch_side(struct proxy *x, nfds_t *n, struct proxy_pair *p, unsigned side)
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
	for (struct proxy_pair *p = x->pairs; p < x->pairs + PAIRS; p++)
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
		for (struct proxy_pair *p = x->pairs; p < x->pairs + PAIRS; p++)
			if (p->open)
				serve(x, p);
		for (unsigned i = 0; i < x->n_gates; i++)
			if (x->fds[1 + i].revents)
				let_in(x, i);
		let_in_joined(x);
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
	(void)slu_fail(err, SLU_EDOWN, "cannot open a port for a proxy: %m");
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
	return x->running ? 0 : slu_fail(err, SLU_ENOMEM, "cannot start a thread for a proxy: %m");
}

static void
set_store(struct proxy *x, const char *store)
{
	const char *const colon = store[0] == '/' ? NULL : strrchr(store, ':');
	char host[INET_ADDRSTRLEN] = "";

	if (!colon) {
		x->store.path.sun_family = AF_UNIX;
		(void)snprintf(x->store.path.sun_path, sizeof x->store.path.sun_path, "%s", store);
		x->store_size = sizeof x->store.path;
		return;
	}
	(void)snprintf(host, sizeof host, "%.*s", (int)(colon - store), store);
	x->store.port = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10)) };
	(void)inet_pton(AF_INET, host, &x->store.port.sin_addr);
	x->store_size = sizeof x->store.port;
}

int
proxy_open(struct proxy **out, const char *store, unsigned n_gates, struct slu_err *err)
{
	struct proxy *x = mem_zalloc(sizeof *x);
	int rc;

	*out = NULL;
	if (!x)
		return slu_fail(err, SLU_ENOMEM, "no memory for a proxy");
	pthread_mutex_init(&x->mtx, NULL); /* cannot fail without attributes */
	if (store)
		set_store(x, store);
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
	let_in_joined(p);
	for (unsigned i = 0; i < PAIRS; i++)
		if (p->pairs[i].open)
			pair_close(&p->pairs[i]);
	for (unsigned i = 0; i < p->n_gates; i++)
		close(p->gates[i]);
	if (p->wake >= 0)
		close(p->wake);
	pthread_mutex_destroy(&p->mtx);
	mem_free(p);
}

void
proxy_join(struct proxy *p, unsigned gate, int node, int other)
{
	pthread_mutex_lock(&p->mtx);
	if (p->n_came < CAME_MAX) {
		p->came[p->n_came].gate = gate;
		p->came[p->n_came].node = node;
		p->came[p->n_came++].other = other;
	} else {
		close(node);
		close(other);
	}
	pthread_mutex_unlock(&p->mtx);
	(void)eventfd_write(p->wake, 1);
}

unsigned
proxy_port(const struct proxy *p, unsigned gate)
{
	struct sockaddr_in here = { 0 };
	socklen_t n = sizeof here;

	(void)getsockname(p->gates[gate], (struct sockaddr *)&here, &n); /* the socket is bound */
	return ntohs(here.sin_port);
}

void
proxy_cut(struct proxy *p, unsigned gate, enum proxy_cut how)
{
	atomic_store(&p->cuts[gate], how);
	(void)eventfd_write(p->wake, 1);
}
