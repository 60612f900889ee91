#include "test.h"

#include "broker/dispatch.h"

enum {
	OPS = 12
};

static struct dispatch d;
static struct op ops[OPS];

static void
start(void)
{
	static const struct hash_key secret = { 1, 2 };

	dispatch_init(&d, &secret);
}

static void
claim_waits(int i, const char *queue, slu_time wait)
{
	op_init(&ops[i], OP_CLAIM, SLICE("ns"), slice_of(queue), NULL, NULL);
	ops[i].route.arrived = 100;
	ops[i].wait = wait;
	CHECK_EQ(0, dispatch_park(&d, &ops[i], false));
}

static void
result_waits(int i, uint64_t id)
{
	op_init(&ops[i], OP_RESULT, SLICE("ns"), SLICE("q"), NULL, NULL);
	ops[i].id = id;
	ops[i].wait = SLU_NEVER;
	CHECK_EQ(0, dispatch_park(&d, &ops[i], false));
}

static void
ready(const char *queue, uint32_t n)
{
	dispatch_ready(&d, SLICE("ns"), slice_of(queue), n);
}

/* The numbers of the ops that may be served, as text. */
static const char *
join(uint32_t max)
{
	static char text[64];
	struct op *last;
	size_t n = 0;

	EACH_OP(op, dispatch_join(&d, max, &last))
	{
		text[n++] = (char)('0' + (op - ops));
		if (!op->route.next)
			CHECK(op == last);
	}
	text[n] = 0;
	return text;
}

static void
end(void)
{
	while (dispatch_any(&d, false))
		;
	CHECK_EQ(0, dispatch_count(&d));
	CHECK_EQ(SLU_NEVER, dispatch_next(&d));
	dispatch_release(&d);
}

FIXTURE(start, end);

/* LQ-39 */
TEST(a_waitlist_is_served_in_the_order_of_arrival)
{
	claim_waits(0, "q", SLU_SEC);
	claim_waits(1, "other", SLU_SEC);
	claim_waits(2, "q", SLU_SEC);
	CHECK_STR("", join(10));
	ready("q", 5);
	CHECK_STR("02", join(10));
	CHECK_STR("", join(10));
}

TEST(as_many_are_served_as_there_are_messages)
{
	for (int i = 0; i < 5; i++)
		claim_waits(i, "q", SLU_SEC);
	ready("q", 2);
	CHECK_STR("01", join(10));
	CHECK_STR("", join(10));
}

static void
kinds_wait(int i, const char *kinds, bool run)
{
	op_init(&ops[i], OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
	ops[i].route.arrived = 100;
	ops[i].wait = SLU_SEC;
	ops[i].claim.kinds = slice_of(kinds);
	CHECK_EQ(0, dispatch_park(&d, &ops[i], run));
}

/* DISPATCH-5 */
TEST(with_claims_of_kinds_all_ops_of_the_waitlist_run)
{
	claim_waits(0, "q", SLU_SEC);
	kinds_wait(1, "\1a", false);
	kinds_wait(2, "\1b", false);
	ready("q", 1);
	CHECK_STR("012", join(10));
	CHECK_STR("", join(10));
	dispatch_leave(&d, &ops[1]);
	dispatch_leave(&d, &ops[2]);
	claim_waits(3, "q", SLU_SEC);
	ready("q", 1);
	CHECK_STR("0", join(10)); /* without them, one for each message */
}

TEST(an_op_that_comes_behind_claims_of_kinds_runs_once_without_those_before_it)
{
	kinds_wait(0, "\1a", true);
	CHECK_STR("0", join(10));
	kinds_wait(1, "\1b", true);
	kinds_wait(2, "", true);
	CHECK_STR("12", join(10));
	CHECK_STR("", join(10));
	ready("q", 1);
	kinds_wait(3, "\1c", true);
	CHECK_STR("0123", join(10));
}

TEST(a_batch_that_is_full_goes_on_behind_the_ops_that_have_run)
{
	for (int i = 0; i < 5; i++)
		kinds_wait(i, "\1a", false);
	ready("q", 1);
	CHECK_STR("01", join(2));
	CHECK_EQ(0, dispatch_next(&d), "it goes on at once");
	dispatch_leave(&d, &ops[0]);
	CHECK_STR("23", join(2));
	CHECK_STR("4", join(2));
	CHECK(dispatch_next(&d) > 0);
	ready("q", 1);
	CHECK_STR("1234", join(10));
}

TEST(the_claims_that_take_a_kind_are_counted)
{
	kinds_wait(0, "\1a\1b", false);
	kinds_wait(1, "\1b", false);
	claim_waits(2, "q", SLU_SEC);
	CHECK_EQ(2, dispatch_takers(&d, SLICE("ns"), SLICE("q"), SLICE("\1a")));
	CHECK_EQ(3, dispatch_takers(&d, SLICE("ns"), SLICE("q"), SLICE("\1b")));
	CHECK_EQ(1, dispatch_takers(&d, SLICE("ns"), SLICE("q"), SLICE("\1bb")));
	CHECK_EQ(1, dispatch_takers(&d, SLICE("ns"), SLICE("q"), (struct slice){ 0 }), "a message without a kind");
	CHECK_EQ(0, dispatch_takers(&d, SLICE("ns"), SLICE("other"), SLICE("\1a")));
}

/* DISPATCH-2 */
TEST(an_op_that_was_not_served_keeps_its_place)
{
	for (int i = 0; i < 3; i++)
		claim_waits(i, "q", SLU_SEC);
	ready("q", 2);
	CHECK_STR("01", join(10));
	dispatch_leave(&d, &ops[1]);
	ready("q", 9);
	CHECK_STR("02", join(10));
}

/* DISPATCH-3 */
TEST(what_does_not_fit_into_a_batch_is_not_forgotten)
{
	for (int i = 0; i < 5; i++)
		claim_waits(i, "q", SLU_SEC);
	ready("q", 4);
	CHECK_EQ(0, dispatch_next(&d));
	CHECK_STR("01", join(2));
	CHECK_EQ(0, dispatch_next(&d), "it goes on at once");
	dispatch_leave(&d, &ops[0]);
	dispatch_leave(&d, &ops[1]);
	CHECK_STR("23", join(2));
	CHECK(dispatch_next(&d) > 0);
}

TEST(an_engine_that_cannot_count_serves_all)
{
	for (int i = 0; i < 3; i++)
		claim_waits(i, "q", SLU_SEC);
	ready("q", UINT32_MAX);
	CHECK_STR("01", join(2));
	CHECK_STR("012", join(10));
	CHECK_STR("", join(10));
}

TEST(an_engine_that_knows_no_queue_wakes_every_claim)
{
	claim_waits(0, "a", SLU_SEC);
	claim_waits(1, "b", SLU_SEC);
	result_waits(2, 7);
	dispatch_ready(&d, (struct slice){ 0 }, (struct slice){ 0 }, UINT32_MAX);
	CHECK_STR("01", join(10));
}

/* News of any queue makes no room in a stream. */
TEST(a_claim_that_waits_for_room_is_not_served_when_any_queue_may_be_ready)
{
	op_init(&ops[0], OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
	ops[0].claim.stream = 7;
	ops[0].route.stalled = true;
	CHECK_EQ(0, dispatch_park(&d, &ops[0], false));
	claim_waits(1, "q", SLU_SEC);
	dispatch_ready(&d, (struct slice){ 0 }, (struct slice){ 0 }, UINT32_MAX);
	CHECK_STR("1", join(10));
	CHECK(dispatch_room(&d, 7) == &ops[0]);
}

TEST(a_first_claim_may_be_the_one_to_run)
{
	claim_waits(0, "old", SLU_SEC);
	op_init(&ops[1], OP_CLAIM, SLICE("ns"), SLICE("new"), NULL, NULL);
	CHECK_EQ(0, dispatch_park(&d, &ops[1], true));
	op_init(&ops[2], OP_CLAIM, SLICE("ns"), SLICE("old"), NULL, NULL);
	CHECK_EQ(0, dispatch_park(&d, &ops[2], true));
	CHECK_STR("1", join(10));
}

TEST(a_waitlist_is_of_one_queue_in_one_namespace)
{
	struct op probe;

	claim_waits(0, "q", SLU_SEC);
	op_init(&probe, OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
	CHECK(dispatch_has_waiters(&d, &probe));
	op_init(&probe, OP_CLAIM, SLICE("n"), SLICE("sq"), NULL, NULL);
	CHECK(!dispatch_has_waiters(&d, &probe));
	op_init(&probe, OP_CLAIM, SLICE("other"), SLICE("q"), NULL, NULL);
	CHECK(!dispatch_has_waiters(&d, &probe));
	dispatch_leave(&d, &ops[0]);
	op_init(&probe, OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
	CHECK(!dispatch_has_waiters(&d, &probe)); /* it ends with its last */
}

/* LQ-12 */
TEST(a_wait_ends_at_its_moment_and_not_before)
{
	claim_waits(0, "q", 50);
	claim_waits(1, "q", 20);
	claim_waits(2, "q", SLU_NEVER);
	CHECK_EQ(120, dispatch_next(&d));
	CHECK(!dispatch_expire(&d, 119));
	CHECK(dispatch_expire(&d, 120) == &ops[1]);
	CHECK(!dispatch_expire(&d, 149));
	CHECK(dispatch_expire(&d, 1000) == &ops[0]);
	CHECK(!dispatch_expire(&d, SLU_NEVER - 1));
	CHECK_EQ(1, dispatch_count(&d));
}

/* DISPATCH-4 */
TEST(no_wait_ends_while_something_is_there_for_its_waitlist)
{
	claim_waits(0, "q", 20);
	ready("q", 1);
	CHECK(!dispatch_expire(&d, 500));
	CHECK_STR("0", join(10));
	CHECK(dispatch_expire(&d, 500) == &ops[0]);
}

TEST(results_wait_for_their_message)
{
	result_waits(0, 7);
	result_waits(1, 8);
	result_waits(2, 7);
	claim_waits(3, "q", SLU_SEC);
	dispatch_gone(&d, 9);
	CHECK_STR("", join(10));
	dispatch_gone(&d, 7);
	CHECK_STR("02", join(10));
	CHECK(dispatch_any(&d, true) == &ops[3]);
	CHECK(!dispatch_any(&d, true)); /* no more claims */
	CHECK_EQ(3, dispatch_count(&d));
}

TEST(leaving_twice_is_fine)
{
	claim_waits(0, "q", SLU_SEC);
	ready("q", 1);
	dispatch_leave(&d, &ops[0]);
	dispatch_leave(&d, &ops[0]);
	CHECK_STR("", join(10));
}

TORTURE(without_memory_no_op_waits_and_nothing_is_lost)
{
	int parked = 0;

	start();
	for (int i = 0; i < OPS; i++) {
		op_init(&ops[i], OP_CLAIM, SLICE("ns"), i % 2 ? SLICE("a") : SLICE("b"), NULL,
			NULL);
		ops[i].wait = SLU_SEC;
		if (dispatch_park(&d, &ops[i], false))
			CHECK_EQ(SLAB_NONE, ops[i].route.waiter);
		else
			parked++;
	}
	CHECK_EQ(parked, dispatch_count(&d));
	end();
}
