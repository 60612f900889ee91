/*
 * Terms of messages and unique messages survive cleaning and restarts.
 */
#include "engine/msgbatch.h"

#include "cleaning_fixture.h"

static bool
every(uint64_t id)
{
	(void)id;
	return true;
}

static bool
not_first(uint64_t id)
{
	return id != 1;
}

static void
put_as(struct logkit *k, struct op_put *p)
{
	struct op op;

	logkit_enqueue(&op, space, queue, p, 1);
	run(k, &op);
}

/* Fills and empties segments until what was there before has been relocated. */
static void
clean_all(struct logkit *k, uint64_t *id)
{
	static char payload[300];

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 300; i++)
			put(k, ++*id, (struct slice){ payload, sizeof payload }, NULL);
		while (claim_and_ack(k, every, (struct slice){ 0 }))
			;
		CHECK_EQ(0, logkit_settle(k));
	}
}

/* LEDGER-16, TERMS-1: kept out, or accepted. */
static bool
is_unique(struct logkit *k, uint64_t id, const char *key)
{
	struct op_put p = { .m = { .id = id, .idem = slice_of(key), .terms.unique = UNIQUE_DONE }, .delay = SLU_HOUR };

	put_as(k, &p);
	return !p.existed;
}

TEST_LIMIT(unique_messages_and_their_ends_survive_cleaning, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_put started = { .m = { .id = 1, .idem = SLICE("started"), .terms.unique = UNIQUE_STARTED } };
	struct op_put waits = { .m = { .id = 2, .idem = SLICE("waits"), .terms.unique = UNIQUE_DONE }, .delay = 5 * SLU_HOUR };
	struct op_put timed = { .m = { .id = 3, .idem = SLICE("timed"), .terms = { .unique = UNIQUE_TIME, .unique_for = SLU_HOUR } },
				.delay = 5 * SLU_HOUR };
	struct op_put gone = { .m = { .id = 4, .idem = SLICE("gone"), .terms = { .unique = UNIQUE_TIME, .unique_for = SLU_HOUR } } };
	uint64_t id = 100;

	k->unverified = true;
	CHECK_EQ(0, logkit_open(k));
	put_as(k, &started);
	put_as(k, &waits);
	put_as(k, &timed);
	put_as(k, &gone);
	CHECK_EQ(2, claim_and_ack(k, not_first, (struct slice){ 0 }));
	waits.m.id = 6;
	waits.replace = true;
	waits.m.payload = SLICE("another");
	put_as(k, &waits);
	CHECK(waits.replaced && waits.m.id == 2);
	for (int life = 0; life < 3; life++) {
		clean_all(k, &id);
		CHECK(!is_unique(k, ++id, "waits"));
		CHECK(!is_unique(k, ++id, "timed"));
		CHECK(!is_unique(k, ++id, "gone"));
		logkit_close(k);
		k->next_id = id + 1;
		CHECK_EQ(0, logkit_open(k));
	}
	CHECK(is_unique(k, ++id, "started")); /* the first one is leased, and has lost its key */
	CHECK(!is_unique(k, ++id, "started"));
	k->now += 2 * SLU_HOUR;
	CHECK(is_unique(k, ++id, "timed"));
	CHECK(is_unique(k, ++id, "gone"));
	logkit_free(k);
}

/* CLEAN-10: the first record of the message goes long before its second one. */
TEST_LIMIT(a_replaced_message_survives_when_only_its_first_record_is_cleaned, 120)
{
	static char payload[300];
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_put p = { .m = { .id = 1, .idem = SLICE("k"), .terms.unique = UNIQUE_DONE }, .delay = 5 * SLU_HOUR };
	uint64_t id = 100;
	size_t size;

	k->unverified = true;
	CHECK_EQ(0, logkit_open(k));
	put_as(k, &p);
	while (!simdisk_content(k->disk, "log/00000002.log", &size)) /* nothing is acked, so nothing is cleaned */
		put(k, ++id, (struct slice){ payload, sizeof payload }, NULL);
	p.replace = true;
	p.m.id = ++id;
	put_as(k, &p);
	while (simdisk_content(k->disk, "log/00000001.log", &size)) {
		claim_and_ack(k, every, (struct slice){ 0 });
		put(k, ++id, (struct slice){ payload, sizeof payload }, NULL);
	}
	CHECK(p.replaced);
	logkit_kill(k);
	k->next_id = id + 1;
	CHECK_EQ(0, logkit_open(k));
	CHECK(!is_unique(k, ++id, "k"));
	logkit_free(k);
}

static void
make_batch(struct logkit *k, uint64_t id)
{
	const struct msgbatch b = { .created = k->now };
	struct op_put p = { 0 };
	struct buf doc;
	struct op op;

	buf_init(&doc, 1024);
	msgbatch_encode(&b, &doc);
	msgbatch_name(&p.m, space);
	p.m.id = id;
	p.m.due = msgbatch_due(&b);
	p.m.payload = buf_slice(&doc);
	p.m.payload_size = doc.n;
	logkit_enqueue(&op, space, SLICE(MSGBATCH_QUEUE), &p, 1);
	run(k, &op);
	buf_release(&doc);
}

/* A member that waits. The batch is stored again. */
static void
join_batch(struct logkit *k, uint64_t batch, uint64_t id)
{
	struct op_item item = { .id = batch };
	struct op_put p = { .m = { .id = id, .queue = queue, .terms.batch = batch }, .delay = 5 * SLU_HOUR };
	struct op op;

	op_init(&op, OP_FINISH, space, SLICE(MSGBATCH_QUEUE), NULL, NULL);
	op.items = &item;
	op.n_items = 1;
	op.puts = &p;
	op.n_puts = 1;
	run(k, &op);
	CHECK_EQ(0, item.rc);
}

static char payload[300];

static void
work(struct logkit *k, uint64_t id)
{
	put(k, id, (struct slice){ payload, sizeof payload }, NULL);
	claim_and_ack(k, every, (struct slice){ 0 });
}

/* CLEAN-10: a batch has no idempotency key. */
TEST_LIMIT(a_batch_survives_when_only_its_first_record_is_cleaned, 120)
{
	static char large[4000];
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	uint64_t id = 100;
	size_t size;

	k->unverified = true;
	CHECK_EQ(0, logkit_open(k));
	while (!simdisk_content(k->disk, "log/00000002.log", &size)) /* the first segment has more than messages */
		work(k, ++id);
	make_batch(k, 50);
	while (!simdisk_content(k->disk, "log/00000003.log", &size)) /* they go at once, after the batch was stored again */
		put(k, ++id, (struct slice){ large, sizeof large }, NULL);
	join_batch(k, 50, ++id);
	while (simdisk_content(k->disk, "log/00000002.log", &size))
		work(k, ++id);
	logkit_kill(k);
	k->next_id = id + 1;
	CHECK_EQ(0, logkit_open(k));
	join_batch(k, 50, ++id);
	logkit_free(k);
}

TEST(a_replaced_message_is_unique_as_long_as_the_first)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_put p = { .m = { .id = 1, .idem = SLICE("k"), .terms = { .unique = UNIQUE_TIME, .unique_for = SLU_HOUR } },
			    .delay = 5 * SLU_HOUR };
	uint64_t id = 100;

	k->unverified = true;
	CHECK_EQ(0, logkit_open(k));
	put_as(k, &p);
	k->now += SLU_HOUR / 2;
	p.m.id = 2;
	p.replace = true;
	put_as(k, &p);
	CHECK(p.replaced);
	clean_all(k, &id); /* then the record of the second one says how long */
	logkit_close(k);
	k->next_id = id + 1;
	CHECK_EQ(0, logkit_open(k));
	k->now += SLU_HOUR / 2 - SLU_MIN;
	CHECK(!is_unique(k, ++id, "k"));
	k->now += 2 * SLU_MIN;
	CHECK(is_unique(k, ++id, "k"));
	logkit_free(k);
}

/* CLEAN-10: one slice of cleaning meets all its records. */
TEST_LIMIT(a_message_that_was_replaced_twice_is_cleaned, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_put p = { .m = { .id = 1, .idem = SLICE("k"), .terms.unique = UNIQUE_DONE }, .delay = 5 * SLU_HOUR };
	uint64_t id = 100;
	size_t size;

	k->unverified = true;
	CHECK_EQ(0, logkit_open(k));
	put_as(k, &p);
	p.replace = true;
	for (int i = 0; i < 3; i++) {
		p.m.id = ++id;
		put_as(k, &p);
	}
	clean_all(k, &id);
	CHECK(!simdisk_content(k->disk, "log/00000001.log", &size)); /* cleaning went on */
	logkit_kill(k);
	k->next_id = id + 1;
	CHECK_EQ(0, logkit_open(k));
	CHECK(!is_unique(k, ++id, "k"));
	logkit_free(k);
}

/* Lease, retries, longest run and another priority. */
TEST_LIMIT(terms_of_a_message_survive_cleaning, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_put p = { .m = { .id = 1, .prio = 7, .terms = { .lease = 3 * SLU_HOUR, .run = 4 * SLU_HOUR } } };
	const struct slu_backoff retry = { .kind = SLU_BACKOFF_FIXED, .base = 100 * SLU_HOUR, .max = 100 * SLU_HOUR };
	struct op_item item = { .id = 1, .defer = true, .time = SLU_HOUR, .has_prio = true, .prio = 3 };
	struct op_row row;
	uint64_t id = 100;
	struct op op;

	terms_set_retry(&p.m.terms, &retry);
	k->unverified = true;
	CHECK_EQ(0, logkit_open(k));
	put_as(k, &p);
	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = &row;
	op.max_rows = 1;
	run(k, &op);
	CHECK_EQ(3 * SLU_HOUR, row.until - row.claimed);
	op_unpin(&op);
	op_init(&op, OP_NACK, space, queue, NULL, NULL);
	op.items = &item;
	op.n_items = 1;
	run(k, &op);
	for (int life = 0; life < 3; life++) {
		clean_all(k, &id);
		logkit_close(k);
		k->next_id = id + 1;
		CHECK_EQ(0, logkit_open(k));
	}
	k->now += SLU_HOUR;
	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = &row;
	op.max_rows = 1;
	run(k, &op);
	CHECK_EQ(1, op.n_rows);
	CHECK_EQ(3, row.prio);
	CHECK_EQ(3 * SLU_HOUR, row.until - row.claimed);
	op_unpin(&op);
	op_init(&op, OP_EXTEND, space, queue, NULL, NULL);
	item = (struct op_item){ .id = 1, .time = 10 * SLU_HOUR };
	op.items = &item;
	op.n_items = 1;
	run(k, &op);
	CHECK_EQ(4 * SLU_HOUR, item.until - row.claimed);
	op_init(&op, OP_NACK, space, queue, NULL, NULL);
	item = (struct op_item){ .id = 1, .time = LEDGER_BY_POLICY };
	op.items = &item;
	op.n_items = 1;
	run(k, &op);
	CHECK(item.until - row.claimed >= 100 * SLU_HOUR);
	logkit_free(k);
}
