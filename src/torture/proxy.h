/*
 * proxy.h - the wire between nodes and their store, which can be cut.
 *
 *      node 0 ──> gate 0 ──┐
 *      node 1 ──> gate 1 ──┼── a thread ──> the store
 *
 * Each node has a gate of its own, so one may be cut off from a store that others reach.
 * What a cut has swallowed leaves half a conversation: such connections are reset when
 * it ends. proxy_cut is for any thread.
 */
#ifndef TORTURE_PROXY_H
#define TORTURE_PROXY_H

#include <sluice/err.h>

enum proxy_cut {
	CUT_NONE,
	CUT_SILENCE,  /* nothing passes; what waits arrives when nobody expects it any more */
	CUT_REQUESTS, /* they are lost */
	CUT_ANSWERS,  /* requests are carried out, and nobody is told */
	CUT_HALF,     /* as above, and the node sees the end */
	CUT_RESET,    /* connections are reset, new ones too */
	CUTS
};

enum {
	PROXY_GATES = 8
};

struct proxy;

/* path: the socket of the store, which need not be there yet. */
int proxy_open(struct proxy **out, const char *path, unsigned n_gates, struct slu_err *err);
void proxy_close(struct proxy *p); /* NULL is fine */

/* A gate is a port of 127.0.0.1. */
unsigned proxy_port(const struct proxy *p, unsigned gate);
void proxy_cut(struct proxy *p, unsigned gate, enum proxy_cut how);

#endif
