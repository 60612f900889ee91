/*
 * value.c - the values of the attribute that a queue limits (core/queue/values.h).
 *
 *  LEDGERVALUE-1  A message has the value that its queue's attribute had when it was accepted. A change of the setting applies to
 *                 new messages.
 *  LEDGERVALUE-2  A queue has a struct values while a message has a value. Without one, its heaps are as ever.
 *  LEDGERVALUE-3  A ready message with a value is parked at the gate of its key, in front, or in the heap of its strand.
 */
#include "core/ledger/ledger_private.h"

#include <assert.h>

int
ledger_value_reserve(struct ledger *l, struct ledger_queue *q, struct slice value, uint32_t flow, uint32_t *strand)
{
	const int rc = q->values ? 0 : values_new(&q->values, &l->msgs, &q->secret);

	if (rc)
		return rc;
	values_set_limit(q->values, q->policy->attribute_concurrency);
	return values_is_strand(q->values, *strand, value, flow) ? values_room(q->values, *strand)
								 : values_reserve(q->values, value, flow, strand);
}

void
ledger_value_attach(struct ledger *l, struct ledger_queue *q, uint32_t strand)
{
	struct value_view v;

	values_hold(q->values, strand);
	values_get(q->values, values_of(q->values, strand), &v);
	if (q->gates && v.messages == 1)
		ledger_value_close(l, q, v.hash, gates_closed(q->gates, GATE_VALUE, v.hash) != 0);
}

void
ledger_value_rest(struct ledger *l, struct ledger_queue *q)
{
	if (!q->values || values_count(q->values))
		return;
	values_free(q->values);
	q->values = NULL;
	ledger_count_heaps(l, q);
}

struct slice
ledger_value_of(const struct ledger *l, uint32_t msg)
{
	const struct msg *m = ledger_msg(l, msg);
	const uint32_t strand = ledger_strand_of(l, m);
	const struct ledger_queue *q = ledger_queue_of(l, m);
	struct value_view v;

	if (strand == SLAB_NONE)
		return (struct slice){ 0 };
	values_get(q->values, values_of(q->values, strand), &v);
	return v.name;
}

uint64_t
ledger_value_hash(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	const uint32_t strand = ledger_strand_of(l, m);

	return strand == SLAB_NONE ? 0 : values_hash(q->values, strand);
}

uint32_t
ledger_value_leased(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	const uint32_t strand = ledger_strand_of(l, m);
	struct value_view v;

	if (strand == SLAB_NONE)
		return 0;
	values_get(q->values, values_of(q->values, strand), &v);
	return v.leased;
}

/* ---- What waits, and the shares: a message without a share keeps the tags of its priority while it waits behind its value. ---- */

static bool
is_plain(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	return q->shares && ledger_flow_of(l, ledger_msg(l, h)) == SHARES_PLAIN;
}

/* The message is to wait: before it leaves the front, so that its level is not empty in between. */
void
ledger_wait_behind(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	if (is_plain(l, q, h))
		shares_wait_plain(q->shares, ledger_msg(l, h)->q.prio);
}

/* The message does not wait any more: after it has come to the front. */
void
ledger_unwait(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	if (is_plain(l, q, h))
		shares_unwait_plain(q->shares, ledger_msg(l, h)->q.prio);
}

void
ledger_value_count_plain(struct ledger *l, struct ledger_queue *q, const struct values *v)
{
	for (uint32_t s = SLAB_NONE; (s = values_strand_next(v, s)) != SLAB_NONE;) {
		const struct heap *waiting = values_heap(v, s);

		for (uint32_t i = 0; i < waiting->n; i++)
			ledger_wait_behind(l, q, waiting->nodes[i].handle);
	}
}

/* ---- Ready messages: VALUES-1. What comes to the front comes before what leaves it, so that a level of shares is not
 * without candidates in between. ---- */

void
ledger_value_enter(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h)
{
	const uint32_t was = values_front(q->values, strand);

	if (!values_leads(q->values, strand, h)) {
		ledger_wait_behind(l, q, h);
		values_push(q->values, strand, h);
		return;
	}
	values_lead(q->values, strand, h);
	ledger_front_enter(l, q, h);
	if (was == SLAB_NONE)
		return;
	ledger_wait_behind(l, q, was);
	ledger_front_leave(l, q, was);
	values_push(q->values, strand, was);
}

/* The next message of the strand comes to the front, if it may. */
static void
follow(struct ledger *l, struct ledger_queue *q, uint32_t strand)
{
	const uint32_t next = values_pop(q->values, strand);

	values_lead(q->values, strand, next);
	if (next == SLAB_NONE)
		return;
	ledger_front_enter(l, q, next);
	ledger_unwait(l, q, next);
	ledger_mark_woken(l, q);
}

void
ledger_value_leave(struct ledger *l, struct ledger_queue *q, uint32_t strand, uint32_t h)
{
	if (values_front(q->values, strand) != h) {
		values_pull(q->values, strand, h);
		ledger_unwait(l, q, h);
		ledger_share_count(l, q);
		return;
	}
	follow(l, q, strand);
	ledger_front_leave(l, q, h);
}

/* The value is blocked now, or is not any more. */
static void
turn(struct ledger *l, struct ledger_queue *q, uint32_t value)
{
	for (uint32_t s = values_first(q->values, value); s != SLAB_NONE; s = values_beside(q->values, s)) {
		const uint32_t front = values_front(q->values, s);

		if (front == SLAB_NONE) {
			follow(l, q, s);
			continue;
		}
		values_lead(q->values, s, SLAB_NONE);
		ledger_wait_behind(l, q, front);
		ledger_front_leave(l, q, front);
		values_push(q->values, s, front);
	}
	ledger_share_count(l, q);
}

void
ledger_value_lease(struct ledger *l, struct ledger_queue *q, uint32_t strand, bool begins)
{
	const uint32_t value = values_of(q->values, strand);

	if (values_lease(q->values, value, begins))
		turn(l, q, value);
}

void
ledger_value_close(struct ledger *l, struct ledger_queue *q, uint64_t hash, bool closed)
{
	const uint32_t value = q->values ? values_find(q->values, hash) : SLAB_NONE;

	if (value != SLAB_NONE && values_close(q->values, value, closed))
		turn(l, q, value);
}

void
ledger_value_set(struct ledger *l, struct ledger_queue *q)
{
	for (uint32_t h = SLAB_NONE; (h = values_next(q->values, h)) != SLAB_NONE;)
		if (values_limit(q->values, h, q->policy->attribute_concurrency))
			turn(l, q, h);
}

bool
ledger_value_is_trash(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	const uint32_t strand = ledger_strand_of(l, ledger_msg(l, h));

	return strand != SLAB_NONE && values_is_trash(q->values, strand, h);
}

struct slice
ledger_attribute(const struct ledger *l, uint32_t queue)
{
	return slice_of(ledger_queue(l, queue)->policy->limit_attribute);
}
