/*
 * nodes_world.h - the world of test_nodes_sim.c: nodes, network, store, clients, and what is true.
 *
 *      nodes_store.c      the store; CHAIN: a fresh reader
 *      nodes_net.c        nodes as processes; requests and answers on their way
 *      nodes_client.c     clients and their history; the look at the end
 *      nodes_node.c       the process of a node
 *      test_nodes_sim.c   troubles, schedules
 */
#ifndef TESTS_SIM_NODES_WORLD_H
#define TESTS_SIM_NODES_WORLD_H

#include "nodes_channel.h"
#include "objects.h"
#include "test.h"
#include "torture/check.h"

enum {
	NODES = 3,
	FLIGHTS = 400,
	NUMBERS = 4000,
	CLIENTS = 6,
	HELD = 64,
	AGAIN = 16,
	PAGE = 5, /* names of a page of a listing */
	EVENTS = 20000
};

#define LEASE     (5 * SLU_SEC)
#define HAND_OVER (8 * SLU_SEC)

/* The folder of a node while the node is down. */
struct sim_folder {
	char *p;
	uint32_t n;
};

struct world_node {
	bool up;
	unsigned birth; /* changes with each start and each copy */
	uint64_t life, former;
	struct sim_folder folder, old;
	slu_time boot;        /* boot clock = world.now - boot */
	slu_time awake;       /* paused before */
	slu_time still_until; /* the boot clock stands still until then ... */
	slu_time still_clock; /* ... and shows this */
	slu_time day;         /* wall clock = world.now + day */
	slu_time cut_until;   /* the store is out of reach */
	slu_time due;         /* by world.now */
	unsigned boots;
	bool leaving;
	bool foreign; /* the folder is of another store */
	bool refused; /* and the node has refused it */
};

/* A request on its way to the store, then its answer on its way back. */
struct trip {
	unsigned node, birth; /* of the sender: is it still there? */
	struct told_request request;
	struct sim_folder object; /* PUT: what is put; then what the answer has */
	bool orphan;              /* it is executed, but not answered */
	bool back;                /* it was executed */
	slu_time at;              /* of the next stage */
	enum store_result result;
	bool more;
	uint32_t size; /* GET: of the whole object */
	slu_time wall;
};

/* What the world knows about a shard. */
struct line_truth {
	char line[LINE_SHARD_MAX + 1];
	uint64_t epoch; /* of the newest opening */
	uint64_t last;  /* the newest group that a node was told is confirmed */
	struct line_mark answered[NUMBERS];
};

struct sim_client {
	slu_time at; /* begins the next call then, or gives up */
	bool waits;
	unsigned node, birth; /* where the call is */
	bool posted, copied;
	struct sim_ask_op op;
	slu_time start;
};

struct sim_held {
	uint64_t id, token, name;
	unsigned queue;
};

struct nodes_world {
	uint64_t seed, dice;
	slu_time now;
	bool quiet, trace;
	bool calm;  /* nothing fails by chance */
	bool plain; /* no spans, and folders of other nodes' shards stay as they are */
	bool back;  /* the store has lost groups, and their owner has not put them again */
	unsigned n_nodes;
	struct objects store;
	struct channel *channels; /* [0] = the world; then one for each node */
	struct world_node nodes[NODES];
	struct trip flights[FLIGHTS];
	unsigned n_flights;
	struct line_truth shards[NODES_SHARDS];
	slu_time down_until;
	uint64_t n_lives, names;
	unsigned births;

	struct sim_client clients[CLIENTS];
	struct sim_held held[HELD];
	unsigned n_held;
	struct sim_item again[AGAIN]; /* messages with idempotency keys */
	unsigned again_queue[AGAIN];
	unsigned n_again;
	uint32_t serial, calls;
	unsigned hint[NODES_QUEUES]; /* the node that answered last */
	struct history history;
	struct {
		uint32_t serial; /* of the call that runs; 0 = none */
		uint32_t large;  /* messages with a payload in the store */
		bool over;
		struct told_reply reply;
	} look;

	unsigned long groups, opens, kills, clones, leaves, pushed, claimed, acked, unknown, moved, refused, payloads, lost, followed, emptied, spans;
};

extern struct nodes_world world;

/* CHECK, with the seed that shows it again. */
#define MUST(rule, cond)                                                                         \
	do {                                                                                     \
		if (!(cond))                                                                     \
			test_fail(__FILE__, __LINE__, "NODES_FROM=%" PRIu64 " %s at %.3f s: %s", \
				  world.seed, rule, (double)world.now / (double)SLU_SEC, #cond); \
	} while (0)

/* Prints a line if NODES_TRACE is set. */
void trace(const char *fmt, ...) SLU_PRINTF(1, 2);

uint64_t dice(uint64_t n);
slu_time dice_ms(uint64_t ms);

/* ---- nodes_store.c ---- */
struct sim_folder copy_of(struct slice s);
void execute(struct trip *f);
void check_chains(void);
void check_payloads(uint32_t named);
unsigned lose_groups(struct line_truth *s, unsigned n); /* the newest ones; returns how many */
bool has_answered_groups(struct line_truth *s);

/* ---- nodes_net.c ---- */
void start_node(struct world_node *n);
void kill_node(struct world_node *n);
void clone_node(struct world_node *to, const struct world_node *from);
void leave_node(struct world_node *n);
void pause_node(struct world_node *n, slu_time duration);
void break_connections(void);
bool node_serves(const struct world_node *n, unsigned shard);
bool node_takes(const struct world_node *n, unsigned shard);
void ask_node(struct world_node *n, const struct ask *a);
void go_to(slu_time t);
void land(unsigned i);

/* ---- nodes_client.c ---- */
void run_client(struct sim_client *c);
void on_reply(const struct world_node *n, const struct node_told *t, const struct told_reply *r);
void lose_calls(const struct world_node *n);
void copy_calls(const struct world_node *n);
void end_calls(void);
void check_history(void);

#endif
