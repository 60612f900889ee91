/*
 * stock.h - spare segments: files of full size that wait for their place in the log.
 *
 *      prepare (file thread) ──> +-------+ ──take──> the log
 *      give (a recycled one) ──> | stock |
 *      need (when it is short)─> +-------+ ──too many──> removed
 *
 * Every sync of a file whose blocks were written before is faster than of one that
 * grows. So spares are written with zeros, ahead and by another thread; a recycled
 * segment is as good. When the stock is short, the log's own thread makes one by
 * allocating it: quick, and slower to sync later.
 *
 * Spares are made `size` large. When the log changes that (wal.h, W9), those of another
 * size stay until there are enough new ones; then they are removed.
 *
 *  K1  The last bytes, `reserve` spares of that size, are for what settles messages (W4):
 *      new work gets a spare only while that many are left, and is taken at all only
 *      while they are.
 *  K2  A spare is a file `spare-00000001`; while it is made it has `.tmp` behind, and
 *      such files are removed at open. A name counts after a sync of the folder.
 *  K3  A spare that somebody still reads (segment.h, S3) is not taken and not counted.
 *  K4  One that was taken ahead of its use counts as ready for the next change. Whoever
 *      ahead of need has made one that is not missing any more removes it again.
 *
 * stock_prepare, stock_wants and stock_owed are safe from any thread; the rest is the
 * log's.
 */
#ifndef WAL_STOCK_H
#define WAL_STOCK_H

#include "base/clock.h"
#include "base/log.h"
#include "wal/segment.h"

#include <pthread.h>

struct stock_conf {
	struct disk *disk;
	struct clock *clock;
	struct slu_log *log;
	int folder;
	uint32_t size;         /* of a spare; stock_set_size */
	uint32_t smallest;     /* which that may be, */
	uint32_t largest;      /* and this */
	uint32_t reserve;      /* spares kept for settling */
	uint32_t ahead;        /* spares kept ready beyond those */
	uint32_t max_segments; /* files in all; 0: as many as the disk holds */
};

struct stock {
	struct stock_conf conf; /* fixed but for reserve and size, which are shared */
	pthread_mutex_t mtx;

	/* shared, under mtx */
	struct list spares; /* best first */
	uint32_t n;
	uint32_t making;
	uint32_t planned;   /* taken, and not in use yet */
	uint32_t total;     /* files: spares, those being made, the log's */
	uint32_t last_name; /* of a spare */
	slu_time retry_at;  /* mono: no use in trying to make one before */
	bool was_full;      /* the last one could not be made because the disk was full */
};

enum wal_use {
	WAL_NEW,    /* adds work: leaves the reserve alone */
	WAL_SETTLE, /* claim, nack, what falls due: may take the last spare */
	WAL_FREE    /* ack, purge, cleaning, and to open at all: may fill it to the end */
};

int stock_init(struct stock *st, const struct stock_conf *conf);
void stock_release(struct stock *st); /* the files stay */

/* A spare that was found in the folder, or one that is none: then it is removed. Spares are
 * made as large as the largest. */
int stock_adopt(struct stock *st, uint32_t number, struct slu_err *err);

/* The log has one file more of its own (stock_take's are counted already). */
void stock_count(struct stock *st);

void stock_set_reserve(struct stock *st, uint32_t reserve);

/* From now on spares are made so large. */
void stock_set_size(struct stock *st, uint32_t size);
uint32_t stock_segment_size(const struct stock *st);

bool stock_wants(struct stock *st);

/* Make one spare, written with zeros, or remove one of another size, if stock_wants.
 * SLU_EFULL, SLU_EDOWN: nothing has changed. */
int stock_prepare(struct stock *st, struct slu_err *err);

/* The reserve is not whole, and there was no room to make it so. */
bool stock_is_short(struct stock *st);

/* See to it that n spares of at least that size can be taken for this use, and what K1
 * asks is there. May allocate. SLU_EFULL, SLU_EDOWN, SLU_ENOMEM: nothing has changed. */
int stock_need(struct stock *st, uint32_t n, uint32_t size, enum wal_use use,
	       struct slu_err *err);

/* After stock_need there is one of at least that size. The caller's from now on: planned,
 * then in use, or not needed after all. */
struct segment *stock_take(struct stock *st, uint32_t size);
void stock_use(struct stock *st);
void stock_untake(struct stock *st, struct segment *s);

/* Take a segment out of the log, under a spare's name; the name is synced when this
 * returns 0. The log's reference goes to the stock, or with the file. */
int stock_give(struct stock *st, struct segment *s, struct slu_err *err);

/* How many more bytes of records new work could have: in spares, and in what the disk
 * would hold. Less than 0 when not even the reserve is there. */
int64_t stock_room(struct stock *st);

uint32_t stock_count_spares(struct stock *st, uint64_t *bytes); /* and how large all are */

/* Bytes that have to be free on the disk so that the reserve (K1) can be made whole. */
uint64_t stock_owed(struct stock *st);

#endif
