/*
 * nodes.h - the nodes that share stores with this node, as it sees them.
 *
 *      members/members.h ──> nodes_ops ──> struct nodes_view ──> /metrics, /readyz, /v1/admin/nodes
 *
 * The server sets api->nodes (server/storenodes.c); NULL = no node has a store. A view
 * is a copy: it does not change. A node that is in several stores has one row.
 */
#ifndef API_NODES_H
#define API_NODES_H

#include "base/json/json_out.h"

#include <sluice/err.h>

struct api;

enum {
	NODES_LIFE = 33,     /* bytes with the NUL, as in all of these */
	NODES_NAME = 65,     /* BEAT_NAME_MAX */
	NODES_ADDRESS = 257, /* BEAT_ADDRESS_MAX */
	NODES_VERSION = 33,  /* BEAT_VERSION_MAX */
	NODES_VERBS = 5      /* STORE_VERBS */
};

#define NODES_NONE UINT32_MAX

struct nodes_row {
	char life[NODES_LIFE]; /* hex digits: one for each start of the server */
	char name[NODES_NAME]; /* "" = not known */
	char address[NODES_ADDRESS];
	char version[NODES_VERSION];
	slu_time age;    /* since its beat was seen to rise; of this node: since its newest beat in
			  * the store was sent; negative = never */
	uint32_t shards; /* how many it owns */
	bool self;
	bool living; /* it has not been silent for a lease */
	bool draining;
};

struct nodes_shard {
	bool stored;    /* the lane is in a store; otherwise the other members are not set */
	uint64_t epoch; /* in which its owner took it; 0 = no living node owns it */
	uint32_t owner; /* index of the row; NODES_NONE = no living node owns it */
	uint32_t next;  /* index of the row that ranks first; NODES_NONE = no node may take it */
};

struct nodes_view {
	struct nodes_row *rows; /* the first is this node */
	uint32_t n;
	struct nodes_shard *shards; /* by lane of the broker */
	uint32_t n_shards;
	slu_time lease;
	uint64_t requests[NODES_VERBS]; /* of this node to its stores, by enum store_verb */
	slu_time rest;                  /* how long puts wait now for the budget of the store */
};

struct nodes_ops {
	/* Fills the view. Returns SLU_ENOTFOUND if no shard is in a store, SLU_ESTARTING if the node has not
	 * joined a store, SLU_ENOMEM. */
	int (*view)(void *arg, struct nodes_view *out);

	/* This node drains: it takes no shards and hands over its own; or, false, takes part again.
	 * Returns SLU_ECONFLICT if no other node could take its shards, SLU_ECLOSED if the server
	 * stops, SLU_ENOTFOUND, SLU_ESTARTING. */
	int (*drain)(void *arg, bool drain, struct slu_err *err);
	void *arg;
};

/* Fills the view. Returns SLU_ENOTFOUND if no store is shared, and the codes of nodes_ops.view. */
int nodes_view(const struct api *api, struct nodes_view *out);
void nodes_view_release(struct nodes_view *v); /* zeroed is fine */

/* How many rows live. */
uint32_t nodes_living(const struct nodes_view *v);

/* Appends the metrics of shards in a store: owners, epochs, lag. */
void nodes_metrics(const struct api *api, struct buf *out);

/* Adds the member `nodes`, for /readyz. Adds nothing if no store is shared. */
void nodes_write_health(const struct api *api, struct json_out *w);

#endif
