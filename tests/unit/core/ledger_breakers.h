/*
 * ledger_breakers.h - steps of a random ledger: failures with a reason, operators who open and close circuits; and the members
 * of batches.
 */
#ifndef LEDGER_BREAKERS_H
#define LEDGER_BREAKERS_H

#include "ledger_world.h"

#include "core/ledger/batches.h"

/* The breakers of a policy, and their bits. */
static inline unsigned
random_breakers(struct ledger_world *w, struct policy *p)
{
	const unsigned has = one_in(w, 3) ? 0 : (unsigned)dice(w, 1 << MODEL_BREAKERS);

	for (unsigned b = 0; b < MODEL_BREAKERS; b++) {
		if (!(has >> b & 1))
			continue;
		if (p->breakers[0])
			strcat(p->breakers, "; ");
		strcat(p->breakers, model_breakers[b].text);
	}
	return has;
}

static inline struct ledger_scope
scope_of(unsigned b, unsigned scope)
{
	return (struct ledger_scope){ model_breakers[b].scope, slice_of(scope_name(model_breakers[b].scope, scope)) };
}

/* Most often one that the queue has. */
static inline unsigned
random_breaker(struct ledger_world *w, unsigned has)
{
	unsigned b = (unsigned)dice(w, MODEL_BREAKERS);

	for (int i = 0; i < 4 && !(has >> b & 1); i++)
		b = (unsigned)dice(w, MODEL_BREAKERS);
	return b;
}

/* BREAKERS-1: a nack of x has a reason. */
static inline void
do_fail(struct ledger_world *w, const struct ledger_model_msg *x)
{
	struct ledger_model_circuits *cs = &w->m.circuits[x->queue];
	const unsigned b = random_breaker(w, cs->has);
	int scopes[GATE_KINDS];
	struct ledger_scope scope;
	enum gate_kind kind;
	struct change c;
	bool opens;
	int s;

	model_scopes(x, scopes);
	s = scopes[model_breakers[b].scope];
	if (s < 0)
		return;
	CHECK_EQ(cs->has >> b & 1, ledger_breaker_scope(w->l, w->queues[x->queue], slice_of(model_breakers[b].name), &kind));
	scope = scope_of(b, (unsigned)s);
	CHECK_EQ(0, ledger_breaker_fail(w->l, w->queues[x->queue], &scope, slice_of(model_breakers[b].name), w->now, &c));
	opens = (cs->has >> b & 1) && circuits_fail(cs, b, (unsigned)s, w->now);
	CHECK_EQ(opens ? CHANGE_BREAKER : CHANGE_NONE, c.kind, "BREAKERS-1");
	if (!opens)
		return;
	CHECK_EQ(cs->of[b][s].until, c.until);
	emit(w, &c);
	w->ticked = false;
}

/* An operator. */
static inline void
do_break(struct ledger_world *w)
{
	static const unsigned names[GATE_KINDS] = { 1, MODEL_SHARES, MODEL_KEYS, MODEL_VALUES };
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES), b = (unsigned)dice(w, MODEL_BREAKERS);
	const enum gate_kind kind = model_breakers[b].scope;
	const unsigned s = (unsigned)dice(w, names[kind]);
	const struct ledger_scope scope = scope_of(b, s);
	const slu_time until = one_in(w, 2) ? 0 : w->now + (slu_time)dice(w, 12) * SLU_SEC;
	struct ledger_model_circuits *cs = &w->m.circuits[q];
	const bool has = cs->has >> b & 1;
	struct change c;

	if (kind == GATE_VALUE && s == 0)
		return; /* nobody's */
	tick(w, UINT32_MAX);
	CHECK_EQ(has ? 0 : SLU_ENOTFOUND,
		 ledger_breaker_order(w->l, w->queues[q], &scope, slice_of(model_breakers[b].name), until, w->now, &c));
	CHECK_EQ(has && (!until || until > w->now), c.kind == CHANGE_BREAKER);
	if (c.kind == CHANGE_NONE)
		return;
	emit(w, &c);
	cs->of[b][s] = (struct ledger_model_circuit){ .open = until > 0, .until = until };
	w->ticked = false;
}

/* What is kept of a circuit when the log is cleaned: clean_breaker of engine/log/clean.c. */
static inline void
move_breaker(struct ledger_world *w, const struct change *old)
{
	const struct ledger_scope scope = { (enum gate_kind)old->scope, old->share };
	struct change c = *old;

	if (!old->until || ledger_breaker_until(w->l, w->queues[old->queue], &scope, old->value) != old->until)
		return;
	c.at = w->now;
	c.queue = w->queues[old->queue];
	write_down(w, &c); /* the ledger has it: its probe may be under way */
}

static inline void
check_circuits(struct ledger_world *w)
{
	for (unsigned q = 0; q < MODEL_QUEUES; q++) {
		uint32_t n = 0;

		for (unsigned b = 0; b < MODEL_BREAKERS; b++)
			for (unsigned s = 0; s < MODEL_SCOPES; s++) {
				const struct ledger_model_circuit *x = &w->m.circuits[q].of[b][s];
				const struct ledger_scope scope = x->open ? scope_of(b, s) : (struct ledger_scope){ 0 };

				n += x->open;
				if (x->open)
					CHECK_EQ(x->until, ledger_breaker_until(w->l, w->queues[q], &scope,
										slice_of(model_breakers[b].name)));
			}
		CHECK_EQ(n, ledger_breakers(w->l, w->queues[q]));
	}
}

/* The members of batches that a purge takes. */
static inline void
check_purged_members(struct ledger_world *w, unsigned q)
{
	unsigned n = 0, want[MODEL_BATCHES] = { 0 };
	uint32_t msgs[MODEL_MSGS];

	EACH(i, w->m.msgs) {
		const struct ledger_model_msg *x = &w->m.msgs[i];

		want[x->batch] += x->state == M_WAIT && x->queue == q && x->batch;
		n += x->state == M_WAIT && x->queue == q && x->batch;
	}
	CHECK_EQ(n, ledger_members(w->l, w->queues[q]));
	CHECK_EQ(n, ledger_first_members(w->l, w->queues[q], msgs, MODEL_MSGS));
	for (unsigned i = 0; i < n; i++) {
		const uint64_t of = ledger_member_of(w->l, msgs[i]);

		CHECK(of > 0 && of < MODEL_BATCHES && want[of]);
		want[of]--;
	}
}

#endif
