/*
 * proxy.c - passes bytes between clients and a store: simulates a store that is far away, or slow.
 *
 *      far     every answer comes `delay` later; any number may be in flight
 *      slow    every call of the script takes `delay`, one after the other for all clients
 *
 * One thread and poll. A piece waits in the ring of its direction until its time. A direction with a
 * full ring is not read: the kernel then blocks the sender.
 */
#include "base/mem.h"
#include "bench/bench.h"
#include "shards/shardload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PAIRS = 256,
	PIECES = 64,
	PIECE = 64 << 10
};

struct delay_piece {
	slu_time due;
	size_t n, sent;
	char bytes[PIECE];
};

struct delay_way {
	int from, to;
	slu_time delay;
	slu_time *busy;    /* slow, towards the store: until when the store is busy; NULL otherwise */
	unsigned first, n; /* of pieces */
	struct delay_piece *pieces[PIECES];
};

struct delay_pair {
	struct delay_way ways[2]; /* there; and back */
};

struct delay_proxy {
	int listener;
	struct sockaddr_in to;
	slu_time delay;
	bool slow;
	slu_time busy;
	struct delay_pair *pairs[PAIRS];
	unsigned n;
};

/* ---- A pair ---- */

static void
pair_close(struct delay_pair *p)
{
	for (int i = 0; i < 2; i++) {
		close(p->ways[i].from);
		for (unsigned k = 0; k < PIECES; k++)
			mem_free(p->ways[i].pieces[k]);
	}
	mem_free(p);
}

static void
accept_one(struct delay_proxy *x)
{
	const int client = accept4(x->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct delay_pair *p = mem_zalloc(sizeof *p);
	const int one = 1;

	if (client < 0 || server < 0 || !p || x->n == PAIRS ||
	    connect(server, (struct sockaddr *)&x->to, sizeof x->to)) {
		close(client);
		close(server);
		mem_free(p);
		return;
	}
	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	p->ways[0] = (struct delay_way){ .from = client, .to = server };
	p->ways[1] = (struct delay_way){ .from = server, .to = client };
	p->ways[x->slow ? 0 : 1].delay = x->delay;
	p->ways[0].busy = x->slow ? &x->busy : NULL;
	x->pairs[x->n++] = p;
}

/* When a piece that comes now is passed on. */
static slu_time
due_of(const struct delay_way *w, const struct delay_piece *p)
{
	static const char call[] = "EVALSHA\r\n";
	const slu_time now = bench_now();
	const char *at = p->bytes;

	if (!w->busy)
		return now + w->delay;
	if (*w->busy < now)
		*w->busy = now;
	while ((at = memmem(at, (size_t)(p->bytes + p->n - at), call, sizeof call - 1)) != NULL) {
		*w->busy += w->delay;
		at += sizeof call - 1;
	}
	return *w->busy;
}

/* Returns false at the end of the stream. */
static bool
take(struct delay_way *w)
{
	const unsigned at = (w->first + w->n) % PIECES;
	struct delay_piece *p = w->pieces[at];
	ssize_t n;

	if (w->n == PIECES)
		return true;
	if (!p)
		p = w->pieces[at] = mem_alloc(sizeof *p);
	if (!p)
		return false;
	n = recv(w->from, p->bytes, PIECE, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	p->n = (size_t)n;
	p->sent = 0;
	p->due = due_of(w, p);
	w->n++;
	return true;
}

static bool
give(struct delay_way *w, slu_time now)
{
	while (w->n > 0) {
		struct delay_piece *const p = w->pieces[w->first];
		ssize_t n;

		if (p->due > now)
			return true;
		n = send(w->to, p->bytes + p->sent, p->n - p->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		p->sent += (size_t)n;
		if (p->sent < p->n)
			return true;
		w->first = (w->first + 1) % PIECES;
		w->n--;
	}
	return true;
}

/* ---- All of them ---- */

/* What is waited for, and how long at most, in ns. */
static slu_time
watch(const struct delay_proxy *x, struct pollfd *polled)
{
	const slu_time now = bench_now();
	slu_time first = SLU_SEC;

	polled[0] = (struct pollfd){ .fd = x->listener, .events = POLLIN };
	for (unsigned i = 0; i < x->n; i++) {
		for (int k = 0; k < 2; k++) {
			const struct delay_way *const w = &x->pairs[i]->ways[k];
			const struct delay_way *const other = &x->pairs[i]->ways[1 - k];
			const bool ready = other->n > 0 && other->pieces[other->first]->due <= now;

			polled[1 + 2 * i + k] = (struct pollfd){
				.fd = w->from,
				.events = (short)((w->n < PIECES ? POLLIN : 0) | (ready ? POLLOUT : 0)),
			};
			if (w->n > 0 && w->pieces[w->first]->due > now &&
			    w->pieces[w->first]->due - now < first)
				first = w->pieces[w->first]->due - now;
		}
	}
	return first;
}

static bool
serve_pair(struct delay_pair *p, const struct pollfd *polled)
{
	bool open = true;

	for (int k = 0; k < 2 && open; k++) {
		if (polled[k].revents & (POLLIN | POLLHUP | POLLERR))
			open = take(&p->ways[k]);
	}
	for (int k = 0; k < 2 && open; k++)
		open = give(&p->ways[k], bench_now());
	return open;
}

static int
serve(struct delay_proxy *x, struct slu_err *err)
{
	static struct pollfd polled[1 + 2 * PAIRS];

	for (;;) {
		const slu_time wait = watch(x, polled);
		const struct timespec t = { wait / SLU_SEC, wait % SLU_SEC };
		const unsigned n = x->n;

		if (ppoll(polled, 1 + 2 * n, &t, NULL) < 0 && errno != EINTR)
			return slu_fail(err, SLU_EDOWN, "poll: %m");
		for (unsigned i = n; i-- > 0;) {
			if (serve_pair(x->pairs[i], &polled[1 + 2 * i]))
				continue;
			pair_close(x->pairs[i]);
			x->pairs[i] = x->pairs[--x->n];
		}
		if (polled[0].revents)
			accept_one(x);
	}
}

int
shardload_proxy(const struct shardload *o, struct slu_err *err)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *const colon = strrchr(o->to, ':');
	struct delay_proxy *const x = mem_zalloc(sizeof *x);
	socklen_t size = sizeof here;

	if (!x)
		return slu_fail(err, SLU_ENOMEM, "no memory");
	x->delay = o->delay;
	x->slow = o->slow;
	x->to = here;
	x->to.sin_port = htons((uint16_t)strtoul(colon ? colon + 1 : "6379", NULL, 10));
	x->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(x->listener, (struct sockaddr *)&here, sizeof here) || listen(x->listener, 64) ||
	    getsockname(x->listener, (struct sockaddr *)&here, &size))
		return slu_fail(err, SLU_EDOWN, "listen: %m");
	printf("{\"port\":%u}\n", ntohs(here.sin_port));
	(void)fflush(stdout);
	return serve(x, err);
}
