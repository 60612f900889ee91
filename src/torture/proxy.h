/*
 * proxy.h - connections between nodes and their store, or between nodes, which can be cut.
 *
 *      node 0 ──> gate 0 ──┐
 *      node 1 ──> gate 1 ──┼── a thread ──> the store
 *
 *      node 0 ── proxy_join ──> gate 1 ── a thread ──> node 1
 *
 * Each node has its own gate, so one node can be cut off from a store that others reach. A connection
 * that lost bytes in a cut is reset when the cut ends. proxy_cut and proxy_join are for any thread.
 */
#ifndef TORTURE_PROXY_H
#define TORTURE_PROXY_H

#include <sluice/err.h>

enum proxy_cut {
	CUT_NONE,
	CUT_SILENCE,  /* nothing passes; the bytes arrive after the cut, late */
	CUT_REQUESTS, /* bytes of both directions are lost */
	CUT_ANSWERS,  /* requests arrive, answers are lost */
	CUT_HALF,     /* like PROXY_DEAF, and the node sees the end */
	CUT_RESET,    /* connections are reset, also new ones */
	CUTS
};

enum {
	PROXY_GATES = 8
};

struct proxy;

/* store: the path of its socket, which may not exist yet, or 127.0.0.1:PORT. n_gates: how many ports; 0 = connections come by
 * proxy_join alone, and store is NULL. */
int proxy_open(struct proxy **out, const char *store, unsigned n_gates, struct slu_err *err);
void proxy_close(struct proxy *p); /* NULL is allowed */

/* A gate is a port of 127.0.0.1. */
unsigned proxy_port(const struct proxy *p, unsigned gate);

/* Takes two sockets, and passes bytes from one to the other until one is closed. Both are nonblocking. */
void proxy_join(struct proxy *p, unsigned gate, int node, int other);

void proxy_cut(struct proxy *p, unsigned gate, enum proxy_cut how);

#endif
