/*
 * sim_moving.c - the judge itself: what is posted, heard, and when all rests.
 */
#include "sim_moving.h"

#include "broker/move/follow.h"

/* ---- Posts and answers ---- */

static void
judge_posts(struct sim_world *w, struct sim_call *c)
{
	c->turn = ++w->turn;
	c->came = world_earliest(w);
	c->tight = c->limited = c->failing = false;
	c->shadow = c->op.verb == OP_GET && world_has_shadow(w, c->op.id);
	memset(c->early, 0, sizeof c->early);
	if (c->op.verb == OP_POLICY_SET)
		world_note_policy(w, c->queue, &c->op.policy);
	if (c->op.verb == OP_FORGET)
		world_note_policy(w, c->queue, &policy_default);
	world_expect_puts(w, c);
}

typedef void end_fn(struct sim_world *w, struct sim_call *c);

static end_fn *const ends[OP_VERBS] = {
	[OP_ENQUEUE] = judge_enqueue,
	[OP_CLAIM] = judge_claim,
	[OP_RETURN] = judge_return,
	[OP_ACK] = judge_settle,
	[OP_NACK] = judge_settle,
	[OP_EXTEND] = judge_settle,
	[OP_REDRIVE] = judge_manage,
	[OP_DELETE] = judge_manage,
	[OP_GET] = judge_get,
	[OP_PEEK] = judge_look,
	[OP_RESULT] = judge_result,
	[OP_STATS] = judge_look,
	[OP_PURGE] = judge_purge,
	[OP_PAUSE] = judge_policy,
	[OP_POLICY_GET] = judge_policy,
	[OP_POLICY_SET] = judge_policy,
	[OP_FORGET] = judge_forget,
	[OP_ACQUIRE] = moving_lock,
	[OP_KEEPALIVE] = moving_lock,
	[OP_RELEASE] = moving_lock,
	[OP_STATE_GET] = moving_lock,
	[OP_STATE_PUT] = moving_lock,
	[OP_STATE_REMOVE] = moving_lock,
	[OP_DESCRIBE] = moving_lock,
};

/* Answers after which nothing has happened. */
static bool
is_refusal(struct sim_world *w, const struct sim_call *c)
{
	const int rc = c->op.rc;

	if (rc == SLU_ECANCELED && !c->canceled)
		world_fail(w, "%u was canceled by nobody", c->serial);
	if (rc == SLU_EDOWN && !w->conf.lates && !world_is_down(w, c->queue)) /* LANE-14 */
		world_fail(w, "%u failed: %d, %s", c->serial, rc, c->op.err.text);
	if (rc == SLU_ECLOSED && !w->draining)
		world_fail(w, "%u: nobody has closed anything", c->serial);
	return rc == SLU_ECANCELED || rc == SLU_EDOWN || rc == SLU_ECLOSED || rc == SLU_EMOVED ||
	       rc == SLU_EBUSY;
}

static bool
judge_hears(struct sim_world *w, struct sim_call *c)
{
	w->turn++;
	w->sum.unknown += c->op.rc == SLU_EUNKNOWN;
	if (w->dying || c->op.rc == SLU_EUNKNOWN) {
		if (!w->dying && !op_is(c->op.verb, OP_CHANGES) && !world_is_down(w, c->queue))
			world_fail(w, "%u: nothing has failed, and its outcome is unknown", c->serial);
		world_doubt_call(w, c);
		return false;
	}
	if (is_refusal(w, c)) {
		/* A former shard may have granted it something, and failed. */
		if (c->op.verb == OP_CLAIM && (w->failing || w->disk->dead || w->patience))
			world_doubt_queue(w, c->queue, DOUBT_STATE);
		world_forget_puts(w, c);
		return false;
	}
	ends[c->op.verb](w, c);
	return true;
}

/* ---- Rounds ---- */

/* What one shard could not do may be the answer of another, much later. */
static void
judge_begins(struct sim_world *w)
{
	EACH(i, w->calls) {
		struct sim_call *c = &w->calls[i];

		c->tight |= w->tight;
		c->limited |= w->limited;
		c->failing |= w->failing;
	}
}

/* Claims and extends are synced within a second. */
static void
judge_ends(struct sim_world *w, unsigned shard)
{
	const slu_time mono = clock_mono(&w->clock.clock);

	world_see_hurt(w, shard);
	EACH_MSG(x, &w->model)
	{
		if (x->lane == shard && !w->shards[shard].hurt)
			model_settle_one(x, mono);
	}
}

/* Can anything of the queue be claimed, on whichever shard? A batch that is set aside may
 * hold it up. */
static bool
is_ready(struct sim_world *w, unsigned queue)
{
	bool ready = false;

	for (unsigned i = 0; i < w->n_shards; i++) {
		struct ledger *l = logengine_ledger(w->shards[i].engine);
		const uint32_t h = ledger_queue_find(l, world_space(queue), world_queue(queue));
		struct ledger_queue_view v;
		uint32_t msg, n;

		if (h == SLAB_NONE)
			continue;
		if (world_batch(w, i, queue))
			return false;
		ledger_queue_get(l, h, &v);
		if (v.policy->paused)
			return false;
		ready |= ledger_peek(l, h, &msg, 1, &n) == 0 && n > 0;
	}
	return ready;
}

/* Who waits where the queue lives is told when another shard has something, or asks there again
 * after a second; but on a full disk it may not be handed out. */
static void
check_starving(struct sim_world *w, struct sim_call *c, slu_time now)
{
	if (w->tight || !is_ready(w, c->queue))
		c->starved = 0;
	else if (!c->starved)
		c->starved = now;
	else if (c->starved + 2 * FOLLOW_SLICE < now)
		world_fail(w, "claim %u waits, and there is something", c->serial);
}

static void
judge_rests(struct sim_world *w)
{
	const slu_time now = clock_boot(&w->clock.clock);

	EACH(i, w->calls) {
		struct sim_call *c = &w->calls[i];

		if (c->state != CALL_POSTED || world_is_down(w, c->queue))
			continue;
		if (!c->rested)
			c->rested = now;
		if (c->ends < now && c->rested + FOLLOW_BUSY + SLU_SEC < now)
			world_fail(w, "%s %u waits for too long", op_verb_name(c->op.verb), c->serial);
		if (c->op.verb == OP_CLAIM && !c->canceled)
			check_starving(w, c, now);
	}
}

static bool
judge_adopts(struct sim_world *w)
{
	for (unsigned i = 0; i < w->n_shards; i++)
		for (unsigned k = 0; k < w->n_shards; k++) {
			const slu_time apart = w->shards[i].offset - w->shards[k].offset;

			w->skew = apart > w->skew ? apart : w->skew;
		}
	return world_look(w, true);
}

static void
judge_verifies(struct sim_world *w)
{
	for (unsigned i = 0; i < w->n_shards; i++)
		if (w->shards[i].failed)
			return;
	(void)world_look(w, false);
}

const struct judge judge_moving = {
	.posts = judge_posts,
	.hears = judge_hears,
	.begins = judge_begins,
	.ends = judge_ends,
	.rests = judge_rests,
	.adopts = judge_adopts,
	.verifies = judge_verifies,
};
