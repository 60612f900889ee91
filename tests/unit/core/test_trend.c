/*
 * core/queue/trend.h, and the trends of a ledger.
 */
#include "ledger_fixture.h"

#include "core/ledger/recent.h"
#include "core/queue/trend.h"

#define STEP (10 * SLU_SEC)

static const struct trend_now nothing = { .oldest = SLU_NEVER };
static struct trend_row rows[TREND_STEPS_MAX];
static slu_time end;

/* The value of a column in the step that is n before the last one. */
static uint64_t
value(unsigned column, unsigned n)
{
	return trend_value(rows[59 - n].v[column]);
}

TEST_BARE(values_are_exact_up_to_2047_and_close_above)
{
	for (uint64_t v = 0; v < 2048; v++)
		CHECK_EQ(v, trend_value(trend_code(v)));
	for (uint64_t v = 2048; v < 1ull << 62; v = v * 5 / 3) {
		const uint64_t back = trend_value(trend_code(v));
		const uint64_t off = back > v ? back - v : v - back;

		CHECK(off <= v / 2048 + 1);
	}
	CHECK(trend_code(UINT64_MAX) != TREND_NONE);
}

TEST_BARE(a_step_has_the_events_in_it_and_the_depths_at_its_end)
{
	struct trend *const t = trend_new(TREND_OF_QUEUE, 100 * STEP + 1);
	const struct trend_now at = { .level = { 7, 6, 5, 4, 3 }, .oldest = 100 * STEP };

	trend_count(t, TREND_IN);
	trend_count(t, TREND_IN);
	trend_count(t, TREND_FAILED);
	trend_to(t, 101 * STEP - 1, &at);
	trend_read(t, TREND_10S, rows, 60, &end);
	CHECK_EQ(TREND_NONE, rows[59].v[TREND_IN], "the step has not ended");
	trend_to(t, 103 * STEP, &at);
	trend_read(t, TREND_10S, rows, 60, &end);
	CHECK_EQ(103 * STEP, end);
	CHECK_EQ(2, value(TREND_IN, 2));
	CHECK_EQ(1, value(TREND_FAILED, 2));
	CHECK_EQ(0, value(TREND_IN, 1), "of the step after it");
	CHECK_EQ(7, value(TREND_LEVEL_AT, 0));
	CHECK_EQ(3, value(TREND_LEVEL_AT + TREND_DEAD, 0));
	CHECK_EQ(trend_value(trend_code(20000 * 10)), value(TREND_OLDEST, 1), "in tenths of a ms");
	CHECK_EQ(TREND_NONE, rows[56].v[TREND_IN], "before the start");
	trend_free(t);
}

TEST_BARE(steps_of_10_s_add_up_to_minutes)
{
	struct trend *const t = trend_new(TREND_OF_SHARD, 0);

	for (unsigned i = 0; i < 600; i++) {
		trend_to(t, i * SLU_SEC, &nothing);
		trend_count(t, TREND_DONE);
		trend_run(t, i * SLU_MS);
	}
	trend_to(t, 600 * SLU_SEC, &nothing);
	trend_read(t, TREND_10S, rows, 60, &end);
	CHECK_EQ(10, value(TREND_DONE, 59));
	trend_read(t, TREND_1MIN, rows, 60, &end);
	CHECK_EQ(60, value(TREND_DONE, 0));
	CHECK_EQ(60, value(TREND_DONE, 9));
	trend_read(t, TREND_5MIN, rows, 60, &end);
	CHECK_EQ(300, value(TREND_DONE, 0));
	CHECK_EQ(300, value(TREND_DONE, 1));
	CHECK_EQ(600 * SLU_SEC, end);
	trend_free(t);
}

TEST_BARE(percentiles_are_near)
{
	static const slu_time factors[] = { SLU_MS / 10, SLU_MS, SLU_SEC };

	for (unsigned n = 0; n < 3; n++) {
		struct trend *const t = trend_new(TREND_OF_QUEUE, 0);

		for (unsigned i = 1; i <= 1000; i++)
			trend_wait(t, i * factors[n]);
		trend_to(t, STEP, &nothing);
		trend_read(t, TREND_10S, rows, 60, &end);
		for (unsigned p = 0; p < 3; p++) {
			const slu_time want = (p == 0 ? 500 : p == 1 ? 950
								     : 990) *
					      factors[n];
			const slu_time got = (slu_time)value(TREND_WAIT + p, 0) * TREND_UNIT;

			CHECK(got > want * 3 / 4 && got < want * 5 / 4);
		}
		CHECK_EQ(TREND_NONE, rows[59].v[TREND_RUN], "nothing ran");
		trend_free(t);
	}
}

TEST_BARE(a_million_events_of_a_step_keep_their_spread)
{
	struct trend *const t = trend_new(TREND_OF_QUEUE, 0);

	for (unsigned i = 0; i < 1000000; i++)
		trend_wait(t, i % 10 ? 2 * SLU_MS : SLU_SEC);
	trend_to(t, STEP, &nothing);
	trend_read(t, TREND_10S, rows, 60, &end);
	CHECK(value(TREND_WAIT, 0) < 40);
	CHECK(value(TREND_WAIT + 1, 0) > 8000);
	trend_free(t);
}

TEST_BARE(a_queue_takes_less_than_4200_bytes)
{
	CHECK(trend_bytes(TREND_OF_QUEUE) <= 4200);
	CHECK(trend_bytes(TREND_OF_SHARD) <= 70000);
}

/* ---- In a ledger ---- */

static void
allow(uint32_t n)
{
	ledger_set_limits(f.l, &(struct ledger_limits){ .trends = n });
}

static bool
look(uint32_t queue)
{
	return ledger_trend(f.l, queue, f.now, TREND_10S, rows, 60, &end);
}

static void
next_step(void)
{
	f.now = (f.now / STEP + 1) * STEP;
}

TEST(a_queue_shows_what_happened_to_its_messages)
{
	allow(10);
	next_step();
	(void)put(5);
	(void)put(5);
	f.now += 100 * SLU_MS;
	CHECK_EQ(0, ack_as(claim(), f.token));
	next_step();
	CHECK(look(f.queue));
	CHECK_EQ(2, value(TREND_IN, 0));
	CHECK_EQ(1, value(TREND_DONE, 0));
	CHECK_EQ(1, value(TREND_LEVEL_AT + TREND_READY, 0));
	CHECK_EQ(trend_value(trend_code(STEP / TREND_UNIT)), value(TREND_OLDEST, 0));
	CHECK(value(TREND_WAIT, 0) >= 768 && value(TREND_WAIT, 0) <= 1024);
	CHECK(look(SLAB_NONE));
	CHECK_EQ(2, value(TREND_IN, 0), "of the shard");
	CHECK_EQ(1, value(TREND_LEVEL_AT + TREND_READY, 0), "of the shard");
}

TEST(what_a_step_did_not_see_is_not_in_it)
{
	uint64_t id;

	allow(10);
	next_step();
	(void)put(5);
	f.now += 30 * SLU_SEC;
	id = claim();
	f.now += STEP;
	CHECK(look(f.queue));
	CHECK_EQ(1, value(TREND_LEVEL_AT + TREND_READY, 1));
	CHECK_EQ(0, value(TREND_LEVEL_AT + TREND_LEASED, 1));
	CHECK_EQ(0, value(TREND_LEVEL_AT + TREND_READY, 0));
	CHECK_EQ(1, value(TREND_LEVEL_AT + TREND_LEASED, 0));
	CHECK_EQ(0, ack_as(id, f.token));
}

TEST(a_queue_that_has_not_moved_for_an_hour_has_no_history)
{
	allow(10);
	(void)put(5);
	f.now += SLU_HOUR - 2 * STEP;
	CHECK(look(f.queue));
	f.now += 4 * STEP;
	CHECK(!look(f.queue));
	CHECK(look(SLAB_NONE));
	CHECK_EQ(1, value(TREND_LEVEL_AT + TREND_READY, 0));
}

TEST(the_last_minute_tells_the_wait_and_when_a_queue_will_be_empty)
{
	struct ledger_recent r;

	allow(10);
	next_step();
	for (unsigned i = 0; i < 10; i++)
		(void)put(5);
	next_step();
	ledger_recent(f.l, f.queue, f.now, 10, &r);
	CHECK(!r.wait && !r.empty); /* nothing was delivered, and more came in than was done */
	f.now += 60 * SLU_SEC;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t id = claim();

		CHECK_EQ(0, ack_as(id, f.token));
	}
	next_step();
	ledger_recent(f.l, f.queue, f.now, 8, &r);
	CHECK(r.wait > 50 * SLU_SEC && r.wait < 100 * SLU_SEC);
	CHECK_EQ(240 * SLU_SEC, r.empty); /* 2 a minute */
	ledger_recent(f.l, f.queue, f.now, 0, &r);
	CHECK_EQ(0, r.empty);
	f.now += 70 * SLU_SEC;
	ledger_recent(f.l, f.queue, f.now, 8, &r);
	CHECK(!r.wait && !r.empty);
}

static uint32_t
put_to(const char *name)
{
	struct ledger_offer offer = { .id = ++f.last_id, .prio = 5, .where = 1 };
	struct change c;
	uint32_t queue;

	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), slice_of(name), &queue));
	CHECK_EQ(0, ledger_accept(f.l, queue, &offer, f.now, &c));
	apply(&c);
	return queue;
}

TEST(at_most_so_many_queues_have_a_history)
{
	uint32_t a, b, c;

	allow(2);
	a = put_to("a");
	b = put_to("b");
	c = put_to("c");
	CHECK(look(a) && look(b) && !look(c));
	f.now += SLU_HOUR / 2;
	(void)put_to("b");
	f.now += SLU_HOUR / 2 + 2 * STEP;
	(void)put_to("c");
	CHECK(!look(a));
	CHECK(look(b) && look(c));
}

TEST(without_a_limit_nothing_is_kept)
{
	(void)put(5);
	CHECK(!look(f.queue));
	CHECK(!look(SLAB_NONE));
}

TEST(a_purge_is_seen_by_the_shard)
{
	struct change c;

	allow(2);
	(void)put(5);
	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&c);
	next_step();
	CHECK(look(SLAB_NONE));
	CHECK_EQ(0, value(TREND_LEVEL_AT + TREND_READY, 0));
}
