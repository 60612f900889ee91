/*
 * ledger_circuits.h - the circuit breakers of the model: a table of circuits, one for each breaker and scope of a queue.
 *
 * A policy has any of the breakers below. A circuit is shut while it is open, and while its probe is under way
 * (BREAKERS-2, BREAKERS-3).
 */
#ifndef LEDGER_CIRCUITS_H
#define LEDGER_CIRCUITS_H

#include "core/ledger/ledger.h"
#include "core/queue/gates.h"

enum {
	MODEL_BREAKERS = 5,
	MODEL_SCOPES = 4 /* names of each kind of scope: as many as there are shares, the most */
};

static const struct {
	const char *name, *text;
	enum gate_kind scope;
	unsigned failures;
	slu_time window, open;
} model_breakers[MODEL_BREAKERS] = {
	{ "q", "q: 3 in 4s, open 3s", GATE_QUEUE, 3, 4 * SLU_SEC, 3 * SLU_SEC },
	{ "s", "s: 2 in 10s, open 6s, by share", GATE_SHARE, 2, 10 * SLU_SEC, 6 * SLU_SEC },
	{ "k", "k: 1 in 1s, open 8s, by key", GATE_KEY, 1, SLU_SEC, 8 * SLU_SEC },
	{ "v", "v: 2 in 20s, open 9s, by attribute", GATE_VALUE, 2, 20 * SLU_SEC, 9 * SLU_SEC },
	{ "w", "w: 2 in 30s, open 20s, by key", GATE_KEY, 2, 30 * SLU_SEC, 20 * SLU_SEC },
};

struct ledger_model_circuit {
	bool open;         /* or half-open */
	slu_time until;    /* open: the end of the open time; otherwise the end of the window */
	unsigned failures; /* of the window */
	uint64_t probe;    /* the message that went through; 0: none */
};

struct ledger_model_circuits {
	struct ledger_model_circuit of[MODEL_BREAKERS][MODEL_SCOPES];
	unsigned has; /* a bit for each breaker of the policy */
};

static inline bool
circuit_is_shut(const struct ledger_model_circuit *c, slu_time now)
{
	return c->open && (c->until > now || c->probe);
}

/* Returns whether a breaker keeps a scope back. */
static inline bool
circuits_shut(const struct ledger_model_circuits *x, enum gate_kind kind, unsigned scope, slu_time now)
{
	for (unsigned b = 0; b < MODEL_BREAKERS; b++)
		if (model_breakers[b].scope == kind && circuit_is_shut(&x->of[b][scope], now))
			return true;
	return false;
}

/* BREAKERS-1. Returns whether the circuit opens. */
static inline bool
circuits_fail(struct ledger_model_circuits *x, unsigned b, unsigned scope, slu_time now)
{
	struct ledger_model_circuit *c = &x->of[b][scope];

	if (c->open)
		return false;
	if (c->until <= now)
		*c = (struct ledger_model_circuit){ .until = now + model_breakers[b].window };
	if (++c->failures < model_breakers[b].failures)
		return false;
	*c = (struct ledger_model_circuit){ .open = true, .until = now + model_breakers[b].open };
	return true;
}

/* BREAKERS-3: scope[kind] is the scope of the message that is delivered, or -1. */
static inline void
circuits_probe(struct ledger_model_circuits *x, uint64_t id, const int scope[GATE_KINDS], slu_time now)
{
	for (unsigned b = 0; b < MODEL_BREAKERS; b++) {
		const int s = scope[model_breakers[b].scope];
		struct ledger_model_circuit *c = s < 0 ? NULL : &x->of[b][s];

		if (c && c->open && c->until <= now && !c->probe)
			c->probe = id;
	}
}

/* BREAKERS-4 */
static inline void
circuits_end(struct ledger_model_circuits *x, const struct change *change)
{
	const bool failed = change->kind == CHANGE_RETRY || change->kind == CHANGE_DIE;

	for (unsigned b = 0; b < MODEL_BREAKERS; b++)
		for (unsigned s = 0; s < MODEL_SCOPES; s++) {
			struct ledger_model_circuit *c = &x->of[b][s];

			if (!c->probe || c->probe != change->id)
				continue;
			c->probe = 0;
			if (failed)
				c->until = change->at + model_breakers[b].open;
			else if (change->kind == CHANGE_DONE)
				*c = (struct ledger_model_circuit){ 0 };
		}
}

static inline bool
ends_a_lease(enum change_kind kind)
{
	return kind == CHANGE_DONE || kind == CHANGE_RETRY || kind == CHANGE_DIE || kind == CHANGE_RETURN || kind == CHANGE_SPARE;
}

/* LEDGERBREAKER-2: failures are lost at a restart, circuits that are not closed are kept. */
static inline void
circuits_restart(struct ledger_model_circuits *x)
{
	for (unsigned b = 0; b < MODEL_BREAKERS; b++)
		for (unsigned s = 0; s < MODEL_SCOPES; s++)
			if (!x->of[b][s].open)
				x->of[b][s] = (struct ledger_model_circuit){ 0 };
}

/* A new policy: circuits of breakers that it lacks are gone. */
static inline void
circuits_set(struct ledger_model_circuits *x, unsigned has)
{
	for (unsigned b = 0; b < MODEL_BREAKERS; b++)
		if (!(has >> b & 1))
			memset(x->of[b], 0, sizeof x->of[b]);
	x->has = has;
}

#endif
