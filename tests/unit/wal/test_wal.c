/*
 * The log when nothing goes wrong: groups, segments, reading, modes.
 */
#include "test.h"

#include "base/mem.h"
#include "walkit.h"

#include <errno.h>
#include <stdio.h>

TEST(what_was_committed_is_replayed_in_order)
{
	walkit_start(64 * 1024);
	for (unsigned i = 0; i < 50; i++)
		CHECK_EQ(0, walkit_group(1 + i % 5, 16 + i * 3, true));
	walkit_close();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(50, k.seen);
	CHECK_EQ(150, k.records);
	CHECK_STR("", k.logged);
}

TEST(a_group_costs_one_write_and_one_sync)
{
	unsigned long writes, syncs;

	walkit_start(1024 * 1024);
	CHECK_EQ(0, walkit_group(1, 300, true));
	writes = k.disk.counts[SIM_WRITE];
	syncs = k.disk.counts[SIM_SYNC];
	CHECK_EQ(0, walkit_group(256, 300, true));
	CHECK_EQ(writes + 2, k.disk.counts[SIM_WRITE], "the group, and durable");
	CHECK_EQ(syncs + 1, k.disk.counts[SIM_SYNC]);
}

/* Whatever was there before: up to the end of its page, and of those after it. */
TEST(zeros_follow_the_last_record)
{
	enum {
		PAGE = 4096
	};
	char *file;
	size_t size;

	walkit_start(64 << 10);
	CHECK_EQ(0, walkit_group(1, 100, true));
	walkit_close();
	file = simdisk_content(&k.disk, "wal/00000001.log", &size);
	memset(file + k.where.offset + 8 * PAGE, 'x', 4 * PAGE); /* an earlier life */
	CHECK_EQ(0, walkit_open());
	for (int i = 0; i < 300; i++) {
		CHECK_EQ(0, walkit_group(1, 50 + (uint32_t)i, i % 3 == 0));
		file = simdisk_content(&k.disk, "wal/00000001.log", &size);
		for (size_t at = k.where.offset + k.where.length; k.where.segment == 1 && at % PAGE; at++)
			CHECK_EQ(0, file[at]);
	}
	CHECK_EQ(2, k.where.segment);
	walkit_close();
}

TEST(a_group_like_the_last_one_allocates_nothing)
{
	const struct slice body = { (char[300]){ 0 }, 300 };

	walkit_start(1024 * 1024);
	CHECK_EQ(0, walkit_group(256, 300, true));
	mem_fail_at(1);
	for (int i = 0; i < 256; i++) {
		CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, wal_size(300), wal_size(300), &k.err));
		wal_append(k.w, 1, &body, 1);
	}
	CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	CHECK(!mem_failed());
	mem_fail_at(0);
}

TEST(groups_lie_across_the_borders_of_segments)
{
	static const size_t bodies[] = { 16, 17, 1000, 5000, 8192 - 64 - 40 };

	EACH(b, bodies)
		for (unsigned records = 1; records < 40; records += 3) {
			struct wal_stats stats;

			walkit_start(8192);
			for (int i = 0; i < 5; i++)
				CHECK_EQ(0, walkit_group(records, bodies[b], true));
			wal_stats(k.w, &stats);
			walkit_kill();
			CHECK_EQ(0, walkit_open());
			CHECK_EQ(1 + 5 * records, stats.seq); /* one of the log's own */
			CHECK_EQ(1 + 5 * records, stats.durable);
			CHECK_EQ(5 * records, k.records);
		}
}

TEST(a_record_may_be_as_large_as_a_segment_and_no_larger)
{
	const size_t largest = 8192 - 64 - 40;

	walkit_start(8192);
	CHECK_EQ(0, walkit_group(3, largest, true));
	CHECK_EQ(SLU_ETOOBIG, walkit_group(1, largest + 1, true));
	CHECK_EQ(0, walkit_group(1, 16, true));
	walkit_close();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(2, k.seen);
}

TEST(a_body_may_be_empty_and_in_parts)
{
	const struct slice parts[] = { { NULL, 0 }, { "ab", 2 }, { "", 0 }, { "cde", 3 } };
	struct wal_where none, some;
	struct wal_record rec;
	char p[64];

	walkit_start(8192);
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, 2 * wal_size(5), wal_size(5), &k.err));
	none = wal_append(k.w, 7, NULL, 0);
	some = wal_append(k.w, 254, parts, 4);
	CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	CHECK_EQ(0, wal_read(k.w, none, p, sizeof p, &rec, &k.err));
	CHECK_EQ(0, rec.body.n);
	CHECK_EQ(7, rec.type);
	CHECK_EQ(0, wal_read(k.w, some, p, sizeof p, &rec, &k.err));
	CHECK(slice_eq(SLICE("abcde"), rec.body));
	CHECK_EQ(254, rec.type);
	CHECK_EQ(3, rec.seq);
}

TEST(a_reference_fits_into_64_bits_and_finds_its_record)
{
	struct wal_record rec;
	char p[512];

	walkit_start(8192);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(0, walkit_group(1, 300, true));
		CHECK_EQ(0, wal_read(k.w, k.where, p, sizeof p, &rec, &k.err));
		CHECK_EQ(i + 2, rec.seq);
		CHECK_EQ(0, wal_read(k.w, wal_unpack(wal_pack(k.where)), p, sizeof p, &rec,
				     &k.err));
		CHECK_EQ(i + 2, rec.seq);
		CHECK_EQ(k.where.length, rec.where.length);
		CHECK_EQ(SLU_ETOOBIG, wal_read(k.w, k.where, p, 10, &rec, &k.err));
	}
	k.where.segment += 1;
	CHECK_EQ(SLU_ENOTFOUND, wal_read(k.w, k.where, p, sizeof p, &rec, &k.err));
}

TEST(what_was_dropped_leaves_no_trace)
{
	walkit_start(8192);
	CHECK_EQ(0, walkit_group(3, 100, true));
	wal_begin(k.w, 0);
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, 200 * wal_size(100), wal_size(100), &k.err));
	for (int i = 0; i < 200; i++)
		wal_append(k.w, 9, &(struct slice){ (char[100]){ 0 }, 100 }, 1);
	wal_drop(k.w);
	CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	CHECK_EQ(0, walkit_group(200, 100, true));
	walkit_close();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(2, k.seen);
}

/* WAL-5 */
TEST(any_number_of_opens_gives_the_same_records)
{
	walkit_start(8192);
	for (int i = 0; i < 30; i++)
		CHECK_EQ(0, walkit_group(7, 200, true));
	for (int i = 0; i < 20; i++) {
		if (i % 2)
			walkit_close();
		else
			walkit_crash((uint64_t)i * 7);
		CHECK_EQ(0, walkit_open());
		CHECK_EQ(30, k.seen);
		CHECK_EQ(210, k.records);
	}
}

TEST(read_only_looks_and_changes_nothing)
{
	unsigned long changes;

	walkit_start(8192);
	CHECK_EQ(0, walkit_group(30, 300, true));
	CHECK_EQ(0, walkit_group(30, 300, false));
	walkit_crash(3);
	k.conf.read_only = true;
	changes = k.disk.counts[SIM_SYNC] + k.disk.counts[SIM_RENAME];
	CHECK_EQ(0, walkit_open());
	wal_close(k.w);
	k.w = NULL;
	CHECK_EQ(changes, k.disk.counts[SIM_SYNC] + k.disk.counts[SIM_RENAME]);
	k.conf.read_only = false;
	CHECK_EQ(0, walkit_open());
}

TEST(the_time_of_groups_never_goes_back)
{
	struct wal_stats stats;

	walkit_start(8192);
	wal_begin(k.w, 2000000000 * SLU_SEC);
	wal_begin(k.w, 5);
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, wal_size(0), wal_size(0), &k.err));
	wal_append(k.w, 1, NULL, 0);
	CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	walkit_close();
	CHECK_EQ(0, wal_open(&k.w, &k.conf, NULL, NULL, &k.err));
	wal_stats(k.w, &stats);
	CHECK_EQ(2000000000 * SLU_SEC, stats.time);
}

static unsigned long
syncs_of(bool ask)
{
	const unsigned long before = k.disk.counts[SIM_SYNC];

	CHECK_EQ(0, walkit_group(1, 100, ask));
	return k.disk.counts[SIM_SYNC] - before;
}

TEST(the_mode_decides_when_a_commit_is_synced)
{
	static const struct {
		const char *label;
		enum wal_mode mode;
		bool ask;
		unsigned now, later;
	} cases[] = {
		{ "sync, asked for", WAL_SYNC, true, 1, 0 },
		{ "sync, not asked for", WAL_SYNC, false, 0, 1 },
		{ "interval", WAL_INTERVAL, true, 0, 1 },
		{ "none", WAL_NONE, true, 0, 0 },
	};

	EACH(i, cases) {
		walkit_init(64 * 1024);
		k.conf.mode = cases[i].mode;
		k.conf.interval = 10 * SLU_MS;
		CHECK_EQ(0, walkit_open());
		CHECK_EQ(SLU_NEVER, wal_due(k.w), cases[i].label);
		CHECK_EQ(cases[i].now, syncs_of(cases[i].ask), cases[i].label);
		CHECK_EQ(cases[i].later, wal_due(k.w) != SLU_NEVER, cases[i].label);
		k.disk.counts[SIM_SYNC] = 0;
		fakeclock_advance(&k.clock, 9 * SLU_MS);
		CHECK_EQ(0, walkit_group(1, 100, false));
		CHECK_EQ(0, wal_tick(k.w, &k.err));
		CHECK_EQ(0, k.disk.counts[SIM_SYNC], cases[i].label);
		fakeclock_advance(&k.clock, SLU_MS);
		CHECK_EQ(0, wal_tick(k.w, &k.err));
		CHECK_EQ(cases[i].later, k.disk.counts[SIM_SYNC], cases[i].label);
	}
}

TEST(a_clean_stop_syncs_in_every_mode)
{
	for (int mode = WAL_SYNC; mode <= WAL_NONE; mode++) {
		walkit_init(64 * 1024);
		k.conf.mode = mode;
		CHECK_EQ(0, walkit_open());
		CHECK_EQ(0, walkit_group(5, 100, false));
		walkit_close();
		simdisk_crash(&k.disk, 0);
		CHECK_EQ(0, walkit_open());
		CHECK_EQ(1, k.seen);
	}
}

TEST(a_pinned_record_is_read_whatever_becomes_of_its_segment)
{
	struct wal_record rec;
	struct wal_pin pin;
	struct slu_err err;
	char p[1024];

	walkit_start(8192);
	CHECK_EQ(0, walkit_group(1, 300, true));
	CHECK_EQ(0, wal_pin(k.w, k.where, &pin));
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(0, walkit_group(1, 900, true));
		while (wal_oldest(k.w))
			CHECK_EQ(0, wal_recycle(k.w, &k.err));
		CHECK_EQ(0, wal_pinned_read(&pin, p, sizeof p, &rec, &err));
		CHECK_EQ(2, rec.seq);
	}
	k.disk.cold = true;
	CHECK_EQ(SLU_EBUSY, wal_pinned_read_now(&pin, p, sizeof p, &rec, &err));
	k.disk.cold = false;
	CHECK_EQ(0, wal_pinned_read_now(&pin, p, sizeof p, &rec, &err));
	wal_unpin(&pin);
	wal_unpin(&pin);
}

TEST(a_bad_conf_is_refused)
{
	static const uint32_t sizes[] = { 1, 4096, 8191, 8193, 0xfffff000u };

	walkit_init(8192);
	EACH(i, sizes) {
		k.conf.segment_size = sizes[i];
		CHECK_EQ(SLU_EINVAL, walkit_open());
	}
}

TEST(segments_of_another_size_are_read_and_new_ones_have_the_new_size)
{
	size_t size;

	walkit_start(8192);
	CHECK_EQ(0, walkit_group(50, 300, true));
	walkit_close();
	k.conf.segment_size = 16384;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, walkit_group(100, 300, true));
	walkit_close();
	CHECK(walkit_file("00000003.log", &size));
	CHECK_EQ(8192, size);
	CHECK(walkit_file("00000004.log", &size));
	CHECK_EQ(16384, size);
	CHECK_EQ(0, walkit_open());
}

static int
refuse(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	(void)w;
	(void)arg;
	return rec->seq == 2 ? slu_fail(err, SLU_ECONFLICT, "no") : 0;
}

TEST(a_replay_that_refuses_ends_the_open)
{
	walkit_start(8192);
	CHECK_EQ(0, walkit_group(5, 300, true));
	walkit_close();
	CHECK_EQ(SLU_ECONFLICT, wal_open(&k.w, &k.conf, refuse, NULL, &k.err));
	k.w = NULL;
	CHECK_EQ(0, walkit_open());
}

/* One allocation fails, once: what met it says so and works when called again. */
static void
open_at_last(void)
{
	const int rc = walkit_open();

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	if (rc)
		CHECK_EQ(0, walkit_open());
}

static void
group_at_last(unsigned records)
{
	const int rc = walkit_group(records, 300, true);

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	if (rc)
		fakeclock_advance(&k.clock, SLU_SEC);
	if (rc)
		CHECK_EQ(0, walkit_group(records, 300, true));
}

static void
prepare_at_last(void)
{
	while (wal_wants_spare(k.w)) {
		const int rc = wal_prepare(k.w, &k.err);

		CHECK(rc == 0 || rc == SLU_ENOMEM);
		fakeclock_advance(&k.clock, SLU_SEC);
	}
}

/* Fault 10 */
TORTURE(memory_runs_out_anywhere_and_nothing_is_lost)
{
	walkit_init(8192);
	k.conf.reserve = 2;
	for (int round = 0; round < 3; round++) {
		open_at_last();
		for (unsigned i = 0; i < 4; i++)
			group_at_last(1 + i * 40);
		prepare_at_last();
		walkit_kill();
	}
	open_at_last();
	CHECK_EQ(12, k.seen);
	walkit_release();
}
