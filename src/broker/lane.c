/*
 * lane.c - the thread of a lane: takes mail, runs rounds, answers.
 */
#include "broker/lane_private.h"

#include "base/log.h"
#include "broker/move/follow.h"
#include "broker/outbox.h"
#include "engine/quota.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>

/* ---- Answers (LANE-6) ---- */

/* Passes the answer to the maker, unless the op follows its queue to another lane. */
static void
hand_over(struct lane *s, struct op *op)
{
	s->held--;
	if (!follow_answered(s, op))
		op->done(op);
}

/* No other thread can cancel the op now. */
static void
answer_canceled(struct lane *s, struct op *op)
{
	op->route.stopped = false;
	atomic_store(&op->route.canceled, OP_CANCEL_DONE);
	hand_over(s, op);
}

void
lane_answer(struct lane *s, struct op *op)
{
	int none = OP_CANCEL_NONE;

	assert(op->route.waiter == SLAB_NONE);
	op->route.open = false;
	if (op->route.stopped)
		answer_canceled(s, op);
	else if (atomic_compare_exchange_strong(&op->route.canceled, &none, OP_CANCEL_DONE))
		hand_over(s, op);
	else
		op->route.ended = true; /* answered when its cancel arrives */
}

static void
answer_unwanted(struct lane *s, struct op *op)
{
	op_fail(op, SLU_ECANCELED, NULL);
	op->n_rows = 0;
	answer_canceled(s, op);
}

/* From now on a cancel of the op comes here. Returns false if the op was canceled on its way. */
static bool
arrives(struct op *op)
{
	int none = OP_CANCEL_NONE;

	atomic_store(&op->route.canceled, OP_CANCEL_NONE);
	return atomic_load(&op->route.unwanted) == OP_WANTED ||
	       !atomic_compare_exchange_strong(&op->route.canceled, &none, OP_CANCEL_DONE);
}

/* ---- Mail ---- */

/* The mail of the op came before, so the op is in the fair queue, waits, is open, or has ended. */
static void
take_cancel(struct lane *s, struct op *op)
{
	if (op->route.open || op->route.away) {
		op->route.stopped = true; /* LANE-12 */
		if (op->route.away)
			s->remote->cancel(s->remote->arg, op);
		return;
	}
	if (!op->route.ended) {
		if (op->route.waiter != SLAB_NONE)
			dispatch_leave(&s->dispatch, op);
		else if (op->route.later)
			list_remove(&op->route.mail.node);
		else
			fairqueue_remove(&s->fairqueue, op);
		op->route.later = 0;
		op_fail(op, SLU_ECANCELED, NULL);
		op->n_rows = 0;
	}
	answer_canceled(s, op);
}

/* The engine is closed. If another node has the shard, an op of this node alone that goes from lane to lane goes
 * on. */
static void
answer_down(struct lane *s, struct op *op)
{
	const bool goes_on = op->route.spans && op->route.local && s->failed == SLU_EMOVED;

	if (goes_on) {
		op->cursor = 0;
		op->n_queues = op->n_keys = 0;
		lane_span_cursor(s, op);
	}
	lane_end_wait(s, op, goes_on ? 0 : SLU_EDOWN);
}

static void
place_op(struct lane *s, struct op *op)
{
	struct slu_err err;

	no_err(&err);
	if (s->conf.tenure && lane_lacks_format(s, op, &err)) {
		lane_fail_op(s, op, (int)err.code, &err);
		return;
	}
	if (s->failed && lane_sends(s, op))
		return;
	if (s->failed)
		answer_down(s, op);
	else if (s->taken_above && lane_is_too_old(s, op))
		lane_fail_op(s, op, SLU_EMOVED, NULL);
	else if (op->route.later)
		lane_put_off(s, op, s->now + op->route.later);
	else if (fairqueue_add(&s->fairqueue, op))
		lane_end_wait(s, op, SLU_ENOMEM);
}

static void
take_op(struct lane *s, struct op *op)
{
	op->route.arrived += s->offset;
	if (op->route.arrived > s->now)
		op->route.arrived = s->now;
	s->held++;
	s->came++;
	lane_gather_on(s);
	lane_count(s, LANE_OPS, !outbox_is(op->space)); /* ops of the outbox are the lane's own */
	if (atomic_load(&op->route.canceled) == OP_CANCEL_AWAY && !arrives(op))
		answer_unwanted(s, op);
	else
		place_op(s, op);
}

/* LANE-18: the op comes from another node. */
static void
take_back(struct lane *s, struct op *op)
{
	op->route.away = false;
	if (op->route.again)
		lane_drop_name(op);
	if (!op->route.again && op->rc == SLU_ECANCELED && !op->route.stopped)
		lane_end_wait_away(s, op);
	else if (!op->route.again)
		lane_answer(s, op);
	else if (op->route.stopped)
		answer_unwanted(s, op);
	else
		place_op(s, op);
}

static void
take_mail(struct lane *s, struct list *mail)
{
	while (!list_is_empty(mail)) {
		struct op_mail *m = CONTAINER(mail->next, struct op_mail, node);

		list_remove(&m->node);
		if (m->cancel)
			take_cancel(s, m->op);
		else if (m->back)
			take_back(s, m->op);
		else
			take_op(s, m->op);
	}
	lane_flush(s);
}

/* ---- Ops that run later ---- */

static struct op *
first_later(const struct lane *s)
{
	if (list_is_empty(&s->later))
		return NULL;
	return CONTAINER(s->later.next, struct op, route.mail.node);
}

/* Runs ops whose time has come; all of them if the lane closes or has failed. */
static void
run_later(struct lane *s)
{
	struct op *op;

	while ((op = first_later(s)) != NULL && (op->route.later <= s->now || s->closed || s->failed)) {
		list_remove(&op->route.mail.node);
		op->route.later = 0;
		op->route.arrived = s->now;
		if (s->failed)
			lane_end_wait(s, op, op_is_begun(op) ? SLU_EUNKNOWN : SLU_EDOWN);
		else if (fairqueue_add(&s->fairqueue, op))
			lane_end_wait(s, op, op_is_begun(op) ? SLU_EUNKNOWN : SLU_ENOMEM);
	}
}

/* Inserts the op behind all that run at the same time or earlier. */
void
lane_put_off(struct lane *s, struct op *op, slu_time until)
{
	struct list *before = s->later.prev;

	while (before != &s->later && CONTAINER(before, struct op, route.mail.node)->route.later > until)
		before = before->prev;
	op->route.later = until;
	list_append(before->next, &op->route.mail.node);
}

void
lane_later(struct lane *s, struct op *op)
{
	s->held++;
	if (arrives(op))
		lane_put_off(s, op, s->now + LANE_LATER);
	else
		answer_unwanted(s, op);
}

/* ---- The thread ---- */

/* When something is to do, in shard time; 0: now. */
static slu_time
next_due(struct lane *s)
{
	slu_time until = dispatch_next(&s->dispatch), due;

	if (s->open)
		return lane_held_until(s);
	if (lane_gathers(s))
		return lane_gathers_until(s);
	if (fairqueue_first(&s->fairqueue))
		return 0;
	if (credits_next(&s->credits) < until)
		until = credits_next(&s->credits);
	if (s->failed)
		due = s->retry_at;
	else
		due = s->engine->ops->next_due(s->engine);
	return due < until ? due : until;
}

/* Until when the thread may sleep, by clock_boot. */
static slu_time
sleep_until(struct lane *s)
{
	const struct op *const later = first_later(s);
	slu_time until = next_due(s);

	if (later && later->route.later < until)
		until = later->route.later;
	if (outbox_next(s->outbox) < until)
		until = outbox_next(s->outbox);
	return until == SLU_NEVER || until == 0 ? until : until - s->offset;
}

/* Publishes how many ops wait: in the totals, and in the sum of all lanes. */
static void
tell_waiting(struct lane *s)
{
	const uint32_t n = dispatch_count(&s->dispatch);

	atomic_store_explicit(&s->totals[LANE_WAITING], n, memory_order_relaxed);
	if (s->quota && n != s->told)
		atomic_fetch_add_explicit(&s->quota->waits, n - s->told, memory_order_relaxed);
	s->told = n;
}

slu_time
lane_sleeps(struct lane *s)
{
	return mailbox_has_news(&s->mailbox) ? 0 : sleep_until(s);
}

/* The first part of a round, which needs no engine: sleeps, then takes what has come. */
static void
take_news(struct lane *s, slu_time until)
{
	struct list mail;
	slu_time now;

	list_init(&mail);
	now = mailbox_take(&s->mailbox, until, lane_enough(s), &mail, &s->closed) + s->offset;
	s->brisk = !list_is_empty(&mail);
	if (s->brisk && s->failed) /* LANE-9: there are no batches */
		s->crowded = mail.next != mail.prev;
	s->now = now > s->now ? now : s->now;
	take_mail(s, &mail);
	run_later(s);
	lane_end_waits(s);
}

/* The last part, which needs no engine: ends what is over. */
static void
end_round(struct lane *s)
{
	lane_end_waits(s);
	lane_expire_waits(s);
	lane_end_held(s);
	outbox_let_go(s->outbox, s->now, s->closed || s->failed || s->draining);
	tell_waiting(s);
}

bool
lane_round(struct lane *s)
{
	const slu_time began = clock_mono(s->clock);

	take_news(s, sleep_until(s));
	s->brisk = s->brisk && clock_mono(s->clock) < began + LANE_LINGER;
	if (s->conf.tenure)
		lane_obey(s);
	if (s->failed)
		lane_reopen_engine(s);
	if (!s->failed)
		lane_run(s);
	end_round(s);
	return !s->closed || s->held > 0 || (s->open && !s->doubted);
}

/* LANE-13 */
void
lane_attend(struct lane *s)
{
	pthread_mutex_lock(&s->turn);
	if (atomic_load(&s->committing)) {
		take_news(s, 0);
		end_round(s);
	}
	pthread_mutex_unlock(&s->turn);
}

/* LANE-9 */
static void
linger(struct lane *s)
{
	const slu_time end = clock_mono(s->clock) + LANE_LINGER;

	while (!mailbox_has_news(&s->mailbox) && clock_mono(s->clock) < end)
		sched_yield();
}

/* If the last batch had several ops, their makers probably ask again: a yield makes the next batch
 * larger, and more ops share its sync. */
static void *
work(void *arg)
{
	struct lane *s = arg;

	while (lane_round(s))
		if (s->crowded)
			sched_yield();
		else if (s->brisk)
			linger(s);
	return NULL;
}

/* ---- For other threads ---- */

static void
address(struct lane *s, struct op *op, enum op_cancel state)
{
	op->route.lane = s->index;
	op->route.waiter = SLAB_NONE;
	op->route.stalled = false;
	op->route.open = false;
	op->route.stopped = false;
	op->route.ended = false;
	op->route.waited = false;
	op->route.away = op->route.again = false;
	op->route.sent = 0;
	atomic_store(&op->route.canceled, state);
	op->route.mail = (struct op_mail){ .op = op };
	op->route.stop = (struct op_mail){ .op = op, .cancel = true };
}

static int
post(struct lane *s, struct op *op, enum op_cancel state)
{
	address(s, op, state);
	return mailbox_post(&s->mailbox, &op->route.mail.node, &op->route.arrived);
}

int
lane_post(struct lane *s, struct op *op)
{
	atomic_store(&op->route.unwanted, OP_WANTED);
	return post(s, op, OP_CANCEL_NONE);
}

int
lane_forward(struct lane *s, struct op *op)
{
	return post(s, op, OP_CANCEL_AWAY);
}

int
lane_adopt(struct lane *s, struct op *op)
{
	address(s, op, OP_CANCEL_NONE);
	op->route.arrived = s->now;
	if (fairqueue_add(&s->fairqueue, op))
		return SLU_ENOMEM;
	s->held++;
	return 0;
}

void
lane_stop(struct lane *s, struct op *op)
{
	mailbox_post_owed(&s->mailbox, &op->route.stop.node);
}

void
lane_cancel(struct lane *s, struct op *op)
{
	if (op_unwant(op, OP_CANCELED))
		lane_stop(s, op);
}

void
lane_drain(struct lane *s)
{
	s->draining = true;
	mailbox_poke(&s->mailbox);
}

void
lane_hurry(struct lane *s)
{
	s->hurried = true;
	lane_drain(s);
}

void
lane_close(struct lane *s)
{
	mailbox_close(&s->mailbox);
}

/* ---- Open and close ---- */

int
lane_open(struct lane *s, const struct engine_ops *ops, const struct engine_conf *conf,
	  struct clock *clock, uint32_t index, const _Atomic uint32_t *lanes,
	  struct slu_err *err)
{
	struct hash_key secret;
	int rc;

	*s = (struct lane){
		.index = index,
		.lanes = lanes,
		.clock = clock,
		.log = conf->log,
		.quota = conf->quota,
		.meter = conf->meter,
	};
	rc = hash_key_init(&secret, err);
	if (!rc)
		rc = mailbox_init(&s->mailbox, clock, err);
	if (rc)
		return rc;
	pthread_mutex_init(&s->mtx, NULL); /* cannot fail with these attributes */
	pthread_mutex_init(&s->turn, NULL);
	fairqueue_init(&s->fairqueue, &secret);
	dispatch_init(&s->dispatch, &secret);
	credits_init(&s->credits, &secret);
	s->credits.by_time = ops->shared;
	list_init(&s->later);
	rc = lane_open_engine(s, ops, conf, err);
	if (rc)
		(void)lane_release(s); /* the first error says more */
	return rc;
}

int
lane_start(struct lane *s, struct slu_err *err)
{
	char name[16]; /* shown by top -H, ps -L and debuggers */

	if (pthread_create(&s->thread, NULL, work, s))
		return slu_fail(err, SLU_EDOWN, "shard %u: cannot start a thread", s->index);
	s->started = true;
	(void)snprintf(name, sizeof name, "shard %u", s->index);
	pthread_setname_np(s->thread, name);
	return 0;
}

void
lane_join(struct lane *s)
{
	if (s->started)
		pthread_join(s->thread, NULL);
	s->started = false;
}

int
lane_release(struct lane *s)
{
	const int rc = lane_close_engine(s);

	lane_forget_debts(s);
	dispatch_release(&s->dispatch);
	credits_release(&s->credits);
	fairqueue_release(&s->fairqueue);
	mailbox_release(&s->mailbox);
	pthread_mutex_destroy(&s->turn);
	pthread_mutex_destroy(&s->mtx);
	return rc;
}
