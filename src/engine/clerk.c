/*
 * clerk.c - a run of ops; what producers and consumers come for.
 */
#include "engine/clerk_in.h"

#include "base/clock.h"
#include "base/limit.h"
#include "base/log.h"
#include "engine/quota.h"

#include <assert.h>

#define LATER (100 * SLU_MS) /* when what fell due is tried again */

void
clerk_init(struct clerk *k, const struct clerk_ops *ops, struct engine *engine,
	   struct ledger *ledger, struct locks *locks, const struct engine_conf *conf,
	   uint64_t random)
{
	*k = (struct clerk){
		.ops = ops,
		.engine = engine,
		.ledger = ledger,
		.locks = locks,
		.ready = conf->ready,
		.freed = conf->freed,
		.ready_arg = conf->ready_arg,
		.changed = conf->changed,
		.changed_arg = conf->changed_arg,
		.waited_for = conf->waited_for,
		.random = random | 1,
		.quota = conf->quota,
		.log = conf->log,
		.meter = conf->meter,
	};
}

void
clerk_release(struct clerk *k)
{
	clerk_limit_release(k);
	ledger_free(k->ledger);
	locks_free(k->locks);
	k->ledger = NULL;
	k->locks = NULL;
}

/* L12 and K7: what becomes of a message's state when the message is no more. */
static void
on_forgotten(void *arg, uint64_t id)
{
	locks_message(arg, id, LOCK_GONE, 0);
}

int
clerk_books(const struct ledger_conf *conf, struct ledger **ledger, struct locks **locks,
	    struct slu_err *err)
{
	const struct locks_conf own = {
		.secret = conf->secret,
		.drop = conf->drop,
		.drop_arg = conf->drop_arg,
	};
	struct ledger_conf both = *conf;

	if (locks_new(locks, &own))
		return slu_fail(err, SLU_ENOMEM, "no memory for locks");
	both.forgot = on_forgotten;
	both.forgot_arg = *locks;
	if (!ledger_new(ledger, &both))
		return 0;
	locks_free(*locks);
	return slu_fail(err, SLU_ENOMEM, "no memory for a ledger");
}

/* K11 */
static void
follow_batch(struct locks *l, const struct change *c)
{
	if (c->move->what != BATCH_LOCKS)
		return;
	if (c->kind == CHANGE_TAKE)
		locks_set_aside(l, c->move->space, c->move->names);
	else if (c->kind == CHANGE_DROP)
		locks_let_go(l, c->move->space, c->move->names);
	else
		locks_bring_back(l, c->move->space);
}

void
clerk_follow(struct locks *l, const struct change *c)
{
	switch (c->kind) {
	case CHANGE_RETRY:
	case CHANGE_DIE:
		locks_message(l, c->id, c->expired ? LOCK_FORGET : LOCK_COMMIT, c->at);
		break;
	case CHANGE_CLAIM:
	case CHANGE_RETURN:
	case CHANGE_SPARE:
	case CHANGE_ASIDE:
		locks_message(l, c->id, LOCK_FORGET, c->at);
		break;
	case CHANGE_DONE:
		locks_message(l, c->id, LOCK_GONE, c->at);
		break;
	case CHANGE_OPENED:
		locks_opened(l, c->at + LEDGER_GRACE);
		break;
	case CHANGE_TAKE:
	case CHANGE_UNTAKE:
	case CHANGE_DROP:
		follow_batch(l, c);
		break;
	default:
		break;
	}
}

slu_time
clerk_next_due(struct clerk *k)
{
	const slu_time messages = ledger_next_due(k->ledger), locks = locks_next_due(k->locks);
	const slu_time due = messages < locks ? messages : locks;
	const slu_time again = time_add(k->now, LATER);

	if (k->trims)
		return k->now;
	return k->late && due < again ? again : due;
}

int
clerk_carry_out(struct clerk *k, struct change *c, struct slice text, struct slu_err *err)
{
	int rc;

	rc = k->ops->keep(k, c, text, err);
	if (rc)
		return rc;
	rc = ledger_apply(k->ledger, c);
	assert(rc == 0); /* L9 of the ledger */
	if (c->kind == CHANGE_FORGET && k->cut_short == c->queue)
		k->cut_short = SLAB_NONE;
	clerk_follow(k->locks, c);
	meter_change(&k->meter, c);
	if (k->ops->applied)
		k->ops->applied(k, c);
	if (k->changed)
		k->changed(k->changed_arg, c);
	return 0;
}

uint32_t
clerk_queue(const struct clerk *k, const struct op *op)
{
	const uint32_t queue = ledger_queue_find(k->ledger, op->space, op->queue);

	if (queue != SLAB_NONE)
		ledger_queue_use(k->ledger, queue, k->now);
	return queue;
}

void
clerk_unpin_row(struct clerk *k, struct op_row *row)
{
	engine_unpin(k->engine, &row->record);
	engine_unpin(k->engine, &row->payload);
	shared_text_unref(row->owner);
	row->owner = NULL;
}

int
clerk_row(struct clerk *k, uint32_t msg, bool with_error, struct op_row *row,
	  struct slu_err *err)
{
	struct ledger_view v;
	int rc;

	ledger_get(k->ledger, msg, &v);
	*row = (struct op_row){
		.id = v.id,
		.token = v.token,
		.until = v.until,
		.claimed = v.claimed,
		.due = v.due,
		.expires = v.expires,
		.number = v.number,
		.prio = v.prio,
		.attempts = v.attempts,
		.failures = v.failures,
		.max_attempts = v.max_attempts,
		.state = (uint8_t)v.state,
		.flags = v.flags,
		.reason = (uint8_t)v.reason,
		.owner = ledger_owner_share(k->ledger, v.owner),
	};
	rc = k->ops->pin(k, v.where, &row->record, &row->payload, err);
	if (!rc && with_error && v.error)
		rc = k->ops->pin(k, v.error, &row->error, NULL, err);
	if (rc)
		clerk_unpin_row(k, row);
	return rc;
}

/* ---- Enqueue ---- */

static slu_time
due_of(const struct clerk *k, const struct op_put *put)
{
	if (put->m.due)
		return put->m.due;
	return put->delay > SLU_NEVER - k->now ? SLU_NEVER : k->now + put->delay;
}

/* Name the queue and, of a limit, which it was. */
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

static int
make_queue(struct clerk *k, const struct op_put *put, uint32_t *queue, struct slu_err *err)
{
	int rc = clerk_limit_queue(k, put->m.space, put->m.queue, err);

	if (rc)
		return rc;
	rc = ledger_queue_open_as(k->ledger, put->m.space, put->m.queue, &put->as, queue);
	return rc ? refuse_put(rc, LIMIT_QUEUES, put, err) : 0;
}

static int
open_queue(struct clerk *k, const struct op_put *put, uint32_t *queue, struct slu_err *err)
{
	int rc;

	*queue = ledger_queue_find(k->ledger, put->m.space, put->m.queue);
	rc = *queue != SLAB_NONE ? 0 : make_queue(k, put, queue, err);
	if (!rc)
		ledger_queue_use(k->ledger, *queue, k->now);
	return rc;
}

/* V2: where the put belongs, if not here; or V11: here, but somebody else is asked first. */
static bool
is_elsewhere(const struct clerk *k, struct op *op, const struct op_put *put, uint32_t queue)
{
	const struct message *m = &put->m;
	char lives[MOVE_SHARD];

	if (op->known)
		return !ledger_idem_id(k->ledger, queue, m->idem, k->now);
	if (!clerk_is_elsewhere(k, op, queue, lives) ||
	    (lives[0] == MOVE_UNKNOWN[0] && !m->key.n && !m->idem.n) ||
	    ledger_key_is(k->ledger, queue, m->key) != LEDGER_KEY_AWAY ||
	    ledger_idem_id(k->ledger, queue, m->idem, k->now))
		return false;
	memcpy(op->elsewhere, lives, sizeof lives);
	return true;
}

static int
refuse_accept(int rc, const struct op_put *put, struct slu_err *err)
{
	if (rc == SLU_ECONFLICT) /* V7 */
		return refuse_put(SLU_EBUSY, LIMIT_MOVE, put, err);
	return refuse_put(rc, rc == SLU_EQFULL ? LIMIT_DEPTH : LIMIT_IDEMPOTENCY, put, err);
}

/* V2: is its payload in a file that another engine has? */
static bool
is_kept_elsewhere(const struct clerk *k, const struct message *m)
{
	return m->file && m->keeper && m->keeper != k->engine;
}

uint64_t
clerk_digest(const struct clerk *k, uint32_t queue, const struct message *m)
{
	if (m->idem.n == 0 || !ledger_is_strict(k->ledger, queue))
		return 0;
	return m->file ? m->digest : message_digest(m->payload);
}

static int
put_decide(struct clerk *k, struct op *op, struct op_put *put, struct change *c,
	   struct slu_err *err)
{
	const struct message *m = &put->m;
	struct ledger_offer offer = {
		.id = m->id,
		.key = m->key,
		.idem = m->idem,
		.prio = m->prio,
		.due = due_of(k, put),
		.ttl = put->ttl,
		.max_attempts = m->max_attempts,
		.keep_result = m->keep,
	};
	uint32_t queue;
	int rc;

	c->id = 0;
	rc = open_queue(k, put, &queue, err);
	if (rc)
		return rc;
	if (is_elsewhere(k, op, put, queue))
		return SLU_EMOVED;
	put->max_attempts = m->max_attempts ? m->max_attempts : ledger_attempts(k->ledger, queue);
	offer.digest = clerk_digest(k, queue, m);
	rc = clerk_limit_put(k, queue, &offer, m, err);
	if (rc)
		return rc;
	rc = ledger_accept(k->ledger, queue, &offer, k->now, c);
	if (rc == SLU_EIDEM)
		return op_fail_key(m, err);
	if (!rc && is_kept_elsewhere(k, m))
		return refuse_put(SLU_EBUSY, LIMIT_MOVE, put, err);
	return rc && rc != SLU_EEXISTS ? refuse_accept(rc, put, err) : rc;
}

static int
put_carry_out(struct clerk *k, struct op_put *put, struct change *c, struct slu_err *err)
{
	int rc;

	put->m.number = c->number;
	put->m.accepted = c->at;
	if (put->m.due == 0)
		put->m.due = c->due;
	put->m.expires = c->expires;
	rc = k->ops->keep_message(k, &put->m, c, err);
	if (rc)
		return rc;
	rc = ledger_apply(k->ledger, c);
	assert(rc == 0); /* L9 of the ledger */
	if (k->ops->applied)
		k->ops->applied(k, c);
	return 0;
}

/* m.number says whether it was accepted. */
static int
put_one(struct clerk *k, struct op *op, struct op_put *put, struct slu_err *err)
{
	struct change c;
	int rc;

	op_begin_put(put);
	rc = message_check(&put->m, err);
	if (rc)
		return rc;
	rc = put_decide(k, op, put, &c, err);
	if (rc == SLU_EEXISTS) {
		put->own_id = put->m.id;
		put->m.id = c.id;
		put->existed = true;
		return 0;
	}
	return rc ? rc : put_carry_out(k, put, &c, err);
}

/* How many of the puts are for this shard: V4. Those of a queue that lives elsewhere are
 * counted there. */
static uint32_t
charged(const struct clerk *k, const struct op *op, const struct op_put *puts, uint32_t n)
{
	char lives[MOVE_SHARD];
	uint32_t sum = 0;

	if (op->known || clerk_lives_elsewhere(k, ledger_queue_find(k->ledger, puts->m.space, puts->m.queue), lives))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		sum += !puts[i].taken;
	return sum;
}

/* Where the run of puts ends that begins at i and goes into one queue. */
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

/* Is the call's next run of messages within the rate of its queue? */
static int
check_rate(struct clerk *k, const struct op_put *put, uint32_t n, struct slu_err *err)
{
	struct bucket_rule rule;
	uint32_t queue;
	slu_time wait;
	int rc;

	rc = open_queue(k, put, &queue, err);
	if (rc)
		return rc;
	wait = ledger_rate_wait(k->ledger, queue, n, k->now);
	if (!wait)
		return 0;
	rule = ledger_rate(k->ledger, queue);
	return limit_fail(err, SLU_EBUSY, LIMIT_QUEUE_RATE, wait,
			  "queue %.*s: more than %u messages a second", (int)put->m.queue.n,
			  put->m.queue.p, rule.rate);
}

/* All runs are looked at before one is charged: a call is taken whole, or costs
 * nothing. */
static int
keep_rates(struct clerk *k, struct op *op, struct slu_err *err)
{
	uint32_t queue;
	int rc = 0;

	if (!ledger_has_rates(k->ledger))
		return 0;
	for (uint32_t i = 0; i < op->n_puts && !rc; i = run_end(op, i)) {
		op->failed = i;
		rc = check_rate(k, &op->puts[i], charged(k, op, &op->puts[i], run_end(op, i) - i), err);
	}
	for (uint32_t i = 0; i < op->n_puts && !rc; i = run_end(op, i)) {
		rc = open_queue(k, &op->puts[i], &queue, err);
		if (!rc)
			ledger_rate_take(k->ledger, queue,
					 charged(k, op, &op->puts[i], run_end(op, i) - i), k->now);
	}
	return rc;
}

static void
fill_names(struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++) {
		struct message *const m = &op->puts[i].m;

		m->space = m->space.n ? m->space : op->space;
		m->queue = m->queue.n ? m->queue : op->queue;
		if (op->puts[i].as.queue.n == 0)
			op->puts[i].as = op->as;
	}
}

/* O4: the puts before n are taken back, the latest first. */
static void
put_undo(struct clerk *k, struct op *op, uint32_t n)
{
	while (n-- > 0) {
		struct change c = { .kind = CHANGE_ACCEPT, .id = op->puts[n].m.id };
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

static bool
is_done(const struct op_put *put)
{
	return put->taken || put->existed || put->m.number;
}

/* All that could be is done: V2. Who has no map, and meets no mark, knows nothing of puts
 * that are taken. */
static void
end_puts(struct op *op)
{
	bool routed = op->epoch;
	struct slu_err err;

	for (uint32_t i = 0; i < op->n_puts; i++)
		routed |= op->puts[i].taken || !is_done(&op->puts[i]);
	for (uint32_t i = 0; routed && i < op->n_puts; i++) {
		struct op_put *put = &op->puts[i];

		put->taken = is_done(put);
		if (!put->taken && !op->rc) {
			op->failed = i;
			op_fail(op, slu_fail(&err, SLU_EMOVED, "queue %.*s lives on shard %s", (int)put->m.queue.n, put->m.queue.p, op->elsewhere),
				&err);
		}
	}
}

static void
run_enqueue(struct clerk *k, struct op *op)
{
	struct slu_err err = { 0 };
	int rc;

	fill_names(op);
	rc = keep_rates(k, op, &err);
	if (rc) {
		op_fail(op, rc, &err);
		return;
	}
	for (uint32_t i = 0; i < op->n_puts; i++) {
		rc = op->puts[i].taken ? 0 : put_one(k, op, &op->puts[i], &err);
		if (!rc || rc == SLU_EMOVED)
			continue;
		put_undo(k, op, i);
		op->failed = i;
		op_fail(op, rc, &err);
		return;
	}
	end_puts(op);
}

/* ---- A run ---- */

static clerk_fn *const verbs[OP_VERBS] = {
	[OP_ENQUEUE] = run_enqueue,
	[OP_CLAIM] = clerk_claim,
	[OP_RETURN] = clerk_return,
	[OP_ACK] = clerk_items,
	[OP_NACK] = clerk_items,
	[OP_EXTEND] = clerk_items,
	[OP_REDRIVE] = clerk_items,
	[OP_DELETE] = clerk_items,
	[OP_ASIDE] = clerk_items,
	[OP_GET] = clerk_get,
	[OP_PEEK] = clerk_peek,
	[OP_WATCH] = clerk_watch,
	[OP_LIST] = clerk_list,
	[OP_RESULT] = clerk_result,
	[OP_STATS] = clerk_stats,
	[OP_TOPICS] = clerk_topics,
	[OP_PURGE] = clerk_purge,
	[OP_PAUSE] = clerk_pause,
	[OP_POLICY_GET] = clerk_policy_get,
	[OP_POLICY_SET] = clerk_policy_set,
	[OP_FORGET] = clerk_forget,
	[OP_BACKUP] = clerk_backup,
	[OP_SHARD] = clerk_shard,
	[OP_MOVE] = clerk_move,
	[OP_ACQUIRE] = clerk_acquire,
	[OP_KEEPALIVE] = clerk_keepalive,
	[OP_RELEASE] = clerk_release_lock,
	[OP_STATE_GET] = clerk_state_get,
	[OP_STATE_PUT] = clerk_state_put,
	[OP_STATE_REMOVE] = clerk_state_remove,
	[OP_STATE_META] = clerk_state_meta,
	[OP_DESCRIBE] = clerk_describe,
	[OP_KEYS] = clerk_keys,
	[OP_ATTACHMENTS] = clerk_attachments,
};

/* E3. What there is no memory or no room to keep happens later. */
static int
catch_up(struct clerk *k, slu_time until, struct slu_err *err)
{
	struct change c;
	int rc = 0;

	while (!rc && ledger_tick(k->ledger, until, &k->budget, &c))
		if (c.kind != CHANGE_FORGET || clerk_may_forget(k, c.queue))
			rc = clerk_carry_out(k, &c, (struct slice){ 0 }, err);
	if (!rc)
		rc = clerk_tick_locks(k, until, err);
	if (rc != SLU_ENOMEM && rc != SLU_EFULL)
		return rc;
	k->late = true;
	return 0;
}

/* E5 */
static void
report_ready(struct clerk *k, uint32_t queue)
{
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	if (v.count[MSG_READY] && !v.policy->paused && k->ready)
		k->ready(k->ready_arg, slice_of(v.space_name), slice_of(v.name),
			 v.count[MSG_READY]);
}

static void
report_all_ready(struct clerk *k)
{
	uint32_t queue;

	while ((queue = ledger_woken(k->ledger)) != SLAB_NONE)
		report_ready(k, queue);
	if (k->cut_short != SLAB_NONE)
		report_ready(k, k->cut_short);
}

static void
report_depth(struct clerk *k, uint32_t queue, bool deep)
{
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	LOG_AT(k->log, deep ? SLU_LOG_WARN : SLU_LOG_INFO,
	       deep ? "queue is deep" : "queue is no longer deep",
	       F_STR("namespace", v.space_name), F_STR("queue", v.name),
	       F_U64("depth", v.depth), F_U64("warn_depth", v.policy->warn_depth));
}

static void
report_depths(struct clerk *k)
{
	uint32_t queue;
	bool deep;

	while ((queue = ledger_deep(k->ledger, &deep)) != SLAB_NONE)
		report_depth(k, queue, deep);
}

static void
take_quota(struct clerk *k)
{
	if (!k->quota)
		return;
	ledger_set_limits(k->ledger, &(struct ledger_limits){
					     .max_depth = quota_get(&k->quota->depth),
					     .rate = {
						     .rate = quota_get(&k->quota->rate),
						     .burst = quota_get(&k->quota->burst),
					     },
					     .idle = atomic_load_explicit(&k->quota->idle, memory_order_relaxed),
				     });
}

static void
run_one(struct clerk *k, struct op *op)
{
	struct slu_err err = { 0 };
	const int rc = op->epoch ? clerk_mark(k, op, &err) : 0;

	op->elsewhere[0] = 0;
	if (rc) {
		op_fail(op, rc, &err);
		return;
	}
	ledger_set_counter(k->ledger, op->above); /* written down with the first that is drawn */
	if ((op->epoch || ledger_has_moved(k->ledger)) && op->verb >= OP_ACQUIRE && op->verb != OP_KEYS &&
	    clerk_lock_is_elsewhere(k, op)) {
		op_fail(op, SLU_EMOVED, NULL);
		if (op->verb == OP_ACQUIRE && k->ops->sync)
			k->ops->sync(k); /* or its last lease here would be back after a power cut */
	} else {
		verbs[op->verb](k, op);
		clerk_point_elsewhere(k, op);
	}
	op->counter = ledger_counter(k->ledger);
}

int
clerk_run(struct clerk *k, struct op *batch, slu_time due, slu_time now,
	  struct slu_err *err)
{
	int rc = 0;

	k->now = now;
	k->budget = ENGINE_DUE_MAX;
	k->cut_short = SLAB_NONE;
	k->late = false;
	take_quota(k);
	clerk_limit_begin(k);
	EACH_OP(op, batch)
	{
		op->rc = 0;
		op->engine = k->engine;
		if (!rc)
			rc = catch_up(k, op->before, err);
		if (!rc)
			run_one(k, op);
	}
	if (!rc)
		rc = catch_up(k, due, err);
	report_all_ready(k);
	report_depths(k);
	clerk_limit_end(k);
	return rc;
}
