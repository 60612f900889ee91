/*
 * What a run of the log engine promises: syncs, numbers, whole calls, reads.
 */
#include "logkit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum {
	SEGMENT = 64 << 10
};

static const struct slice space = { "ns", 2 }, queue = { "q", 1 };
static struct op op;
static struct op_put news[4];
static struct op_row row;

static struct logkit *
start(void)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);

	CHECK_EQ(0, logkit_open(k));
	return k;
}

/* Open without the kit's model. */
static void
open_plain(struct logkit *k)
{
	const struct engine_conf conf = {
		.folder = "log", .disk = &k->disk->disk, .log = k->log, .wall = k->now
	};

	CHECK_EQ(0, logengine_open(&k->e, &conf, &k->more, &k->found, &k->err));
}

static void
put(struct logkit *k, uint64_t first, uint32_t n)
{
	op_init(&op, OP_ENQUEUE, space, queue, NULL, NULL);
	for (uint32_t i = 0; i < n; i++)
		news[i] = (struct op_put){ .m = { .id = first + i, .payload = SLICE("hello") } };
	op.puts = news;
	op.n_puts = n;
	CHECK_EQ(0, logkit_run(k, &op));
	CHECK_EQ(0, op.rc);
}

/* One message, still pinned. */
static void
claim(struct logkit *k)
{
	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = &row;
	op.max_rows = 1;
	CHECK_EQ(0, logkit_run(k, &op));
	CHECK_EQ(1, op.n_rows);
}

static int
settle(struct logkit *k, enum op_verb verb)
{
	struct op_item item = { .id = row.id, .token = row.token };
	struct op o;

	if (verb == OP_NACK)
		item.text = SLICE("why");
	op_init(&o, verb, space, queue, NULL, NULL);
	o.items = &item;
	o.n_items = 1;
	CHECK_EQ(0, logkit_run(k, &o));
	return item.rc;
}

/* ---- LOGENGINE-1 ---- */

static void
return_row(struct logkit *k)
{
	struct op o;

	op_init(&o, OP_RETURN, space, queue, NULL, NULL);
	o.rows = &row;
	o.n_rows = 1;
	CHECK_EQ(0, logkit_run(k, &o));
}

TEST(what_must_be_synced_is_and_what_may_wait_does)
{
	struct logkit *k = start();
	uint64_t syncs = logkit_stats(k).syncs;

	put(k, 1, 3);
	CHECK_EQ(++syncs, logkit_stats(k).syncs, "enqueue");
	claim(k);
	CHECK_EQ(0, settle(k, OP_EXTEND));
	CHECK_EQ(syncs, logkit_stats(k).syncs, "claim, extend");
	CHECK_EQ(0, settle(k, OP_NACK));
	CHECK_EQ(++syncs, logkit_stats(k).syncs, "nack");
	op_unpin(&op);
	claim(k);
	op_unpin(&op);
	return_row(k);
	CHECK_EQ(syncs, logkit_stats(k).syncs, "return");
	claim(k);
	CHECK_EQ(0, settle(k, OP_ACK));
	CHECK_EQ(++syncs, logkit_stats(k).syncs, "ack");
	op_unpin(&op);
	logkit_free(k);
}

TEST(a_claim_is_synced_within_a_second)
{
	struct logkit *k = start();
	uint64_t syncs;

	put(k, 1, 1);
	claim(k);
	op_unpin(&op);
	syncs = logkit_stats(k).syncs;
	CHECK_EQ(k->now + SLU_SEC, k->e->ops->next_due(k->e));
	k->now += SLU_SEC;
	fakeclock_advance(&k->clock, SLU_SEC);
	CHECK_EQ(0, logkit_run(k, NULL));
	CHECK_EQ(syncs + 1, logkit_stats(k).syncs);
	CHECK(k->e->ops->next_due(k->e) > k->now + SLU_SEC);
	logkit_free(k);
}

/* LOGENGINE-5: the ops of the run are answered; the next run is due at once, and returns the failure. */
TEST(a_sync_that_fails_after_the_answers_is_reported_at_once)
{
	struct logkit *k = start();

	put(k, 1, 1);
	claim(k);
	op_unpin(&op);
	k->now += SLU_SEC;
	fakeclock_advance(&k->clock, SLU_SEC);
	simdisk_fail(k->disk, SIM_BIT(SIM_SYNC), 1, EIO, true);
	CHECK_EQ(0, logkit_run(k, NULL));
	CHECK_EQ(k->now, k->e->ops->next_due(k->e));
	CHECK_EQ(SLU_EDOWN, logkit_run(k, NULL));
	CHECK_EQ(SLU_NEVER, k->e->ops->next_due(k->e), "it was reported");
	logkit_free(k);
}

TEST(one_run_is_one_write_and_one_sync)
{
	struct logkit *k = start();
	const struct wal_stats before = logkit_stats(k);

	put(k, 1, 4);
	CHECK_EQ(before.writes + 1, logkit_stats(k).writes);
	CHECK_EQ(before.syncs + 1, logkit_stats(k).syncs);
	CHECK_EQ(before.seq + 4, logkit_stats(k).seq);
	logkit_free(k);
}

/* ---- LOGENGINE-3 ---- */

TEST(numbers_go_on_after_a_clean_stop_and_jump_after_another)
{
	struct logkit *k = start();
	uint64_t number;

	put(k, 1, 1);
	number = news[0].m.number;
	k->e->ops->close(k->e);
	open_plain(k);
	put(k, 2, 1);
	CHECK_EQ(number + 1, news[0].m.number);
	k->disk->dead = true;
	k->e->ops->close(k->e);
	simdisk_kill(k->disk);
	open_plain(k);
	CHECK_EQ(2, k->found.highest_id);
	put(k, 3, 1);
	CHECK(news[0].m.number > number + (1 << 19)); /* it is unknown how far it was */
	k->e->ops->close(k->e);
	k->e = NULL;
	logkit_free(k);
}

/* A block that is used up: the next one is synced before its first number is given,
 * also when only claims use it. */
TEST(a_ceiling_is_synced_before_it_is_passed)
{
	struct logkit *k = start();
	uint64_t syncs;

	put(k, 1, 1);
	ledger_set_counter(logengine_ledger(k->e), (1 << 20) - 1);
	claim(k);
	CHECK_EQ(1 << 20, row.token);
	op_unpin(&op);
	return_row(k);
	syncs = logkit_stats(k).syncs;
	claim(k);
	CHECK_EQ((1 << 20) + 1, row.token);
	CHECK_EQ(syncs + 1, logkit_stats(k).syncs);
	op_unpin(&op);
	logkit_free(k);
}

/* ---- Whole calls ---- */

/* OP-4: the third is refused; the first two are in the group and void. */
TEST(a_call_that_is_refused_halfway_leaves_nothing)
{
	static char large[70000];
	struct logkit *k = start();
	uint64_t live;

	put(k, 1, 1);
	live = logkit_stats(k).live;
	op_init(&op, OP_ENQUEUE, space, queue, NULL, NULL);
	for (uint32_t i = 0; i < 3; i++)
		news[i] = (struct op_put){ .m = { .id = 10 + i, .idem = SLICE("x") } };
	news[1].m.idem = SLICE("y");
	news[2].m.idem = (struct slice){ 0 };
	news[2].m.payload = (struct slice){ large, sizeof large };
	op.puts = news;
	op.n_puts = 3;
	CHECK_EQ(0, logkit_run(k, &op));
	CHECK_EQ(SLU_ETOOBIG, op.rc);
	CHECK_EQ(2, op.failed);
	CHECK_EQ(live, logkit_stats(k).live);
	for (int life = 0; life < 2; life++) {
		struct ledger_size size;

		ledger_size(logengine_ledger(k->e), &size);
		CHECK_EQ(1, size.messages);
		CHECK_EQ(0, size.idem);
		k->e->ops->close(k->e);
		open_plain(k);
		CHECK_EQ(live, logkit_stats(k).live);
	}
	logkit_free(k);
}

/* What one batch enqueues, claims and acks. */
TEST(a_batch_sees_what_it_did_before)
{
	struct logkit *k = start();
	struct op put_op, claim_op;
	char bytes[256];

	op_init(&put_op, OP_ENQUEUE, space, queue, NULL, NULL);
	news[0] = (struct op_put){ .m = { .id = 1, .payload = SLICE("hello") } };
	put_op.puts = news;
	put_op.n_puts = 1;
	op_init(&claim_op, OP_CLAIM, space, queue, NULL, NULL);
	claim_op.rows = &row;
	claim_op.max_rows = 1;
	put_op.route.next = &claim_op;
	CHECK_EQ(0, logkit_run(k, &put_op));
	CHECK_EQ(1, claim_op.n_rows);
	CHECK_EQ(0, engine_read(k->e, &row.record, 0, row.record.size, bytes, true, NULL));
	CHECK(memcmp(bytes + row.record.size - 5, "hello", 5) == 0);
	op_unpin(&claim_op);
	logkit_free(k);
}

/* ---- Reading ---- */

TEST(a_cold_record_is_not_read_by_a_caller_that_may_not_wait)
{
	struct logkit *k = start();
	char bytes[256];

	put(k, 1, 1);
	claim(k);
	k->disk->cold = true;
	CHECK_EQ(SLU_EBUSY, engine_read(k->e, &row.record, 0, row.record.size, bytes, false,
					&k->err));
	CHECK_EQ(0, engine_read(k->e, &row.record, 0, row.record.size, bytes, true, NULL));
	k->disk->cold = false;
	CHECK_EQ(0, engine_read(k->e, &row.record, row.record.size - 5, 5, bytes, false, NULL));
	CHECK(memcmp(bytes, "hello", 5) == 0);
	CHECK_EQ(SLU_EINVAL, engine_read(k->e, &row.record, row.record.size - 5, 6, bytes,
					 false, NULL));
	op_unpin(&op);
	logkit_free(k);
}

/* Eight messages, whose payloads have so many bytes, one by one; all of them claimed. */
static void
claim_eight(struct logkit *k, const uint32_t sizes[static 8], struct op_row rows[static 8])
{
	static char payload[16 << 10];

	for (uint32_t i = 0; i < 8; i++) {
		memset(payload, (int)('a' + i), sizes[i]);
		op_init(&op, OP_ENQUEUE, space, queue, NULL, NULL);
		news[0] = (struct op_put){ .m = { .id = i + 1, .payload = { payload, sizes[i] } } };
		news[0].m.payload_size = sizes[i];
		op.puts = news;
		op.n_puts = 1;
		CHECK_EQ(0, logkit_run(k, &op));
	}
	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = rows;
	op.max_rows = 8;
	CHECK_EQ(0, logkit_run(k, &op));
	CHECK_EQ(8, op.n_rows);
}

TEST(neighbours_are_read_with_one_call)
{
	/* clang-format off */
	static const struct {
		const char *label;
		uint32_t sizes[8];
		uint32_t want; /* how many of the eight */
	} cases[] = {
		{ "side by side",             { 5, 300, 5, 300, 0, 5, 5, 5 }, 8 },
		{ "no more than there is room for", { 300, 16384, 8192, 16384, 5, 5, 5, 5 }, 3 },
		{ "over the end of a segment", { 16384, 16384, 16384, 16384, 5, 5, 5, 5 }, 0 },
	};
	/* clang-format on */
	static struct engine_near near;
	static char bytes[20 << 10];
	struct op_row rows[8];

	EACH(i, cases) {
		struct logkit *k = start();
		uint32_t n, from = cases[i].want ? 0 : 2;

		claim_eight(k, cases[i].sizes, rows);
		const unsigned long reads = k->disk->counts[SIM_READ];

		n = engine_read_near(k->e, rows + from, 8 - from, &near, false);
		CHECK_EQ(reads + (n > 0), k->disk->counts[SIM_READ], cases[i].label);
		CHECK_EQ(cases[i].want, n, cases[i].label);
		for (uint32_t j = 0; j < n; j++) {
			const struct op_ref *ref = &rows[from + j].record;

			CHECK_EQ(0, engine_read(k->e, ref, 0, ref->size, bytes, false, NULL));
			CHECK(slice_eq((struct slice){ bytes, ref->size }, near.texts[j]));
		}
		op_unpin(&op);
		logkit_free(k);
	}
}

TEST(neighbours_that_are_damaged_cold_or_far_are_read_one_by_one)
{
	static const uint32_t sizes[8] = { 20, 20, 20, 20, 20, 20, 20, 20 };
	static struct engine_near near;
	struct logkit *k = start();
	struct op_row rows[8], far[2];
	char *file, *at;
	size_t size;

	claim_eight(k, sizes, rows);
	k->disk->cold = true;
	CHECK_EQ(0, engine_read_near(k->e, rows, 8, &near, false));
	CHECK_EQ(8, engine_read_near(k->e, rows, 8, &near, true));
	k->disk->cold = false;
	CHECK_EQ(0, engine_read_near(k->e, rows, 1, &near, false));
	far[0] = rows[1], far[1] = rows[0]; /* not in the order of the log */
	CHECK_EQ(0, engine_read_near(k->e, far, 2, &near, false));
	file = simdisk_content(k->disk, "log/00000001.log", &size);
	at = memmem(file, size, "dddddddd", 8);
	CHECK(at);
	at[0] ^= 1;
	CHECK_EQ(3, engine_read_near(k->e, rows, 8, &near, false));
	CHECK_EQ(0, engine_read_near(k->e, rows + 3, 5, &near, false));
	op_unpin(&op);
	logkit_free(k);
}

/* ---- Threads ---- */

struct reader {
	struct engine *e;
	struct op_row *rows;
	uint32_t n;
	_Atomic bool *stop;
	uint64_t reads;
};

static void *
read_on(void *arg)
{
	struct reader *r = arg;
	char bytes[4096];

	while (!*r->stop || r->reads == 0)
		for (uint32_t i = 0; i < r->n; i++) {
			struct message m;
			const struct op_ref *ref = &r->rows[i].record;

			CHECK_EQ(0, engine_read(r->e, ref, 0, ref->size, bytes, true, NULL));
			CHECK_EQ(0, message_decode((struct slice){ bytes, ref->size }, &m, NULL));
			CHECK_EQ(r->rows[i].id, m.id);
			r->reads++;
		}
	return NULL;
}

/* OP-5: messages are acked, cleaned away and their segments used again, while their
 * records are read; the helper makes segments meanwhile. */
TEST_LIMIT(others_read_what_is_pinned_whatever_happens, 120)
{
	static struct op_row rows[8];
	struct logkit *k = logkit_new(SEGMENT, 11, true);
	_Atomic bool stop = false;
	struct op claim_op;
	struct reader r;
	pthread_t thread;

	k->more.no_helper = false;
	k->no_purge = true;
	CHECK_EQ(0, logkit_open(k));
	for (int i = 0; i < 10; i++)
		CHECK_EQ(0, logkit_step(k));
	op_init(&claim_op, OP_LIST, (struct slice){ 0 }, (struct slice){ 0 }, NULL, NULL);
	claim_op.rows = rows;
	claim_op.max_rows = COUNT(rows);
	CHECK_EQ(0, logkit_run(k, &claim_op));
	CHECK(claim_op.n_rows > 0);
	r = (struct reader){ k->e, rows, claim_op.n_rows, &stop, 0 };
	CHECK_EQ(0, pthread_create(&thread, NULL, read_on, &r));
	for (int i = 0; i < 1500; i++)
		CHECK_EQ(0, logkit_step(k));
	stop = true;
	pthread_join(thread, NULL);
	op_unpin(&claim_op);
	logkit_verify(k);
	logkit_free(k);
}

/* ---- Memory ---- */

/* Fault 10: nothing is lost or half done when an allocation fails. */
TORTURE(every_allocation_may_fail)
{
	const struct engine_conf conf = { .folder = "log", .wall = SLU_SEC };
	const struct logengine_conf more = { .segment_size = SEGMENT, .no_helper = true };
	struct engine_found found;
	struct slu_err err = { 0 };
	struct engine *e;
	int rc;

	rc = logengine_open(&e, &conf, &more, &found, &err);
	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc);
		return;
	}
	op_init(&op, OP_ENQUEUE, space, queue, NULL, NULL);
	for (uint32_t i = 0; i < 3; i++)
		news[i] = (struct op_put){ .m = { .id = found.highest_id + 1 + i } };
	op.puts = news;
	op.n_puts = 3;
	op.route.arrived = op.route.before = SLU_SEC;
	rc = engine_run(e, &op, SLU_SEC, SLU_SEC, &err);
	CHECK(rc == 0 && (op.rc == 0 || op.rc == SLU_ENOMEM));
	e->ops->close(e);
}
