/*
 * put.c - memory for changes, and new messages: accepted, or restored by a replay.
 */
#include "core/ledger/ledger_private.h"

#include "base/mem.h"

#include <assert.h>

/* ---- Memory (LEDGER-9). Kinds that are rare reserve again when they are applied. ---- */

static int
reserve_place(struct ledger *l, struct ledger_queue *q)
{
	int rc;

	if (queue_has_room(&q->heaps))
		return 0;
	rc = queue_grow(&q->heaps);
	ledger_count_heaps(l, q);
	return rc;
}

static int
reserve_key(struct ledger *l, const struct change *c)
{
	const int rc = idem_reserve(&l->idem);

	return !rc && c->digest ? idem_reserve_digest(&l->idem) : rc;
}

static int
reserve_message(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	int rc = slab_reserve(&l->msgs, 1);

	if (!rc)
		rc = map_reserve(&l->ids, 1);
	if (!rc)
		rc = reserve_place(l, q);
	if (!rc)
		rc = ledger_key_reserve(l, c->queue, c->key);
	if (!rc && c->share.n + c->value.n)
		rc = ledger_spot_reserve(l, c);
	if (!rc && c->expires)
		rc = heap_reserve(&l->ttls, l->with_ttl + 1);
	if (!rc && idem_is_set(c->idem))
		rc = reserve_key(l, c);
	if (!rc && (c->keep || c->error || idem_is_set(c->idem) || terms_any(&c->terms)))
		rc = slab_reserve(&l->more, 1);
	if (!rc && terms_any(&c->terms))
		rc = slab_reserve(&l->terms, 1);
	return rc;
}

static int
reserve_lease(struct ledger *l)
{
	const int rc = slab_reserve(&l->leases, 1);

	return rc ? rc : heap_reserve(&l->deadlines, l->deadlines.n + 1);
}

static int
reserve_restore(struct ledger *l, const struct change *c)
{
	const int rc = reserve_message(l, c);

	return rc ? rc : reserve_lease(l);
}

/* Every queue with a rate gets a gate. */
static int
reserve_opened(struct ledger *l)
{
	int rc = 0;

	for (uint32_t h = SLAB_NONE; !rc && (h = ledger_queue_next(l, h)) != SLAB_NONE;)
		if (ledger_queue(l, h)->gates)
			rc = ledger_gates_reserve(l, ledger_queue(l, h));
	return rc;
}

/* Most queues keep the default policy and have none of their own. */
static int
reserve_policy(struct ledger *l, struct ledger_queue *q, const struct policy *p)
{
	if (!q->own_policy) {
		q->own_policy = mem_alloc(sizeof *q->own_policy);
		if (!q->own_policy)
			return SLU_ENOMEM;
		*q->own_policy = *q->policy;
		q->policy = q->own_policy;
		ledger_count_heaps(l, q);
	}
	return ledger_gates_make(l, q, p);
}

static int
reserve_priority(struct ledger *l, const struct change *c)
{
	const uint32_t h = ledger_find_any(l, c->id);

	return h == SLAB_NONE ? 0 : ledger_priority_reserve(l, h, c->prio);
}

int
ledger_reserve(struct ledger *l, const struct change *c)
{
	switch (c->kind) {
	case CHANGE_ACCEPT:
		return reserve_message(l, c);
	case CHANGE_RESTORE:
		return reserve_restore(l, c);
	case CHANGE_CLAIM:
		return reserve_lease(l);
	case CHANGE_REPLACE:
	case CHANGE_PRIORITY:
		return reserve_priority(l, c);
	case CHANGE_RETRY:
	case CHANGE_DIE:
		return c->where ? slab_reserve(&l->more, 1) : 0;
	case CHANGE_DONE:
	case CHANGE_RESULT:
		return c->keep ? results_reserve(&l->results) : 0;
	case CHANGE_REMEMBER:
		return reserve_key(l, c);
	case CHANGE_DIGEST:
		return idem_reserve_digest(&l->idem);
	case CHANGE_MARK:
	case CHANGE_TAKE:
	case CHANGE_GIVEN:
	case CHANGE_REFUSE:
		return ledger_moving_reserve(l, c);
	case CHANGE_INTAKE:
		return ledger_intake_reserve(l);
	case CHANGE_POLICY:
		return reserve_policy(l, ledger_queue(l, c->queue), c->policy);
	case CHANGE_HOLD:
		return ledger_hold_reserve(l, c);
	case CHANGE_BREAKER:
		return ledger_breaker_reserve(l, c);
	case CHANGE_OPENED:
		return reserve_opened(l);
	case CHANGE_PURGE:
		return ledger_purge_reserve(l, ledger_queue(l, c->queue));
	default:
		return 0;
	}
}

/* New messages */

static struct more *
need_more(struct ledger *l, struct msg *m)
{
	if (m->more == SLAB_NONE) {
		m->more = slab_new(&l->more);
		assert(m->more != SLAB_NONE); /* reserved */
		*ledger_more(l, m) = (struct more){ .idem = SLAB_NONE };
	}
	return ledger_more(l, m);
}

void
ledger_name_error(struct ledger *l, struct msg *m, uint64_t where)
{
	struct more *more = need_more(l, m);
	const uint64_t old = more->error;

	more->error = where;
	if (old != where)
		ledger_drop(l, old);
}

static uint32_t
whole_seconds(slu_time t)
{
	const slu_time seconds = t / SLU_SEC + (t % SLU_SEC > 0);

	return seconds > INT32_MAX ? INT32_MAX : (uint32_t)seconds;
}

static void
fill_terms(struct ledger *l, uint32_t h, const struct change *c)
{
	struct msg *const m = ledger_msg(l, h);
	struct more *const more = need_more(l, m);
	const uint32_t at = slab_new(&l->terms);

	assert(at < MORE_TERMS); /* reserved; a shard has fewer messages */
	*(struct own_terms *)slab_at(&l->terms, at) = (struct own_terms){
		.terms = c->terms,
		.keep = more->keep,
		.msg = h,
	};
	more->keep = at | MORE_TERMS;
}

/* Whether the new message has its key: a unique one may have lost it (LEDGER-16). Another message that has lost the key by
 * the time gives it up. */
static bool
takes_key(struct ledger *l, const struct change *c)
{
	uint32_t known;

	if (!idem_is_set(c->idem) || (c->kind == CHANGE_RESTORE && (c->flags & MSG_FREED)))
		return false;
	known = idem_find(&l->idem, c->idem, c->at);
	if (known != SLAB_NONE && ledger_key_known(l, c->idem, c->at) == SLAB_NONE) {
		ledger_free_key(l, ledger_msg(l, ledger_find_raw(l, idem_id(&l->idem, known))));
		known = SLAB_NONE;
	}
	return known == SLAB_NONE;
}

static void
fill_more(struct ledger *l, uint32_t h, const struct change *c)
{
	struct msg *const m = ledger_msg(l, h);

	if (c->keep)
		need_more(l, m)->keep = whole_seconds(c->keep);
	if (terms_any(&c->terms))
		fill_terms(l, h, c);
	if (c->kind == CHANGE_RESTORE && c->error)
		need_more(l, m)->error = c->error;
	if (takes_key(l, c)) {
		const uint32_t known = idem_add(&l->idem, c->idem, c->queue, c->id, c->at);

		need_more(l, m)->idem = known;
		idem_set_digest(&l->idem, known, c->digest);
	}
}

static uint32_t
make_message(struct ledger *l, const struct change *c)
{
	const uint32_t h = slab_new(&l->msgs);
	struct msg *m;

	assert(h != SLAB_NONE); /* reserved */
	m = ledger_msg(l, h);
	*m = (struct msg){
		.q = { .due = c->due, .seq = c->number, .prio = c->prio, .pos = SLAB_NONE },
		.id = c->id,
		.where = c->where,
		.home = c->queue,
		.link = SLAB_NONE,
		.more = SLAB_NONE,
		.max_attempts = c->max_attempts,
	};
	if (c->key) {
		m->home = ledger_key_attach(l, c->queue, c->key);
		m->flags |= MSG_KEYED;
	}
	if (c->share.n + c->value.n)
		ledger_spot_attach(l, ledger_queue(l, c->queue), m, c);
	fill_more(l, h, c);
	ledger_space_add(l, ledger_queue(l, c->queue)->space, 1, ledger_record_size(l, c->where), 0);
	ledger_list(l, h);
	if (c->id > l->highest_id)
		l->highest_id = c->id;
	ledger_ttl_start(l, h, c->expires ? c->expires : SLU_NEVER);
	return h;
}

static uint32_t
hold_message(struct ledger *l, const struct change *c)
{
	const int rc = queue_hold(&ledger_queue(l, c->queue)->heaps);

	assert(rc == 0); /* reserved */
	(void)rc;
	return make_message(l, c);
}

/* Nearly all ids are higher than any before: then a search is not needed. */
static bool
is_known(const struct ledger *l, uint64_t id)
{
	return id <= l->highest_id && ledger_find_any(l, id) != SLAB_NONE;
}

void
ledger_put_new(struct ledger *l, const struct change *c)
{
	if (is_known(l, c->id)) {
		ledger_drop(l, c->where);
		return;
	}
	ledger_queue(l, c->queue)->totals.accepted++;
	ledger_trend_in(l, ledger_queue(l, c->queue), c->at);
	ledger_settle(l, ledger_queue(l, c->queue), hold_message(l, c), c->at);
}

static void
restore_lease(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	const struct lease lease = {
		.token = c->token,
		.claimed = c->claimed,
		.expires = c->expires ? c->expires : SLU_NEVER,
		.holder = c->holder,
		.canceled = (c->flags & MSG_CANCELED) != 0,
	};

	ledger_enter_lease(l, q, h, &lease, c->until);
}

static void
restore_state(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	m->q.own16 = c->attempts;
	m->failures = c->failures;
	m->reason = c->reason;
	m->flags |= c->flags & MSG_FLAGS;
	if ((m->flags & MSG_KEYED) && (m->flags & MSG_HOLDS))
		ledger_lead(l, q, h);
	if (c->state == MSG_LEASED)
		restore_lease(l, q, h, c);
	else if (c->state >= MSG_DEAD)
		ledger_enter(l, q, h, c->state);
	else
		ledger_settle(l, q, h, c->at);
}

void
ledger_put_again(struct ledger *l, const struct change *c)
{
	const uint32_t there = ledger_find_any(l, c->id);

	if (there == SLAB_NONE) {
		const uint32_t h = hold_message(l, c);

		restore_state(l, ledger_queue(l, c->queue), h, c);
		return;
	}
	ledger_relocate(l, there, c->where);
	if (c->error)
		ledger_relocate_error(l, there, c->error);
}
