/*
 * phase.c - the phases of a run, by the operations of peer.h.
 */
#include "bench/bench.h"
#include "peers/load.h"

static bool
time_is_up(const struct peer_load *l)
{
	return bench_now() >= l->until;
}

static void
finished(struct peer_load *l, struct peer_conn *c, unsigned messages)
{
	l->messages += messages;
	l->last = bench_now();
	hist_add(&l->took, l->last - c->began);
}

static void
begin_take(struct peer_load *l, struct peer_conn *c, bool wait)
{
	c->taken = 0;
	l->protocol->take(c, wait);
}

static unsigned
begin_ack(struct peer_load *l, struct peer_conn *c)
{
	const unsigned batch = c->work->batch;
	const unsigned n = c->held_count < batch ? c->held_count : batch;

	l->protocol->ack(c, n);
	return n;
}

/* --- enqueue, fill -------------------------------------------------------------- */

static bool
next_put(struct peer_load *l, struct peer_conn *c)
{
	c->began = bench_now();
	if (c->began >= l->until)
		return false;
	l->protocol->put(c);
	return true;
}

static void
did_put(struct peer_load *l, struct peer_conn *c)
{
	finished(l, c, c->work->batch);
}

static bool
next_fill(struct peer_load *l, struct peer_conn *c)
{
	if (l->begun >= l->wanted)
		return false;
	l->begun += c->work->batch;
	return next_put(l, c);
}

/* --- lease, ack ----------------------------------------------------------------- */

/* step 1: the queue is empty. */
static bool
next_lease(struct peer_load *l, struct peer_conn *c)
{
	c->began = bench_now();
	if (c->step == 1 || c->began >= l->until)
		return false;
	begin_take(l, c, false);
	return true;
}

static void
did_lease(struct peer_load *l, struct peer_conn *c)
{
	if (c->taken > 0)
		finished(l, c, c->taken);
	else
		c->step = 1;
}

/* step: how many acks are open. */
static bool
next_ack(struct peer_load *l, struct peer_conn *c)
{
	c->began = bench_now();
	if (c->held_count == 0 || c->began >= l->until)
		return false;
	c->step = begin_ack(l, c);
	return true;
}

static void
did_ack(struct peer_load *l, struct peer_conn *c)
{
	finished(l, c, c->step);
}

/* --- cycle ---------------------------------------------------------------------- */

enum {
	CYCLE_PUT,
	CYCLE_TAKE,
	CYCLE_ACK
};

static bool
next_cycle(struct peer_load *l, struct peer_conn *c)
{
	switch (c->step) {
	case CYCLE_PUT:
		return next_put(l, c);
	case CYCLE_TAKE:
		begin_take(l, c, true);
		return true;
	default:
		c->taken = begin_ack(l, c);
		return true;
	}
}

/* A connection that takes nothing puts again: another connection took the message and acks it. */
static void
did_cycle(struct peer_load *l, struct peer_conn *c)
{
	switch (c->step) {
	case CYCLE_PUT:
		c->step = CYCLE_TAKE;
		break;
	case CYCLE_TAKE:
		c->step = c->taken > 0 ? CYCLE_ACK : CYCLE_PUT;
		break;
	default:
		finished(l, c, c->taken);
		c->step = CYCLE_PUT;
	}
}

/* --- drain ---------------------------------------------------------------------- */

/* step 1: the queue is empty. */
static bool
next_drain(struct peer_load *l, struct peer_conn *c)
{
	if (time_is_up(l))
		return false;
	if (c->held_count > 0) {
		c->taken = begin_ack(l, c);
		return true;
	}
	if (c->step == 1)
		return false;
	begin_take(l, c, false);
	return true;
}

static void
did_drain(struct peer_load *l, struct peer_conn *c)
{
	l->last = bench_now();
	c->step = c->taken == 0;
}

/* clang-format off */
static const struct phase phases[] = {
	{ "enqueue", next_put,   did_put,   false },
	{ "fill",    next_fill,  did_put,   false },
	{ "lease",   next_lease, did_lease, false },
	{ "ack",     next_ack,   did_ack,   false },
	{ "cycle",   next_cycle, did_cycle, true },
	{ "drain",   next_drain, did_drain, false },
};
/* clang-format on */

const struct phase *
phase_find(const char *name)
{
	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
		if (strcmp(phases[i].name, name) == 0)
			return &phases[i];
	return NULL;
}
