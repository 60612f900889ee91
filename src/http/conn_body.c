/*
 * conn_body.c - bodies that come in pieces (C8 of call.h).
 *
 *      bytes ──> in ── CALL_PIECE of them, or the end ──> piece ──> take(c)
 *                ^                                                    │ any thread
 *                └── meanwhile: the next piece, and then no more ─────┴──> call_next(c)
 *
 * So a body of any length takes the memory of two pieces, and what writes it to a disk
 * works while the next piece arrives. A client that is faster than the disk is not read.
 */
#include "http/conn.h"

#include "http/front.h"

#include <assert.h>

static bool
has_pieces(const struct call *call)
{
	return call && call->route && call->route->take;
}

bool
conn_is_paused(const struct conn *c)
{
	const struct call *const call = c->reading;

	if (!has_pieces(call))
		return false;
	if (call->arrived)
		return true;
	return call->taking && (call->in.n >= CALL_PIECE || c->request.refused);
}

/* Either buffer has room for a piece, and for what one read may bring beyond it. */
void
conn_begin_body(struct call *call)
{
	call->in.max = call->route->max_body;
	if (has_pieces(call) && call->in.max > (size_t)2 * CALL_PIECE)
		call->in.max = (size_t)2 * CALL_PIECE;
}

static void
give_piece(struct conn *c, struct call *call)
{
	const struct buf in = call->in;

	call->in = call->piece;
	call->in.max = in.max;
	call->piece = in;
	buf_clear(&call->in);
	call->body = buf_slice(&call->piece);
	call->taking = true;
	call->state = CALL_RUNNING;
	call->route->take(call, c->front->shared->conf.arg);
}

/* The handler may have answered in `take`; then it is not read any more. */
bool
conn_hand_on(struct conn *c)
{
	struct call *const call = c->reading;

	if (!has_pieces(call))
		return true;
	while (c->reading == call && !call->taking &&
	       (call->in.n >= CALL_PIECE || (call->arrived && call->in.n > 0)))
		give_piece(c, call);
	if (c->reading == call && call->arrived && !call->taking) {
		c->reading = NULL;
		conn_run(c, call);
	}
	return !conn_is_paused(c);
}

/* The handler has done with its piece: the call is the connection's again. */
void
conn_taken(struct conn *c, struct call *call)
{
	struct front *const f = c->front;

	assert(call->taking && c->reading == call);
	call->taking = false;
	call->state = CALL_READING;
	f->bodies -= call->body.n;
	call->charged -= call->body.n;
	front_count(f, SERVER_BODIES, -(uint64_t)call->body.n);
	if (!c->in_turn)
		front_dirty(f, c);
}

/* It was answered before its body was whole: nobody wants the rest. */
void
conn_end_body(struct conn *c, struct call *call)
{
	c->reading = NULL;
	if (call->arrived)
		return;
	call->response.keep_alive = false;
	c->unread = true;
}
