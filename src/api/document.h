/*
 * document.h - sends the document or an attachment of a lock key: its bytes as they are.
 *
 *      the loop                                       a file thread
 *
 *      document_send ──> read: small ──> call_answer
 *                              large ──> call_begin
 *      more: read ──> exchange_piece
 *      more: the read would block ──────────────────> read
 *                            exchange_piece <───────
 *
 * An answer of any size, to a client of any speed, takes the memory of one piece. A read that
 * fails before the first piece refuses the call; a later failure breaks the answer, and the
 * client sees that it is not whole.
 */
#ifndef API_DOCUMENT_H
#define API_DOCUMENT_H

#include "api/handler.h"

enum {
	DOCUMENT_PIECE = 256 << 10,
	DOCUMENT_LARGE = 1 << 20 /* a larger one is sent in pieces */
};

struct document {
	struct apicall *apicall;
	struct op *op; /* has pinned the record; unpinned here when the call has ended */

	/* Private. */
	const struct op_ref *record, *payload;
	void (*head)(struct document *d, const struct message *m);
	void (*ended)(struct exchange *x, bool sent); /* the one before document_send */
	const struct op_ref *ref;                     /* holds the bytes; NULL: not begun */
	uint64_t at, end;                             /* in it */
	char *room;
	bool begun; /* call_begin */
	bool last;
	struct slu_err err;
};

/* Answers the call with the record of its op, a STATE_GET. d is in the memory of the apicall,
 * and uses apicall.part. head adds header fields; it runs once, before the first byte. */
void document_send(struct document *d, struct apicall *a,
		   void (*head)(struct document *d, const struct message *m));

/* Appends all bytes of a document to out. Returns SLU_ETOOBIG if it has more than max bytes,
 * SLU_EBUSY if it would block; then out is unchanged. */
int document_read(struct engine *e, const struct op_ref *record, const struct op_ref *payload,
		  uint64_t max, bool may_block, struct buf *out, struct slu_err *err);

/* Reads the record without its payload. m points into *room, which the caller frees. */
int document_head(struct engine *e, const struct op_ref *record, bool may_block, char **room,
		  struct message *m, struct slu_err *err);

#endif
