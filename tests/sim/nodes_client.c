/*
 * nodes_client.c - the clients of test_nodes_sim.c. Their calls go into a history that
 * torture/check.h checks: I1 to I9.
 */
#include "nodes_world.h"

#include "torture/history.h"

#include <stdio.h>

enum {
	KEYS = 3 /* of a queue */
};

/* ---- Calls ---- */

static void
make_push(struct sim_client *c)
{
	c->op.n = 1 + (uint32_t)dice(NODES_ROWS);
	for (uint32_t i = 0; i < c->op.n; i++) {
		c->op.items[i] = (struct sim_item){
			.name = ++world.names,
			.key = dice(2) ? 1 + c->op.queue * KEYS + (uint32_t)dice(KEYS) : 0,
			.idem = dice(3) == 0,
			.time = dice(6) == 0 ? dice_ms(4000) : 0,
		};
	}
}

/* The call has ended, so the messages may be sent again. */
static void
keep_idempotent(const struct sim_client *c)
{
	for (uint32_t i = 0; i < c->op.n && c->op.verb == DO_PUSH; i++)
		if (c->op.items[i].idem) {
			world.again_queue[world.n_again % AGAIN] = c->op.queue;
			world.again[world.n_again++ % AGAIN] = c->op.items[i];
		}
}

/* A message with an idempotency key is sent again. */
static bool
push_again(struct sim_client *c)
{
	const unsigned n = world.n_again < AGAIN ? world.n_again : AGAIN;
	const unsigned i = n ? (unsigned)dice(n) : 0;

	if (n == 0)
		return false;
	c->op.queue = world.again_queue[i];
	c->op.n = 1;
	c->op.items[0] = world.again[i];
	return true;
}

static bool
settle_held(struct sim_client *c)
{
	static const enum sim_verb verbs[] = { DO_ACK, DO_ACK, DO_ACK, DO_NACK, DO_EXTEND };
	const unsigned i = world.n_held ? (unsigned)dice(world.n_held) : 0;
	struct sim_held h;

	if (world.n_held == 0)
		return false;
	h = world.held[i];
	c->op.verb = verbs[dice(COUNT(verbs))];
	c->op.queue = h.queue;
	c->op.n = 1;
	c->op.items[0] = (struct sim_item){ .id = h.id, .token = h.token, .name = h.name };
	if (c->op.verb == DO_EXTEND)
		c->op.items[0].time = SLU_SEC + dice_ms(8000);
	if (c->op.verb == DO_NACK) {
		c->op.items[0].dead = dice(8) == 0;
		c->op.items[0].time = dice(2) ? dice_ms(2000) : 0;
	}
	world.held[i] = world.held[--world.n_held]; /* one call for it at a time */
	return true;
}

static void
choose_call(struct sim_client *c)
{
	const uint64_t what = dice(100);

	c->op = (struct sim_ask_op){ .serial = ++world.serial, .queue = (unsigned)dice(NODES_QUEUES), .n = 1 };
	if (what < 45 && settle_held(c))
		return;
	if (what < 75) {
		c->op.verb = DO_PUSH;
		if (dice(6) || !push_again(c))
			make_push(c);
		return;
	}
	c->op.verb = DO_CLAIM;
	c->op.n = 1 + (uint32_t)dice(NODES_ROWS);
	c->op.wait = dice(2) ? dice_ms(3000) : 0;
	c->op.lease = SLU_SEC + (dice(2) ? dice_ms(2000) : dice_ms(20000));
}

/* ---- The history ---- */

static const enum event_kind kinds[] = {
	[DO_PUSH] = EVENT_PUSH,
	[DO_CLAIM] = EVENT_CLAIM,
	[DO_ACK] = EVENT_ACK,
	[DO_NACK] = EVENT_NACK,
	[DO_EXTEND] = EVENT_EXTEND,
};

static enum outcome
outcome_of(int rc)
{
	return rc == 0 ? OUTCOME_OK : rc == SLU_EUNKNOWN ? OUTCOME_UNKNOWN
							 : OUTCOME_FAILED;
}

static struct event
event_of(const struct sim_client *c, enum outcome outcome)
{
	return (struct event){
		.kind = (uint8_t)kinds[c->op.verb],
		.start = c->start,
		.end = world.now,
		.outcome = (uint8_t)outcome,
		.client = (uint16_t)(c - world.clients),
		.call = c->op.serial,
	};
}

static void
note_parts(const struct sim_client *c, enum outcome outcome, const struct told_reply *r)
{
	for (uint32_t i = 0; i < c->op.n; i++) {
		struct event e = event_of(c, outcome);
		const struct sim_item *const it = &c->op.items[i];

		e.index = i;
		e.name = it->name;
		e.id = it->id;
		e.token = it->token;
		e.key = it->key;
		if (c->op.verb == DO_PUSH && outcome == OUTCOME_OK)
			e.id = r->rows[i].id;
		if (c->op.verb != DO_PUSH && outcome == OUTCOME_OK) {
			e.outcome = (uint8_t)outcome_of(r->rows[i].rc);
			e.until = r->rows[i].until;
			e.state = r->rows[i].died ? STATE_DEAD : 0;
		}
		history_add(&world.history, &e);
		world.pushed += c->op.verb == DO_PUSH && e.outcome == OUTCOME_OK;
		world.acked += c->op.verb == DO_ACK && e.outcome == OUTCOME_OK;
	}
}

static void
note_claims(const struct sim_client *c, const struct told_reply *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct told_row *const row = &r->rows[i];
		struct event e = event_of(c, OUTCOME_OK);

		e.id = row->id;
		e.token = row->token;
		e.name = row->name;
		e.key = row->key;
		e.granted = row->granted;
		e.until = row->until;
		e.due = row->due;
		e.attempts = row->attempts;
		e.failures = row->failures;
		e.max_attempts = row->max_attempts;
		e.damaged = row->damaged;
		history_add(&world.history, &e);
		world.claimed++;
		if (world.n_held < HELD)
			world.held[world.n_held++] = (struct sim_held){ row->id, row->token, row->name, c->op.queue };
	}
}

/* The message is still held after an extend; and some clients settle twice. */
static void
hold_again(const struct sim_client *c)
{
	const struct sim_item *const it = &c->op.items[0];

	if (c->op.verb < DO_ACK || world.n_held == HELD || (c->op.verb != DO_EXTEND && dice(10)))
		return;
	world.held[world.n_held++] = (struct sim_held){ it->id, it->token, it->name, c->op.queue };
}

static void
end_call(struct sim_client *c, enum outcome outcome, const struct told_reply *r)
{
	if (c->copied && outcome == OUTCOME_FAILED)
		outcome = OUTCOME_UNKNOWN;
	trace("call %u: %s", c->op.serial, outcomes[outcome]);
	c->waits = c->posted = false;
	c->at = world.now + dice_ms(300);
	world.unknown += outcome == OUTCOME_UNKNOWN;
	if (c->op.verb == DO_CLAIM && outcome == OUTCOME_OK)
		note_claims(c, r);
	else if (c->op.verb != DO_CLAIM)
		note_parts(c, outcome, r);
	hold_again(c);
	keep_idempotent(c);
}

/* ---- Time ---- */

/* The node that answered last, or any. */
static struct world_node *
choose_node(const struct sim_client *c)
{
	unsigned i = world.hint[c->op.queue];

	if (dice(8) == 0 || !world.nodes[i].up)
		i = (unsigned)dice(NODES);
	return &world.nodes[i];
}

static void
post(struct sim_client *c, struct world_node *n)
{
	struct ask a = { .kind = ASK_POST, .op = c->op };

	trace("call %u to node %u: %s of queue %u, id %" PRIx64, c->op.serial, c->node, event_kinds[kinds[c->op.verb]],
	      c->op.queue, c->op.items[0].id);
	c->posted = true;
	c->copied = false;
	c->at = world.now + SLU_SEC + c->op.wait + dice_ms(8000); /* then it gives up */
	ask_node(n, &a);
}

static void
begin_call(struct sim_client *c)
{
	struct world_node *n;

	if (world.quiet) {
		c->at = SLU_NEVER;
		return;
	}
	choose_call(c);
	n = choose_node(c);
	c->start = world.now;
	c->at = world.now + dice_ms(300);
	if (!n->up)
		return; /* nothing was sent */
	c->waits = true;
	c->node = (unsigned)(n - world.nodes);
	c->birth = n->birth;
}

void
run_client(struct sim_client *c)
{
	struct world_node *const n = &world.nodes[c->node];

	if (!c->waits)
		begin_call(c);
	else if (c->posted)
		end_call(c, OUTCOME_UNKNOWN, NULL);
	else if (n->awake > world.now)
		c->at = n->awake;
	else
		post(c, n);
}

/* The rows of a page of the look. */
static void
note_rows(const struct node_told *t)
{
	const uint32_t look = history_look_next(&world.history);

	for (uint32_t i = 0; i < t->n_list; i++) {
		const struct told_row *const row = &t->list[i];
		struct event e = {
			.kind = EVENT_ROW,
			.start = world.now,
			.end = world.now,
			.id = row->id,
			.name = row->name,
			.state = row->state,
			.call = look,
			.attempts = row->attempts,
			.failures = row->failures,
			.max_attempts = row->max_attempts,
		};

		MUST("PAYLOAD", !row->damaged);
		world.look.large += row->large;
		history_add(&world.history, &e);
		e.kind = EVENT_DEAD;
		if (row->state == STATE_DEAD)
			history_add(&world.history, &e);
	}
}

void
on_reply(const struct world_node *n, const struct node_told *t, const struct told_reply *r)
{
	if (r->serial == world.look.serial) {
		world.look.over = true;
		world.look.reply = *r;
		if (r->rc == 0)
			note_rows(t);
		return;
	}
	EACH(i, world.clients) {
		struct sim_client *const c = &world.clients[i];

		if (!c->waits || c->op.serial != r->serial || &world.nodes[c->node] != n || c->birth != n->birth)
			continue;
		if (r->rc == SLU_EMOVED)
			world.moved++;
		world.hint[c->op.queue] = r->rc == 0 ? c->node : (unsigned)dice(NODES);
		end_call(c, outcome_of(r->rc), r);
	}
}

void
lose_calls(const struct world_node *n)
{
	EACH(i, world.clients) {
		struct sim_client *const c = &world.clients[i];

		if (c->waits && &world.nodes[c->node] == n && c->birth == n->birth)
			end_call(c, c->posted ? OUTCOME_UNKNOWN : OUTCOME_FAILED, NULL);
	}
}

/* The copy of the node has the calls, too, and may do what its original could not. */
void
copy_calls(const struct world_node *n)
{
	EACH(i, world.clients) {
		struct sim_client *const c = &world.clients[i];

		if (c->posted && &world.nodes[c->node] == n && c->birth == n->birth)
			c->copied = true;
	}
}

void
end_calls(void)
{
	EACH(i, world.clients)
		if (world.clients[i].waits)
			end_call(&world.clients[i], OUTCOME_UNKNOWN, NULL);
	EACH(i, world.clients)
		world.clients[i].at = SLU_NEVER;
}

/* ---- The look at the end ---- */

/* One call of the look. Returns its answer when a node has given it. */
static const struct told_reply *
look_call(struct sim_ask_op *op)
{
	for (unsigned tries = 0; tries < 1000; tries++) {
		world.look.serial = op->serial = ++world.serial;
		world.look.over = false;
		ask_node(&world.nodes[0], &(struct ask){ .kind = ASK_POST, .op = *op });
		for (unsigned i = 0; i < 1000 && !world.look.over; i++)
			go_to(world.now + 10 * SLU_MS);
		if (world.look.over && (world.look.reply.rc == 0 || world.look.reply.rc == SLU_ENOTFOUND))
			return &world.look.reply;
		go_to(world.now + 50 * SLU_MS);
	}
	test_fail(__FILE__, __LINE__, "NODES_FROM=%" PRIu64 ": no node serves queue %u", world.seed, op->queue);
}

static void
count(unsigned queue, struct look *look)
{
	struct sim_ask_op op = { .queue = queue, .n = 1, .verb = DO_COUNT };
	const struct told_reply *const r = look_call(&op);

	for (unsigned i = 0; i < STATES; i++)
		look->counts[i] += r->counts[i];
}

static void
list(unsigned queue)
{
	struct sim_ask_op op = { .queue = queue, .n = 1, .verb = DO_LOOK };

	do
		op.cursor = look_call(&op)->cursor;
	while (op.cursor);
}

/* A look while nothing changes: no lease ends, no message falls due. */
static void
look_at_rest(void)
{
	const size_t begin = world.history.n;

	for (;;) {
		const slu_time start = world.now;
		struct look before = { 0 }, after = { 0 };

		world.look.large = 0;
		for (unsigned q = 0; q < NODES_QUEUES; q++)
			count(q, &before);
		for (unsigned q = 0; q < NODES_QUEUES; q++)
			list(q);
		for (unsigned q = 0; q < NODES_QUEUES; q++)
			count(q, &after);
		if (memcmp(&before, &after, sizeof after) == 0) {
			history_look(&world.history, &after, start, world.now);
			return;
		}
		history_cut(&world.history, begin);
	}
}

static void
print_finding(const struct finding *f)
{
	for (size_t i = 0; i < f->n_events; i++) {
		const struct event *const e = f->events[i];

		printf("#   %.3f - %.3f s %s %s: name %" PRIu64 ", id %" PRIx64 ", token %" PRIu64
		       ", granted %.3f, until %.3f\n",
		       (double)e->start / 1e9, (double)e->end / 1e9, event_kinds[e->kind], outcomes[e->outcome], e->name,
		       e->id, e->token, (double)(e->granted % (100000 * SLU_SEC)) / 1e9,
		       (double)(e->until % (100000 * SLU_SEC)) / 1e9);
	}
}

void
check_history(void)
{
	struct check check;
	struct slu_err err = { 0 };
	const struct check_rule *worst;

	look_at_rest();
	check_payloads(world.look.large);
	check_init(&check, &world.history);
	CHECK_EQ(0, check_run(&check, &err), err.text);
	worst = check_worst(&check);
	if (worst) {
		print_finding(&check.found[worst - check_rules]);
		test_fail(__FILE__, __LINE__, "NODES_FROM=%" PRIu64 " %s: %s", world.seed, worst->id,
			  check.found[worst - check_rules].text);
	}
	check_release(&check);
}
