/*
 * sockets.h - the loop of a load generator: many connections to one server from one thread. It costs so
 * little that the server is what is measured. load.h drives it with HTTP requests, bench/peers with the
 * protocols of other queues.
 *
 *      sockets_open ──> socket_connect, socket_send ... ──> sockets_turn ... ──> sockets_close
 *                                                            │
 *                                       readable(c), writable(c)
 */
#ifndef BENCH_SOCKETS_H
#define BENCH_SOCKETS_H

#include "base/bytes.h"
#include "client/address.h"

/* One connection; the first member of the caller's struct. */
struct socket {
	int fd;           /* -1 = not connected */
	struct slice out; /* bytes to send */
	size_t sent;      /* how many bytes of `out` are sent */
	bool blocked;     /* the socket accepts no more bytes for now */
};

struct sockets {
	/* Set before sockets_open. */
	const struct address *address;
	void *arg;

	/* Bytes have come, or the connection has ended: it calls socket_receive. */
	int (*readable)(struct sockets *s, struct socket *c, struct slu_err *err);

	/* A blocked socket accepts bytes again. NULL = call socket_send. */
	int (*writable)(struct sockets *s, struct socket *c, struct slu_err *err);

	int epoll; /* inner */
};

/* Makes the epoll descriptor and raises the limit of open files. Returns SLU_EDOWN on an error. */
int sockets_open(struct sockets *s, struct slu_err *err);
void sockets_close(struct sockets *s); /* a zeroed struct is fine */

int socket_connect(struct sockets *s, struct socket *c, struct slu_err *err);
void socket_close(struct socket *c);

/* Sends as much of `out` as the socket accepts. If c->blocked is set, sockets_turn sends the rest. */
int socket_send(struct sockets *s, struct socket *c, struct slu_err *err);

/* Reads up to `size` bytes; *n is 0 if there are none now. Returns SLU_EDOWN if the server closed. */
int socket_receive(struct sockets *s, struct socket *c, void *room, size_t size, size_t *n,
		   struct slu_err *err);

/* Waits up to timeout_ms (-1 = for ever) and calls readable and writable. *n: the number of events. */
int sockets_turn(struct sockets *s, int timeout_ms, int *n, struct slu_err *err);

#endif
