/*
 * lane_tenure.c - a lane whose shard several nodes own in turn (LANE-16).
 *
 *            TAKE, reopen                     GIVE, or the engine fails
 *      closed ──────────> owned: serves ops ──────────────────────────> closed
 */
#include "broker/lane_private.h"

#include "base/log.h"
#include "engine/formats.h"
#include "engine/tenure.h"

/* ---- Any thread ---- */

void
lane_order(struct lane *s, enum broker_order order)
{
	atomic_store(&s->order, order);
	mailbox_poke(&s->mailbox);
}

void
lane_set_owner(struct lane *s, const char *address, uint64_t epoch)
{
	if (s->engine->ops->away)
		s->engine->ops->away->set_owner(s->engine, epoch);
	pthread_mutex_lock(&s->mtx);
	s->owner = address;
	pthread_mutex_unlock(&s->mtx);
	atomic_store(&s->news, true);
	mailbox_poke(&s->mailbox);
}

void
lane_set_lapsed(struct lane *s, bool lapsed)
{
	atomic_store(&s->lapsed, lapsed);
	mailbox_poke(&s->mailbox);
}

const char *
lane_owner(struct lane *s)
{
	const char *owner;

	pthread_mutex_lock(&s->mtx);
	owner = s->owner;
	pthread_mutex_unlock(&s->mtx);
	return owner;
}

/* ---- The lane's thread ---- */

/* Ops fail with the address of the owner from now on. */
static void
note_owner(struct lane *s)
{
	const char *const owner = lane_owner(s);
	struct slu_err err = { 0 };

	if (owner)
		(void)slu_fail(&err, SLU_EMOVED, "shard %u is at %.180s", s->index, owner);
	else
		(void)slu_fail(&err, SLU_EMOVED, "shard %u: no node owns it now", s->index);
	err.owner = owner;
	lane_note_failure(s, SLU_EMOVED, &err);
}

void
lane_begin_tenure(struct lane *s)
{
	s->retry_at = SLU_NEVER;
	note_owner(s);
}

static void
take(struct lane *s)
{
	const struct engine_tenure *const t = s->conf.tenure;
	struct engine_found found = { 0 };
	struct slu_err err = { 0 };
	int rc;

	s->conf.wall = s->now;
	if (t->takes)
		t->takes(t->arg, s->conf.lane);
	rc = s->engine->ops->reopen(s->engine, &s->conf, &found, &err);
	if (rc) {
		log_warn(s->log, "shard not taken", F_U64("shard", s->index), F_STR("why", err.text));
		if (rc == SLU_EINVAL)
			lane_note_failure(s, rc, &err); /* the settings are wrong: a start that waits fails */
	} else if (t->taken(t->arg, s->conf.lane, found.epoch)) {
		s->owned = true;
		s->taken_above = found.highest_id;
		lane_serve_again(s, &found);
		return;
	}
	t->closed(t->arg, s->conf.lane, s->engine->ops->release(s->engine));
}

/* The engine has failed, or nothing runs in it. */
static void
give(struct lane *s)
{
	const struct engine_tenure *const t = s->conf.tenure;
	const struct engine_observer *const o = s->conf.observer;
	uint64_t epoch;

	s->owned = false;
	if (o)
		o->closed(o->arg, s->index);
	note_owner(s);
	lane_fail_queued(s);
	lane_end_waits(s);
	lane_forget_debts(s);
	epoch = s->engine->ops->release(s->engine);
	log_info(s->log, "shard given", F_U64("shard", s->index), F_U64("epoch", epoch));
	t->closed(t->arg, s->conf.lane, epoch);
}

static enum broker_order
next_order(struct lane *s)
{
	return (enum broker_order)atomic_exchange(&s->order, BROKER_STAY);
}

void
lane_obey(struct lane *s)
{
	if (s->open)
		return;
	if ((s->owned && s->failed) ||
	    (atomic_load(&s->order) == BROKER_GIVE && next_order(s) && s->owned))
		give(s);
	else if (atomic_load(&s->order) == BROKER_TAKE && next_order(s) && !s->owned && !s->closed)
		take(s);
	if (atomic_exchange(&s->news, false) && s->failed == SLU_EMOVED)
		note_owner(s);
}

bool
lane_lacks_format(const struct lane *s, const struct op *op, struct slu_err *err)
{
	const struct engine_tenure *const t = s->conf.tenure;
	const uint32_t format = formats_op(op);

	return format > FORMATS_FIRST && t->need_format && t->need_format(t->arg, format, err) != 0;
}

/* ---- Ops of other nodes' shards (LANE-18) ---- */

/* On its way to another node, the cursor of an op over all lanes names the lane, as in broker_post. */
static void
name_lane(const struct lane *s, struct op *op)
{
	if (op->route.spans)
		op->cursor |= (uint64_t)s->index << BROKER_CURSOR_BITS;
}

void
lane_drop_name(struct op *op)
{
	if (op->route.spans)
		op->cursor &= (1ull << BROKER_CURSOR_BITS) - 1;
}

bool
lane_sends(struct lane *s, struct op *op)
{
	const struct broker_remote *const r = s->remote;

	if (!r || s->failed != SLU_EMOVED || s->closed || op->route.sent == LANE_SENDS)
		return false;
	if (op->route.forwarded || op->route.local || op->here || op->home.epoch)
		return false;
	op->route.sent++;
	op->route.away = true;
	name_lane(s, op);
	if (r->send(r->arg, s->index, op)) {
		s->sent = true;
		return true;
	}
	op->route.away = false;
	lane_drop_name(op);
	return false;
}

void
lane_flush(struct lane *s)
{
	if (s->sent)
		s->remote->flush(s->remote->arg);
	s->sent = false;
}

void
lane_came_back(struct lane *s, struct op *op, bool again)
{
	op->route.again = again;
	op->route.mail = (struct op_mail){ .op = op, .back = true };
	mailbox_post_owed(&s->mailbox, &op->route.mail.node);
}

bool
lane_is_too_old(const struct lane *s, const struct op *op)
{
	const bool accepts = op->verb == OP_ENQUEUE || op->verb == OP_INTAKE || op_is_step(op);

	for (uint32_t i = 0; accepts && i < op->n_puts; i++)
		if (!op->puts[i].given && op->puts[i].m.id <= s->taken_above)
			return true;
	return false;
}
