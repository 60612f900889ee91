/*
 * rows.h - writes the rows of an op as JSON, and reads the record of each.
 *
 *      the loop                                 a file thread (libuv's pool)
 *
 *      read, write, read, write, ...
 *      the next read would block ─────────────> read, write, read, write, ...
 *      done(a) <──────────────────────────────  all written
 *
 * Records in the page cache are answered at once. Other reads block neither the loop nor the
 * shard. A payload with a file of its own is left out here; api/stream.h sends it.
 *
 * A damaged record is never delivered: a claim leaves it out and sets it aside
 * (api/quarantine.h); a list may show that it is damaged.
 */
#ifndef API_ROWS_H
#define API_ROWS_H

#include "api/apicall.h"
#include "base/json/json_out.h"

/* Writes the row as a value. error: the text of its last failure, or empty. */
typedef void rows_write(struct json_out *w, const struct op_row *row,
			const struct message *m, struct slice error);

struct rows {
	struct apicall *apicall;
	struct op *op; /* has the rows */
	rows_write *write;
	void (*done)(struct apicall *a, int rc); /* on the loop */
	struct json_out w;                       /* writes to the call's out */

	/* For a search, which reads more than it writes. */
	bool patient;       /* read on a file thread from the start */
	uint64_t max_bytes; /* ends after the row that reaches it; 0: no limit */
	bool enough;        /* set by write: this row is the last */
	bool resumes;       /* of a claim: sets `checkpoint` */
	bool shows_damaged; /* write damaged rows with an empty message; otherwise leave them out */

	/* What bodies hide (api/mask/mask.h); NULL: nothing. rows_start takes the reference. */
	struct mask *mask;
	bool sees; /* the caller may see what is hidden: write gets masked messages, and `plain` is the message as it is */

	struct message plain; /* for write */
	bool hidden;          /* for write: the message hides something */

	struct slice record;     /* for write: the record of the row */
	struct slice tried;      /* for write: its attempts and last error (engine/attempts.h) */
	struct slice checkpoint; /* for write, of a claim: its state, a JSON document; n 0: none, or not shown */

	/* Private. */
	char *room; /* for a record and an error text */
	size_t room_size;
	struct buf masked;        /* what mask_message wrote */
	struct engine_near *near; /* neighbours read with one call, or NULL */
	uint32_t near_at;         /* row of the first neighbour */
	uint32_t near_end;        /* row behind the last neighbour */
	uint64_t bytes;
	uint32_t at; /* the next row; after done: the number of rows read */
};

/* Writes every row of op->rows as a value of w, an array that the caller has opened. Then
 * unpins the records and calls done, maybe before it returns. If rc is SLU_ENOMEM or
 * SLU_EDOWN, the written part is invalid. */
void rows_start(struct rows *r);

/* Sets r->mask for the bodies of a namespace (n 0: of all) that the caller gets. asked: masked ones, also if he may see them. */
void rows_hide(struct rows *r, struct slice namespace, bool asked);

/* For write, of an answer with bodies: says that something is hidden. */
void rows_write_masked(struct rows *r);

/* Whether conditions must not look at what is hidden. */
static inline bool
rows_are_masked(const struct rows *r)
{
	return r->mask && !r->sees;
}

/* For write: the message that conditions are about. MASK-1: what a caller may not see must not match. */
static inline const struct message *
rows_searched(const struct rows *r, const struct message *m)
{
	return r->mask && r->sees ? &r->plain : m;
}

/* For stream.c: the row r->at cannot be read. */
void rows_damaged(struct rows *r, const struct slu_err *why);

/* For stream.c: makes room for n bytes in r->room. Returns SLU_ENOMEM. */
int rows_room(struct rows *r, size_t n);

/* For stream.c: bytes of the row r->at that belong behind its record; and reads them to p, a place in r->room. */
size_t rows_size_behind(const struct rows *r);
int rows_read_behind(struct rows *r, char *p, bool may_block, struct slice *error, struct slu_err *err);

/* For stream.c: reads the record of row r->at, and behind it its error text or state, into r->room.
 * Returns SLU_EBUSY if it would block, SLU_ECORRUPT, or another code of engine_read. */
int rows_read(struct rows *r, bool may_block, struct message *m, struct slice *error,
	      struct slu_err *err);

#endif
