/*
 * rows.h - the rows of an answer as JSON: each record is read where it is pinned.
 *
 *      the loop                                 a file thread (libuv's pool)
 *
 *      read, write, read, write, ...
 *      this one would have to wait ───────────> read, write, read, write, ...
 *      done(a) <──────────────────────────────  all written
 *
 * So what is in the page cache is answered at once, and what is not holds up nobody:
 * neither the loop nor the shard. A payload that has a file of its own is left out
 * here; api/stream.h sends it.
 *
 * A record whose bytes are not those that were written is never handed out: a claim
 * leaves it out and sets it aside (api/aside.h), a look may show that it is damaged.
 */
#ifndef API_ROWS_H
#define API_ROWS_H

#include "api/ask.h"
#include "base/json_out.h"

/* Writes the row as a value. error: of its last failure, or empty. */
typedef void rows_write(struct json_out *w, const struct op_row *row,
			const struct message *m, struct slice error);

struct rows {
	struct ask *ask;
	struct op *op; /* whose rows these are */
	rows_write *write;
	void (*done)(struct ask *a, int rc); /* on the loop */
	struct json_out w;                   /* writes to the call's out */

	/* For those who look at more than they write. */
	bool patient;       /* all of it on a file thread: it reads much */
	uint64_t max_bytes; /* ends behind the row that brings it there; 0: no limit */
	bool enough;        /* set by write: ends behind this row */
	bool shows_damaged; /* with an empty message; else they are left out */

	struct slice record; /* for write: the row's, as it was read */

	/* Inner. */
	uv_work_t work;
	char *room; /* for a record and an error text */
	size_t room_size;
	struct engine_near *near; /* neighbours that were read with one call; or NULL */
	uint32_t near_at;         /* the first of them, */
	uint32_t near_end;        /* and the one behind the last */
	uint64_t bytes;
	uint32_t at; /* the next row; after done: how many were looked at */
	int rc;
};

/* Write every row of op->rows as a value of w, an array that the caller has opened.
 * Then the records are unpinned and done is called, perhaps before this returns. rc:
 * SLU_ENOMEM or SLU_EDOWN, and what was written is worth nothing. */
void rows_start(struct rows *r);

/* For stream.c: the row r->at cannot be read. */
void rows_damaged(struct rows *r, const struct slu_err *why);

/* For stream.c: room for n bytes in r->room. SLU_ENOMEM. */
int rows_room(struct rows *r, size_t n);

/* For stream.c: the next row, r->at, into r->room: its record and behind it its error
 * text. SLU_EBUSY, SLU_ECORRUPT and the like. */
int rows_read(struct rows *r, bool may_block, struct message *m, struct slice *error,
	      struct slu_err *err);

#endif
