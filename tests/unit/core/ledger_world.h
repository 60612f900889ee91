/*
 * ledger_world.h - a ledger beside its model, the changes it was made by, and all
 * that must hold between the three.
 */
#ifndef TESTS_LEDGER_WORLD_H
#define TESTS_LEDGER_WORLD_H

#include "ledger_model.h"
#include "ledgerkit.h"

#include "base/mem.h"
#include "core/ledger/batches.h"
#include "core/ledger/check.h"
#include "core/ledger/use.h"

enum {
	WORLD_POLICIES = 256,
	WORLD_PLACES = 1 << 18
};

/* The records that a ledger names (LEDGER-12). */
struct ledger_places {
	bool named[WORLD_PLACES];
	unsigned n;
};

struct ledger_world {
	struct ledger *l;
	struct ledger_places *places;
	uint32_t queues[MODEL_QUEUES];
	struct ledger_model m;
	uint64_t random;
	slu_time now;
	bool ticked; /* all that is due has been done */
	uint64_t last_id, last_number, last_where;
	struct change *log; /* queue: our number, not the ledger's handle */
	uint32_t n, max;
	struct policy policies[WORLD_POLICIES]; /* that changes point to */
	unsigned n_policies;
};

static const char *const queue_names[] = { "a", "b", "a", "b" };
static const char *const space_names[] = { "one", "two" };
static const char *const key_names[] = { "k0", "k1", "k2" };
static const char *const share_names[] = { "", "s0", "s1", "t0", "\1k", "\1kk" }; /* then kinds: KIND-1 */
static const char *const value_names[] = { "", "v0", "v1", "v2" };
static const char *const idem_names[] = { "i0", "i1", "i2", "i3", "i4", "i5" };

static inline uint64_t
dice(struct ledger_world *w, uint64_t n)
{
	return test_random(&w->random) % n;
}

static inline bool
one_in(struct ledger_world *w, unsigned n)
{
	return dice(w, n) == 0;
}

static inline void
name_place(struct ledger_places *p, uint64_t where)
{
	CHECK(where < WORLD_PLACES);
	p->n += where && !p->named[where];
	p->named[where] = where != 0;
}

static inline void
drop_place(void *arg, uint64_t where)
{
	struct ledger_places *p = arg;

	CHECK(p->named[where]); /* once */
	p->named[where] = false;
	p->n--;
}

/* Queues are made in an order that depends on first: handles must not matter. */
static inline struct ledger *
open_ledger(uint32_t queues[MODEL_QUEUES], unsigned first, struct ledger_places **places)
{
	struct ledger_conf conf = { .secret = { 7, 9 }, .max_idem = 18 };
	struct ledger *l;

	*places = mem_zalloc(sizeof **places);
	CHECK(*places);
	conf.drop = drop_place;
	conf.drop_arg = *places;

	CHECK_EQ(0, ledger_new(&l, &conf));
	for (unsigned i = 0; i < MODEL_QUEUES; i++) {
		const unsigned q = (i + first) % MODEL_QUEUES;

		CHECK_EQ(0, ledger_queue_open(l, slice_of(space_names[q / 2]),
					      slice_of(queue_names[q]), &queues[q]));
	}
	return l;
}

static inline uint32_t
space_of(const struct ledger_world *w, unsigned space)
{
	return ledger_space_find(w->l, slice_of(space_names[space]));
}

static inline unsigned
our_queue(const struct ledger_world *w, uint32_t handle)
{
	for (unsigned q = 0; q < MODEL_QUEUES; q++)
		if (w->queues[q] == handle)
			return q;
	test_fail(__FILE__, __LINE__, "unknown queue %u", handle);
}

/* The best message of each value without a share that is ready, by queue. */
struct world_fronts {
	struct ledger_view of[MODEL_QUEUES][MODEL_VALUES];
};

static inline bool
goes_before(const struct ledger_view *a, const struct ledger_view *b)
{
	if (a->prio != b->prio)
		return a->prio < b->prio;
	return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static inline void
note_front(struct world_fronts *f, const struct ledger_model_msg *x, const struct ledger_view *v)
{
	struct ledger_view *const best = &f->of[x->queue][x->value];

	if (x->value && !x->share && (!best->id || goes_before(v, best)))
		*best = *v;
}

/* The tags of the model follow the messages that are ready in the ledger, but for `gone`: time makes them
 * ready in steps. */
static inline void
sync_shares(struct ledger_world *w, uint64_t gone)
{
	bool active[MODEL_QUEUES][MODEL_PRIOS][MODEL_SHARES] = { 0 };
	uint32_t leased[MODEL_QUEUES][MODEL_SHARES] = { 0 };
	uint32_t of_value[MODEL_QUEUES][MODEL_VALUES] = { 0 };
	bool waits[MODEL_QUEUES][MODEL_PRIOS] = { 0 };
	struct world_fronts fronts = { 0 };

	EACH(i, w->m.msgs) {
		const struct ledger_model_msg *x = &w->m.msgs[i];
		const uint32_t h = x->state == M_FREE || x->id == gone ? SLAB_NONE : ledger_find_any(w->l, x->id);
		struct ledger_view v;

		if (h == SLAB_NONE)
			continue;
		ledger_get(w->l, h, &v);
		of_value[x->queue][x->value] += v.state == MSG_LEASED;
		if (v.state == MSG_READY && !ledger_is_parked(w->l, h))
			note_front(&fronts, x, &v);
	}

	EACH(i, w->m.msgs) {
		const struct ledger_model_msg *x = &w->m.msgs[i];
		const uint32_t h = x->state == M_FREE || x->id == gone || x->queue < 2 ? SLAB_NONE : ledger_find_any(w->l, x->id);
		struct ledger_queue_view q;
		struct ledger_view v;
		bool open, leads;
		uint32_t max;

		if (h == SLAB_NONE)
			continue;
		ledger_get(w->l, h, &v);
		ledger_queue_get(w->l, w->queues[x->queue], &q);
		max = x->value ? q.policy->attribute_concurrency : 0;
		open = v.state == MSG_READY && !ledger_is_gated(w->l, h) && (!max || of_value[x->queue][x->value] < max);
		leads = x->share || !x->value || fronts.of[x->queue][x->value].id == x->id;
		active[x->queue][x->prio + 1][x->share] |= open && leads;
		waits[x->queue][x->prio + 1] |= v.state == MSG_READY && !ledger_is_parked(w->l, h) && !x->share && x->value;
		leased[x->queue][x->share] += v.state == MSG_LEASED;
	}
	for (unsigned q = 0; q < MODEL_QUEUES; q++) {
		struct ledger_queue_view v;

		ledger_queue_get(w->l, w->queues[q], &v);
		for (unsigned p = 0; p < MODEL_PRIOS; p++) {
			for (unsigned s = 1; s < MODEL_SHARES; s++)
				active[q][p][s] &= !v.policy->share_concurrency || leased[q][s] < v.policy->share_concurrency;
			model_set_active(&w->m.levels[q][p], active[q][p], waits[q][p]);
			if (!ledger_has_turns(w->l, w->queues[q]))
				w->m.levels[q][p] = (struct ledger_model_level){ 0 };
		}
	}
}

/* A share as the text of the world: a change outlives the share. */
static inline struct slice
our_share(struct slice share)
{
	EACH(i, share_names)
		if (slice_eq(share, slice_of(share_names[i])))
			return slice_of(share_names[i]);
	test_fail(__FILE__, __LINE__, "unknown share");
}

static inline struct slice
our_value(struct slice value)
{
	EACH(i, value_names)
		if (slice_eq(value, slice_of(value_names[i])))
			return slice_of(value_names[i]);
	test_fail(__FILE__, __LINE__, "unknown value");
}

/* A name of a scope of a breaker or hold. */
static inline const char *
scope_name(enum gate_kind kind, unsigned i)
{
	switch (kind) {
	case GATE_SHARE:
		return share_names[i];
	case GATE_KEY:
		return key_names[i];
	case GATE_VALUE:
		return value_names[i];
	default:
		return "";
	}
}

/* The texts of the change of a circuit as those of the world. */
static inline void
keep_breaker(struct change *c)
{
	struct slice scope = { 0 }, name = { 0 };

	for (unsigned i = 0; i < MODEL_SCOPES && c->share.n; i++)
		if ((c->scope != GATE_KEY || i < MODEL_KEYS) && slice_eq(c->share, slice_of(scope_name((enum gate_kind)c->scope, i))))
			scope = slice_of(scope_name((enum gate_kind)c->scope, i));
	EACH(b, model_breakers)
		if (slice_eq(c->value, slice_of(model_breakers[b].name)))
			name = slice_of(model_breakers[b].name);
	CHECK(name.n && scope.n == c->share.n);
	c->share = scope;
	c->value = name;
}

static inline void
write_down(struct ledger_world *w, const struct change *c)
{
	CHECK(c->at >= (w->n ? w->log[w->n - 1].at : 0));
	if (w->n == w->max) {
		w->max = w->max ? 2 * w->max : 1024;
		w->log = mem_realloc(w->log, w->max * sizeof *w->log);
		CHECK(w->log);
	}
	w->log[w->n] = *c;
	w->log[w->n].msg = 12345; /* must not be looked at */
	if (c->kind == CHANGE_BREAKER)
		keep_breaker(&w->log[w->n]);
	else if (c->kind != CHANGE_HOLD)
		w->log[w->n].share = our_share(c->share);
	if (c->kind != CHANGE_BREAKER)
		w->log[w->n].value = our_value(c->value);
	if (c->kind == CHANGE_ACCEPT || c->kind == CHANGE_RESTORE ||
	    c->kind == CHANGE_PURGE || c->kind == CHANGE_POLICY || c->kind == CHANGE_HOLD || c->kind == CHANGE_BREAKER ||
	    c->kind == CHANGE_RESULT || (c->kind == CHANGE_DONE && c->keep))
		w->log[w->n].queue = our_queue(w, c->queue);
	w->n++;
}

/* Written down, then applied. */
static inline void
emit(struct ledger_world *w, const struct change *c)
{
	struct change next;

	write_down(w, c);
	name_place(w->places, c->where);
	name_place(w->places, c->error);
	if (c->kind == CHANGE_DIE || c->kind == CHANGE_DONE)
		sync_shares(w, c->id); /* before the next of its key */
	CHECK_EQ(0, ledger_apply(w->l, c));
	for (unsigned q = 0; q < MODEL_QUEUES && ends_a_lease(c->kind); q++)
		circuits_end(&w->m.circuits[q], c);
	sync_shares(w, 0);
	if (ledger_breaker_next(w->l, w->now, &next)) /* LEDGERBREAKER-2 */
		emit(w, &next);
}

/* Time */

static inline void
check_retired(struct ledger_world *w, struct ledger_model_msg *x)
{
	const struct policy *p = &w->m.policies[x->queue];
	uint32_t count[MSG_STATES];

	model_count(&w->m, x->queue, w->now, count);
	CHECK(x == model_oldest_dead(&w->m, x->queue));
	CHECK((p->dlq_max && count[MSG_DEAD] > p->dlq_max) ||
	      (p->dlq_retention && x->died + p->dlq_retention <= w->now));
	model_end(&w->m, x, w->now);
}

/* Whatever time brings must be due. */
static inline void
check_tick(struct ledger_world *w, const struct change *c)
{
	struct ledger_model_msg *x = model_find(&w->m, c->id);

	CHECK(x);
	if (c->kind == CHANGE_DONE) {
		check_retired(w, x);
	} else if (c->expired) { /* MQ-33: not before the lease ends */
		CHECK(x->state == M_LEASED && x->until <= w->now);
		x->failures++;
		x->state = M_WAIT;
		x->due = x->until;
		CHECK_EQ(x->failures >= model_max(&w->m, x), c->kind == CHANGE_DIE);
		if (c->kind == CHANGE_DIE)
			model_die(&w->m, x, DEAD_MAX_ATTEMPTS, w->now);
	} else {
		CHECK_EQ(CHANGE_DIE, c->kind);
		CHECK_EQ(DEAD_EXPIRED, c->reason);
		CHECK(x->state == M_WAIT && x->expires <= w->now);
		model_die(&w->m, x, DEAD_EXPIRED, w->now);
	}
}

static inline void
check_nothing_due(struct ledger_world *w)
{
	CHECK(ledger_next_due(w->l) > w->now);
	EACH(i, w->m.msgs) {
		const struct ledger_model_msg *x = &w->m.msgs[i];

		CHECK(x->state != M_LEASED || x->until > w->now);
		CHECK(x->state != M_WAIT || x->expires > w->now); /* LQ-34 */
	}
}

static inline void
tick(struct ledger_world *w, uint32_t budget)
{
	struct change c;

	while (ledger_tick(w->l, w->now, &budget, &c)) {
		sync_shares(w, 0);
		check_tick(w, &c);
		emit(w, &c);
	}
	sync_shares(w, 0);
	if (budget == 0)
		return;
	w->ticked = true;
	check_nothing_due(w);
}

/* Everything is compared. */

static inline void
check_message(struct ledger_world *w, struct ledger_model_msg *x)
{
	const uint32_t h = ledger_find(w->l, space_of(w, x->queue / 2), x->id);
	struct ledger_view v;

	CHECK(h != SLAB_NONE);
	CHECK_EQ(SLAB_NONE, ledger_find(w->l, space_of(w, 1 - x->queue / 2), x->id));
	ledger_get(w->l, h, &v);
	CHECK_EQ(model_state(&w->m, x, w->now), v.state);
	CHECK_EQ(w->queues[x->queue], v.queue);
	CHECK_EQ(x->state == M_DEAD ? x->died : x->due, v.due);
	CHECK_EQ(x->number, v.number);
	CHECK_EQ(x->prio, v.prio);
	CHECK_EQ(x->attempts, v.attempts);
	CHECK_EQ(x->failures, v.failures);
	CHECK_EQ(model_max(&w->m, x), v.max_attempts);
	CHECK_EQ(x->expires, v.expires);
	CHECK_EQ(x->keep, v.keep_result);
	CHECK_EQ(x->where, v.where);
	CHECK_EQ(x->error, v.error);
	CHECK_EQ(x->reason, v.reason);
	CHECK_EQ(x->state == M_LEASED ? x->token : 0, v.token);
	CHECK_EQ(x->state == M_LEASED ? x->until : 0, v.until);
	CHECK_EQ(x->batch, ledger_member_of(w->l, h));
	CHECK_EQ(x->extended, (v.flags & MSG_EXTENDED) != 0);
	CHECK_EQ(x->spared, (v.flags & MSG_SPARED) != 0);
}

/* LEDGER-12: what is named, and nothing else, is kept. */
static inline void
check_places(struct ledger_world *w)
{
	unsigned n = 0;

	EACH(i, w->m.msgs) {
		const struct ledger_model_msg *x = &w->m.msgs[i];

		if (x->state != M_FREE)
			n += 1 + (x->error != 0);
	}
	for (unsigned i = 0; i < w->m.n_results; i++)
		n += w->m.results[i].until > w->now;
	CHECK_EQ(n, w->places->n);
}

static inline void
check_results(struct ledger_world *w)
{
	for (unsigned i = 0; i < w->m.n_results; i++) {
		const struct ledger_model_result *r = &w->m.results[i];
		const bool kept = r->until > w->now;
		struct ledger_result out;

		CHECK_EQ(kept ? 0 : SLU_ENOTFOUND,
			 ledger_result(w->l, space_of(w, r->queue / 2), r->id, &out));
		CHECK_EQ(SLU_ENOTFOUND,
			 ledger_result(w->l, space_of(w, 1 - r->queue / 2), r->id, &out));
		if (kept)
			CHECK_EQ(r->where, out.where);
	}
}

/* I9; SH-05: counters equal what is there, each message is in one state. */
static inline void
check_all(struct ledger_world *w)
{
	const char *wrong = ledger_scan_check(w->l);

	if (wrong)
		test_fail(__FILE__, __LINE__, "%s", wrong);
	if (!w->ticked)
		return;
	for (unsigned q = 0; q < MODEL_QUEUES; q++) {
		uint32_t count[MSG_STATES];
		struct ledger_queue_view v;

		model_count(&w->m, q, w->now, count);
		ledger_queue_get(w->l, w->queues[q], &v);
		for (int s = 0; s < MSG_STATES; s++)
			CHECK_EQ(count[s], v.count[s]);
	}
	EACH(i, w->m.msgs)
		if (w->m.msgs[i].state != M_FREE)
			check_message(w, &w->m.msgs[i]);
	check_results(w);
	check_places(w);
}

#endif
