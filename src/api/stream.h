/*
 * stream.h - sends rows with large payloads in pieces, and reads them meanwhile.
 *
 *      the loop                                       a file thread
 *
 *      a piece ──> call_begin
 *      more: read, encode ──> exchange_piece
 *      more: the read would block ──────────────────> read, encode
 *                            exchange_piece <───────
 *      ... the last piece: `finish` ends the JSON
 *
 * As rows.h, for answers that are larger than a piece, or have a payload with a file of its
 * own, or one that is large in the memory of its engine. Such a payload is the last member of
 * its object. An answer of any size, to a client of any speed, takes about STREAM_PIECE bytes
 * of memory.
 *
 * A stream that stays open has no last row: when the kernel has all bytes, `drained` runs, and
 * stream_next continues with other rows.
 *
 *  STREAM-1  Rows stay pinned until the call has ended; then the stream unpins them.
 *  STREAM-2  A row that cannot be read before the first piece is left out or refused, as in
 *            rows_start. Later the answer breaks, and the client sees that it is not whole.
 */
#ifndef API_STREAM_H
#define API_STREAM_H

#include "api/rows.h"

enum {
	STREAM_PIECE = 256 << 10,
	STREAM_LARGE = 1 << 20 /* a larger record is read in pieces */
};

struct stream {
	struct rows *rows;              /* apicall, op, write and w are set; done is not used */
	void (*finish)(struct rows *r); /* writes the end of the JSON */
	uint64_t max_bytes;             /* rows beyond it have no payload; 0: no limit */
	bool wants_client;              /* EXCHANGE-5: a sent row is delivered */
	bool whole;                     /* the last piece was given, and the answer is complete */

	const char *type;                  /* of the answer; NULL: JSON */
	bool raw;                          /* the payload follows the row as plain bytes */
	bool stays;                        /* stays open after all rows are sent */
	void (*drained)(struct stream *s); /* on the loop: all rows are sent, or all were left
					    * out. NULL: the stream ends */
	uint32_t sent;                     /* rows of this round that the kernel has whole */
	bool cut;                          /* the kernel has a part of the row after these */

	/* Private. */
	void (*ended)(struct exchange *x, bool sent); /* the one before stream_start */
	struct json_out before;                       /* the state before the current row, to leave it out */
	size_t before_n;
	const struct op_ref *ref; /* the payload of the current row; NULL: none left */
	uint64_t base, at, end;   /* positions in ref */
	char *piece;
	bool begun;    /* call_begin */
	bool in_piece; /* the current row began in the unsent piece */
	bool last;
};

/* Returns true if the rows of op need a stream: one is long, or all together are. */
bool stream_is_needed(const struct op *op);

/* Returns true if one of the rows cannot be read whole. */
bool stream_has_long(const struct op *op);

/* Answers the call. s is in the memory of the apicall. */
void stream_start(struct stream *s);

/* In or after `drained`: continues with the new rows of the op. */
void stream_next(struct stream *s);

/* In or after `drained`: no more rows; calls finish and ends the answer. */
void stream_finish(struct stream *s);

#endif
