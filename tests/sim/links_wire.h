/*
 * links_wire.h - the connections of test_links_sim.c: peersock.c and peernet_dial.c without sockets.
 *
 *      peersock_write ──> wire.bytes[from] ── wire_carry, some bytes ──> wire.arrived[to] ──> peersock_read
 *
 * A wire has two ends; end 0 is the node that connected. The number of an end is 2 x wire + end: the
 * `fd` of peer/peernet_private.h. A broken wire loses the bytes on their way. Each end notices the
 * break for itself, at some later time.
 */
#ifndef TESTS_SIM_LINKS_WIRE_H
#define TESTS_SIM_LINKS_WIRE_H

#include "peer/peernet_private.h"

enum {
	WIRES = 64
};

struct sim_wire {
	bool used;
	unsigned nodes[2];
	bool shut[2];    /* this end was closed by its node */
	bool notices[2]; /* this end is told that the wire is broken */
	bool broken;
	struct buf bytes[2];   /* on their way, by the end that sent them */
	struct buf arrived[2]; /* at this end, not read yet */
};

extern struct sim_wire wires[WIRES];

/* Carries up to n bytes of the end; broken wires carry none. */
void wire_carry(struct sim_wire *w, unsigned end, size_t n);

/* Loses what is on its way. Both ends notice later: wire_notice. */
void wire_break(struct sim_wire *w);
void wire_notice(struct sim_wire *w, unsigned end);

/* Breaks the wires of a node; its own ends are closed. */
void wires_cut(unsigned node);

void wires_release(void);

/* ---- test_links_sim.c ---- */

/* The node whose peernet this is. */
unsigned links_node_of(const struct peernet *p);

/* The living node with this life, or UINT_MAX. */
unsigned links_node_alive(const uint8_t life[static HELLO_LIFE]);

/* A connection came in. */
void links_accept(unsigned node, int fd);

/* Questions leave the node. */
void links_saw(unsigned node, struct slice bytes);

slu_time links_now(void);

#endif
