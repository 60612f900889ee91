/*
 * What an engine must do for its operator: pause, purge, count, look page by page, and
 * be copied while it runs. engine_rig.h has the rows.
 */
#include "engine_rig.h"

#include "engine/log/logengine.h"
#include "engine/presence.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int
pause_queue(struct rig *r, const char *queue, bool paused)
{
	struct op op;

	rig_op(&op, OP_PAUSE, RIG_SPACE, queue);
	op.policy.paused = paused;
	return rig_do(r, &op);
}

static const struct op_queue *
stats(struct rig *r, const char *queue)
{
	struct op op;

	rig_op(&op, OP_STATS, RIG_SPACE, queue);
	op.queues = r->queues;
	CHECK_EQ(0, rig_do(r, &op));
	return r->queues;
}

/* ---- Pause ---- */

CASE(a_paused_queue_takes_and_settles_and_hands_out_nothing)
{
	uint64_t leased, token;

	rig_put(r, "q", NULL);
	leased = rig_claim_one(r, "q");
	token = r->rows[0].token;
	CHECK_EQ(0, pause_queue(r, "q", true));
	rig_woken(r);
	CHECK(rig_put(r, "q", NULL) != 0);
	CHECK_STR("", rig_woken(r)); /* for what is not handed out */
	CHECK_EQ(0, rig_claim(r, "q", 10));
	CHECK(stats(r, "q")->paused);
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, leased, token));
	rig_reopen(r);
	CHECK(stats(r, "q")->paused);
	CHECK_EQ(0, rig_claim(r, "q", 10));
	rig_woken(r);
	CHECK_EQ(0, pause_queue(r, "q", false));
	CHECK_STR("q", rig_woken(r));
	CHECK_EQ(1, rig_claim(r, "q", 10));
}

CASE(a_paused_queue_has_no_head)
{
	const uint64_t id = rig_put(r, "q", NULL);
	struct op op;

	rig_op(&op, OP_WATCH, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(id, op.id);
	CHECK_EQ(0, pause_queue(r, "q", true));
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(0, op.id);
	CHECK_EQ(SLU_ETIMEOUT, rig_do(r, &op), "it is still the same");
}

CASE(a_pause_leaves_the_other_knobs_alone)
{
	struct policy policy = policy_default;
	struct op op;

	policy.max_attempts = 3;
	rig_policy(r, "q", &policy);
	CHECK_EQ(0, pause_queue(r, "q", true));
	CHECK_EQ(0, pause_queue(r, "q", true), "again is fine");
	rig_op(&op, OP_POLICY_GET, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK(op.policy.paused);
	CHECK_EQ(3, op.policy.max_attempts);
}

CASE(a_pause_with_an_end_is_kept_and_ends)
{
	struct op op;

	rig_put(r, "q", NULL);
	rig_op(&op, OP_PAUSE, RIG_SPACE, "q");
	op.policy.paused = true;
	op.policy.pause = (struct pause_note){ .until = r->now + SLU_HOUR, .reason = "release", .by = "alice" };
	if (r->row == &rig_rows[RIG_REDIS]) {
		CHECK_EQ(SLU_EINVAL, rig_do(r, &op), "it keeps neither");
		return;
	}
	CHECK_EQ(0, rig_do(r, &op));
	rig_reopen(r);
	CHECK(stats(r, "q")->paused);
	CHECK_STR("release", stats(r, "q")->pause.reason);
	CHECK_STR("alice", stats(r, "q")->pause.by);
	CHECK_EQ(0, rig_claim(r, "q", 10));
	rig_pass(r, SLU_HOUR);
	CHECK(!stats(r, "q")->paused);
	CHECK_STR("", stats(r, "q")->pause.reason);
	rig_reopen(r);
	CHECK_EQ(1, rig_claim(r, "q", 10));
}

static int
set_state(struct rig *r, uint8_t sets, bool paused, bool draining)
{
	struct op op;

	rig_op(&op, OP_PAUSE, RIG_SPACE, "q");
	op.sets = sets;
	op.policy.paused = paused;
	op.policy.draining = draining;
	return rig_do(r, &op);
}

static int
put_once(struct rig *r, const char *idem)
{
	return rig_put(r, "q", &(struct rig_msg){ .idem = idem }) ? 0 : r->op.rc;
}

CASE(a_queue_that_is_drained_refuses_messages_and_delivers_those_it_has)
{
	rig_put(r, "q", &(struct rig_msg){ .idem = "known" });
	CHECK_EQ(0, set_state(r, OP_SETS_DRAIN, false, true));
	CHECK(stats(r, "q")->draining && !stats(r, "q")->paused);
	CHECK_EQ(SLU_EDRAINING, put_once(r, "new"));
	CHECK_EQ(0, put_once(r, "known"), "a repeated call gets its answer");
	CHECK_EQ(0, set_state(r, OP_SETS_PAUSE, true, false));
	rig_reopen(r);
	CHECK(stats(r, "q")->draining);
	CHECK(stats(r, "q")->paused);
	CHECK_EQ(0, rig_claim(r, "q", 10));
	CHECK_EQ(0, set_state(r, OP_SETS_PAUSE, false, false));
	CHECK_EQ(SLU_EDRAINING, put_once(r, "new"));
	CHECK_EQ(1, rig_claim(r, "q", 10));
	CHECK_EQ(0, set_state(r, OP_SETS_PAUSE | OP_SETS_DRAIN, false, false));
	CHECK(!stats(r, "q")->draining);
	CHECK_EQ(0, put_once(r, "new"));
}

CASE(an_unknown_queue_is_not_paused)
{
	rig_put(r, "other", NULL);
	CHECK_EQ(SLU_ENOTFOUND, pause_queue(r, "q", true));
}

/* ---- Numbers ---- */

CASE(a_purge_says_how_many_went)
{
	struct op op;

	rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	rig_put(r, "q", NULL);
	rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	rig_put(r, "q", &(struct rig_msg){ .key = "k" });
	rig_op(&op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(4, op.count);
	CHECK_EQ(1, rig_count(r, "q", MSG_LEASED));
}

CASE(a_long_queue_is_purged_whole)
{
	static struct op_put puts[2500];
	struct op op;

	EACH(i, puts) {
		puts[i] = (struct op_put){ .m = { .id = i + 1, .prio = (int)(i % 3) } };
		if (i % 2)
			puts[i].m.key = SLICE("k");
		if (i % 5 == 4)
			puts[i].delay = SLU_HOUR;
	}
	rig_op_puts(&op, "q", puts, COUNT(puts));
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(10, rig_claim(r, "q", 10));
	rig_op(&op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(COUNT(puts) - 10, op.count);
	CHECK_EQ(0, rig_count(r, "q", MSG_READY) + rig_count(r, "q", MSG_DELAYED) +
			    rig_count(r, "q", MSG_HELD));
	CHECK_EQ(10, rig_count(r, "q", MSG_LEASED));
	rig_return(r);
	CHECK_EQ(10, rig_claim(r, "q", 20));
}

CASE(a_queue_counts_what_has_happened)
{
	struct op_item item = { .time = 0 };
	struct ledger_totals t;

	for (int i = 0; i < 4; i++)
		rig_put(r, "q", NULL);
	rig_put(r, "other", NULL);
	CHECK_EQ(3, rig_claim(r, "q", 3));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, r->rows[0].id, 0));
	item.id = r->rows[1].id;
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	item.id = r->rows[2].id;
	item.dead = true;
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	t = stats(r, "q")->totals;
	CHECK_EQ(4, t.accepted);
	CHECK_EQ(3, t.delivered);
	CHECK_EQ(1, t.done);
	CHECK_EQ(2, t.failed);
	CHECK_EQ(1, t.died);
	if (!r->e->ops->durable)
		return;
	rig_reopen(r);
	t = stats(r, "q")->totals;
	CHECK_EQ(0, t.accepted, "they count from the start");
	CHECK_EQ(0, t.died);
}

CASE(a_queue_knows_how_long_its_oldest_message_waits)
{
	rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	CHECK_EQ(-1, stats(r, "q")->oldest, "what is delayed does not wait for anybody");
	rig_put(r, "q", &(struct rig_msg){ .prio = 9 });
	rig_pass(r, 2 * SLU_SEC);
	rig_put(r, "q", &(struct rig_msg){ .prio = 1 });
	rig_pass(r, 3 * SLU_SEC);
	CHECK_EQ(5 * SLU_SEC, stats(r, "q")->oldest);
}

/* ---- Looking ---- */

CASE(a_list_goes_on_behind_any_of_its_rows)
{
	static const enum msg_state states[] = { MSG_READY, MSG_DEAD };
	uint64_t all[20];

	for (int i = 0; i < 20; i++) {
		struct op_item item = { .dead = true };

		rig_put(r, "q", NULL);
		if (i % 2)
			continue;
		item.id = rig_claim_one(r, "q");
		CHECK_EQ(0, rig_item(r, OP_NACK, &item));
		rig_put(r, "other", NULL);
	}
	EACH(i, states) {
		r->cursor = 0;
		CHECK_EQ(10, rig_list(r, "q", states[i], 20));
		for (int j = 0; j < 10; j++)
			all[j] = r->rows[j].id;
		r->cursor = r->rows[3].after;
		CHECK_EQ(6, rig_list(r, "q", states[i], 20));
		for (int j = 0; j < 6; j++)
			CHECK_EQ(all[j + 4], r->rows[j].id);
	}
}

static uint32_t
first_page(struct rig *r, const char *queue, enum msg_state state)
{
	r->cursor = 0;
	return rig_list(r, queue, state, 10);
}

/* One message in each state. */
static void
put_each_state(struct rig *r, const char *queue)
{
	struct op_item dead = { .dead = true };

	rig_put(r, queue, NULL);
	dead.id = rig_claim_one(r, queue);
	CHECK_EQ(0, rig_item(r, OP_NACK, &dead));
	rig_put(r, queue, NULL);
	CHECK_EQ(1, rig_claim(r, queue, 1));
	CHECK_EQ(0, rig_settle_one(r, OP_QUARANTINE, r->rows[0].id, r->rows[0].token));
	rig_put(r, queue, NULL);
	CHECK_EQ(1, rig_claim_for(r, queue, SLU_HOUR));
	rig_put(r, queue, &(struct rig_msg){ .delay = SLU_HOUR });
	rig_put(r, queue, &(struct rig_msg){ .key = "k" });
	rig_put(r, queue, &(struct rig_msg){ .key = "k" });
}

CASE(the_first_page_of_a_small_queue_takes_one_call)
{
	rig_fill(r, "big", &(struct rig_msg){ .prio = 9 }, 50000);
	put_each_state(r, "small");
	rig_fill(r, "big", &(struct rig_msg){ .prio = 9 }, 50000);
	for (enum msg_state state = MSG_READY; state < MSG_STATES; state++) {
		CHECK_EQ(1, first_page(r, "small", state));
		CHECK_EQ(state, r->rows[0].state);
		CHECK_EQ(0, r->cursor, "that was all");
	}
	CHECK_EQ(6, first_page(r, "small", MSG_NONE));
	CHECK_EQ(0, r->cursor);
}

CASE(few_messages_of_a_state_are_found_among_many_of_another)
{
	rig_fill(r, "q", &(struct rig_msg){ .prio = 9 }, 50000);
	put_each_state(r, "q");
	rig_fill(r, "q", &(struct rig_msg){ .prio = 9 }, 50000);
	for (enum msg_state state = MSG_DELAYED; state < MSG_STATES; state++) {
		CHECK_EQ(1, first_page(r, "q", state));
		CHECK_EQ(state, r->rows[0].state);
		CHECK_EQ(0, r->cursor);
	}
	CHECK_EQ(10, first_page(r, "q", MSG_READY));
}

CASE(a_walk_sees_what_stays_once_while_others_come_and_go)
{
	enum {
		STAY = 3000
	};
	uint8_t seen[STAY + 1] = { 0 };
	uint32_t pages = 0;

	r->next_id = 1;
	rig_fill(r, "q", &(struct rig_msg){ .prio = 9 }, STAY); /* of the lowest priority: others are claimed before them */
	for (uint64_t cursor = 0; pages == 0 || cursor; pages++) {
		r->cursor = cursor;
		rig_list(r, "q", MSG_READY, 300);
		cursor = r->cursor;
		for (uint32_t i = 0; i < r->n; i++)
			if (r->rows[i].id <= STAY)
				seen[r->rows[i].id]++;
		for (int i = 0; i < 40; i++)
			rig_put(r, "q", &(struct rig_msg){ .prio = i % 7 });
		CHECK_EQ(30, rig_claim(r, "q", 30));
		for (uint32_t i = 0; i < 30; i++)
			CHECK_EQ(0, rig_settle_one(r, OP_ACK, r->rows[i].id, r->rows[i].token));
	}
	for (uint32_t id = 1; id <= STAY; id++)
		CHECK_EQ(1, seen[id]);
	CHECK(pages >= 10);
}

/* ---- Presence ---- */

static int
register_node(struct rig *r, struct op_presence *p, uint32_t node, uint64_t self)
{
	struct op op;

	rig_op(&op, OP_PRESENCE, "", "");
	p->me = (struct presence_node){ .node = node, .self = self, .hash = 7, .version = 2, .beat = 1 };
	op.presence = p;
	return rig_do(r, &op);
}

CASE(a_node_that_registers_sees_the_nodes_before_it_and_only_a_shared_engine_has_nodes)
{
	static struct op_presence p;

	if (!r->e->ops->shared) {
		CHECK_EQ(SLU_EINVAL, register_node(r, &p, 3, 0xa));
		return;
	}
	CHECK_EQ(0, register_node(r, &p, 3, 0xa));
	CHECK_EQ(0, p.n);
	CHECK_EQ(0, register_node(r, &p, 4, 0xb));
	CHECK_EQ(1, p.n);
	CHECK_EQ(3, p.nodes[0].node);
	CHECK_EQ(0xa, p.nodes[0].self);
	CHECK_EQ(7, p.nodes[0].hash);
	CHECK_EQ(0, register_node(r, &p, 3, 0xc));
	CHECK_EQ(2, p.n, "an earlier process of the node is one of them");
}

/* ---- Backup ---- */

static int
backup(struct rig *r, struct op *op, enum backup_step step, uint64_t id, uint32_t file)
{
	rig_op(op, OP_BACKUP, "", "");
	op->backup = (struct op_backup){ .step = step, .id = id, .file = file };
	return rig_do(r, op);
}

/* As a client would: the bytes of the file, zeros behind them. */
static void
copy_file(struct rig *r, uint64_t id, uint32_t file)
{
	char path[128];
	struct op op;
	char *bytes;
	int fd;

	CHECK_EQ(0, backup(r, &op, BACKUP_READ, id, file));
	bytes = malloc(op.backup.bytes);
	CHECK_EQ(0, r->e->ops->read_file(r->e, &op.result, 0, op.backup.bytes, bytes, NULL));
	snprintf(path, sizeof path, "copy/%s", op.backup.name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0);
	CHECK_EQ((long)op.backup.bytes, (long)write(fd, bytes, op.backup.bytes));
	CHECK_EQ(0, ftruncate(fd, (off_t)op.backup.size));
	close(fd);
	free(bytes);
	op_unpin(&op);
}

/* Everything that was there when the backup began, and nothing else. */
static void
check_copy(uint32_t messages, uint64_t last)
{
	const struct engine_conf conf = { .folder = "copy" };
	struct logengine_facts facts;
	struct slu_err err;

	if (logengine_check(&conf, &facts, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	CHECK(!facts.wrong);
	CHECK_EQ(messages, facts.messages);
	CHECK_EQ(last, facts.last_seq);
}

/* So much that segments are recycled, several times over. */
static void
churn(struct rig *r)
{
	static const char text[] = "some text that fills segments of 64 KiB, again and again";

	for (uint32_t i = 0; i < rig_turns(r, 3000); i++) {
		rig_put(r, "churn", &(struct rig_msg){ .payload = text });
		CHECK_EQ(1, rig_claim(r, "churn", 1));
		CHECK_EQ(0, rig_settle_one(r, OP_ACK, r->rows[0].id, 0));
	}
	rig_unpin(r);
}

/* ---- How queues are shown ---- */

static void
put_as(struct rig *r, const char *queue, const char *space_as, const char *as)
{
	struct op_put put = {
		.m = { .id = r->next_id++ },
		.as = { slice_of(space_as), slice_of(as) },
	};
	struct op op;

	rig_op_puts(&op, queue, &put, 1);
	CHECK_EQ(0, rig_do(r, &op));
}

static void
check_shown(struct rig *r, const char *queue, const char *as)
{
	const struct op_queue *const q = stats(r, queue);

	CHECK_STR("nS", q->space_shown);
	CHECK_STR(as, q->shown);
	CHECK_STR(RIG_SPACE, q->space); /* looked up folded */
	CHECK_STR(queue, q->name);
}

CASE(a_queue_is_shown_as_it_was_first_spelled)
{
	struct op op;

	put_as(r, "orders", "nS", "Orders");
	put_as(r, "orders", "NS", "ORDERS");
	put_as(r, "plain", "NS", "plain");
	put_as(r, "plain", "ns", "Plain");
	rig_op(&op, OP_POLICY_SET, RIG_SPACE, "mail");
	op.policy = policy_default;
	op.as = (struct spelling){ SLICE("NS"), SLICE("MAIL") };
	CHECK_EQ(0, rig_do(r, &op));
	put_as(r, "mail", "ns", "mail");
	for (int life = 0; life < 3; life++) {
		check_shown(r, "orders", "Orders");
		check_shown(r, "plain", "plain");
		check_shown(r, "mail", "MAIL");
		rig_reopen(r);
	}
}

CASE(a_backup_has_what_was_there_when_it_began)
{
	struct op op, other;

	if (!r->e->ops->read_file) {
		CHECK_EQ(SLU_EINVAL, backup(r, &op, BACKUP_BEGIN, 7, 0));
		return;
	}
	rig_fill(r, "q", &(struct rig_msg){ .payload = "kept" }, 2000);
	rig_claim(r, "q", 100);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(0, rig_settle_one(r, OP_ACK, r->rows[i].id, 0));
	rig_unpin(r);
	CHECK_EQ(0, backup(r, &op, BACKUP_BEGIN, 7, 0));
	CHECK(op.backup.files > 1);
	churn(r);
	rig_claim(r, "q", 1000);
	CHECK_EQ(0, mkdir("copy", 0700));
	for (uint32_t i = 0; i < op.backup.files; i++)
		copy_file(r, 7, i);
	CHECK_EQ(SLU_EINVAL, backup(r, &other, BACKUP_READ, 7, op.backup.files));
	CHECK_EQ(0, backup(r, &other, BACKUP_END, 7, 0));
	CHECK_EQ(SLU_ENOTFOUND, backup(r, &other, BACKUP_READ, 7, 0));
	check_copy(1900, op.backup.last);
}

CASE(a_backup_that_was_left_does_not_block_the_next)
{
	struct op op, other;
	uint64_t first;

	if (!r->e->ops->read_file)
		return;
	rig_put(r, "q", NULL);
	CHECK_EQ(0, backup(r, &op, BACKUP_BEGIN, 7, 0));
	first = op.backup.last;
	rig_put(r, "q", NULL);
	for (uint64_t id = 8; id < 11; id++) {
		CHECK_EQ(0, backup(r, &other, BACKUP_BEGIN, id, 0));
		CHECK(other.backup.last > first);
	}
	CHECK_EQ(SLU_ECONFLICT, backup(r, &other, BACKUP_BEGIN, 11, 0));
	CHECK_EQ(0, backup(r, &other, BACKUP_END, 9, 0));
	CHECK_EQ(0, backup(r, &other, BACKUP_BEGIN, 11, 0));
	rig_pass(r, OP_BACKUP_IDLE / 2);
	CHECK_EQ(0, backup(r, &other, BACKUP_READ, 8, 0));
	op_unpin(&other);
	rig_pass(r, OP_BACKUP_IDLE / 2);
	CHECK_EQ(0, backup(r, &other, BACKUP_READ, 8, 0), "each has its own time");
	op_unpin(&other);
	CHECK_EQ(SLU_ENOTFOUND, backup(r, &other, BACKUP_READ, 7, 0));
	CHECK_EQ(SLU_ENOTFOUND, backup(r, &other, BACKUP_READ, 11, 0));
}

CASE(a_backup_without_a_reader_is_given_up)
{
	struct op op;

	if (!r->e->ops->read_file)
		return;
	rig_put(r, "q", NULL);
	CHECK_EQ(0, backup(r, &op, BACKUP_BEGIN, 7, 0));
	for (int i = 0; i < 3; i++) {
		rig_pass(r, OP_BACKUP_IDLE / 2);
		CHECK_EQ(0, backup(r, &op, BACKUP_READ, 7, 0), "whoever reads keeps it");
		op_unpin(&op);
	}
	CHECK(r->e->ops->next_due(r->e) <= r->now + OP_BACKUP_IDLE);
	rig_pass(r, OP_BACKUP_IDLE);
	CHECK_EQ(SLU_ENOTFOUND, backup(r, &op, BACKUP_READ, 7, 0));
}
