/*
 * Batches of messages (engine/msgbatch.h) on every engine that has a ledger. The Redis engine refuses them.
 */
#include "engine_rig.h"

#include "engine/msgbatch.h"

#include <string.h>

#define QUEUE ".batches"

static bool
is_redis(const struct rig *r)
{
	return strcmp(r->row->engine->name, "redis") == 0;
}

/* Makes a batch with a callback in the queue `over`. Returns its id. */
static uint64_t
make(struct rig *r, slu_time deadline)
{
	static char record[512], text[1024];
	const struct message callback = {
		.id = 1,
		.space = SLICE(RIG_SPACE),
		.queue = SLICE("over"),
		.attributes = SLICE("{\"mine\":1}"),
		.payload = SLICE("all"),
		.payload_size = 3,
	};
	struct msgbatch b = { .created = r->now, .deadline = deadline, .message = { record, message_size(&callback) } };
	struct op_put put = { 0 };
	struct buf doc;

	message_encode(&callback, record);
	buf_init(&doc, sizeof text);
	msgbatch_encode(&b, &doc);
	memcpy(text, doc.p, doc.n);
	msgbatch_name(&put.m, SLICE(RIG_SPACE));
	r->next_id += 1000; /* MSGBATCH_SELF is no id */
	put.m.id = r->next_id++;
	put.m.due = msgbatch_due(&b);
	put.m.payload = (struct slice){ text, doc.n };
	put.m.payload_size = doc.n;
	buf_release(&doc);
	return rig_puts(r, QUEUE, &put, 1) ? 0 : put.m.id;
}

static int
step(struct rig *r, uint64_t batch, struct op_put *puts, uint32_t n, bool close)
{
	static struct op_item item;

	item = (struct op_item){ .id = batch, .nack = close };
	rig_op(&r->op, OP_FINISH, RIG_SPACE, QUEUE);
	r->op.items = &item;
	r->op.n_items = 1;
	r->op.puts = puts;
	r->op.n_puts = n;
	return rig_do(r, &r->op);
}

/* n members in the queue a; their ids are rising from *first. */
static int
join_as(struct rig *r, uint64_t batch, uint32_t n, const char *idem, uint64_t *first)
{
	static struct op_put puts[16];

	*first = r->next_id;
	for (uint32_t i = 0; i < n; i++) {
		puts[i] = (struct op_put){ 0 };
		puts[i].m.id = r->next_id++;
		puts[i].m.queue = SLICE("a");
		puts[i].m.terms.batch = batch;
		if (idem)
			puts[i].m.idem = slice_of(idem);
	}
	return step(r, batch, puts, n, false);
}

static uint64_t
join(struct rig *r, uint64_t batch, uint32_t n)
{
	uint64_t first;

	CHECK_EQ(0, join_as(r, batch, n, NULL, &first));
	return first;
}

static int
close_batch(struct rig *r, uint64_t batch)
{
	return step(r, batch, NULL, 0, true);
}

/* The batch as it is stored. */
static struct msgbatch
stored(struct rig *r, uint64_t id)
{
	struct msgbatch b;

	rig_pass(r, SLU_MS); /* events are counted */
	CHECK_EQ(0, rig_get(r, id));
	CHECK_EQ(0, msgbatch_decode(rig_read(r, 0)->payload, &b, NULL));
	return b;
}

static void
check(struct rig *r, uint64_t id, uint32_t members, uint32_t done, uint32_t failed)
{
	const struct msgbatch b = stored(r, id);

	CHECK_EQ(members, b.members);
	CHECK_EQ(done, b.done);
	CHECK_EQ(failed, b.failed);
	CHECK_EQ(0, rig_count(r, QUEUE, MSG_READY), "no event is left");
}

static uint64_t
end_one(struct rig *r, bool dead)
{
	struct op_item item = { .dead = dead };

	CHECK_EQ(1, rig_claim(r, "a", 1));
	item.id = r->rows[0].id;
	item.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, dead ? OP_NACK : OP_ACK, &item));
	return item.id;
}

/* How often the callback began; its attributes say how it ended. */
static uint32_t
callbacks(struct rig *r, const char *attributes)
{
	const uint32_t n = rig_peek(r, "over", 10);
	char text[256] = "";

	if (n && attributes) {
		const struct slice all = rig_read(r, 0)->attributes;

		memcpy(text, all.p, all.n < sizeof text ? all.n : sizeof text - 1);
		CHECK_CONTAINS(attributes, text);
	}
	return n;
}

CASE(a_batch_calls_back_once_when_all_members_are_done)
{
	const uint64_t id = make(r, 0);

	if (is_redis(r)) {
		CHECK_EQ(0, id);
		CHECK_CONTAINS("engine redis has no batches", r->op.err.text);
		return;
	}
	join(r, id, 2);
	join(r, id, 1);
	check(r, id, 3, 0, 0);
	end_one(r, false);
	end_one(r, false);
	rig_reopen(r);
	check(r, id, 3, 2, 0);
	CHECK_EQ(0, close_batch(r, id));
	CHECK_EQ(0, callbacks(r, NULL));
	end_one(r, false);
	check(r, id, 3, 3, 0);
	CHECK_EQ(1, callbacks(r, "\"outcome\":\"done\",\"members\":3,\"done\":3,\"failed\":0,\"mine\":1}"));
	rig_reopen(r);
	CHECK_EQ(0, close_batch(r, id), "again");
	check(r, id, 3, 3, 0);
	CHECK_EQ(1, callbacks(r, NULL));
	rig_pass(r, 25 * SLU_HOUR);
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, id));
}

CASE(an_empty_batch_calls_back_when_it_is_closed)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	uint64_t first;

	if (!id)
		return;
	CHECK_EQ(0, close_batch(r, id));
	CHECK_EQ(1, callbacks(r, "\"outcome\":\"done\",\"members\":0"));
	CHECK_EQ(SLU_ECONFLICT, join_as(r, id, 1, NULL, &first));
	CHECK_CONTAINS("is closed", r->op.err.text);
	CHECK_EQ(0, rig_count(r, "a", MSG_READY));
	CHECK_EQ(SLU_ENOTFOUND, join_as(r, id + 1000, 1, NULL, &first));
	CHECK_EQ(SLU_ENOTFOUND, close_batch(r, id + 1000));
}

CASE(the_deadline_of_a_batch_calls_back)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, r->now + SLU_MIN);

	if (!id)
		return;
	join(r, id, 2);
	end_one(r, false);
	rig_pass(r, 59 * SLU_SEC);
	CHECK_EQ(0, callbacks(r, NULL));
	rig_pass(r, 2 * SLU_SEC);
	rig_pass(r, SLU_SEC);
	CHECK_EQ(1, callbacks(r, "\"outcome\":\"deadline\",\"members\":2,\"done\":1,\"failed\":0"));
	end_one(r, false);
	rig_reopen(r);
	check(r, id, 2, 2, 0);
	CHECK_EQ(1, callbacks(r, NULL), "only the counters change");
}

/* MSGBATCH-2: only an ack is done. */
CASE(a_member_that_is_canceled_has_failed)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	struct op_item item = { .cancel = true }, nack = { .text = SLICE("stopped") };

	if (!id)
		return;
	join(r, id, 2);
	CHECK_EQ(1, rig_claim(r, "a", 1));
	item.id = nack.id = r->rows[0].id;
	nack.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_DELETE, &item));
	check(r, id, 2, 0, 0);
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	end_one(r, false);
	check(r, id, 2, 1, 1);
}

/* Deaths, deletes and purges count as failures, and a redrive takes one back. */
CASE(members_fail_and_begin_anew)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	struct op_item item = { 0 };
	uint64_t first;

	if (!id)
		return;
	first = join(r, id, 6);
	end_one(r, true);
	check(r, id, 6, 0, 1);
	item.id = first;
	CHECK_EQ(0, rig_item(r, OP_REDRIVE, &item));
	check(r, id, 6, 0, 0);
	CHECK_EQ(0, rig_settle_one(r, OP_DELETE, first + 1, 0));
	check(r, id, 6, 0, 1);
	CHECK_EQ(0, rig_settle_one(r, OP_DELETE, end_one(r, true), 0), "a dead letter has failed before");
	check(r, id, 6, 0, 2);
	CHECK_EQ(1, rig_claim(r, "a", 1));
	rig_op(&r->op, OP_PURGE, RIG_SPACE, "a");
	CHECK_EQ(0, rig_do(r, &r->op));
	CHECK_EQ(3, r->op.count);
	rig_reopen(r);
	check(r, id, 6, 0, 5);
	CHECK_EQ(0, close_batch(r, id));
	CHECK_EQ(0, callbacks(r, NULL), "one is leased");
	rig_pass(r, SLU_MIN);
	end_one(r, false);
	check(r, id, 6, 1, 5);
	CHECK_EQ(1, callbacks(r, "\"outcome\":\"failed\",\"members\":6,\"done\":1,\"failed\":5"));
}

CASE(an_expired_member_has_failed)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	static struct op_put put;

	if (!id)
		return;
	put = (struct op_put){ .m = { .id = r->next_id++, .queue = SLICE("a"), .terms.batch = id }, .ttl = SLU_SEC };
	CHECK_EQ(0, step(r, id, &put, 1, false));
	CHECK_EQ(0, close_batch(r, id));
	rig_pass(r, 2 * SLU_SEC);
	check(r, id, 1, 0, 1);
	CHECK_EQ(1, callbacks(r, "\"outcome\":\"failed\""));
}

CASE(a_duplicate_is_no_member)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	uint64_t first;

	if (!id)
		return;
	CHECK_EQ(0, join_as(r, id, 1, "same", &first));
	CHECK_EQ(0, join_as(r, id, 1, "same", &first));
	check(r, id, 1, 0, 0);
	end_one(r, false);
	CHECK_EQ(0, close_batch(r, id));
	check(r, id, 1, 1, 0);
	CHECK_EQ(1, callbacks(r, "\"outcome\":\"done\",\"members\":1"));
}

/* The second join finds what the first one wrote, though the log has not written it yet. */
CASE(joins_of_one_run_are_all_counted)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	struct op ops[2];
	struct op_item items[2] = { { .id = id }, { .id = id } };
	struct op_put puts[2] = { 0 };
	struct slu_err err;

	if (!id)
		return;
	for (unsigned i = 0; i < 2; i++) {
		puts[i].m.id = r->next_id++;
		puts[i].m.queue = SLICE("a");
		puts[i].m.terms.batch = id;
		rig_op(&ops[i], OP_FINISH, RIG_SPACE, QUEUE);
		ops[i].items = &items[i];
		ops[i].puts = &puts[i];
		ops[i].n_items = ops[i].n_puts = 1;
		ops[i].route.arrived = ops[i].route.before = r->now;
	}
	ops[0].route.next = &ops[1];
	CHECK_EQ(0, engine_run(r->e, ops, r->now, r->now, &err));
	CHECK_EQ(0, ops[0].rc);
	CHECK_EQ(0, ops[1].rc);
	check(r, id, 2, 0, 0);
}

/* More events than one step counts. */
CASE(many_members_are_counted)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	const uint32_t n = 12 * rig_turns(r, 40);

	if (!id)
		return;
	for (uint32_t i = 0; i < n / 12; i++)
		join(r, id, 12);
	CHECK_EQ(0, close_batch(r, id));
	rig_op(&r->op, OP_PURGE, RIG_SPACE, "a");
	CHECK_EQ(0, rig_do(r, &r->op));
	check(r, id, n, 0, n);
	CHECK_EQ(1, callbacks(r, "\"outcome\":\"failed\""));
}

static uint32_t
waiting(struct rig *r)
{
	return rig_count(r, "a", MSG_READY);
}

/* MSGBATCH-7 */
static void
purge_in_steps(struct rig *r, uint32_t n)
{
	uint32_t steps = 0, before;

	rig_op(&r->op, OP_PURGE, RIG_SPACE, "a");
	do {
		struct op op = r->op;

		before = waiting(r);
		r->op = op;
		CHECK_EQ(0, rig_do(r, &r->op));
		op = r->op;
		CHECK_EQ(op.cursor ? 1000 : before, before - waiting(r), "a step takes so many");
		r->op = op;
		steps++;
	} while (r->op.cursor);
	CHECK_EQ(n, r->op.count);
	CHECK_EQ((n + 999) / 1000, steps);
}

CASE(a_purge_of_many_members_goes_in_steps)
{
	const uint64_t id = is_redis(r) ? 0 : make(r, 0);
	const uint32_t n = 16 * rig_turns(r, 200);

	if (!id)
		return;
	for (uint32_t i = 0; i < n / 16; i++)
		join(r, id, 16);
	end_one(r, true);
	purge_in_steps(r, n - 1);
	rig_reopen(r);
	for (int i = 0; i < 100; i++)
		rig_pass(r, SLU_MS);
	check(r, id, n, 0, n);
}

/* Nothing that a step does grows with the members: each takes 1,000 of a million. */
static void
purge_a_million(struct rig *r)
{
	const uint64_t id = make(r, 0);

	for (uint32_t i = 0; i < 1000000 / 16; i++)
		join(r, id, 16);
	purge_in_steps(r, 1000000);
}

TEST_LIMIT(a_purge_of_a_million_members_goes_in_steps, 300)
{
	rig_run(RIG_MEMORY, purge_a_million);
}

/* docs/log-format.md */
TEST(a_batch_and_its_events_have_these_bytes)
{
	static const char head[MSGBATCH_HEAD + 8] =
		"\1\2\1\0"
		"\3\0\0\0"
		"\2\0\0\0"
		"\1\0\0\0"
		"\11\0\0\0\0\0\0\0"
		"\12\0\0\0\0\0\0\0"
		"\13\0\0\0\0\0\0\0"
		"\14\0\0\0\0\0\0\0"
		"\15\0\0\0\0\0\0\0"
		"\16\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0"
		"\1\0\0\0\0\0\0\0"
		"\17\0\0\0\0\0\0";
	const struct msgbatch b = {
		.members = 3,
		.done = 2,
		.failed = 1,
		.closed = true,
		.outcome = MSGBATCH_FAILED,
		.created = 9,
		.deadline = 10,
		.ended = 11,
		.callback = 12,
		.delay = 13,
		.ttl = 14,
		.n_seen = 1,
		.seen = { 15 },
		.message = SLICE("record"),
	};
	const struct msgbatch_event e = { MSGBATCH_KNOWN, 258 };
	struct msgbatch_event event;
	char text[MSGBATCH_EVENT];
	struct msgbatch out;
	struct buf doc;

	buf_init(&doc, 1024);
	msgbatch_encode(&b, &doc);
	CHECK_EQ(sizeof head + 6, doc.n);
	CHECK(memcmp(doc.p, head, sizeof head) == 0 && memcmp(doc.p + sizeof head, "record", 6) == 0);
	CHECK_EQ(0, msgbatch_decode(buf_slice(&doc), &out, NULL));
	CHECK(out.members == 3 && out.failed == 1 && out.seen[0] == 15 && out.ttl == 14 && slice_eq(out.message, SLICE("record")));
	for (size_t n = 0; n < sizeof head; n++)
		CHECK_EQ(SLU_ECORRUPT, msgbatch_decode((struct slice){ doc.p, n }, &out, NULL));
	doc.p[1] = MSGBATCH_OUTCOMES;
	CHECK_EQ(SLU_ECORRUPT, msgbatch_decode(buf_slice(&doc), &out, NULL));
	buf_release(&doc);
	msgbatch_event_encode(&e, text);
	CHECK(memcmp(text, "\3\2\1\0\0", sizeof text) == 0);
	CHECK_EQ(0, msgbatch_event_decode((struct slice){ text, sizeof text }, &event, NULL));
	CHECK(event.what == MSGBATCH_KNOWN && event.n == 258);
	CHECK_EQ(SLU_ECORRUPT, msgbatch_event_decode((struct slice){ text, sizeof text - 1 }, &event, NULL));
}
