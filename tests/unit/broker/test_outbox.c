/*
 * The outbox between the two shards "a" and "b" of a broker without threads. Queue "q" lives on a, "far" on b.
 */
#include "broker_kit.h"

#include "broker/broker_private.h"
#include "broker/outbox.h"
#include "engine/log/logengine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	A, /* lanes */
	B,
	PARENTS = 200,
	KILLS = 12
};

static const char *const names[] = { "a", "b" };
static struct broker_shard_conf shards[2];

static void
start(const struct engine_ops *engine)
{
	static const struct supplier_rule rules[] = { { SUPPLIER_COMMAND, "far", "b" } };
	struct broker_conf conf = { .shards = shards, .n_shards = 2, .clock = &fake.clock, .by_hand = true };

	by_hand = true;
	for (unsigned i = 0; i < 2; i++) {
		shards[i] = (struct broker_shard_conf){ .name = names[i], .engine = engine };
		shards[i].storage.folder = engine->durable ? names[i] : NULL;
		shards[i].storage.sync = ENGINE_SYNC_NONE;
	}
	conf.map = new_map(names, 2, 1, new_supplier("a", rules, COUNT(rules)), NULL);
	open_broker(&conf);
}

static void
before(void)
{
	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
}

static void
after(void)
{
	close_broker();
	fakeclock_release(&fake);
}

FIXTURE(before, after);

static void
push(const char *text)
{
	struct op_call c;

	call(&c, OP_ENQUEUE, "q");
	c.put.m.payload = slice_of(text);
	c.put.m.payload_size = c.put.m.payload.n;
	CHECK_EQ(0, run(&c));
}

/* A claim of q, then an ack with a message for `far` that has the text. Returns false if q is empty. */
static bool
make_finish(struct op_call *c, const char *text)
{
	struct op_call taken;
	uint64_t id, token;

	id = claim(&taken, "q");
	token = taken.rows[0].token;
	call(c, OP_FINISH, "q");
	c->op.n_puts = 1;
	c->put.m.queue = SLICE("far");
	c->put.m.key = SLICE("k");
	c->put.m.payload = slice_of(text);
	c->put.m.payload_size = c->put.m.payload.n;
	c->item.id = id;
	c->item.token = token;
	return id != 0;
}

/* Messages of a queue, as its lane has them. */
static uint32_t
count_at(uint32_t lane, const char *space, const char *queue)
{
	struct op_call c;
	uint32_t n = 0;

	op_call_init(&c, OP_STATS, space, queue, on_done);
	if (run_at(&c, lane))
		return 0;
	for (unsigned i = 0; i < MSG_STATES; i++)
		n += c.queue.count[i];
	return n;
}

/* One round of a shard that is awake. */
static bool
step(uint32_t lane)
{
	return lane_sleeps(b->lanes[lane]) <= clock_boot(&fake.clock) && lane_round(b->lanes[lane]);
}

/* Only the shard a goes on. */
static void
turn_a(void)
{
	while (step(A))
		;
}

/* Acks a parent with a child. The shard b has no round. */
static void
post_to_a(const struct engine_ops *engine, struct op_call *c)
{
	start(engine);
	push("parent");
	make_finish(c, "child");
	CHECK_EQ(0, broker_post(b, &c->op));
	turn_a();
}

TEST(the_ack_waits_for_the_other_shard)
{
	static struct op_call c;

	start(&engine_memory);
	push("parent");
	make_finish(&c, "child");
	CHECK_EQ(0, run(&c));
	CHECK(!c.put.pending);
	CHECK_EQ(1, count_at(B, "ns", "far"));
	CHECK_EQ(0, count_at(A, "ns", "far"));
	CHECK_EQ(0, count_at(A, OUTBOX_SPACE, "b"));
	CHECK_EQ(c.put.m.id, claim(&c, "far"));
}

TEST(an_ack_is_answered_though_the_other_shard_hangs)
{
	static struct op_call c;

	post_to_a(&engine_memory, &c);
	CHECK_EQ(0, c.done);
	fakeclock_advance(&fake, OUTBOX_WAIT);
	turn_a();
	CHECK_EQ(1, c.done);
	CHECK_EQ(0, c.op.rc);
	CHECK(c.put.pending);
	turn();
	CHECK_EQ(1, count_at(B, "ns", "far"));
	CHECK_EQ(0, count_at(A, OUTBOX_SPACE, "b"));
}

TEST(a_canceled_ack_gets_its_answer)
{
	static struct op_call c;

	post_to_a(&engine_memory, &c);
	broker_cancel(b, &c.op);
	turn();
	CHECK_EQ(0, rc_of(&c));
	CHECK_EQ(1, count_at(B, "ns", "far"));
}

/* Acks a parent with a child, and ends before the shard b had a round. */
static void
leave_a_child(void)
{
	static struct op_call c;

	post_to_a(&engine_log, &c);
	_exit(c.done); /* 0: the ack waits for the shard b */
}

/* Runs a function in a process of its own, which ends by _exit. Returns its code. */
static int
code_of(void (*body)(void))
{
	const pid_t child = fork();
	int status;

	if (child == 0)
		body();
	CHECK(child > 0);
	CHECK_EQ(child, waitpid(child, &status, 0));
	return WEXITSTATUS(status);
}

TEST(what_is_left_is_sent_after_a_start)
{
	CHECK_EQ(0, code_of(leave_a_child));
	start(&engine_log);
	turn();
	CHECK_EQ(1, count_at(B, "ns", "far"));
	CHECK_EQ(0, count_at(A, OUTBOX_SPACE, "b"));
	CHECK_EQ(0, count_at(A, "ns", "q"));
}

static void
send_letters(const char *from, const char *to)
{
	struct op_call c;

	call(&c, OP_POLICY_SET, from);
	c.op.policy = policy_default;
	(void)snprintf(c.op.policy.dead_letter_queue, sizeof c.op.policy.dead_letter_queue, "%s", to);
	CHECK_EQ(0, run(&c));
}

/* The process ends by a step of the dice, or the shards go on: both, or one alone. */
static void
throw_dice(void)
{
	const long dice = random() % 16;

	if (dice == 0)
		_exit(0);
	if (dice < 8)
		turn();
	else
		(void)step(dice % 2); /* it may sleep */
}

/* Acks parents with children until the dice ends the process. */
static void
live(unsigned seed)
{
	static struct op_call calls[PARENTS];
	static char texts[PARENTS][16];

	for (unsigned i = 0; i < PARENTS; i++) {
		(void)snprintf(texts[i], sizeof texts[i], "%u-%u", seed, i);
		if (!make_finish(&calls[i], texts[i]))
			return;
		CHECK_EQ(0, broker_post(b, &calls[i].op));
		throw_dice();
	}
}

/* Fills q, and lets processes run `body`, which are killed. Every message is then in one of the two queues, once. */
static void
check_kills(const char *dead_letters, void (*body)(unsigned seed))
{
	uint32_t left;

	start(&engine_log);
	if (dead_letters)
		send_letters("q", dead_letters);
	for (unsigned i = 0; i < PARENTS; i++)
		push("parent");
	close_broker();
	for (unsigned i = 1; i <= KILLS; i++) {
		const pid_t child = fork();

		if (child == 0) {
			srandom(i);
			start(&engine_log);
			body(i);
			_exit(0);
		}
		CHECK(child > 0);
		CHECK_EQ(child, waitpid(child, NULL, 0));
	}
	start(&engine_log);
	turn();
	left = count_at(A, "ns", "q");
	CHECK(left < PARENTS);
	CHECK_EQ(PARENTS, left + count_at(B, "ns", "far"));
	CHECK_EQ(0, count_at(A, OUTBOX_SPACE, "b"));
}

/* SQ-F4: every parent that is gone has one child, whenever the process was killed. */
TEST(kills_lose_and_double_nothing)
{
	check_kills(NULL, live);
}

/* ---- Dead letters: OUTBOX-7 ---- */

/* Claims a message of q and rejects it. Returns its id, or 0 if q is empty. */
static uint64_t
reject(void)
{
	struct op_call c;
	const uint64_t id = claim(&c, "q");
	const uint64_t token = id ? c.rows[0].token : 0;

	if (!id)
		return 0;
	call(&c, OP_NACK, "q");
	c.item = (struct op_item){ .id = id, .token = token, .dead = true, .text = SLICE("broken") };
	CHECK_EQ(0, run(&c));
	return id;
}

TEST(a_dead_letter_goes_to_the_queue_of_another_shard)
{
	struct op_call c;
	uint64_t id;

	start(&engine_log);
	send_letters("q", "far");
	push("letter");
	id = reject();
	turn();
	CHECK_EQ(0, count_at(A, "ns", "q"));
	CHECK_EQ(0, count_at(A, OUTBOX_SPACE, "b"));
	CHECK_EQ(id, claim(&c, "far"));
}

TEST(a_dead_letter_goes_to_a_queue_of_its_own_shard)
{
	struct op_call c;
	uint64_t id;

	start(&engine_memory);
	send_letters("q", "near");
	push("letter");
	id = reject();
	turn();
	CHECK_EQ(0, count_at(A, "ns", "q"));
	CHECK_EQ(0, count_at(A, OUTBOX_SPACE, "a"));
	CHECK_EQ(id, claim(&c, "near"));
}

/* Also those that a queue has when the policy is set, the oldest first. */
TEST(dead_letters_leave_in_the_order_of_their_deaths)
{
	struct op_call c;
	uint64_t ids[3];

	start(&engine_log);
	for (unsigned i = 0; i < COUNT(ids); i++) {
		push("letter");
		ids[i] = reject();
	}
	turn();
	CHECK_EQ(3, count_at(A, "ns", "q"));
	send_letters("q", "far");
	turn();
	CHECK_EQ(0, count_at(A, "ns", "q"));
	for (unsigned i = 0; i < COUNT(ids); i++)
		CHECK_EQ(ids[i], claim(&c, "far"));
}

TEST(a_queue_does_not_send_dead_letters_to_itself)
{
	struct op_call c;

	start(&engine_memory);
	call(&c, OP_POLICY_SET, "q");
	c.op.policy = policy_default;
	memcpy(c.op.policy.dead_letter_queue, "q", 2);
	CHECK_EQ(SLU_EINVAL, run(&c));
}

static void
die(unsigned seed)
{
	(void)seed;
	for (unsigned i = 0; i < PARENTS && reject(); i++)
		throw_dice();
}

/* Every message is in one queue, once, whenever the process was killed. */
TEST(kills_lose_and_double_no_dead_letter)
{
	check_kills("far", die);
}
