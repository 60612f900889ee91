/*
 * protocol.h - what a protocol does on top of connections: a const table of functions.
 *
 *      bytes ──> parse ──> exchange ──> handler ──> format ──> bytes
 *
 * The server (net/server.h) owns sockets, TLS, threads, deadlines, limits and the order of
 * answers. A protocol finds requests in the bytes of a connection and turns answers into
 * bytes. The scheme of a listener's address chooses the protocol: an address without a
 * scheme has the first one of server_conf.protocols, "NAME://" has NAME, "NAMEs://" has
 * NAME over TLS. http/http.h is the protocol of the APIs; tests/unit/http/test_protocol.c is one
 * of a page.
 *
 * A protocol has a struct for a connection that begins with struct conn, and one for an
 * exchange that begins with struct exchange. Both are zeroed at first. All functions but
 * open, close and metrics run on the thread of the connection.
 */
#ifndef NET_PROTOCOL_H
#define NET_PROTOCOL_H

#include "net/conn.h"

#include <sluice/err.h>

struct server_conf;

/* Why the server refuses a request or a connection by itself. */
enum conn_refusal {
	CONN_SLOW_HEAD, /* the beginning of a request took too long: SERVER-4 */
	CONN_SLOW_BODY, /* the rest of a request took too long: SERVER-4 */
	CONN_STARTING,  /* the server was not ready in time: SERVER-10 */
	CONN_MEMORY,    /* other requests hold the memory: SERVER-8 */
	CONN_PLAIN      /* the address needs TLS, the client did not begin with it */
};

struct protocol {
	const char *name;     /* of its scheme: "http" */
	size_t conn_size;     /* of its struct for a connection */
	size_t exchange_size; /* of its struct for an exchange */
	bool stays;           /* an idle connection stays open: its clients keep it for hours */

	/* The state that all threads share; own is server_protocol.conf. */
	int (*open)(void **shared, const void *own, const struct server_conf *conf);
	void (*close)(void *shared);

	/* The state of one thread, before it starts. NULL: none. */
	int (*thread_open)(void **state, void *shared);
	void (*thread_close)(void *state);

	/* Appends Prometheus text. Any thread. NULL: none. */
	void (*metrics)(void *shared, struct buf *out);

	/* The bytes for a connection that is closed at once: SERVER-5. NULL: none. */
	struct slice (*busy)(const void *shared);

	/* Begin and end of a connection. Returns SLU_ENOMEM. NULL: nothing to do. */
	int (*conn_open)(struct conn *c);
	void (*conn_close)(struct conn *c);

	/* Takes all bytes off c->rest, or stops before a request that conn_may_begin does
	 * not allow yet. The protocol itself keeps the bytes of a request that is not whole
	 * and sets c->begun meanwhile. */
	void (*parse)(struct conn *c);

	/* Can parse take more bytes? NULL: if conn_may_begin is true. */
	bool (*may_parse)(const struct conn *c);

	/* Refuses the request that is being read, or the next one: adds an exchange if
	 * c->reading is NULL, answers it, and sets c->last. */
	void (*refuse)(struct conn *c, enum conn_refusal why);

	/* The server is ready: c->reading, which waited (SERVER-10), goes on. NULL: none. */
	void (*resume)(struct conn *c);

	/* An exchange is new in memory; goes back to the pool; is freed. reset clears the
	 * protocol's members, keeps no buffer above `keep` bytes, and returns the bytes
	 * that it keeps. NULL: the struct has nothing but the exchange. */
	void (*init)(struct exchange *x);
	size_t (*reset)(struct exchange *x, size_t keep);
	void (*release)(struct exchange *x);

	/* The exchange ends; runs before exchange.ended. NULL: none. */
	void (*ended)(struct exchange *x, bool sent);

	/* Writes the beginning of the answer to x->head; x->out is sent behind it if
	 * x->has_body is set here. `ends`: this is the last answer of the connection. Sets
	 * c->last if the client has to close. */
	void (*format)(struct conn *c, struct exchange *x, bool ends);

	/* The same for a further piece: EXCHANGE-7. NULL: the bytes of out as they are. */
	void (*format_piece)(struct exchange *x);
};

#endif
