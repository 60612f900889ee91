/*
 * broker_in.h - what the parts of the broker share: broker*.c alone.
 */
#ifndef BROKER_BROKER_IN_H
#define BROKER_BROKER_IN_H

#include "broker/broker.h"
#include "broker/mender.h"
#include "broker/relay.h"
#include "broker/shard.h"

_Static_assert((int)BROKER_SHARDS_MAX <= (int)METER_MOST, "all can be written");
_Static_assert((int)SHARDMAP_SHARDS >= (int)BROKER_SHARDS_MAX, "a map can name all");

/* A shard: its lanes stand one after the other. Fixed once it is listed. */
struct broker_shard {
	char name[SHARDMAP_NAME];
	bool standard; /* the settings give it no name: its folder is the data folder itself */
	uint32_t first, lanes;
	struct meter meter;
	char labels[][METER_LABELS]; /* by lane */
};

struct routes {
	struct routes *older;
	struct shardmap *map;                /* NULL: every queue lives on the one there is */
	uint64_t epoch;                      /* of the ops that are routed by it */
	const struct broker_shard *shards[]; /* by the numbers of the map */
};

struct broker {
	/* Fixed once open. */
	struct clock *clock;
	struct idgen ids;
	struct quota quota;
	bool by_hand;
	const struct broker_hand *hand; /* NULL: nobody moves queues, or by threads */
	struct relays *relays;
	struct mender *mender;
	struct list left; /* struct left: of whoever opens */
	bool named;       /* there is, or will be, a map: what is opened is shown by its name */

	/* Shared: written by open and reroute, in this order; what is below `open` stays. */
	struct shard *lanes[BROKER_SHARDS_MAX];
	struct broker_shard *shard_of[BROKER_SHARDS_MAX]; /* by lane */
	_Atomic uint32_t open;                            /* lanes that are */
	_Atomic(struct routes *) routes;

	_Atomic bool draining;  /* no enqueue, no claim */
	_Atomic bool waits_end; /* what would wait does not */
	pthread_mutex_t stop;   /* held by whoever stops, or opens more */
	bool stopped;           /* under stop */
};

/* ---- broker_route.c ---- */

/* By a map that is taken, also when it fails; NULL: all live on the first shard. */
int routes_new(const struct broker *b, struct shardmap *map, struct routes **out,
	       struct slu_err *err);

/* The lane an op goes to, and then those that may have what it asks for, too; and what
 * it says of where its queue lives. */
int broker_route(const struct broker *b, struct op *op, struct relay_path *path);

/* ---- broker_open.c ---- */

/* NULL: there is none of that name. */
const struct broker_shard *broker_find_shard(const struct broker *b, const char *name);

/* ---- broker_move.c ---- */

int broker_open_relays(struct broker *b, struct slu_log *log, struct slu_err *err);

/* Batches that an engine tells of at open: they are finished once all are open. */
void broker_note_left(struct broker *b, uint32_t lane, struct slice space, struct slice queue);
void broker_finish_left(struct broker *b);
void broker_forget_left(struct broker *b);

#endif
