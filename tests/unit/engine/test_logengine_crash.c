/*
 * The log engine when the power goes, the process is killed, the disk fails or fills.
 */
#include "logkit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SEGMENT = 64 << 10,
	WORK = 25 /* batches of a run that is cut */
};

static int
work(struct logkit *k, int n)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++)
		rc = logkit_step(k);
	return rc;
}

/* ---- Power ---- */

/* Cut the power at the n-th change of anything on disk. False: it needs no more. */
static bool
cut_at(unsigned long n, uint64_t seed)
{
	struct logkit *k = logkit_new(SEGMENT, 77, false);
	int rc;

	k->max_payload = 3000;
	simdisk_power_off(k->disk, n);
	rc = logkit_open(k);
	if (!rc)
		rc = work(k, WORK);
	logkit_crash(k, seed);
	CHECK_EQ(0, logkit_open(k));
	CHECK_EQ(0, work(k, 5));
	logkit_verify(k);
	logkit_free(k);
	return rc != 0;
}

/* Faults 2 to 4. */
TEST_LIMIT(the_power_may_go_at_any_change_of_the_disk, 600)
{
	unsigned long n = 1;

	while (cut_at(n, n))
		n++;
	CHECK(n > WORK); /* it did write */
	for (uint64_t seed = 0; seed < 4; seed++)
		for (unsigned long i = 1; i < n; i += 3)
			cut_at(i + seed % 3, seed);
}

/* Faults 3 and 50: I1 to I9 over many cuts of one log. */
TEST_LIMIT(the_power_goes_again_and_again, 600)
{
	struct logkit *k = logkit_new(SEGMENT, test_seed(), false);

	for (int life = 0; life < 150; life++) {
		simdisk_power_off(k->disk, 1 + test_random(&k->random) % 200);
		if (logkit_open(k) == 0)
			(void)work(k, 200); /* until it fails */
		logkit_crash(k, test_random(&k->random));
	}
	CHECK_EQ(0, logkit_open(k));
	CHECK(k->accepted > 500 && k->settled > 50 && k->reopened > 50);
	CHECK(k->files > 20);
	logkit_free(k);
}

static void
lock_op(struct logkit *k, struct op *op, enum op_verb verb)
{
	op->verb = verb;
	op->lock.ttl = SLU_HOUR;
	CHECK_EQ(0, logkit_run(k, op));
	CHECK_EQ(0, op->rc);
}

/* A release is answered when it is synced, also if it is alone in its batch. */
TEST(a_released_key_is_free_after_the_power_went)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct logkit *k = logkit_new(SEGMENT, seed, false);
		struct op op;

		k->unverified = true;
		op_init(&op, OP_ACQUIRE, SLICE("ns"), SLICE(LOCK_QUEUE), NULL, NULL);
		op.lock.key = SLICE("k");
		CHECK_EQ(0, logkit_open(k));
		lock_op(k, &op, OP_ACQUIRE);
		lock_op(k, &op, OP_RELEASE);
		logkit_crash(k, seed);
		CHECK_EQ(0, logkit_open(k));
		op.lock = (struct op_lock){ .key = SLICE("k") };
		lock_op(k, &op, OP_ACQUIRE);
		CHECK(op.lock.token);
		logkit_free(k);
	}
}

/* ---- kill -9 ---- */

static void
be_killed(struct logkit *k)
{
	if (logkit_open(k))
		test_fail(__FILE__, __LINE__, "open: %s", k->err.text);
	for (;;)
		if (logkit_step(k))
			test_fail(__FILE__, __LINE__, "run: %s", k->err.text);
}

static void
one_life(struct logkit *k)
{
	const long wait = 1000000 + (long)(test_random(&k->random) % 60) * 1000000;
	pid_t child;
	int status;

	k->e = NULL;
	k->live = 0;
	logkit_doubt(k);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		be_killed(k);
	nanosleep(&(struct timespec){ 0, wait }, NULL);
	kill(child, SIGKILL);
	CHECK_EQ(child, waitpid(child, &status, 0));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* MQ-09, MQ-50, MQ-51, MQ-55; fault 1: a real disk, a real process, a real kill. */
TEST_LIMIT(a_process_may_be_killed_at_any_moment, 600)
{
	struct logkit *k = logkit_new(SEGMENT, test_seed(), true);
	uint64_t random = test_seed();

	for (int life = 0; life < 100 || k->accepted <= 100 || k->settled <= 10; life++) {
		k->random = test_random(&random);
		one_life(k);
	}
	k->e = NULL;
	logkit_doubt(k);
	CHECK_EQ(0, logkit_open(k));
	logkit_free(k);
}

/* SQ-F1: what is queued survives, in order. */
TEST_LIMIT(a_thousand_queued_messages_are_there_in_order_after_a_kill, 600)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);
	struct op_put put = { .m = { .key = SLICE("k") } };
	struct op_row row;
	struct op op;

	CHECK_EQ(0, logkit_open(k));
	logkit_enqueue(&op, SLICE("ns"), SLICE("q"), &put, 1);
	for (uint64_t id = 1; id <= 1000; id++) {
		put.m.id = id;
		put.m.due = 0;
		CHECK_EQ(0, logkit_run(k, &op));
		CHECK_EQ(0, op.rc);
		k->msgs[id] = (struct kit_msg){ 0 };
	}
	logkit_kill(k);
	k->next_id = 1;
	CHECK_EQ(0, logengine_open(&k->e, &(struct engine_conf){ .folder = "log", .disk = &k->disk->disk, .wall = k->now }, &k->more, &k->found, &k->err));
	CHECK_EQ(1000, k->found.highest_id);
	for (uint64_t id = 1; id <= 1000; id++) {
		struct op_item item;

		op_init(&op, OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
		op.rows = &row;
		op.max_rows = 1;
		CHECK_EQ(0, logkit_run(k, &op));
		CHECK_EQ(1, op.n_rows);
		CHECK_EQ(id, row.id);
		op_unpin(&op);
		item = (struct op_item){ .id = id, .token = row.token };
		op_init(&op, OP_ACK, SLICE("ns"), SLICE("q"), NULL, NULL);
		op.items = &item;
		op.n_items = 1;
		CHECK_EQ(0, logkit_run(k, &op));
		CHECK_EQ(0, item.rc);
	}
	logkit_free(k);
}

/* ---- A disk that fails ---- */

static void
fail_once(unsigned ops)
{
	struct logkit *k = logkit_new(SEGMENT, 5, false);
	int rc;

	k->more.most = UINT64_MAX; /* all in the log */
	CHECK_EQ(0, logkit_open(k));
	CHECK_EQ(0, work(k, 10));
	simdisk_fail(k->disk, ops, 1, EIO, false);
	k->enqueues = 100;
	rc = logkit_step(k);
	CHECK_EQ(SLU_EUNKNOWN, rc);
	simdisk_heal(k->disk);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(SLU_EDOWN, logkit_step(k), "until it is opened anew");
	CHECK_EQ(SLU_NEVER, k->e->ops->next_due(k->e));
	logkit_crash(k, 2);
	CHECK_EQ(0, logkit_open(k));
	CHECK_EQ(0, work(k, 10));
	logkit_free(k);
}

/* Fault 8, WAL-3 and LOGENGINE-5. */
TEST(a_failed_sync_ends_the_engine)
{
	fail_once(SIM_BIT(SIM_SYNC));
}

TEST(a_failed_write_ends_the_engine)
{
	fail_once(SIM_BIT(SIM_WRITE));
}

/* Fault 16, WAL-7. */
TEST(a_folder_has_one_engine)
{
	struct logkit *k = logkit_new(SEGMENT, 5, true);
	struct engine_conf conf = { .folder = "log" };
	struct engine_found found;
	struct engine *second;
	struct slu_err err;

	CHECK_EQ(0, logkit_open(k));
	CHECK_EQ(SLU_EBUSY, logengine_open(&second, &conf, &k->more, &found, &err));
	CHECK_CONTAINS("in use", err.text);
	logkit_free(k);
}

/* ---- A disk that fills up ---- */

static uint32_t
settle_all(struct logkit *k)
{
	const uint64_t before = k->settled;

	k->enqueues = 0;
	for (int i = 0; i < 3000 && k->settled - before < 300; i++)
		CHECK_EQ(0, logkit_step(k), "settling works on a full disk");
	return (uint32_t)(k->settled - before);
}

/* Enqueue until it is refused. */
static void
fill_up(struct logkit *k)
{
	uint64_t before;
	int refused = 0;

	k->enqueues = 100;
	while (refused < 10) {
		before = k->accepted;
		CHECK_EQ(0, logkit_step(k));
		refused += k->accepted == before;
	}
}

/* Fault 7, WAL-4 and LOGENGINE-6; no restart is needed. */
TEST_LIMIT(a_full_disk_refuses_new_work_and_settles_old, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 3, false);

	k->no_purge = true;
	k->max_payload = 5000;
	k->more.max_segments = 16;
	CHECK_EQ(0, logkit_open(k));
	for (int round = 0; round < 5; round++) {
		fill_up(k);
		CHECK(settle_all(k) >= 100);
		k->enqueues = 50;
		CHECK_EQ(0, work(k, 50));
		logkit_verify(k);
	}
	logkit_close(k);
	CHECK_EQ(0, logkit_open(k));
	logkit_free(k);
}

/* The same with a disk that has no room for another file. */
TEST_LIMIT(enospc_is_met_without_harm, 120)
{
	struct logkit *k = logkit_new(SEGMENT, 4, false);

	k->no_purge = true;
	k->max_payload = 5000;
	CHECK_EQ(0, logkit_open(k));
	k->disk->capacity = simdisk_used(k->disk) + 12 * SEGMENT;
	fill_up(k);
	CHECK(settle_all(k) >= 100);
	k->disk->capacity = 0;
	fakeclock_advance(&k->clock, SLU_SEC);
	k->enqueues = 50;
	CHECK_EQ(0, work(k, 50));
	logkit_verify(k);
	logkit_free(k);
}

/* ---- Bits that flip ---- */

/* Fault 5: damage is found when the log is opened ... */
TEST_LIMIT(a_flipped_bit_is_never_taken_for_data, 300)
{
	struct logkit *k = logkit_new(SEGMENT, 9, false);
	struct sim_image *image;
	unsigned refused = 0;

	k->more.most = UINT64_MAX; /* those are not looked at before they are read */
	CHECK_EQ(0, logkit_open(k));
	CHECK_EQ(0, work(k, 60));
	logkit_close(k);
	image = simdisk_save(k->disk);
	for (int i = 0; i < 1500; i++) {
		const unsigned which = (unsigned)(test_random(&k->random) % 5);
		const char *name = simdisk_name(k->disk, which);
		char *bytes;
		size_t size;

		bytes = name ? simdisk_content(k->disk, name, &size) : NULL;
		if (!bytes || size == 0)
			continue;
		bytes[test_random(&k->random) % size] ^= (char)(1 << i % 8);
		k->live = 0;
		if (logkit_open(k) == 0) { /* and then all is as it was */
			simdisk_kill(k->disk);
			k->disk->dead = true;
			k->e->ops->close(k->e);
			k->e = NULL;
		} else {
			refused++;
		}
		simdisk_kill(k->disk);
		simdisk_load(k->disk, image);
	}
	CHECK(refused > 20);
	sim_image_free(image);
	logkit_free(k);
}

/* ... and when it comes later, on read. */
TEST(damage_of_a_payload_is_found_on_read)
{
	struct logkit *k = logkit_new(SEGMENT, 9, false);
	struct op_put put = { .m = { .id = 1, .payload = SLICE("as it was written") } };
	char bytes[256], *file, *at;
	struct op_row row;
	struct op op;
	size_t size;

	CHECK_EQ(0, logkit_open(k));
	logkit_enqueue(&op, SLICE("ns"), SLICE("q"), &put, 1);
	CHECK_EQ(0, logkit_run(k, &op));
	op_init(&op, OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
	op.rows = &row;
	op.max_rows = 1;
	CHECK_EQ(0, logkit_run(k, &op));
	CHECK_EQ(1, op.n_rows);
	file = simdisk_content(k->disk, "log/00000001.log", &size);
	at = memmem(file, size, "as it was", 9);
	CHECK(at);
	at[3] ^= 1;
	CHECK_EQ(SLU_ECORRUPT, engine_read(k->e, &row.record, 0, row.record.size, bytes,
					   true, &k->err));
	CHECK_CONTAINS("00000001.log", k->err.text);
	at[3] ^= 1;
	CHECK_EQ(0, engine_read(k->e, &row.record, 0, row.record.size, bytes, true, NULL));
	op_unpin(&op);
	logkit_free(k);
}

/* LQ-79, as far as a shard goes: an ack or nack that the disk did not take fails, and
 * the message can be claimed again; what its holder staged is not committed by half. */
TEST(a_settlement_that_was_not_written_fails_and_the_message_is_claimable_again)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_NACK };

	EACH(i, verbs) {
		struct logkit *k = logkit_new(SEGMENT, 5, false);
		struct op_put put = { .m = { .id = 1 } };
		struct op_item item = { .id = 1 };
		struct op_row row = { 0 };
		uint64_t first;
		struct op op;

		k->no_locks = true;
		CHECK_EQ(0, logkit_open(k));
		logkit_enqueue(&op, SLICE("ns"), SLICE("q"), &put, 1);
		CHECK_EQ(0, logkit_run(k, &op));
		op_init(&op, OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
		op.rows = &row;
		op.max_rows = 1;
		op.claim.lease = SLU_HOUR;
		CHECK_EQ(0, logkit_run(k, &op));
		CHECK_EQ(1, op.n_rows);
		first = item.token = row.token;
		op_unpin(&op);
		simdisk_fail(k->disk, SIM_BIT(SIM_WRITE), 1, EIO, false);
		op_init(&op, verbs[i], SLICE("ns"), SLICE("q"), NULL, NULL);
		op.items = &item;
		op.n_items = 1;
		CHECK_EQ(SLU_EUNKNOWN, logkit_run(k, &op), op_verb_name(verbs[i]));
		simdisk_heal(k->disk);
		logkit_crash(k, 1);
		CHECK_EQ(0, logengine_open(&k->e, &(struct engine_conf){ .folder = "log", .disk = &k->disk->disk, .wall = k->now }, &k->more, &k->found, &k->err));
		k->now = k->found.now + SLU_HOUR; /* the lease ends by itself */
		op_init(&op, OP_CLAIM, SLICE("ns"), SLICE("q"), NULL, NULL);
		op.rows = &row;
		op.max_rows = 1;
		CHECK_EQ(0, logkit_run(k, &op));
		CHECK_EQ(1, op.n_rows);
		CHECK_EQ(1, row.id);
		CHECK(row.token > first);
		op_unpin(&op);
		logkit_free(k);
	}
}
