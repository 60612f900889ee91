/*
 * lanecopy.h - the copy of one lane: which changes wait, and how far a rebuild has come.
 *
 *      opened ──> claim ──> rebuild: LIST ──> LIVE ──> DEAD ──> DONE: only changes
 *                              ^                                  │
 *                              └── changes lost, or an operator ──┘
 *
 * LIST writes all messages of the lane; LIVE and DEAD check all rows of the two tables.
 */
#ifndef PROJECTION_LANECOPY_H
#define PROJECTION_LANECOPY_H

#include "broker/broker.h"
#include "projection/changes.h"
#include "projection/lanelook.h"
#include "projection/projection.h"

/* What all lanes share; of the thread of the projection. */
struct copier {
	const struct projection_conf *conf;
	struct broker *broker;
	struct items *items;
	struct lanelook look;
	struct items_batch batch;
	uint64_t ids[LANELOOK_MAX];

	/* Any thread reads them. */
	_Atomic uint64_t messages, transactions, failures, rebuilds;
};

enum copy_step {
	COPY_LIST,
	COPY_LIVE,
	COPY_DEAD,
	COPY_DONE
};

struct lanecopy {
	uint32_t lane;

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct changes changes;
	bool serves;
	uint64_t epoch;    /* in which this node owns the shard; 0: no tenure */
	uint64_t openings; /* rises when the lane begins to serve */
	slu_time behind;   /* when the database first failed since it last worked; 0: it works */
	bool rebuilding;   /* `step` is not COPY_DONE */

	/* The thread of the projection. */
	uint64_t opening; /* `openings` of the claim */
	bool claimed;     /* this node may write */
	bool deposed;     /* another node may write */
	struct items_fence fence;
	char shard[BROKER_BATCH_NAME];
	enum copy_step step;
	uint64_t at;      /* cursor of the list, or the last id that was checked */
	uint64_t wanted;  /* fence.wanted of the rebuild under way, or of the last one */
	slu_time looked;  /* when `wanted` was last read */
	slu_time began;   /* the rebuild */
	uint64_t rebuilt; /* messages and rows of this rebuild */
};

/* Returns NULL if memory is out. */
struct lanecopy *lanecopy_new(uint32_t lane, uint32_t max_changes);
void lanecopy_free(struct lanecopy *l); /* NULL is fine */

/* ---- The lane's thread ---- */

void lanecopy_opened(struct lanecopy *l, uint64_t epoch);
void lanecopy_closed(struct lanecopy *l);
void lanecopy_changed(struct lanecopy *l, const struct change *c, slu_time now);

/* ---- The thread of the projection ---- */

/* Writes one batch. *more: there is more to write now. After a code the caller waits before it tries again. */
int lanecopy_work(struct lanecopy *l, struct copier *w, slu_time now, bool *more, struct slu_err *err);

/* ---- Any thread ---- */

/* Adds to `waiting`, `lag` and `rebuilding`. */
void lanecopy_count(struct lanecopy *l, slu_time after, slu_time now, struct projection_counts *out);

#endif
