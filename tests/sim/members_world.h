/*
 * members_world.h - the world of test_members_sim.c: nodes, network, store, and what is true.
 *
 *      members_store.c   the store; what is true about lives and shards; CHAIN
 *      members_net.c     requests and replies on their way
 *      members_node.c    what a node does; LIVING, LAPSED, HAND, FRESH
 *      test_members_sim.c   troubles, schedules; QUIET, TAKEN; the rules
 */
#ifndef TESTS_SIM_MEMBERS_WORLD_H
#define TESTS_SIM_MEMBERS_WORLD_H

#include "line/line_private.h"
#include "members/members_private.h"
#include "members/settings.h"
#include "objects.h"
#include "test.h"

enum {
	NODES = 3,
	SHARDS = 3,
	LIVES = 64,
	FLIGHTS = 200,
	NUMBERS = 1000,
	PAGE = 3 /* names of a page of a listing */
};

#define LEASE     (5 * SLU_SEC)
#define HAND_OVER (8 * SLU_SEC)
#define QUIET     (26 * SLU_SEC)

struct sim_shard {
	struct sim_node *node;
	uint32_t number;
	struct line *line; /* NULL = closed */
	bool open, over, closing;
	char told[8]; /* address of the owner in the last MEMBERS_OWNER */
};

struct sim_node {
	bool up;
	uint64_t life; /* 1 to LIVES - 1 */
	char name[8], address[8];
	struct settings_search search;
	struct members *members; /* NULL = the settings are not known yet */
	struct sim_shard shards[SHARDS];
	bool stopping; /* cleanly: it drains first */

	slu_time boot;        /* boot clock = world.now - boot */
	slu_time awake;       /* paused before */
	slu_time still_until; /* the boot clock stood still for the last time until */
	slu_time still_clock; /* and showed this */
	slu_time cut_from;    /* the store is out of reach from here ... */
	slu_time cut_until;   /* ... to here */
	slu_time slow_until;  /* replies are slow */
	slu_time next_append;
	slu_time failed; /* when the last failure of a beat or read arrived */
};

enum caller {
	SEARCH,
	MEMBERS,
	LINE
};

/* A request on its way to the store, then its reply on its way back. */
struct flight {
	int node;
	uint64_t life; /* of the sender: is it still there? */
	enum caller caller;
	unsigned shard;
	const struct line *line; /* of the sender */
	struct line_request request;
	bool orphan;      /* it is executed, but not answered */
	bool back;        /* it has been executed */
	slu_time at;      /* of the next stage */
	slu_time read;    /* when a node object was read */
	slu_time silence; /* time since its last rise then */
	struct line_answer answer;
	char names[PAGE][LINE_NAME_MAX];
	const char *name_list[PAGE];
};

/* What the world knows about a life. */
struct life {
	slu_time first_beat, last_rise; /* when they were executed */
	uint64_t beat;
	slu_time read[LIVES];    /* when this life last read that one: executed */
	slu_time silence[LIVES]; /* time since the last rise of that one, at that read */
	uint64_t closed[SHARDS]; /* the epoch that it has closed */
};

/* What the world knows about a shard. */
struct truth {
	uint64_t life; /* put the newest opening */
	uint64_t epoch;
	uint64_t last; /* number of the newest group, ever */
	struct line_mark answered[NUMBERS];

	/* The opening that took the shard from a life, by that life. */
	slu_time deposed_at[LIVES];      /* executed; 0 = not yet */
	slu_time deposed_decided[LIVES]; /* the read on which the taker relied was executed */
	slu_time decided[LIVES];         /* by taker: the read on which it relies now */
};

struct members_world {
	uint64_t seed, dice;
	slu_time now;
	bool quiet, stands_still;
	struct objects store;
	struct sim_node nodes[NODES];
	struct flight flights[FLIGHTS];
	unsigned n_flights;
	struct life lives[LIVES];
	uint64_t n_lives;
	struct truth truths[SHARDS];
	slu_time down_until;
	struct settings settings;
	uint64_t bodies;
	char *old_beat[LIVES]; /* a beat of each life, to be put again later */
	size_t old_beat_n[LIVES];
	unsigned long confirms, opens, takes, lapses, hand_overs, losses, fresh, stale, kills, drains, owners;
};

extern struct members_world world;

/* CHECK, with the seed that shows it again. */
#define MUST(rule, cond)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			test_fail(__FILE__, __LINE__, "MEMBERS_FROM=%" PRIu64 " %s at %.3f s: %s", \
				  world.seed, rule, (double)world.now / (double)SLU_SEC, #cond);   \
	} while (0)

uint64_t dice(uint64_t n);

/* ---- members_store.c ---- */
char *copy_of(struct slice s);
uint64_t life_number(const uint8_t life[LINE_LIFE]);
void execute(struct flight *f);
void note_reply(const struct flight *f);
void check_chain(uint32_t shard);

/* ---- members_net.c ---- */
void pause_node(struct sim_node *n, slu_time duration);
struct flight *new_flight(void);
void send_request(struct sim_node *n, enum caller caller, unsigned shard, const struct line_request *r);
void orphan(const struct sim_node *n, const struct line *l);
void arrive(unsigned i);
void reply(struct sim_node *n, const struct flight *f);
void land(unsigned i);

/* ---- members_node.c ---- */
slu_time clock_of(const struct sim_node *n);
void start(struct sim_node *n);
void halt(struct sim_node *n);
void run_node(struct sim_node *n);

/* When the node runs, if no reply comes. */
slu_time due(const struct sim_node *n);

#endif
