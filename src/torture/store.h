/*
 * store.h - the Redis servers in which servers of our own keep their messages.
 *
 *      node 0 ──┬──(proxy)──> store 0   the queue of the run, until it is moved
 *      node 1 ──┴──(proxy)──> store 1   its lock keys
 *
 * They listen in folders that are gone afterwards, and sync before they answer
 * (appendonly, appendfsync always): so a kill of one may lose nothing. One store is what
 * --redis-address says; several are shards with names, in a file of settings that each
 * node has for itself. With proxies a node may be cut off from a store.
 */
#ifndef TORTURE_STORE_H
#define TORTURE_STORE_H

#include "torture/proxy.h"

#include <sys/types.h>

enum {
	STORES_MAX = 8,
	STORE_PATH = 96
};

struct store {
	pid_t pid;
	char folder[STORE_PATH];
	struct proxy *proxy; /* NULL: none was asked for */
};

struct stores_conf {
	unsigned n;        /* 0: no server needs one */
	unsigned nodes;    /* who use them */
	bool proxies;      /* as above, by proxies */
	const char *dir;   /* where their folders are made */
	const char *queue; /* of the run */
};

struct stores {
	struct stores_conf conf; /* what it points to is borrowed */
	unsigned n;
	struct store all[STORES_MAX];
	unsigned version; /* of the map: one more with every change */
	unsigned home;    /* where the queue lives: one of the first two */
};

/* SLU_EDOWN: one cannot be started, and why. */
int stores_open(struct stores *s, const struct stores_conf *conf, struct slu_err *err);
void stores_close(struct stores *s); /* zeroed is fine */

/* kill -9; then once more on the same data. */
void store_kill(struct store *s);
int store_start(struct store *s, struct slu_err *err);

void store_pause(const struct store *s);
void store_resume(const struct store *s);

/* Another map: the queue lives on the other of the first two, and the former one may still
 * have some of it. Nodes are to be told. */
int stores_move(struct stores *s, struct slu_err *err);

/* Cut a node off, or let it through again. */
void store_cut(const struct store *s, unsigned node, enum proxy_cut how);

/* In the new process of a node: where the stores are. */
int stores_tell(const struct stores *s, unsigned node);

#endif
