#include "broker/credit.h"
#include "test.h"

static struct credits f;
static struct op_row rows[8];

static void
start(void)
{
	credits_init(&f, &(struct hash_key){ 1, 2 });
}

static void
end(void)
{
	credits_release(&f);
}

FIXTURE(start, end);

static struct op
claim(uint64_t stream_no, uint32_t most)
{
	return (struct op){ .verb = OP_CLAIM, .claim.stream = stream_no, .claim.credit = most, .rows = rows };
}

/* n messages from id on are leased under the flow. */
static void
grant(uint64_t stream_no, uint64_t id, uint32_t n)
{
	struct op op = claim(stream_no, 100);

	for (uint32_t i = 0; i < n; i++)
		rows[i].id = id + i;
	op.n_rows = n;
	credit_grant(&f, &op, 1000);
}

static uint32_t
room(uint64_t stream_no, uint32_t most)
{
	const struct op op = claim(stream_no, most);

	return credit_room(&f, &op);
}

TEST(what_is_leased_takes_room_until_it_is_settled)
{
	CHECK_EQ(3u, room(7, 3));
	grant(7, 100, 2);
	CHECK_EQ(1u, room(7, 3));
	CHECK_EQ(0u, room(7, 2));
	CHECK_EQ(0u, room(7, 1), "a setting that was lowered");
	CHECK_EQ(7u, credit_settle(&f, 101, 0));
	CHECK_EQ(2u, room(7, 3));
	CHECK_EQ(0u, credit_settle(&f, 101, 0), "once");
	CHECK_EQ(7u, credit_settle(&f, 100, 0));
	CHECK_EQ(3u, room(7, 3));
}

TEST(flows_know_nothing_of_each_other)
{
	grant(1, 100, 3);
	grant(2, 200, 1);
	CHECK_EQ(0u, room(1, 3));
	CHECK_EQ(2u, room(2, 3));
	CHECK_EQ(2u, credit_settle(&f, 200, 0));
	CHECK_EQ(1u, credit_settle(&f, 102, 0));
	CHECK_EQ(1u, room(1, 3));
}

TEST(what_has_no_flow_has_no_limit)
{
	grant(0, 100, 3);
	CHECK_EQ(UINT32_MAX, room(0, 1));
	CHECK_EQ(0u, credit_settle(&f, 100, 0));
}

/* Nothing is left of a flow that has ended. */
TEST(a_flow_costs_nothing_after_its_last_lease)
{
	for (uint64_t i = 1; i <= 1000; i++) {
		grant(i, i * 10, 4);
		for (uint64_t k = 0; k < 4; k++)
			CHECK_EQ(i, credit_settle(&f, i * 10 + k, 0));
	}
	CHECK_EQ(0u, f.streams.used);
	CHECK_EQ(0u, f.leases.used);
	CHECK_EQ(0u, map_count(&f.numbers) + map_count(&f.ids));
}

/* What cannot be counted is not: a stream is never stuck for it. */
TORTURE(without_memory_a_lease_is_not_counted)
{
	start();
	grant(7, 100, 4);
	for (uint64_t k = 0; k < 4; k++)
		(void)credit_settle(&f, 100 + k, 0);
	CHECK_EQ(4u, room(7, 4));
	CHECK_EQ(0u, f.streams.used);
	credits_release(&f);
}

/* ---- Stores that do not report every end ---- */

/* A lease of the message, `lease` long, is granted at 1000. */
static void
grant_for(uint64_t stream_no, uint64_t id, uint64_t token, slu_time lease)
{
	struct op op = claim(stream_no, 100);

	rows[0] = (struct op_row){ .id = id, .token = token, .claimed = 77, .until = 77 + lease };
	op.n_rows = 1;
	credit_grant(&f, &op, 1000);
}

TEST(an_end_without_a_report_makes_room_when_the_lease_is_over)
{
	f.by_time = true;
	CHECK(credits_next(&f) == SLU_NEVER);
	grant_for(7, 100, 1, SLU_MIN);
	grant_for(7, 101, 2, SLU_SEC);
	CHECK_EQ(1000 + SLU_SEC + CREDIT_LATE, credits_next(&f));
	CHECK_EQ(0u, credit_expire(&f, 1000 + SLU_SEC + CREDIT_LATE - 1));
	CHECK_EQ(7u, credit_expire(&f, 1000 + SLU_SEC + CREDIT_LATE));
	CHECK_EQ(1u, room(7, 2));
	CHECK_EQ(0u, credit_settle(&f, 101, 0), "once");
	CHECK_EQ(7u, credit_expire(&f, SLU_HOUR));
	CHECK_EQ(0u, credit_expire(&f, SLU_HOUR));
	CHECK_EQ(0u, f.streams.used);
}

TEST(a_lease_that_is_extended_takes_room_for_longer)
{
	f.by_time = true;
	grant_for(7, 100, 1, SLU_SEC);
	credit_extend(&f, 100, SLU_MIN);
	credit_extend(&f, 999, SLU_MIN); /* not of a stream */
	CHECK_EQ(SLU_MIN + CREDIT_LATE, credits_next(&f));
	CHECK_EQ(0u, credit_expire(&f, SLU_MIN));
	CHECK_EQ(7u, credit_settle(&f, 100, 0));
	CHECK(credits_next(&f) == SLU_NEVER);
}

/* A notice that is late tells of a lease that the message had before. */
TEST(the_end_of_another_lease_makes_no_room)
{
	f.by_time = true;
	grant_for(7, 100, 5, SLU_MIN);
	CHECK_EQ(0u, credit_settle(&f, 100, 4));
	CHECK_EQ(0u, room(7, 1));
	CHECK_EQ(7u, credit_settle(&f, 100, 5));
}
