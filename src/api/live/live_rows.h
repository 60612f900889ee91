/*
 * live_rows.h - the queues as the last look saw them, in the order in which they changed.
 *
 *      order:  | jobs 17 | mail 40 | orders 41 |     the number is the version of the row
 *                                  ^
 *      a reader that has version 40 lacks the rows behind it
 *
 *  LIVE-ROWS-1  A row gets a new version when a count, a total, or its pause changes. Its age alone is no change: time
 *               passes for readers as well.
 *  LIVE-ROWS-2  A queue that is gone stays for GONE_KEPT looks as a row that says so. A reader that has less than `floor`
 *               may have missed a row, and must begin anew.
 *  LIVE-ROWS-3  At most LIVE_QUEUES queues; `over` counts the others of a look.
 *
 * The caller locks.
 */
#ifndef API_LIVE_LIVE_ROWS_H
#define API_LIVE_LIVE_ROWS_H

#include "base/bytes.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/map.h"
#include "engine/op.h"

enum {
	LIVE_QUEUES = 10000
};

struct live_row {
	struct list node; /* in `order` */
	uint64_t version;
	uint64_t hash;
	uint32_t handle;
	uint32_t pass; /* the last look that saw the queue; of a queue that is gone: the look that did not */
	uint32_t lane;
	bool gone;
	struct live_counts {
		uint32_t count[MSG_STATES];
		struct ledger_totals totals;
		uint32_t warn_depth;
		uint32_t workers, slots, used;
		uint64_t pause; /* a hash of its note */
		uint64_t tags;  /* a hash */
		slu_time warn_age;
		bool paused, draining, held;
	} counts;
	struct slice text; /* JSON; n 0: the row has not changed since the first look */
	uint32_t space_n;
	char key[]; /* the namespace and the queue, each with a NUL */
};

struct live_rows {
	struct live_slot {
		struct live_row *row; /* NULL: free */
		uint32_t next;        /* free slot, plus 1; 0: none */
	} * slots;                    /* by handle */
	uint32_t n, room;
	uint32_t free; /* the first free slot, plus 1 */
	uint32_t used;
	struct map map;
	struct hash_key secret;
	struct list order;
	uint64_t version, floor;
	uint32_t pass;
	bool filled; /* a look was whole */
	uint32_t over, last_over;
	struct live_counts sum, totals; /* of this look; of the last one */
	uint64_t queues, last_queues;   /* the same */
	struct buf text;                /* room to write a row */
};

/* Returns SLU_ENOMEM. */
int live_rows_init(struct live_rows *r);
void live_rows_release(struct live_rows *r);

/* A look begins; a queue of it; the look ends. whole: every shard has answered. shard: NULL: the server has one. */
void live_rows_begin(struct live_rows *r);
void live_rows_note(struct live_rows *r, const struct op_queue *q, uint32_t lane, const char *shard);
void live_rows_end(struct live_rows *r, bool whole);

/* The first row behind a version, or NULL; the one after a row, or NULL. */
const struct live_row *live_rows_after(const struct live_rows *r, uint64_t version);
const struct live_row *live_rows_next(const struct live_rows *r, const struct live_row *row);

#endif
