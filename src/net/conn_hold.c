/*
 * conn_hold.c - requests that wait until the server is ready (SERVER-10), and memory.
 *
 *      head ──> admitted ──> held: nothing of its body is parsed ──┬─ released ──> continues
 *                                                                  ├─ too long ──> refused
 *                                                                  └─ client gone ─> dropped
 *
 * Only the loop's thread uses a connection, so it reads `held` once per request.
 * server_release clears it first and then visits every front: no request is forgotten.
 */
#include "net/front.h"
#include "net/protocol.h"

bool
conn_hold(struct conn *c, struct exchange *x)
{
	x->awaits_start = atomic_load(&c->front->shared->held);
	return x->awaits_start;
}

/* The bytes read meanwhile count as others do (SERVER-8). */
void
conn_charge_held(struct conn *c)
{
	struct exchange *const x = c->reading;

	conn_charge(c->front, x, c->in.n - x->charged);
	if (conn_has_memory(c->front, x))
		return;
	front_count(c->front, SERVER_NO_MEMORY, 1);
	conn_refuse_held(c, CONN_MEMORY);
}

void
conn_refuse_held(struct conn *c, enum conn_refusal why)
{
	c->reading->awaits_start = false;
	c->protocol->ops->refuse(c, why);
}

void
conn_go_ahead(struct conn *c)
{
	struct exchange *const x = c->reading;

	x->awaits_start = false;
	conn_charge(c->front, x, -x->charged); /* the bytes are counted again when they are parsed */
	if (c->protocol->ops->resume)
		c->protocol->ops->resume(c);
	front_dirty(c->front, c);
}

/* --- memory ------------------------------------------------------------------- */

bool
conn_has_memory(const struct front *f, const struct exchange *x)
{
	return f->bodies <= atomic_load_explicit(&f->shared->max_bodies, memory_order_relaxed) ||
	       f->bodies == x->charged || x->exempt;
}

void
conn_charge(struct front *f, struct exchange *x, size_t n)
{
	f->bodies += n;
	x->charged += n;
	front_count(f, SERVER_BODIES, n);
}
