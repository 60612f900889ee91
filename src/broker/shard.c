/*
 * shard.c - the shard's thread: mail in, answers out, waits that end.
 */
#include "broker/shard_in.h"

#include "base/log.h"
#include "broker/relay.h"
#include "engine/quota.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>

/* ---- Answers (S6) ---- */

/* To whoever asked, or to the relay, if other shards are asked, too. */
static void
hand_over(struct shard *s, struct op *op)
{
	s->held--;
	if (s->relays && (op->relay || op->elsewhere[0] || op->rc == SLU_EBUSY))
		relay_answered(s->relays, s, op);
	else
		op->done(op);
}

void
shard_answer(struct shard *s, struct op *op)
{
	int none = OP_CANCEL_NONE;

	assert(op->waiter == SLAB_NONE);
	if (!atomic_compare_exchange_strong(&op->canceled, &none, OP_CANCEL_DONE)) {
		op->ended = true; /* done when its cancel is here */
		return;
	}
	hand_over(s, op);
}

/* Nobody else can cancel it now. */
static void
answer_canceled(struct shard *s, struct op *op)
{
	atomic_store(&op->canceled, OP_CANCEL_DONE);
	hand_over(s, op);
}

static void
answer_unwanted(struct shard *s, struct op *op)
{
	op_fail(op, SLU_ECANCELED, NULL);
	op->n_rows = 0;
	answer_canceled(s, op);
}

/* From now on a cancel of it comes here. False: there was one while it was on its way. */
static bool
arrives(struct op *op)
{
	int none = OP_CANCEL_NONE;

	atomic_store(&op->canceled, OP_CANCEL_NONE);
	return atomic_load(&op->unwanted) == OP_WANTED ||
	       !atomic_compare_exchange_strong(&op->canceled, &none, OP_CANCEL_DONE);
}

static void
end_wait(struct shard *s, struct op *op, int rc)
{
	if (rc)
		op_fail(op, rc, NULL);
	else
		op->rc = 0;
	op->n_rows = 0;
	shard_answer(s, op);
}

/* ---- Mail ---- */

/* Its own mail came before, so it is in turns, waits, or has ended. */
static void
take_cancel(struct shard *s, struct op *op)
{
	if (!op->ended) {
		if (op->waiter != SLAB_NONE)
			dispatch_leave(&s->dispatch, op);
		else if (op->later)
			list_remove(&op->mail.node);
		else
			turns_remove(&s->turns, op);
		op->later = 0;
		op_fail(op, SLU_ECANCELED, NULL);
		op->n_rows = 0;
	}
	answer_canceled(s, op);
}

static void
take_op(struct shard *s, struct op *op)
{
	op->arrived += s->offset;
	if (op->arrived > s->now)
		op->arrived = s->now;
	s->held++;
	shard_count(s, SHARD_OPS, 1);
	if (atomic_load(&op->canceled) == OP_CANCEL_AWAY && !arrives(op))
		answer_unwanted(s, op);
	else if (s->failed)
		end_wait(s, op, SLU_EDOWN);
	else if (turns_add(&s->turns, op))
		end_wait(s, op, SLU_ENOMEM);
}

static void
take_mail(struct shard *s, struct list *mail)
{
	while (!list_is_empty(mail)) {
		struct op_mail *m = CONTAINER(mail->next, struct op_mail, node);

		list_remove(&m->node);
		if (m->cancel)
			take_cancel(s, m->op);
		else
			take_op(s, m->op);
	}
}

/* ---- What runs later ---- */

static struct op *
first_later(const struct shard *s)
{
	if (list_is_empty(&s->later))
		return NULL;
	return CONTAINER(s->later.next, struct op, mail.node);
}

/* Those whose time has come, and all when nothing will be waited for. */
static void
run_later(struct shard *s)
{
	struct op *op;

	while ((op = first_later(s)) != NULL && (op->later <= s->now || s->closed || s->failed)) {
		list_remove(&op->mail.node);
		op->later = 0;
		op->arrived = s->now;
		if (s->failed)
			end_wait(s, op, SLU_EDOWN);
		else if (turns_add(&s->turns, op))
			end_wait(s, op, SLU_ENOMEM);
	}
}

/* Behind all that run earlier, or at the same time. */
void
shard_put_off(struct shard *s, struct op *op, slu_time until)
{
	struct list *before = s->later.prev;

	while (before != &s->later && CONTAINER(before, struct op, mail.node)->later > until)
		before = before->prev;
	op->later = until;
	list_append(before->next, &op->mail.node);
}

void
shard_later(struct shard *s, struct op *op)
{
	s->held++;
	if (arrives(op))
		shard_put_off(s, op, s->now + SHARD_LATER);
	else
		answer_unwanted(s, op);
}

/* ---- Waits that end ---- */

/* How an op ends that waits for something that will not come. */
static int
ends_with(const struct shard *s, const struct op *op)
{
	const bool told = op->verb == OP_RESULT || op->verb == OP_ACQUIRE || op->verb == OP_WATCH;

	if (s->failed)
		return SLU_EDOWN;
	return told ? SLU_ECLOSED : 0;
}

/* Who waited for a key in vain is told who has it: that is for the engine to say. */
static void
expire_wait(struct shard *s, struct op *op)
{
	if (op->verb != OP_ACQUIRE) {
		end_wait(s, op, op->verb == OP_RESULT || op->verb == OP_WATCH ? SLU_ETIMEOUT : 0);
		return;
	}
	op->lock.waited = true;
	op->arrived = s->now; /* or S2 would hold up the rest */
	if (turns_add(&s->turns, op))
		end_wait(s, op, SLU_ENOMEM);
}

static void
end_waits(struct shard *s)
{
	const bool all = s->closed || s->failed;
	struct op *op;

	if (!all && !s->draining)
		return;
	while ((op = dispatch_any(&s->dispatch, !all)) != NULL) {
		if (s->hurried && !all)
			expire_wait(s, op);
		else
			end_wait(s, op, ends_with(s, op));
	}
}

static void
expire_waits(struct shard *s)
{
	struct op *op;

	while ((op = dispatch_expire(&s->dispatch, s->now)) != NULL)
		expire_wait(s, op);
}

/* ---- The thread ---- */

/* How long the thread may sleep: until then on clock_boot. */
static slu_time
sleep_until(struct shard *s)
{
	const struct op *const later = first_later(s);
	slu_time until = dispatch_next(&s->dispatch);

	if (later && later->later < until)
		until = later->later;
	if (turns_first(&s->turns))
		return 0;
	if (flows_next(&s->flows) < until)
		until = flows_next(&s->flows);
	if (!s->failed) {
		const slu_time due = s->engine->ops->next_due(s->engine);

		until = due < until ? due : until;
	}
	return until == SLU_NEVER ? until : until - s->offset;
}

/* Say how many wait: to whoever looks, and to all shards. */
static void
tell_waiting(struct shard *s)
{
	const uint32_t n = dispatch_count(&s->dispatch);

	atomic_store_explicit(&s->totals[SHARD_WAITING], n, memory_order_relaxed);
	if (s->quota && n != s->told)
		atomic_fetch_add_explicit(&s->quota->waits, n - s->told, memory_order_relaxed);
	s->told = n;
}

slu_time
shard_sleeps(struct shard *s)
{
	return inbox_has_news(&s->inbox) ? 0 : sleep_until(s);
}

bool
shard_round(struct shard *s)
{
	const slu_time began = clock_mono(s->clock);
	struct list mail;
	slu_time now;

	list_init(&mail);
	now = inbox_take(&s->inbox, sleep_until(s), &mail, &s->closed) + s->offset;
	s->brisk = !list_is_empty(&mail) && clock_mono(s->clock) < began + SHARD_LINGER;
	s->now = now > s->now ? now : s->now;
	take_mail(s, &mail);
	run_later(s);
	end_waits(s);
	if (!s->failed)
		shard_run(s);
	end_waits(s);
	expire_waits(s);
	tell_waiting(s);
	return !s->closed || s->held > 0;
}

/* S9 */
static void
linger(struct shard *s)
{
	const slu_time end = clock_mono(s->clock) + SHARD_LINGER;

	while (!inbox_has_news(&s->inbox) && clock_mono(s->clock) < end)
		sched_yield();
}

/* Where several are served at once, those who were just answered have more to ask: to
 * let them go first makes the next batch larger, and its sync is paid by more. */
static void *
work(void *arg)
{
	struct shard *s = arg;

	while (shard_round(s))
		if (s->crowded)
			sched_yield();
		else if (s->brisk)
			linger(s);
	return NULL;
}

/* ---- For others ---- */

static int
post(struct shard *s, struct op *op, enum op_cancel state)
{
	op->shard = s->index;
	op->waiter = SLAB_NONE;
	op->stalled = false;
	op->ended = false;
	op->lock.waited = false;
	atomic_store(&op->canceled, state);
	op->mail = (struct op_mail){ .op = op };
	op->stop = (struct op_mail){ .op = op, .cancel = true };
	return inbox_post(&s->inbox, &op->mail.node, &op->arrived);
}

int
shard_post(struct shard *s, struct op *op)
{
	atomic_store(&op->unwanted, OP_WANTED);
	return post(s, op, OP_CANCEL_NONE);
}

int
shard_forward(struct shard *s, struct op *op)
{
	return post(s, op, OP_CANCEL_AWAY);
}

void
shard_stop(struct shard *s, struct op *op)
{
	inbox_post_owed(&s->inbox, &op->stop.node);
}

void
shard_cancel(struct shard *s, struct op *op)
{
	if (op_unwant(op, OP_CANCELED))
		shard_stop(s, op);
}

void
shard_drain(struct shard *s)
{
	s->draining = true;
	inbox_poke(&s->inbox);
}

void
shard_hurry(struct shard *s)
{
	s->hurried = true;
	shard_drain(s);
}

void
shard_close(struct shard *s)
{
	inbox_close(&s->inbox);
}

/* ---- Open and close ---- */

static void
on_ready(void *arg, struct slice space, struct slice queue, uint32_t n)
{
	struct shard *s = arg;

	dispatch_ready(&s->dispatch, space, queue, n);
	if (s->relays)
		relay_ready(s->relays, s->index, space, queue, n);
}

static void
on_freed(void *arg, struct slice space, struct slice key)
{
	struct shard *s = arg;

	dispatch_freed(&s->dispatch, space, key);
}

static bool
is_waited_for(void *arg, struct slice space, struct slice queue)
{
	struct shard *s = arg;

	return dispatch_is_waited_for(&s->dispatch, space, queue);
}

/* Kinds that end a lease, if there was one. */
static const bool ends_lease[CHANGE_KINDS] = {
	[CHANGE_RETURN] = true,
	[CHANGE_RETRY] = true,
	[CHANGE_DIE] = true,
	[CHANGE_DONE] = true,
	[CHANGE_ASIDE] = true,
	[CHANGE_SPARE] = true,
};

void
shard_make_room(struct shard *s, uint64_t flow)
{
	struct op *const op = flow ? dispatch_room(&s->dispatch, flow) : NULL;

	if (!op)
		return;
	op->next = s->roomy;
	s->roomy = op;
}

static void
on_changed(void *arg, const struct change *c)
{
	struct shard *s = arg;

	s->deaths |= c->kind == CHANGE_DIE;
	if (c->kind == CHANGE_EXTEND)
		flow_extend(&s->flows, c->id, c->until);
	if (!ends_lease[c->kind])
		return;
	shard_make_room(s, flow_settle(&s->flows, c->id, c->token));
}

static void
on_poke(void *arg)
{
	struct shard *s = arg;

	inbox_poke(&s->inbox);
}

static int
open_engine(struct shard *s, const struct engine_ops *ops, const struct engine_conf *conf,
	    struct slu_err *err)
{
	struct engine_conf own = *conf;
	struct engine_found found = { 0 };
	slu_time opening;
	int rc;

	own.wall = clock_wall(s->clock);
	opening = own.wall - clock_boot(s->clock);
	own.ready = on_ready;
	own.freed = on_freed;
	own.waited_for = is_waited_for;
	own.ready_arg = s;
	own.changed = on_changed;
	own.changed_arg = s;
	own.poke = on_poke;
	own.poke_arg = s;
	rc = ops->open(&s->engine, &own, &found, err);
	if (rc)
		return rc;
	s->now = found.now;
	s->offset = found.now - clock_boot(s->clock);
	if (s->offset < opening)
		s->offset = opening; /* opening took time, which passed for all */
	s->highest_id = found.highest_id;
	return 0;
}

int
shard_open(struct shard *s, const struct engine_ops *ops, const struct engine_conf *conf,
	   struct clock *clock, uint32_t index, const _Atomic uint32_t *shards,
	   struct slu_err *err)
{
	struct hash_key secret;
	int rc;

	*s = (struct shard){
		.index = index,
		.shards = shards,
		.clock = clock,
		.log = conf->log,
		.quota = conf->quota,
		.meter = conf->meter,
	};
	rc = hash_key_init(&secret, err);
	if (!rc)
		rc = inbox_init(&s->inbox, clock, err);
	if (rc)
		return rc;
	turns_init(&s->turns, &secret);
	dispatch_init(&s->dispatch, &secret);
	flows_init(&s->flows, &secret);
	s->flows.by_time = ops->shared;
	list_init(&s->later);
	rc = open_engine(s, ops, conf, err);
	if (rc)
		(void)shard_release(s); /* what was first says more */
	return rc;
}

int
shard_start(struct shard *s, struct slu_err *err)
{
	char name[16]; /* shown by top -H, ps -L and debuggers */

	if (pthread_create(&s->thread, NULL, work, s))
		return slu_fail(err, SLU_EDOWN, "shard %u: no thread", s->index);
	s->started = true;
	(void)snprintf(name, sizeof name, "shard %u", s->index);
	pthread_setname_np(s->thread, name);
	return 0;
}

void
shard_join(struct shard *s)
{
	if (s->started)
		pthread_join(s->thread, NULL);
	s->started = false;
}

int
shard_release(struct shard *s)
{
	const int rc = s->engine ? s->engine->ops->close(s->engine) : 0;

	dispatch_release(&s->dispatch);
	flows_release(&s->flows);
	turns_release(&s->turns);
	inbox_release(&s->inbox);
	return rc;
}
