/*
 * server.h - an HTTP/1.1 server: routes, some threads, some addresses.
 *
 *      address ──┬─> front: loop, connections ─┬─> route ──> handler(call)
 *                ├─> front                     │
 *                └─> front                     └─ one front a thread
 *
 *         static const struct route routes[] = {
 *                 { "GET", "/healthz", healthz, .max_body = 0 },
 *         };
 *         struct server_conf conf = { .routes = routes, .n_routes = 1 };
 *         struct server *srv;
 *
 *         server_open(&srv, &conf, &err);
 *         server_listen(srv, "127.0.0.1:0", 0, &err);
 *         server_start(srv, &err);
 *         puts(server_address(srv, 0));               http://127.0.0.1:40123
 *         ...
 *         server_stop(srv, 10 * SLU_SEC);
 *         server_close(srv);
 *
 * A connection stays with the thread that accepted it, and so do its calls.
 *
 *  S1  Calls of a connection begin in the order they were sent and are answered in
 *      that order. At most `max_pipeline` are unanswered; what comes behind is not
 *      parsed, and beyond a small buffer not read.
 *  S2  Answers that are ready together leave in one write.
 *  S3  Whatever breaks the rules of HTTP is answered with its status (request.h) and
 *      the connection closes; nothing behind it is looked at.
 *  S4  A head must be whole within header_timeout of its first byte. A body, and what
 *      a client reads of an answer, must move min_rate bytes a second, looked at each
 *      rate_period. Else 408 where nothing of an answer was sent, and close. A
 *      connection without calls and bytes is closed after idle_timeout. A call that a
 *      handler has may take as long as it likes.
 *  S5  Beyond max_connections a connection is one of the reserve: it has one call, of a
 *      route that is `vital`, and is answered 503 for any other, so that an operator
 *      gets in whatever happens. Connections to an address with LISTEN_RESERVE are as
 *      any other there. Beyond the reserve they are answered 503 and closed;
 *      under TLS they are closed.
 *  S6  When more than max_output bytes of answers wait for a client to read them, it
 *      is closed.
 *  S7  An idle connection has no buffers beyond its parser's.
 *  S8  While the bodies and the answers of calls that have not ended take more than max_bodies
 *      (each thread has its share), a call that is being read is answered 503, unless it is
 *      the only one, or its route `settles`, or is `vital` and not `alone` (its answers are
 *      small). Answers under 16 KiB are not counted.
 *  S9  Under TLS all of this holds for the plain bytes. The handshake must be done
 *      within header_timeout. An end that TLS did not announce is a hang-up.
 *  S10 Between server_hold and server_release a request whose route is not `early` waits behind
 *      its head: it was admitted, and nothing of its body is parsed. After start_wait it is
 *      answered 503 `starting`. One whose client closes its side meanwhile is dropped, unless
 *      it has sent more than is read ahead (CONN_HELD). What is read counts for S8.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "http/call.h"
#include "http/route.h"

#include <sluice/log.h>

struct server;
struct tls_context;

/* Zero is the default everywhere. What is pointed to must outlive the server. */
struct server_conf {
	const struct route *routes;
	unsigned n_routes;
	void *arg; /* given to every handler */

	/* Asked when the head of a request is there, before its body is read; everything of
	 * the call but its body may be read. False: it has answered. On the loop. What it
	 * puts into call->who it has back by dismiss. NULL: all are admitted. */
	bool (*admit)(struct call *c, void *arg);
	void (*dismiss)(void *who); /* on the loop; only for calls that have a `who` */

	/* Writes the body of an answer that the server gives by itself; describe_type is
	 * its content type. NULL: "404 Not Found: no such path\n" as text/plain. On the
	 * loop. method and path are empty when there were none. reason is a word for
	 * machines. */
	void (*describe)(struct buf *out, unsigned status, const char *reason,
			 struct slice method, struct slice path, void *arg);
	const char *describe_type;

	/* Asked before describe when no route has the path, as if it were a handler without a
	 * route: writes an answer of 404 to c->out and returns its content type, or returns NULL
	 * and has written nothing. NULL: not asked. */
	const char *(*page)(struct call *c, void *arg);

	unsigned threads;                    /* 1; at most 64 */
	unsigned max_connections;            /* 50,000, of all threads; fewer when files run out */
	unsigned reserve;                    /* 16: S5 */
	unsigned max_pipeline;               /* 64 */
	size_t max_output;                   /* 64 MiB */
	size_t max_bodies;                   /* 256 MiB: S8 */
	slu_time header_timeout;             /* 10 s */
	slu_time idle_timeout;               /* 75 s */
	slu_time rate_period;                /* 10 s */
	size_t min_rate;                     /* 512 bytes a second */
	slu_time start_wait;                 /* S10; 30 s */
	slu_time linger;                     /* 2 s: for a client to read the last answer */
	const struct request_limits *limits; /* request_limits_default */

	const char *metrics_prefix; /* "sluice_http_" */
	struct slu_log *log;
};

/* No thread, no address yet. SLU_ENOMEM, SLU_EDOWN, SLU_EINVAL. */
int server_open(struct server **out, const struct server_conf *conf,
		struct slu_err *err);

enum {
	LISTEN_RESERVE = 1 /* connections to this address may use the reserve */
};

/* What connections that come from now on use, at addresses that speak TLS; needed
 * before the first of these (net/tls_context.h). Holds x. Any thread. */
void server_set_tls(struct server *s, struct tls_context *x);

/* Before server_start, for each address: net/listen.h has the spellings. */
int server_listen(struct server *s, const char *address, unsigned flags,
		  struct slu_err *err);

int server_start(struct server *s, struct slu_err *err);

/* S10: before server_start; then once, from any thread, before server_stop. */
void server_hold(struct server *s);
void server_release(struct server *s);

/* By hand, instead of server_start: every thread does its next turn, here. What it
 * returns is what loop_round does. */
bool server_round(struct server *s);

/* Where the i-th address can be reached, with its real port; NULL behind the last:
 * "http://127.0.0.1:7171", "unix:/run/sluice.sock". */
const char *server_address(const struct server *s, unsigned i);
unsigned server_port(const struct server *s, unsigned i); /* 0 for unix sockets */

/* Another process will serve the same sockets: take no more connections, and let every answer
 * be the last of its connection. server_stop follows. Any thread; once. */
void server_hand_over(struct server *s);

/* Take no more connections, close idle ones, answer what runs; after grace close the
 * rest, whose calls are then told `gone`. Returns when all calls have come back (C2)
 * and the threads have ended: how many connections were closed with calls unanswered.
 * Not from a handler. */
unsigned server_stop(struct server *s, slu_time grace);

/* Call run(arg) on every network thread, and return when all have done so: to change
 * what only they may touch. Between server_start and server_stop, not from a handler. */
void server_each(struct server *s, void (*run)(void *arg), void *arg);

/* Ask all network threads for a sign of life. False: one has not answered what was asked
 * the last time. Returns at once; one caller, between server_start and server_stop. */
bool server_alive(struct server *s);

/* Stops at once if still running. NULL is fine. */
void server_close(struct server *s);

/* Other values for max_connections and max_bodies, from now on; 0: the default. What
 * is there stays. Any thread. */
void server_set_limits(struct server *s, unsigned max_connections, size_t max_bodies);

/* Append the server's metrics as Prometheus text. Any thread. */
void server_metrics(struct server *s, struct buf *out);

/* The rows of the metrics, for who wants one number. */
enum server_metric {
	SERVER_CONNECTIONS,  /* open now */
	SERVER_ACCEPTED,     /* connections so far */
	SERVER_TURNED_AWAY,  /* S5 */
	SERVER_CALLS,        /* being read, run or answered now */
	SERVER_RECEIVED,     /* bytes */
	SERVER_SENT,         /* bytes */
	SERVER_TIMEOUTS,     /* S4, without idle ones */
	SERVER_PARSE_ERRORS, /* S3 */
	SERVER_SLOW_READERS, /* S6 */
	SERVER_HANG_UPS,     /* connections closed with calls unanswered */
	SERVER_UNSENT,       /* answers that did not reach the kernel whole */
	SERVER_BODIES,       /* bytes of them that are held now */
	SERVER_ANSWERS,      /* the same of answers: S8 */
	SERVER_NO_MEMORY,    /* S8: refused */
	SERVER_TOO_LARGE,    /* 413 */
	SERVER_HANDSHAKES,
	SERVER_HANDSHAKES_FAILED,
	SERVER_METRICS
};

int64_t server_metric(const struct server *s, enum server_metric row);

/* Requests answered so far with a status of this class: 2 for 2xx, up to 5. */
int64_t server_answered(const struct server *s, unsigned status_class);

#endif
