/*
 * live.h - what changes in the queues, for readers that stay: one look for all of them.
 *
 *      a thread, each second             rows, newest last            readers, on their loops
 *
 *      OP_QUEUES to each lane, ────────> | . . . x . x x | ─────────> a line with the rows behind
 *      page by page                                                   the version of the reader
 *           └─ something changed: wakes the readers that wait
 *
 *  LIVE-1  The thread begins with the first reader. Without a reader nothing is looked at, and after LIVE_LINGER no row is kept.
 *  LIVE-2  A look takes LIVE_LOOK queues; with more it goes on a second later. The first look takes all.
 *  LIVE-3  A reader is a number, and has no queue of lines: a slow one gets fewer lines, each with the newest rows. A line has
 *          LIVE_LINE rows; if more changed it says `more`, and has none.
 *  LIVE-4  A reader gets a line each LIVE_BEAT, also if nothing has changed.
 *  LIVE-5  The first line of a reader follows a look that began after live_join: what the reader lists behind that line, it
 *          need not look for.
 *  LIVE-6  live_stop ends every reader: before the server drains.
 *
 * Any thread; one mutex, held for a page of queues or a line.
 */
#ifndef API_LIVE_LIVE_H
#define API_LIVE_LIVE_H

#include "api/live/live_rows.h"
#include "net/loop.h"

#define LIVE_EVERY  SLU_SEC
#define LIVE_SOON   (100 * SLU_MS) /* after a reader has joined */
#define LIVE_BEAT   (10 * SLU_SEC)
#define LIVE_LINGER (5 * SLU_SEC)

enum {
	LIVE_READERS = 64,
	LIVE_LOOK = 4096,
	LIVE_LINE = 1000
};

struct api;
struct live;

struct live_reader {
	struct loop *loop;
	struct loop_work woken; /* its `run` runs on the loop: the reader calls live_take */
	bool whole;             /* may see the whole server: its lines have totals */
	bool (*sees)(const struct live_reader *r, struct slice space);

	/* Private. */
	struct list node;
	bool joined, begun, waits;
	uint64_t version;
	uint64_t round; /* of its last line */
	uint32_t look;  /* LIVE-5 */
};

enum live_got {
	LIVE_NOTHING,
	LIVE_GOT, /* out has a line */
	LIVE_ENDED
};

/* When the broker is open: sets api->live. Returns SLU_ENOMEM. */
int live_start(struct api *api, struct slu_err *err);
void live_stop(struct live *l); /* LIVE-6; NULL is fine */
void live_free(struct live *l); /* no reader is left; NULL is fine */

/* The caller has set the first members. Returns SLU_EBUSY: there are LIVE_READERS, SLU_ECLOSED: the server stops,
 * SLU_ENOMEM. */
int live_join(struct live *l, struct live_reader *r, struct slu_err *err);
void live_leave(struct live *l, struct live_reader *r); /* also of a reader that has not joined */

/* Writes the next line. */
enum live_got live_take(struct live *l, struct live_reader *r, struct buf *out);

/* After LIVE_NOTHING. Returns false if there may be a line by now. Otherwise `woken` runs once, unless live_forget is called
 * first and returns true. */
bool live_wait(struct live *l, struct live_reader *r);
bool live_forget(struct live *l, struct live_reader *r);

#endif
