/*
 * nodes.h - the servers of a shard, with a connection to each.
 *
 *      one server      ──> the first address that answers and is not a replica
 *      a cluster       slot of a key ──> table ──> its master
 *                                          ^
 *                                          └── CLUSTER SLOTS: at first, after MOVED, and
 *                                              when a server is lost
 *
 * The first server that can be reached says whether it is a cluster.
 *
 *  REDISNODES-1  A slot has one master, and a master has one connection: calls for a queue
 *      arrive in the order in which they were sent.
 *  REDISNODES-2  A server that cannot be reached, or that says it cannot serve, is down: its
 *      calls fail at once until the next try. The tries come after 100 ms, then after twice
 *      as long each time, up to 5 s, or up to 1 s if the server answers and refuses: a
 *      cluster that is down for a moment at a time is then served in between. A try takes at
 *      most a second. Other servers are not affected.
 *  REDISNODES-3  The table is read between calls, never while a server owes answers.
 *  REDISNODES-4  A server that has not rewritten its append-only file since it started is
 *      asked to do so before anything else, so that a command it was cut off in cannot come
 *      back later. A server that still loads its files is down.
 *
 * Owned by one thread.
 */
#ifndef ENGINE_REDIS_NODES_H
#define ENGINE_REDIS_NODES_H

#include "engine/redis/wire.h"

enum {
	RNODE_SLOTS = 16384,
	RNODE_ADDRESS = 280, /* bytes of one address, with its NUL */
	RNODE_WEAK = 120,
	RNODES_MAX = 1024
};

struct rnode {
	char address[RNODE_ADDRESS];
	struct rwire wire;
	bool loaded;           /* the server has the script */
	bool listed;           /* the server is in the table */
	bool met;              /* connected since redis_report_health looked last */
	bool mended;           /* REDISNODES-4 happened since then */
	char weak[RNODE_WEAK]; /* why an answered write may not be on disk; "" = it is */
	char told[RNODE_WEAK]; /* the value of `weak` that was logged */

	/* REDISNODES-2 */
	bool refuses; /* the server refuses to serve: set before rnode_down, which clears it */
	struct slu_err down_why;
	slu_time down_until; /* when to try again; 0 = it is not down */
	slu_time down_step;  /* the last wait */
};

struct rnodes {
	struct rwire_conf conf; /* address: one, or several with commas */
	struct rnode **all;     /* one server without a cluster */
	uint32_t n;
	bool cluster;
	bool stale;            /* the table must be read again */
	struct rnode *knows;   /* the server to read the next table from, or NULL */
	struct rnode **owners; /* in a cluster: the master of every slot, or NULL */
	slu_time now;          /* time of the run */
};

/* What to do after an error of a server. */
enum rnode_turn {
	RNODE_FAIL,  /* nothing: the command failed */
	RNODE_FULL,  /* nothing: the server has no memory for new work */
	RNODE_LOAD,  /* load the script again */
	RNODE_AGAIN, /* repeat the command: the table has changed */
	RNODE_ASK,   /* repeat the command once at another server */
	RNODE_WAIT,  /* repeat the command in a moment: the slot is moving */
	RNODE_DOWN   /* REDISNODES-2 */
};

void rnodes_init(struct rnodes *s, const struct rwire_conf *conf);
void rnodes_release(struct rnodes *s);

/* Connects to the first server that can be reached, and reads the table of a cluster. Returns
 * SLU_EDOWN, SLU_EAUTH, SLU_EINVAL or SLU_ENOMEM; the text names the first address. */
int rnodes_open(struct rnodes *s, struct slu_err *err);

/* The slot of a key: of the part in braces, if the key has braces. */
unsigned rnode_slot(struct slice key);

/* The server of a slot, connected. Returns SLU_EDOWN (REDISNODES-2, REDISNODES-3). */
int rnodes_at(struct rnodes *s, unsigned slot, struct rnode **out, struct slu_err *err);

/* Connects to the server if it is not connected. Returns SLU_EDOWN. */
int rnode_ready(struct rnodes *s, struct rnode *n, struct slu_err *err);

/* REDISNODES-2: the server is down for the reason in err. Closes the connection. */
void rnode_down(struct rnodes *s, struct rnode *n, const struct slu_err *err);
void rnode_up(struct rnode *n); /* the server has answered */

/* What to do after the error `text` of a server. For RNODE_ASK, *ask is the other server,
 * which may not be connected. */
enum rnode_turn rnodes_error(struct rnodes *s, const struct rnode *n, const char *text,
			     struct rnode **ask);

/* Checks the settings of every server again, and connects to servers that are not connected:
 * settings may have changed. Only between calls (REDISNODES-3). */
void rnodes_judge(struct rnodes *s);

/* A setting of a server; "" if the server does not tell it. */
void rnode_setting(struct rnode *n, const char *name, char *out, size_t size);

/* When the server of the slot is tried again; 0 = now. */
slu_time rnodes_up_at(const struct rnodes *s, unsigned slot);

/* A server that is down, or NULL. */
const struct rnode *rnodes_who_is_down(const struct rnodes *s);

#endif
