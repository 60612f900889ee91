/*
 * sim_answer.c - the answers of ops, in the order in which they were run: each is what
 * the model says, and the model does the same.
 */
#include "sim_world.h"

bool
world_is_hindered(struct sim_world *w, const struct sim_call *c, int rc)
{
	if (rc == SLU_EFULL)
		return w->failing || w->tight || w->disk->dead;
	return rc == SLU_EDOWN && world_is_down(w, c->queue);
}

/* ---- Enqueue ---- */

/* Must the key be known (1), must it not (0), or may both be (-1)? */
static int
is_known(const struct sim_idem *i, slu_time now)
{
	if (i->doubt)
		return -1;
	if (i->id == 0)
		return 0;
	if (i->live || now < i->must)
		return 1;
	return now < i->may ? -1 : 0;
}

static struct sim_msg *
accept(struct sim_world *w, struct sim_call *c, unsigned i, slu_time now)
{
	const struct put_facts *f = &c->facts[i];
	const struct op_put *put = &c->puts[i];
	const struct policy *p = &w->model.queues[c->queue].policy;
	const slu_time ttl = put->ttl ? put->ttl : p->ttl;
	struct sim_msg *x = model_add(&w->model);

	if (!x)
		world_fail(w, "the model is full");
	x->id = put->m.id;
	x->number = put->m.number;
	x->queue = c->queue;
	x->key = f->key;
	x->idem = f->idem;
	x->prio = put->m.prio;
	x->due = now + put->delay;
	x->expires = ttl ? now + ttl : SLU_NEVER;
	x->max_attempts = put->m.max_attempts;
	x->keep = (f->keep + SLU_SEC - 1) / SLU_SEC * SLU_SEC;
	x->size = f->size;
	if (f->idem >= 0)
		w->model.idems[c->queue][f->idem] = (struct sim_idem){ .id = x->id,
								       .live = true };
	return x;
}

/* LEDGER-4: something of the queue is due, but has not been moved. */
static bool
is_behind(struct sim_model *m, unsigned queue, slu_time now)
{
	EACH_MSG(x, m)
	if (x->queue == queue && x->state == M_WAIT && x->delayed && x->due <= now)
		return true;
	return false;
}

void
world_see_number(struct sim_world *w, unsigned queue, uint64_t number, const char *what)
{
	uint64_t *top = &w->model.top[w->model.queues[queue].shard];

	if (number <= *top)
		world_fail(w, "I4: %s %" PRIu64 " after %" PRIu64, what, number, *top);
	*top = number;
}

static void
end_put(struct sim_world *w, struct sim_call *c, unsigned i, slu_time now)
{
	const struct put_facts *f = &c->facts[i];
	const struct op_put *put = &c->puts[i];
	const struct policy *p = &w->model.queues[c->queue].policy;
	const struct sim_idem *idem = f->idem < 0 ? NULL
						  : &w->model.idems[c->queue][f->idem];
	const int known = idem ? is_known(idem, now) : 0;
	const bool behind = is_behind(&w->model, c->queue, now);
	struct sim_msg *x;

	if (known >= 0 && known != put->existed)
		world_fail(w, "I2: idempotency key %d of queue %u is %sknown", f->idem,
			   c->queue, put->existed ? "" : "not ");
	if (put->existed) {
		if (!idem->doubt && idem->id != put->m.id)
			world_fail(w, "I2: %" PRIu64 " instead of %" PRIu64, put->m.id,
				   idem->id);
		return;
	}
	if (f->too_big)
		world_fail(w, "no segment can hold %" PRIu64, put->m.id);
	if (p->max_depth && model_depth(&w->model, c->queue) >= p->max_depth)
		world_fail(w, "queue %u is deeper than it may", c->queue);
	if (model_find(&w->model, put->m.id) || model_is_gone(&w->model, put->m.id))
		world_fail(w, "id %" PRIu64 " for the second time", put->m.id);
	world_see_number(w, c->queue, put->m.number, "number");
	x = accept(w, c, i, now);
	x->delayed = x->due > now || (x->key >= 0 && behind);
	if (put->m.due != x->due)
		world_fail(w, "%" PRIu64 " is due at another time", x->id);
	w->want.accepted++;
	world_shard(w, c->queue)->synced = true;
}

/* It was refused: was it right to? */
static void
check_refused(struct sim_world *w, struct sim_call *c)
{
	const struct policy *p = &w->model.queues[c->queue].policy;
	bool too_big = false;

	for (unsigned i = 0; i < c->op.n_puts; i++)
		too_big |= c->facts[i].too_big;
	if ((c->op.rc == SLU_ETOOBIG && too_big) || (c->op.rc == SLU_EFULL && (w->limited || world_is_down(w, c->queue))))
		return;
	if (c->op.rc == SLU_EQFULL && p->max_depth &&
	    model_depth(&w->model, c->queue) + c->op.n_puts > p->max_depth)
		return;
	world_fail(w, "an enqueue was refused: %d, %s", c->op.rc, c->op.err.text);
}

void
world_end_enqueue(struct sim_world *w, struct sim_call *c, slu_time now)
{
	if (c->op.rc) {
		check_refused(w, c);
		return;
	}
	w->model.queues[c->queue].known = true;
	for (unsigned i = 0; i < c->op.n_puts; i++)
		end_put(w, c, i, now);
}

/* ---- Claim ---- */

static enum dead_reason
is_over(struct sim_world *w, const struct sim_msg *x, slu_time now)
{
	if (x->expires <= now)
		return DEAD_EXPIRED;
	return x->failures >= model_max_attempts(&w->model, x) ? DEAD_MAX_ATTEMPTS : DEAD_NOT;
}

/* What the next one must be: the dead among them die. */
static struct sim_msg *
next_to_claim(struct sim_world *w, unsigned queue, slu_time now)
{
	struct sim_model *m = &w->model;
	struct sim_msg *x;

	if (m->queues[queue].policy.paused)
		return NULL;
	while ((x = model_best(m, queue)) != NULL) {
		if (!is_over(w, x, now))
			return x;
		x->vague = is_over(w, x, now) == DEAD_MAX_ATTEMPTS;
		model_die(m, x, is_over(w, x, now), now);
		world_shard(w, queue)->synced = true;
	}
	return NULL;
}

static bool
is_waiting(const struct sim_call *c)
{
	return c->state == CALL_POSTED && c->op.verb == OP_CLAIM && c->op.route.waiter != SLAB_NONE;
}

/* Claims that wait run first; what they find to be over is dead. Once a round. */
static void
bury(struct sim_world *w, unsigned shard)
{
	if (w->shards[shard].buried)
		return;
	w->shards[shard].buried = true;
	EACH(i, w->calls) {
		const struct sim_call *c = &w->calls[i];

		if (is_waiting(c) && w->runs[c->queue] &&
		    w->model.queues[c->queue].shard == shard)
			(void)next_to_claim(w, c->queue, world_now(w, c->queue));
	}
}

/* Say what is wrong with having been handed this one. */
static void
explain(struct sim_world *w, const struct op_row *row, const struct sim_msg *want)
{
	const struct sim_msg *x = model_find(&w->model, row->id);
	static const char *const states[] = { "none", "ready", "delayed", "leased", "held",
					      "dead" };

	if (!x)
		world_fail(w, "I3: %" PRIu64 " was handed out and is %s", row->id,
			   model_is_gone(&w->model, row->id) ? "gone" : "not known");
	world_fail(w, "I4, I6, I7: %" PRIu64 ", %s, was handed out instead of %" PRIu64,
		   row->id, states[model_state(&w->model, x)], want ? want->id : 0);
}

static void
grant(struct sim_world *w, struct sim_call *c, const struct op_row *row, slu_time now)
{
	struct sim_msg *x = next_to_claim(w, c->queue, now);
	const slu_time lease = c->op.claim.lease ? c->op.claim.lease
						 : w->model.queues[c->queue].policy.lease;

	if (!x || x->id != row->id)
		explain(w, row, x);
	world_see_number(w, c->queue, row->token, "token");
	x->attempts++;
	x->state = M_LEASED;
	x->holds = true;
	x->token = row->token;
	x->until = now + lease;
	x->doubt |= DOUBT_FRESH;
	world_check_row(w, row, x);
	world_check_record(w, c->op.engine, row, x);
	if (c->op.claim.stateful)
		world_check_state(w, row, x);
	if (w->n_leases < WORLD_LEASES)
		w->leases[w->n_leases++] = (struct sim_lease){ x->id, x->token, c->queue };
	w->sum.claims++;
	w->want.delivered++;
	world_note(w, "granted", row->id, row->token, (uint64_t)row->until);
}

/* DISPATCH-1: the op that came first and may wait is served first. */
static void
check_line(struct sim_world *w, const struct sim_call *c)
{
	EACH(i, w->calls) {
		const struct sim_call *other = &w->calls[i];

		if (other->state == CALL_POSTED && other->op.verb == OP_CLAIM &&
		    !other->canceled && other->queue == c->queue && other->op.wait > 0 &&
		    other->serial < c->serial && c->op.wait > 0)
			world_fail(w, "claim %u was served before %u", c->serial,
				   other->serial);
	}
}

static void
end_claim(struct sim_world *w, struct sim_call *c, slu_time now)
{
	struct sim_msg *x;

	if (world_is_hindered(w, c, c->op.rc))
		return;
	if (c->op.rc)
		world_fail(w, "W4: a claim was refused: %d, %s", c->op.rc, c->op.err.text);
	if (c->op.n_rows)
		check_line(w, c);
	else if (c->op.wait && !w->draining) /* its time is over, and all that was due is done */
		model_tick(&w->model, w->model.queues[c->queue].shard, now, now);
	for (unsigned i = 0; i < c->op.n_rows; i++)
		grant(w, c, &c->op.rows[i], now);
	if (c->op.n_rows == c->op.max_rows)
		return;
	x = next_to_claim(w, c->queue, now);
	if (x && !w->tight && !w->failing && !(c->op.claim.max_bytes && c->op.n_rows))
		world_fail(w, "I1: %" PRIu64 " is ready, and claim %u ended without it", x->id,
			   c->serial);
}

/* ---- Settle ---- */

/* A message that was spared is not once more, before it is settled or extended. */
static void
end_spare(struct sim_world *w, struct sim_msg *x)
{
	if (x->spared == w->sum.opens)
		world_fail(w, "L7: %" PRIu64 " was spared twice", x->id);
	x->spared = w->sum.opens;
}

static void
end_return(struct sim_world *w, struct sim_call *c, slu_time now)
{
	(void)now;
	for (unsigned i = 0; i < c->op.n_rows; i++) {
		const struct op_row *row = &c->op.rows[i];
		struct sim_msg *x;
		const int rc = model_right(&w->model, c->queue, row->id, row->token,
					   c->op.route.arrived, &x);

		const bool spare = c->op.claim.spare && i == 0;

		if ((w->tight || w->failing || spare) && row->state != MSG_READY)
			continue; /* its lease will run out */
		if ((rc == 0) != (row->state == MSG_READY))
			world_fail(w, "I5: %" PRIu64 " did %sgo back", row->id,
				   rc ? "" : "not ");
		if (rc)
			continue;
		if (spare)
			end_spare(w, x);
		x->state = M_WAIT;
		x->attempts--;
		x->doubt |= DOUBT_FRESH;
		w->want.returned++;
	}
}

void
world_ack_one(struct sim_world *w, struct sim_call *c, const struct op_item *it, struct sim_msg *x,
	      slu_time now)
{
	if (x->keep)
		model_add_result(&w->model, &(struct sim_kept){
						    .id = x->id,
						    .queue = c->queue,
						    .text = it->text.n > 0,
						    .from = c->op.route.arrived + x->keep,
						    .until = now + x->keep,
					    });
	model_remove(&w->model, x, c->op.route.arrived, now);
	w->sum.settled++;
	w->want.acked++;
}

/* From c.at of the change, which is between the two, to the end. */
static void
check_moment(struct sim_world *w, const struct sim_call *c, const struct op_item *it,
	     slu_time least, slu_time most, slu_time now)
{
	if (it->until < c->op.route.arrived + least || it->until > now + most)
		world_fail(w, "%s of %" PRIu64 " until %" PRId64 ", not %" PRId64 " to %" PRId64,
			   op_verb_name(c->op.verb), it->id, it->until,
			   c->op.route.arrived + least, now + most);
}

static void
check_delay(struct sim_world *w, const struct sim_call *c, const struct op_item *it,
	    const struct sim_msg *x, slu_time now)
{
	const struct slu_backoff *b = &w->model.queues[x->queue].policy.retry;
	slu_time delay = b->base;

	if (it->time >= 0) {
		check_moment(w, c, it, it->time, it->time, now);
		return;
	}
	for (unsigned i = 0; i < x->failures && delay < b->max; i++)
		delay *= 2;
	delay = it->defer ? 0 : delay < b->max ? delay
					       : b->max;
	check_moment(w, c, it, b->jitter == SLU_JITTER_FULL ? 0 : delay, delay, now);
}

static void
nack_one(struct sim_world *w, struct sim_call *c, const struct op_item *it, struct sim_msg *x,
	 slu_time now)
{
	const bool failed = it->dead || !it->defer;
	const bool dies = it->dead ||
			  (failed && x->failures + 1 >= model_max_attempts(&w->model, x));

	if (dies != it->died)
		world_fail(w, "%" PRIu64 " is %sdead after %u failures", x->id,
			   dies ? "not " : "", x->failures + 1);
	if (!dies)
		check_delay(w, c, it, x, now);
	x->failures += failed;
	x->spared = 0;
	x->error = x->error || it->text.n;
	if (x->staged && x->staged_by == x->token)
		x->etag = x->staged;
	w->want.nacked++;
	if (dies) {
		model_die(&w->model, x, it->dead ? DEAD_REJECTED : DEAD_MAX_ATTEMPTS, now);
		return;
	}
	x->state = M_WAIT;
	x->due = it->until;
	x->delayed = x->due > now;
}

static void
extend_one(struct sim_world *w, struct sim_call *c, const struct op_item *it, struct sim_msg *x,
	   slu_time now)
{
	const slu_time lease = it->time ? it->time
					: w->model.queues[x->queue].policy.lease;

	check_moment(w, c, it, lease, lease, now);
	x->until = it->until;
	x->spared = 0;
	x->doubt |= DOUBT_FRESH;
	if (w->n_leases < WORLD_LEASES)
		w->leases[w->n_leases++] = (struct sim_lease){ x->id, x->token, x->queue };
}

void
world_check_item(struct sim_world *w, const struct sim_call *c, const struct op_item *it,
		 const struct sim_msg *x, int want)
{
	if (it->rc == want)
		return;
	if (want && x && x->fading && (it->rc == SLU_ENOTFOUND || it->rc == SLU_ELEASE))
		return;
	world_fail(w, "%s: %s of %" PRIu64 " with token %" PRIu64 ": %d instead of %d",
		   it->rc == SLU_EFULL ? "W4" : "I5", op_verb_name(c->op.verb), it->id,
		   it->token, it->rc, want);
}

static void
end_settle(struct sim_world *w, struct sim_call *c, slu_time now)
{
	for (unsigned i = 0; i < c->op.n_items; i++) {
		const struct op_item *it = &c->items[i];
		struct sim_msg *x;
		const int want = model_right(&w->model, c->queue, it->id, it->token,
					     c->op.route.arrived, &x);

		if (world_is_hindered(w, c, it->rc))
			continue;
		world_check_item(w, c, it, x, want);
		if (want)
			continue;
		world_note(w, "settled", it->id, it->token, (uint64_t)it->until);
		if (c->op.verb == OP_ACK)
			world_ack_one(w, c, it, x, now);
		else if (c->op.verb == OP_NACK)
			nack_one(w, c, it, x, now);
		else
			extend_one(w, c, it, x, now);
		world_shard(w, c->queue)->synced |= c->op.verb != OP_EXTEND;
	}
}

/* ---- Operators ---- */

static void
redrive_one(struct sim_world *w, struct sim_call *c, const struct op_item *it, struct sim_msg *x,
	    slu_time now)
{
	const bool behind = is_behind(&w->model, x->queue, now);

	check_moment(w, c, it, 0, 0, now);
	x->state = M_WAIT;
	x->due = now;
	x->number = ++w->model.top[w->model.queues[x->queue].shard]; /* or some more */
	x->redriven = true;
	x->failures = 0;
	x->reason = DEAD_NOT;
	x->delayed = x->key >= 0 && behind;
}

/* It was dead, or gone, or neither: the answer tells. */
static void
end_fading(struct sim_world *w, struct sim_call *c, const struct op_item *it, struct sim_msg *x,
	   slu_time now)
{
	if (it->rc == SLU_ENOTFOUND && x->state == M_DEAD) {
		model_remove(&w->model, x, 0, now);
	} else if (it->rc == 0 && c->op.verb == OP_REDRIVE) {
		if (x->state != M_DEAD)
			model_die(&w->model, x, DEAD_EXPIRED, now);
		redrive_one(w, c, it, x, now);
	} else if (it->rc == 0) {
		model_remove(&w->model, x, now, now);
		w->want.deleted++;
	} else if (it->rc != SLU_ENOTFOUND || c->op.verb != OP_REDRIVE) {
		world_check_item(w, c, it, NULL, 0);
	}
}

static void
end_manage(struct sim_world *w, struct sim_call *c, slu_time now)
{
	const struct op_item *it = &c->items[0];
	struct sim_msg *x = model_find(&w->model, it->id);
	int want = 0;

	if (!x || x->queue != c->queue)
		want = SLU_ENOTFOUND;
	else if (c->op.verb == OP_REDRIVE && x->state != M_DEAD)
		want = SLU_ENOTFOUND;
	else if (c->op.verb == OP_DELETE && x->state == M_LEASED)
		want = SLU_ELEASE;
	if (world_is_hindered(w, c, it->rc))
		return;
	if (x && x->fading && x->queue == c->queue) {
		end_fading(w, c, it, x, now);
		return;
	}
	world_check_item(w, c, it, x, want);
	if (want)
		return;
	world_shard(w, c->queue)->synced = true;
	if (c->op.verb == OP_REDRIVE) {
		redrive_one(w, c, it, x, now);
		return;
	}
	model_remove(&w->model, x, now, now);
	w->want.deleted++;
}

static void
end_purge(struct sim_world *w, struct sim_call *c, slu_time now)
{
	struct sim_model *m = &w->model;
	uint64_t n = 0;

	if (c->op.rc == SLU_EBUSY && world_shard(w, c->queue)->purged)
		return;
	if (world_is_hindered(w, c, c->op.rc))
		return;
	if (c->op.rc)
		world_fail(w, "W4: a purge was refused: %d, %s", c->op.rc, c->op.err.text);
	for (unsigned i = 0; i < m->n;) {
		struct sim_msg *x = &m->msgs[i];

		if (x->queue == c->queue && x->state == M_WAIT) {
			model_remove(m, x, now, now);
			n++;
		} else {
			i++;
		}
	}
	if (n != c->op.count)
		world_fail(w, "I9: %" PRIu64 " were purged, not %" PRIu64, c->op.count, n);
	world_shard(w, c->queue)->purged = true;
	world_shard(w, c->queue)->synced |= n > 0;
}

static void
end_policy(struct sim_world *w, struct sim_call *c, slu_time now)
{
	struct model_queue *q = &w->model.queues[c->queue];

	(void)now;
	if (c->op.rc == SLU_ENOTFOUND && c->op.verb == OP_PAUSE && world_may_lack(w, c->queue))
		return;
	if (world_is_hindered(w, c, c->op.rc))
		return;
	if (c->op.rc)
		world_fail(w, "%s was refused: %d, %s", op_verb_name(c->op.verb), c->op.rc,
			   c->op.err.text);
	if (c->op.verb == OP_PAUSE)
		q->policy.paused = c->op.policy.paused;
	else if (c->op.verb == OP_POLICY_SET)
		q->policy = c->op.policy;
	if (!model_same_policy(&q->policy, &c->op.policy))
		world_fail(w, "queue %u has another policy", c->queue);
	q->known |= c->op.verb != OP_POLICY_GET;
}

/* ---- Looking ---- */

static void
end_get(struct sim_world *w, struct sim_call *c, slu_time now)
{
	const struct sim_msg *x = model_find(&w->model, c->op.id);
	const int want = x && x->queue == c->queue ? 0 : SLU_ENOTFOUND;

	(void)now;
	if (x && x->fading)
		return;
	if (c->op.rc != want)
		world_fail(w, "get of %" PRIu64 ": %d instead of %d", c->op.id, c->op.rc, want);
	if (want)
		return;
	world_check_row(w, &c->rows[0], x);
	world_check_record(w, c->op.engine, &c->rows[0], x);
}

/* Put aside, so that the next one is found: it leads its key all the same, unless it may
 * be dead. */
static void
put_aside(struct sim_msg *x, bool dead)
{
	if (dead)
		x->state = M_DEAD;
	else
		x->delayed = x->holds = true;
}

/* Some claim found one that was over, and perhaps had no room to say that it is dead. */
static bool
is_vague(struct sim_world *w, unsigned queue)
{
	bool vague = false;

	EACH_MSG(x, &w->model)
	vague |= x->queue == queue && x->vague;
	return vague && w->tight;
}

static void
end_peek(struct sim_world *w, struct sim_call *c, slu_time now)
{
	struct sim_msg *x, *seen[MODEL_MSGS], were[MODEL_MSGS];
	unsigned n = 0, aside = 0;

	if (c->op.rc)
		world_fail(w, "a peek was refused: %d, %s", c->op.rc, c->op.err.text);
	if ((c->op.wait && c->op.n_rows == 0) || is_vague(w, c->queue))
		return;
	while (n < c->op.max_rows && (x = model_best(&w->model, c->queue)) != NULL) {
		const bool shown = n < c->op.n_rows && c->rows[n].id == x->id;

		if (!shown && !(c->op.wait && is_over(w, x, now))) /* a claim may have found it */
			world_fail(w, "I1: a peek does not show %" PRIu64, x->id);
		n += shown;
		seen[aside] = x;
		were[aside++] = *x;
		put_aside(x, !shown);
	}
	if (n != c->op.n_rows)
		world_fail(w, "a peek shows what is not ready");
	while (aside-- > 0)
		*seen[aside] = were[aside];
}

static void
end_stats(struct sim_world *w, struct sim_call *c, slu_time now)
{
	uint32_t count[MSG_STATES] = { 0 };

	(void)now;
	if (c->op.rc == SLU_ENOTFOUND && world_may_lack(w, c->queue))
		return;
	if (c->op.rc)
		world_fail(w, "stats were refused: %d", c->op.rc);
	if (is_vague(w, c->queue))
		return;
	EACH_MSG(x, &w->model)
	{
		if (x->queue == c->queue && x->fading)
			return;
		if (x->queue == c->queue)
			count[model_state(&w->model, x)]++;
	}
	for (int s = MSG_READY; s < MSG_STATES; s++)
		if (count[s] != c->stats.count[s])
			world_fail(w, "I9: queue %u counts %u in state %d, there are %u",
				   c->queue, c->stats.count[s], s, count[s]);
}

static void
end_result(struct sim_world *w, struct sim_call *c, slu_time now)
{
	const struct sim_msg *x = model_find(&w->model, c->op.id);
	unsigned at;
	const bool kept = model_keeps_result(&w->model, c->op.id, &at);
	const struct sim_kept *r = &w->model.results[at];
	const bool mine = kept && slice_eq(world_space(r->queue), c->op.space);

	if (!kept && now < w->model.over[w->model.queues[c->queue].shard])
		return; /* it was over, but by its clock, which went back, it is not */
	if (c->op.rc == 0 && (!mine || (r->text != (c->op.result.pin != NULL) && !r->doubt)))
		world_fail(w, "%" PRIu64 " has a result that nobody gave", c->op.id);
	if (c->op.rc == 0 && c->op.result.pin)
		world_check_text(w, c->op.engine, &c->op.result, 'r', c->op.id);
	if (c->op.rc && mine && !r->doubt && now < r->from && c->op.wait == 0)
		world_fail(w, "the result of %" PRIu64 " is lost: %d", c->op.id, c->op.rc);
	if (c->op.rc == SLU_ETIMEOUT && !x && c->op.wait == 0)
		world_fail(w, "%" PRIu64 " is gone, and a result will come", c->op.id);
	if (c->op.rc && c->op.rc != SLU_ETIMEOUT && c->op.rc != SLU_ENOTFOUND &&
	    !(c->op.rc == SLU_ECLOSED && w->draining))
		world_fail(w, "a result was refused: %d", c->op.rc);
}

/* ---- All ---- */

typedef void end_fn(struct sim_world *w, struct sim_call *c, slu_time now);

static end_fn *const ends[OP_VERBS] = {
	[OP_ENQUEUE] = world_end_enqueue,
	[OP_INTAKE] = world_end_intake,
	[OP_CLAIM] = end_claim,
	[OP_RETURN] = end_return,
	[OP_ACK] = end_settle,
	[OP_NACK] = end_settle,
	[OP_EXTEND] = end_settle,
	[OP_FINISH] = world_end_finish,
	[OP_REDRIVE] = end_manage,
	[OP_DELETE] = end_manage,
	[OP_GET] = end_get,
	[OP_PEEK] = end_peek,
	[OP_RESULT] = end_result,
	[OP_STATS] = end_stats,
	[OP_PURGE] = end_purge,
	[OP_PAUSE] = end_policy,
	[OP_POLICY_GET] = end_policy,
	[OP_POLICY_SET] = end_policy,
	[OP_FORGET] = world_end_forget,
	[OP_ACQUIRE] = world_end_lock,
	[OP_KEEPALIVE] = world_end_lock,
	[OP_RELEASE] = world_end_lock,
	[OP_STATE_GET] = world_end_lock,
	[OP_STATE_PUT] = world_end_lock,
	[OP_STATE_REMOVE] = world_end_lock,
	[OP_DESCRIBE] = world_end_lock,
};

/* Answers that say nothing about messages. True: it was one. */
static bool
is_no_answer(struct sim_world *w, struct sim_call *c)
{
	const int rc = c->op.rc;

	if (rc == SLU_ECANCELED) {
		if (!c->canceled)
			world_fail(w, "%u was canceled by nobody", c->serial);
		return true;
	}
	if (w->dying && rc != SLU_EUNKNOWN)
		return true; /* nothing of it can have reached the disk */
	if (w->draining && rc == 0 && c->parked && c->op.n_rows == 0 &&
	    c->op.verb != OP_RESULT && c->op.verb != OP_ACQUIRE)
		return true; /* it was sent away before anything was run */
	if (w->draining && rc == SLU_ECLOSED && c->op.verb == OP_ACQUIRE)
		return true; /* the same */
	if (rc != SLU_EDOWN && rc != SLU_EUNKNOWN) {
		if (!logengine_is_late(world_shard(w, c->queue)->engine))
			return false;
		world_doubt(w, c); /* by what had fallen due for it is not known */
		return true;
	}
	if (!world_is_down(w, c->queue))
		world_fail(w, "%u failed: %d, %s", c->serial, rc, c->op.err.text);
	if (rc == SLU_EUNKNOWN)
		world_doubt(w, c);
	return true;
}

/* Did it run in the line of waiting ops? What a claim that waited gives back did not. */
static bool
ran_in_line(const struct op *op)
{
	return op->verb == OP_CLAIM || op->verb == OP_ACQUIRE ||
	       (op->wait > 0 && op->verb != OP_RETURN && op->verb != OP_RELEASE);
}

/* Time passes in the model as it did before this op was run. */
static void
pass_until(struct sim_world *w, const struct sim_call *c, slu_time now)
{
	const unsigned shard = w->model.queues[c->queue].shard;
	struct world_shard *s = &w->shards[shard];
	bool synced;

	synced = model_tick(&w->model, shard, s->first, now);
	if (c->op.route.before > s->first || !ran_in_line(&c->op))
		bury(w, shard);
	synced |= model_tick(&w->model, shard, c->op.route.before, now);
	s->synced |= synced;
}

bool
world_hear(struct sim_world *w, struct sim_call *c)
{
	const slu_time now = world_now(w, c->queue);

	if (is_no_answer(w, c))
		return false;
	pass_until(w, c, now);
	ends[c->op.verb](w, c, now);
	return true;
}

void
world_answered(struct op *op)
{
	struct sim_call *c = op->owner;
	struct sim_world *w = c->w;

	if (c->state != CALL_POSTED)
		world_fail(w, "%u was answered twice", c->serial);
	world_note(w, "answer", c->serial, (uint64_t)op->rc, op->n_rows);
	c->state = CALL_FREE;
	if (w->judge->hears(w, c)) {
		if (op->verb == OP_ACQUIRE && op->rc == 0 && world_chance(w, 60))
			world_keep_lock(w, c);
		else if (!w->draining && ((op->verb == OP_CLAIM && op->n_rows) ||
					  (op->verb == OP_ACQUIRE && op->rc == 0)))
			c->state = CALL_READING;
	}
	if (c->state == CALL_FREE && !c->returning)
		op_unpin(op);
}
