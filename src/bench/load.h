/*
 * load.h - HTTP load: many connections to a server from one thread, each with one open request
 * (sockets.h).
 *
 *      next(c) ──> request ──> server ──> whole answer ──> answered(c) ──> next(c) ...
 *
 * The caller writes requests and reads answers:
 *
 *         static bool
 *         next(struct load *l, struct load_conn *c)
 *         {
 *                 c->request = SLICE("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
 *                 return bench_now() < l->until;
 *         }
 *
 * Connections may do different things, by their index. A connection with nothing to send sets an empty
 * request and sleeps until load_go. An endless answer is read in `more`, as it comes.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "bench/hist.h"
#include "bench/sockets.h"
#include "client/answer.h"

struct load;

struct load_conn {
	struct socket socket; /* inner */
	unsigned index;
	struct slice request; /* set by next; valid until it is answered */
	struct buf own;       /* memory for a request of this connection */
	unsigned step;        /* for the functions of the caller */
	struct answer answer; /* the answer */

	/* Inner. */
	slu_time began;
	bool active;
	bool idle; /* until load_go */
};

struct load {
	/* Set before load_run. */
	const struct address *address;
	unsigned connections;
	slu_time until; /* for next */
	bool fresh;     /* a new connection for every request */
	void *arg;

	/* Sets c->request; empty = nothing to send yet. Returns false if the connection is done. */
	bool (*next)(struct load *l, struct load_conn *c);

	/* More bytes of an incomplete c->answer.body have come; it may remove bytes from the body. May be
	 * NULL. */
	int (*more)(struct load *l, struct load_conn *c, struct slu_err *err);

	/* The answer is complete. An error ends the run. If NULL, a status of 300 or more ends the run. */
	int (*answered)(struct load *l, struct load_conn *c, struct slu_err *err);

	/* For the functions above. */
	struct load_conn *conns;
	bool quit; /* set by the caller: ends the run at once */

	/* The outcome. */
	struct hist *hist; /* borrowed; durations from the first byte sent to the last received */
	uint64_t requests; /* how many requests were answered */
	slu_time elapsed;

	/* Inner. */
	struct sockets sockets;
	unsigned active;
	char *room;
};

/* Has a sleeping connection call next again; does nothing for others. */
int load_go(struct load *l, struct load_conn *c, struct slu_err *err);

/* Runs until every connection is done. Returns SLU_EDOWN, SLU_ENOMEM, or the error of a function above. */
int load_run(struct load *l, struct slu_err *err);

#endif
