#include "broker/flow.h"
#include "test.h"

static struct flows f;
static struct op_row rows[8];

static void
start(void)
{
	flows_init(&f, &(struct hash_key){ 1, 2 });
}

static struct op
claim(uint64_t flow, uint32_t most)
{
	return (struct op){ .verb = OP_CLAIM, .flow = flow, .flow_max = most, .rows = rows };
}

/* n messages from id on are leased under the flow. */
static void
grant(uint64_t flow, uint64_t id, uint32_t n)
{
	struct op op = claim(flow, 100);

	for (uint32_t i = 0; i < n; i++)
		rows[i].id = id + i;
	op.n_rows = n;
	flow_grant(&f, &op);
}

static uint32_t
room(uint64_t flow, uint32_t most)
{
	const struct op op = claim(flow, most);

	return flow_room(&f, &op);
}

TEST(what_is_leased_takes_room_until_it_is_settled)
{
	start();
	CHECK_EQ(3u, room(7, 3));
	grant(7, 100, 2);
	CHECK_EQ(1u, room(7, 3));
	CHECK_EQ(0u, room(7, 2));
	CHECK_EQ(0u, room(7, 1), "a setting that was lowered");
	CHECK_EQ(7u, flow_settle(&f, 101));
	CHECK_EQ(2u, room(7, 3));
	CHECK_EQ(0u, flow_settle(&f, 101), "once");
	CHECK_EQ(7u, flow_settle(&f, 100));
	CHECK_EQ(3u, room(7, 3));
	flows_release(&f);
}

TEST(flows_know_nothing_of_each_other)
{
	start();
	grant(1, 100, 3);
	grant(2, 200, 1);
	CHECK_EQ(0u, room(1, 3));
	CHECK_EQ(2u, room(2, 3));
	CHECK_EQ(2u, flow_settle(&f, 200));
	CHECK_EQ(1u, flow_settle(&f, 102));
	CHECK_EQ(1u, room(1, 3));
	flows_release(&f);
}

TEST(what_has_no_flow_has_no_limit)
{
	start();
	grant(0, 100, 3);
	CHECK_EQ(UINT32_MAX, room(0, 1));
	CHECK_EQ(0u, flow_settle(&f, 100));
	flows_release(&f);
}

/* Nothing is left of a flow that has ended. */
TEST(a_flow_costs_nothing_after_its_last_lease)
{
	start();
	for (uint64_t i = 1; i <= 1000; i++) {
		grant(i, i * 10, 4);
		for (uint64_t k = 0; k < 4; k++)
			CHECK_EQ(i, flow_settle(&f, i * 10 + k));
	}
	CHECK_EQ(0u, f.flows.used);
	CHECK_EQ(0u, f.leases.used);
	CHECK_EQ(0u, map_count(&f.numbers) + map_count(&f.ids));
	flows_release(&f);
}

/* What cannot be counted is not: a stream is never stuck for it. */
TORTURE(without_memory_a_lease_is_not_counted)
{
	start();
	grant(7, 100, 4);
	for (uint64_t k = 0; k < 4; k++)
		(void)flow_settle(&f, 100 + k);
	CHECK_EQ(4u, room(7, 4));
	CHECK_EQ(0u, f.flows.used);
	flows_release(&f);
}
