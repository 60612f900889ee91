/*
 * enqueue.c - OP_ENQUEUE, OP_INTAKE and the puts of OP_FINISH: all messages of an op, or none (OP-4).
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/limit.h"
#include "base/time.h"
#include "core/ledger/ahead.h"

#include <assert.h>

static slu_time
due_of(const struct ledgerengine *k, const struct op_put *put)
{
	if (put->m.due)
		return put->m.due;
	return put->delay > SLU_NEVER - k->now ? SLU_NEVER : k->now + put->delay;
}

/* Adds the queue, and the limit that was reached. */
static int
refuse_put(int rc, enum limit limit, const struct op_put *put, struct slu_err *err)
{
	const struct slice queue = put->m.queue;

	if (rc == SLU_EQFULL || rc == SLU_EBUSY)
		return limit_fail(err, (enum slu_code)rc, limit, 0, "queue %.*s: %s",
				  (int)queue.n, queue.p, slu_err_row(rc)->text);
	return slu_fail(err, (enum slu_code)rc, "queue %.*s: %s", (int)queue.n, queue.p,
			slu_err_row(rc)->text);
}

/* OUTBOX-6: the messages come from the outbox of another shard. */
static bool
is_owed(const struct op *op)
{
	return op->verb == OP_INTAKE && op->intake.first;
}

/* The put takes the place of the message of its queue that the op removes. */
static bool
is_instead(const struct op *op, const struct op_put *put)
{
	const struct slice queue = op->n_items == 1 && op->items->queue.n ? op->items->queue : op->queue;

	return op->verb == OP_FINISH && op->n_items == 1 && op->items->remove && slice_eq(queue, put->m.queue);
}

static int
make_queue(struct ledgerengine *k, const struct op_put *put, uint32_t *queue, struct slu_err *err)
{
	int rc = put->given ? 0 : ledgerengine_limit_queue(k, put->m.space, put->m.queue, err);

	if (rc)
		return rc;
	rc = ledger_queue_open_as(k->ledger, put->m.space, put->m.queue, &put->as, queue);
	return rc ? refuse_put(rc, LIMIT_QUEUES, put, err) : 0;
}

/* The queue of the put before, and what its policy says of messages. The names of a request are often the same bytes. */
struct last_queue {
	struct slice space, name;
	uint32_t handle;
	uint16_t max_attempts;
	struct slice rules;     /* of the policy, which no put changes */
	struct slice attribute; /* the same */
	uint64_t key_hash;      /* of the put that comes: ledger_ahead_use */
};

static const struct last_queue no_queue = { .handle = SLAB_NONE };

static int
open_queue(struct ledgerengine *k, const struct op_put *put, struct last_queue *q, struct slu_err *err)
{
	int rc;

	if (q->handle != SLAB_NONE && slice_is(q->name, put->m.queue) &&
	    slice_is(q->space, put->m.space))
		return 0;
	*q = (struct last_queue){
		.space = put->m.space,
		.name = put->m.queue,
		.handle = ledger_queue_find(k->ledger, put->m.space, put->m.queue),
		.key_hash = q->key_hash,
	};
	rc = q->handle != SLAB_NONE ? 0 : make_queue(k, put, &q->handle, err);
	if (rc)
		return rc;
	ledger_queue_use(k->ledger, q->handle, k->now);
	q->max_attempts = ledger_attempts(k->ledger, q->handle);
	q->rules = ledger_rules(k->ledger, q->handle);
	q->attribute = ledger_attribute(k->ledger, q->handle);
	return 0;
}

static int
refuse_accept(int rc, const struct op_put *put, struct slu_err *err)
{
	if (rc == SLU_ECONFLICT) /* MOVE-7 */
		return refuse_put(SLU_EBUSY, LIMIT_MOVE, put, err);
	if (rc == SLU_EQUOTA)
		return refuse_put(SLU_EBUSY, kind_is(put->m.share) ? LIMIT_KINDS : LIMIT_SHARES, put, err);
	return refuse_put(rc, rc == SLU_EQFULL ? LIMIT_DEPTH : LIMIT_IDEMPOTENCY, put, err);
}

uint64_t
ledgerengine_digest(const struct ledgerengine *k, uint32_t queue, const struct message *m)
{
	if (m->idem.n == 0 || !ledger_is_strict(k->ledger, queue))
		return 0;
	return m->file ? m->digest : message_digest(m->payload);
}

/* Admission rules of the queue: the record has what they say. */
static void
admit(const struct ledgerengine *k, struct slice rules, struct op_put *put, struct ledger_offer *offer)
{
	struct message *const m = &put->m;
	struct rules_effect effect;

	if (!rules.n)
		return;
	rules_apply(rules, m->attributes, &effect);
	if (!effect.rule.n)
		return;
	put->ruled = true;
	put->own_prio = m->prio;
	put->own_due = m->due;
	m->rule = effect.rule;
	if (effect.sets_prio)
		m->prio = offer->prio = effect.prio;
	if (effect.delay)
		offer->due = time_add(offer->due > k->now ? offer->due : k->now, effect.delay);
	if (effect.delay && m->due)
		m->due = offer->due;
}

/* The value of the attribute that the queue limits. */
static void
take_value(struct ledgerengine *k, struct slice name, struct op_put *put, struct ledger_offer *offer)
{
	if (!name.n)
		return;
	put->m.value = rules_member(put->m.attributes, name, k->value, sizeof k->value);
	offer->value = put->m.value;
}

int
ledgerengine_keep_message(struct ledgerengine *k, const struct message *m, struct change *c, struct slu_err *err)
{
	int rc = k->ops->keep_message(k, m, c, err);

	if (rc)
		return rc;
	rc = ledger_apply(k->ledger, c);
	assert(rc == 0); /* LEDGER-9 */
	if (k->ops->applied)
		k->ops->applied(k, c);
	if (k->observe)
		k->observe(k->observe_arg, c);
	return 0;
}

/* SLU_EEXISTS: the message with the id c->id stays as it is. 0: c replaces it. */
static int
find_replaced(struct ledgerengine *k, const struct ledger_offer *offer, struct change *c)
{
	const uint64_t id = c->id;
	const uint32_t msg = ledger_find_any(k->ledger, id);
	int rc = 0;

	c->kind = CHANGE_NONE;
	if (msg != SLAB_NONE)
		rc = ledger_replace(k->ledger, msg, offer, k->now, c);
	c->id = id;
	return !rc && c->kind == CHANGE_NONE ? SLU_EEXISTS : rc;
}

/* The record that replaces another one has the terms of the first message. */
static int
put_replace(struct ledgerengine *k, struct op_put *put, struct change *c, struct slu_err *err)
{
	struct message m = put->m;
	struct change first;
	int rc;

	ledger_describe(k->ledger, c->msg, k->now, &first);
	m.id = c->id;
	m.number = c->number;
	m.accepted = c->at;
	m.prio = c->prio;
	m.due = c->due;
	m.expires = first.expires;
	m.max_attempts = first.max_attempts;
	m.keep = first.keep;
	m.value = first.value;
	m.terms = first.terms;
	if (m.terms.unique == UNIQUE_TIME)
		m.terms.unique_for = m.terms.unique_end - m.accepted;
	rc = ledgerengine_keep_message(k, &m, c, err);
	if (rc)
		return rc;
	put->own_id = put->m.id;
	put->m.id = c->id;
	put->existed = put->replaced = true;
	return 0;
}

static int
put_decide(struct ledgerengine *k, const struct op *op, struct op_put *put, struct last_queue *q,
	   struct change *c, struct slu_err *err)
{
	const struct message *m = &put->m;
	struct ledger_offer offer = {
		.id = m->id,
		.key = m->key,
		.key_hash = q->key_hash,
		.share = m->share,
		.idem = m->idem,
		.prio = m->prio,
		.due = due_of(k, put),
		.ttl = put->ttl,
		.max_attempts = m->max_attempts,
		.keep_result = m->keep,
		.deadline = put->deadline,
		.terms = m->terms,
		.epoch = op->home.epoch,
		.known = op->home.known,
		.owed = is_owed(op),
		.instead = is_instead(op, put),
	};
	int rc;

	c->id = 0;
	c->kind = CHANGE_NONE;
	rc = open_queue(k, put, q, err);
	if (rc)
		return rc;
	put->max_attempts = m->max_attempts ? m->max_attempts : q->max_attempts;
	admit(k, q->rules, put, &offer);
	take_value(k, q->attribute, put, &offer);
	offer.digest = offer.owed ? 0 : ledgerengine_digest(k, q->handle, m);
	rc = ledgerengine_limit_put(k, q->handle, &offer, m, err);
	if (rc)
		return rc;
	rc = ledger_accept(k->ledger, q->handle, &offer, k->now, c);
	if (rc == SLU_EEXISTS && put->replace)
		return find_replaced(k, &offer, c);
	if (rc == SLU_EIDEM)
		return op_fail_key(m, err);
	if (!rc && m->file && m->keeper && m->keeper != k->engine) /* MOVE-2 */
		return refuse_put(SLU_EBUSY, LIMIT_MOVE, put, err);
	return rc && rc != SLU_EEXISTS && rc != SLU_EMOVED ? refuse_accept(rc, put, err) : rc;
}

int
ledgerengine_put_carry_out(struct ledgerengine *k, struct op_put *put, struct change *c, struct slu_err *err)
{
	put->m.number = c->number;
	put->m.accepted = c->at;
	if (put->m.due == 0)
		put->m.due = c->due;
	put->m.expires = c->expires;
	return ledgerengine_keep_message(k, &put->m, c, err);
}

/* Sets m.number if the message is accepted. SLU_EMOVED: another shard accepts it. */
static int
put_one(struct ledgerengine *k, const struct op *op, struct op_put *put, struct last_queue *q,
	struct slu_err *err)
{
	struct change c;
	int rc;

	op_begin_put(put);
	rc = message_check(&put->m, err);
	if (rc)
		return rc;
	if (put->pending)
		return ledgerengine_promise(k, put, err);
	rc = put_decide(k, op, put, q, &c, err);
	if (rc == SLU_EEXISTS) {
		put->own_id = put->m.id;
		put->m.id = c.id;
		put->existed = true;
		return 0;
	}
	if (!rc && c.kind == CHANGE_REPLACE)
		return put_replace(k, put, &c, err);
	return rc ? rc : ledgerengine_put_carry_out(k, put, &c, err);
}

/* The end of the run of puts into one queue that begins at i. */
static uint32_t
run_end(const struct op *op, uint32_t i)
{
	const struct message *const m = &op->puts[i].m;
	uint32_t end = i + 1;

	while (end < op->n_puts && slice_eq(op->puts[end].m.queue, m->queue) &&
	       slice_eq(op->puts[end].m.space, m->space))
		end++;
	return end;
}

/* How many puts of the run from i to `end` count for the rate of their queue: MOVE-2, MOVE-4. The shard that
 * accepts a pending one counts it. */
static uint32_t
count_puts(const struct op *op, uint32_t i, uint32_t end)
{
	uint32_t n = 0;

	for (; i < end && !op->home.known; i++)
		n += !op->puts[i].taken && !op->puts[i].pending;
	return n;
}

/* Checks a run of n puts against the rate of its queue. */
static int
check_rate(struct ledgerengine *k, const struct op_put *put, uint32_t n, struct slu_err *err)
{
	struct last_queue q = no_queue;
	struct bucket_rule rule;
	slu_time wait;
	int rc;

	rc = open_queue(k, put, &q, err);
	if (rc)
		return rc;
	wait = ledger_rate_wait(k->ledger, q.handle, n, k->now);
	if (!wait)
		return 0;
	rule = ledger_rate(k->ledger, q.handle);
	return limit_fail(err, SLU_EBUSY, LIMIT_QUEUE_RATE, wait,
			  "queue %.*s: more than %u messages a second", (int)put->m.queue.n,
			  put->m.queue.p, rule.rate);
}

/* All runs are checked before one is charged: a call is accepted whole, or costs nothing. */
static int
keep_rates(struct ledgerengine *k, struct op *op, struct slu_err *err)
{
	struct last_queue q = no_queue;
	int rc = 0;

	if (!ledger_has_rates(k->ledger))
		return 0;
	for (uint32_t i = 0; i < op->n_puts && !rc && !is_owed(op); i = run_end(op, i)) {
		op->failed = i;
		if (!op->puts[i].pending)
			rc = check_rate(k, &op->puts[i], count_puts(op, i, run_end(op, i)), err);
	}
	for (uint32_t i = 0; i < op->n_puts && !rc; i = run_end(op, i)) {
		if (op->puts[i].pending)
			continue;
		rc = open_queue(k, &op->puts[i], &q, err);
		if (!rc)
			ledger_rate_take(k->ledger, q.handle, count_puts(op, i, run_end(op, i)), k->now);
	}
	return rc;
}

void
ledgerengine_put_undo(struct ledgerengine *k, struct op *op, uint32_t n)
{
	while (n-- > 0) {
		const uint64_t entry = op->puts[n].entry;
		struct change c = { .kind = CHANGE_ACCEPT, .id = entry ? entry : op->puts[n].m.id };
		struct ledger_view v;

		if (op->puts[n].taken || op->puts[n].existed || !op->puts[n].m.number)
			continue;
		c.msg = ledger_find_any(k->ledger, c.id);
		assert(c.msg != SLAB_NONE);
		ledger_get(k->ledger, c.msg, &v);
		c.queue = v.queue;
		c.where = v.where;
		c.number = v.number;
		ledger_undo(k->ledger, &c);
		if (k->ops->undo_message)
			k->ops->undo_message(k, &c);
	}
}

/* Finds the put that replaces a message; n_puts: none does. It comes last, because it cannot be undone. */
static int
find_last(struct op *op, uint32_t *last, struct slu_err *err)
{
	*last = op->n_puts;
	for (uint32_t i = 0; i < op->n_puts; i++) {
		if (!op->puts[i].replace)
			continue;
		op->failed = i;
		if (*last < op->n_puts)
			return slu_fail(err, SLU_EINVAL, "invalid messages: several replace another one; expected one at most");
		if (op->verb != OP_ENQUEUE)
			return slu_fail(err, SLU_EINVAL, "invalid message: it replaces another one; expected one message in the enqueue");
		op_begin_put(&op->puts[i]);
		*last = i;
	}
	return 0;
}

/* Returns whether it is worth to look ahead: the op has keys, and more puts than the distance. */
static bool
looks_ahead(const struct ledgerengine *k, const struct op *op, struct ledger_ahead *a)
{
	const struct message *const m = op->n_puts > LEDGER_AHEAD ? &op->puts->m : NULL;
	const uint32_t queue = m && m->key.n ? ledger_queue_find(k->ledger, m->space, m->queue) : SLAB_NONE;

	if (queue != SLAB_NONE)
		ledger_ahead_begin(a, queue);
	return queue != SLAB_NONE;
}

/* Tells the puts up to LEDGER_AHEAD behind put n. */
static void
look_ahead(const struct ledgerengine *k, const struct op *op, uint32_t n, struct ledger_ahead *a)
{
	while (a->n < op->n_puts && a->n <= n + LEDGER_AHEAD) {
		const struct message *const m = &op->puts[a->n].m;
		const bool same = slice_is(m->queue, op->puts->m.queue) && slice_is(m->space, op->puts->m.space);

		ledger_ahead_put(k->ledger, a, same ? m->key : (struct slice){ 0 });
	}
}

int
ledgerengine_put_all(struct ledgerengine *k, struct op *op, bool moved, struct slu_err *err)
{
	struct last_queue q = no_queue;
	struct ledger_ahead ahead;
	uint32_t last;
	bool looks;
	int rc;

	op_name_puts(op);
	looks = looks_ahead(k, op, &ahead);
	rc = find_last(op, &last, err);
	if (!rc)
		rc = keep_rates(k, op, err);
	for (uint32_t n = 0; n <= op->n_puts && !rc; n++) {
		const uint32_t i = n < op->n_puts ? n : last;

		if (n == last)
			continue;
		if (looks) {
			look_ahead(k, op, n, &ahead);
			q.key_hash = ledger_ahead_use(k->ledger, &ahead, i);
		}
		rc = op->puts[i].taken ? 0 : put_one(k, op, &op->puts[i], &q, err);
		if (rc == SLU_EMOVED)
			rc = moved ? refuse_put(rc, LIMIT_MOVE, &op->puts[i], err) : 0;
		if (!rc)
			continue;
		op->puts[i].m.number = 0;
		ledgerengine_put_undo(k, op, n);
		op->failed = i;
	}
	return rc;
}

void
ledgerengine_enqueue(struct ledgerengine *k, struct op *op)
{
	struct slu_err err;
	int rc;

	no_err(&err);
	rc = ledgerengine_put_all(k, op, false, &err);
	if (rc)
		op_fail(op, rc, &err);
}

/* Keeps the number of the batch behind its messages, in the same group. */
static int
put_batch(struct ledgerengine *k, struct op *op, const struct change_intake *say, struct slu_err *err)
{
	struct change c;
	int rc = ledger_intake(k->ledger, say, k->now, &c);

	if (rc == SLU_EBUSY)
		return slu_fail(err, SLU_EBUSY, "the shard remembers the batches of %d sources; a new source has to wait",
				LEDGER_SOURCES);
	if (!rc)
		rc = ledgerengine_put_all(k, op, true, err);
	if (rc)
		return rc;
	rc = ledgerengine_batch_known(k, op, err);
	if (!rc)
		rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, err);
	if (rc)
		ledgerengine_batch_unknown(k, op);
	if (rc)
		ledgerengine_put_undo(k, op, op->n_puts);
	return rc;
}

void
ledgerengine_intake(struct ledgerengine *k, struct op *op)
{
	struct op_intake *const q = &op->intake;
	struct change_intake say = { .batch = q->batch, .last = k->now, .count = op->n_puts };
	struct slu_err err = { 0 };
	int rc;

	memcpy(say.source, q->source, INTAKE_SOURCE);
	q->last = ledger_intake_last(k->ledger, q->source, &q->count);
	q->known = q->batch <= q->last || (q->first && q->first <= q->last);
	if (q->known)
		return;
	rc = put_batch(k, op, &say, &err);
	if (rc) {
		op_fail(op, rc, &err);
		return;
	}
	q->last = q->batch;
	q->count = op->n_puts;
}
