/*
 * server.h - a server: some threads, some addresses, some protocols.
 *
 *      address ──┬─> front: loop, connections ─┬─> protocol ──> handler(exchange)
 *                ├─> front                     │
 *                └─> front                     └─ one front per thread
 *
 *         const struct server_protocol http[] = { { &http_protocol, &http_conf } };
 *         struct server_conf conf = { .protocols = http, .n_protocols = 1 };
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
 * A connection, and all its exchanges, stay with the thread that accepted it.
 *
 *  SERVER-1   The exchanges of a connection begin in the order of their requests and are
 *             answered in that order. At most `max_pipeline` are unanswered. The bytes
 *             behind them are not parsed, and beyond a small buffer not read.
 *  SERVER-2   Answers that are ready together are sent in one write.
 *  SERVER-3   A request that breaks the rules of its protocol is refused and the
 *             connection closes. The bytes behind it are ignored.
 *  SERVER-4   The beginning of a request (in HTTP: its head) must be whole within
 *             header_timeout of its first byte. The rest of a request, and what a client
 *             reads of an answer, must move min_rate bytes per second, checked each
 *             rate_period. Otherwise the request is refused, if no byte of an answer was
 *             sent, and the connection closes. A connection without exchanges and bytes
 *             closes after idle_timeout, unless its protocol lets it stay. A handler may take any time.
 *  SERVER-5   Beyond max_connections a connection is in reserve: it has one exchange, of
 *             a vital route, and any other is refused, so that an operator always gets
 *             in. Connections to an address with LISTEN_RESERVE may use the reserve as
 *             ordinary ones. Beyond the reserve a connection receives the protocol's
 *             `busy` bytes and closes; under TLS it closes.
 *  SERVER-6   If more than max_output bytes of answers wait for a client to read them,
 *             its connection closes.
 *  SERVER-7   An idle connection has no buffers except its parser's.
 *  SERVER-8   While requests and answers of unfinished exchanges take more than max_bodies
 *             (each thread has its share), an exchange that is being read is refused,
 *             unless it is the only one or `exempt`. Answers under 16 KiB do not count.
 *  SERVER-9   Under TLS all of this holds for the plain bytes. The handshake must be done
 *             within header_timeout. An end that TLS did not announce is a hang-up.
 *  SERVER-10  Between server_hold and server_release a request waits behind its head,
 *             unless its protocol lets it pass: it was admitted, and nothing of its body is
 *             parsed. After start_wait it is refused. If its client closes its side
 *             meanwhile, it is dropped, unless the client has sent more than is read ahead
 *             (CONN_HELD). The bytes that are read count for SERVER-8.
 */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include "net/exchange.h"

#include <sluice/err.h>
#include <sluice/log.h>

struct protocol;
struct server;
struct tls_context;

enum {
	SERVER_PROTOCOLS = 4 /* at most */
};

struct server_protocol {
	const struct protocol *ops; /* net/protocol.h */
	const void *conf;           /* the protocol's own */
};

/* Zero is the default everywhere. What is pointed to must outlive the server. */
struct server_conf {
	const struct server_protocol *protocols; /* the first one serves plain addresses */
	unsigned n_protocols;
	void *arg;                  /* for handlers */
	void (*dismiss)(void *who); /* releases exchange.who; on the loop */

	unsigned threads;         /* 1; at most 64 */
	unsigned max_connections; /* 50,000, of all threads; fewer if files run out */
	unsigned reserve;         /* 16: SERVER-5 */
	unsigned max_pipeline;    /* 64 */
	size_t max_output;        /* 64 MiB */
	size_t max_bodies;        /* 256 MiB: SERVER-8 */
	slu_time header_timeout;  /* 10 s */
	slu_time idle_timeout;    /* 75 s */
	slu_time rate_period;     /* 10 s */
	size_t min_rate;          /* 512 bytes per second */
	slu_time start_wait;      /* SERVER-10; 30 s */
	slu_time linger;          /* 2 s: for a client to read the last answer */

	const char *metrics_prefix; /* "sluice_http_" */
	struct slu_log *log;
};

/* No thread and no address yet. Returns SLU_ENOMEM, SLU_EDOWN, SLU_EINVAL. */
int server_open(struct server **out, const struct server_conf *conf,
		struct slu_err *err);

enum {
	LISTEN_RESERVE = 1 /* connections to this address may use the reserve */
};

/* The TLS settings of connections from now on; needed before the first address with TLS
 * (net/tls_context.h). Holds x. Any thread. */
void server_set_tls(struct server *s, struct tls_context *x);

/* Before server_start, for each address: net/listen.h has the forms. Its scheme chooses
 * the protocol. */
int server_listen(struct server *s, const char *address, unsigned flags,
		  struct slu_err *err);

int server_start(struct server *s, struct slu_err *err);

/* SERVER-10: before server_start; then once, from any thread, before server_stop. */
void server_hold(struct server *s);
void server_release(struct server *s);

/* By hand, instead of server_start: every thread does its next turn, here. Returns what
 * loop_round returns. */
bool server_round(struct server *s);

/* Where the i-th address can be reached, with its real port; NULL behind the last:
 * "http://127.0.0.1:7171", "unix:/run/sluice.sock". */
const char *server_address(const struct server *s, unsigned i);
unsigned server_port(const struct server *s, unsigned i); /* 0 for unix sockets */

/* Another process will serve the same sockets: accept no more connections, and let every
 * answer be the last of its connection. server_stop follows. Any thread; once. */
void server_hand_over(struct server *s);

/* Accept no more connections, close idle ones, answer what runs. After grace close the
 * rest, and `gone` runs for their exchanges. Returns when all exchanges have returned
 * (EXCHANGE-2) and the threads have ended: the number of connections that were closed with
 * exchanges unanswered. Not from a handler. */
unsigned server_stop(struct server *s, slu_time grace);

/* Calls run(arg) on every network thread, and returns after all calls: to change what only
 * these threads may use. Between server_start and server_stop, not from a handler. */
void server_each(struct server *s, void (*run)(void *arg), void *arg);

/* Ask all network threads for a sign of life. Returns false if a thread has not answered
 * the call before. Returns at once; one caller, between server_start and server_stop. */
bool server_alive(struct server *s);

/* Stops at once if still running. NULL is fine. */
void server_close(struct server *s);

/* New values for max_connections and max_bodies; 0: the default. What is there stays. Any
 * thread. */
void server_set_limits(struct server *s, unsigned max_connections, size_t max_bodies);

/* The shared state of a protocol of this server: protocol.open. */
void *server_protocol_state(const struct server *s, const struct protocol *p);

/* Append the metrics of the server and of its protocols, as Prometheus text. Any
 * thread. */
void server_metrics(struct server *s, struct buf *out);

/* The rows of the metrics, for a caller that wants one number. */
enum server_metric {
	SERVER_CONNECTIONS,  /* open now */
	SERVER_ACCEPTED,     /* connections so far */
	SERVER_TURNED_AWAY,  /* SERVER-5 */
	SERVER_CALLS,        /* exchanges being read, run or answered now */
	SERVER_RECEIVED,     /* bytes */
	SERVER_SENT,         /* bytes */
	SERVER_TIMEOUTS,     /* SERVER-4, without idle ones */
	SERVER_PARSE_ERRORS, /* SERVER-3 */
	SERVER_SLOW_READERS, /* SERVER-6 */
	SERVER_HANG_UPS,     /* connections closed with exchanges unanswered */
	SERVER_UNSENT,       /* answers that the kernel did not get whole */
	SERVER_BODIES,       /* bytes of requests that are held now */
	SERVER_ANSWERS,      /* bytes of answers that are held now: SERVER-8 */
	SERVER_NO_MEMORY,    /* SERVER-8: refused */
	SERVER_TOO_LARGE,    /* requests refused for their size */
	SERVER_HANDSHAKES,
	SERVER_HANDSHAKES_FAILED,
	SERVER_METRICS
};

int64_t server_metric(const struct server *s, enum server_metric row);

#endif
