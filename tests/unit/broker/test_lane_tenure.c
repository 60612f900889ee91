/* A lane whose shard several nodes own in turn: LANE-16. The test is the node. */
#include "lane_fixture.h"

#include "count_engine.h"
#include "engine/tenure.h"

static struct engine_ops given; /* engine_count that can be released */
static unsigned n_taken, n_closed, n_released;
static bool may_serve;

static uint64_t
count_releases(struct engine *e)
{
	(void)e;
	n_released++;
	return 7;
}

static bool
on_taken(void *arg, uint32_t lane, uint64_t epoch)
{
	(void)arg;
	(void)lane;
	(void)epoch;
	n_taken++;
	return may_serve;
}

static void
on_closed(void *arg, uint32_t lane, uint64_t epoch)
{
	(void)arg;
	(void)lane;
	CHECK_EQ(7, epoch);
	n_closed++;
}

static uint32_t settings_format; /* of the store */

static int
need_format(void *arg, uint32_t format, struct slu_err *err)
{
	(void)arg;
	return format <= settings_format ? 0 : slu_fail(err, SLU_EDOWN, "update node b");
}

static void
start_elsewhere(void)
{
	static const struct engine_tenure tenure = { .taken = on_taken, .closed = on_closed, .need_format = need_format };
	static const _Atomic uint32_t one = 1;
	const struct engine_conf conf = { .tenure = &tenure };

	end();
	given = engine_count;
	given.release = count_releases;
	n_taken = n_closed = n_released = 0;
	may_serve = true;
	settings_format = 3;
	fakeclock_init(&fake, SLU_SEC, SLU_HOUR);
	CHECK_EQ(0, lane_open(&s, &engine_count, &conf, &fake.clock, 0, &one, NULL));
	s.engine->ops = &given;
	is_open = true;
}

static void
order(enum broker_order what)
{
	lane_order(&s, what);
	turn();
}

TEST(a_lane_serves_between_take_and_give)
{
	static struct op_call before, m, after;

	start_elsewhere();
	push(&before, "q", 0);
	CHECK_EQ(SLU_EMOVED, rc_of(&before));
	order(BROKER_TAKE);
	push(&m, "q", 0);
	CHECK_EQ(0, rc_of(&m));
	CHECK_EQ(0, n_closed);
	order(BROKER_GIVE);
	push(&after, "q", 0);
	CHECK_EQ(SLU_EMOVED, rc_of(&after));
	CHECK_EQ(1, n_taken);
	CHECK_EQ(1, n_closed);
}

/* LINE-12: beats have said that the node gave the shard in this epoch, so other nodes may take it. */
TEST(a_lane_that_may_not_serve_closes_its_engine_and_tries_again_by_order)
{
	static struct op_call m, again;

	start_elsewhere();
	may_serve = false;
	order(BROKER_TAKE);
	push(&m, "q", 0);
	CHECK_EQ(SLU_EMOVED, rc_of(&m));
	CHECK_EQ(1, n_released);
	CHECK_EQ(1, n_closed);
	may_serve = true;
	order(BROKER_TAKE);
	push(&again, "q", 0);
	CHECK_EQ(0, rc_of(&again));
}

TEST(an_order_to_take_what_the_lane_has_changes_nothing)
{
	start_elsewhere();
	order(BROKER_TAKE);
	order(BROKER_TAKE);
	CHECK_EQ(1, n_taken);
	CHECK_EQ(0, n_closed);
}

/* ---- LANE-20 ---- */

static void
lapse(bool lapsed)
{
	lane_set_lapsed(&s, lapsed);
	turn();
}

TEST(LANE_20_no_op_waits_while_another_node_may_own_the_shard)
{
	static struct op_call before, during, m, after;

	start_elsewhere();
	order(BROKER_TAKE);
	claim(&before, "q", SLU_HOUR);
	CHECK_EQ(0, before.done);
	lapse(true);
	CHECK_EQ(SLU_EMOVED, rc_of(&before));
	claim(&during, "q", SLU_HOUR);
	CHECK_EQ(SLU_EMOVED, rc_of(&during));
	lapse(false);
	claim(&after, "q", SLU_HOUR);
	CHECK_EQ(0, after.done);
	push(&m, "q", 0);
	CHECK_EQ(m.put.m.id, got(&after));
}

TEST(LANE_20_no_op_waits_behind_an_open_batch_either)
{
	static struct op_call m, waits, goes;

	start_elsewhere();
	order(BROKER_TAKE);
	count_hold(s.engine);
	push(&m, "q", 0);
	claim(&waits, "q", SLU_HOUR);
	claim(&goes, "q", 0);
	lapse(true);
	CHECK_EQ(0, m.done);
	CHECK_EQ(SLU_EMOVED, rc_of(&waits));
	CHECK_EQ(0, goes.done);
	count_release(s.engine, 0);
	turn();
	CHECK_EQ(m.put.m.id, got(&goes));
}

/* ---- LANE-18: another node runs the op. The test is that node. ---- */

static struct op *sent;
static unsigned n_sent, n_flushes, n_cancels;
static bool refuses;

static bool
on_send(void *arg, uint32_t lane, struct op *op)
{
	(void)arg;
	CHECK_EQ(s.index, lane);
	if (refuses)
		return false;
	n_sent++;
	sent = op;
	return true;
}

static void
on_flush(void *arg)
{
	(void)arg;
	n_flushes++;
}

static void
on_cancel(void *arg, struct op *op)
{
	(void)arg;
	CHECK(op == sent);
	n_cancels++;
}

static void
start_with_remote(void)
{
	static const struct broker_remote remote = { .send = on_send, .flush = on_flush, .cancel = on_cancel };

	start_elsewhere();
	s.remote = &remote;
	sent = NULL;
	n_sent = n_flushes = n_cancels = 0;
	refuses = false;
}

static void
come_back(int rc, bool again)
{
	if (rc)
		op_fail(sent, rc, NULL);
	lane_came_back(&s, sent, again);
	turn();
}

TEST(an_op_of_another_nodes_shard_is_sent_there)
{
	static struct op_call m, refused;

	start_with_remote();
	push(&m, "q", 0);
	CHECK(sent == &m.op);
	CHECK_EQ(0, m.done);
	come_back(SLU_EFULL, false);
	CHECK_EQ(SLU_EFULL, rc_of(&m));
	refuses = true;
	push(&refused, "q", 0);
	CHECK_EQ(SLU_EMOVED, rc_of(&refused));
}

TEST(ops_that_come_together_leave_together)
{
	static struct op_call m[3];

	start_with_remote();
	EACH(i, m) {
		call(&m[i], OP_PURGE, "ns", "q");
		CHECK_EQ(0, lane_post(&s, &m[i].op));
	}
	turn();
	CHECK_EQ(3, n_sent);
	CHECK_EQ(1, n_flushes);
	EACH(i, m) {
		sent = &m[i].op;
		come_back(0, false);
		CHECK_EQ(0, rc_of(&m[i]));
	}
	turn();
	CHECK_EQ(1, n_flushes, "nothing was sent");
}

TEST(an_op_that_comes_back_undone_is_sent_again_a_few_times)
{
	static struct op_call m;

	start_with_remote();
	push(&m, "q", 0);
	for (unsigned i = 1; i < LANE_SENDS; i++)
		come_back(0, true);
	CHECK_EQ(LANE_SENDS, n_sent);
	CHECK_EQ(0, m.done);
	come_back(0, true);
	CHECK_EQ(LANE_SENDS, n_sent);
	CHECK_EQ(SLU_EMOVED, rc_of(&m));
}

TEST(an_op_that_comes_back_undone_runs_here_if_the_lane_has_the_shard_now)
{
	static struct op_call m;

	start_with_remote();
	push(&m, "q", 0);
	order(BROKER_TAKE);
	come_back(0, true);
	CHECK_EQ(1, n_sent);
	CHECK_EQ(0, rc_of(&m));
}

TEST(an_op_that_another_node_sent_goes_no_further)
{
	static struct op_call m;

	start_with_remote();
	call(&m, OP_PURGE, "ns", "q");
	m.op.route.forwarded = true;
	CHECK_EQ(0, lane_post(&s, &m.op));
	turn();
	CHECK_EQ(0, n_sent);
	CHECK_EQ(SLU_EMOVED, rc_of(&m));
}

/* PEER-5: a stream of another node goes to the next owner, other waits end. */
TEST(a_lane_that_drains_gives_streams_of_other_nodes_back)
{
	static const struct {
		const char *label;
		bool forwarded, drained; /* drained: before the claim comes */
		uint64_t stream;
		int rc;
	} cases[] = {
		{ "a stream of another node", true, false, 7, SLU_ECLOSED },
		{ "the same, later", true, true, 7, SLU_ECLOSED },
		{ "a claim of another node", true, false, 0, 0 },
		{ "a stream of this node", false, false, 7, 0 },
	};

	EACH(i, cases) {
		static struct op_call m;
		static struct op_row row;

		start_elsewhere();
		order(BROKER_TAKE);
		if (cases[i].drained)
			lane_drain(&s);
		call(&m, OP_CLAIM, "ns", "q");
		m.op.rows = &row;
		m.op.max_rows = 1;
		m.op.wait = SLU_NEVER;
		m.op.claim.stream = cases[i].stream;
		m.op.claim.credit = 1;
		m.op.route.forwarded = cases[i].forwarded;
		CHECK_EQ(0, lane_post(&s, &m.op));
		turn();
		CHECK_EQ(cases[i].drained, m.done, cases[i].label);
		lane_drain(&s);
		turn();
		CHECK_EQ(cases[i].rc, rc_of(&m), cases[i].label);
		CHECK_EQ(0, m.op.n_rows, cases[i].label);
	}
}

static struct op_call list_of_queues;

static void
push_list(bool local)
{
	call(&list_of_queues, OP_QUEUES, "ns", "");
	list_of_queues.op.route.spans = true;
	list_of_queues.op.route.local = local;
	list_of_queues.op.cursor = 5;
	CHECK_EQ(0, lane_post(&s, &list_of_queues.op));
	turn();
}

TEST(an_op_over_all_lanes_travels_with_the_number_of_its_lane)
{
	const uint64_t named = 3ull << BROKER_CURSOR_BITS | 5;

	start_with_remote();
	s.index = 3;
	push_list(false);
	CHECK_EQ(1, n_sent);
	CHECK_EQ(named, sent->cursor);
	come_back(0, true);
	CHECK_EQ(2, n_sent);
	CHECK_EQ(named, sent->cursor);
	sent->cursor = 0; /* the answer: no more */
	come_back(0, false);
	CHECK_EQ(0, rc_of(&list_of_queues));
	CHECK_EQ(0, list_of_queues.op.cursor);
	refuses = true;
	push_list(false);
	CHECK_EQ(SLU_EMOVED, rc_of(&list_of_queues));
	CHECK_EQ(5, list_of_queues.op.cursor);
}

TEST(an_op_over_all_lanes_of_this_node_finds_nothing_on_a_lane_of_another)
{
	start_with_remote();
	push_list(true);
	CHECK_EQ(0, n_sent);
	CHECK_EQ(0, rc_of(&list_of_queues));
	CHECK_EQ(0, list_of_queues.op.cursor);
}

TEST(a_cancel_follows_its_op_to_the_other_node)
{
	static struct op_call m;

	start_with_remote();
	call(&m, OP_CLAIM, "ns", "q");
	m.op.wait = SLU_HOUR;
	CHECK_EQ(0, lane_post(&s, &m.op));
	turn();
	lane_cancel(&s, &m.op);
	turn();
	CHECK_EQ(1, n_cancels);
	CHECK_EQ(0, m.done);
	come_back(SLU_ECANCELED, false);
	CHECK_EQ(SLU_ECANCELED, rc_of(&m));
}

/* The broker drains, and the wait on the other node was ended for that. */
TEST(a_wait_on_another_node_ends_without_rows_when_the_lane_drains)
{
	static struct op_call m;

	start_with_remote();
	call(&m, OP_CLAIM, "ns", "q");
	m.op.wait = SLU_HOUR;
	CHECK_EQ(0, lane_post(&s, &m.op));
	turn();
	lane_drain(&s);
	turn();
	come_back(SLU_ECANCELED, false);
	CHECK_EQ(0, rc_of(&m));
	CHECK_EQ(0, m.op.n_rows);
}

/* LINE-16 */
TEST(LANE_19_an_op_that_an_older_node_cannot_read_is_not_sent)
{
	static struct op_call m, old;

	start_with_remote();
	settings_format = 2;
	call(&m, OP_INTAKE, "ns", "q");
	CHECK_EQ(0, lane_post(&s, &m.op));
	turn();
	CHECK_EQ(SLU_EDOWN, rc_of(&m));
	CHECK_STR("update node b", m.op.err.text);
	CHECK_EQ(0, n_sent);
	push(&old, "q", 0);
	CHECK_EQ(1, n_sent);
	come_back(0, false);
}
