/*
 * stream.h - rows with large payloads: an answer in pieces, read as it is sent.
 *
 *      the loop                                       a file thread
 *
 *      a piece ──> call_begin
 *      more: read, encode ──> call_piece
 *      more: this would have to wait ───────────────> read, encode
 *                            call_piece <───────────
 *      ... the last piece: `finish` ends the JSON
 *
 * As rows.h, for answers that are larger than a piece, hold a payload with a file of its own, or
 * one that is large in the memory of its engine. Such a payload is the last member of its object.
 * However large the answer is and however slowly it is read, it takes one piece of
 * memory, about STREAM_PIECE bytes.
 *
 * One that stays open has no last row: when the kernel has all that was given, `drained`
 * is called, and whoever has other rows then goes on with stream_next.
 *
 *  T1  Rows are pinned until the call has ended, and are unpinned here.
 *  T2  What cannot be read before the first piece is left out or refused, as with
 *      rows_start. Later that cannot be said any more: the answer breaks off, and whoever
 *      gets it sees that it is not whole.
 */
#ifndef API_STREAM_H
#define API_STREAM_H

#include "api/rows.h"

enum {
	STREAM_PIECE = 256 << 10,
	STREAM_LARGE = 1 << 20 /* a record of more is not read as a whole */
};

struct stream {
	struct rows *rows;              /* ask, op, write and w are set, done is not used */
	void (*finish)(struct rows *r); /* writes what stands behind the rows */
	uint64_t max_bytes;             /* rows behind so many have no payload; 0: all do */
	bool wants_client;              /* C5 of http/call.h: what is sent is given away */
	bool whole;                     /* the last piece was given, and all is in it */

	const char *type;                  /* of the answer; NULL: JSON */
	bool raw;                          /* payloads go as they are behind what write wrote */
	bool stays;                        /* open, when all rows are sent */
	void (*drained)(struct stream *s); /* on the loop: they are; or, of any stream, all
					    * were left out. NULL: it ends then */
	uint32_t sent;                     /* rows that the kernel has whole, of those under way */

	/* Inner. */
	void (*ended)(struct call *c, bool sent); /* the call's own */
	uv_work_t work;
	struct json_out before; /* the row under way, to leave it out */
	size_t before_n;
	const struct op_ref *ref; /* its payload; NULL: it needs no more */
	uint64_t base, at, end;   /* where in the ref */
	char *piece;
	bool begun;    /* call_begin */
	bool in_piece; /* the row under way began in what is not sent yet */
	bool last;
	int rc;
};

/* Is the answer of op one of those? */
bool stream_is_needed(const struct op *op);

/* Answer the call. In the memory of the ask. */
void stream_start(struct stream *s);

/* In, or after, `drained`: the op has other rows now. */
void stream_next(struct stream *s);

/* The same: there are none, and no more will come. finish writes what stands behind. */
void stream_finish(struct stream *s);

#endif
