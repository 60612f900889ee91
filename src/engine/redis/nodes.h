/*
 * nodes.h - the servers of a shard, with a connection to each.
 *
 *      one server      ──> the first address that answers and is no replica
 *      a cluster       slot of a key ──> table ──> its master
 *                                          ^
 *                                          └── CLUSTER SLOTS: at first, when a server says
 *                                              MOVED, and when one is lost
 *
 * Which of the two it is the first server says that can be reached.
 *
 *  C1  A slot has one master, and a master one connection: what is said about a queue is
 *      heard in that order.
 *  C2  A server that cannot be reached, or that says it cannot serve, is down: until it is
 *      tried again, whatever is for it fails at once. 100 ms, then twice as long each time,
 *      up to 5 s; and a try may take a second, no more. The others are not touched by it.
 *  C3  A table is asked for between calls, never while answers are owed.
 *  C4  A server that has not rewritten its append-only file since it started is asked to, before
 *      anything else: what it was cut off in must not come back later.
 *
 * Owned by one thread.
 */
#ifndef ENGINE_REDIS_NODES_H
#define ENGINE_REDIS_NODES_H

#include "engine/redis/wire.h"

enum {
	RNODE_SLOTS = 16384,
	RNODE_ADDRESS = 280, /* bytes of one address, with the end */
	RNODE_WEAK = 120,
	RNODES_MAX = 1024
};

struct rnode {
	char address[RNODE_ADDRESS];
	struct rwire wire;
	bool loaded;           /* it has the script */
	bool listed;           /* it is in the table */
	bool met;              /* anew, since somebody has looked */
	bool mended;           /* C4, likewise */
	char weak[RNODE_WEAK]; /* why its answers are not on disk when they are given; or "" */
	char told[RNODE_WEAK]; /* what the log has of that */

	/* C2 */
	bool refuses; /* it has said so; its connection still has answers */
	struct slu_err down_why;
	slu_time down_until; /* 0: it is not */
	slu_time down_step;
};

struct rnodes {
	struct rwire_conf conf; /* address: one, or several with commas */
	struct rnode **all;     /* without a cluster, one */
	uint32_t n;
	bool cluster;
	bool stale;            /* the table is not to be trusted any more */
	struct rnode *knows;   /* whoever may have the next one; or NULL */
	struct rnode **owners; /* of every slot, or NULL; of a cluster */
	slu_time now;          /* of whoever runs */
};

/* What an error of a server asks for. */
enum rnode_turn {
	RNODE_FAIL,  /* nothing: the command failed */
	RNODE_FULL,  /* it has no memory for new work */
	RNODE_LOAD,  /* the script again */
	RNODE_AGAIN, /* the same once more: the table has changed */
	RNODE_ASK,   /* the same, this once, at another server */
	RNODE_WAIT,  /* the same in a moment: the slot is being moved */
	RNODE_DOWN   /* C2 */
};

void rnodes_init(struct rnodes *s, const struct rwire_conf *conf);
void rnodes_release(struct rnodes *s);

/* Find out what there is. SLU_EDOWN, SLU_EAUTH, SLU_EINVAL, SLU_ENOMEM: the first address
 * is named. */
int rnodes_open(struct rnodes *s, struct slu_err *err);

/* The slot of a key: of what stands in braces, if something does. */
unsigned rnode_slot(struct slice key);

/* Of a slot, connected. C2, C3: SLU_EDOWN and the like. */
int rnodes_at(struct rnodes *s, unsigned slot, struct rnode **out, struct slu_err *err);
int rnode_ready(struct rnodes *s, struct rnode *n, struct slu_err *err);

/* C2: the connection is closed, and err says why. */
void rnode_down(struct rnodes *s, struct rnode *n, const struct slu_err *err);
void rnode_up(struct rnode *n); /* it has answered */

/* What text, the error of a server, asks for. *ask: of RNODE_ASK; it may not be connected. */
enum rnode_turn rnodes_heed(struct rnodes *s, const struct rnode *n, const char *text,
			    struct rnode **ask);

/* One plain command, of words: its answer, which may be an error. W1. */
int rnode_ask(struct rnode *n, const struct slice *words, size_t n_words, redisReply **out,
	      struct slu_err *err);

/* Ask every server again what its answers are worth, and connect to those that are not: their
 * settings may have changed since they were met. Between calls, as C3. */
void rnodes_judge(struct rnodes *s);

/* A setting of a server, or "" where it does not tell. */
void rnode_setting(struct rnode *n, const char *name, char *out, size_t size);

/* Until when nothing for that slot is tried; 0: now. */
slu_time rnodes_up_at(const struct rnodes *s, unsigned slot);

/* Whoever is down, or NULL. */
const struct rnode *rnodes_who_is_down(const struct rnodes *s);

#endif
