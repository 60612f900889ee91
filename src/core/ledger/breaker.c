/*
 * breaker.c - the breakers of queues (core/queue/breakers.h): what feeds them, what they close, what closes them.
 *
 *  LEDGERBREAKER-1  A queue has a struct breakers from its first failure with the name of a breaker on. Without one, its messages cost
 *                   nothing more.
 *  LEDGERBREAKER-2  Failures are counted in memory and lost at a restart. That a circuit opens or closes is a change: it is
 *                   kept. A circuit that ends a probe changes at once, and ledger_breaker_next has the change to write
 *                   down; until that is applied, the circuit is dirty.
 *  LEDGERBREAKER-3  A gate is `broken` while a circuit of its scope is open, or a probe is under way, and `half` while a circuit
 *                   waits for a probe.
 *  LEDGERBREAKER-4  After an open, a lease of the scope that began after the end of the open time is the probe.
 *  LEDGERBREAKER-5  A circuit whose rule a new policy does not have closes, and ledger_breaker_next has the change: otherwise a
 *                   later policy with that rule would find it open after a restart. A replay closes none, because cleaning
 *                   may have written the policy behind the circuits.
 */
#include "core/ledger/ledger_private.h"

#include <assert.h>

static struct slice
rules_of(const struct ledger_queue *q)
{
	return slice_of(q->policy->breakers);
}

/* The name of the gate of a scope; false: the message has no such scope. */
static bool
scope_of(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, enum gate_kind kind, uint64_t *out)
{
	const bool has = kind == GATE_KEY ? (m->flags & MSG_KEYED) != 0 : kind != GATE_VALUE || ledger_strand_of(l, m) != SLAB_NONE;

	*out = has ? ledger_gate_name(l, q, m, kind) : 0;
	return has;
}

/* ---- Gates ---- */

/* LEDGERBREAKER-3 */
static void
set_broken(const struct ledger_queue *q, struct queue_gate *x, slu_time now)
{
	struct slice text = rules_of(q);
	struct breaker_rule rule;

	x->broken = 0;
	x->half = false;
	while (breakers_next(&text, &rule)) {
		const uint32_t h = rule.scope == (enum gate_kind)x->kind ? breakers_find(q->breakers, rule.name, rule.scope, x->name) : SLAB_NONE;
		struct circuit *c = h == SLAB_NONE ? NULL : circuit_at(q->breakers, h);

		if (!c || c->state == CIRCUIT_CLOSED)
			continue;
		if (c->state == CIRCUIT_OPEN && c->until <= now)
			breakers_set(q->breakers, h, CIRCUIT_HALF, c->until);
		if (c->state == CIRCUIT_OPEN && c->until > x->broken)
			x->broken = c->until;
		if (c->state == CIRCUIT_HALF && c->probe != SLAB_NONE)
			x->broken = SLU_NEVER;
		x->half |= c->state == CIRCUIT_HALF && c->probe == SLAB_NONE;
	}
}

void
ledger_breaker_turn(const struct ledger_queue *q, struct queue_gate *x, slu_time now)
{
	if (q->breakers && (x->broken || x->half))
		set_broken(q, x, now);
}

static void
set_gate_of(struct ledger *l, struct ledger_queue *q, enum gate_kind kind, uint64_t name, slu_time now)
{
	uint32_t h;

	if ((!q->gates && gates_new(&q->gates)) || gates_reserve(q->gates, 1))
		return; /* without memory the breaker does not hold */
	h = gates_make(q->gates, kind, name);
	set_broken(q, gate_at(q->gates, h), now);
	ledger_gate_set(l, q, h, now);
}

/* ---- Failures and operators ---- */

int
ledger_breaker_reserve(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	const uint64_t name = c->share.n ? ledger_key_hash(l, q->handle, c->share) : 0;
	int rc = q->breakers ? 0 : breakers_new(&q->breakers);

	if (!rc && !q->gates)
		rc = gates_new(&q->gates);
	if (!rc)
		rc = gates_reserve(q->gates, 1);
	if (!rc && breakers_make(q->breakers, c->value, (enum gate_kind)c->scope, name, c->share) == SLAB_NONE)
		rc = SLU_ENOMEM;
	ledger_count_heaps(l, q);
	return rc;
}

static struct change
begin(const struct ledger *l, uint32_t queue, const struct ledger_scope *scope, struct slice name, slu_time now)
{
	struct change c = ledger_begin(l, CHANGE_BREAKER, now);

	c.queue = queue;
	c.scope = (uint8_t)scope->kind;
	c.share = scope->name;
	c.value = name;
	return c;
}

bool
ledger_breaker_scope(const struct ledger *l, uint32_t queue, struct slice name, enum gate_kind *out)
{
	struct breaker_rule rule;

	if (!name.n || !breakers_rule(rules_of(ledger_queue(l, queue)), name, &rule))
		return false;
	*out = rule.scope;
	return true;
}

int
ledger_breaker_fail(struct ledger *l, uint32_t queue, const struct ledger_scope *scope, struct slice name, slu_time now,
		    struct change *out)
{
	struct ledger_queue *q = ledger_queue(l, queue);
	struct change c = begin(l, queue, scope, name, now);
	struct breaker_rule rule;
	uint32_t h;
	int rc;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (!breakers_rule(rules_of(q), name, &rule) || rule.scope != scope->kind)
		return 0;
	rc = ledger_breaker_reserve(l, &c);
	if (rc)
		return rc;
	h = breakers_find(q->breakers, name, scope->kind, scope->name.n ? ledger_key_hash(l, queue, scope->name) : 0);
	if (circuit_at(q->breakers, h)->state != CIRCUIT_CLOSED || !breakers_fail(q->breakers, h, &rule, c.at))
		return 0;
	c.until = time_add(c.at, rule.open);
	*out = c;
	return 0;
}

int
ledger_breaker_order(struct ledger *l, uint32_t queue, const struct ledger_scope *scope, struct slice name, slu_time until,
		     slu_time now, struct change *out)
{
	struct change c = begin(l, queue, scope, name, now);
	struct breaker_rule rule;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (!breakers_rule(rules_of(ledger_queue(l, queue)), name, &rule) || rule.scope != scope->kind)
		return SLU_ENOTFOUND;
	if (until && until <= c.at)
		return 0;
	c.until = until;
	return ledger_promise(l, &c, out);
}

/* ---- Changes ---- */

static void
free_empty(struct ledger *l, struct ledger_queue *q)
{
	if (q->breakers->slab.used == 0) {
		breakers_free(q->breakers);
		q->breakers = NULL;
	}
	ledger_count_heaps(l, q);
}

void
ledger_put_breaker(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	const uint64_t name = c->share.n ? ledger_key_hash(l, q->handle, c->share) : 0;
	const uint32_t h = breakers_find(q->breakers, c->value, (enum gate_kind)c->scope, name);
	const bool was_dirty = circuit_at(q->breakers, h)->dirty;

	breakers_mark(q->breakers, h, false);
	if (!was_dirty) {
		breakers_set(q->breakers, h, c->until ? CIRCUIT_OPEN : CIRCUIT_CLOSED, c->until);
		q->breakers->opened += c->until && !l->replaying;
		set_gate_of(l, q, (enum gate_kind)c->scope, name, c->at);
	}
	if (circuit_at(q->breakers, h)->state == CIRCUIT_CLOSED)
		breakers_drop(q->breakers, h);
	free_empty(l, q);
}

/* Finds the next dirty circuit. There are few: one for each rule of the message that has just ended. */
bool
ledger_breaker_next(struct ledger *l, slu_time now, struct change *out)
{
	struct ledger_queue *q = l->broken == SLAB_NONE ? NULL : ledger_queue(l, l->broken);

	for (uint32_t h = SLAB_NONE; q && q->breakers && q->breakers->dirty && (h = breakers_each(q->breakers, h)) != SLAB_NONE;) {
		const struct circuit *c = circuit_at(q->breakers, h);
		const struct ledger_scope scope = { (enum gate_kind)c->kind, circuit_scope(c) };

		if (!c->dirty)
			continue;
		*out = begin(l, q->handle, &scope, circuit_name(c), now);
		out->until = c->state == CIRCUIT_CLOSED ? 0 : c->until;
		return true;
	}
	l->broken = SLAB_NONE;
	return false;
}

/* ---- Probes ---- */

typedef void circuit_fn(struct ledger *l, struct ledger_queue *q, uint32_t circuit, uint32_t msg, const struct breaker_rule *rule,
			const struct change *c);

/* Calls fn for every circuit of a message that is not closed, and sets its gate. */
static void
each_circuit(struct ledger *l, struct ledger_queue *q, uint32_t msg, const struct change *c, circuit_fn *fn)
{
	struct slice text = rules_of(q);
	struct breaker_rule rule;
	uint64_t name;

	while (q->breakers->open && breakers_next(&text, &rule)) {
		const bool has = scope_of(l, q, ledger_msg(l, msg), rule.scope, &name);
		const uint32_t h = has ? breakers_find(q->breakers, rule.name, rule.scope, name) : SLAB_NONE;

		if (h == SLAB_NONE || circuit_at(q->breakers, h)->state == CIRCUIT_CLOSED)
			continue;
		fn(l, q, h, msg, &rule, c);
		set_gate_of(l, q, rule.scope, name, c->at);
	}
}

static void
take_probe(struct ledger *l, struct ledger_queue *q, uint32_t circuit, uint32_t msg, const struct breaker_rule *rule,
	   const struct change *c)
{
	struct circuit *const x = circuit_at(q->breakers, circuit);

	(void)l;
	(void)rule;
	(void)c;
	if (x->state == CIRCUIT_HALF && x->probe == SLAB_NONE)
		x->probe = msg;
}

void
ledger_breaker_claim(struct ledger *l, struct ledger_queue *q, uint32_t msg, const struct change *c)
{
	each_circuit(l, q, msg, c, take_probe);
}

/* BREAKERS-4. The end of a lease by a delete of the whole queue counts as a return, as does the end of a message that was
 * canceled. */
static void
end_probe(struct ledger *l, struct ledger_queue *q, uint32_t circuit, uint32_t msg, const struct breaker_rule *rule,
	  const struct change *c)
{
	struct circuit *const x = circuit_at(q->breakers, circuit);
	const bool acked = c->kind == CHANGE_DONE && c->claimed && !ledger_lease(l, ledger_msg(l, msg))->canceled;
	const bool failed = c->kind == CHANGE_RETRY || c->kind == CHANGE_DIE;

	if (x->probe != msg)
		return;
	x->probe = SLAB_NONE;
	if (!acked && !failed)
		return;
	breakers_set(q->breakers, circuit, failed ? CIRCUIT_OPEN : CIRCUIT_CLOSED, failed ? time_add(c->at, rule->open) : 0);
	breakers_mark(q->breakers, circuit, true);
	q->breakers->opened += failed;
	l->broken = q->handle;
}

void
ledger_breaker_end(struct ledger *l, struct ledger_queue *q, uint32_t msg, const struct change *c)
{
	each_circuit(l, q, msg, c, end_probe);
}

/* ---- Settings, opening ---- */

static bool
has_rule(const struct ledger_queue *q, const struct circuit *c)
{
	struct breaker_rule rule;

	return breakers_rule(rules_of(q), circuit_name(c), &rule) && rule.scope == (enum gate_kind)c->kind;
}

/* LEDGERBREAKER-5: circuits whose rule is gone, or has another scope. */
static void
close_old(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	for (uint32_t h = SLAB_NONE; (h = breakers_each(q->breakers, h)) != SLAB_NONE;) {
		const struct circuit c = *circuit_at(q->breakers, h);

		if (has_rule(q, &c))
			continue;
		if (c.state == CIRCUIT_CLOSED && !c.dirty) {
			breakers_drop(q->breakers, h);
			continue;
		}
		breakers_set(q->breakers, h, CIRCUIT_CLOSED, 0);
		breakers_mark(q->breakers, h, true);
		l->broken = q->handle;
		if (q->gates && gates_find(q->gates, (enum gate_kind)c.kind, c.scope) != SLAB_NONE)
			set_gate_of(l, q, (enum gate_kind)c.kind, c.scope, now);
	}
}

void
ledger_breakers_set(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	if (l->replaying)
		return; /* cleaning may have written the policy behind the circuits */
	close_old(l, q, now);
	free_empty(l, q);
}

/* LEDGERBREAKER-4 */
static void
find_probes(struct ledger *l, struct ledger_queue *q, const struct change *c)
{
	for (uint32_t h = q->leased; h != SLAB_NONE && q->breakers->open; h = ledger_lease_next(l, h)) {
		struct change claim = *c;
		struct slice text = rules_of(q);
		struct breaker_rule rule;
		uint64_t name;

		while (breakers_next(&text, &rule)) {
			const bool has = scope_of(l, q, ledger_msg(l, h), rule.scope, &name);
			const uint32_t x = has ? breakers_find(q->breakers, rule.name, rule.scope, name) : SLAB_NONE;

			if (x == SLAB_NONE || circuit_at(q->breakers, x)->state != CIRCUIT_HALF ||
			    ledger_lease(l, ledger_msg(l, h))->claimed < circuit_at(q->breakers, x)->until)
				continue;
			take_probe(l, q, x, h, &rule, &claim);
			set_gate_of(l, q, rule.scope, name, c->at);
		}
	}
}

void
ledger_breakers_open(struct ledger *l, struct ledger_queue *q, const struct change *c)
{
	for (uint32_t h = SLAB_NONE; (h = breakers_each(q->breakers, h)) != SLAB_NONE;)
		if (!has_rule(q, circuit_at(q->breakers, h))) /* of a log in which LEDGERBREAKER-5 did not hold yet */
			breakers_drop(q->breakers, h);
		else if (circuit_at(q->breakers, h)->state == CIRCUIT_OPEN)
			set_gate_of(l, q, (enum gate_kind)circuit_at(q->breakers, h)->kind, circuit_at(q->breakers, h)->scope, c->at);
	find_probes(l, q, c);
	free_empty(l, q);
}

/* ---- Looks ---- */

slu_time
ledger_breaker_until(const struct ledger *l, uint32_t queue, const struct ledger_scope *scope, struct slice name)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	const uint32_t h = q->breakers ? breakers_find(q->breakers, name, scope->kind, scope->name.n ? ledger_key_hash(l, queue, scope->name) : 0) : SLAB_NONE;

	return h == SLAB_NONE || circuit_at(q->breakers, h)->state == CIRCUIT_CLOSED ? 0 : circuit_at(q->breakers, h)->until;
}

struct slice
ledger_breaker_of(const struct ledger *l, uint32_t msg)
{
	const struct msg *m = ledger_msg(l, msg);
	const struct ledger_queue *q = ledger_queue_of(l, m);
	struct slice text = rules_of(q);
	struct breaker_rule rule;
	uint64_t name;

	while (q->breakers && q->breakers->open && breakers_next(&text, &rule)) {
		const uint32_t h = scope_of(l, q, m, rule.scope, &name) ? breakers_find(q->breakers, rule.name, rule.scope, name) : SLAB_NONE;
		const struct circuit *c = h == SLAB_NONE ? NULL : circuit_at(q->breakers, h);

		if (c && (c->state == CIRCUIT_OPEN || (c->state == CIRCUIT_HALF && c->probe != SLAB_NONE)))
			return circuit_name(c);
	}
	return (struct slice){ 0 };
}

bool
ledger_use_breaker(const struct ledger *l, uint32_t queue, uint64_t *cursor, struct ledger_circuit *out)
{
	const struct breakers *b = ledger_queue(l, queue)->breakers;
	uint32_t h = *cursor ? (uint32_t)*cursor - 1 : SLAB_NONE;

	while (b && (h = breakers_each(b, h)) != SLAB_NONE) {
		const struct circuit *c = circuit_at(b, h);

		*cursor = (uint64_t)h + 1;
		if (c->state == CIRCUIT_CLOSED)
			continue;
		*out = (struct ledger_circuit){
			.name = circuit_name(c),
			.scope = { (enum gate_kind)c->kind, circuit_scope(c) },
			.state = c->state,
			.until = c->until,
			.probed = c->probe != SLAB_NONE,
		};
		return true;
	}
	*cursor = 0;
	return false;
}

uint32_t
ledger_breakers(const struct ledger *l, uint32_t queue)
{
	const struct breakers *b = ledger_queue(l, queue)->breakers;

	return b ? b->open : 0;
}
