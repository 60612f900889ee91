/*
 * ledger_put.c - memory for changes, and messages that come: new, or read back.
 */
#include "core/ledger_in.h"

#include <assert.h>

/* Memory (L9). What deciding has reserved costs a few compares here. */

static int
reserve_place(struct ledger *l, struct topic *t)
{
	const uint32_t n = t->queue.held + 1;
	int rc;

	if (n <= t->queue.ready.max && n <= t->queue.timed.max)
		return 0;
	rc = heap_reserve(&t->queue.ready, n);
	if (!rc)
		rc = heap_reserve(&t->queue.timed, n);
	ledger_count_topic(l, t);
	return rc;
}

static int
reserve_message(struct ledger *l, const struct change *c)
{
	struct topic *t = ledger_topic(l, c->queue);
	int rc = slab_reserve(&l->msgs, 1);

	if (!rc)
		rc = map_reserve(&l->ids, 1);
	if (!rc)
		rc = reserve_place(l, t);
	if (!rc)
		rc = ledger_key_reserve(l, c->queue, c->key);
	if (!rc && c->expires)
		rc = heap_reserve(&l->ttls, l->with_ttl + 1);
	if (!rc && idem_is_set(c->idem))
		rc = idem_reserve(&l->idem);
	if (!rc && c->digest)
		rc = idem_reserve_digest(&l->idem);
	if (!rc && (c->keep || c->error || idem_is_set(c->idem)))
		rc = slab_reserve(&l->more, 1);
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
	case CHANGE_RETRY:
	case CHANGE_DIE:
		return c->where ? slab_reserve(&l->more, 1) : 0;
	case CHANGE_DONE:
	case CHANGE_RESULT:
		return c->keep ? results_reserve(&l->results) : 0;
	case CHANGE_REMEMBER:
		return idem_reserve(&l->idem);
	case CHANGE_DIGEST:
		return idem_reserve_digest(&l->idem);
	case CHANGE_MARK:
	case CHANGE_TAKE:
	case CHANGE_GIVEN:
	case CHANGE_REFUSE:
		return ledger_moving_reserve(l, c);
	case CHANGE_PURGE:
		return ledger_purge_reserve(l, ledger_topic(l, c->queue));
	default:
		return 0;
	}
}

/* New messages */

struct more *
ledger_need_more(struct ledger *l, struct msg *m)
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
	struct more *more = ledger_need_more(l, m);
	const uint64_t old = more->error;

	more->error = where;
	if (old != where)
		ledger_drop(l, old);
}

static uint32_t
whole_seconds(slu_time t)
{
	const slu_time seconds = t / SLU_SEC + (t % SLU_SEC > 0);

	return seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
}

static void
fill_more(struct ledger *l, struct msg *m, const struct change *c)
{
	if (c->keep)
		ledger_need_more(l, m)->keep = whole_seconds(c->keep);
	if (c->kind == CHANGE_RESTORE && c->error)
		ledger_need_more(l, m)->error = c->error;
	if (idem_is_set(c->idem) && idem_find(&l->idem, c->idem, c->at) == SLAB_NONE) {
		const uint32_t known = idem_add(&l->idem, c->idem, c->queue, c->id, c->at);

		ledger_need_more(l, m)->idem = known;
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
	fill_more(l, m, c);
	ledger_space_add(l, ledger_topic(l, c->queue)->space, 1, ledger_record_size(l, c->where), 0);
	ledger_list(l, h);
	if (c->id > l->highest_id)
		l->highest_id = c->id;
	ledger_ttl_start(l, h, c->expires ? c->expires : SLU_NEVER);
	return h;
}

static uint32_t
hold_message(struct ledger *l, const struct change *c)
{
	const int rc = queue_hold(&ledger_topic(l, c->queue)->queue);

	assert(rc == 0); /* reserved */
	(void)rc;
	return make_message(l, c);
}

/* Nearly all ids are higher than any before: then there is nothing to search. */
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
	ledger_topic(l, c->queue)->totals.accepted++;
	ledger_settle(l, ledger_topic(l, c->queue), hold_message(l, c), c->at);
}

static void
restore_lease(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	const struct lease lease = {
		.token = c->token,
		.claimed = c->claimed,
		.expires = c->expires ? c->expires : SLU_NEVER,
		.owner = c->owner,
	};

	ledger_enter_lease(l, t, h, &lease, c->until);
}

static void
restore_state(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	m->q.own16 = c->attempts;
	m->failures = c->failures;
	m->reason = c->reason;
	m->flags |= c->flags & MSG_FLAGS;
	if ((m->flags & MSG_KEYED) && (m->flags & MSG_HOLDS))
		ledger_lead(l, t, h);
	if (c->state == MSG_LEASED)
		restore_lease(l, t, h, c);
	else if (c->state >= MSG_DEAD)
		ledger_enter(l, t, h, c->state);
	else
		ledger_settle(l, t, h, c->at);
}

void
ledger_put_again(struct ledger *l, const struct change *c)
{
	const uint32_t there = ledger_find_any(l, c->id);

	if (there == SLAB_NONE) {
		const uint32_t h = hold_message(l, c);

		restore_state(l, ledger_topic(l, c->queue), h, c);
		return;
	}
	ledger_move(l, there, c->where);
	if (c->error)
		ledger_move_error(l, there, c->error);
}
