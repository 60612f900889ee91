/*
 * gate.h - stands between one node and what it shares with other nodes, a folder and links, and can cut the
 * node off.
 *
 *      node ── system call ──> kernel ── "may it?" ──> gate, a thread
 *                                │ <── go on, fail, or wait ──┘
 *                                v
 *                              folder
 *
 * The kernel asks the gate before every system call of the node that opens, links, removes or syncs a
 * file, or connects a socket (seccomp user notification: no rights are needed, and only this process is
 * affected). Other folders of the node are never cut. A connection to another node passes a proxy: the gate
 * replaces the socket of the node by an end of a pair.
 *
 * A node whose wall clock is wrong does not change the clock of the folder: the gate executes the calls
 * that set a file to the present time.
 *
 * gate_cut and gate_cut_link are for any thread.
 */
#ifndef TORTURE_GATE_H
#define TORTURE_GATE_H

#include "torture/proxy.h"

struct gate;

/* Returns SLU_EDOWN, with the reason, if the kernel does not allow it. folder: borrowed. */
int gate_open(struct gate **out, const char *folder, struct slu_err *err);
void gate_close(struct gate *g); /* NULL is allowed */

/* Called in the new process of the node before exec. Returns nonzero on failure. */
int gate_enter(const struct gate *g);

/* The cuts, for calls that touch the folder:
 *      CUT_SILENCE   they wait, and happen after the cut
 *      CUT_REQUESTS  they fail
 *      CUT_ANSWERS   syncs fail: what was written is there, and the node does not know
 *      CUT_HALF      changes fail, reads succeed
 *      CUT_RESET     they fail like the calls of a client whose server has forgotten its files */
void gate_cut(struct gate *g, enum proxy_cut how);

/* The address of a node, by its number: the gate knows by it where a connection leads. */
#define GATE_HOST "127.0.0.%u"
enum {
	GATE_HOST_FIRST = 2 /* the last part of the address of node 0 */
};

/* Cuts the connections that the node of the gate makes to another node. */
void gate_cut_link(struct gate *g, unsigned to, enum proxy_cut how);

#endif
