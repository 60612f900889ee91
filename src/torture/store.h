/*
 * store.h - the stores that the nodes of a run share.
 *
 *      node 0 ──┬──(proxy, gate)──> store 0
 *      node 1 ──┴──(proxy, gate)──> store 1
 *
 * Each kind of store is a row: what it can do, and how its nodes find it. Stores are in folders that are
 * removed afterwards.
 *
 *      redis   Redis servers that the run starts. They sync before they answer (appendonly,
 *              appendfsync always), so a kill must lose nothing. A single store is passed by
 *              --redis-address; several stores are named shards, in a configuration file of each
 *              node. The queue of the run is on store 0 until it moves, its lock keys on store 1.
 *              A proxy can cut a node off.
 *      file    A folder. Each shard has one owner among the nodes, and the nodes have links. A gate can cut
 *              a node off from the folder, and from another node.
 *      s3, azure, postgres
 *              A server that runs already, at the address in the URL. The run has a prefix or a schema of
 *              its own there, which stays. A proxy can cut a node off.
 */
#ifndef TORTURE_STORE_H
#define TORTURE_STORE_H

#include "torture/gate.h"
#include "torture/proxy.h"

#include <sys/types.h>

enum {
	STORES_MAX = 8,
	STORE_PATH = 256,
	STORE_REASON = 160
};

struct stores;

struct torture_store {
	pid_t pid; /* redis: its process */
	char folder[STORE_PATH];
	struct proxy *proxy;             /* redis, remote stores; NULL = no proxy */
	struct gate *gates[PROXY_GATES]; /* file, by node; NULL = no gate */
};

/* A kind of store. A function that is NULL: the fault is not possible with this kind. */
struct stores_kind {
	const char *name;    /* of the engine, or the scheme of the URL */
	bool by_url;         /* --store names its place */
	bool remote;         /* it has no folder: stores_conf.dir is its URL without the scheme */
	unsigned max;        /* how many stores a run can have */
	unsigned dir_max;    /* the longest path of the folder for their folders */
	bool takes_over;     /* a shard has one owner; other nodes answer `moved`, or take it */
	bool has_gates;      /* the clock of a node needs them, too: gate.h */
	unsigned shards;     /* how many shards it has; 0 = one for each store */
	const char *no_disk; /* why filling the disk of a node is not possible; NULL = it is */

	/* Opens a store in its new folder. */
	int (*open)(struct stores *s, struct torture_store *one, struct slu_err *err);
	void (*close)(struct torture_store *one);

	/* Called in the new process of a node, before exec. Returns nonzero on failure. */
	int (*tell)(const struct stores *s, unsigned node);

	/* Kill a store by SIGKILL; start it again on the same data; pause it. */
	void (*kill)(struct torture_store *one);
	int (*start)(struct torture_store *one, struct slu_err *err);
	void (*pause)(const struct torture_store *one);
	void (*resume)(const struct torture_store *one);

	/* Cuts a node off, or reconnects it. */
	void (*cut)(const struct torture_store *one, unsigned node, enum proxy_cut how);

	/* Cuts the links from a node to another, or reconnects them. */
	void (*cut_link)(const struct torture_store *one, unsigned from, unsigned to, enum proxy_cut how);

	/* Changes the map: the queue moves to the other of the first two stores; the old one may still
	 * have some of it. The caller has the nodes reload. */
	int (*move)(struct stores *s, struct slu_err *err);
};

extern const struct stores_kind stores_redis, stores_file, stores_s3, stores_azure, stores_postgres;

struct stores_conf {
	const struct stores_kind *kind; /* NULL = the nodes share nothing */
	unsigned n;                     /* how many stores */
	unsigned nodes;                 /* how many nodes use them */
	bool cuts;                      /* nodes are to be cut off */
	const char *dir;                /* the folder for their folders; stores_kind.remote */
	const char *queue;              /* the queue of the run */
};

struct stores {
	struct stores_conf conf; /* its pointers are borrowed */
	unsigned n;
	struct torture_store all[STORES_MAX];
	char no_cut[STORE_REASON]; /* why nodes cannot be cut off; "" = they can */
	unsigned version;          /* redis: version of the map, incremented with every change */
	unsigned home;             /* redis: the store of the queue, one of the first two */
	int id;                    /* remote stores: of the prefix or schema of the run */
};

/* The kind for this engine, or for the scheme of this URL; NULL = none. */
const struct stores_kind *stores_kind_of_engine(const char *engine);
const struct stores_kind *stores_kind_of_url(const char *url);

/* Returns SLU_EDOWN, with the reason, if a store cannot be started. */
int stores_open(struct stores *s, const struct stores_conf *conf, struct slu_err *err);
void stores_close(struct stores *s); /* a zeroed struct is fine */

/* Called in the new process of a node, before exec. Returns nonzero on failure. */
int stores_tell(const struct stores *s, unsigned node);

#endif
