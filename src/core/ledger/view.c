/*
 * view.c - look-ups that change nothing.
 */
#include "core/ledger/ledger_private.h"
#include "core/ledger/named.h"

#include <assert.h>

static void
get_lease(const struct ledger *l, const struct msg *m, struct ledger_view *out)
{
	const struct lease *lease = ledger_lease(l, m);

	out->token = lease->token;
	out->claimed = lease->claimed;
	out->holder = lease->holder;
	out->until = node_time(heap_at(&l->deadlines, m->q.pos));
	out->flags |= lease->canceled ? MSG_CANCELED : 0;
}

static void
get_more(const struct ledger *l, const struct msg *m, struct ledger_view *out)
{
	const struct more *more = ledger_more(l, m);

	out->error = more->error;
	out->keep_result = ledger_keep(l, m) * SLU_SEC;
}

void
ledger_get(const struct ledger *l, uint32_t msg, struct ledger_view *out)
{
	const struct msg *m = ledger_msg(l, msg);
	const struct ledger_queue *q = ledger_queue_of(l, m);

	*out = (struct ledger_view){
		.id = m->id,
		.queue = q->handle,
		.state = msg_state(m),
		.flags = m->flags & MSG_FLAGS,
		.reason = m->reason,
		.prio = m->q.prio,
		.due = m->q.due,
		.number = m->q.seq,
		.expires = ledger_expires(l, m),
		.attempts = m->q.own16,
		.failures = m->failures,
		.max_attempts = (uint16_t)ledger_max_attempts(q, m),
		.key = m->flags & MSG_KEYED ? ledger_key_of(l, m)->hash : 0,
		.where = m->where,
		.taken = m->flags & MSG_TAKEN,
	};
	if (out->state == MSG_LEASED)
		get_lease(l, m, out);
	if (m->more != SLAB_NONE)
		get_more(l, m, out);
}

int
ledger_peek(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max,
	    uint32_t *n)
{
	assert(max <= LEDGER_PEEK_MAX);
	return ledger_peek_ready(l, ledger_queue(l, queue), msgs, max, n);
}

struct slice
ledger_rules(const struct ledger *l, uint32_t queue)
{
	return slice_of(ledger_queue(l, queue)->policy->rules);
}

int
ledger_peek_delayed(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max, uint32_t *n)
{
	assert(max <= LEDGER_PEEK_MAX);
	return heap_peek(&ledger_queue(l, queue)->heaps.timed, msgs, max, n);
}

bool
ledger_is_strict(const struct ledger *l, uint32_t queue)
{
	return ledger_queue(l, queue)->policy->strict;
}

uint16_t
ledger_attempts(const struct ledger *l, uint32_t queue)
{
	return (uint16_t)ledger_queue(l, queue)->policy->max_attempts;
}

slu_time
ledger_oldest_plain(const struct ledger *l, const struct ledger_queue *q)
{
	const struct fifo *fifo = &q->heaps.fifo;
	const struct heap *ready = &q->heaps.ready;
	slu_time oldest = SLU_NEVER;

	for (uint32_t i = 0; i < fifo_span(fifo) && i < LEDGER_OLDEST_LOOK; i++) {
		const uint32_t h = fifo_slot(fifo, i);

		oldest = h != FIFO_NONE && ledger_msg(l, h)->q.due < oldest ? ledger_msg(l, h)->q.due : oldest;
	}
	for (uint32_t i = 0; i < ready->n && i < LEDGER_OLDEST_LOOK; i++) {
		const slu_time due = node_time(&ready->nodes[i]);

		oldest = due < oldest ? due : oldest;
	}
	return oldest;
}

slu_time
ledger_oldest(const struct ledger *l, uint32_t queue)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	const slu_time plain = ledger_oldest_plain(l, q);
	const slu_time shared = q->shares ? shares_oldest(q->shares, LEDGER_OLDEST_LOOK) : SLU_NEVER;

	return plain < shared ? plain : shared;
}

uint32_t
ledger_dead_next(const struct ledger *l, uint32_t queue, uint32_t msg)
{
	if (msg == SLAB_NONE)
		return ledger_queue(l, queue)->dead.first;
	return chain_next(&l->msgs, msg);
}

uint32_t
ledger_scan(const struct ledger *l, uint32_t *cursor, uint32_t *msgs, uint32_t max)
{
	uint32_t n = 0;

	for (; max > 0 && *cursor < l->msgs.fresh; ++*cursor, max--) {
		const struct msg *m = ledger_scan_msg(l, *cursor);

		if (m && !ledger_is_purged(l, ledger_queue_of(l, m), m, *cursor))
			msgs[n++] = *cursor;
	}
	if (*cursor >= l->msgs.fresh)
		*cursor = LEDGER_SCAN_END;
	return n;
}

void
ledger_relocate(struct ledger *l, uint32_t msg, uint64_t where)
{
	struct msg *m = ledger_msg(l, msg);
	const uint64_t old = m->where;

	assert(where <= LEDGER_WHERE_MAX);
	m->where = where;
	if (old != where)
		ledger_drop(l, old);
}

void
ledger_relocate_error(struct ledger *l, uint32_t msg, uint64_t where)
{
	struct msg *m = ledger_msg(l, msg);

	if (m->more != SLAB_NONE)
		ledger_name_error(l, m, where);
	else
		ledger_drop(l, where);
}

static void
fill_restore(const struct ledger_view *v, struct change *out)
{
	out->queue = v->queue;
	out->number = v->number;
	out->prio = v->prio;
	out->due = v->due;
	out->expires = v->expires == SLU_NEVER ? 0 : v->expires;
	out->keep = v->keep_result;
	out->where = v->where;
	out->key = v->key;
	out->state = (uint8_t)v->state;
	out->flags = v->flags;
	out->reason = (uint8_t)v->reason;
	out->attempts = v->attempts;
	out->failures = v->failures;
	out->token = v->token;
	out->until = v->until;
	out->claimed = v->claimed;
	out->holder = v->holder;
	out->error = v->error;
}

static void
fill_key(const struct ledger *l, uint32_t known, struct change *out)
{
	out->idem = idem_mark(&l->idem, known);
	out->digest = idem_digest(&l->idem, known);
}

void
ledger_describe(const struct ledger *l, uint32_t msg, slu_time now, struct change *out)
{
	const struct msg *m = ledger_msg(l, msg);
	struct ledger_view v;

	ledger_get(l, msg, &v);
	*out = ledger_begin_for(l, CHANGE_RESTORE, msg, now);
	fill_restore(&v, out);
	out->max_attempts = m->max_attempts;
	out->share = ledger_line_of(l, m);
	out->value = ledger_value_of(l, msg);
	out->terms = *ledger_terms(l, m);
	if (m->more != SLAB_NONE && ledger_more(l, m)->idem != SLAB_NONE)
		fill_key(l, ledger_more(l, m)->idem, out);
}

/* Until when the key is remembered; 0 while its message exists. A purged message does not exist, even
 * before it is freed. */
static slu_time
known_until(const struct ledger *l, uint32_t known)
{
	const slu_time until = idem_until(&l->idem, known);
	const struct ledger_queue *q;
	uint32_t h;

	if (until)
		return until;
	h = ledger_find_raw(l, idem_id(&l->idem, known));
	if (h == SLAB_NONE)
		return 0;
	q = ledger_queue_of(l, ledger_msg(l, h));
	if (!ledger_is_purged(l, q, ledger_msg(l, h), h))
		return 0;
	return ledger_terms(l, ledger_msg(l, h))->unique ? ledger_terms(l, ledger_msg(l, h))->unique_end : q->purge_remember;
}

bool
ledger_describe_idem(const struct ledger *l, struct idem_mark idem, slu_time now,
		     struct change *out)
{
	const struct change c = ledger_begin(l, CHANGE_REMEMBER, now);
	const uint32_t known = idem_find(&l->idem, idem, c.at);

	if (known == SLAB_NONE)
		return false;
	*out = c;
	fill_key(l, known, out);
	out->id = idem_id(&l->idem, known);
	out->remember = known_until(l, known);
	return out->remember != 0;
}

int
ledger_holder_open(struct ledger *l, struct slice name, uint32_t *out)
{
	return holders_open(&l->holders, name, out);
}

void
ledger_holder_close(struct ledger *l, uint32_t holder)
{
	holders_drop(&l->holders, holder);
}

struct slice
ledger_holder_text(const struct ledger *l, uint32_t holder)
{
	return holders_text(&l->holders, holder);
}

struct shared_text *
ledger_holder_share(const struct ledger *l, uint32_t holder)
{
	return holders_share(&l->holders, holder);
}

int
ledger_result(const struct ledger *l, uint32_t space, uint64_t id,
	      struct ledger_result *out)
{
	if (!results_find(&l->results, id, out) ||
	    ledger_queue(l, out->queue)->space != space)
		return SLU_ENOTFOUND;
	return 0;
}

bool
ledger_result_any(const struct ledger *l, uint64_t id, struct ledger_result *out)
{
	return results_find(&l->results, id, out);
}

void
ledger_relocate_result(struct ledger *l, uint64_t id, uint64_t where)
{
	ledger_drop(l, results_relocate(&l->results, id, where));
}

void
ledger_size(const struct ledger *l, struct ledger_size *out)
{
	*out = (struct ledger_size){
		.messages = l->msgs.used,
		.queues = l->queues.used,
		.keys = l->keys.used,
		.idem = idem_count(&l->idem),
		.remembered = l->idem.remembered,
		.results = results_count(&l->results),
		.forgotten = l->forgotten,
	};
}
