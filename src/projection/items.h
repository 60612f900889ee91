/*
 * items.h - the tables of a projection in PostgreSQL.
 *
 *      sluice.items         a row for each message that is not dead
 *      sluice.dead_letters  a row for each dead letter
 *      sluice.projection    a row for each shard: which owner may write, and its last transaction
 *
 *  ITEMS-1  A shard has one writer: the last one that claimed it. Each transaction checks the epoch of its
 *      writer and raises the position; the transaction of another writer changes nothing.
 *  ITEMS-2  A batch is written in one transaction, or not at all.
 *  ITEMS-3  A shard removes only rows that it wrote. A row that another shard wrote becomes its own when it
 *      writes the message: the queue has moved.
 *
 * One thread uses a struct items.
 */
#ifndef PROJECTION_ITEMS_H
#define PROJECTION_ITEMS_H

#include "base/bytes.h"

#include <sluice/err.h>

/* The SQL that makes the tables. */
extern const char items_schema[];

struct items;

/* url: of libpq. Returns NULL if memory is out. */
struct items *items_new(const char *url);
void items_free(struct items *t); /* NULL is fine */

/* A writer. */
struct items_fence {
	const char *shard; /* borrowed */
	uint64_t epoch;    /* of this writer */
	uint64_t position; /* of its last transaction */
	uint64_t wanted;   /* rebuilds that operators have asked for, as the last call found it */
};

/* Makes this process the writer of the shard, and sets *out. epoch: in which this node owns the shard; 0: one
 * above the last writer's. Returns SLU_EMOVED if the last writer has a higher epoch, SLU_ENOTFOUND if the
 * tables are missing, SLU_EDOWN, SLU_ETIMEOUT, SLU_EFORBIDDEN. */
int items_claim(struct items *t, const char *shard, uint64_t epoch, struct items_fence *out, struct slu_err *err);

/* Reads `wanted`. Returns SLU_EMOVED if the shard has another writer. */
int items_look(struct items *t, struct items_fence *f, struct slu_err *err);

/* Sets ids to up to max ids of the shard's rows above `after`, in order, and *n to their number. dead: reads
 * sluice.dead_letters instead of sluice.items. */
int items_page(struct items *t, const struct items_fence *f, bool dead, uint64_t after, uint64_t *ids, uint32_t max,
	       uint32_t *n, struct slu_err *err);

/* ---- Batches ---- */

struct items_row {
	uint64_t id;
	struct slice space;
	struct slice queue;
	const char *status;
	int32_t prio;
	struct slice payload;
	bool has_payload;   /* false: the column is NULL */
	slu_time due;       /* as requested */
	slu_time until;     /* the end of the lease; 0: NULL */
	slu_time accepted;  /* when */
	const char *reason; /* of the death; NULL: not a dead letter */
	struct slice error; /* valid UTF-8 without NUL; n 0: NULL */
	slu_time died;      /* when; 0: NULL */
};

enum items_column {
	ITEMS_NOT_LIVE, /* ids without a row in sluice.items */
	ITEMS_NOT_DEAD, /* ids without a row in sluice.dead_letters */
	ITEMS_ID,
	ITEMS_NAMESPACE,
	ITEMS_TOPIC,
	ITEMS_STATUS,
	ITEMS_PRIORITY,
	ITEMS_PAYLOAD,
	ITEMS_DELIVER_AFTER,
	ITEMS_LEASE_EXPIRES_AT,
	ITEMS_CREATED_AT,
	ITEMS_REASON,
	ITEMS_ERROR,
	ITEMS_DIED_AT,
	ITEMS_COLUMNS
};

/* A batch: arrays in the binary form of PostgreSQL. */
struct items_batch {
	struct buf columns[ITEMS_COLUMNS];
	uint32_t counts[ITEMS_COLUMNS];
	size_t bytes; /* of payloads */
	uint32_t n;   /* messages */
};

void items_batch_init(struct items_batch *b);
void items_batch_clear(struct items_batch *b);
void items_batch_release(struct items_batch *b);

/* The message has this row. Copies it. */
void items_batch_put(struct items_batch *b, const struct items_row *row);

/* The message has no row. */
void items_batch_drop(struct items_batch *b, uint64_t id);

/* Writes the batch (ITEMS-1, ITEMS-2) and reads `wanted`. Returns SLU_EMOVED if the shard has another writer. After
 * SLU_EDOWN or SLU_ETIMEOUT the batch may have been written. */
int items_write(struct items *t, struct items_fence *f, struct items_batch *b, struct slu_err *err);

#endif
