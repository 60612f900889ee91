/*
 * peernet_dial.c - finds the host of a callee, and connects.
 */
#include "peer/peernet_private.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

/* flags: of getaddrinfo. */
static void
look_up(struct peer_lookup *l, int flags)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	struct addrinfo *found = NULL;
	char port[16];

	(void)snprintf(port, sizeof port, "%u", l->port);
	l->rc = getaddrinfo(l->host, port, &hints, &found);
	if (l->rc)
		return;
	l->size = found->ai_addrlen;
	memcpy(&l->address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

/* A helper's thread. */
static void
run_lookup(struct helper_job *job)
{
	struct peer_lookup *const l = CONTAINER(job, struct peer_lookup, job);
	struct peernet *const p = l->net;

	look_up(l, 0);
	pthread_mutex_lock(&p->mtx);
	list_append(&p->found, &l->node);
	pthread_mutex_unlock(&p->mtx);
	peernet_wake(p);
}

/* Ends the lookup. */
static void
start_connect(struct peer_callee *c, struct peer_lookup *l)
{
	const struct sockaddr *const to = (const struct sockaddr *)&l->address;
	const int fd = l->rc ? -1 : socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char why[TARGET_HOST + 64];
	int on = 1;

	c->lookup = NULL;
	c->sock.fd = fd;
	c->sock.connecting = true;
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* only slower without */
	if (l->rc)
		(void)snprintf(why, sizeof why, "%.200s: %s", l->host, gai_strerror(l->rc));
	else
		(void)snprintf(why, sizeof why, "%.200s:%u: %m", l->host, l->port);
	if (fd < 0 || (connect(fd, to, l->size) && errno != EINPROGRESS))
		link_lose(&c->sock.link, why);
	mem_free(l);
}

static struct peer_lookup *
next_found(struct peernet *p)
{
	struct peer_lookup *l = NULL;

	pthread_mutex_lock(&p->mtx);
	if (!list_is_empty(&p->found)) {
		l = CONTAINER(p->found.next, struct peer_lookup, node);
		list_remove(&l->node);
	}
	pthread_mutex_unlock(&p->mtx);
	return l;
}

void
peernet_connect_found(struct peernet *p)
{
	struct peer_lookup *l;

	while ((l = next_found(p))) {
		if (l->callee)
			start_connect(l->callee, l);
		else
			mem_free(l);
	}
}

void
peernet_dial(struct peer_callee *c, const struct peer_target *t)
{
	struct peer_lookup *const l = mem_zalloc(sizeof *l);

	if (!l) {
		link_lose(&c->sock.link, "out of memory");
		return;
	}
	*l = (struct peer_lookup){ .job.run = run_lookup, .net = c->net, .callee = c, .port = t->port };
	list_init(&l->node);
	memcpy(l->host, t->host, sizeof l->host);
	c->lookup = l;
	look_up(l, AI_NUMERICHOST);
	if (l->rc)
		helper_post(&c->net->resolver, &l->job);
	else
		start_connect(c, l);
}
