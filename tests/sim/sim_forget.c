/*
 * sim_forget.c - queues that are deleted, or forgotten because they are unused.
 *
 * A deleted queue has nothing: no message, policy, remembered key or result. One that is
 * forgotten by itself had nothing before, so all that can be seen of it is that it is not
 * there: world_may_lack.
 */
#include "sim_moving.h"

bool
world_make_forget(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	world_start(w, c, OP_FORGET, queue);
	c->op.force = world_chance(w, 40);
	return true;
}

static unsigned
messages(const struct sim_world *w, unsigned queue)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->model.n; i++)
		n += w->model.msgs[i].queue == queue;
	return n;
}

/* Is it unknown of some whether they are there? */
static bool
is_unsure(const struct sim_world *w, unsigned queue)
{
	bool unsure = false;

	for (unsigned i = 0; i < w->model.n; i++) {
		const struct sim_msg *x = &w->model.msgs[i];

		unsure |= x->queue == queue && (x->fading || x->vague);
	}
	return unsure;
}

bool
world_may_lack(const struct sim_world *w, unsigned queue)
{
	const struct model_queue *q = &w->model.queues[queue];

	return !q->known || (w->idle && !messages(w, queue));
}

/* All of them, or (some) those that are not there: a full disk stopped it, and which went
 * first is for the ledger to say. */
static void
drop_messages(struct sim_world *w, unsigned queue, slu_time now, bool some)
{
	const struct ledger *l = logengine_ledger(world_shard(w, queue)->engine);
	struct sim_model *m = &w->model;

	for (unsigned i = 0; i < m->n;)
		if (m->msgs[i].queue == queue &&
		    (!some || ledger_find_any(l, m->msgs[i].id) == SLAB_NONE))
			model_remove(m, &m->msgs[i], now, now);
		else
			i++;
}

/* It is gone, or (sure: false) may be: what it had beside messages. */
static void
drop_rest(struct sim_world *w, unsigned queue, bool sure)
{
	struct sim_model *m = &w->model;

	EACH(k, m->idems[queue])
		if (sure)
			m->idems[queue][k] = (struct sim_idem){ 0 };
		else
			m->idems[queue][k].doubt |= m->idems[queue][k].id != 0;
	for (unsigned i = 0; i < m->n_results;) {
		struct sim_kept *r = &m->results[i];

		if (r->queue == queue && sure) {
			*r = m->results[--m->n_results];
			continue;
		}
		r->doubt |= r->queue == queue;
		i++;
	}
}

void
world_doubt_forget(struct sim_world *w, const struct sim_call *c)
{
	struct model_queue *q = &w->model.queues[c->queue];

	q->doubt |= w->conf.moves;
	q->blank = true;
	q->known = false;
	drop_rest(w, c->queue, false);
	EACH_MSG(x, &w->model)
	if (x->queue == c->queue) {
		x->doubt |= DOUBT_OUT;
		x->ender = UINT32_MAX;
	}
}

/* Of a queue that is emptied, idempotency keys are known until its memory is freed. */
static void
end_cleared(struct sim_world *w, struct sim_call *c, slu_time now)
{
	const bool some = c->op.cursor && c->op.count < messages(w, c->queue) &&
			  (w->tight || w->failing || w->disk->dead);

	if (!some && c->op.count != messages(w, c->queue) && !is_unsure(w, c->queue))
		world_fail(w, "I9: %" PRIu64 " went with queue %u, not %u", c->op.count, c->queue,
			   messages(w, c->queue));
	drop_messages(w, c->queue, now, some);
	drop_rest(w, c->queue, false);
	w->sum.forgotten += c->op.cursor == 0;
}

void
world_end_forget(struct sim_world *w, struct sim_call *c, slu_time now)
{
	struct model_queue *q = &w->model.queues[c->queue];
	const int rc = c->op.rc;

	if ((rc == SLU_ENOTFOUND && world_may_lack(w, c->queue)) ||
	    (rc == SLU_ENOTEMPTY && messages(w, c->queue) && !c->op.force))
		return;
	if (rc == SLU_EFULL && (w->failing || w->tight || w->disk->dead))
		return;
	if (rc)
		world_fail(w, "queue %u was not deleted: %d, %s", c->queue, rc, c->op.err.text);
	if (!c->op.force && messages(w, c->queue) && !is_unsure(w, c->queue))
		world_fail(w, "I1: queue %u was deleted with %u messages", c->queue,
			   messages(w, c->queue));
	world_shard(w, c->queue)->synced = true;
	if (c->op.force)
		world_shard(w, c->queue)->purged = true;
	end_cleared(w, c, now);
	if (c->op.cursor)
		return;
	drop_rest(w, c->queue, true);
	q->policy = policy_default;
	q->known = false;
}

/* When it was is not known: only that it may have been. */
void
judge_forget(struct sim_world *w, struct sim_call *c)
{
	const int rc = c->op.rc;

	if (rc == SLU_ECONFLICT || rc == SLU_ENOTFOUND || rc == SLU_ENOTEMPTY)
		return;
	if (rc && !world_cannot(w, c, rc))
		world_fail(w, "queue %u was not deleted: %d, %s", c->queue, rc, c->op.err.text);
	if (rc)
		return;
	world_doubt_forget(w, c);
	w->sum.forgotten += c->op.cursor == 0;
}
