/*
 * links_world.h - the world of test_links_sim.c: nodes, shards, clients, and what is true.
 *
 *      links_wire.c       connections
 *      links_shards.c     shards, each with one engine for whichever node owns it; ONCE, GRANTS
 *      links_nodes.c      nodes: a broker by hand and a peernet without sockets; ONE HOP
 *      test_links_sim.c   clients, troubles, schedules
 */
#ifndef TESTS_SIM_LINKS_WORLD_H
#define TESTS_SIM_LINKS_WORLD_H

#include "links_wire.h"
#include "test.h"

#include "engine/tenure.h"
#include "fakeclock.h"

#include <inttypes.h>
#include <limits.h>

enum {
	NODES = 3,
	SHARDS = 2,
	CLIENTS = 6,
	SERIALS = 4096,
	TOKENS = 4096,
	STEPS = 1500,
	ROWS = 3,
	LARGE = 150 * 1024 /* bytes of a payload of several frames */
};

/* An op of a client. Its serial is the payload of a message, or the taker of a claim. */
struct client {
	struct op op;
	bool busy;
	bool canceled;
	bool returns; /* the op gives back what it was granted */
	uint32_t serial;
	unsigned node, birth; /* the entry node */
	struct op_put put;
	struct op_row rows[ROWS];
	char *payload;
	char taker[16], queue[4];
};

/* What is true about an op. */
struct links_truth {
	unsigned node; /* the entry node */
	enum op_verb verb;
	bool left;        /* a byte of its question has left the node */
	unsigned ran;     /* how often it changed something */
	unsigned answers; /* how often it was answered */
};

struct links_node {
	bool alive, stopping;
	unsigned birth;
	struct peernet net;
	struct peer_target targets[SHARDS];
	struct broker *broker;
};

/* The engine of a lane of a node. */
struct view {
	struct engine engine;
	unsigned node;
	uint32_t lane;
	struct engine_conf conf; /* callbacks of the lane */
	bool owns;               /* it believes so */
};

struct links_world {
	uint64_t seed, dice;
	bool quiet;
	struct fakeclock clock;
	struct links_node nodes[NODES];
	struct engine *shards[SHARDS];
	struct view *views[SHARDS]; /* of the owner */
	unsigned owner[SHARDS];     /* UINT_MAX: no node */
	uint64_t epochs[SHARDS];
	struct view *all[NODES][SHARDS];
	struct client clients[CLIENTS];
	struct links_truth ops[SERIALS];
	bool returned[SHARDS][TOKENS]; /* by the entry node of the claim */
	struct slu_log *log;
	uint32_t serial;
	unsigned births;
	unsigned long answered, unknown, refused, granted, given_back, sent;
	unsigned long orphaned; /* claims that were granted over a link to a node that died with the answer on its way */
	unsigned long deposed;  /* ops that were at an owner, or on their way to it, when it lost the shard */
};

extern struct links_world world;

/* CHECK, with the seed that shows it again. */
#define MUST(rule, cond)                                                                                         \
	do {                                                                                                     \
		if (!(cond))                                                                                     \
			test_fail(__FILE__, __LINE__, "LINKS_FROM=%" PRIu64 " %s: %s", world.seed, rule, #cond); \
	} while (0)

uint64_t dice(uint64_t n); /* 0 to n - 1 */

/* Returns whether the op of the client has left its node, which lives, and has no answer yet. */
bool is_on_its_way(const struct client *c);

/* ---- links_shards.c ---- */

/* Of the nodes: it runs ops on the shards of the world. */
extern const struct engine_ops view_ops;

void open_shards(void);
void close_shards(void);

/* ---- links_nodes.c ---- */

void start_node(unsigned i);

/* The process is gone: no shard obeys it, no wire carries its bytes, no client gets its answers. */
void kill_node(unsigned i);

/* LINK-5: other nodes learn that the node stops. */
void stop_node(unsigned i);

/* The node reads, runs and writes. */
void turn_node(unsigned i);

/* The node learns who owns the shard. */
void tell_owner(unsigned i, uint32_t shard);

/* Another node takes the shard. The former owner learns it when its next batch fails, or when it is told. */
void change_owner(uint32_t shard);

#endif
