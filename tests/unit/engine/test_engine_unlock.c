/*
 * An OP_FINISH that releases a lock key, on every engine that has a ledger. The Redis engine refuses it.
 */
#include "lock_fixture.h"

#include "base/mem.h"

#include <string.h>

/* A message that is leased, and a key that is held, with a staged state. */
struct both {
	struct held h;
	struct op_item item;
	char key[24], queue[24], next[24];
};

static bool
is_redis(const struct rig *r)
{
	return strcmp(r->row->engine->name, "redis") == 0;
}

static void
prepare_number(struct rig *r, struct both *b, int n)
{
	*b = (struct both){ 0 };
	snprintf(b->key, sizeof b->key, "stock/%d", n);
	snprintf(b->queue, sizeof b->queue, "q%d", n);
	snprintf(b->next, sizeof b->next, "next%d", n);
	rig_put(r, b->queue, NULL);
	CHECK_EQ(1, rig_claim(r, b->queue, 1));
	b->item = (struct op_item){ .id = r->rows[0].id, .token = r->rows[0].token };
	CHECK_EQ(0, acquire(r, &b->h, b->key, "me", 0));
	CHECK_EQ(0, put(r, &b->h, b->key, "staged"));
}

static void
prepare(struct rig *r, struct both *b)
{
	prepare_number(r, b, 42);
}

/* state NULL: what is staged. */
static int
step(struct rig *r, struct both *b, const char *state)
{
	static struct op_put child;

	rig_op(&r->op, OP_FINISH, RIG_SPACE, b->queue);
	child = (struct op_put){ .m = { .id = r->next_id++, .queue = slice_of(b->next) } };
	r->op.items = &b->item;
	r->op.n_items = 1;
	r->op.puts = &child;
	r->op.n_puts = 1;
	r->op.unlock.key = slice_of(b->key);
	r->op.unlock.token = b->h.op.lock.token;
	memcpy(r->op.unlock.txn, b->h.op.lock.txn, LOCK_TXN);
	r->op.unlock.state = slice_of(state ? state : "");
	return rig_do(r, &r->op);
}

static void
check_done(struct rig *r, const struct both *b, const char *state)
{
	struct held seen;

	memset(&seen, 0, sizeof seen);
	CHECK_STR(state, get_public(r, b->key));
	describe(r, &seen, b->key);
	CHECK_EQ(0, seen.op.lock.token, "the key is free");
	CHECK_EQ(1, seen.op.lock.version);
	CHECK_EQ(1, rig_count(r, b->next, MSG_READY));
}

static void
check_undone(struct rig *r, const struct both *b)
{
	struct held mine = b->h, seen;

	memset(&seen, 0, sizeof seen);
	CHECK_STR("", get_public(r, b->key));
	describe(r, &seen, b->key);
	CHECK_EQ(b->h.op.lock.token, seen.op.lock.token, "the key is held");
	CHECK_EQ(0, seen.op.lock.version);
	CHECK_STR("staged", get(r, &mine, b->key, "")); /* as its holder sees it */
	CHECK_EQ(0, rig_count(r, b->next, MSG_READY));
	CHECK_EQ(1, rig_count(r, b->queue, MSG_LEASED));
}

CASE(an_ack_releases_a_key_and_commits_what_was_staged)
{
	struct both b;

	prepare(r, &b);
	if (is_redis(r)) {
		CHECK_EQ(SLU_EINVAL, step(r, &b, NULL));
		return;
	}
	CHECK_EQ(0, step(r, &b, NULL));
	check_done(r, &b, "staged");
	rig_reopen(r);
	check_done(r, &b, "staged");
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, b.item.id));
}

CASE(a_nack_releases_a_key_with_a_new_state)
{
	struct both b;

	if (is_redis(r))
		return;
	prepare(r, &b);
	b.item.nack = true;
	CHECK_EQ(0, step(r, &b, "{\"kg\":3}"));
	check_done(r, &b, "{\"kg\":3}");
	rig_reopen(r);
	check_done(r, &b, "{\"kg\":3}");
	CHECK_EQ(1, rig_count(r, b.queue, MSG_READY));
	CHECK_EQ(0, acquire(r, &b.h, "stock/42", "another", 0));
}

CASE(a_step_without_the_lease_of_the_key_does_nothing)
{
	struct both b;

	if (is_redis(r))
		return;
	prepare(r, &b);
	b.h.op.lock.token++;
	CHECK_EQ(SLU_ELEASE, step(r, &b, NULL));
	CHECK(strstr(r->op.err.text, "key stock/42") != NULL);
	b.h.op.lock.token--;
	b.h.op.lock.txn[0]++;
	CHECK_EQ(SLU_ECONFLICT, step(r, &b, NULL));
	b.h.op.lock.txn[0]--;
	rig_reopen(r);
	check_undone(r, &b);
	CHECK_EQ(0, step(r, &b, NULL));
	CHECK_EQ(SLU_ENOTFOUND, step(r, &b, NULL), "the message comes first");
}

CASE(a_step_without_the_lease_of_the_message_leaves_the_key)
{
	struct both b;

	if (is_redis(r))
		return;
	prepare(r, &b);
	b.item.token++;
	CHECK_EQ(SLU_ELEASE, step(r, &b, "{}"));
	rig_reopen(r);
	check_undone(r, &b);
	CHECK_EQ(0, end(r, &b.h, "stock/42", false));
	CHECK_STR("staged", get_public(r, "stock/42"));
}

CASE(a_lease_of_a_key_that_has_ended_refuses_the_step)
{
	struct both b;

	if (is_redis(r))
		return;
	prepare(r, &b);
	CHECK_EQ(0, rig_settle_one(r, OP_NACK, b.item.id, b.item.token));
	rig_pass(r, LOCK_TTL);
	CHECK_EQ(1, rig_claim(r, b.queue, 1));
	b.item.token = r->rows[0].token;
	CHECK_EQ(SLU_ELEASE, step(r, &b, NULL));
	CHECK_EQ(1, rig_count(r, b.queue, MSG_LEASED));
	CHECK_STR("", get_public(r, "stock/42"));
}

/* Any allocation may fail. Returns whether one has. */
static bool
lack(struct rig *r, int n, int *refused)
{
	struct both b;
	bool failed;
	int rc;

	prepare_number(r, &b, n);
	b.item.nack = true;
	b.item.text = SLICE("no room");
	mem_fail_at(n);
	rc = step(r, &b, "{\"kg\":3}");
	failed = mem_failed();
	mem_fail_at(0);
	CHECK(rc == 0 || (failed && rc == SLU_ENOMEM));
	for (int i = 0; i < 2; i++) {
		if (rc)
			check_undone(r, &b);
		else
			check_done(r, &b, "{\"kg\":3}");
		rig_reopen(r);
	}
	*refused += rc != 0;
	return failed;
}

static void
lack_each(struct rig *r)
{
	int n = 1, refused = 0;

	while (lack(r, n, &refused))
		n++;
	CHECK(refused > 3);
}

TEST(memory_a_step_that_lacks_memory_does_nothing)
{
	rig_run(RIG_MEMORY, lack_each);
}

TEST(log_a_step_that_lacks_memory_does_nothing)
{
	rig_run(RIG_LOG, lack_each);
}
