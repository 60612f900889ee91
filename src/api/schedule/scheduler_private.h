/*
 * scheduler_private.h - the schedules that this node fires, and the ops of the thread; for scheduler*.c alone.
 */
#ifndef API_SCHEDULE_SCHEDULER_PRIVATE_H
#define API_SCHEDULE_SCHEDULER_PRIVATE_H

#include "api/schedule/scheduler.h"
#include "api/schedule/zones.h"
#include "engine/op.h"

/* A schedule in memory. */
struct scheduled {
	char space[NAME_TEXT];
	uint64_t number; /* of its message */
	struct schedule s;
	struct schedule_plan plan;
	char *doc;       /* s.message points into it */
	slu_time due;    /* the next tick, by the wall clock; SLU_NEVER: none */
	slu_time resume; /* after a failure: not before, by the monotonic clock */
};

struct scheduler {
	struct zones *zones;
	struct slu_log *log;
	struct broker *broker;

	/* Of the thread. */
	struct scheduled *rows;
	uint32_t n, room;
	uint64_t expected; /* changes that it knows of */
	slu_time loaded;   /* when, by the monotonic clock */
	bool stale;        /* the rows are not those of the shards any more */
	bool failing;

	/* Shared. */
	pthread_mutex_t mtx;
	pthread_cond_t wake;  /* a change, or the end of the thread or of an op */
	uint64_t changes;     /* under mtx */
	bool stops, op_ended; /* under mtx */
	pthread_t thread;
	bool runs;

	/* Metrics. */
	_Atomic uint64_t schedules, fired, lost, overlapped, failed;
};

/* ---- scheduler_book.c ---- */

/* Begins an op that stays on this node. */
void scheduler_op(struct scheduler *s, struct op *op, enum op_verb verb, struct slice space, struct slice queue);

/* Posts the op and waits for its answer. Returns its rc. */
int scheduler_run(struct scheduler *s, struct op *op);

/* Reads the schedules of all shards of this node into s->rows. */
int scheduler_load(struct scheduler *s, struct slu_err *err);
void scheduler_unload(struct scheduler *s);

/* ---- scheduler_fire.c ---- */

/* Fires the ticks of the row that are due, and sets its next one. SLU_ECONFLICT or SLU_ENOTFOUND: the row is stale. */
int scheduler_fire(struct scheduler *s, struct scheduled *row, slu_time now, struct slu_err *err);

#endif
