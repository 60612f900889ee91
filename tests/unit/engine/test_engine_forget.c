/*
 * What an engine must do: queues that are deleted. engine_rig.h has the rows.
 */
#include "engine_rig.h"

#include <stdio.h>

/* Until it is done; how many messages went, in *n unless NULL. */
static int
forget(struct rig *r, const char *queue, bool force, uint64_t *n)
{
	uint64_t sum = 0;
	struct op op;
	int rc;

	do {
		rig_op(&op, OP_FORGET, RIG_SPACE, queue);
		op.force = force;
		rc = rig_do(r, &op);
		sum += op.count;
	} while (!rc && op.cursor);
	if (n)
		*n = sum;
	return rc;
}

static bool
is_there(struct rig *r, const char *queue)
{
	struct op op;

	rig_op(&op, OP_STATS, RIG_SPACE, queue);
	op.queues = r->queues;
	op.max_queues = 1;
	return rig_do(r, &op) == 0;
}

/* The names of all queues. */
static const char *
names(struct rig *r)
{
	static char all[256];
	struct op op;

	rig_op(&op, OP_QUEUES, RIG_SPACE, "");
	op.queues = r->queues;
	op.max_queues = RIG_QUEUES;
	CHECK_EQ(0, rig_do(r, &op));
	all[0] = 0;
	for (uint32_t i = 0; i < op.n_queues; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%.20s ", r->queues[i].name);
	return all;
}

static void
finish(struct rig *r, const char *queue)
{
	CHECK_EQ(1, rig_claim(r, queue, 1));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, r->rows[0].id, r->rows[0].token));
}

CASE(an_empty_queue_is_deleted)
{
	rig_put(r, "a", NULL);
	rig_put(r, "q", NULL);
	finish(r, "q");
	CHECK_EQ(0, forget(r, "q", false, NULL));
	CHECK(!is_there(r, "q"));
	CHECK_STR("a ", names(r));
	CHECK_EQ(SLU_ENOTFOUND, forget(r, "q", false, NULL));
	rig_reopen(r);
	CHECK_STR("a ", names(r));
	rig_put(r, "q", NULL);
	CHECK_STR("a q ", names(r));
	rig_reopen(r);
	CHECK_STR("a q ", names(r));
}

CASE(a_queue_that_holds_messages_is_not_deleted)
{
	struct op_item dead = { .dead = true };

	rig_put(r, "q", NULL);
	CHECK_EQ(SLU_ENOTEMPTY, forget(r, "q", false, NULL));
	dead.id = rig_claim_one(r, "q");
	CHECK_EQ(SLU_ENOTEMPTY, forget(r, "q", false, NULL), "leased");
	CHECK_EQ(0, rig_item(r, OP_NACK, &dead));
	CHECK_EQ(SLU_ENOTEMPTY, forget(r, "q", false, NULL), "a dead letter");
	CHECK_EQ(1, rig_count(r, "q", MSG_DEAD));
}

CASE(by_force_all_messages_go_with_their_queue)
{
	struct op_item dead = { .dead = true };
	uint64_t n, leased, token;

	rig_put(r, "q", NULL);
	dead.id = rig_claim_one(r, "q");
	CHECK_EQ(0, rig_item(r, OP_NACK, &dead));
	rig_put(r, "q", NULL);
	leased = rig_claim_one(r, "q");
	token = r->rows[0].token;
	rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	rig_put(r, "q", &(struct rig_msg){ .key = "k", .idem = "once" });
	CHECK_EQ(0, forget(r, "q", true, &n));
	CHECK_EQ(5, n);
	CHECK(!is_there(r, "q"));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(r, OP_ACK, leased, token));
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, dead.id));
	rig_reopen(r);
	CHECK(!is_there(r, "q"));
	CHECK(rig_put(r, "q", &(struct rig_msg){ .key = "k", .idem = "once" }) > 5);
	CHECK_EQ(1, rig_claim(r, "q", 10));
	CHECK(r->rows[0].token > token);
	CHECK_EQ(1, r->rows[0].attempts);
}

CASE(a_long_queue_is_deleted_in_steps)
{
	static struct op_put puts[2500];
	struct op op;
	uint64_t n;

	EACH(i, puts)
		puts[i] = (struct op_put){ .m = { .id = i + 1, .prio = (int)(i % 3) } };
	rig_op_puts(&op, "q", puts, COUNT(puts));
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(1000, rig_claim(r, "q", 1000));
	rig_unpin(r);
	CHECK_EQ(1000, rig_claim(r, "q", 1000));
	CHECK_EQ(0, forget(r, "q", true, &n));
	CHECK_EQ(COUNT(puts), n);
	CHECK_STR("", names(r));
}

CASE(policy_keys_and_results_go_with_their_queue)
{
	struct policy p = policy_default;
	char text[32];
	uint64_t id;
	struct op op;

	p.max_attempts = 9;
	rig_policy(r, "q", &p);
	id = rig_put(r, "q", &(struct rig_msg){ .idem = "once", .keep = SLU_HOUR });
	finish(r, "q");
	CHECK_EQ(id, rig_put(r, "q", &(struct rig_msg){ .idem = "once" }));
	CHECK_EQ(0, rig_result(r, id, text, sizeof text));
	CHECK_EQ(0, forget(r, "q", false, NULL));
	rig_reopen(r);
	CHECK_EQ(SLU_ENOTFOUND, rig_result(r, id, text, sizeof text));
	rig_op(&op, OP_POLICY_GET, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(policy_default.max_attempts, op.policy.max_attempts);
	CHECK(rig_put(r, "q", &(struct rig_msg){ .idem = "once" }) != id);
}

/* The name of one that comes again is shown as it is spelled then. */
CASE(a_queue_that_comes_again_has_nothing_of_the_first)
{
	rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	rig_claim(r, "q", 1);
	CHECK_EQ(0, forget(r, "q", true, NULL));
	rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	CHECK_EQ(1, rig_count(r, "q", MSG_READY));
	CHECK_EQ(0, rig_count(r, "q", MSG_HELD));
	finish(r, "q");
	CHECK_EQ(0, forget(r, "q", false, NULL));
}
