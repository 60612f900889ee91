/*
 * ledgerengine.c - a run of ops, the table of verbs, and what the verbs share.
 */
#include "engine/ledger/move/move.h"

#include "base/clock.h"
#include "base/limit.h"
#include "base/log.h"
#include "engine/quota.h"

#include <assert.h>

void
ledgerengine_init(struct ledgerengine *k, const struct ledgerengine_ops *ops, struct engine *engine,
		  struct ledger *ledger, struct locks *locks, const struct engine_conf *conf,
		  uint64_t random)
{
	*k = (struct ledgerengine){
		.ops = ops,
		.engine = engine,
		.ledger = ledger,
		.locks = locks,
		.ready = conf->ready,
		.freed = conf->freed,
		.ready_arg = conf->ready_arg,
		.changed = conf->changed,
		.changed_arg = conf->changed_arg,
		.observe = conf->observe,
		.observe_arg = conf->observe_arg,
		.home = conf->home,
		.home_arg = conf->home_arg,
		.waited_for = conf->waited_for,
		.random = random | 1,
		.quota = conf->quota,
		.log = conf->log,
		.meter = conf->meter,
	};
	ledgerengine_draw_source(k);
}

void
ledgerengine_release(struct ledgerengine *k)
{
	ledgerengine_batches_release(k);
	ledgerengine_limit_release(k);
	trend_free(k->storage);
	ledger_free(k->ledger);
	locks_free(k->locks);
	k->storage = NULL;
	k->ledger = NULL;
	k->locks = NULL;
}

/* LEDGER-12, LOCK-7: the state of a message goes with the message. */
static void
on_forgotten(void *arg, uint64_t id)
{
	locks_message(arg, id, LOCK_GONE, 0);
}

int
ledgerengine_books(const struct ledger_conf *conf, struct ledger **ledger, struct locks **locks,
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

/* LOCK-11 */
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
ledgerengine_update_state(struct locks *l, const struct change *c)
{
	switch (c->kind) {
	case CHANGE_RETRY:
	case CHANGE_DIE:
		locks_message(l, c->id, c->expired ? LOCK_FORGET : LOCK_COMMIT, c->at);
		break;
	case CHANGE_CLAIM:
	case CHANGE_RETURN:
	case CHANGE_SPARE:
	case CHANGE_QUARANTINE:
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
ledgerengine_next_due(struct ledgerengine *k)
{
	const slu_time messages = ledger_next_due(k->ledger), locks = locks_next_due(k->locks);
	const slu_time letters = ledgerengine_letters_due(k), batches = ledgerengine_batches_due(k);
	const slu_time own = messages < locks ? messages : locks;
	const slu_time sent = letters < batches ? letters : batches;
	const slu_time due = own < sent ? own : sent;
	const slu_time again = time_add(k->now, LEDGERENGINE_LATER);

	if (k->trims)
		return k->now;
	return k->late && due < again ? again : due;
}

/* Changes that may end a member of a batch, or begin it anew. */
static inline bool
tells_batch(const struct change *c)
{
	return c->kind == CHANGE_DONE || c->kind == CHANGE_DIE || c->kind == CHANGE_REDRIVE;
}

int
ledgerengine_carry_out(struct ledgerengine *k, struct change *c, struct slice text, struct slu_err *err)
{
	uint64_t told = 0;
	int rc = tells_batch(c) ? ledgerengine_batch_change(k, c, &told, err) : 0;

	if (rc)
		return rc;
	rc = k->ops->keep(k, c, text, err);
	if (rc) {
		ledgerengine_batch_untell(k, told);
		return rc;
	}
	rc = ledger_apply(k->ledger, c);
	assert(rc == 0); /* LEDGER-9 */
	if (c->kind == CHANGE_FORGET && k->cut_short == c->queue)
		k->cut_short = SLAB_NONE;
	ledgerengine_update_state(k->locks, c);
	meter_change(&k->meter, c);
	if (k->ops->applied)
		k->ops->applied(k, c);
	if (k->changed)
		k->changed(k->changed_arg, c);
	if (k->observe)
		k->observe(k->observe_arg, c);
	return 0;
}

uint32_t
ledgerengine_queue(const struct ledgerengine *k, const struct op *op)
{
	const uint32_t queue = ledger_queue_find(k->ledger, op->space, op->queue);

	if (queue != SLAB_NONE)
		ledger_queue_use(k->ledger, queue, k->now);
	return queue;
}

static void
fill_row(struct ledgerengine *k, const struct ledger_view *v, struct op_row *row)
{
	*row = (struct op_row){
		.id = v->id,
		.token = v->token,
		.until = v->until,
		.claimed = v->claimed,
		.due = v->due,
		.expires = v->expires,
		.number = v->number,
		.prio = v->prio,
		.attempts = v->attempts,
		.failures = v->failures,
		.max_attempts = v->max_attempts,
		.state = (uint8_t)v->state,
		.flags = v->flags,
		.reason = (uint8_t)v->reason,
		.holder = ledger_holder_share(k->ledger, v->holder),
	};
}

void
ledgerengine_bare_row(struct ledgerengine *k, uint32_t msg, struct op_row *row)
{
	struct ledger_view v;

	ledger_get(k->ledger, msg, &v);
	fill_row(k, &v, row);
}

int
ledgerengine_row(struct ledgerengine *k, uint32_t msg, bool with_error, struct op_row *row,
		 struct slu_err *err)
{
	struct ledger_view v;
	int rc;

	ledger_get(k->ledger, msg, &v);
	fill_row(k, &v, row);
	rc = k->ops->pin(k, v.where, &row->record, &row->payload, err);
	if (!rc && with_error && v.error)
		rc = k->ops->pin(k, v.error, &row->error, NULL, err);
	if (rc)
		op_unpin_row(k->engine, row);
	return rc;
}

int
ledgerengine_read(struct ledgerengine *k, const struct op_ref *ref, char *out, bool may_block, struct slu_err *err)
{
	if (k->ops->read)
		return k->ops->read(k, ref, out, may_block, err);
	return engine_read(k->engine, ref, 0, ref->size, out, may_block, err);
}

/* ---- A run ---- */

static ledgerengine_fn *const verbs[OP_VERBS] = {
	[OP_ENQUEUE] = ledgerengine_enqueue,
	[OP_CLAIM] = ledgerengine_claim,
	[OP_RETURN] = ledgerengine_return,
	[OP_ACK] = ledgerengine_items,
	[OP_NACK] = ledgerengine_items,
	[OP_FINISH] = ledgerengine_finish,
	[OP_SCHEDULE] = ledgerengine_schedule,
	[OP_EXTEND] = ledgerengine_items,
	[OP_REDRIVE] = ledgerengine_items,
	[OP_DELETE] = ledgerengine_items,
	[OP_QUARANTINE] = ledgerengine_items,
	[OP_GET] = ledgerengine_get,
	[OP_WHY] = ledgerengine_why,
	[OP_LIMITS] = ledgerengine_limits,
	[OP_HOLD] = ledgerengine_hold,
	[OP_PEEK] = ledgerengine_peek,
	[OP_WATCH] = ledgerengine_watch,
	[OP_LIST] = ledgerengine_list,
	[OP_RESULT] = ledgerengine_result,
	[OP_STATS] = ledgerengine_stats,
	[OP_QUEUES] = ledgerengine_queues,
	[OP_PURGE] = ledgerengine_purge,
	[OP_PAUSE] = ledgerengine_pause,
	[OP_POLICY_GET] = ledgerengine_policy_get,
	[OP_POLICY_SET] = ledgerengine_policy_set,
	[OP_FORGET] = ledgerengine_forget,
	[OP_BACKUP] = ledgerengine_backup,
	[OP_SHARD] = ledgerengine_shard,
	[OP_PRESENCE] = ledgerengine_presence,
	[OP_INTAKE] = ledgerengine_intake,
	[OP_MOVE] = ledgerengine_move,
	[OP_ACQUIRE] = ledgerengine_acquire,
	[OP_KEEPALIVE] = ledgerengine_change_held,
	[OP_RELEASE] = ledgerengine_change_held,
	[OP_STATE_GET] = ledgerengine_state_get,
	[OP_STATE_PUT] = ledgerengine_state_put,
	[OP_STATE_REMOVE] = ledgerengine_change_held,
	[OP_STATE_META] = ledgerengine_change_held,
	[OP_DESCRIBE] = ledgerengine_describe,
	[OP_KEYS] = ledgerengine_keys,
	[OP_ATTACHMENTS] = ledgerengine_attachments,
	[OP_ADJUST] = ledgerengine_items,
	[OP_TREND] = ledgerengine_trend,
};

/* ENGINE-3. A change without memory or room to keep it happens later. */
static int
catch_up(struct ledgerengine *k, slu_time until, struct slu_err *err)
{
	struct change c;
	int rc = 0;

	while (!rc && ledger_tick(k->ledger, until, &k->budget, &c))
		if (c.kind != CHANGE_FORGET || ledgerengine_may_forget(k, c.queue))
			rc = ledgerengine_carry_out_failure(k, &c, (struct slice){ 0 }, err);
	if (!rc)
		rc = ledgerengine_tick_locks(k, until, err);
	if (rc != SLU_ENOMEM && rc != SLU_EFULL && rc != SLU_EBUSY)
		return rc;
	k->late = true;
	return 0;
}

/* ENGINE-5 */
static void
report_ready(struct ledgerengine *k, uint32_t queue)
{
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	ledgerengine_batches_note(k, queue, v.name);
	if (v.count[MSG_READY] && !v.policy->paused && k->ready)
		k->ready(k->ready_arg, slice_of(v.space_name), slice_of(v.name),
			 v.count[MSG_READY]);
}

static void
report_all_ready(struct ledgerengine *k)
{
	uint32_t queue;

	while ((queue = ledger_woken(k->ledger)) != SLAB_NONE)
		report_ready(k, queue);
	if (k->cut_short != SLAB_NONE)
		report_ready(k, k->cut_short);
}

static void
report_depth(struct ledgerengine *k, uint32_t queue, bool deep)
{
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	LOG_AT(k->log, deep ? SLU_LOG_WARN : SLU_LOG_INFO,
	       deep ? "queue is deep" : "queue is no longer deep",
	       F_STR("namespace", v.space_name), F_STR("queue", v.name),
	       F_U64("depth", v.depth), F_U64("warn_depth", v.policy->warn_depth));
}

static void
report_depths(struct ledgerengine *k)
{
	uint32_t queue;
	bool deep;

	while ((queue = ledger_deep(k->ledger, &deep)) != SLAB_NONE)
		report_depth(k, queue, deep);
}

static void
take_quota(struct ledgerengine *k)
{
	if (!k->quota)
		return;
	ledger_set_limits(k->ledger, &(struct ledger_limits){
					     .max_depth = quota_get(&k->quota->depth),
					     .rate = {
						     .rate = quota_get(&k->quota->rate),
						     .burst = quota_get(&k->quota->burst),
					     },
					     .shares = quota_get(&k->quota->shares),
					     .hold = atomic_load_explicit(&k->quota->hold, memory_order_relaxed),
					     .trends = quota_get(&k->quota->trends),
					     .idle = atomic_load_explicit(&k->quota->idle, memory_order_relaxed),
				     });
}

static void
run_one(struct ledgerengine *k, struct op *op)
{
	if (!ledgerengine_before(k, op))
		return;
	verbs[op->verb](k, op);
	ledgerengine_after(k, op);
}

int
ledgerengine_run(struct ledgerengine *k, struct op *batch, slu_time due, slu_time now,
		 struct slu_err *err)
{
	int rc = 0;

	k->now = now;
	k->budget = ENGINE_DUE_MAX;
	k->cut_short = SLAB_NONE;
	k->late = false;
	take_quota(k);
	ledgerengine_limit_begin(k);
	ledgerengine_send_letters(k);
	ledgerengine_batches_fold(k);
	EACH_OP(op, batch)
	{
		op->rc = 0;
		op->engine = k->engine;
		if (!rc)
			rc = catch_up(k, op->route.before, err);
		if (!rc)
			run_one(k, op);
	}
	if (!rc)
		rc = catch_up(k, due, err);
	report_all_ready(k);
	report_depths(k);
	ledgerengine_limit_end(k);
	return rc;
}
