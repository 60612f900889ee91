/*
 * server_fixture.h - a server on a port of its own, and clients that send any bytes. The harness closes
 * both after a test.
 *
 * Handlers of the fixture:
 *      GET  /healthz       "ok\n", at once
 *      POST /echo          its body, at once; at most ECHO_MAX bytes
 *      GET  /wait?X        answered with X when the test says so (fx_release)
 *      GET  /hold          the same, and parses nothing behind it
 *      GET  /claim         the same as /wait, and wants its client to be there
 *      POST /keep          as /wait, with a body
 *      POST /settle        as /echo, and settles
 *      GET  /thread?X      answered with X by another thread
 *      GET  /big           BIG_ANSWER bytes
 *      GET  /below/...     its path
 *      GET  /who           the subject of the client's certificate, or "nobody"
 *      GET  /stream?N      N pieces of PIECE bytes, `a`, then `b`, ...; wants its client
 *                          to be there
 *      GET  /apart?N       the same, each piece by another thread
 *      GET  /break?N       the same, and then breaks
 */
#ifndef TESTS_SERVER_FIXTURE_H
#define TESTS_SERVER_FIXTURE_H

#include "test.h"

#include "base/mem.h"
#include "http/http.h"
#include "net/listen.h"
#include "net/tls_context.h"
#include "net/tls_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* How a request ends that may be followed by another, and the last one. */
#define END "\r\nHost: h\r\n\r\n"
#define BYE "\r\nHost: h\r\nConnection: close\r\n\r\n"

enum {
	ECHO_MAX = 200000,
	BIG_ANSWER = 8 << 20,
	PIECE = 64 << 10,
	KEPT_MAX = 2048
};

/* A call that waits for the test. */
struct kept_call {
	struct call *call;
	char text[64];
	_Atomic int gone;
	_Atomic int ended;     /* 1: sent, 2: not sent */
	_Atomic unsigned made; /* pieces of a stream */
};

static struct server_fixture {
	struct server *srv;
	unsigned port;
	struct http_conf http;            /* routes NULL: those below */
	struct server_protocol protocol;  /* HTTP with `http` */
	struct tls_context *tls;          /* NULL: it listens without */
	void (*gone)(struct exchange *x); /* of /claim, instead of fx_gone */
	struct kept_call kept[KEPT_MAX];
	_Atomic unsigned n_kept;
	pthread_mutex_t mtx;  /* a zeroed one is fine here */
	int dialed[KEPT_MAX]; /* connections of the test that are not closed */
	unsigned n_dialed;
} fx;

static inline void
fx_healthz(struct call *c, void *arg)
{
	(void)arg;
	call_answer_text(c, 200, "text/plain", SLICE("ok\n"));
}

static inline void
fx_echo(struct call *c, void *arg)
{
	const struct slice tag = call_field(c, "x-tag");
	struct buf body;

	(void)arg;
	buf_init(&body, ECHO_MAX);
	buf_put(&body, c->body.p, c->body.n);
	if (tag.p)
		(void)call_add(c, "x-tag", tag);
	call_answer(c, 200, NULL, &body);
}

static inline void
fx_ended(struct exchange *x, bool sent)
{
	struct kept_call *k = x->user;

	CHECK_EQ(0, atomic_exchange(&k->ended, sent ? 1 : 2));
}

static inline void
fx_gone(struct exchange *x)
{
	struct kept_call *k = x->user;

	CHECK_EQ(0, atomic_fetch_add(&k->gone, 1), "gone is told once");
	CHECK_EQ(0, atomic_load(&k->ended));
}

/* Two loops may do so at once. */
static inline struct kept_call *
fx_keep(struct call *c, void (*gone)(struct exchange *x))
{
	struct kept_call *k;

	pthread_mutex_lock(&fx.mtx);
	CHECK(atomic_load(&fx.n_kept) < KEPT_MAX);
	k = &fx.kept[atomic_load(&fx.n_kept)];
	k->call = c;
	(void)snprintf(k->text, sizeof k->text, "%.*s", (int)c->query.n,
		       c->query.n ? c->query.p : "");
	c->x.user = k;
	c->x.gone = gone;
	c->x.ended = fx_ended;
	atomic_fetch_add(&fx.n_kept, 1);
	pthread_mutex_unlock(&fx.mtx);
	return k;
}

static inline void
fx_wait(struct call *c, void *arg)
{
	(void)arg;
	fx_keep(c, NULL);
}

static inline void
fx_hold(struct call *c, void *arg)
{
	(void)arg;
	exchange_hold(&c->x);
	fx_keep(c, NULL);
}

static inline void
fx_claim(struct call *c, void *arg)
{
	(void)arg;
	fx_keep(c, fx.gone ? fx.gone : fx_gone);
}

static inline void *
fx_thread_answer(void *arg)
{
	struct kept_call *k = arg;

	call_answer_text(k->call, 200, NULL, slice_of(k->text));
	return NULL;
}

static inline void
fx_thread(struct call *c, void *arg)
{
	struct kept_call *k = fx_keep(c, NULL);
	pthread_t t;

	(void)arg;
	CHECK_EQ(0, pthread_create(&t, NULL, fx_thread_answer, k));
	pthread_detach(t);
}

static inline void
fx_big(struct call *c, void *arg)
{
	struct buf body;

	(void)arg;
	buf_init(&body, BIG_ANSWER);
	body.p = mem_zalloc(BIG_ANSWER + 1);
	body.size = BIG_ANSWER + 1;
	body.n = BIG_ANSWER;
	body.failed = !body.p;
	call_answer(c, 200, NULL, &body);
}

static inline void
fx_below(struct call *c, void *arg)
{
	(void)arg;
	call_answer_text(c, 200, NULL, c->path);
}

static inline void
fx_who(struct call *c, void *arg)
{
	const struct tls_peer *const peer = exchange_peer(&c->x);

	(void)arg;
	call_answer_text(c, 200, NULL, slice_of(peer ? peer->subject : "nobody"));
}

/* The next piece, or the end. */
static inline void
fx_piece(struct call *c)
{
	struct kept_call *k = c->x.user;
	const unsigned n = (unsigned)atoi(k->text);
	const unsigned i = atomic_load(&k->made);

	if (i == n && strcmp(c->route->path, "/break") == 0) {
		exchange_break(&c->x);
		return;
	}
	for (unsigned j = 0; i < n && j < PIECE; j++)
		buf_putc(&c->x.out, (char)('a' + i % 26));
	atomic_fetch_add(&k->made, 1);
	if (i >= n)
		CHECK_EQ(0, call_add(c, "X-Pieces", slice_of(k->text)));
	exchange_piece(&c->x, i >= n);
}

static inline void *
fx_piece_apart(void *arg)
{
	fx_piece(arg);
	return NULL;
}

static inline void
fx_more(struct exchange *x)
{
	struct call *const c = call_of(x);
	pthread_t t;

	if (strcmp(c->route->path, "/apart") != 0) {
		fx_piece(c);
		return;
	}
	CHECK_EQ(0, pthread_create(&t, NULL, fx_piece_apart, c));
	pthread_detach(t);
}

static inline void
fx_stream(struct call *c, void *arg)
{
	(void)arg;
	fx_keep(c, fx_gone);
	c->x.more = fx_more;
	call_begin(c, 200, "text/plain");
}

static const struct route fx_routes[] = {
	{ "GET", "/healthz", fx_healthz, .vital = true },
	{ "POST", "/echo", fx_echo, .max_body = ECHO_MAX },
	{ "GET", "/wait", fx_wait, .no_head = true },
	{ "GET", "/hold", fx_hold, .max_body = 0 },
	{ "GET", "/claim", fx_claim, .max_body = 0 },
	{ "POST", "/claim", fx_claim, .max_body = 10 },
	{ "POST", "/keep", fx_wait, .max_body = ECHO_MAX },
	{ "POST", "/settle", fx_echo, .max_body = ECHO_MAX, .settles = true },
	{ "GET", "/thread", fx_thread, .max_body = 0 },
	{ "GET", "/big", fx_big, .max_body = 0 },
	{ "GET", "/below/", fx_below, .below = true },
	{ "GET", "/who", fx_who, .max_body = 0 },
	{ "GET", "/stream", fx_stream, .max_body = 0 },
	{ "GET", "/apart", fx_stream, .max_body = 0 },
	{ "GET", "/break", fx_stream, .max_body = 0 },
};

/* Closes a connection that was dialed. */
static inline void
hang_up(int fd)
{
	for (unsigned i = 0; i < fx.n_dialed; i++)
		if (fx.dialed[i] == fd)
			fx.dialed[i] = fx.dialed[--fx.n_dialed];
	close(fd);
}

static inline void
fx_close(void)
{
	server_close(fx.srv);
	fx.srv = NULL;
}

/* After a test: closes its connections, then the server. */
static inline void
fx_end(void)
{
	while (fx.n_dialed > 0)
		hang_up(fx.dialed[0]);
	fx_close();
}

/* The same with HTTP and the handlers above. */
static inline struct server_conf
fx_conf(struct server_conf conf)
{
	if (!fx.http.routes) {
		fx.http.routes = fx_routes;
		fx.http.n_routes = COUNT(fx_routes);
	}
	fx.protocol = (struct server_protocol){ &http_protocol, &fx.http };
	conf.protocols = &fx.protocol;
	conf.n_protocols = 1;
	conf.arg = &fx;
	return conf;
}

/* Replaces a server that is open. SLU_ENOMEM is an answer; everything else that fails ends the test. */
static inline int
fx_open(struct server_conf conf)
{
	struct slu_err err = { 0 };
	int rc;

	fx_close();
	conf = fx_conf(conf);
	rc = server_open(&fx.srv, &conf, &err);
	if (rc == 0 && fx.tls)
		server_set_tls(fx.srv, fx.tls);
	if (rc == 0)
		rc = server_listen(fx.srv, fx.tls ? "https://127.0.0.1:0" : "127.0.0.1:0", 0,
				   &err);
	if (rc == 0)
		rc = server_start(fx.srv, &err);
	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc, err.text);
		server_close(fx.srv);
		fx.srv = NULL;
		return rc;
	}
	fx.port = server_port(fx.srv, 0);
	return 0;
}

/* Answer the i-th call that was kept, from here. */
static inline void
fx_release(unsigned i)
{
	WAIT_UNTIL(atomic_load(&fx.n_kept) > i);
	call_answer_text(fx.kept[i].call, 200, "text/plain",
			 slice_of(fx.kept[i].text));
}

/* --- clients ------------------------------------------------------------------- */

static inline int
dial(void)
{
	const struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)fx.port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(0, connect(fd, (const struct sockaddr *)&sa, sizeof sa));
	CHECK(fx.n_dialed < KEPT_MAX);
	fx.dialed[fx.n_dialed++] = fd;
	return fd;
}

/* A server that has closed is no failure: what it said first is looked at later. */
static inline void
send_bytes(int fd, const char *p, size_t n)
{
	while (n > 0) {
		const ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k <= 0)
			return;
		p += k;
		n -= (size_t)k;
	}
}

static inline void
send_text(int fd, const char *s)
{
	send_bytes(fd, s, strlen(s));
}

/* All that comes until text has stood in it `times`, or the end. Terminated. */
static inline char *
recv_until(int fd, const char *text, unsigned times)
{
	static char got[1 << 20];
	size_t n = 0;

	for (;;) {
		unsigned seen = 0;
		ssize_t k;

		got[n] = '\0';
		for (const char *p = got; text && (p = strstr(p, text)); p++)
			seen++;
		if (text && seen >= times)
			return got;
		k = recv(fd, got + n, sizeof got - 1 - n, 0);
		if (k <= 0)
			return got;
		n += (size_t)k;
	}
}

static inline char *
recv_all(int fd)
{
	return recv_until(fd, NULL, 0);
}

static inline bool
is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

/* One request on a connection of its own, all of the answer. */
static inline char *
ask(const char *request)
{
	const int fd = dial();
	char *got;

	send_text(fd, request);
	got = recv_all(fd);
	hang_up(fd);
	return got;
}

#endif
