/*
 * Payloads in files of their own: written before their message, gone after it.
 */
#include "fakeclock.h"
#include "simdisk.h"
#include "test.h"

#include "engine/log/logengine.h"
#include "engine/log/file.h"
#include "engine/payload.h"

#include <errno.h>
#include <stdlib.h>

enum {
	SEGMENT = 64 << 10,
	MOST = 1000,
	LARGE = 3 * LOGENGINE_FILE_BYTES + 77 /* four blocks */
};

static struct bench {
	struct simdisk *disk;
	struct fakeclock clock;
	struct engine *e;
	struct engine_conf conf;
	struct logengine_conf more;
	slu_time now;
	uint64_t next_id;
	struct op op;
	struct op_row row;
	struct slu_err err;
} * b;

static void
bench_open(void)
{
	struct engine_found found;

	if (logengine_open(&b->e, &b->conf, &b->more, &found, &b->err))
		test_fail(__FILE__, __LINE__, "open: %s", b->err.text);
	b->now = found.now > b->now ? found.now : b->now;
}

static void
bench_new(void)
{
	b = calloc(1, sizeof *b);
	CHECK(b);
	b->disk = malloc(sizeof *b->disk);
	CHECK(b->disk);
	simdisk_init(b->disk);
	fakeclock_init(&b->clock, SLU_SEC, SLU_SEC);
	b->now = 1800000000 * SLU_SEC;
	b->conf = (struct engine_conf){
		.folder = "log",
		.disk = &b->disk->disk,
		.wall = b->now,
		.sync_interval = SLU_SEC,
	};
	b->more = (struct logengine_conf){
		.clock = &b->clock.clock,
		.segment_size = SEGMENT,
		.no_helper = true,
		.most = MOST,
	};
	b->next_id = 1;
}

static void
bench_free(void)
{
	if (b->e)
		b->e->ops->close(b->e);
	simdisk_release(b->disk);
	fakeclock_release(&b->clock);
	free(b->disk);
	free(b);
}

static void
bench_start(void)
{
	bench_new();
	bench_open();
}

FIXTURE(bench_start, bench_free);

static void
reopen(void)
{
	b->e->ops->close(b->e);
	bench_open();
}

static int
run(struct op *op)
{
	const int rc = engine_run(b->e, op, b->now, b->now, &b->err);

	if (rc && op)
		op_fail(op, rc, &b->err);
	return rc ? rc : op ? op->rc
			    : 0;
}

static void
start(enum op_verb verb)
{
	op_init(&b->op, verb, SLICE("ns"), SLICE("q"), NULL, NULL);
	b->op.route.arrived = b->op.route.before = b->now;
}

static char
byte_at(uint64_t i)
{
	return (char)(i * 7 + i / 251);
}

/* A message with a payload of n bytes, written in pieces. */
static int
put(size_t n)
{
	struct op_put put = { .m = { .id = b->next_id++ } };
	struct payload *p;
	int rc;

	CHECK_EQ(0, payload_open(b->e, &p, &b->err));
	rc = 0;
	for (size_t i = 0; i < n && !rc;) {
		char piece[997];
		size_t k = 0;

		for (; k < sizeof piece && i < n; k++)
			piece[k] = byte_at(i++);
		rc = payload_write(p, piece, k, &b->err);
	}
	if (!rc)
		rc = payload_seal(p, &put.m, &b->err);
	if (!rc) {
		start(OP_ENQUEUE);
		b->op.puts = &put;
		b->op.n_puts = 1;
		rc = run(&b->op);
	}
	payload_close(p);
	return rc;
}

static uint32_t
claim(void)
{
	start(OP_CLAIM);
	b->op.rows = &b->row;
	b->op.max_rows = 1;
	CHECK_EQ(0, run(&b->op));
	return b->op.n_rows;
}

static void
ack(void)
{
	struct op_item item = { .id = b->row.id, .token = b->row.token };
	struct op op;

	op_init(&op, OP_ACK, SLICE("ns"), SLICE("q"), NULL, NULL);
	op.route.arrived = op.route.before = b->now;
	op.items = &item;
	op.n_items = 1;
	CHECK_EQ(0, run(&op));
	CHECK_EQ(0, item.rc);
}

static unsigned
files_in(const char *folder)
{
	unsigned n = 0;
	const char *name;

	for (unsigned i = 0; (name = simdisk_name(b->disk, i)) != NULL; i++)
		n += strncmp(name, folder, strlen(folder)) == 0;
	return n;
}

static unsigned
files(void)
{
	return files_in("log/payloads/");
}

static int
read_at(uint64_t at, size_t n, char *out)
{
	return engine_read(b->e, &b->row.payload, at, n, out, true, &b->err);
}

static void
check_bytes(uint64_t at, size_t n)
{
	char *got = malloc(n + 1);

	CHECK(got);
	if (read_at(at, n, got))
		test_fail(__FILE__, __LINE__, "read: %s", b->err.text);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(byte_at(at + i), got[i]);
	free(got);
}

/* ---- In and out ---- */

TEST(a_large_payload_can_be_read_in_any_pieces)
{
	static const struct {
		uint64_t at;
		size_t n;
	} pieces[] = {
		{ 0, LARGE },
		{ 0, 1 },
		{ LARGE - 1, 1 },
		{ LARGE, 0 },
		{ LOGENGINE_FILE_BYTES - 1, 2 },
		{ LOGENGINE_FILE_BYTES, LOGENGINE_FILE_BYTES },
		{ 5, 2 * LOGENGINE_FILE_BYTES },
	};
	char byte;

	CHECK_EQ(0, put(LARGE));
	reopen();
	CHECK_EQ(1, claim());
	CHECK_EQ(LARGE, b->row.payload.size);
	CHECK(b->row.record.size < 200);
	EACH(i, pieces)
		check_bytes(pieces[i].at, pieces[i].n);
	CHECK_EQ(SLU_EINVAL, read_at(LARGE, 1, &byte));
	op_unpin(&b->op);
}

TEST(what_fits_into_the_log_has_no_file)
{
	CHECK_EQ(0, put(MOST));
	CHECK_EQ(0, files());
	CHECK_EQ(1, claim());
	CHECK(b->row.payload.pin == NULL);
	op_unpin(&b->op);
	CHECK_EQ(0, put(MOST + 1));
	CHECK_EQ(1, files());
}

/* The network thread asks this way; a file thread reads what it did not get. */
TEST(a_read_that_would_wait_is_refused_if_it_may_not)
{
	char bytes[10];

	CHECK_EQ(0, put(LARGE));
	CHECK_EQ(1, claim());
	CHECK_EQ(SLU_EBUSY, engine_read(b->e, &b->row.payload, 0, 10, bytes, false, &b->err));
	CHECK_EQ(0, read_at(0, 10, bytes)); /* it is open from now on */
	CHECK_EQ(0, engine_read(b->e, &b->row.payload, 0, 10, bytes, false, &b->err));
	CHECK_EQ(byte_at(9), bytes[9]);
	b->disk->cold = true;
	CHECK_EQ(SLU_EBUSY, engine_read(b->e, &b->row.payload, 0, 10, bytes, false, &b->err));
	op_unpin(&b->op);
}

/* docs/log-format.md, section 7 */
TEST(a_file_has_the_bytes_that_the_format_says)
{
	static const unsigned char want[] = {
		0x73, 0x6c, 0x75, 0x69, 0x63, 0x65, 0x70, 0x6c, /* "sluicepl" */
		0x01, 0x00, 0x00, 0x00
	};
	size_t size;
	char *bytes;

	CHECK_EQ(0, put(LARGE));
	bytes = simdisk_content(b->disk, "log/payloads/00000001", &size);
	CHECK(bytes);
	CHECK_EQ(4096 + LARGE + 4 * 4, size);
	CHECK(memcmp(want, bytes, sizeof want) == 0);
	CHECK_EQ(1, bytes[24], "its number");
	CHECK_EQ(byte_at(0), bytes[4096 + 4]);
	CHECK_EQ(byte_at(LOGENGINE_FILE_BYTES), bytes[4096 + 65536 + 4]);
}

/* ---- The end of a file ---- */

TEST(a_file_goes_with_its_message)
{
	CHECK_EQ(0, put(LARGE));
	CHECK_EQ(1, claim());
	op_unpin(&b->op);
	CHECK_EQ(1, files());
	ack();
	CHECK_EQ(0, files());
}

/* FILE-3 */
TEST(a_payload_can_be_read_on_when_its_message_is_gone)
{
	CHECK_EQ(0, put(LARGE));
	CHECK_EQ(1, claim());
	ack();
	CHECK_EQ(1, files());
	check_bytes(0, LARGE);
	op_unpin(&b->op);
	CHECK_EQ(0, files());
}

/* The power goes, and with it all that was not synced. */
static void
cut(void)
{
	b->disk->dead = true;
	b->e->ops->close(b->e);
	simdisk_crash(b->disk, 0);
	b->disk->dead = false;
	bench_open();
}

static void
sync_later(void)
{
	fakeclock_advance(&b->clock, 2 * SLU_SEC);
	CHECK_EQ(0, run(NULL));
}

/* The last byte of a record, which ends with the payload. */
static char
last_byte(const struct op_ref *ref)
{
	char c;

	CHECK_EQ(0, engine_read(b->e, ref, ref->size - 1, 1, &c, true, &b->err));
	return c;
}

/* An extend alone is synced later. */
static void
extend_with(const char *checkpoint)
{
	struct op_item item = { .id = b->row.id, .token = b->row.token, .time = SLU_SEC, .text = slice_of(checkpoint) };

	op_unpin(&b->op);
	start(OP_EXTEND);
	b->op.items = &item;
	b->op.n_items = 1;
	CHECK_EQ(0, run(&b->op));
	CHECK_EQ(0, item.rc);
}

/* LOCK-12 */
TEST(a_checkpoint_is_synced_before_it_is_answered)
{
	CHECK_EQ(0, put(5));
	CHECK_EQ(1, claim());
	extend_with("1");
	extend_with("2");
	extend_with("");
	cut();
	b->now += SLU_HOUR;
	CHECK_EQ(1, claim());
	CHECK(b->row.checkpoint.pin);
	CHECK_EQ('2', last_byte(&b->row.checkpoint));
	op_unpin(&b->op);
	ack();
}

/* FILE-3: before that a power cut would bring the message back. */
TEST(a_file_stays_until_the_end_of_its_message_is_synced)
{
	b->conf.sync = ENGINE_SYNC_INTERVAL;
	reopen();
	CHECK_EQ(0, put(LARGE));
	sync_later();
	CHECK_EQ(1, claim());
	op_unpin(&b->op);
	ack();
	CHECK_EQ(1, files());
	cut();
	CHECK_EQ(1, files());
	b->now += SLU_HOUR;
	CHECK_EQ(1, claim());
	check_bytes(0, LARGE);
	op_unpin(&b->op);
	ack();
	CHECK_EQ(1, files());
	sync_later();
	CHECK_EQ(0, files());
}

TEST(a_purge_takes_the_files_along)
{
	for (int i = 0; i < 5; i++)
		CHECK_EQ(0, put(LARGE));
	CHECK_EQ(5, files());
	start(OP_PURGE);
	CHECK_EQ(0, run(&b->op));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(0, run(NULL));
	CHECK_EQ(0, files());
}

/* ---- Files without a message ---- */

TEST(a_message_that_is_refused_leaves_no_file)
{
	struct policy policy = policy_default;

	policy.max_depth = 1;
	start(OP_POLICY_SET);
	b->op.policy = policy;
	CHECK_EQ(0, run(&b->op));
	CHECK_EQ(0, put(LARGE));
	CHECK_EQ(SLU_EQFULL, put(LARGE));
	CHECK_EQ(1, files());
}

TEST(a_payload_that_was_not_finished_leaves_no_file)
{
	struct payload *p;
	char piece[5000] = { 0 };

	CHECK_EQ(0, payload_open(b->e, &p, &b->err));
	CHECK_EQ(0, payload_write(p, piece, sizeof piece, &b->err));
	CHECK_EQ(1, files());
	payload_close(p);
	CHECK_EQ(0, files());
}

/* FILE-2; LQ-81: a crash between the payload and its message leaves no file. */
TEST(files_that_no_record_names_are_removed_at_open)
{
	struct payload *p;
	struct message m = { 0 };
	char piece[5000] = { 0 };

	CHECK_EQ(0, put(LARGE));
	CHECK_EQ(0, payload_open(b->e, &p, &b->err));
	CHECK_EQ(0, payload_write(p, piece, sizeof piece, &b->err));
	CHECK_EQ(0, payload_seal(p, &m, &b->err)); /* and then it was killed */
	CHECK_EQ(2, m.file);
	CHECK_EQ(2, files());
	b->disk->dead = true;
	payload_close(p);
	b->e->ops->close(b->e);
	simdisk_kill(b->disk);
	b->disk->dead = false;
	bench_open();
	CHECK_EQ(1, files());
	CHECK_EQ(1, claim());
	check_bytes(0, LARGE);
	op_unpin(&b->op);
	CHECK_EQ(0, put(LARGE));
	CHECK(simdisk_content(b->disk, "log/payloads/00000003", &(size_t){ 0 }));
}

/* ---- Disks that are full ---- */

TEST(a_full_disk_refuses_the_payload_and_keeps_nothing_of_it)
{
	uint64_t used;

	CHECK_EQ(0, put(LARGE));
	used = simdisk_used(b->disk);
	simdisk_fail(b->disk, SIM_BIT(SIM_WRITE), 2, ENOSPC, true);
	CHECK_EQ(SLU_EFULL, put(LARGE));
	simdisk_heal(b->disk);
	CHECK_EQ(1, files());
	CHECK_EQ(used, simdisk_used(b->disk));
	CHECK_EQ(0, put(LARGE));
}

/* FILE-5, WAL-4: what is free is for the log first. */
TEST(a_payload_leaves_the_room_that_settling_needs)
{
	CHECK_EQ(0, put(LARGE));
	b->disk->capacity = simdisk_used(b->disk) + (4 << 20) + SEGMENT;
	CHECK_EQ(0, put(LARGE));
	b->disk->capacity = simdisk_used(b->disk) + (2 << 20);
	CHECK_EQ(SLU_EFULL, put(LARGE));
	CHECK_CONTAINS("room", b->err.text);
	CHECK_EQ(0, put(10), "a small one goes into the log");
	while (claim()) {
		op_unpin(&b->op);
		ack();
	}
	CHECK_EQ(0, files());
}

/* ---- Damage ---- */

static void
spoil(size_t at)
{
	size_t size;
	char *bytes = simdisk_content(b->disk, "log/payloads/00000001", &size);

	CHECK(bytes && at < size);
	bytes[at] ^= 1;
}

TEST(a_damaged_block_is_found_and_the_others_can_be_read)
{
	char byte;

	CHECK_EQ(0, put(LARGE));
	spoil(LOGENGINE_FILE_HEAD + LOGENGINE_FILE_BLOCK + 100);
	CHECK_EQ(1, claim());
	check_bytes(0, LOGENGINE_FILE_BYTES);
	CHECK_EQ(SLU_ECORRUPT, read_at(LOGENGINE_FILE_BYTES, 1, &byte));
	CHECK_CONTAINS("payloads/00000001", b->err.text);
	CHECK_CONTAINS("69632", b->err.text);
	check_bytes(2 * LOGENGINE_FILE_BYTES, LARGE - 2 * LOGENGINE_FILE_BYTES);
	op_unpin(&b->op);
}

/* FILE-4 */
TEST(a_block_in_the_wrong_place_is_damage)
{
	size_t size;
	char *bytes, byte;

	CHECK_EQ(0, put(LARGE));
	bytes = simdisk_content(b->disk, "log/payloads/00000001", &size);
	memcpy(bytes + LOGENGINE_FILE_HEAD, bytes + LOGENGINE_FILE_HEAD + LOGENGINE_FILE_BLOCK, LOGENGINE_FILE_BLOCK);
	CHECK_EQ(1, claim());
	CHECK_EQ(SLU_ECORRUPT, read_at(0, 1, &byte));
	op_unpin(&b->op);
}

TEST(a_file_that_is_missing_is_named)
{
	struct logengine_facts facts;
	char byte;

	CHECK_EQ(0, put(LARGE));
	b->e->ops->close(b->e);
	b->e = NULL;
	CHECK_EQ(0, logengine_check(&b->conf, &facts, &b->err));
	CHECK_EQ(1, facts.files);
	CHECK_EQ(0, facts.bad_files);
	spoil(LOGENGINE_FILE_HEAD + 3 * LOGENGINE_FILE_BLOCK + 50);
	CHECK_EQ(0, logengine_check(&b->conf, &facts, &b->err));
	CHECK_EQ(1, facts.bad_files);
	CHECK_CONTAINS("payloads/00000001: bad block", facts.first_bad.text);

	const int folder = b->disk->disk.ops->folder(&b->disk->disk, "log");

	CHECK_EQ(0, b->disk->disk.ops->remove(&b->disk->disk, folder, "payloads/00000001"));
	CHECK_EQ(0, logengine_check(&b->conf, &facts, &b->err));
	CHECK_CONTAINS("payloads/00000001 is missing (message 1)", facts.first_bad.text);
	bench_open();
	CHECK_EQ(1, claim());
	CHECK_EQ(SLU_ECORRUPT, read_at(0, 1, &byte));
	CHECK_CONTAINS("missing", b->err.text);
	op_unpin(&b->op);
}

/* ---- Cleaning ---- */

/* Some megabytes through a log of small segments. */
static void
work_a_lot(void)
{
	for (int i = 0; i < 3000; i++) {
		CHECK_EQ(0, put(900));
		CHECK_EQ(1, claim());
		op_unpin(&b->op);
		ack();
	}
}

/* CLEAN-6 */
TEST(cleaning_does_not_copy_payloads)
{
	struct wal_stats stats;
	uint32_t first;

	CHECK_EQ(0, put(LARGE));
	CHECK_EQ(1, claim()); /* it stays, at the front of the log */
	op_unpin(&b->op);

	const struct op_row large = b->row;

	logengine_stats(b->e, &stats);
	first = stats.segments;
	work_a_lot();
	logengine_stats(b->e, &stats);
	CHECK(stats.segments < first + 6);
	CHECK_EQ(1, files());
	reopen();
	CHECK_EQ(1, files());
	b->now += SLU_HOUR;
	CHECK_EQ(1, claim());
	CHECK_EQ(large.id, b->row.id);
	check_bytes(0, LARGE);
	op_unpin(&b->op);
	ack();
	CHECK_EQ(0, files());
}

TEST(cleaning_and_reopening_keep_what_is_set_aside)
{
	struct op_item item;

	CHECK_EQ(0, put(LARGE));
	spoil(LOGENGINE_FILE_HEAD + 100);
	CHECK_EQ(1, claim());
	op_unpin(&b->op);
	item = (struct op_item){ .id = b->row.id, .token = b->row.token };
	start(OP_QUARANTINE);
	b->op.items = &item;
	b->op.n_items = 1;
	CHECK_EQ(0, run(&b->op));
	CHECK_EQ(0, item.rc);
	for (int i = 0; i < 2; i++) {
		work_a_lot();
		start(OP_LIST);
		b->op.rows = &b->row;
		b->op.max_rows = 1;
		b->op.state = MSG_DAMAGED;
		CHECK_EQ(0, run(&b->op));
		CHECK_EQ(1, b->op.n_rows);
		CHECK_EQ(1, b->row.id);
		op_unpin(&b->op);
		CHECK_EQ(1, files());
		reopen();
	}
	item = (struct op_item){ .id = 1 };
	start(OP_DELETE);
	b->op.items = &item;
	b->op.n_items = 1;
	CHECK_EQ(0, run(&b->op));
	CHECK_EQ(0, item.rc);
	CHECK_EQ(0, files());
}

/* ---- Memory ---- */

TORTURE(a_payload_that_finds_no_memory_leaves_nothing)
{
	struct engine_found found;
	struct payload *p = NULL;
	struct message m = { 0 };
	char piece[5000] = { 0 };
	int rc;

	bench_new();
	rc = logengine_open(&b->e, &b->conf, &b->more, &found, &b->err);
	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc);
		b->e = NULL;
		bench_free();
		return;
	}
	rc = payload_open(b->e, &p, &b->err);
	if (!rc)
		rc = payload_write(p, piece, sizeof piece, &b->err);
	if (!rc)
		rc = payload_seal(p, &m, &b->err);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	payload_close(p);
	CHECK_EQ(0, files());
	bench_free();
}

/* FILE-8, LINE-9: objects of older epochs may be gone, and numbers of other nodes are random. */
TEST(a_file_of_another_node_is_named_in_the_epoch_of_the_owner_only)
{
	enum {
		EPOCH = 7
	};
	static const struct {
		const char *label;
		uint64_t epoch;
		uint64_t counter;
		uint32_t mark;
		int rc;
	} cases[] = {
		{ "of this epoch", EPOCH, LOGENGINE_FILE_BROUGHT | 5, 1, 0 },
		{ "the same once more", EPOCH, LOGENGINE_FILE_BROUGHT | 5, 1, 0 },
		{ "another file with its number", EPOCH, LOGENGINE_FILE_BROUGHT | 5, 2, SLU_EDOWN },
		{ "of the epoch before", EPOCH - 1, LOGENGINE_FILE_BROUGHT | 6, 1, SLU_EDOWN },
		{ "of a later epoch", EPOCH + 1, LOGENGINE_FILE_BROUGHT | 6, 1, SLU_EDOWN },
		{ "of the owner, which has not written it", EPOCH, 6, 1, SLU_EINVAL },
	};
	struct logengine_files files;
	struct logengine_file *made;
	uint32_t handle;

	logengine_files_init(&files);
	CHECK_EQ(0, logengine_files_open(&files, b->conf.disk, NULL, "other", false, &b->err));
	CHECK_EQ(0, logengine_files_settle(&files, &b->err));
	logengine_files_keep_in(&files, NULL, "0", EPOCH);
	EACH(i, cases) {
		const struct message m = {
			.file = cases[i].epoch << LOGENGINE_FILE_EPOCH | cases[i].counter,
			.mark = cases[i].mark,
			.payload_size = LARGE,
		};

		CHECK_EQ(cases[i].rc, logengine_files_name(&files, &m, &handle, &b->err), cases[i].label);
	}
	CHECK_EQ(0, logengine_files_make(&files, &made, &b->err));
	CHECK_EQ(((uint64_t)EPOCH << LOGENGINE_FILE_EPOCH) + 1, made->number, "the owner counts on from its own");
	logengine_files_unmake(made);
	logengine_files_release(&files);
}

/* FILE-8: the shard gets another owner while a file for its first owner is written. */
TEST(a_file_for_another_node_gets_a_number_of_the_current_epoch)
{
	static const struct {
		const char *label;
		uint64_t other, own; /* epochs in which another node, and this node, own the shard */
		int rc;
		uint64_t epoch; /* of the number then */
	} cases[] = {
		{ "the same owner", 7, 0, 0, 7 },
		{ "another node", 8, 0, 0, 8 },
		{ "this node", 0, 9, 0, 9 },
		{ "no node", 0, 0, SLU_EDOWN, 9 },
	};
	struct logengine_files owned, transit;
	char name[LOGENGINE_FILE_NAME];
	struct logengine_file *f;
	int fd;

	logengine_files_init(&owned);
	logengine_files_init(&transit);
	CHECK_EQ(0, logengine_files_open(&transit, b->conf.disk, NULL, "other", false, &b->err));
	CHECK_EQ(0, logengine_files_settle(&transit, &b->err));
	logengine_files_keep_in(&transit, NULL, "0", 7);
	transit.transit = true;
	transit.owned = &owned;
	transit.shut = owned.shut = false;
	CHECK_EQ(0, logengine_files_folder(&transit, &b->err));
	CHECK_EQ(0, logengine_files_make(&transit, &f, &b->err));
	fd = transit.disk->ops->create(transit.disk, transit.folder, logengine_file_name(f->number, name));
	CHECK(fd >= 0);
	transit.disk->ops->close(transit.disk, fd);
	EACH(i, cases) {
		transit.epoch = cases[i].other;
		owned.epoch = cases[i].own;
		CHECK_EQ(cases[i].rc, logengine_file_renumber(f, &b->err), cases[i].label);
		CHECK_EQ(cases[i].epoch, f->number >> LOGENGINE_FILE_EPOCH, cases[i].label);
		CHECK_EQ(f->number, f->stored, cases[i].label);
		CHECK_EQ(!cases[i].rc, logengine_file_is_current(f), cases[i].label);
	}
	logengine_files_unmake(f); /* removes the file under its last name */
	CHECK_EQ(0, files_in("other/payloads/"));
	logengine_files_release(&transit);
	logengine_files_release(&owned);
}
