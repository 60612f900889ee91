/*
 * Links between nodes, in a world that follows from one number: PEER-1, PEER-2.
 *
 *      client ──> node: broker, lanes, peernet_call.c ──> link ── wire ──> peernet_serve.c, broker
 *                                                                               │
 *                                          the shards: one engine each, for whichever node owns it
 *
 * Nodes, brokers, links and codec are real; wires and shards are the world's. Wires carry a few bytes at a
 * time and break anywhere, and each end notices later. Nodes die with ops on their way, also as entry
 * nodes with grants that no client has; nodes stop; owners are deposed and learn it later. What must hold:
 *
 *  ONCE      an op that changes something runs at most once, whatever it is answered.
 *  ANSWERED  an op of a node that lives is answered exactly once.
 *  NOTHING   an op that was refused has not run; an op that was answered has.
 *  UNKNOWN   an outcome is unknown only if the op changes something and its first byte has left.
 *  ONE HOP   only the node that the client asked sends an op to another node.
 *  GRANTS    only the node that the client asked returns what the client did not receive.
 *  NO LEAK   at the end no link and no node has an op.
 *
 * LINKS_SEEDS=100000 LINKS_FROM=1 for more schedules; a failure prints its number.
 */
#include "links_world.h"
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>

struct links_world world;

uint64_t
dice(uint64_t n)
{
	world.dice ^= world.dice << 13;
	world.dice ^= world.dice >> 7;
	world.dice ^= world.dice << 17;
	return (world.dice >> 11) % n;
}

slu_time
links_now(void)
{
	return clock_mono(&world.clock.clock);
}

/* ---- Clients ---- */

static bool
is_current(const struct client *c)
{
	return world.nodes[c->node].alive && world.nodes[c->node].birth == c->birth;
}

bool
is_on_its_way(const struct client *c)
{
	const struct links_truth *const t = &world.ops[c->serial];

	return c->busy && !c->returns && is_current(c) && t->left && t->answers == 0;
}

static void
check_answer(const struct client *c)
{
	struct links_truth *const t = &world.ops[c->serial];
	const int rc = c->op.rc;

	MUST("ANSWERED", ++t->answers == 1);
	if (rc == SLU_EUNKNOWN) {
		world.unknown++;
		MUST("UNKNOWN", t->left && t->verb != OP_PEEK);
	} else if (rc) {
		world.refused++;
		MUST("NOTHING", t->ran == 0);
	} else {
		world.answered++;
		MUST("NOTHING", t->verb != OP_ENQUEUE || t->ran == 1);
		MUST("NOTHING", t->verb != OP_CLAIM || t->ran == (c->op.n_rows > 0));
	}
}

/* The client hung up: the node gives back what it was granted. */
static bool
gives_back(struct client *c)
{
	struct op *const op = &c->op;

	if (op->verb != OP_CLAIM || op->rc || op->n_rows == 0 || !(c->canceled || dice(3) == 0))
		return false;
	for (uint32_t i = 0; i < op->n_rows; i++)
		world.returned[op->route.lane][op->rows[i].token % TOKENS] = true;
	world.given_back++;
	c->returns = true;
	return broker_return(world.nodes[c->node].broker, op, 0) == 0;
}

static void
on_done(struct op *op)
{
	struct client *const c = op->owner;

	if (!c->returns && is_current(c)) {
		check_answer(c);
		if (op->verb == OP_CLAIM && op->rc == 0)
			world.granted += op->n_rows;
		if (gives_back(c))
			return;
	}
	op_unpin(op);
	free(c->payload);
	c->payload = NULL;
	c->busy = false;
}

static void
fill_put(struct client *c)
{
	const size_t n = dice(8) ? 10 : LARGE;

	c->payload = malloc(n + 1);
	CHECK(c->payload);
	memset(c->payload, 'x', n);
	memcpy(c->payload, c->taker, 10);
	c->put = (struct op_put){ .m.payload = { c->payload, n }, .m.max_attempts = 100 };
	c->op.puts = &c->put;
	c->op.n_puts = 1;
}

static void
begin(struct client *c)
{
	static const enum op_verb verbs[] = { OP_ENQUEUE, OP_ENQUEUE, OP_CLAIM, OP_CLAIM, OP_PEEK };
	const enum op_verb verb = verbs[dice(COUNT(verbs))];
	const unsigned i = (unsigned)dice(NODES);
	int rc;

	if (c->busy || !world.nodes[i].alive || world.serial + 1 == SERIALS)
		return;
	c->serial = ++world.serial;
	c->node = i;
	c->birth = world.nodes[i].birth;
	c->busy = true;
	c->canceled = c->returns = false;
	world.ops[c->serial] = (struct links_truth){ .node = i, .verb = verb };
	(void)snprintf(c->taker, sizeof c->taker, "#%08u?", c->serial);
	(void)snprintf(c->queue, sizeof c->queue, "q%u", (unsigned)dice(4));
	op_init(&c->op, verb, SLICE("ns"), slice_of(c->queue), on_done, c);
	if (verb == OP_ENQUEUE) {
		fill_put(c);
	} else {
		c->op.rows = c->rows;
		c->op.max_rows = ROWS;
		c->op.claim.holder = slice_of(c->taker);
		c->op.claim.lease = 3 * SLU_SEC;
		c->op.wait = dice(2) ? 0 : (slu_time)dice(3000) * SLU_MS;
	}
	rc = broker_post(world.nodes[i].broker, &c->op);
	if (rc) {
		op_fail(&c->op, rc, NULL);
		on_done(&c->op);
	}
}

static void
hang_up(struct client *c)
{
	if (!c->busy || c->canceled || c->returns || !is_current(c))
		return;
	c->canceled = true;
	broker_cancel(world.nodes[c->node].broker, &c->op);
}

/* ---- A schedule ---- */

static void
break_wire(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WIRES; i++)
		n += wires[i].used;
	n = n ? (unsigned)dice(n) : 0;
	for (unsigned i = 0; i < WIRES; i++)
		if (wires[i].used && n-- == 0)
			wire_break(&wires[i]);
}

static void
trouble(void)
{
	const unsigned i = (unsigned)dice(NODES);

	switch (dice(12)) {
	case 0:
	case 1:
	case 2:
	case 3:
		break_wire();
		break;
	case 4:
	case 5:
		change_owner((uint32_t)dice(SHARDS));
		break;
	case 6:
		if (world.nodes[i].alive)
			kill_node(i);
		break;
	case 7:
		if (world.nodes[i].alive && !world.nodes[i].stopping)
			stop_node(i);
		break;
	case 8:
	case 9:
	case 10:
		if (!world.nodes[i].alive)
			start_node(i);
		break;
	default:
		fakeclock_advance(&world.clock, (slu_time)dice(6000) * SLU_MS);
	}
}

static void
move_wires(size_t most)
{
	for (unsigned i = 0; i < WIRES; i++) {
		const unsigned end = (unsigned)dice(2);

		if (!wires[i].used)
			continue;
		wire_carry(&wires[i], end, world.quiet ? SIZE_MAX : dice(most) + 1);
		if (world.quiet)
			wire_carry(&wires[i], !end, SIZE_MAX);
		if (world.quiet || dice(4) == 0)
			wire_notice(&wires[i], end);
	}
}

static void
step(void)
{
	begin(&world.clients[dice(CLIENTS)]);
	if (dice(6) == 0)
		hang_up(&world.clients[dice(CLIENTS)]);
	move_wires(dice(4) ? 200 : 200000);
	for (unsigned i = 0; i < NODES; i++)
		if (dice(3))
			turn_node(i);
	if (dice(2)) {
		const unsigned i = (unsigned)dice(NODES);

		if (world.nodes[i].alive && !world.nodes[i].stopping)
			tell_owner(i, (uint32_t)dice(SHARDS));
	}
	for (uint32_t s = 0; s < SHARDS; s++)
		if (world.owner[s] == UINT_MAX && dice(8) == 0)
			change_owner(s);
	if (dice(30) == 0)
		trouble();
	fakeclock_advance(&world.clock, (slu_time)dice(20) * SLU_MS);
}

static bool
is_busy(void)
{
	bool busy = false;

	for (unsigned i = 0; i < CLIENTS; i++)
		busy |= world.clients[i].busy;
	return busy;
}

/* All wires carry, all nodes are told: every op ends. */
static void
settle(void)
{
	world.quiet = true;
	for (unsigned i = 0; i < NODES; i++)
		if (world.nodes[i].alive && world.nodes[i].stopping)
			kill_node(i);
	for (unsigned i = 0; i < NODES; i++)
		if (!world.nodes[i].alive)
			start_node(i);
	for (int round = 0; round < 2000 && (is_busy() || round < 20); round++) {
		for (uint32_t s = 0; s < SHARDS; s++) {
			if (world.owner[s] == UINT_MAX)
				change_owner(s);
			for (unsigned i = 0; i < NODES; i++)
				tell_owner(i, s);
		}
		move_wires(1);
		for (unsigned i = 0; i < NODES; i++)
			turn_node(i);
		fakeclock_advance(&world.clock, 50 * SLU_MS);
	}
	MUST("ANSWERED", !is_busy());
	for (unsigned i = 0; i < NODES; i++) {
		MUST("NO LEAK", world.nodes[i].net.serving == 0 && list_is_empty(&world.nodes[i].net.asks));
		LIST_EACH(each, &world.nodes[i].net.callees)
			MUST("NO LEAK", CONTAINER(each, struct peer_callee, node)->sock.link.ops == 0);
		LIST_EACH(each, &world.nodes[i].net.guests)
			MUST("NO LEAK", CONTAINER(each, struct peer_guest, node)->sock.link.ops == 0);
	}
}

static void
run(uint64_t seed)
{
	const struct fakeclock none = { 0 };

	world.clock = none;
	world.seed = seed;
	world.dice = seed * 0x9e3779b97f4a7c15 + 1;
	world.quiet = false;
	world.serial = 0;
	memset(world.returned, 0, sizeof world.returned);
	memset(world.epochs, 0, sizeof world.epochs);
	fakeclock_init(&world.clock, SLU_HOUR, 1000 * SLU_HOUR);
	open_shards();
	for (unsigned i = 0; i < NODES; i++)
		start_node(i);
	for (uint32_t s = 0; s < SHARDS; s++)
		change_owner(s);
	for (int i = 0; i < STEPS; i++)
		step();
	settle();
	for (unsigned i = 0; i < NODES; i++)
		kill_node(i);
	wires_release();
	close_shards();
	fakeclock_release(&world.clock);
}

TEST_LIMIT(an_op_runs_at_most_once_whatever_breaks, 600)
{
	world.log = slu_log_new(SLU_LOG_OFF, SLU_LOG_LOGFMT, NULL, NULL);
	EACH_SEED(seed, seeds_of("LINKS", 200))
	run(seed);
	slu_log_free(world.log);
	printf("# %lu answered, %lu refused, %lu unknown, %lu granted, %lu claims given back, %lu questions over links\n",
	       world.answered, world.refused, world.unknown, world.granted, world.given_back, world.sent);
	printf("# %lu grants whose entry node died, %lu ops whose owner was deposed\n", world.orphaned, world.deposed);
	CHECK(world.answered > 0 && world.refused > 0 && world.unknown > 0 && world.given_back > 0 && world.sent > 0);
	CHECK(world.orphaned > 0 && world.deposed > 0);
}
