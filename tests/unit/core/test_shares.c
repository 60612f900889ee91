#include "test.h"

#include "shares_oracle.h"

#include "base/hash.h"
#include "base/mem.h"
#include "core/queue/shares_private.h"

#include <sluice/err.h>

#include <stdio.h>
#include <stdlib.h>

static struct {
	struct slab items;
	struct queue plain;
	struct shares *s;
	uint64_t seq, random;
	struct oracle o;
} f;

static void
setup(void)
{
	memset(&f, 0, sizeof f);
	f.random = 1;
	slab_init(&f.items, sizeof(struct queue_item));
	queue_init(&f.plain, &f.items, QUEUE_STRICT, true);
	CHECK_EQ(0, shares_new(&f.s, &f.items, &(struct hash_key){ 1, 2 }));
	oracle_init(&f.o);
}

static void
teardown(void)
{
	shares_free(f.s);
	queue_release(&f.plain);
	slab_release(&f.items);
}

FIXTURE(setup, teardown);

static struct queue_item *
item_at(uint32_t item)
{
	return slab_at(&f.items, item);
}

static uint32_t
below(uint32_t n)
{
	return (uint32_t)(hash_next_random(&f.random) % n);
}

/* ---- Messages. flow SHARES_PLAIN: without a share ---- */

static void
enter(uint32_t flow, uint32_t item)
{
	const struct queue_item *it = item_at(item);

	if (flow != SHARES_PLAIN) {
		shares_enter(f.s, flow, item);
		return;
	}
	CHECK_EQ(0, queue_put(&f.plain, item, SLU_NEVER));
	shares_enter_plain(f.s, it->prio);
}

static void
leave(uint32_t flow, uint32_t item)
{
	if (flow != SHARES_PLAIN) {
		shares_leave(f.s, flow, item);
		return;
	}
	queue_drop(&f.plain, item);
	shares_leave_plain(f.s, item_at(item)->prio);
}

static uint32_t
new_item(int32_t prio, slu_time due)
{
	const uint32_t item = slab_new(&f.items);

	CHECK(item != SLAB_NONE);
	*item_at(item) = (struct queue_item){ .due = due, .seq = ++f.seq, .prio = prio };
	return item;
}

static uint32_t
put(const char *share, uint32_t weight, int32_t prio, slu_time due, uint32_t *flow)
{
	const uint32_t item = new_item(prio, due);

	*flow = SHARES_PLAIN;
	if (share) {
		CHECK_EQ(0, shares_reserve(f.s, slice_of(share), weight, prio, flow));
		shares_hold(f.s, *flow);
	}
	enter(*flow, item);
	return item;
}

static void
drop(uint32_t flow, uint32_t item)
{
	if (flow != SHARES_PLAIN)
		shares_drop(f.s, flow);
	slab_free(&f.items, item);
}

static void
deliver(uint32_t flow, uint32_t item)
{
	shares_charge(f.s, flow, item_at(item)->prio);
	leave(flow, item);
}

/* Delivers the next message, which stays the owner's, and returns its number. */
static uint64_t
pull(uint32_t flow_of[])
{
	const uint32_t item = shares_best(f.s, &f.plain);
	const uint64_t seq = item == SLAB_NONE ? 0 : item_at(item)->seq;
	const uint32_t flow = seq ? flow_of[seq] : SHARES_PLAIN;

	if (!seq)
		return 0;
	deliver(flow, item);
	drop(flow, item);
	return seq;
}

static const char *const order_names[] = { NULL, "a", "b", "c" };

/* Puts a message for every letter ("." is plain), and returns the order of delivery, as digits. */
static void
check_order(const char *shares, const char *want, uint32_t weight_of_b)
{
	uint32_t flow_of[32] = { 0 };
	char got[32] = "";
	size_t n = 0;

	for (const char *p = shares; *p; p++) {
		const char *name = order_names[*p == '.' ? 0 : *p - 'a' + 1];

		(void)put(name, *p == 'b' ? weight_of_b : 1, 0, 0, &flow_of[f.seq + 1]);
	}
	for (uint64_t seq; (seq = pull(flow_of)) != 0;)
		got[n++] = shares[seq - 1];
	CHECK_STR(want, got);
	CHECK(shares_are_idle(f.s));
	f.seq = 0;
}

TEST(shares_take_turns_by_weight)
{
	static const struct {
		const char *shares, *want;
		uint32_t weight_of_b;
	} cases[] = {
		{ "aaaa", "aaaa", 1 },
		{ "aaab", "abaa", 1 },
		{ "aaaabbbb", "abababab", 1 },
		{ "aaaabbbb", "abbabbaa", 2 },
		{ "....aa", ".a.a..", 1 },
		{ "aabbcc..", "abc.abc.", 1 },
	};

	EACH(i, cases)
		check_order(cases[i].shares, cases[i].want, cases[i].weight_of_b);
}

/* Fault 22 */
/* A consumer of one message by its id takes it from behind its value: the flow is charged, and nothing leaves its heap. */
TEST(a_charged_flow_whose_candidates_stay_has_its_new_place)
{
	uint32_t a, b;
	const uint32_t first = put("a", 1, 0, 0, &a);
	const uint32_t other = put("b", 1, 0, 0, &b);

	CHECK_EQ(first, shares_best(f.s, &f.plain));
	shares_charge(f.s, a, 0);
	shares_place(f.s);
	CHECK_EQ(other, shares_best(f.s, &f.plain));
	CHECK(!shares_check(f.s));
}

TEST(what_comes_next_is_seen_ahead)
{
	uint32_t flow_of[32] = { 0 }, seen[SHARES_AHEAD], msgs[1 + SHARES_AHEAD], n;
	char name[2] = "a";

	for (int round = 0; round < 2; round++)
		for (name[0] = 'a'; name[0] < 'i'; name[0]++)
			(void)put(name, 1, 0, 0, &flow_of[f.seq + 1]);
	for (unsigned left = 16; left > 0; left--) {
		const bool ahead = shares_ahead(f.s, seen);

		CHECK_EQ(left >= 8 + 1 || left >= SHARES_AHEAD + 3, ahead);
		CHECK_EQ(0, shares_peek(f.s, &f.plain, msgs, 1 + SHARES_AHEAD, &n));
		for (unsigned i = 0; ahead && i < SHARES_AHEAD; i++)
			CHECK_EQ(msgs[i + 1], seen[i]);
		CHECK(pull(flow_of) != 0);
	}
	CHECK(!shares_ahead(f.s, seen));
}

TEST(the_first_message_of_a_share_waits_for_one_of_every_other)
{
	enum {
		MANY = 1000000
	};
	uint32_t *flow_of = calloc(MANY + 100, sizeof *flow_of);

	for (uint32_t i = 0; i < MANY; i++)
		(void)put("a", 1, 0, 0, &flow_of[f.seq + 1]);
	(void)put("b", 1, 0, 5, &flow_of[f.seq + 1]);
	CHECK_EQ(1, pull(flow_of));
	CHECK_EQ(MANY + 1, pull(flow_of));
	for (uint32_t i = 2; i <= 10; i++)
		CHECK_EQ(i, pull(flow_of));
	(void)put(NULL, 1, 0, 5, &flow_of[f.seq + 1]);
	CHECK_EQ(MANY + 2, pull(flow_of), "it has waited for less than its part");
	(void)put("b", 1, 0, 5, &flow_of[f.seq + 1]);
	(void)put(NULL, 1, 0, 5, &flow_of[f.seq + 1]);
	CHECK_EQ(MANY + 3, pull(flow_of));
	CHECK_EQ(11, pull(flow_of));
	CHECK_EQ(MANY + 4, pull(flow_of));
	free(flow_of);
}

/* ---- The oracle ---- */

static const char *const names[ORACLE_SHARES] = { NULL, "a", "b", "c", "d", "e", "f", "g" };

static struct oracle_msg *
some(bool exists, bool candidate)
{
	const uint32_t from = below(ORACLE_MSGS);

	for (uint32_t i = 0; i < ORACLE_MSGS; i++) {
		struct oracle_msg *m = &f.o.msgs[(from + i) % ORACLE_MSGS];

		if (m->exists == exists && (!exists || m->candidate == candidate))
			return m;
	}
	return NULL;
}

static void
step_put(void)
{
	struct oracle_msg *m = some(false, false);

	if (!m)
		return;
	*m = (struct oracle_msg){
		.share = below(3) ? below(ORACLE_SHARES) : below(2),
		.prio = (int32_t)below(ORACLE_PRIOS) % (1 + (int32_t)below(ORACLE_PRIOS)),
		.due = below(20),
		.exists = true,
	};
	m->candidate = true;
	m->item = put(names[m->share], f.o.weight[m->share], m->prio, m->due, &m->flow);
	m->seq = f.seq;
	if (m->share && shares_count(f.s))
		shares_weigh(f.s, shares_of(f.s, m->flow), f.o.weight[m->share]);
	if (m->share)
		shares_block(f.s, shares_of(f.s, m->flow), f.o.blocked[m->share]);
}

static void
step_deliver(void)
{
	struct oracle_msg *best = oracle_best(&f.o);
	const uint32_t item = shares_best(f.s, &f.plain);

	CHECK_EQ(best ? best->item : SLAB_NONE, item);
	if (!best)
		return;
	deliver(best->flow, item);
	oracle_deliver(&f.o, best);
}

/* A consumer that may not have the next message. */
static void
step_deliver_other(void)
{
	struct oracle_msg *m = some(true, true);

	if (!m || f.o.blocked[m->share])
		return;
	deliver(m->flow, m->item);
	oracle_deliver(&f.o, m);
}

static void
step_return(void)
{
	struct oracle_msg *m = some(true, false);

	if (!m)
		return;
	m->due = item_at(m->item)->due = below(20);
	m->candidate = true;
	enter(m->flow, m->item);
}

static void
step_done(void)
{
	struct oracle_msg *m = some(true, below(8) == 0);

	if (!m)
		return;
	if (m->candidate)
		leave(m->flow, m->item);
	drop(m->flow, m->item);
	m->exists = false;
}

static void
step_block(void)
{
	const uint32_t share = 1 + below(ORACLE_SHARES - 1);
	const uint32_t h = shares_find(f.s, slice_of(names[share]));

	if (h == SLAB_NONE)
		return;
	f.o.blocked[share] = !f.o.blocked[share];
	shares_block(f.s, h, f.o.blocked[share]);
}

static void
step_weigh(void)
{
	const uint32_t share = 1 + below(ORACLE_SHARES - 1);
	const uint32_t h = shares_find(f.s, slice_of(names[share]));

	f.o.weight[share] = 1 + below(5);
	if (h != SLAB_NONE)
		shares_weigh(f.s, h, f.o.weight[share]);
}

static void
free_trash(void)
{
	uint32_t item;

	while ((item = shares_trash_pop(f.s)) != SLAB_NONE) {
		for (int i = 0; i < ORACLE_MSGS; i++) {
			struct oracle_msg *m = &f.o.msgs[i];

			if (!m->exists || m->item != item)
				continue;
			CHECK(m->candidate && m->share);
			m->exists = false;
			drop(m->flow, item);
		}
	}
}

static void
free_item(void *arg, uint32_t item)
{
	(void)arg;
	slab_free(&f.items, item);
}

static void
step_purge(void)
{
	if (below(50))
		return;
	CHECK_EQ(0, shares_purge_reserve(f.s));
	shares_purge(f.s);
	queue_clear(&f.plain, free_item, NULL);
	free_trash();
	for (int i = 0; i < ORACLE_MSGS; i++)
		if (f.o.msgs[i].candidate)
			f.o.msgs[i].exists = false;
}

static void
step_peek(void)
{
	enum {
		MOST = 20
	};
	struct oracle o = f.o;
	uint32_t msgs[MOST], n, max = 1 + below(MOST);

	CHECK_EQ(0, shares_peek(f.s, &f.plain, msgs, max, &n));
	for (uint32_t i = 0; i < n; i++) {
		struct oracle_msg *best = oracle_best(&o);

		CHECK(best);
		CHECK_EQ(best->item, msgs[i]);
		oracle_deliver(&o, best);
	}
	CHECK(n == max || !oracle_best(&o));
}

static void
random_step(void)
{
	static void (*const steps[])(void) = {
		step_put,
		step_put,
		step_put,
		step_deliver,
		step_deliver,
		step_deliver,
		step_deliver_other,
		step_return,
		step_done,
		step_done,
		step_block,
		step_weigh,
		step_purge,
		step_peek,
	};

	steps[below(COUNT(steps))]();
	oracle_sync(&f.o);
}

/* A share that is gone is not blocked when it comes back. */
static void
forget_blocked(void)
{
	for (uint32_t i = 1; i < ORACLE_SHARES; i++)
		if (shares_find(f.s, slice_of(names[i])) == SLAB_NONE)
			f.o.blocked[i] = false;
}

TEST_LIMIT(every_choice_is_what_a_plain_list_says, 1200)
{
	const char *steps = getenv("SHARES_STEPS");
	const long n = steps ? atol(steps) : 100000;

	for (long i = 0; i < n; i++) {
		random_step();
		forget_blocked();
		if (i % 64 == 0)
			CHECK_STR("", shares_check(f.s) ? shares_check(f.s) : "");
	}
}

/* ---- The bounds ---- */

/* Delivers from backlogs of three shares, which now and then have none, and checks both bounds. */
TEST(deliveries_keep_the_bounds)
{
	static const char *const who[] = { "a", "b", "c" };
	static const uint32_t weight[] = { 1, 3, 7 };
	static uint32_t flow_of[400000];
	uint64_t cost[3], done[3] = { 0 }, waited[3][3] = { 0 };
	uint32_t have[3] = { 0 };
	int owner[400000 / 8];

	for (int i = 0; i < 3; i++)
		cost[i] = 21 / weight[i]; /* 21: a multiple of all weights */
	for (int step = 0; step < 30000; step++) {
		const uint32_t i = below(3);
		uint64_t seq;
		int of;

		if (below(3) == 0 || have[0] + have[1] + have[2] == 0) {
			for (uint32_t n = 1 + below(4); n > 0; n--, have[i]++) {
				(void)put(who[i], weight[i], 0, 0, &flow_of[f.seq + 1]);
				CHECK(f.seq < COUNT(owner));
				owner[f.seq] = (int)i;
			}
			memset(done, 0, sizeof done); /* a new interval */
			continue;
		}
		seq = pull(flow_of);
		of = owner[seq];
		have[of]--;
		done[of] += cost[of];
		memset(waited[of], 0, sizeof waited[of]);
		for (int g = 0; g < 3; g++) {
			if (g == of || !have[g]) {
				memset(waited[g], 0, sizeof waited[g]);
				continue;
			}
			waited[g][of]++;
			CHECK((waited[g][of] - 1) * cost[of] <= cost[g]); /* bound 1 */
			if (have[of])
				CHECK(done[of] <= done[g] + cost[of] + cost[g]); /* bound 2 */
		}
		if (!have[of])
			memset(done, 0, sizeof done);
	}
}

/* ---- Blocked shares ---- */

TEST(blocked_shares_cost_the_others_nothing)
{
	enum {
		MANY = 100000,
		PULLS = 1000
	};
	uint32_t *flow_of = calloc(MANY + 2 * PULLS + 1, sizeof *flow_of);
	uint64_t before;

	for (uint32_t i = 0; i < MANY; i++) {
		char name[16];

		snprintf(name, sizeof name, "s%u", i);
		(void)put(name, 1, 0, 0, &flow_of[f.seq + 1]);
		shares_block(f.s, shares_of(f.s, flow_of[f.seq]), true);
	}
	for (uint32_t i = 0; i < PULLS; i++)
		(void)put(i % 2 ? "free" : NULL, 1, 0, 0, &flow_of[f.seq + 1]);
	before = f.s->steps;
	for (uint32_t i = 0; i < PULLS; i++)
		CHECK(pull(flow_of) > MANY);
	CHECK(f.s->steps - before <= 4 * PULLS);
	CHECK_EQ(0, pull(flow_of), "the others are blocked");
	free(flow_of);
}

/* ---- Memory ---- */

TORTURE(what_memory_refuses_changes_nothing)
{
	struct shares *s;
	const struct slab items = { 0 };
	uint32_t flow = SLAB_NONE;

	if (shares_new(&s, &items, &(struct hash_key){ 1, 2 }))
		return;
	if (shares_reserve(s, SLICE("a"), 1, 0, &flow) == 0)
		shares_hold(s, flow);
	if (shares_reserve(s, SLICE("b"), 1, 1, &flow) == 0)
		shares_hold(s, flow);
	CHECK_EQ(0, shares_reserve(s, SLICE("c"), 1, 1, &flow) && !mem_failed());
	CHECK_STR("", shares_check(s) ? shares_check(s) : "");
	shares_free(s);
}

TEST(a_flow_that_was_only_reserved_goes_with_the_next)
{
	uint32_t flow;

	CHECK_EQ(0, shares_reserve(f.s, SLICE("a"), 1, 0, &flow));
	CHECK_EQ(0, shares_reserve(f.s, SLICE("b"), 1, 0, &flow));
	CHECK_EQ(1, shares_count(f.s));
	CHECK_EQ(SLAB_NONE, shares_find(f.s, SLICE("a")));
	shares_hold(f.s, flow);
	CHECK_EQ(0, shares_reserve(f.s, SLICE("c"), 1, 0, &flow));
	CHECK(shares_find(f.s, SLICE("b")) != SLAB_NONE);
}
