/*
 * peernet.c - the thread of all links: polls, ticks.
 */
#include "peer/peernet_private.h"

#include "base/clock.h"
#include "net/listen.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

slu_time
peernet_now(void)
{
	return clock_mono(&clock_system);
}

void
peernet_wake(const struct peernet *p)
{
	const uint64_t one = 1;

	(void)!write(p->wake, &one, sizeof one); /* a full counter wakes, too */
}

#define STOP_TIME (2 * SLU_SEC) /* PEERNET-5 */

/* ---- The thread ---- */

/* What poll waits for. */
struct polled {
	struct pollfd fds[2 + 2 * PEERNET_LINKS];
	struct peersock *socks[2 + 2 * PEERNET_LINKS];
	unsigned n;
	slu_time until;
};

static void
watch(struct polled *w, int fd, short events, struct peersock *s)
{
	w->fds[w->n] = (struct pollfd){ .fd = fd, .events = events };
	w->socks[w->n++] = s;
}

static void
watch_sock(struct polled *w, struct peersock *s)
{
	const slu_time at = link_tick(&s->link, peernet_now());

	if (s->fd >= 0)
		peersock_write(s);
	w->until = at < w->until ? at : w->until;
	if (s->link.state == LINK_BROKEN)
		w->until = 0;
	if (s->fd < 0)
		return; /* its host is looked up */
	watch(w, s->fd, s->connecting ? POLLOUT : peersock_has_bytes(s) ? POLLIN | POLLOUT
									: POLLIN,
	      s);
}

static void
watch_all(struct peernet *p, struct polled *w)
{
	w->n = 0;
	w->until = SLU_NEVER;
	watch(w, p->wake, POLLIN, NULL);
	if (p->listener >= 0 && p->n_guests < PEERNET_LINKS)
		watch(w, p->listener, POLLIN, NULL);
	LIST_EACH(n, &p->callees)
		watch_sock(w, &CONTAINER(n, struct peer_callee, node)->sock);
	LIST_EACH(n, &p->guests)
		watch_sock(w, &CONTAINER(n, struct peer_guest, node)->sock);
}

static int
timeout_of(slu_time until)
{
	const slu_time left = until == SLU_NEVER ? SLU_SEC : until - peernet_now();

	return left <= 0 ? 0 : left > SLU_SEC ? 1000
					      : (int)(left / SLU_MS) + 1;
}

static void
take_ready(struct polled *w)
{
	uint64_t news;

	if (w->fds[0].revents)
		(void)!read(w->fds[0].fd, &news, sizeof news); /* any number of wake-ups */
	for (unsigned i = 1; i < w->n; i++) {
		struct peersock *const s = w->socks[i];

		if (!s || !w->fds[i].revents)
			continue;
		if (s->connecting)
			peersock_connected(s);
		else if (w->fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			peersock_read(s);
	}
}

static bool
is_stopping(struct peernet *p)
{
	bool stopping;

	pthread_mutex_lock(&p->mtx);
	stopping = p->stopping;
	pthread_mutex_unlock(&p->mtx);
	return stopping;
}

static void
accept_guests(struct peernet *p)
{
	int fd = -1, on = 1;

	while (p->listener >= 0 && p->n_guests < PEERNET_LINKS &&
	       (fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* only slower without */
		peernet_add_guest(p, fd);
	}
}

static void
turn(struct peernet *p, struct polled *w)
{
	watch_all(p, w);
	if (poll(w->fds, w->n, timeout_of(w->until)) > 0)
		take_ready(w);
	if (w->n > 1 && w->fds[1].revents && !w->socks[1]) /* the listener, if it is watched */
		accept_guests(p);
	peernet_connect_found(p);
	peernet_step(p);
}

/* A caller closes its link when it has all answers. */
static bool
has_callers(const struct peernet *p)
{
	bool found = false;

	LIST_EACH(n, &p->guests)
		found |= link_is_open(&CONTAINER(n, struct peer_guest, node)->sock.link);
	return found;
}

/* PEERNET-5 */
static void
finish(struct peernet *p, struct polled *w)
{
	const slu_time until = peernet_now() + STOP_TIME;

	close(p->listener);
	p->listener = -1;
	LIST_EACH(n, &p->guests)
		link_stop(&CONTAINER(n, struct peer_guest, node)->sock.link);
	do
		turn(p, w);
	while (has_callers(p) && peernet_now() < until);
}

static void *
work(void *arg)
{
	struct peernet *const p = arg;
	struct polled *const w = mem_zalloc(sizeof *w);

	while (w && !is_stopping(p))
		turn(p, w);
	peernet_calls_end(p);
	if (w)
		finish(p, w);
	peernet_guests_tidy(p, true);
	while (w && p->serving > 0) { /* PEERNET-5 */
		watch_all(p, w);
		(void)poll(w->fds, 1, 1000); /* the broker answers all */
		take_ready(w);
		peernet_answer(p);
	}
	mem_free(w);
	return NULL;
}

/* ---- For other threads ---- */

static void
stop(void *arg)
{
	struct peernet *const p = arg;

	pthread_mutex_lock(&p->mtx);
	p->stopping = true;
	pthread_mutex_unlock(&p->mtx);
	peernet_wake(p);
	if (p->started) {
		pthread_join(p->thread, NULL);
		helper_stop(&p->reader);
		helper_stop(&p->resolver);
		peernet_connect_found(p); /* frees them: no callee is left */
	}
	p->started = false;
}

static int
listen_on(struct peernet *p, const char *address, struct slu_err *err)
{
	struct listener l = { 0 };
	const int rc = listener_open(&l, "peer", address, 1, err);

	if (rc)
		return rc;
	p->port = l.port;
	p->listener = listener_take(&l, 0);
	listener_close(&l);
	if (p->port == 0)
		return slu_fail(err, SLU_EINVAL, "--listen %s: expected a host and a port", address);
	if (listen(p->listener, 64))
		return slu_fail(err, SLU_EDOWN, "--listen %s: %m", address);
	return 0;
}

int
peernet_open(struct peernet **out, const struct peernet_conf *conf, struct slu_err *err)
{
	struct peernet *const p = mem_zalloc(sizeof *p);

	*out = p;
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	p->log = conf->log;
	p->secret = conf->secret;
	p->tls = conf->tls;
	p->tls_room = p->tls ? tls_room_new() : NULL;
	memcpy(p->life, conf->life, HELLO_LIFE);
	p->lanes = conf->lanes;
	p->listener = -1;
	pthread_mutex_init(&p->mtx, NULL); /* cannot fail with these attributes */
	list_init(&p->asks);
	list_init(&p->cancels);
	list_init(&p->done);
	list_init(&p->found);
	list_init(&p->callees);
	list_init(&p->guests);
	peernet_call_init(p);
	p->remote.stop = stop;
	p->targets = mem_array(conf->lanes, sizeof *p->targets);
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!p->targets || (p->tls && !p->tls_room))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (p->wake < 0)
		return slu_fail(err, SLU_EDOWN, "eventfd: %m");
	return listen_on(p, conf->address, err);
}

unsigned
peernet_port(const struct peernet *p)
{
	return p->port;
}

const struct broker_remote *
peernet_remote(const struct peernet *p)
{
	return &p->remote;
}

int
peernet_start(struct peernet *p, struct broker *b, struct slu_err *err)
{
	p->broker = b;
	helper_init(&p->reader, "peers-read", PEERNET_READERS);
	helper_init(&p->resolver, "peers-lookup", PEERNET_LOOKUPS);
	if (pthread_create(&p->thread, NULL, work, p))
		return slu_fail(err, SLU_EDOWN, "cannot start a thread for links to other nodes");
	p->started = true;
	pthread_setname_np(p->thread, "peers");
	return 0;
}

void
peernet_set_owner(struct peernet *p, uint32_t lane, const struct peernet_owner *owner)
{
	struct peer_target *const t = &p->targets[lane];
	struct peer_target seen = { .epoch = owner->epoch };

	if (lane >= p->lanes)
		return;
	memcpy(seen.life, owner->life, HELLO_LIFE);
	if (owner->host && strlen(owner->host) < sizeof seen.host) {
		memcpy(seen.host, owner->host, strlen(owner->host) + 1);
		seen.port = owner->port;
	}
	pthread_mutex_lock(&p->mtx);
	target_set(t, &seen);
	pthread_mutex_unlock(&p->mtx);
}

void
peernet_close(struct peernet *p)
{
	if (!p)
		return;
	stop(p);
	if (p->listener >= 0)
		close(p->listener);
	if (p->wake >= 0)
		close(p->wake);
	tls_room_free(p->tls_room);
	mem_free(p->targets);
	pthread_mutex_destroy(&p->mtx);
	mem_free(p);
}
