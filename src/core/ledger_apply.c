/*
 * ledger_apply.c - changes are carried out: a table of what each kind does.
 */
#include "core/ledger_in.h"

#include <assert.h>

/* Messages that are there */

static void
apply_claim(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);
	const struct lease lease = {
		.token = c->token,
		.claimed = c->at,
		.expires = ledger_expires(l, m),
		.owner = c->owner,
		.flow = c->flow,
	};

	ledger_leave(l, t, h);
	ledger_enter_lease(l, t, h, &lease, c->until);
	m->flags = (uint8_t)((m->flags | MSG_HOLDS) & ~MSG_EXTENDED);
	m->q.own16 += m->q.own16 < UINT16_MAX;
}

static void
apply_extend(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	(void)t;
	ledger_set_deadline(l, h, c->until);
	m->flags = (uint8_t)((m->flags | MSG_EXTENDED) & ~MSG_SPARED);
}

static void
apply_return(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	ledger_leave(l, t, h);
	m->q.own16 -= m->q.own16 > 0;
	ledger_settle(l, t, h, c->at);
}

static void
apply_spare(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	ledger_msg(l, h)->flags |= MSG_SPARED;
	apply_return(l, t, h, c);
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
apply_retry(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);
	const uint32_t flow = ledger_lease(l, m)->flow;

	ledger_leave(l, t, h);
	note_failure(l, m, c);
	if (!c->expired)
		m->flags &= (uint8_t)~MSG_SPARED;
	if (flow && c->failed && !c->expired)
		shun_add(&l->shun, m->id, flow, c->at);
	m->q.due = c->due;
	ledger_settle(l, t, h, c->at);
}

static void
apply_die(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	ledger_leave(l, t, h);
	note_failure(l, m, c);
	ledger_ttl_stop(l, h);
	ledger_pass(l, t, h);
	m->q.due = c->at;
	m->reason = c->reason;
	m->flags &= (uint8_t)~MSG_FLAGS;
	ledger_enter(l, t, h, MSG_DEAD);
}

/* Nobody had it, so no delivery counts. */
static void
apply_aside(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	ledger_leave(l, t, h);
	ledger_ttl_stop(l, h);
	ledger_pass(l, t, h);
	m->q.own16 -= m->q.own16 > 0;
	m->q.due = c->at;
	m->flags &= (uint8_t)~MSG_FLAGS;
	ledger_enter(l, t, h, MSG_DAMAGED);
}

void
ledger_drop_message(struct ledger *l, uint32_t h, slu_time remember)
{
	struct topic *t = ledger_topic_of(l, ledger_msg(l, h));

	ledger_leave(l, t, h);
	queue_drop(&t->queue, h);
	if (queue_trim(&t->queue))
		ledger_count_topic(l, t);
	ledger_pass(l, t, h);
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
apply_done(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	(void)t;
	apply_result(l, c);
	ledger_drop_message(l, h, c->remember);
}

static void
apply_redrive(struct ledger *l, struct topic *t, uint32_t h, const struct change *c)
{
	struct msg *m = ledger_msg(l, h);

	ledger_leave(l, t, h);
	m->q.due = c->at;
	m->q.seq = c->number;
	m->failures = 0;
	m->reason = DEAD_NOT;
	ledger_settle(l, t, h, c->at);
}

typedef void apply_fn(struct ledger *l, struct topic *t, uint32_t h,
		      const struct change *c);

/* What happens to a message, and in which states that may be. */
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
	[CHANGE_REDRIVE] = { apply_redrive, IN(DEAD) },
	[CHANGE_ASIDE] = { apply_aside, IN(LEASED) },
	[CHANGE_SPARE] = { apply_spare, IN(LEASED) },
};

static void
count_step(struct ledger_totals *n, const struct change *c)
{
	n->delivered += c->kind == CHANGE_CLAIM;
	n->done += c->kind == CHANGE_DONE;
	n->failed += (c->kind == CHANGE_RETRY || c->kind == CHANGE_DIE) && c->failed;
	n->died += c->kind == CHANGE_DIE;
}

static int
apply_step(struct ledger *l, uint32_t h, const struct change *c)
{
	const struct msg *m = ledger_msg(l, h);

	assert(m->id == c->id);
	if (!(steps[c->kind].states >> msg_state(m) & 1) || (m->flags & MSG_TAKEN))
		return SLU_EINVAL;
	count_step(&ledger_topic_of(l, m)->totals, c);
	ledger_queue_use(l, ledger_home(l, m), c->at);
	steps[c->kind].apply(l, ledger_topic_of(l, m), h, c);
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
	struct topic *t = ledger_topic(l, c->queue);

	l->rated += (c->policy->max_rate > 0) - (uint32_t)(t->policy.max_rate > 0);
	t->policy = *c->policy;
	t->has_policy = true;
	ledger_weigh(l, t);
	ledger_mark_woken(l, t);
	ledger_wake(l, t, 0);
}

static void
apply_opened(struct ledger *l, const struct change *c)
{
	const slu_time grace = later(c->at, LEDGER_GRACE);

	while (first_time(&l->deadlines) < grace)
		ledger_set_deadline(l, l->deadlines.nodes[0].handle, grace);
	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		ledger_topic(l, h)->totals = (struct ledger_totals){ 0 };
		ledger_queue_use(l, h, c->at);
	}
	l->forgotten = (struct ledger_totals){ 0 };
}

static void
apply_remember(struct ledger *l, const struct change *c)
{
	if (idem_find(&l->idem, c->idem, c->at) == SLAB_NONE)
		idem_end(&l->idem, idem_add(&l->idem, c->idem, c->queue, c->id, c->at),
			 c->remember, c->at);
}

/* A log tells the digest behind the record that has the key. */
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
	(void)c; /* that it moves the counter is said for all kinds */
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
};

/* The message is not there: a log that was cleaned has left it out. Its result may
 * still be wanted. */
static void
pass_over(struct ledger *l, const struct change *c)
{
	if (c->kind == CHANGE_DONE && c->keep)
		apply_result(l, c);
	else
		ledger_drop(l, c->where);
}

/* h: the message, for the kinds that are about one that is there. */
static int
apply(struct ledger *l, uint32_t h, const struct change *c)
{
	int rc = ledger_reserve(l, c);

	if (rc)
		return rc;
	l->now = c->at > l->now ? c->at : l->now;
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

int
ledger_apply(struct ledger *l, const struct change *c)
{
	return apply(l, c->msg, c);
}

void
ledger_undo(struct ledger *l, const struct change *accepted)
{
	const uint32_t h = ledger_find_any(l, accepted->id);

	assert(h != SLAB_NONE);
	ledger_topic_of(l, ledger_msg(l, h))->totals.accepted -= accepted->kind == CHANGE_ACCEPT;
	ledger_drop_message(l, h, 0);
}

/* Replaying */

static bool
is_topic(const struct ledger *l, uint32_t queue)
{
	return ledger_has_topic(l, queue);
}

/* A second message that was handed out for one key: nobody decided that. */
static bool
two_heads(const struct ledger *l, const struct change *c)
{
	uint32_t head;

	if (!c->key || !(c->flags & MSG_HOLDS) || ledger_find_any(l, c->id) != SLAB_NONE)
		return false;
	head = ledger_key_head(l, c->queue, c->key);
	return head != SLAB_NONE && (ledger_msg(l, head)->flags & MSG_HOLDS);
}

/* Whoever holds a lease was handed the message; nobody is handed a dead or damaged one. */
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
		return is_topic(l, c->queue) && c->id && is_state(c) && !two_heads(l, c);
	case CHANGE_REMEMBER:
		return is_topic(l, c->queue);
	case CHANGE_ACCEPT:
	case CHANGE_RESULT:
		return is_topic(l, c->queue) && c->id;
	case CHANGE_DONE:
		return !c->keep || is_topic(l, c->queue);
	case CHANGE_PURGE:
		return is_topic(l, c->queue) && !ledger_batch_of(ledger_topic(l, c->queue));
	case CHANGE_MARK:
	case CHANGE_TAKE:
	case CHANGE_UNTAKE:
	case CHANGE_DROP:
	case CHANGE_GIVEN:
	case CHANGE_REFUSE:
		return is_topic(l, c->queue) && ledger_moving_is_sound(l, c);
	case CHANGE_FORGET:
		return is_topic(l, c->queue) && ledger_queue_may_go(l, c->queue);
	case CHANGE_POLICY:
		return is_topic(l, c->queue) && c->policy &&
		       policy_check(c->policy, NULL) == 0;
	default:
		return c->kind < CHANGE_KINDS;
	}
}

/* L4: all that was due then has been moved, so lines are as they were, or longer. */
static void
catch_up(struct ledger *l, struct topic *t, slu_time now)
{
	ledger_promote(l, t, now, UINT32_MAX);
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
		catch_up(l, ledger_topic_of(l, ledger_msg(l, h)), c->at);
	else if (c->kind == CHANGE_ACCEPT || c->kind == CHANGE_RESTORE)
		catch_up(l, ledger_topic(l, c->queue), c->at);
	rc = apply(l, h, c);
	if (!rc && c->kind == CHANGE_PURGE)
		ledger_purge_some(l, ledger_topic(l, c->queue), &all);
	return rc;
}
