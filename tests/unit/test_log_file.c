/*
 * Payloads in files of their own: written before their message, gone after it.
 */
#include "fakeclock.h"
#include "simdisk.h"
#include "test.h"

#include "engine/log.h"
#include "engine/log_file.h"
#include "engine/payload.h"

#include <errno.h>
#include <stdlib.h>

enum {
	SEGMENT = 64 << 10,
	MOST = 1000,
	LARGE = 3 * LOG_FILE_BYTES + 77 /* four blocks */
};

struct bench {
	struct simdisk *disk;
	struct fakeclock clock;
	struct engine *e;
	struct engine_conf conf;
	struct log_conf more;
	slu_time now;
	uint64_t next_id;
	struct op op;
	struct op_row row;
	struct slu_err err;
};

static void
bench_open(struct bench *b)
{
	struct engine_found found;

	if (log_open(&b->e, &b->conf, &b->more, &found, &b->err))
		test_fail(__FILE__, __LINE__, "open: %s", b->err.text);
	b->now = found.now > b->now ? found.now : b->now;
}

static struct bench *
bench_new(void)
{
	struct bench *b = calloc(1, sizeof *b);

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
	b->more = (struct log_conf){
		.clock = &b->clock.clock,
		.segment_size = SEGMENT,
		.no_helper = true,
		.most = MOST,
	};
	b->next_id = 1;
	return b;
}

static void
bench_free(struct bench *b)
{
	if (b->e)
		b->e->ops->close(b->e);
	simdisk_release(b->disk);
	fakeclock_release(&b->clock);
	free(b->disk);
	free(b);
}

static void
reopen(struct bench *b)
{
	b->e->ops->close(b->e);
	bench_open(b);
}

static int
run(struct bench *b, struct op *op)
{
	const int rc = b->e->ops->run(b->e, op, b->now, b->now, &b->err);

	if (rc && op)
		op_fail(op, rc, &b->err);
	return rc ? rc : op ? op->rc
			    : 0;
}

static void
start(struct bench *b, enum op_verb verb)
{
	op_init(&b->op, verb, SLICE("ns"), SLICE("q"), NULL, NULL);
	b->op.arrived = b->op.before = b->now;
}

static char
byte_at(uint64_t i)
{
	return (char)(i * 7 + i / 251);
}

/* A message with a payload of n bytes, written in pieces. */
static int
put(struct bench *b, size_t n)
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
		start(b, OP_ENQUEUE);
		b->op.puts = &put;
		b->op.n_puts = 1;
		rc = run(b, &b->op);
	}
	payload_close(p);
	return rc;
}

static uint32_t
claim(struct bench *b)
{
	start(b, OP_CLAIM);
	b->op.rows = &b->row;
	b->op.max_rows = 1;
	CHECK_EQ(0, run(b, &b->op));
	return b->op.n_rows;
}

static void
ack(struct bench *b)
{
	struct op_item item = { .id = b->row.id, .token = b->row.token };
	struct op op;

	op_init(&op, OP_ACK, SLICE("ns"), SLICE("q"), NULL, NULL);
	op.arrived = op.before = b->now;
	op.items = &item;
	op.n_items = 1;
	CHECK_EQ(0, run(b, &op));
	CHECK_EQ(0, item.rc);
}

static unsigned
files(struct bench *b)
{
	unsigned n = 0;
	const char *name;

	for (unsigned i = 0; (name = simdisk_name(b->disk, i)) != NULL; i++)
		n += strncmp(name, "log/payloads/", 13) == 0;
	return n;
}

static int
read_at(struct bench *b, uint64_t at, size_t n, char *out)
{
	return engine_read(b->e, &b->row.payload, at, n, out, true, &b->err);
}

static void
check_bytes(struct bench *b, uint64_t at, size_t n)
{
	char *got = malloc(n + 1);

	CHECK(got);
	if (read_at(b, at, n, got))
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
		{ LOG_FILE_BYTES - 1, 2 },
		{ LOG_FILE_BYTES, LOG_FILE_BYTES },
		{ 5, 2 * LOG_FILE_BYTES },
	};
	struct bench *b = bench_new();
	char byte;

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	reopen(b);
	CHECK_EQ(1, claim(b));
	CHECK_EQ(LARGE, b->row.payload.size);
	CHECK(b->row.record.size < 200);
	EACH(i, pieces)
		check_bytes(b, pieces[i].at, pieces[i].n);
	CHECK_EQ(SLU_EINVAL, read_at(b, LARGE, 1, &byte));
	op_unpin(&b->op);
	bench_free(b);
}

TEST(what_fits_into_the_log_has_no_file)
{
	struct bench *b = bench_new();

	bench_open(b);
	CHECK_EQ(0, put(b, MOST));
	CHECK_EQ(0, files(b));
	CHECK_EQ(1, claim(b));
	CHECK(b->row.payload.pin == NULL);
	op_unpin(&b->op);
	CHECK_EQ(0, put(b, MOST + 1));
	CHECK_EQ(1, files(b));
	bench_free(b);
}

/* The network thread asks this way; a file thread reads what it did not get. */
TEST(who_may_not_wait_is_told_to)
{
	struct bench *b = bench_new();
	char bytes[10];

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	CHECK_EQ(1, claim(b));
	CHECK_EQ(SLU_EBUSY, engine_read(b->e, &b->row.payload, 0, 10, bytes, false, &b->err));
	CHECK_EQ(0, read_at(b, 0, 10, bytes)); /* it is open from now on */
	CHECK_EQ(0, engine_read(b->e, &b->row.payload, 0, 10, bytes, false, &b->err));
	CHECK_EQ(byte_at(9), bytes[9]);
	b->disk->cold = true;
	CHECK_EQ(SLU_EBUSY, engine_read(b->e, &b->row.payload, 0, 10, bytes, false, &b->err));
	op_unpin(&b->op);
	bench_free(b);
}

/* docs/log-format.md, section 7 */
TEST(a_file_has_the_bytes_that_the_format_says)
{
	static const unsigned char want[] = {
		0x73, 0x6c, 0x75, 0x69, 0x63, 0x65, 0x70, 0x6c, /* "sluicepl" */
		0x01, 0x00, 0x00, 0x00
	};
	struct bench *b = bench_new();
	size_t size;
	char *bytes;

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	bytes = simdisk_content(b->disk, "log/payloads/00000001", &size);
	CHECK(bytes);
	CHECK_EQ(4096 + LARGE + 4 * 4, size);
	CHECK(memcmp(want, bytes, sizeof want) == 0);
	CHECK_EQ(1, bytes[24], "its number");
	CHECK_EQ(byte_at(0), bytes[4096 + 4]);
	CHECK_EQ(byte_at(LOG_FILE_BYTES), bytes[4096 + 65536 + 4]);
	bench_free(b);
}

/* ---- The end of a file ---- */

TEST(a_file_goes_with_its_message)
{
	struct bench *b = bench_new();

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	CHECK_EQ(1, claim(b));
	op_unpin(&b->op);
	CHECK_EQ(1, files(b));
	ack(b);
	CHECK_EQ(0, files(b));
	bench_free(b);
}

/* F3 */
TEST(who_reads_a_payload_can_go_on_when_its_message_is_gone)
{
	struct bench *b = bench_new();

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	CHECK_EQ(1, claim(b));
	ack(b);
	CHECK_EQ(1, files(b));
	check_bytes(b, 0, LARGE);
	op_unpin(&b->op);
	CHECK_EQ(0, files(b));
	bench_free(b);
}

/* The power goes, and with it all that was not synced. */
static void
cut(struct bench *b)
{
	b->disk->dead = true;
	b->e->ops->close(b->e);
	simdisk_crash(b->disk, 0);
	b->disk->dead = false;
	bench_open(b);
}

static void
sync_later(struct bench *b)
{
	fakeclock_advance(&b->clock, 2 * SLU_SEC);
	CHECK_EQ(0, run(b, NULL));
}

/* F3: before that a power cut would bring the message back. */
TEST(a_file_stays_until_the_end_of_its_message_is_synced)
{
	struct bench *b = bench_new();

	b->conf.sync = ENGINE_SYNC_INTERVAL;
	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	sync_later(b);
	CHECK_EQ(1, claim(b));
	op_unpin(&b->op);
	ack(b);
	CHECK_EQ(1, files(b));
	cut(b);
	CHECK_EQ(1, files(b));
	b->now += SLU_HOUR;
	CHECK_EQ(1, claim(b));
	check_bytes(b, 0, LARGE);
	op_unpin(&b->op);
	ack(b);
	CHECK_EQ(1, files(b));
	sync_later(b);
	CHECK_EQ(0, files(b));
	bench_free(b);
}

TEST(a_purge_takes_the_files_along)
{
	struct bench *b = bench_new();

	bench_open(b);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(0, put(b, LARGE));
	CHECK_EQ(5, files(b));
	start(b, OP_PURGE);
	CHECK_EQ(0, run(b, &b->op));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(0, run(b, NULL));
	CHECK_EQ(0, files(b));
	bench_free(b);
}

/* ---- What nobody names ---- */

TEST(a_message_that_is_refused_leaves_no_file)
{
	struct policy policy = policy_default;
	struct bench *b = bench_new();

	bench_open(b);
	policy.max_depth = 1;
	start(b, OP_POLICY_SET);
	b->op.policy = policy;
	CHECK_EQ(0, run(b, &b->op));
	CHECK_EQ(0, put(b, LARGE));
	CHECK_EQ(SLU_EQFULL, put(b, LARGE));
	CHECK_EQ(1, files(b));
	bench_free(b);
}

TEST(a_payload_that_was_not_finished_leaves_no_file)
{
	struct bench *b = bench_new();
	struct payload *p;
	char piece[5000] = { 0 };

	bench_open(b);
	CHECK_EQ(0, payload_open(b->e, &p, &b->err));
	CHECK_EQ(0, payload_write(p, piece, sizeof piece, &b->err));
	CHECK_EQ(1, files(b));
	payload_close(p);
	CHECK_EQ(0, files(b));
	bench_free(b);
}

/* F2; LQ-81: a crash between the payload and its message leaves no file. */
TEST(files_that_no_record_names_are_removed_at_open)
{
	struct bench *b = bench_new();
	struct payload *p;
	struct message m = { 0 };
	char piece[5000] = { 0 };

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	CHECK_EQ(0, payload_open(b->e, &p, &b->err));
	CHECK_EQ(0, payload_write(p, piece, sizeof piece, &b->err));
	CHECK_EQ(0, payload_seal(p, &m, &b->err)); /* and then it was killed */
	CHECK_EQ(2, m.file);
	CHECK_EQ(2, files(b));
	b->disk->dead = true;
	payload_close(p);
	b->e->ops->close(b->e);
	simdisk_kill(b->disk);
	b->disk->dead = false;
	bench_open(b);
	CHECK_EQ(1, files(b));
	CHECK_EQ(1, claim(b));
	check_bytes(b, 0, LARGE);
	op_unpin(&b->op);
	CHECK_EQ(0, put(b, LARGE));
	CHECK(simdisk_content(b->disk, "log/payloads/00000003", &(size_t){ 0 }));
	bench_free(b);
}

/* ---- Disks that are full ---- */

TEST(a_full_disk_refuses_the_payload_and_keeps_nothing_of_it)
{
	struct bench *b = bench_new();
	uint64_t used;

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	used = simdisk_used(b->disk);
	simdisk_fail(b->disk, SIM_BIT(SIM_WRITE), 2, ENOSPC, true);
	CHECK_EQ(SLU_EFULL, put(b, LARGE));
	simdisk_heal(b->disk);
	CHECK_EQ(1, files(b));
	CHECK_EQ(used, simdisk_used(b->disk));
	CHECK_EQ(0, put(b, LARGE));
	bench_free(b);
}

/* F5, W4: what is free is for the log first. */
TEST(a_payload_leaves_the_room_that_settling_needs)
{
	struct bench *b = bench_new();

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	b->disk->capacity = simdisk_used(b->disk) + (4 << 20) + SEGMENT;
	CHECK_EQ(0, put(b, LARGE));
	b->disk->capacity = simdisk_used(b->disk) + (2 << 20);
	CHECK_EQ(SLU_EFULL, put(b, LARGE));
	CHECK_CONTAINS("room", b->err.text);
	CHECK_EQ(0, put(b, 10), "a small one goes into the log");
	while (claim(b)) {
		op_unpin(&b->op);
		ack(b);
	}
	CHECK_EQ(0, files(b));
	bench_free(b);
}

/* ---- Damage ---- */

static void
spoil(struct bench *b, size_t at)
{
	size_t size;
	char *bytes = simdisk_content(b->disk, "log/payloads/00000001", &size);

	CHECK(bytes && at < size);
	bytes[at] ^= 1;
}

TEST(a_damaged_block_is_found_and_the_others_can_be_read)
{
	struct bench *b = bench_new();
	char byte;

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	spoil(b, LOG_FILE_HEAD + LOG_FILE_BLOCK + 100);
	CHECK_EQ(1, claim(b));
	check_bytes(b, 0, LOG_FILE_BYTES);
	CHECK_EQ(SLU_ECORRUPT, read_at(b, LOG_FILE_BYTES, 1, &byte));
	CHECK_CONTAINS("payloads/00000001", b->err.text);
	CHECK_CONTAINS("69632", b->err.text);
	check_bytes(b, 2 * LOG_FILE_BYTES, LARGE - 2 * LOG_FILE_BYTES);
	op_unpin(&b->op);
	bench_free(b);
}

/* F4 */
TEST(a_block_in_the_wrong_place_is_damage)
{
	struct bench *b = bench_new();
	size_t size;
	char *bytes, byte;

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	bytes = simdisk_content(b->disk, "log/payloads/00000001", &size);
	memcpy(bytes + LOG_FILE_HEAD, bytes + LOG_FILE_HEAD + LOG_FILE_BLOCK, LOG_FILE_BLOCK);
	CHECK_EQ(1, claim(b));
	CHECK_EQ(SLU_ECORRUPT, read_at(b, 0, 1, &byte));
	op_unpin(&b->op);
	bench_free(b);
}

TEST(a_file_that_is_missing_is_named)
{
	struct bench *b = bench_new();
	struct log_facts facts;
	char byte;

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	b->e->ops->close(b->e);
	b->e = NULL;
	CHECK_EQ(0, log_check(&b->conf, &facts, &b->err));
	CHECK_EQ(1, facts.files);
	CHECK_EQ(0, facts.bad_files);
	spoil(b, LOG_FILE_HEAD + 3 * LOG_FILE_BLOCK + 50);
	CHECK_EQ(0, log_check(&b->conf, &facts, &b->err));
	CHECK_EQ(1, facts.bad_files);
	CHECK_CONTAINS("payloads/00000001: bad block", facts.first_bad.text);

	const int folder = b->disk->disk.ops->folder(&b->disk->disk, "log");

	CHECK_EQ(0, b->disk->disk.ops->remove(&b->disk->disk, folder, "payloads/00000001"));
	CHECK_EQ(0, log_check(&b->conf, &facts, &b->err));
	CHECK_CONTAINS("payloads/00000001 is missing (message 1)", facts.first_bad.text);
	bench_open(b);
	CHECK_EQ(1, claim(b));
	CHECK_EQ(SLU_ECORRUPT, read_at(b, 0, 1, &byte));
	CHECK_CONTAINS("missing", b->err.text);
	op_unpin(&b->op);
	bench_free(b);
}

/* ---- Cleaning ---- */

/* Some megabytes through a log of small segments. */
static void
work_a_lot(struct bench *b)
{
	for (int i = 0; i < 3000; i++) {
		CHECK_EQ(0, put(b, 900));
		CHECK_EQ(1, claim(b));
		op_unpin(&b->op);
		ack(b);
	}
}

/* C6 */
TEST(cleaning_does_not_copy_payloads)
{
	struct bench *b = bench_new();
	struct wal_stats stats;
	uint32_t first;

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	CHECK_EQ(1, claim(b)); /* it stays, at the front of the log */
	op_unpin(&b->op);

	const struct op_row large = b->row;

	log_stats(b->e, &stats);
	first = stats.segments;
	work_a_lot(b);
	log_stats(b->e, &stats);
	CHECK(stats.segments < first + 6);
	CHECK_EQ(1, files(b));
	reopen(b);
	CHECK_EQ(1, files(b));
	b->now += SLU_HOUR;
	CHECK_EQ(1, claim(b));
	CHECK_EQ(large.id, b->row.id);
	check_bytes(b, 0, LARGE);
	op_unpin(&b->op);
	ack(b);
	CHECK_EQ(0, files(b));
	bench_free(b);
}

TEST(cleaning_and_reopening_keep_what_is_set_aside)
{
	struct op_item item;
	struct bench *b = bench_new();

	bench_open(b);
	CHECK_EQ(0, put(b, LARGE));
	spoil(b, LOG_FILE_HEAD + 100);
	CHECK_EQ(1, claim(b));
	op_unpin(&b->op);
	item = (struct op_item){ .id = b->row.id, .token = b->row.token };
	start(b, OP_ASIDE);
	b->op.items = &item;
	b->op.n_items = 1;
	CHECK_EQ(0, run(b, &b->op));
	CHECK_EQ(0, item.rc);
	for (int i = 0; i < 2; i++) {
		work_a_lot(b);
		start(b, OP_LIST);
		b->op.rows = &b->row;
		b->op.max_rows = 1;
		b->op.state = MSG_DAMAGED;
		CHECK_EQ(0, run(b, &b->op));
		CHECK_EQ(1, b->op.n_rows);
		CHECK_EQ(1, b->row.id);
		op_unpin(&b->op);
		CHECK_EQ(1, files(b));
		reopen(b);
	}
	item = (struct op_item){ .id = 1 };
	start(b, OP_DELETE);
	b->op.items = &item;
	b->op.n_items = 1;
	CHECK_EQ(0, run(b, &b->op));
	CHECK_EQ(0, item.rc);
	CHECK_EQ(0, files(b));
	bench_free(b);
}

/* ---- Memory ---- */

TORTURE(a_payload_that_finds_no_memory_leaves_nothing)
{
	struct bench *b = bench_new();
	struct engine_found found;
	struct payload *p = NULL;
	struct message m = { 0 };
	char piece[5000] = { 0 };
	int rc;

	rc = log_open(&b->e, &b->conf, &b->more, &found, &b->err);
	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc);
		b->e = NULL;
		bench_free(b);
		return;
	}
	rc = payload_open(b->e, &p, &b->err);
	if (!rc)
		rc = payload_write(p, piece, sizeof piece, &b->err);
	if (!rc)
		rc = payload_seal(p, &m, &b->err);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	payload_close(p);
	CHECK_EQ(0, files(b));
	bench_free(b);
}
