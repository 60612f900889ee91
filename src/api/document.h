/*
 * document.h - what is kept beside a lock key, on its way out: its bytes as they are.
 *
 *      the loop                                       a file thread
 *
 *      document_send ──> read: small ──> call_answer
 *                              large ──> call_begin
 *      more: read ──> call_piece
 *      more: this would have to wait ───────────────> read
 *                            call_piece <───────────
 *
 * However large it is and however slowly it is read, the answer takes one piece of
 * memory. What cannot be read before the first piece is refused; later the answer breaks
 * off, and whoever gets it sees that it is not whole.
 */
#ifndef API_DOCUMENT_H
#define API_DOCUMENT_H

#include "api/ask.h"

enum {
	DOCUMENT_PIECE = 256 << 10,
	DOCUMENT_LARGE = 1 << 20 /* of more is not read as a whole */
};

struct document {
	/* Set by the maker; all else is zero. */
	struct ask *ask;
	struct op *op; /* that pinned it: unpinned here, when the call has ended */
	const struct op_ref *record, *payload;
	/* Called once, before anything is sent, to add fields. */
	void (*head)(struct document *d, const struct message *m);

	/* Inner. */
	uv_work_t work;
	void (*ended)(struct call *c, bool sent); /* the call's own */
	const struct op_ref *ref;                 /* that has the rest; NULL: not begun */
	uint64_t at, end;                         /* in it */
	char *room;
	bool begun; /* call_begin */
	bool last;
	int rc;
	struct slu_err err;
};

/* Answer the call. In the memory of the ask, which uses ask->part for it. */
void document_send(struct document *d);

/* All of its bytes, behind what out has. SLU_ETOOBIG: more than max. SLU_EBUSY: it would
 * have to wait, and out is as it was. */
int document_read(struct engine *e, const struct op_ref *record, const struct op_ref *payload,
		  uint64_t max, bool may_block, struct buf *out, struct slu_err *err);

/* The record without its payload; the text of m is in *room, which the caller frees. */
int document_head(struct engine *e, const struct op_ref *record, bool may_block, char **room,
		  struct message *m, struct slu_err *err);

#endif
