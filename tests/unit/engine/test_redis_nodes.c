/*
 * test_redis_nodes.c - the servers of a shard: slots, and how long a server that is down is left alone.
 */
#include "test.h"

#include "engine/redis/nodes.h"

TEST(the_slot_of_a_key_is_that_of_its_braces)
{
	CHECK_EQ(12739, rnode_slot(SLICE("123456789"))); /* the specification of Redis Cluster */
	CHECK_EQ(rnode_slot(SLICE("q:ns")), rnode_slot(SLICE("sluice:q:{q:ns}:msg")));
}

/* REDISNODES-2 */
TEST(a_server_that_is_down_is_tried_again_after_twice_as_long)
{
	static const struct {
		const char *label;
		bool refuses;
		int ms[8];
	} cases[] = {
		{ "out of reach", false, { 100, 200, 400, 800, 1600, 3200, 5000, 5000 } },
		{ "answers, and refuses", true, { 100, 200, 400, 800, 1000, 1000, 1000, 1000 } },
	};
	const struct slu_err why = { .code = SLU_EDOWN };

	EACH(i, cases) {
		struct rnodes s = { .now = SLU_SEC };
		struct rnode n = { .wire.fd = -1 };

		EACH(k, cases[i].ms) {
			n.refuses = cases[i].refuses;
			rnode_down(&s, &n, &why);
			CHECK_EQ(s.now + cases[i].ms[k] * SLU_MS, n.down_until, cases[i].label);
		}
		rnode_up(&n);
		CHECK_EQ(0, n.down_until, cases[i].label);
		rwire_release(&n.wire);
	}
}
