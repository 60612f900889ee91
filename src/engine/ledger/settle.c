/*
 * settle.c - the verbs that end leases or change messages and queues: decide, keep, apply.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/hash.h"
#include "base/limit.h"
#include "base/time.h"
#include "core/ledger/adjust.h"
#include "core/ledger/letters.h"
#include "core/ledger/use.h"

/* A lease that has ended meanwhile is passed over. */
void
ledgerengine_return(struct ledgerengine *k, struct op *op)
{
	struct ledger_ref ref = {
		.space = ledger_space_find(k->ledger, op->space),
		.queue = SLAB_NONE,
	};

	for (uint32_t i = 0; i < op->n_rows && ref.space != SLAB_NONE; i++) {
		struct change c;
		int rc;

		ref.id = op->rows[i].id;
		ref.token = op->rows[i].token;
		op->rows[i].state = MSG_NONE;
		if (ledgerengine_is_copied(k, ref.token))
			continue;
		rc = i < op->claim.spare ? ledger_spare(k->ledger, &ref, op->route.arrived, &c)
					 : ledger_return(k->ledger, &ref, op->route.arrived, &c);
		if (!rc && c.kind && !ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL) && c.kind != CHANGE_DONE)
			op->rows[i].state = MSG_READY;
	}
}

/* ---- The verbs of items ---- */

enum {
	AHEAD = 4 /* items between the look-up of a message and the start of its load */
};

/* The queue of the item before. The names of a request are often the same bytes. */
struct last_names {
	struct slice space, queue;
	int rc; /* of names_ref */
	struct ledger_ref ref;
};

/* The part of a ref that the names give. */
static int
names_ref(const struct ledgerengine *k, const struct op *op, const struct last_names *names,
	  struct ledger_ref *ref)
{
	*ref = (struct ledger_ref){
		.space = ledger_space_find(k->ledger, names->space),
		.queue = SLAB_NONE,
	};
	if (ref->space == SLAB_NONE)
		return SLU_ENOTFOUND;
	if (names->queue.n == 0)
		return 0;
	ref->queue = ledger_queue_find(k->ledger, names->space, names->queue);
	ref->epoch = op->home.epoch;
	ref->apart = op->home.formers;
	return ref->queue == SLAB_NONE ? SLU_ENOTFOUND : 0;
}

static int
item_ref(const struct ledgerengine *k, const struct op *op, const struct op_item *it,
	 struct last_names *last)
{
	const struct slice space = it->space.n ? it->space : op->space;
	const struct slice queue = it->queue.n ? it->queue : op->queue;

	if (!slice_is(last->space, space) || !slice_is(last->queue, queue)) {
		last->space = space;
		last->queue = queue;
		last->rc = names_ref(k, op, last, &last->ref);
	}
	last->ref.id = it->id;
	last->ref.token = it->token;
	last->ref.delayed = it->delayed;
	return last->rc;
}

/* ---- Nacks ---- */

static int
decide_nack(struct ledgerengine *k, const struct op *op, const struct op_item *it,
	    const struct ledger_ref *ref, struct change *c)
{
	const struct ledger_nack nack = {
		.defer = it->defer || it->hold,
		.dead = it->dead,
		.delay = it->hold && !it->scope ? it->hold : it->time < 0 ? LEDGER_BY_POLICY
									  : it->time,
		.random = hash_next_random(&k->random), /* spreads retries */
	};

	return ledger_nack(k->ledger, ref, &nack, op->route.arrived, c);
}

/* The scope of a message; n 0 in a scope that the message does not have. key: room for the text of its key. */
static int
find_scope(struct ledgerengine *k, uint32_t msg, enum gate_kind kind, char key[static MESSAGE_KEY_MAX], struct ledger_scope *out)
{
	struct ledger_view v;

	*out = (struct ledger_scope){ .kind = kind };
	ledger_get(k->ledger, msg, &v);
	if (kind == GATE_SHARE)
		out->name = ledger_share_of(k->ledger, msg);
	else if (kind == GATE_VALUE)
		out->name = ledger_value_of(k->ledger, msg);
	return kind == GATE_KEY && v.key ? ledgerengine_text(k, msg, offsetof(struct message, key), key, MESSAGE_KEY_MAX, &out->name) : 0;
}

static bool
has_scope(const struct ledger_scope *s)
{
	return s->name.n || s->kind == GATE_QUEUE || s->kind == GATE_SHARE;
}

/* A nack that holds the queue, share, key or value of its message back. A message without a key or value is held back
 * alone. */
static int
put_hold(struct ledgerengine *k, const struct op *op, struct op_item *it, uint32_t msg)
{
	struct ledger_scope scope;
	char key[MESSAGE_KEY_MAX];
	struct ledger_view v;
	struct change c = { 0 };
	int rc = find_scope(k, msg, (enum gate_kind)(it->scope - 1), key, &scope);

	if (!rc && !has_scope(&scope)) {
		it->scope = 0;
		return 0;
	}
	ledger_get(k->ledger, msg, &v);
	if (!rc)
		rc = ledger_hold(k->ledger, v.queue, &scope, time_add(op->route.arrived, it->hold), op->route.arrived, &c);
	return rc || !c.kind ? rc : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL);
}

/* BREAKERS-1: a nack with a reason. A message that does not have the scope of the breaker feeds nothing. */
static int
put_failure(struct ledgerengine *k, const struct op *op, const struct op_item *it, uint32_t msg)
{
	struct ledger_scope scope;
	char key[MESSAGE_KEY_MAX];
	enum gate_kind kind;
	struct ledger_view v;
	struct change c;
	int rc;

	ledger_get(k->ledger, msg, &v);
	if (!ledger_breaker_scope(k->ledger, v.queue, it->reason, &kind))
		return 0;
	rc = find_scope(k, msg, kind, key, &scope);
	if (rc || !has_scope(&scope))
		return rc;
	rc = ledger_breaker_fail(k->ledger, v.queue, &scope, it->reason, op->route.arrived, &c);
	return rc || !c.kind ? rc : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL);
}

/* LEDGERBREAKER-2: in the group of the ack or nack. */
static int
keep_breakers(struct ledgerengine *k)
{
	struct change c;
	int rc = 0;

	while (!rc && ledger_breaker_next(k->ledger, k->now, &c))
		rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL);
	return rc;
}

/* What happens to the item. */
static enum op_verb
verb_of(const struct op *op, const struct op_item *it)
{
	if (op->verb != OP_FINISH)
		return op->verb;
	if (it->remove)
		return OP_DELETE;
	return it->nack ? OP_NACK : OP_ACK;
}

static int
decide_adjust(struct ledgerengine *k, const struct op_item *it, const struct ledger_ref *ref, struct change *c)
{
	const struct ledger_adjust adjust = {
		.has_prio = it->has_prio,
		.prio = it->prio,
		.due = it->time,
		.guarded = it->guarded,
		.was_prio = it->was_prio,
		.was_due = it->was_due,
	};

	return ledger_adjust(k->ledger, ref, &adjust, k->now, c);
}

static int
decide(struct ledgerengine *k, const struct op *op, const struct op_item *it,
       const struct ledger_ref *ref, struct change *c)
{
	const slu_time lease = it->time < POLICY_LEASE_MAX ? it->time : POLICY_LEASE_MAX;

	switch (verb_of(op, it)) {
	case OP_ACK:
		return ledger_ack(k->ledger, ref, op->route.arrived, c);
	case OP_NACK:
		return decide_nack(k, op, it, ref, c);
	case OP_EXTEND:
		return ledger_extend(k->ledger, ref, lease, op->route.arrived, c);
	case OP_QUARANTINE:
		return ledger_quarantine(k->ledger, ref, op->route.arrived, c);
	case OP_REDRIVE:
		return ledger_redrive(k->ledger, ref, k->now, c);
	case OP_ADJUST:
		return decide_adjust(k, it, ref, c);
	case OP_DELETE:
		return it->cancel ? ledger_cancel(k->ledger, ref, k->now, c) : ledger_delete(k->ledger, ref, k->now, c);
	default:
		return ledger_delete(k->ledger, ref, k->now, c);
	}
}

/* The result to keep with the change. */
static struct slice
result_of(enum op_verb verb, const struct op_item *it, const struct change *c)
{
	return verb == OP_ACK && c->keep ? it->text : (struct slice){ 0 };
}

/* The hold, or the breaker that opens, is in the group of the nack, before it, so that the message does not become ready in
 * between. */
static int
hold_first(struct ledgerengine *k, const struct op *op, struct op_item *it, const struct ledger_ref *ref)
{
	struct change c;
	int rc = decide(k, op, it, ref, &c);

	if (!rc && it->reason.n)
		rc = put_failure(k, op, it, c.msg);
	return rc || !it->hold || !it->scope ? rc : put_hold(k, op, it, c.msg);
}

/* The priority is in the group of the nack, before it. */
static int
prioritize_first(struct ledgerengine *k, const struct op *op, const struct op_item *it, const struct ledger_ref *ref)
{
	struct change c;
	const int rc = ledger_set_priority(k->ledger, ref, it->prio, op->route.arrived, &c);

	return rc ? rc : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, NULL);
}

/* The checkpoint is in the group of the extend, before it: nothing is kept unless the caller holds the lease. */
static int
checkpoint_first(struct ledgerengine *k, const struct op *op, const struct op_item *it, const struct ledger_ref *ref)
{
	struct change c;
	const int rc = decide(k, op, it, ref, &c);

	return rc ? rc : ledgerengine_checkpoint(k, op, c.msg, it->text);
}

/* LEDGER-17 */
static void
note_cancel(struct ledgerengine *k, const struct change *c, struct op_item *it)
{
	struct ledger_view v;

	ledger_get(k->ledger, c->msg, &v);
	it->runs = v.state == MSG_LEASED;
	it->until = v.until;
}

static int
run_item(struct ledgerengine *k, const struct op *op, struct op_item *it, struct last_names *last)
{
	const enum op_verb verb = verb_of(op, it);
	struct change c;
	int rc;

	rc = item_ref(k, op, it, last);
	if (!rc && verb == OP_NACK && ((it->hold && it->scope) || it->reason.n))
		rc = hold_first(k, op, it, &last->ref);
	if (!rc && verb == OP_EXTEND && it->text.n)
		rc = checkpoint_first(k, op, it, &last->ref);
	if (!rc && it->has_prio && verb == OP_NACK)
		rc = prioritize_first(k, op, it, &last->ref);
	if (!rc)
		rc = decide(k, op, it, &last->ref, &c);
	if (!rc && verb == OP_DELETE && it->cancel)
		note_cancel(k, &c, it);
	if (!rc && c.kind)
		rc = verb == OP_NACK ? ledgerengine_carry_out_failure(k, &c, op_error_text(it->text), NULL)
				     : ledgerengine_carry_out(k, &c, result_of(verb, it, &c), NULL);
	if (!rc)
		rc = keep_breakers(k);
	if (rc)
		return rc;
	if (verb == OP_ACK || verb == OP_NACK)
		meter_time(&k->meter, METER_PROCESSING, c.at - c.claimed);
	it->died = c.kind == CHANGE_DIE;
	if (verb == OP_EXTEND)
		it->until = c.until;
	else if (!it->runs)
		it->until = c.kind == CHANGE_RETRY || c.kind == CHANGE_DUE ? c.due : c.at;
	return 0;
}

void
ledgerengine_items(struct ledgerengine *k, struct op *op)
{
	struct last_names last = { .rc = SLU_ENOTFOUND };

	for (uint32_t i = 0; i < op->n_items; i++) {
		if (i + AHEAD < op->n_items)
			ledger_expect(k->ledger, op->items[i + AHEAD].id);
		if (!op->items[i].taken) /* MOVE-4 */
			op->items[i].rc = run_item(k, op, &op->items[i], &last);
	}
}

/* ---- Finish ---- */

/* Returns whether the op holds the lease: nothing is kept before that is known. */
static int
check_held(struct ledgerengine *k, const struct op *op, struct last_names *last)
{
	struct change c;
	int rc;

	if (!op->n_items)
		return 0;
	rc = item_ref(k, op, op->items, last);
	return rc ? rc : decide(k, op, op->items, &last->ref, &c);
}

/* The puts come first: they can be undone. All records are in one group. */
static int
finish_all(struct ledgerengine *k, struct op *op, struct last_names *last, struct slu_err *err)
{
	struct lock_change c;
	int rc = ledgerengine_put_all(k, op, true, err);

	if (rc)
		return rc;
	rc = ledgerengine_unlock_reserve(k, op, &c, err);
	if (!rc && op->n_items)
		rc = run_item(k, op, op->items, last);
	ledgerengine_unlock_end(k, op, &c, !rc);
	if (rc)
		ledgerengine_put_undo(k, op, op->n_puts);
	return rc;
}

void
ledgerengine_finish(struct ledgerengine *k, struct op *op)
{
	struct last_names last = { .rc = SLU_ENOTFOUND };
	struct slu_err err;
	int rc;

	no_err(&err);
	if (ledgerengine_is_of_batch(op)) {
		ledgerengine_batch(k, op);
		return;
	}
	rc = check_held(k, op, &last);
	if (!rc)
		rc = ledgerengine_unlock_check(k, op, &err);
	if (!rc)
		rc = ledgerengine_find_homes(k, op, &err);
	if (!rc)
		rc = finish_all(k, op, &last, &err);
	if (rc == SLU_EMOVED)
		rc = slu_fail(&err, SLU_EBUSY, "queue %.*s is being moved; nothing was done",
			      (int)op->puts[op->failed].m.queue.n, op->puts[op->failed].m.queue.p);
	if (op->n_items)
		op->items->rc = rc;
	if (rc)
		op_fail(op, rc, &err);
}

/* ---- Queues ---- */

/* All messages at once: MSGBATCH-7. */
static int
purge_rest(struct ledgerengine *k, uint32_t queue, uint64_t *n, struct slu_err *err)
{
	struct ledgerengine_told told;
	struct ledger_queue_view v;
	struct change c;
	int rc;

	ledger_queue_get(k->ledger, queue, &v);
	rc = ledgerengine_batch_purge(k, queue, &told, err);
	if (rc)
		return rc;
	rc = ledger_purge(k->ledger, queue, k->now, &c); /* again: the events have numbers */
	if (!rc)
		rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
	if (rc)
		ledgerengine_batch_untold(k, &told);
	else
		*n += (uint64_t)v.count[MSG_READY] + v.count[MSG_DELAYED] + v.count[MSG_HELD];
	return rc;
}

void
ledgerengine_purge(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	struct slu_err err = { 0 };
	struct change c;
	int rc;

	op->count = op->cursor ? op->count : 0;
	op->cursor = 0;
	if (queue == SLAB_NONE)
		return;
	rc = ledger_purge(k->ledger, queue, k->now, &c);
	if (rc == SLU_ECONFLICT)
		rc = limit_fail(&err, SLU_EBUSY, LIMIT_MOVE, 0, "queue %.*s is being moved",
				(int)op->queue.n, op->queue.p);
	op->cursor = !rc && ledgerengine_has_members(k, queue);
	if (op->cursor)
		rc = ledgerengine_remove_members(k, queue, &op->count);
	else if (!rc)
		rc = purge_rest(k, queue, &op->count, &err);
	if (rc)
		op_fail(op, rc, &err);
}

static int
set_policy(struct ledgerengine *k, uint32_t queue, const struct policy *policy,
	   struct slu_err *err)
{
	struct change c;
	int rc;

	rc = ledger_set_policy(k->ledger, queue, policy, k->now, &c);
	if (!rc)
		rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
	return rc ? rc : keep_breakers(k); /* LEDGERBREAKER-5 */
}

/* Changes these knobs alone in one step: a change of another knob meanwhile is not lost. */
void
ledgerengine_pause(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	struct policy next;
	struct ledger_queue_view v;
	struct slu_err err = { 0 };
	int rc;

	if (queue == SLAB_NONE) {
		op_fail(op, SLU_ENOTFOUND, NULL);
		return;
	}
	ledger_queue_get(k->ledger, queue, &v);
	next = *v.policy;
	op_set_pause(&next, &op->policy, op->sets);
	op->policy = next;
	rc = policy_is_same(v.policy, &next) ? 0 : set_policy(k, queue, &op->policy, &err);
	if (rc)
		op_fail(op, rc, &err);
}

void
ledgerengine_policy_set(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };
	uint32_t queue;
	int rc;

	rc = policy_check(&op->policy, &err);
	if (!rc && slice_eq(slice_of(op->policy.dead_letter_queue), op->queue))
		rc = slu_fail(&err, SLU_EINVAL, "invalid dead_letter_queue: %s; expected another queue", op->policy.dead_letter_queue);
	if (!rc && ledgerengine_queue(k, op) == SLAB_NONE)
		rc = ledgerengine_limit_queue(k, op->space, op->queue, &err);
	if (!rc)
		rc = ledger_queue_open_as(k->ledger, op->space, op->queue, &op->as,
					  &queue);
	if (!rc)
		rc = set_policy(k, queue, &op->policy, &err);
	if (rc)
		op_fail(op, rc, &err);
}
