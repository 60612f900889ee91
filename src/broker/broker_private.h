/*
 * broker_private.h - what the parts of the broker share; for broker*.c alone.
 */
#ifndef BROKER_BROKER_PRIVATE_H
#define BROKER_BROKER_PRIVATE_H

#include "broker/broker.h"
#include "broker/move/repair.h"
#include "broker/move/follow.h"
#include "broker/lane.h"
#include "broker/standin.h"

_Static_assert((int)BROKER_LANES_MAX <= (int)METER_MOST, "metrics have room for all lanes");
_Static_assert((int)SHARDMAP_SHARDS >= (int)BROKER_LANES_MAX, "a map can name all lanes");

/* A shard of the map. Its lanes have consecutive numbers. Fixed once it is listed. */
struct broker_shard {
	char name[SHARDMAP_NAME];
	bool standard;  /* without a name in the settings: its folder is the data folder itself */
	uint32_t first; /* lane */
	uint32_t lanes; /* how many */
	bool by_namespace;
	uint32_t bits; /* BROKER-6: of ids of the first lane; unused without `marks` */
	struct meter meter;
	char (*marks)[MOVE_SHARD];   /* BROKER-7, by lane; NULL: the shard is not in a store */
	char labels[][METER_LABELS]; /* by lane */
};

struct routes {
	struct routes *older;                /* replaced by these */
	struct shardmap *map;                /* NULL: every queue lives on the only shard */
	uint64_t epoch;                      /* of the ops that these route */
	const struct broker_shard *shards[]; /* by the numbers of the map */
};

struct broker {
	/* Fixed once open. */
	struct clock *clock;
	struct idgen ids;
	struct quota quota;
	bool by_hand;
	const struct broker_hand *hand;     /* NULL: with threads, or no queue moves */
	const struct broker_remote *remote; /* NULL: none */
	const struct broker_notice *notice; /* NULL: none */
	struct follows *follows;
	struct moverepair *moverepair;
	struct list left; /* struct left: used by the thread that opens */
	bool named;       /* there is or will be a map: metrics show shards by name */

	/* Shared. Open and broker_routes_new write them in this order; lanes below `open` stay. */
	struct lane *lanes[BROKER_LANES_MAX];
	struct broker_shard *shard_of[BROKER_LANES_MAX]; /* by lane */
	_Atomic uint32_t open;                           /* how many lanes are open */
	_Atomic(struct routes *) routes;
	_Atomic bool stored; /* a shard is in a store */

	struct standin standin; /* started with the first shard whose engine has `commit` */
	_Atomic bool draining;  /* verbs that begin work are refused */
	_Atomic bool waits_end; /* no op waits */
	pthread_mutex_t stop;   /* held while the broker stops or opens shards */
	bool stopped;           /* under stop */
};

/* ---- broker_route.c ---- */

/* Takes the map, also if it fails. NULL: all queues live on the first shard. */
int routes_new(const struct broker *b, struct shardmap *map, struct routes **out,
	       struct slu_err *err);

/* Finds the lane of an op, then the lanes that may also have what it asks for; sets op->home. */
int broker_route(const struct broker *b, struct op *op, struct follow_path *path);

/* The lane of a queue that lives on the shard. */
uint32_t broker_lane_in(const struct broker_shard *s, struct slice space, struct slice queue);

/* ---- broker.c ---- */

/* An id with the node bits of the lane: BROKER-6. */
uint64_t broker_new_lane_id(struct broker *b, uint32_t lane);

/* ---- broker_open.c ---- */

/* NULL: no shard has this name. */
const struct broker_shard *broker_find_shard(const struct broker *b, const char *name);

/* ---- broker_move.c ---- */

int broker_open_follows(struct broker *b, struct slu_log *log, struct slu_err *err);

/* No node continues with the batch that is set aside on the lane: finishes it. Does not block. */
void broker_repair(const struct broker *b, struct slice space, struct slice queue, uint32_t lane);

/* An engine found a batch at open. */
void broker_note_left(struct broker *b, uint32_t lane, struct slice space, struct slice queue);

/* All shards are open: finishes these batches; or forgets them. */
void broker_finish_left(struct broker *b);
void broker_forget_left(struct broker *b);

#endif
