/*
 * load.h - many connections to a server, each with one request on its way, from one
 * thread: costs so little that what is measured is the server.
 *
 *      next(c) ──> request ──> server ──> whole answer ──> answered(c) ──> next(c) ...
 *
 * Who measures says what to send and looks at what came:
 *
 *         static bool
 *         next(struct load *l, struct load_conn *c)
 *         {
 *                 c->request = SLICE("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
 *                 return bench_now() < l->until;
 *         }
 *
 * Connections may do different things, by their index. One that has nothing to send sets
 * an empty request and sleeps until load_go; one whose answer never ends looks at it in
 * `more`, as it comes.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "bench/hist.h"
#include "client/address.h"
#include "client/answer.h"

struct load;

struct load_conn {
	unsigned index;
	struct slice request; /* set by next; must stay until it is answered */
	struct buf own;       /* for a request that is this connection's alone */
	unsigned step;        /* next's own */
	struct answer answer; /* what came */

	/* Inner. */
	int fd;
	size_t sent;
	slu_time began;
	bool blocked; /* waits until it can send on */
	bool active;
	bool idle; /* until load_go */
};

struct load {
	/* Set before load_run. */
	const struct address *address;
	unsigned connections;
	slu_time until; /* for next to look at */
	bool fresh;     /* a new connection for every request */
	void *arg;

	/* Set c->request, n 0: nothing yet; false: this connection is done. */
	bool (*next)(struct load *l, struct load_conn *c);

	/* May be NULL. More of c->answer.body has come and it is not whole: take from it
	 * what is wanted. */
	int (*more)(struct load *l, struct load_conn *c, struct slu_err *err);

	/* May be NULL. Otherwise a status of 300 or more ends the run. SLU_ codes do. */
	int (*answered)(struct load *l, struct load_conn *c, struct slu_err *err);

	/* For the functions above. */
	struct load_conn *conns;
	bool quit; /* set it: all is done, whatever is on its way */

	/* The outcome. */
	struct hist *hist; /* borrowed: from the first byte sent to the last received */
	uint64_t requests; /* answered */
	slu_time elapsed;

	struct run *run; /* inner */
};

/* A connection that had nothing to send asks next again; others are left alone. */
int load_go(struct load *l, struct load_conn *c, struct slu_err *err);

/* Until every connection is done. SLU_EDOWN, SLU_ENOMEM, or what answered said. */
int load_run(struct load *l, struct slu_err *err);

#endif
