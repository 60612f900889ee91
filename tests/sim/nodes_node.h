/*
 * nodes_node.h - the inside of a node of test_nodes_sim.c.
 *
 *      nodes_node.c         the process: what the world asks; members; start
 *      nodes_node_store.c   requests to the store, and the functions of a store that does not block
 *      nodes_node_ops.c     ops of clients
 *      nodes_node_disk.c    all files of the disk as bytes
 *      nodes_node_standby.c the folders of shards that other nodes own
 */
#ifndef TESTS_SIM_NODES_NODE_H
#define TESTS_SIM_NODES_NODE_H

#include "nodes_channel.h"
#include "simdisk.h"
#include "test.h"

#include "broker/broker.h"
#include "engine/payload.h"
#include "members/members_private.h"
#include "members/settings.h"

enum {
	NODE_OPS = 64,
	NODE_PAGE = 50 /* rows of a page of a look */
};

/* A request of members on its way. */
struct node_shot {
	struct store_request request;
	unsigned slot;
};

struct node_op {
	struct op op;
	uint32_t serial; /* 0 = free */
	enum sim_verb verb;
	struct op_put puts[NODES_ROWS];
	struct op_item items[NODES_ROWS];
	struct op_row rows[NODE_PAGE];
	struct told_row told[NODE_PAGE];
	struct payload *stored[NODES_ROWS];
	struct op_queue stats;
	char names[NODES_ROWS][32], keys[NODES_ROWS][16], idems[NODES_ROWS][32];
	char queue[8];
};

struct node_process {
	struct channel *channels, *channel;
	struct node_start start;
	uint64_t random;
	slu_time boot, wall;
	unsigned depth;      /* asks inside each other */
	slu_time wait_until; /* what waits, waits until then */
	slu_time lanes_due;
	bool asked; /* the world waits for the end of an ask */
	bool leaving;
	struct simdisk disk;
	uint8_t uuid[SETTINGS_UUID];
	struct members *members; /* NULL = the settings of the store are not known yet */
	struct node_shot shots[MEMBERS_SLOTS];
	struct broker *broker;
	struct engine *engines[NODES_SHARDS];
	char owners[NODES_SHARDS][8]; /* addresses */
	bool broken;                  /* the connections are gone: requests fail until the first failure is known */
	struct node_op ops[NODE_OPS];
	struct slu_log *log;
};

extern struct node_process node;

/* Ends the last ask, waits for the next one, and does it. */
void node_turn(void);

/* ---- nodes_node_store.c ---- */
extern struct store node_store;

/* Sends the request, and calls r->done when the world has answered. */
void node_send(struct store_request *r);

/* Sends the requests that are due. */
void node_send_due(void);

/* When the next request is due. */
slu_time node_store_due(void);

/* node_send, and waits. */
void node_send_and_wait(struct store_request *r);

/* ASK_ANSWER */
void node_take_answer(void);

/* ---- nodes_node_ops.c ---- */
void node_post(const struct sim_ask_op *a);

/* ---- nodes_node_standby.c ---- */

/* Of struct engine_tenure. */
void node_standby_waits(void *arg, uint32_t lane, const char *folder, bool pinned);
void node_standby_takes(void *arg, uint32_t lane);

/* When a folder is looked after again. */
slu_time node_standby_due(void);

/* Looks after the folders that are due. May wait for the store. */
void node_standby(void);

/* ---- nodes_node_disk.c ---- */
void node_load_disk(void);
void node_save_disk(void);

#endif
