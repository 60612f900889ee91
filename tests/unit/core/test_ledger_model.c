/*
 * Random work on a ledger and on a model of it, step by step: every answer, every
 * change that time brings, every message and counter must be the same. Now and then
 * the ledger is thrown away and read back from its changes, or its oldest changes
 * are dropped and what still lives of them is written anew.
 */
#include "ledger_breakers.h"
#include "ledger_unique.h"

#include "core/ledger/use.h"

#include <stdlib.h>

enum {
	STEPS = 30000
};

/* Producers */

static int
expect_accept(struct ledger_world *w, unsigned q, int idem, uint64_t *known)
{
	const struct ledger_model_idem *i = idem < 0 ? NULL : &w->m.idems[q][idem];
	const struct policy *p = &w->m.policies[q];
	uint32_t count[MSG_STATES];
	struct ledger_size size;

	ledger_size(w->l, &size);
	if (i && i->id && (i->live || i->until > w->now) && !model_key_is_over(&w->m, i, w->now)) {
		*known = i->id;
		return SLU_EEXISTS;
	}
	if (p->draining)
		return SLU_EDRAINING;
	if (i && size.idem >= 18)
		return SLU_EBUSY;
	model_count(&w->m, q, w->now, count);
	if (p->max_depth && count[MSG_READY] + count[MSG_DELAYED] + count[MSG_HELD] +
					    count[MSG_LEASED] >=
				    p->max_depth)
		return SLU_EQFULL;
	return 0;
}

static unsigned
index_of(const char *share)
{
	unsigned s = 0;

	while (share_names[s] != share)
		s++;
	return s;
}

static unsigned
value_index(const char *value)
{
	unsigned v = 0;

	while (value_names[v] != value)
		v++;
	return v;
}

static void
model_accept(struct ledger_world *w, unsigned q, int key, int idem,
	     const struct ledger_offer *o, const struct change *c)
{
	struct ledger_model_msg *x = model_free_slot(&w->m);
	const unsigned line = index_of(our_share(o->share).p);
	const slu_time ttl = o->ttl ? o->ttl : w->m.policies[q].ttl;

	CHECK(c->number > w->last_number); /* LEDGER-5 */
	w->last_number = c->number;
	*x = (struct ledger_model_msg){
		.state = M_WAIT,
		.id = o->id,
		.number = c->number,
		.where = o->where,
		.queue = q,
		.key = key,
		.idem = idem,
		.share = line < MODEL_SHARES ? line : 0,
		.kind = line < MODEL_SHARES ? 0 : line - MODEL_SHARES + 1,
		.value = value_index(our_value(o->value).p),
		.prio = o->prio,
		.due = o->due > w->now ? o->due : w->now,
		.first_due = o->due > w->now ? o->due : w->now,
		.expires = ttl ? w->now + ttl : SLU_NEVER,
		.keep = o->keep_result,
		.max_attempts = o->max_attempts,
		.unique = o->terms.unique,
		.batch = (unsigned)o->terms.batch,
		.unique_end = o->terms.unique_for ? w->now + o->terms.unique_for : 0,
	};
	if (idem >= 0 && w->m.idems[q][idem].live)
		model_find(&w->m, w->m.idems[q][idem].id)->idem = -1;
	if (idem >= 0)
		w->m.idems[q][idem] = (struct ledger_model_idem){ .id = o->id, .live = true };
	sync_shares(w, 0);
}

static void
random_offer(struct ledger_world *w, struct ledger_offer *o)
{
	*o = (struct ledger_offer){
		.id = ++w->last_id,
		.prio = (int32_t)dice(w, 3) - 1,
		.due = one_in(w, 3) ? w->now + (slu_time)dice(w, 20) * SLU_SEC - 2 * SLU_SEC : 0,
		.ttl = one_in(w, 6) ? (slu_time)(1 + dice(w, 30)) * SLU_SEC : 0,
		.max_attempts = one_in(w, 5) ? (uint16_t)(1 + dice(w, 3)) : 0,
		.keep_result = one_in(w, 8) ? (slu_time)(1 + dice(w, 60)) * SLU_SEC : 0,
		.where = ++w->last_where,
		.terms.batch = one_in(w, 4) ? dice(w, MODEL_BATCHES) : 0,
	};
}

static void
do_accept(struct ledger_world *w)
{
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES);
	const int key = one_in(w, 3) ? -1 : (int)dice(w, MODEL_KEYS);
	const int idem = one_in(w, 4) ? (int)dice(w, MODEL_IDEMS) : -1;
	struct ledger_offer o;
	struct change c;
	uint64_t known = 0;
	int want;

	if (!model_free_slot(&w->m) || (idem >= 0 && is_purging(w, q)))
		return;
	random_offer(w, &o);
	if (key >= 0)
		o.key = slice_of(key_names[key]);
	if (idem >= 0)
		o.idem = slice_of(idem_names[idem]);
	if (idem >= 0)
		random_unique(w, &o.terms);
	if (q >= 2 && !one_in(w, 3)) /* two queues have no shares */
		o.share = slice_of(share_names[dice(w, MODEL_SHARES)]);
	if (q < 2 && one_in(w, 3)) /* the queues with shares have no kinds: the model does not know what waits behind its kind */
		o.share = slice_of(share_names[MODEL_SHARES + dice(w, MODEL_KINDS - 1)]);
	if (q % 2 && !one_in(w, 3)) /* two queues have no values: one with shares, one without */
		o.value = slice_of(value_names[dice(w, MODEL_VALUES)]);
	want = expect_accept(w, q, idem, &known);
	CHECK_EQ(want, ledger_accept(w->l, w->queues[q], &o, w->now, &c));
	if (want == SLU_EEXISTS)
		CHECK_EQ(known, c.id, "MQ-41: the first one's id");
	if (want)
		return;
	if (one_in(w, 10) && (idem < 0 || !w->m.idems[q][idem].live)) { /* a call that was accepted in part is taken back */
		name_place(w->places, c.where);
		CHECK_EQ(0, ledger_apply(w->l, &c));
		ledger_undo(w->l, &c);
		c = (struct change){ .kind = CHANGE_COUNTER, .number = c.number, .at = w->now };
		emit(w, &c);
		w->last_number = c.number;
		return;
	}
	emit(w, &c);
	model_accept(w, q, key, idem, &o, &c);
}

/* Consumers */

static void
check_choice(struct ledger_world *w, unsigned q, unsigned kinds, struct ledger_model_msg *x)
{
	const struct ledger_model_msg *best;

	CHECK(x);
	CHECK_EQ(q, x->queue);
	CHECK_EQ(MSG_READY, model_state(&w->m, x, w->now)); /* MQ-18, I6 */
	if (!w->ticked)
		return;
	best = model_best_of(&w->m, q, kinds, w->now);
	CHECK(best && kinds >> x->kind & 1); /* KIND-2 */
	CHECK_EQ(best->id, x->id, "MQ-19, SHARES-1");
}

/* The kinds of a claim, and their bits. Some of them may have no message. */
static struct slice
random_kinds(struct ledger_world *w, unsigned *bits)
{
	static const struct {
		const char *text;
		unsigned bits;
	} rows[] = { { "\1k", 2 }, { "\1kk", 4 }, { "\1kk\1other\1k", 6 }, { "\1other", 0 } };
	const unsigned i = (unsigned)dice(w, sizeof rows / sizeof rows[0]);

	*bits = one_in(w, 2) ? UINT_MAX : rows[i].bits;
	return *bits == UINT_MAX ? (struct slice){ 0 } : slice_of(rows[i].text);
}

static void
do_claim(struct ledger_world *w)
{
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES);
	const slu_time lease = one_in(w, 2) ? (slu_time)(1 + dice(w, 20)) * SLU_SEC : 0;
	unsigned kinds;
	const struct ledger_taker taker = { .lease = lease, .kinds = random_kinds(w, &kinds) };
	struct ledger_model_msg *x;
	struct ledger_passed passed;
	int scopes[GATE_KINDS];
	struct change c;

	CHECK_EQ(0, ledger_claim_for(w->l, w->queues[q], &taker, w->now, &c, &passed));
	if (c.kind == CHANGE_NONE) {
		if (w->ticked && !w->m.policies[q].paused)
			CHECK(!model_best_of(&w->m, q, kinds, w->now));
		return;
	}
	CHECK(!w->m.policies[q].paused);
	x = model_find(&w->m, c.id);
	sync_shares(w, 0); /* the claim has looked at the gates */
	check_choice(w, q, kinds, x);
	if (c.kind == CHANGE_CLAIM) {
		model_charge(&w->m, x, x->share ? policy_weight(&w->m.policies[q], slice_of(share_names[x->share])) : 1, w->now);
		model_take_tokens(&w->m, x, w->now);
	}
	emit(w, &c);
	if (model_over(&w->m, x, w->now)) {
		CHECK_EQ(CHANGE_DIE, c.kind, "LQ-33, LQ-34");
		CHECK_EQ(model_over(&w->m, x, w->now), c.reason);
		model_die(&w->m, x, c.reason, w->now);
		w->ticked = false;
		return;
	}
	CHECK_EQ(CHANGE_CLAIM, c.kind);
	CHECK(c.token > w->last_number); /* LEDGER-5 */
	w->last_number = c.token;
	x->state = M_LEASED;
	x->token = c.token;
	x->until = w->now + (lease ? lease : w->m.policies[q].lease);
	x->attempts++;
	x->holds = true;
	x->extended = false;
	x->claimed = w->now;
	model_scopes(x, scopes);
	circuits_probe(&w->m.circuits[q], x->id, scopes, w->now);
	if (x->unique == UNIQUE_STARTED)
		model_lose_key(&w->m, x);
}

static void
do_ack(struct ledger_world *w)
{
	struct ledger_ref ref;
	struct ledger_model_msg *x;
	struct change c;
	unsigned space;
	int queue, want;

	random_ref(w, &ref, &space, &queue);
	want = model_right(&w->m, &ref, space, queue, w->now, &x);
	CHECK_EQ(want, ledger_ack(w->l, &ref, w->now, &c));
	if (want)
		return;
	if (x->keep && w->m.n_results < MODEL_RESULTS) {
		CHECK_EQ(w->now + x->keep, c.keep);
		c.where = ++w->last_where;
		w->m.results[w->m.n_results++] = (struct ledger_model_result){
			.id = x->id, .where = c.where, .queue = x->queue, .until = c.keep
		};
	}
	emit(w, &c);
	model_end(&w->m, x, w->now);
}

static void
model_return(struct ledger_world *w, struct ledger_model_msg *x)
{
	x->attempts--;
	x->state = M_WAIT;
	w->ticked = w->ticked && x->expires > w->now;
}

static void
do_extend_or_return(struct ledger_world *w)
{
	const bool extend = one_in(w, 2);
	struct ledger_ref ref;
	struct ledger_model_msg *x;
	struct change c;
	unsigned space;
	int queue, want;

	random_ref(w, &ref, &space, &queue);
	want = model_right(&w->m, &ref, space, queue, w->now, &x);
	if (extend)
		CHECK_EQ(want, ledger_extend(w->l, &ref, 7 * SLU_SEC, w->now, &c));
	else
		CHECK_EQ(want, ledger_return(w->l, &ref, w->now, &c));
	if (want)
		return;
	emit(w, &c);
	if (extend) {
		x->until = w->now + 7 * SLU_SEC;
		x->extended = true;
		x->spared = false;
	} else {
		model_return(w, x);
	}
}

static void
do_spare(struct ledger_world *w)
{
	struct ledger_ref ref;
	struct ledger_model_msg *x;
	struct change c;
	unsigned space;
	int queue, want;
	bool spares;

	random_ref(w, &ref, &space, &queue);
	want = model_right(&w->m, &ref, space, queue, w->now, &x);
	CHECK_EQ(want, ledger_spare(w->l, &ref, w->now, &c));
	if (want)
		return;
	spares = !x->extended && !x->spared && w->now - x->claimed <= LEDGER_SPARE_TIME;
	CHECK_EQ(spares ? CHANGE_SPARE : CHANGE_NONE, c.kind);
	if (!spares)
		return;
	emit(w, &c);
	x->spared = true;
	model_return(w, x);
}

static void
model_nack(struct ledger_world *w, struct ledger_model_msg *x, const struct ledger_nack *n,
	   const struct change *c)
{
	const bool failed = n->dead || !n->defer;

	x->failures += failed;
	x->spared = false;
	if (c->where)
		x->error = c->where;
	x->state = M_WAIT;
	w->ticked = false;
	if (n->dead || (failed && x->failures >= model_max(&w->m, x))) {
		CHECK_EQ(CHANGE_DIE, c->kind);
		CHECK_EQ(n->dead ? DEAD_REJECTED : DEAD_MAX_ATTEMPTS, c->reason);
		model_die(&w->m, x, c->reason, w->now);
		return;
	}
	CHECK_EQ(CHANGE_RETRY, c->kind);
	if (n->delay >= 0)
		CHECK_EQ(w->now + n->delay, c->due);
	else if (n->defer)
		CHECK_EQ(w->now, c->due);
	else
		CHECK(c->due >= w->now && c->due <= w->now + w->m.policies[x->queue].retry.max);
	x->due = c->due;
}

static void
do_nack(struct ledger_world *w)
{
	const struct ledger_nack n = {
		.defer = one_in(w, 3),
		.dead = one_in(w, 12),
		.delay = one_in(w, 2) ? LEDGER_BY_POLICY : (slu_time)dice(w, 5) * SLU_SEC,
		.random = test_random(&w->random),
	};
	struct ledger_ref ref;
	struct ledger_model_msg *x;
	struct change c;
	unsigned space;
	int queue, want;

	random_ref(w, &ref, &space, &queue);
	want = model_right(&w->m, &ref, space, queue, w->now, &x);
	if (!want && one_in(w, 2))
		do_fail(w, x);
	CHECK_EQ(want, ledger_nack(w->l, &ref, &n, w->now, &c));
	if (want)
		return;
	if (one_in(w, 2))
		c.where = ++w->last_where;
	emit(w, &c);
	model_nack(w, x, &n, &c);
}

/* Operators */

static void
do_redrive(struct ledger_world *w)
{
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES);
	struct ledger_model_msg *x = model_oldest_dead(&w->m, q);
	struct ledger_ref ref = { .space = space_of(w, q / 2), .queue = w->queues[q] };
	struct change c;

	if (!x) {
		CHECK_EQ(SLAB_NONE, ledger_dead_next(w->l, w->queues[q], SLAB_NONE));
		return;
	}
	ref.id = x->id;
	CHECK_EQ(0, ledger_redrive(w->l, &ref, w->now, &c));
	emit(w, &c);
	w->last_number = x->number = c.number;
	x->state = M_WAIT;
	x->due = x->first_due = w->now;
	x->failures = 0;
	x->reason = DEAD_NOT;
}

static void
do_delete(struct ledger_world *w)
{
	struct ledger_model_msg *x = &w->m.msgs[dice(w, MODEL_MSGS)];
	struct ledger_ref ref = { .queue = SLAB_NONE, .id = x->id };
	struct change c;

	ref.space = space_of(w, x->queue / 2);
	if (x->state == M_FREE) {
		if (!model_find(&w->m, x->id))
			CHECK_EQ(SLU_ENOTFOUND, ledger_delete(w->l, &ref, w->now, &c));
		return;
	}
	CHECK_EQ(x->state == M_LEASED ? SLU_ELEASE : 0,
		 ledger_delete(w->l, &ref, w->now, &c));
	if (x->state == M_LEASED)
		return;
	emit(w, &c);
	model_end(&w->m, x, w->now);
}

static void
do_purge(struct ledger_world *w)
{
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES);
	struct ledger_queue_view v;
	struct change c;

	ledger_queue_get(w->l, w->queues[q], &v);
	if (!v.purging)
		check_purged_members(w, q);
	CHECK_EQ(v.purging ? SLU_EBUSY : 0, ledger_purge(w->l, w->queues[q], w->now, &c));
	if (v.purging)
		return;
	emit(w, &c);
	EACH(i, w->m.msgs)
		if (w->m.msgs[i].state == M_WAIT && w->m.msgs[i].queue == q)
			model_end(&w->m, &w->m.msgs[i], w->now);
	w->ticked = false;
}

static void
random_attribute(struct ledger_world *w, struct policy *p)
{
	strcpy(p->limit_attribute, "a");
	p->attribute_concurrency = one_in(w, 2) ? (uint32_t)(1 + dice(w, 3)) : 0;
	p->attribute_rate = one_in(w, 3) ? (uint32_t)(1 + dice(w, 6)) : 0;
	p->attribute_rate_burst = p->attribute_rate && one_in(w, 2) ? (uint32_t)(1 + dice(w, 4)) : 0;
}

static void
do_policy(struct ledger_world *w)
{
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES);
	struct policy *p = &w->policies[w->n_policies % WORLD_POLICIES];
	unsigned breakers;
	struct change c;

	if (w->n_policies == WORLD_POLICIES)
		return; /* those that are written down must stay as they are */
	w->n_policies++;
	*p = policy_default;
	p->lease = (slu_time)(1 + dice(w, 30)) * SLU_SEC;
	p->max_attempts = (uint32_t)(1 + dice(w, 4));
	p->retry.max = (slu_time)(1 + dice(w, 8)) * SLU_SEC;
	p->ttl = one_in(w, 3) ? (slu_time)(5 + dice(w, 60)) * SLU_SEC : 0;
	p->max_depth = one_in(w, 3) ? (uint32_t)(1 + dice(w, 40)) : 0;
	p->window = (slu_time)dice(w, 4) * (one_in(w, 2) ? SLU_HOUR : 7 * SLU_SEC);
	p->dlq_retention = one_in(w, 3) ? (slu_time)(1 + dice(w, 90)) * SLU_SEC : 0;
	p->dlq_max = one_in(w, 3) ? (uint32_t)(1 + dice(w, 6)) : 0;
	p->require_lease = one_in(w, 4);
	p->paused = one_in(w, 6);
	p->draining = one_in(w, 8);
	if (one_in(w, 2))
		strcpy(p->share_weights, "s0=3,s*=2");
	p->concurrency = one_in(w, 4) ? (uint32_t)(1 + dice(w, 5)) : 0;
	p->share_concurrency = one_in(w, 3) ? (uint32_t)(1 + dice(w, 3)) : 0;
	p->rate = one_in(w, 4) ? (uint32_t)(1 + dice(w, 20)) : 0;
	p->rate_burst = p->rate && one_in(w, 2) ? (uint32_t)(1 + dice(w, 40)) : 0;
	p->share_rate = one_in(w, 3) ? (uint32_t)(1 + dice(w, 8)) : 0;
	p->share_rate_burst = p->share_rate && one_in(w, 2) ? (uint32_t)(1 + dice(w, 4)) : 0;
	p->key_rate = one_in(w, 3) ? (uint32_t)(1 + dice(w, 5)) : 0;
	p->key_rate_burst = p->key_rate && one_in(w, 2) ? (uint32_t)(1 + dice(w, 4)) : 0;
	random_attribute(w, p);
	breakers = random_breakers(w, p);
	CHECK_EQ(0, ledger_set_policy(w->l, w->queues[q], p, w->now, &c));
	emit(w, &c);
	w->m.policies[q] = *p;
	circuits_set(&w->m.circuits[q], breakers);
	model_set_rates(&w->m, q);
	w->ticked = false;
}

/* The later end of two holds counts; 0 ends a hold. */
static void
model_hold(slu_time *held, slu_time until, slu_time now, const struct change *c)
{
	const slu_time before = *held > now ? *held : 0;
	const bool changes = until ? until > now && until > before : before > 0;

	CHECK_EQ(changes, c->kind == CHANGE_HOLD);
	if (changes)
		*held = until;
}

static void
do_hold(struct ledger_world *w)
{
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES), s = (unsigned)dice(w, MODEL_SHARES);
	const unsigned k = (unsigned)dice(w, MODEL_KEYS), v = 1 + (unsigned)dice(w, MODEL_VALUES - 1);
	const char *const names[] = { "", share_names[s], key_names[k], value_names[v] };
	const slu_time until = one_in(w, 4) ? 0 : w->now + (slu_time)dice(w, 12) * SLU_SEC;
	struct ledger_scope scope = { .kind = (enum gate_kind)dice(w, GATE_KINDS) };
	slu_time *const held[] = { &w->m.queue_hold[q], &w->m.share_hold[q][s], &w->m.key_hold[q][k], &w->m.value_hold[q][v] };
	struct change c;

	if (scope.kind == GATE_QUEUE && !one_in(w, 4))
		return; /* otherwise nothing is ever delivered */
	if (scope.kind != GATE_QUEUE)
		scope.name = slice_of(names[scope.kind]);
	tick(w, UINT32_MAX);
	CHECK_EQ(0, ledger_hold(w->l, w->queues[q], &scope, until, w->now, &c));
	model_hold(held[scope.kind], until, w->now, &c);
	if (c.kind == CHANGE_NONE)
		return;
	c.share = slice_of(c.share.n ? scope.name.p : "");
	emit(w, &c);
}

/* Restart: the changes alone make the same ledger. */

static void
tick_silently(struct ledger_world *w, struct ledger *l)
{
	uint32_t budget = UINT32_MAX;
	struct change c;

	CHECK(!ledger_tick(l, w->now, &budget, &c));
}

static void
close_world(struct ledger_world *w)
{
	ledger_free(w->l);
	mem_free(w->places);
}

static void
do_restart(struct ledger_world *w)
{
	uint32_t queues[MODEL_QUEUES];
	struct ledger_places *places;
	struct ledger *l = open_ledger(queues, (unsigned)dice(w, MODEL_QUEUES), &places);
	struct change c;

	tick(w, UINT32_MAX);
	for (uint32_t i = 0; i < w->n; i++) {
		c = w->log[i];
		c.queue = c.queue < MODEL_QUEUES ? queues[c.queue] : 0;
		name_place(places, c.where);
		name_place(places, c.error);
		CHECK_EQ(0, ledger_replay(l, &c));
	}
	tick_silently(w, l);
	/* WAL-5; MQ-51: what was acked would make a difference. */
	CHECK_EQ(ledger_digest_at(w->l, w->now), ledger_digest_at(l, w->now));
	close_world(w);
	w->l = l;
	w->places = places;
	memcpy(w->queues, queues, sizeof queues);
	memset(w->m.levels, 0, sizeof w->m.levels); /* LEDGERSHARE-2 */
	sync_shares(w, 0);
	check_all(w);
	ledger_opened(l, w->now, &c);
	emit(w, &c);
	model_start(&w->m, w->now);
	for (unsigned q = 0; q < MODEL_QUEUES; q++)
		circuits_restart(&w->m.circuits[q]);
	EACH(i, w->m.msgs)
		if (w->m.msgs[i].state == M_LEASED && w->m.msgs[i].until < w->now + 5 * SLU_SEC)
			w->m.msgs[i].until = w->now + 5 * SLU_SEC;
}

/* Cleaning: the oldest changes go, and what lives of them is written anew. */

/* CLEAN-10 of engine/log/clean.c: the record of the message is a REPLACE. */
static bool
is_replaced(const struct ledger_world *w, const struct ledger_view *v)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->log[i].kind == CHANGE_REPLACE && w->log[i].where == v->where)
			return true;
	return false;
}

static void
move_message(struct ledger_world *w, const struct change *old)
{
	const uint32_t h = ledger_find_any(w->l, old->id);
	struct ledger_view v;
	struct change c;

	if (h == SLAB_NONE) {
		if (ledger_describe_idem(w->l, old->idem, w->now, &c) && c.id == old->id)
			emit(w, &c);
		return;
	}
	ledger_get(w->l, h, &v);
	if (v.where != old->where && !is_replaced(w, &v))
		return; /* it was moved before */
	ledger_describe(w->l, h, w->now, &c);
	c.where = ++w->last_where;
	emit(w, &c);
	model_find(&w->m, c.id)->where = c.where;
}

static void
move_result(struct ledger_world *w, const struct change *old)
{
	struct ledger_result r;
	struct change c = { .kind = CHANGE_RESULT, .id = old->id, .at = w->now };

	if (!old->keep || !ledger_result_any(w->l, old->id, &r) || r.where != old->where)
		return;
	c.queue = r.queue;
	c.keep = r.until;
	c.where = ++w->last_where;
	emit(w, &c);
	for (unsigned i = 0; i < w->m.n_results; i++)
		if (w->m.results[i].id == old->id)
			w->m.results[i].where = c.where;
}

static void
move_change(struct ledger_world *w, const struct change *old)
{
	struct ledger_queue_view v;
	struct change c;

	if (old->kind == CHANGE_ACCEPT || old->kind == CHANGE_RESTORE || old->kind == CHANGE_REPLACE) {
		move_message(w, old);
	} else if (old->kind == CHANGE_REMEMBER) {
		if (ledger_describe_idem(w->l, old->idem, w->now, &c) && c.id == old->id)
			emit(w, &c);
	} else if (old->kind == CHANGE_DONE || old->kind == CHANGE_RESULT) {
		move_result(w, old);
	} else if (old->kind == CHANGE_HOLD) {
		if (old->until > w->now && ledger_hold_end(w->l, w->queues[old->queue], (enum gate_kind)old->scope, old->share) == old->until) {
			c = *old;
			c.at = w->now;
			c.queue = w->queues[old->queue];
			emit(w, &c);
		}
	} else if (old->kind == CHANGE_BREAKER) {
		move_breaker(w, old);
	} else if (old->kind == CHANGE_POLICY) {
		ledger_queue_get(w->l, w->queues[old->queue], &v);
		c = *old;
		c.at = w->now;
		c.queue = w->queues[old->queue];
		for (unsigned i = 0; i < WORLD_POLICIES; i++)
			if (memcmp(&w->policies[i], v.policy, sizeof *v.policy) == 0)
				c.policy = &w->policies[i];
		emit(w, &c);
	}
}

static void
do_clean(struct ledger_world *w)
{
	const uint32_t cut = w->n / (2 + (uint32_t)dice(w, 3));
	const struct change counter = {
		.kind = CHANGE_COUNTER,
		.at = w->now,
		.number = ledger_counter(w->l),
	};

	for (uint32_t i = 0; i < cut; i++) {
		const struct change old = w->log[i];

		move_change(w, &old);
	}
	emit(w, &counter);
	w->n -= cut;
	memmove(w->log, w->log + cut, w->n * sizeof *w->log);
	w->ticked = false; /* policies were set again */
}

static void
do_time(struct ledger_world *w)
{
	static const slu_time jumps[] = { SLU_MS, SLU_SEC, 5 * SLU_SEC, 40 * SLU_SEC };

	w->now += one_in(w, 60) ? SLU_HOUR : (slu_time)dice(w, (uint64_t)jumps[dice(w, COUNT(jumps))]);
	w->ticked = false;
}

static void
one_step(struct ledger_world *w)
{
	static const struct {
		void (*run)(struct ledger_world *w);
		unsigned weight;
	} ops[] = {
		{ do_accept, 30 },
		{ do_claim, 30 },
		{ do_ack, 12 },
		{ do_nack, 12 },
		{ do_extend_or_return, 5 },
		{ do_spare, 3 },
		{ do_redrive, 3 },
		{ do_delete, 2 },
		{ do_hold, 3 },
		{ do_break, 2 },
		{ do_replace, 4 },
		{ do_priority, 2 },
		{ do_time, 12 },
	};
	uint64_t roll = dice(w, 117);
	size_t i = 0;

	while (roll >= ops[i].weight)
		roll -= ops[i++].weight;
	ops[i].run(w);
	if (one_in(w, 8))
		tick(w, (uint32_t)dice(w, 4));
	if (one_in(w, 6))
		tick(w, UINT32_MAX);
	if (one_in(w, 400))
		do_purge(w);
	if (one_in(w, 150))
		do_policy(w);
	if (one_in(w, 20)) {
		check_all(w);
		check_circuits(w);
	}
	if (one_in(w, 150))
		do_restart(w);
	if (one_in(w, 400))
		do_clean(w);
}

/* I1 to I9 of the checker, over restarts. MODEL_STEPS: how many, in rounds of STEPS. */
TEST_LIMIT(a_ledger_does_what_a_plain_model_does, 1200)
{
	static struct ledger_world w;
	const uint64_t seed = test_seed();
	const char *steps = getenv("MODEL_STEPS");
	const long rounds = steps ? (atol(steps) + STEPS - 1) / STEPS : 4;

	for (long round = 0; round < rounds; round++) {
		w = (struct ledger_world){ .random = seed + (uint64_t)round, .now = 1000 * SLU_HOUR };
		model_init(&w.m);
		w.l = open_ledger(w.queues, 0, &w.places);
		for (int i = 0; i < STEPS; i++)
			one_step(&w);
		tick(&w, UINT32_MAX);
		check_all(&w);
		close_world(&w);
		mem_free(w.log);
	}
}
