/*
 * spares.h - spare segments: files of full size that wait to become part of the log.
 *
 *      prepare (file thread) ──> +--------+ ──take──> the log
 *      give (a recycled one) ──> | spares |
 *      need (too few)        ──> +--------+ ──too many──> removed
 *
 * A sync of a file whose blocks were written before is faster than a sync of a file that
 * grows. So another thread fills the next spare with zeros ahead of need; a recycled segment
 * is as good. When there are too few spares, the log's own thread allocates a spare: that is
 * quick, but later syncs are slower.
 *
 * New spares are `size` bytes. When the log changes the size (wal.h, WAL-9), spares of another
 * size stay until there are enough new spares; then they are removed.
 *
 *  SPARES-1  `reserve` spares of `size` bytes are reserved for records that settle messages
 *      (WAL-4). New work is accepted, and gets a spare, only while that many are left.
 *  SPARES-2  A spare is a file `spare-00000001`. While it is made its name ends in `.tmp`;
 *      open removes files of that name. A name counts after a sync of the folder.
 *  SPARES-3  A pinned spare (segment.h, SEGMENT-3) is not taken and not counted.
 *  SPARES-4  A spare that was taken ahead of its use counts as ready for the next change. A
 *      thread that made a spare which is not missing any more removes it.
 *  SPARES-5  The log takes a filled spare first, and the newest of these. `ahead` spares are
 *      filled; the others, the reserve, are only allocated, because the log takes them only if
 *      the disk is full or the other thread is late. Zeros of spares that are smaller than
 *      the largest are written past the page cache: the log soon takes larger ones. Zeros of
 *      the largest stay in the page cache, so that the log's thread need not fetch pages. The
 *      log writes whole pages (group.h), so the kernel never reads zeros back. Open takes
 *      every spare that it finds as filled.
 *
 * spares_prepare, spares_wants and spares_owed are safe from any thread. Only the log's
 * thread calls the others.
 */
#ifndef WAL_SPARES_H
#define WAL_SPARES_H

#include "base/clock.h"
#include "base/log.h"
#include "wal/segment.h"

#include <pthread.h>

struct spares_conf {
	struct disk *disk;
	struct clock *clock;
	struct slu_log *log;
	int folder;
	uint32_t size;         /* of new spares; spares_set_size changes it */
	uint32_t smallest;     /* smallest size of a spare */
	uint32_t largest;      /* largest size of a spare */
	uint32_t reserve;      /* spares reserved for settling */
	uint32_t ahead;        /* spares kept ready beyond the reserve */
	uint32_t max_segments; /* files in all; 0 = as many as the disk holds */
};

struct spares {
	struct spares_conf conf; /* fixed, except reserve and size, which are shared */
	pthread_mutex_t mtx;

	/* shared, under mtx */
	struct list spares; /* best first */
	uint32_t n;         /* spares in the list */
	uint32_t making;    /* spares being made */
	uint32_t filling;   /* of these, spares being filled with zeros */
	uint32_t planned;   /* spares taken and not in use yet */
	uint32_t total;     /* files: spares, spares being made, segments of the log */
	uint32_t last_name; /* highest number in a spare's name */
	slu_time retry_at;  /* mono: do not try to make a spare before */
	uint32_t no_room;   /* size of the last spare that the disk had no room for; 0 = another failure */
};

enum wal_use {
	WAL_NEW,    /* new work: does not use the reserve */
	WAL_SETTLE, /* claim, nack, a lease that ends: may take the last spare */
	WAL_FREE    /* ack, purge, cleaning, opening: may fill the last spare to its end */
};

int spares_init(struct spares *st, const struct spares_conf *conf);
void spares_release(struct spares *st); /* the files stay */

/* Adopts a spare that open found in the folder; removes the file if it is not a valid
 * spare. New spares get the size of the largest adopted spare. */
int spares_adopt(struct spares *st, uint32_t number, struct slu_err *err);

/* Counts one more file of the log. Spares of spares_take are counted already. */
void spares_count(struct spares *st);

/* Sets how many spares are reserved for settling. */
void spares_set_reserve(struct spares *st, uint32_t reserve);

/* Sets and returns the size of new spares. */
void spares_set_size(struct spares *st, uint32_t size);
uint32_t spares_segment_size(const struct spares *st);

/* Whether spares_prepare has something to do. */
bool spares_wants(struct spares *st);

/* If spares_wants: makes one spare (SPARES-5), or removes a spare that is not needed.
 * Returns SLU_EFULL or SLU_EDOWN; then nothing has changed. */
int spares_prepare(struct spares *st, struct slu_err *err);

/* Whether spares of the reserve are missing and the disk had no room for them. */
bool spares_is_short(struct spares *st);

/* Ensures that n spares of at least that size can be taken for this use, and that SPARES-1 holds.
 * May allocate files. Returns SLU_EFULL, SLU_EDOWN or SLU_ENOMEM; then nothing has changed. */
int spares_need(struct spares *st, uint32_t n, uint32_t size, enum wal_use use,
		struct slu_err *err);

/* Takes a spare of at least that size for the caller, after spares_need; it is planned. */
struct segment *spares_take(struct spares *st, uint32_t size);

/* A planned spare is in use now. */
void spares_use(struct spares *st);

/* Gives a planned spare back. */
void spares_untake(struct spares *st, struct segment *s);

/* Takes a segment out of the log: renames it to a spare and syncs the folder, or removes
 * the file. Takes the log's reference. */
int spares_give(struct spares *st, struct segment *s, struct slu_err *err);

/* How many bytes of records new work can add: in spares, and on the free disk. Negative if
 * a part of the reserve is missing. */
int64_t spares_room(struct spares *st);

/* The number of spares and their bytes. */
uint32_t spares_count_kept(struct spares *st, uint64_t *bytes);

/* Bytes that must be free on the disk so that the missing spares of the reserve (SPARES-1) can be
 * made. */
uint64_t spares_owed(struct spares *st);

#endif
