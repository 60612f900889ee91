/*
 * http_body.c - bodies that come in pieces (CALL-8).
 *
 *      bytes ──> in ── CALL_PIECE of them, or the end ──> piece ──> take(c)
 *                ^                                                    │ any thread
 *                └── meanwhile: the next piece, and then no more ─────┴──> call_next(c)
 *
 * So a body of any length takes the memory of two pieces, and what writes it to a disk
 * works while the next piece arrives. A client that is faster than the disk is not read.
 */
#include "http/http_private.h"

#include <assert.h>

static bool
has_pieces(const struct call *call)
{
	return call->route && call->route->take;
}

bool
http_is_paused(const struct conn *c)
{
	const struct exchange *const x = c->reading;
	const struct call *const call = CONTAINER(x, const struct call, x);

	if (!has_pieces(call))
		return false;
	if (x->arrived)
		return true;
	return x->taking && (call->in.n >= CALL_PIECE || http_request(c)->refused);
}

/* Either buffer has room for a piece, and for what one read may bring beyond it. */
void
http_begin_body(struct call *call)
{
	call->in.max = call->route->max_body;
	if (has_pieces(call) && call->in.max > (size_t)2 * CALL_PIECE)
		call->in.max = (size_t)2 * CALL_PIECE;
}

static void
give_piece(struct call *call)
{
	const struct buf in = call->in;

	call->in = call->piece;
	call->in.max = in.max;
	call->piece = in;
	buf_clear(&call->in);
	call->body = buf_slice(&call->piece);
	call->x.taking = true;
	call->x.state = EXCHANGE_RUNNING;
	call->route->take(call, exchange_arg(&call->x));
}

/* The handler may have answered in `take`; then the body is not read any more. */
bool
http_hand_on(struct conn *c)
{
	struct exchange *const x = c->reading;
	struct call *const call = call_of(x);

	if (!has_pieces(call))
		return true;
	while (c->reading == x && !x->taking &&
	       (call->in.n >= CALL_PIECE || (x->arrived && call->in.n > 0)))
		give_piece(call);
	if (c->reading == x && x->arrived && !x->taking) {
		c->reading = NULL;
		http_run(call);
	}
	return !c->reading || !http_is_paused(c);
}

/* The handler is done with its piece: the connection owns the call again. */
static void
taken(struct loop_work *w)
{
	struct exchange *const x = CONTAINER(w, struct exchange, work);
	struct conn *const c = exchange_conn(x);

	if (!c) {
		exchange_end(x, false);
		return;
	}
	assert(x->taking && c->reading == x);
	x->taking = false;
	x->state = EXCHANGE_READING;
	conn_charge(c->front, x, -call_of(x)->body.n);
	if (!c->in_turn)
		front_dirty(c->front, c);
}

void
call_next(struct call *c)
{
	assert(c->x.taking && !c->x.answered);
	exchange_on_loop(&c->x, taken);
}
