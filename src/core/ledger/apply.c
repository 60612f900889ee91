/*
 * apply.c - applies changes: a table with a function for each kind.
 */
#include "core/ledger/ledger_private.h"

#include <assert.h>

/* ---- Messages that exist ---- */

static void
apply_claim(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);
	const struct lease lease = {
		.token = c->token,
		.claimed = c->at,
		.expires = ledger_expires(l, m),
		.holder = c->holder,
		.stream_no = c->stream_no & INT32_MAX,
	};

	if (q->shares && !l->replaying)
		ledger_share_charge(l, q, h);
	ledger_leave(l, q, h);
	if (q->shares)
		shares_place(q->shares);
	ledger_enter_lease(l, q, h, &lease, c->until);
	pace_add(&q->pace, c->at);
	m->flags = (uint8_t)((m->flags | MSG_HOLDS) & ~MSG_EXTENDED);
	m->q.own16 += m->q.own16 < UINT16_MAX;
	if (m->more != SLAB_NONE && ledger_terms(l, m)->unique == UNIQUE_STARTED)
		ledger_free_key(l, m);
	if (q->gates && !l->replaying)
		ledger_gates_charge(l, q, m, c->at);
	if (q->breakers && !l->replaying)
		ledger_breaker_claim(l, q, h, c);
}

static void
apply_extend(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	(void)q;
	ledger_set_deadline(l, h, c->until);
	m->flags = (uint8_t)((m->flags | MSG_EXTENDED) & ~MSG_SPARED);
}

static void
apply_cancel(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	(void)q;
	(void)c;
	ledger_lease(l, ledger_msg(l, h))->canceled = true;
}

static void
apply_return(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	ledger_leave(l, q, h);
	m->q.own16 -= m->q.own16 > 0;
	ledger_settle(l, q, h, c->at);
}

static void
apply_spare(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	ledger_msg(l, h)->flags |= MSG_SPARED;
	apply_return(l, q, h, c);
}

static void
note_failure(struct ledger *l, struct msg *m, const struct change *c)
{
	if (c->failed && m->failures < UINT16_MAX)
		m->failures++;
	if (c->where)
		ledger_name_error(l, m, c->where);
}

static void
apply_retry(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);
	const uint32_t stream_no = ledger_lease(l, m)->stream_no;

	ledger_leave(l, q, h);
	note_failure(l, m, c);
	if (!c->expired)
		m->flags &= (uint8_t)~MSG_SPARED;
	if (stream_no && c->failed && !c->expired)
		shun_add(&l->shun, m->id, stream_no, c->at);
	m->q.due = c->due;
	ledger_settle(l, q, h, c->at);
}

/* LEDGER-16: a message that is dead or damaged is not unique any more, unless it is so for a time. */
static void
lose_key(struct ledger *l, struct msg *m)
{
	const struct terms *const t = ledger_terms(l, m);

	if (t->unique && t->unique != UNIQUE_TIME)
		ledger_free_key(l, m);
}

static void
apply_die(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	ledger_leave(l, q, h);
	note_failure(l, m, c);
	ledger_ttl_stop(l, h);
	ledger_pass(l, q, h);
	m->q.due = c->at;
	m->reason = c->reason;
	m->flags &= (uint8_t) ~(MSG_FLAGS & ~MSG_FREED);
	lose_key(l, m);
	ledger_enter(l, q, h, MSG_DEAD);
}

/* No consumer got the message, so its attempt does not count. */
static void
apply_quarantine(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	ledger_leave(l, q, h);
	ledger_ttl_stop(l, h);
	ledger_pass(l, q, h);
	m->q.own16 -= m->q.own16 > 0;
	m->q.due = c->at;
	m->flags &= (uint8_t) ~(MSG_FLAGS & ~MSG_FREED);
	lose_key(l, m);
	ledger_enter(l, q, h, MSG_DAMAGED);
}

void
ledger_drop_message(struct ledger *l, uint32_t h, slu_time remember)
{
	struct ledger_queue *q = ledger_queue_of(l, ledger_msg(l, h));

	ledger_leave(l, q, h);
	queue_drop(&q->heaps, h);
	if (queue_trim(&q->heaps))
		ledger_count_heaps(l, q);
	ledger_pass(l, q, h);
	ledger_forget(l, h, remember);
}

static void
apply_result(struct ledger *l, const struct change *c)
{
	const struct ledger_result result = {
		.queue = c->queue,
		.where = c->where,
		.until = c->keep,
	};

	if (c->keep)
		ledger_drop(l, results_add(&l->results, c->id, &result));
}

static void
apply_done(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	(void)q;
	apply_result(l, c);
	ledger_drop_message(l, h, c->remember);
}

static void
apply_redrive(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);
	const bool was_dead = msg_state(m) == MSG_DEAD;

	ledger_leave(l, q, h);
	m->q.due = c->at;
	m->q.seq = c->number;
	if (was_dead)
		m->failures = 0;
	m->reason = DEAD_NOT;
	ledger_settle(l, q, h, c->at);
}

/* The bytes of a namespace are the bytes of its records. */
static void
take_record(struct ledger *l, struct ledger_queue *q, struct msg *m, uint64_t where)
{
	ledger_space_add(l, q->space, 0, ledger_record_size(l, where) - ledger_record_size(l, m->where), 0);
	ledger_drop(l, m->where);
	m->where = where;
}

/* A message with a key keeps its place in the sequence, and one that stays what it is keeps its place in the queue. */
static void
apply_replace(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	take_record(l, q, m, c->where);
	if ((m->flags & MSG_KEYED) || (m->q.prio == c->prio && m->q.due == c->due))
		return;
	ledger_leave(l, q, h);
	ledger_priority_set(l, q, h, c->prio);
	m->q.due = c->due;
	ledger_settle(l, q, h, c->at);
}

/* Only the order of ready messages knows priorities. */
static void
apply_priority(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);
	const bool ready = msg_state(m) == MSG_READY;

	if (ready)
		ledger_unqueue(l, q, h);
	ledger_priority_set(l, q, h, c->prio);
	if (ready)
		ledger_make_ready(l, q, h);
}

/* A message with a key has not joined its sequence: ledger_adjust. */
static void
apply_due(struct ledger *l, struct ledger_queue *q, uint32_t h, const struct change *c)
{
	ledger_leave(l, q, h);
	ledger_msg(l, h)->q.due = c->due;
	ledger_settle(l, q, h, c->at);
}

typedef void apply_fn(struct ledger *l, struct ledger_queue *q, uint32_t h,
		      const struct change *c);

/* The function of each kind, and the states that it is valid in. */
#define IN(state) (1u << MSG_##state)

static const struct {
	apply_fn *apply;
	unsigned states;
} steps[CHANGE_KINDS] = {
	[CHANGE_CLAIM] = { apply_claim, IN(READY) },
	[CHANGE_EXTEND] = { apply_extend, IN(LEASED) },
	[CHANGE_RETURN] = { apply_return, IN(LEASED) },
	[CHANGE_RETRY] = { apply_retry, IN(LEASED) },
	[CHANGE_DIE] = { apply_die, IN(READY) | IN(DELAYED) | IN(LEASED) | IN(HELD) },
	[CHANGE_DONE] = { apply_done, ~IN(NONE) },
	[CHANGE_REDRIVE] = { apply_redrive, IN(DEAD) | IN(DELAYED) },
	[CHANGE_QUARANTINE] = { apply_quarantine, IN(LEASED) },
	[CHANGE_SPARE] = { apply_spare, IN(LEASED) },
	[CHANGE_REPLACE] = { apply_replace, IN(READY) | IN(DELAYED) | IN(HELD) },
	[CHANGE_PRIORITY] = { apply_priority, ~IN(NONE) },
	[CHANGE_CANCEL] = { apply_cancel, IN(LEASED) },
	[CHANGE_DUE] = { apply_due, IN(READY) | IN(DELAYED) },
};

static void
count_step(struct ledger_totals *n, const struct change *c)
{
	n->delivered += c->kind == CHANGE_CLAIM;
	n->done += c->kind == CHANGE_DONE;
	n->failed += (c->kind == CHANGE_RETRY || c->kind == CHANGE_DIE) && c->failed;
	n->died += c->kind == CHANGE_DIE;
}

/* BREAKERS-4. A cancel or another priority leaves the lease as it is. */
static bool
may_end_lease(enum change_kind kind)
{
	return kind != CHANGE_EXTEND && kind != CHANGE_CANCEL && kind != CHANGE_PRIORITY;
}

static int
apply_step(struct ledger *l, uint32_t h, const struct change *c)
{
	const struct msg *m = ledger_msg(l, h);
	struct ledger_queue *q;

	assert(m->id == c->id);
	if (!(steps[c->kind].states >> msg_state(m) & 1) || (m->flags & MSG_TAKEN))
		return SLU_EINVAL;
	q = ledger_queue_of(l, m);
	count_step(&q->totals, c);
	q->used = c->at > q->used ? c->at : q->used;
	ledger_trend_look(l, q, c->at);
	ledger_trend_note(l, q, m, c);
	if (q->breakers && msg_state(m) == MSG_LEASED && may_end_lease(c->kind) && !l->replaying)
		ledger_breaker_end(l, q, h, c);
	steps[c->kind].apply(l, q, h, c);
	return 0;
}

/* The rest */

static void
apply_purge(struct ledger *l, const struct change *c)
{
	ledger_purge_start(l, c->queue, c);
}

static void
apply_policy(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);

	l->rated += (c->policy->max_rate > 0) - (uint32_t)(q->policy->max_rate > 0);
	*q->own_policy = *c->policy;
	q->has_policy = true;
	if (q->shares)
		ledger_share_set(l, q);
	if (q->values)
		ledger_value_set(l, q);
	if (q->gates)
		ledger_gates_set(l, q, c->at);
	if (q->breakers)
		ledger_breakers_set(l, q, c->at);
	ledger_weigh(l, q);
	ledger_mark_leaving(l, q);
	ledger_mark_woken(l, q);
	ledger_wake(l, q, 0);
}

static void
apply_opened(struct ledger *l, const struct change *c)
{
	const slu_time grace = time_add(c->at, LEDGER_GRACE);

	while (first_time(&l->deadlines) < grace)
		ledger_set_deadline(l, l->deadlines.nodes[0].handle, grace);
	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		ledger_queue(l, h)->totals = (struct ledger_totals){ 0 };
		ledger_queue_use(l, h, c->at);
		if (ledger_queue(l, h)->gates)
			ledger_gates_open(l, ledger_queue(l, h), c->at);
		if (ledger_queue(l, h)->breakers && !l->replaying)
			ledger_breakers_open(l, ledger_queue(l, h), c);
	}
	l->forgotten = (struct ledger_totals){ 0 };
}

static void
apply_remember(struct ledger *l, const struct change *c)
{
	uint32_t key;

	if (idem_find(&l->idem, c->idem, c->at) != SLAB_NONE)
		return;
	key = idem_add(&l->idem, c->idem, c->queue, c->id, c->at);
	idem_set_digest(&l->idem, key, c->digest);
	idem_end(&l->idem, key, c->remember, c->at);
}

/* In a log the digest follows the record with the key. */
static void
apply_digest(struct ledger *l, const struct change *c)
{
	const uint32_t known = idem_find(&l->idem, c->idem, c->at);

	if (known != SLAB_NONE && idem_id(&l->idem, known) == c->id)
		idem_set_digest(&l->idem, known, c->digest);
}

static void
apply_nothing(struct ledger *l, const struct change *c)
{
	(void)l;
	(void)c; /* ledger_apply raises the counter for all kinds */
}

typedef void rest_fn(struct ledger *l, const struct change *c);

static rest_fn *const rest[CHANGE_KINDS] = {
	[CHANGE_NONE] = apply_nothing,
	[CHANGE_ACCEPT] = ledger_put_new,
	[CHANGE_PURGE] = apply_purge,
	[CHANGE_POLICY] = apply_policy,
	[CHANGE_COUNTER] = apply_nothing,
	[CHANGE_OPENED] = apply_opened,
	[CHANGE_RESTORE] = ledger_put_again,
	[CHANGE_REMEMBER] = apply_remember,
	[CHANGE_RESULT] = apply_result,
	[CHANGE_MARK] = ledger_put_mark,
	[CHANGE_TAKE] = ledger_put_aside,
	[CHANGE_UNTAKE] = ledger_put_back,
	[CHANGE_DROP] = ledger_put_out,
	[CHANGE_GIVEN] = ledger_put_given,
	[CHANGE_REFUSE] = ledger_put_given,
	[CHANGE_DIGEST] = apply_digest,
	[CHANGE_FORGET] = ledger_put_forgotten,
	[CHANGE_INTAKE] = ledger_put_intake,
	[CHANGE_HOLD] = ledger_put_hold,
	[CHANGE_BREAKER] = ledger_put_breaker,
};

/* The message does not exist: cleaning the log has left it out. Its result may be needed. */
static void
pass_over(struct ledger *l, const struct change *c)
{
	if (c->kind == CHANGE_DONE && c->keep)
		apply_result(l, c);
	else
		ledger_drop(l, c->where);
}

/* Kinds of a queue whose messages come, go or stay as a whole. */
static bool
is_of_queue(enum change_kind kind)
{
	return kind == CHANGE_ACCEPT || kind == CHANGE_RESTORE || kind == CHANGE_PURGE || kind == CHANGE_TAKE ||
	       kind == CHANGE_UNTAKE || kind == CHANGE_DROP;
}

/* h: the message, for kinds of an existing message. */
static int
apply(struct ledger *l, uint32_t h, const struct change *c)
{
	int rc = 0;

	l->now = c->at > l->now ? c->at : l->now;
	if (is_of_queue(c->kind))
		ledger_trend_look(l, ledger_queue(l, c->queue), c->at);
	if (rest[c->kind])
		rest[c->kind](l, c);
	else if (h != SLAB_NONE)
		rc = apply_step(l, h, c);
	else
		pass_over(l, c);
	if (rc)
		return rc;
	ledger_set_counter(l, c->number > c->token ? c->number : c->token);
	return 0;
}

/* Kinds that happen to each message, and remove no queue. */
static bool
is_frequent(enum change_kind kind)
{
	return kind == CHANGE_ACCEPT || kind == CHANGE_CLAIM || kind == CHANGE_DONE || kind == CHANGE_RETRY || kind == CHANGE_RETURN;
}

int
ledger_apply(struct ledger *l, const struct change *c)
{
	const bool reserved = c->kind == CHANGE_ACCEPT || c->kind == CHANGE_CLAIM; /* LEDGER-9 */
	int rc = reserved ? 0 : ledger_reserve(l, c);

	if (rc)
		return rc;
	if (c->number != l->placed)
		l->placed = 0;
	ledger_count_later(l, is_frequent(c->kind));
	rc = apply(l, c->msg, c);
	ledger_count_later(l, false);
	return rc;
}

void
ledger_undo(struct ledger *l, const struct change *accepted)
{
	const uint32_t h = ledger_find_any(l, accepted->id);

	assert(h != SLAB_NONE);
	ledger_queue_of(l, ledger_msg(l, h))->totals.accepted -= accepted->kind == CHANGE_ACCEPT;
	ledger_drop_message(l, h, 0);
}

/* Replaying */

static bool
is_queue(const struct ledger *l, uint32_t queue)
{
	return ledger_has_queue(l, queue);
}

/* A second delivered message of one key: no ledger decides that. */
static bool
two_heads(const struct ledger *l, const struct change *c)
{
	uint32_t head;

	if (!c->key || !(c->flags & MSG_HOLDS) || ledger_find_any(l, c->id) != SLAB_NONE)
		return false;
	head = ledger_key_head(l, c->queue, c->key);
	return head != SLAB_NONE && (ledger_msg(l, head)->flags & MSG_HOLDS);
}

/* A leased message was delivered; a dead or damaged one does not hold its key. */
static bool
is_state(const struct change *c)
{
	const bool holds = c->flags & MSG_HOLDS;

	return c->state > MSG_NONE && c->state < MSG_STATES &&
	       (holds || c->state != MSG_LEASED) && (!holds || c->state < MSG_DEAD);
}

static bool
is_sound(const struct ledger *l, const struct change *c)
{
	switch (c->kind) {
	case CHANGE_RESTORE:
		return is_queue(l, c->queue) && c->id && is_state(c) && !two_heads(l, c);
	case CHANGE_REMEMBER:
		return is_queue(l, c->queue);
	case CHANGE_ACCEPT:
	case CHANGE_RESULT:
		return is_queue(l, c->queue) && c->id;
	case CHANGE_DONE:
		return !c->keep || is_queue(l, c->queue);
	case CHANGE_PURGE:
		return is_queue(l, c->queue) && !ledger_batch_of(ledger_queue(l, c->queue));
	case CHANGE_MARK:
	case CHANGE_TAKE:
	case CHANGE_UNTAKE:
	case CHANGE_DROP:
	case CHANGE_GIVEN:
	case CHANGE_REFUSE:
		return is_queue(l, c->queue) && ledger_moving_is_sound(l, c);
	case CHANGE_HOLD:
		return is_queue(l, c->queue) && c->scope < GATE_KINDS && c->until >= 0;
	case CHANGE_BREAKER:
		return is_queue(l, c->queue) && c->scope < GATE_KINDS && c->until >= 0 && c->value.n && c->value.n < BREAKER_NAME;
	case CHANGE_INTAKE:
		return c->intake && c->intake->batch;
	case CHANGE_FORGET:
		return is_queue(l, c->queue) && ledger_queue_may_go(l, c->queue);
	case CHANGE_POLICY:
		return is_queue(l, c->queue) && c->policy &&
		       policy_check(c->policy, NULL) == 0;
	default:
		return c->kind < CHANGE_KINDS;
	}
}

/* LEDGER-4: makes everything ready that was due then, so that sequences are as they were, or longer. */
static void
catch_up(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	ledger_promote(l, q, now, UINT32_MAX);
}

int
ledger_replay(struct ledger *l, const struct change *c)
{
	uint32_t h = SLAB_NONE, all = UINT32_MAX;
	int rc;

	if (!is_sound(l, c))
		return SLU_EINVAL;
	if (!rest[c->kind])
		h = ledger_find_any(l, c->id);
	if (h != SLAB_NONE)
		catch_up(l, ledger_queue_of(l, ledger_msg(l, h)), c->at);
	else if (c->kind == CHANGE_ACCEPT || c->kind == CHANGE_RESTORE)
		catch_up(l, ledger_queue(l, c->queue), c->at);
	rc = ledger_reserve(l, c);
	l->replaying = true;
	if (!rc)
		rc = apply(l, h, c);
	l->replaying = false;
	if (!rc && c->kind == CHANGE_PURGE)
		ledger_purge_some(l, ledger_queue(l, c->queue), &all);
	return rc;
}
