/*
 * Cleaning: the disk stays in proportion to what lives, and nothing is lost on the way.
 */
#include "cleaning_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static bool
not_hundredth(uint64_t id)
{
	return id % 100 != 0;
}

static bool
every(uint64_t id)
{
	(void)id;
	return true;
}

static bool
is_odd(uint64_t id)
{
	return id % 2;
}

static void
check_bound(struct logkit *k, const char *when)
{
	const struct wal_stats stats = logkit_stats(k);
	const uint64_t bound = 3 * stats.live + 4 * (uint64_t)SEGMENT;

	if (stats.bytes > bound)
		test_fail(__FILE__, __LINE__, "%s: %" PRIu64 " bytes on disk, live %" PRIu64,
			  when, stats.bytes, stats.live);
}

/* Fault 40, WAL-6: 99 of 100 are acked, the rest stays. */
TEST_LIMIT(the_disk_holds_three_times_what_lives_and_four_segments, 120)
{
	static char payload[300];
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	uint64_t id = 0;

	CHECK_EQ(0, logkit_open(k));
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 300; i++)
			put(k, ++id, (struct slice){ payload, sizeof payload }, NULL);
		while (claim_and_ack(k, not_hundredth, (struct slice){ 0 }))
			;
		CHECK_EQ(0, logkit_settle(k));
		check_bound(k, "settled");
	}
	CHECK(logkit_stats(k).live > 300 * sizeof payload);
	logkit_free(k);
}

static uint64_t
reads(struct logkit *k)
{
	return k->disk->counts[SIM_READ];
}

/* CLEAN-9 */
TEST_LIMIT(a_segment_of_which_nothing_is_needed_is_recycled_unread, 120)
{
	static char payload[300];
	const struct slice bytes = { payload, sizeof payload };
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	uint64_t before, id = 0;
	size_t size;

	CHECK_EQ(0, logkit_open(k));
	for (int i = 0; i < 1000; i++) {
		put(k, ++id, bytes, NULL);
		claim_and_ack(k, every, (struct slice){ 0 });
	}
	CHECK_EQ(0, logkit_settle(k));
	before = reads(k);
	for (int i = 0; i < 2000; i++) {
		put(k, ++id, bytes, NULL);
		claim_and_ack(k, every, (struct slice){ 0 });
	}
	CHECK_EQ(0, logkit_settle(k));
	CHECK(!simdisk_content(k->disk, "log/00000010.log", &size));
	CHECK_EQ(before, reads(k));
	check_bound(k, "settled");
	logkit_free(k);
}

/* What is remembered counts as alive: cleaning ends, and it survives. */
TEST_LIMIT(remembered_keys_and_results_survive_cleaning, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	char idem[32];
	struct op op;

	CHECK_EQ(0, logkit_open(k));
	for (uint64_t id = 1; id <= 3000; id++) {
		snprintf(idem, sizeof idem, "key-%" PRIu64, id);
		put(k, id, (struct slice){ 0 }, idem);
		claim_and_ack(k, every, (struct slice){ 0 });
	}
	CHECK_EQ(0, logkit_settle(k)); /* it ends */
	k->next_id = 3001;
	for (int life = 0; life < 2; life++) {
		for (uint64_t id = 1; id <= 3000; id += 7) {
			struct op_put p = { .m = { .id = 100000 + id } };

			snprintf(idem, sizeof idem, "key-%" PRIu64, id);
			p.m.idem = slice_of(idem);
			logkit_enqueue(&op, space, queue, &p, 1);
			run(k, &op);
			CHECK(p.existed);
			CHECK_EQ(id, p.m.id);
		}
		logkit_close(k);
		CHECK_EQ(0, logkit_open(k));
	}
	logkit_free(k);
}

static bool
is_accepted(struct logkit *k, uint8_t source, uint64_t batch)
{
	struct op op;

	op_init(&op, OP_INTAKE, space, (struct slice){ 0 }, NULL, NULL);
	op.intake.source[0] = source;
	op.intake.batch = batch;
	run(k, &op);
	return !op.intake.known;
}

/* LEDGER-14: the number of a source outlives the segment that it was written in. */
TEST_LIMIT(numbers_of_batches_survive_cleaning, 120)
{
	static char payload[300];
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	const uint8_t busy = 1, silent = 2;
	uint64_t id = 0;

	CHECK_EQ(0, logkit_open(k));
	CHECK(is_accepted(k, silent, 5));
	for (uint64_t round = 1; round <= 20; round++) {
		CHECK(is_accepted(k, busy, round));
		for (int i = 0; i < 300; i++)
			put(k, ++id, (struct slice){ payload, sizeof payload }, NULL);
		while (claim_and_ack(k, every, (struct slice){ 0 }))
			;
		CHECK_EQ(0, logkit_settle(k));
		check_bound(k, "settled");
	}
	k->next_id = id + 1;
	for (int life = 0; life < 2; life++) {
		CHECK(!is_accepted(k, silent, 5));
		CHECK(!is_accepted(k, busy, 20));
		logkit_close(k);
		CHECK_EQ(0, logkit_open(k));
	}
	CHECK(is_accepted(k, silent, 6));
	logkit_free(k);
}

static void
set_strict(struct logkit *k)
{
	struct op op;

	op_init(&op, OP_POLICY_SET, space, queue, NULL, NULL);
	op.policy = policy_default;
	op.policy.strict = true;
	run(k, &op);
	CHECK_EQ(0, op.rc);
}

/* As logkit_open, for messages that it has not put itself. */
static void
open_bare(struct logkit *k)
{
	const struct engine_conf conf = {
		.folder = k->folder,
		.disk = &k->disk->disk,
		.log = k->log,
		.wall = k->now,
	};

	CHECK_EQ(0, logengine_open(&k->e, &conf, &k->more, &k->found, &k->err));
}

/* Of messages that are there (the even ones) and of those that are gone. */
TEST_LIMIT(a_strict_queue_knows_payloads_after_cleaning, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	size_t size;

	CHECK_EQ(0, logkit_open(k));
	set_strict(k);
	for (uint64_t id = 1; id <= 2000; id++) {
		char idem[32];

		snprintf(idem, sizeof idem, "key-%" PRIu64, id);
		put(k, id, id > 100 ? SLICE("first") : SLICE("one"), idem);
		if (id > 100)
			claim_and_ack(k, is_odd, (struct slice){ 0 });
	}
	CHECK_EQ(0, logkit_settle(k));
	CHECK(!simdisk_content(k->disk, "log/00000001.log", &size));
	k->next_id = 2001;
	for (int life = 0; life < 2; life++) {
		for (uint64_t id = 1; id <= 100; id++) {
			struct op_put p = { .m = { .id = 100000 + id, .payload = SLICE("two"), .payload_size = 3 } };
			char idem[32];
			struct op op;

			snprintf(idem, sizeof idem, "key-%" PRIu64, id);
			p.m.idem = slice_of(idem);
			logkit_enqueue(&op, space, queue, &p, 1);
			run_any(k, &op);
			CHECK_EQ(SLU_EIDEM, op.rc);
		}
		logkit_close(k);
		open_bare(k);
	}
	logkit_free(k);
}

static void
claim_first_and_ack(struct logkit *k)
{
	struct op_row row;
	struct op_item item;
	struct op claim, ack;

	op_init(&claim, OP_CLAIM, space, queue, NULL, NULL);
	claim.rows = &row;
	claim.max_rows = 1;
	run(k, &claim);
	item = (struct op_item){ .id = row.id, .token = row.token };
	op_init(&ack, OP_ACK, space, queue, NULL, NULL);
	ack.items = &item;
	ack.n_items = 1;
	run(k, &ack);
	op_unpin(&claim);
}

static void
put_shared(struct logkit *k, uint64_t id, const char *share)
{
	struct op_put p = { .m = { .id = id, .share = slice_of(share) } };
	struct op op;

	logkit_enqueue(&op, space, queue, &p, 1);
	run(k, &op);
}

static void
claim_two(struct logkit *k, uint64_t ids[2])
{
	struct op_row rows[2];
	struct op claim;

	op_init(&claim, OP_CLAIM, space, queue, NULL, NULL);
	claim.rows = rows;
	claim.max_rows = 2;
	run(k, &claim);
	CHECK_EQ(2, claim.n_rows);
	ids[0] = rows[0].id;
	ids[1] = rows[1].id;
	op_unpin(&claim);
}

TEST_LIMIT(shares_survive_cleaning, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	uint64_t ids[2];
	size_t size;

	CHECK_EQ(0, logkit_open(k));
	for (uint64_t id = 1; id <= 10; id++)
		put_shared(k, id, id == 10 ? "b" : "a");
	for (uint64_t id = 11; id <= 2000; id++) { /* of a better priority, and acked at once */
		struct op_put p = { .m = { .id = id, .prio = -1, .payload = SLICE("some bytes to fill the log with") } };
		struct op op;

		logkit_enqueue(&op, space, queue, &p, 1);
		run(k, &op);
		claim_first_and_ack(k);
	}
	CHECK_EQ(0, logkit_settle(k));
	CHECK(!simdisk_content(k->disk, "log/00000001.log", &size));
	k->next_id = 2001;
	logkit_close(k);
	open_bare(k);
	claim_two(k, ids);
	CHECK_EQ(1, ids[0]);
	CHECK_EQ(10, ids[1]);
	logkit_free(k);
}

/* The value of a message is that of its acceptance: the attribute has another name by now. */
TEST_LIMIT(values_of_a_limited_attribute_survive_cleaning, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_row rows[4];
	struct op op;
	size_t size;

	CHECK_EQ(0, logkit_open(k));
	for (uint64_t id = 0; id <= 4; id++) {
		struct op_put p = { .m = { .id = id, .attributes = SLICE("{\"host\":\"c\\u0072m\"}"), .payload = SLICE("x") } };

		op_init(&op, id ? OP_ENQUEUE : OP_POLICY_SET, space, queue, NULL, NULL);
		op.policy = policy_default;
		strcpy(op.policy.limit_attribute, "host");
		op.policy.attribute_concurrency = 1;
		op.puts = &p;
		op.n_puts = id > 0;
		run(k, &op);
	}
	op_init(&op, OP_POLICY_SET, space, queue, NULL, NULL);
	op.policy = policy_default;
	strcpy(op.policy.limit_attribute, "region");
	op.policy.attribute_concurrency = 2;
	run(k, &op);
	for (uint64_t id = 11; id <= 2000; id++) {
		struct op_put p = { .m = { .id = id, .prio = -1, .payload = SLICE("some bytes to fill the log with") } };

		logkit_enqueue(&op, space, queue, &p, 1);
		run(k, &op);
		claim_first_and_ack(k);
	}
	CHECK_EQ(0, logkit_settle(k));
	CHECK(!simdisk_content(k->disk, "log/00000001.log", &size));
	k->next_id = 2001;
	logkit_close(k);
	open_bare(k);
	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = rows;
	op.max_rows = 4;
	run(k, &op);
	CHECK_EQ(2, op.n_rows);
	op_unpin(&op);
	logkit_free(k);
}

static void
put_keyed(struct logkit *k, uint64_t id, const char *key)
{
	struct op_put p = { .m = { .id = id, .key = slice_of(key) } };
	struct op op;

	op_init(&op, OP_ENQUEUE, space, queue, NULL, NULL);
	op.puts = &p;
	op.n_puts = 1;
	run(k, &op);
}

/* An ack leaves something to clean, so the run of the nack behind it first relocates the message, whose key it then reads. */
TEST_LIMIT(a_message_that_was_just_relocated_is_read, 120)
{
	static struct op_row rows[ROWS];
	static char payload[3000];
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op op;

	CHECK_EQ(0, logkit_open(k));
	for (uint64_t id = 1; id <= ROWS; id++) {
		char key[16];

		snprintf(key, sizeof key, "key-%" PRIu64, id);
		put_keyed(k, id, key);
	}
	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = rows;
	op.max_rows = ROWS;
	op.claim.lease = 10 * SLU_HOUR;
	run(k, &op);
	op_unpin(&op);
	for (uint64_t i = 0; i < ROWS; i++) {
		struct op_item item = { .id = rows[i].id, .token = rows[i].token, .scope = 1 + GATE_KEY, .hold = 20 * SLU_HOUR };

		for (uint64_t n = 0; n < 20; n++)
			put(k, 1000 + 20 * i + n, (struct slice){ payload, sizeof payload }, NULL);
		CHECK_EQ(20, claim_and_ack(k, every, (struct slice){ 0 }));
		op_init(&op, OP_NACK, space, queue, NULL, NULL);
		op.items = &item;
		op.n_items = 1;
		run(k, &op);
		CHECK_EQ(0, item.rc);
	}
	logkit_free(k);
}

/* LOGENGINE-3: also when the segment that had it is gone. */
TEST_LIMIT(the_ceiling_survives_cleaning, 120)
{
	static char payload[2000];
	const struct slice bytes = { payload, sizeof payload };
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	uint64_t token = 0;
	size_t size;

	CHECK_EQ(0, logkit_open(k));
	for (uint64_t id = 1; id <= 200; id++) {
		put(k, id, bytes, NULL);
		claim_and_ack(k, every, (struct slice){ 0 });
	}
	CHECK_EQ(0, logkit_settle(k));
	CHECK(!simdisk_content(k->disk, "log/00000001.log", &size));
	token = ledger_counter(logengine_ledger(k->e));
	logkit_kill(k);
	k->next_id = 201;
	CHECK_EQ(0, logkit_open(k));
	CHECK(ledger_counter(logengine_ledger(k->e)) >= token + (1 << 19));
	logkit_free(k);
}

/* ---- Purges ---- */

static struct op_put *
many(struct op *op, struct slice into, uint64_t first, uint32_t n, struct slice payload, char (*idems)[16])
{
	struct op_put *p = calloc(n, sizeof *p);

	CHECK(p);
	for (uint32_t i = 0; i < n; i++) {
		p[i].m = (struct message){ .id = first + i, .payload = payload };
		if (idems) {
			snprintf(idems[i], sizeof idems[i], "%u", i);
			p[i].m.idem = slice_of(idems[i]);
		}
	}
	logkit_enqueue(op, space, into, p, n);
	return p;
}

enum {
	PURGED = 9000 /* more than are freed in a run */
};

/* Much to clean at once: everything of the other queue, acked in one run. */
static void
ack_at_once(struct logkit *k, uint32_t n)
{
	struct op_item *items = calloc(n, sizeof *items);
	struct op_row *rows = calloc(n, sizeof *rows);
	struct op op;

	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = rows;
	op.max_rows = n;
	run(k, &op);
	CHECK_EQ(n, op.n_rows);
	op_unpin(&op);
	for (uint32_t i = 0; i < n; i++)
		items[i] = (struct op_item){ .id = rows[i].id, .token = rows[i].token };
	op_init(&op, OP_ACK, space, queue, NULL, NULL);
	op.items = items;
	op.n_items = n;
	run(k, &op);
	free(items);
	free(rows);
}

static void
check_known(struct logkit *k, uint32_t i)
{
	struct op_put p = { .m = { .id = 150000 + i } };
	char idem[16];
	struct op op;

	snprintf(idem, sizeof idem, "%u", i);
	p.m.idem = slice_of(idem);
	logkit_enqueue(&op, space, SLICE("purged"), &p, 1);
	run(k, &op);
	CHECK(p.existed);
	CHECK_EQ(1 + i, p.m.id);
}

/* CLEAN-5: idempotency keys of what was purged are remembered, though cleaning was under
 * way. */
TEST_LIMIT(cleaning_waits_for_a_purge, 120)
{
	static char payload[1000], idems[PURGED][16];
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_put *p;
	struct op op;

	CHECK_EQ(0, logkit_open(k));
	p = many(&op, SLICE("purged"), 1, PURGED, (struct slice){ 0 }, idems);
	run(k, &op);
	free(p);
	p = many(&op, queue, PURGED + 1, 5000, (struct slice){ payload, sizeof payload }, NULL);
	run(k, &op);
	free(p);
	ack_at_once(k, 5000);
	op_init(&op, OP_PURGE, space, SLICE("purged"), NULL, NULL);
	run(k, &op);
	CHECK_EQ(0, logkit_settle(k));
	k->next_id = PURGED + 5001;
	for (int life = 0; life < 2; life++) {
		for (uint32_t i = 0; i < PURGED; i += 13)
			check_known(k, i);
		logkit_close(k);
		CHECK_EQ(0, logkit_open(k));
	}
	CHECK_EQ(0, logkit_stats(k).live);
	logkit_free(k);
}

/* A purge interrupts the cleaning of a segment that takes several slices: it has keys to keep. Cleaning goes on when
 * the purge has freed its messages, without another op. */
TEST_LIMIT(cleaning_goes_on_after_a_purge, 120)
{
	static char payload[1000], keys[9000][16], idems[PURGED][16];
	struct logkit *k = logkit_new(4 << 20, 1, false);
	struct op_put *p;
	struct op op;

	CHECK_EQ(0, logkit_open(k));
	p = many(&op, queue, 1, 9000, (struct slice){ payload, sizeof payload }, keys);
	run(k, &op);
	free(p);
	p = many(&op, SLICE("purged"), 9001, PURGED, (struct slice){ 0 }, idems);
	run(k, &op);
	free(p);
	ack_at_once(k, 9000);
	op_init(&op, OP_PURGE, space, SLICE("purged"), NULL, NULL);
	run(k, &op);
	while (k->e->ops->next_due(k->e) <= k->now)
		CHECK_EQ(0, logkit_run(k, NULL));
	CHECK_EQ(1, logkit_stats(k).segments);
	logkit_free(k);
}

/* ---- Killed midway ---- */

/* Random work that leaves much to clean, and an image of it. */
static struct logkit *
prepare(struct sim_image **image)
{
	struct logkit *k = logkit_new(SEGMENT, 42, false);

	k->max_payload = 3000;
	CHECK_EQ(0, logkit_open(k));
	for (int i = 0; i < 250; i++)
		CHECK_EQ(0, logkit_step(k));
	logkit_kill(k);
	*image = simdisk_save(k->disk);
	return k;
}

/* Work, with cleaning in it, until the power goes at the n-th change. */
static bool
cut_at(struct logkit *k, unsigned long n, uint64_t seed)
{
	int rc = 0;

	CHECK_EQ(0, logkit_open(k));
	simdisk_power_off(k->disk, n);
	for (int i = 0; i < 40 && !rc; i++)
		rc = logkit_step(k);
	if (!rc)
		rc = logkit_settle(k);
	logkit_crash(k, seed);
	CHECK_EQ(0, logkit_open(k));
	CHECK_EQ(0, logkit_settle(k));
	logkit_verify(k);
	logkit_kill(k);
	return rc != 0;
}

/* Fault 41, LOGENGINE-4. */
TEST_LIMIT(cleaning_may_be_cut_at_any_change, 600)
{
	struct sim_image *image;
	struct logkit *k = prepare(&image), *saved = malloc(sizeof *saved);
	struct fakeclock clock;
	unsigned long n = 1;
	bool more = true;

	CHECK(saved);
	memcpy(saved, k, sizeof *saved);
	clock = k->clock;
	for (; more && n < 2000; n += 1 + n / 50) {
		memcpy(k, saved, sizeof *k);
		k->clock = clock;
		simdisk_load(k->disk, image);
		more = cut_at(k, n, n);
	}
	CHECK(n > 50);
	sim_image_free(image);
	free(saved);
	logkit_free(k);
}

/* ---- Damage ---- */

/* Never deleted, never copied: cleaning stops, the rest goes on. */
TEST_LIMIT(damage_stops_cleaning_and_deletes_nothing, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 8, false);
	char *bytes;
	size_t size;

	k->no_purge = k->may_stop = true;
	CHECK_EQ(0, logkit_open(k));
	while (logkit_stats(k).segments < 2)
		CHECK_EQ(0, logkit_step(k));
	bytes = simdisk_content(k->disk, "log/00000001.log", &size);
	CHECK(bytes);
	memset(bytes + size / 4, 0x55, 256); /* while it is open */
	for (uint64_t id = 1; id < k->next_id; id++)
		k->msgs[id].damaged = true;
	for (int i = 0; i < 600; i++)
		CHECK_EQ(0, logkit_step(k));
	CHECK(simdisk_content(k->disk, "log/00000001.log", &size));
	CHECK_CONTAINS("cleaning stopped", k->logged);
	k->e->ops->close(k->e);
	k->e = NULL;
	k->live = 0;
	CHECK_EQ(SLU_ECORRUPT, logkit_open(k));
	CHECK_CONTAINS("00000001.log", k->err.text);
	logkit_free(k);
}
