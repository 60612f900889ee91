/*
 * conn_hold.c - requests that wait for the server to be ready (S10 of server.h).
 *
 *      head ──> admitted ──> held: nothing of its body is parsed ──┬─ released ──> goes on
 *                                                                  ├─ too long ──> 503
 *                                                                  └─ client gone ─> dropped
 *
 * Only the loop's thread touches a connection, so it reads `held` once, when a head is there:
 * server_release clears it first and then visits every front, so no request is forgotten.
 */
#include "http/conn.h"

#include "http/front.h"

const char conn_go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

bool
conn_hold(struct conn *c, struct call *call)
{
	call->awaits_start = atomic_load(&c->front->shared->held) && !call->route->early;
	return call->awaits_start;
}

/* What is read of a body meanwhile counts as others do (S8). */
void
conn_charge_held(struct conn *c)
{
	struct call *const call = c->reading;

	conn_charge(c->front, call, c->in.n - call->charged);
	if (conn_has_memory(c->front, call))
		return;
	front_count(c->front, SERVER_NO_MEMORY, 1);
	conn_refuse_held(c, "request_memory");
}

void
conn_refuse_held(struct conn *c, const char *reason)
{
	c->reading->awaits_start = false;
	conn_refuse(c, 503, reason);
}

void
conn_go_ahead(struct conn *c)
{
	struct call *const call = c->reading;

	call->awaits_start = false;
	conn_charge(c->front, call, -call->charged); /* the bytes are counted again as they are parsed */
	if (c->request.expect_continue && c->in.n == 0)
		call->interim = slice_of(conn_go_on);
	front_dirty(c->front, c);
}
