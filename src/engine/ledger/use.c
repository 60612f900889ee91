/*
 * use.c - OP_LIMITS: what a queue uses of its limits; OP_HOLD: a hold that an operator sets or ends.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/time.h"
#include "core/ledger/use.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Limits ---- */

static void
add_use(struct op *op, const struct ledger_use *u, slu_time now, bool is_hold)
{
	struct op_use *const row = &op->uses[op->n_uses++];

	*row = (struct op_use){
		.kind = (uint8_t)u->kind,
		.is_hold = is_hold,
		.messages = u->messages,
		.ready = u->ready,
		.leased = u->leased,
		.concurrency = u->concurrency,
		.rate = u->rate,
		.burst = u->burst,
		.tokens = u->tokens,
		.weight = u->weight,
		.delivered = u->delivered,
		.until = u->until,
		.hold = u->hold,
		.oldest = u->oldest && u->oldest < now ? now - u->oldest : 0,
	};
	if (u->name.n)
		memcpy(row->name, u->name.p, u->name.n < sizeof row->name ? u->name.n : sizeof row->name - 1);
}

static void
add_shares(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	const uint32_t room = op->max_uses - op->n_uses;
	struct ledger_use shares[OP_USES_SHARES];
	uint32_t n = 0;

	if (room)
		n = ledger_use_shares(k->ledger, queue, op->limits.by_messages, k->now, shares,
				      room < OP_USES_SHARES ? room : OP_USES_SHARES);
	for (uint32_t i = 0; i < n; i++)
		add_use(op, &shares[i], k->now, false);
}

static void
add_values(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	const uint32_t room = op->max_uses - op->n_uses;
	struct ledger_use values[OP_USES_VALUES];
	uint32_t n = 0;

	if (room && !op->limits.by_messages)
		n = ledger_use_values(k->ledger, queue, k->now, values, room < OP_USES_VALUES ? room : OP_USES_VALUES);
	for (uint32_t i = 0; i < n; i++)
		add_use(op, &values[i], k->now, false);
}

static void
add_kinds(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	const uint32_t room = op->max_uses - op->n_uses;
	struct ledger_use kinds[OP_USES_KINDS];
	uint32_t n = 0;

	if (room)
		n = ledger_use_kinds(k->ledger, queue, kinds, room < OP_USES_KINDS ? room : OP_USES_KINDS);
	for (uint32_t i = 0; i < n; i++)
		add_use(op, &kinds[i], k->now, false);
}

static void
add_priorities(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	const uint32_t room = op->max_uses < OP_USES_PRIORITIES ? op->max_uses : OP_USES_PRIORITIES;
	struct ledger_priority rows[OP_USES_PRIORITIES];
	uint32_t cursor = (uint32_t)op->cursor;
	const uint32_t n = ledger_use_priorities(k->ledger, queue, &cursor, rows, room, &op->limits.looked);

	for (uint32_t i = 0; i < n; i++) {
		add_use(op, &(struct ledger_use){ .messages = rows[i].messages, .ready = rows[i].ready, .leased = rows[i].leased }, k->now, false);
		(void)snprintf(op->uses[i].name, sizeof op->uses[i].name, "%" PRId32, rows[i].prio);
	}
	op->cursor = cursor == LEDGER_SCAN_END ? 0 : cursor;
}

static void
add_circuits(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	struct ledger_circuit c;
	uint64_t cursor = 0;
	uint32_t n = 0;

	while (op->n_uses < op->max_uses && n++ < OP_USES_CIRCUITS && ledger_use_breaker(k->ledger, queue, &cursor, &c)) {
		const struct ledger_use u = { .kind = c.scope.kind, .name = c.scope.name, .until = c.until };

		add_use(op, &u, k->now, false);
		op->uses[op->n_uses - 1].circuit = c.state;
		op->uses[op->n_uses - 1].probed = c.probed;
		memcpy(op->uses[op->n_uses - 1].breaker, c.name.p, c.name.n);
	}
}

void
ledgerengine_limits(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	uint64_t before = op->cursor;
	struct ledger_use u;

	op->n_uses = 0;
	if (queue == SLAB_NONE) {
		op_fail(op, SLU_ENOTFOUND, NULL);
		return;
	}
	op->limits.shares = ledger_shares(k->ledger, queue);
	op->limits.holds = ledger_holds(k->ledger, queue);
	op->limits.values = ledger_values(k->ledger, queue);
	op->limits.circuits = ledger_breakers(k->ledger, queue);
	op->limits.kinds = ledger_kinds(k->ledger, queue);
	if (op->limits.by_kind) {
		add_kinds(k, op, queue);
		return;
	}
	if (op->limits.by_priority) {
		add_priorities(k, op, queue);
		return;
	}
	if (!op->cursor) {
		ledger_use_queue(k->ledger, queue, k->now, &u);
		add_use(op, &u, k->now, false);
		add_shares(k, op, queue);
		add_values(k, op, queue);
		add_circuits(k, op, queue);
	}
	while (ledger_use_hold(k->ledger, queue, &op->cursor, k->now, &u)) {
		if (op->n_uses == op->max_uses) {
			op->cursor = before;
			return;
		}
		add_use(op, &u, k->now, true);
		before = op->cursor;
	}
}

/* ---- Holds ---- */

void
ledgerengine_hold(struct ledgerengine *k, struct op *op)
{
	const struct op_limits *const ask = &op->limits;
	const struct ledger_scope scope = { (enum gate_kind)ask->scope, ask->name };
	const uint32_t queue = ledgerengine_queue(k, op);
	const slu_time until = ask->hold ? time_add(k->now, ask->hold) : 0;
	struct slu_err err = { 0 };
	struct change c;
	int rc = queue == SLAB_NONE ? SLU_ENOTFOUND : 0;

	if (!rc && ask->breaker.n)
		rc = ledger_breaker_order(k->ledger, queue, &scope, ask->breaker, until, k->now, &c);
	else if (!rc)
		rc = ledger_hold(k->ledger, queue, &scope, until, k->now, &c);
	if (!rc && c.kind)
		rc = ledgerengine_carry_out(k, &c, (struct slice){ 0 }, &err);
	if (rc)
		op_fail(op, rc, &err);
	else if (ask->breaker.n)
		op->limits.until = ledger_breaker_until(k->ledger, queue, &scope, ask->breaker);
	else
		op->limits.until = ledger_hold_end(k->ledger, queue, scope.kind, scope.name);
}
