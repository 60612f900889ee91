/*
 * Segments that begin small and grow: WAL-9 of wal.h.
 */
#include "walkit.h"

#include <stdio.h>

enum {
	FIRST = 8192,
	LARGEST = 16 * FIRST
};

static void
setup(void)
{
	walkit_init(LARGEST);
	k.conf.first_size = FIRST;
	k.conf.reserve = 2;
	CHECK_EQ(0, walkit_open());
}

/* The size of a segment of the log, or 0. */
static size_t
size_of(uint32_t number)
{
	char name[32];
	size_t size = 0;

	(void)snprintf(name, sizeof name, "wal/%08u.log", number);
	return simdisk_content(&k.disk, name, &size) ? size : 0;
}

static uint32_t
segments(void)
{
	struct wal_stats stats;

	wal_stats(k.w, &stats);
	return stats.segments;
}

/* Until there is one segment more. */
static void
fill_one(slu_time every)
{
	const uint32_t n = segments();

	while (segments() == n) {
		CHECK_EQ(0, walkit_group(1, 1000, true));
		fakeclock_advance(&k.clock, every);
	}
}

static uint64_t
bytes(void)
{
	struct wal_stats stats;

	wal_stats(k.w, &stats);
	CHECK(stats.bytes <= simdisk_used(&k.disk));
	return stats.bytes;
}

TEST(an_empty_log_is_small)
{
	setup();
	while (wal_wants_spare(k.w))
		CHECK_EQ(0, wal_prepare(k.w, &k.err));
	CHECK_EQ(FIRST + 3 * 2 * FIRST, bytes());
}

static unsigned long
writes_of_prepare(void)
{
	const unsigned long before = k.disk.counts[SIM_WRITE];

	while (wal_wants_spare(k.w))
		CHECK_EQ(0, wal_prepare(k.w, &k.err));
	return k.disk.counts[SIM_WRITE] - before;
}

/* SPARES-5: zeros for two segments of reserve would be written for nothing. */
TEST(only_the_next_spare_is_filled)
{
	setup();
	CHECK_EQ(1, writes_of_prepare());
	fill_one(0);
	CHECK_EQ(1, writes_of_prepare());
	CHECK_EQ(0, writes_of_prepare());
}

/* The log takes spares while no thread makes any: the reserve is whole, and not filled. */
TEST(a_spare_is_filled_when_all_that_are_left_are_not)
{
	struct wal_stats stats;

	setup();
	for (int i = 0; i < 12; i++)
		fill_one(0);
	CHECK_EQ(2, writes_of_prepare(), "zeros are written in pieces of 64 KiB");
	wal_stats(k.w, &stats);
	CHECK_EQ(3 * LARGEST, stats.spare_bytes);
}

TEST(segments_that_fill_quickly_double)
{
	static const uint32_t want[] = { 1, 2, 2, 4, 4, 8, 8, 16, 16, 16, 16 };

	setup();
	for (size_t i = 1; i < COUNT(want); i++)
		fill_one(0);
	for (uint32_t i = 0; i < COUNT(want); i++)
		CHECK_EQ(want[i] * FIRST, size_of(i + 1));
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(LARGEST, wal_segment_size(k.w), "as large as the last one was");
}

TEST(segments_that_fill_slowly_stay_and_shrink)
{
	setup();
	for (int i = 0; i < 6; i++)
		fill_one(20 * SLU_SEC);
	CHECK_EQ(2 * FIRST, wal_segment_size(k.w));
	for (int i = 0; i < 8; i++)
		fill_one(0);
	CHECK_EQ(LARGEST, wal_segment_size(k.w));
	for (int i = 0; i < 12; i++) {
		fill_one(10 * SLU_MIN);
		while (segments() > 2)
			CHECK_EQ(0, walkit_recycle());
	}
	CHECK_EQ(2 * FIRST, wal_segment_size(k.w));
}

/* Else 8,192 of them would not be much. */
TEST(many_segments_grow_however_slowly_they_fill)
{
	setup();
	while (segments() < 70)
		fill_one(5 * SLU_MIN);
	CHECK(wal_segment_size(k.w) > 2 * FIRST);
}

TEST(a_record_that_needs_a_larger_segment_gets_it)
{
	setup();
	CHECK_EQ(0, walkit_group(1, 5 * FIRST, true));
	CHECK_EQ(8 * FIRST, size_of(2));
	CHECK_EQ(8 * FIRST, wal_segment_size(k.w), "so that the reserve can hold its copy");
	CHECK_EQ(SLU_ETOOBIG, walkit_group(1, LARGEST, true));
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(8 * FIRST, wal_segment_size(k.w));
}

TEST(a_group_that_is_larger_than_a_segment_lies_in_a_few)
{
	setup();
	CHECK_EQ(0, walkit_group(40, 1000, true));
	CHECK(segments() <= 4);
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(1, k.seen);
}

/* What was planned for small records is not used for a large one. */
TEST(a_plan_that_is_too_small_is_given_back)
{
	setup();
	CHECK_EQ(0, walkit_group(1, FIRST / 2, true));
	CHECK_EQ(0, wal_reserve(k.w, WAL_SETTLE, FIRST / 2, FIRST / 2, &k.err));
	CHECK_EQ(0, walkit_group(1, 3 * FIRST, true));
	CHECK_EQ(0, walkit_group(30, 1000, true));
	walkit_crash(7);
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(3, k.seen);
}

TEST(on_a_small_disk_segments_stay_small)
{
	int rc = 0;

	walkit_init(LARGEST);
	k.conf.first_size = FIRST;
	k.conf.reserve = 2;
	k.disk.capacity = 40 * FIRST;
	CHECK_EQ(0, walkit_open());
	while (!rc)
		rc = walkit_group(1, 1000, true);
	CHECK_EQ(SLU_EFULL, rc);
	CHECK_EQ(2 * FIRST, wal_segment_size(k.w));
	CHECK(bytes() > 34 * FIRST);
	CHECK_EQ(0, wal_reserve(k.w, WAL_SETTLE, 2 * FIRST, 1000, &k.err), "W4");
}

/* WAL-4: what settles also gets the room that is too small for a segment of the usual size. */
TEST(on_a_full_disk_what_settles_gets_smaller_segments)
{
	const struct slice body = { (char[1000]){ 0 }, 1000 };

	setup();
	while (wal_segment_size(k.w) < LARGEST)
		fill_one(0);
	k.disk.capacity = simdisk_used(&k.disk) + 3 * FIRST;
	while (wal_reserve(k.w, WAL_SETTLE, wal_size(body.n), wal_size(body.n), &k.err) == 0) {
		wal_append(k.w, 2, &body, 1);
		CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	}
	CHECK(simdisk_used(&k.disk) >= k.disk.capacity - FIRST);
}

TEST(spares_of_another_size_go_when_there_are_enough)
{
	struct wal_stats stats;

	setup();
	for (int i = 0; i < 9; i++)
		fill_one(0);
	while (wal_wants_spare(k.w))
		CHECK_EQ(0, wal_prepare(k.w, &k.err));
	wal_stats(k.w, &stats);
	CHECK_EQ(3, stats.spares);
	CHECK_EQ(3 * LARGEST, stats.spare_bytes);
}

/* Segments that were recycled and are not wanted as spares leave no file behind. */
TEST(recycled_segments_of_another_size_leave_the_disk)
{
	setup();
	for (int i = 0; i < 9; i++)
		fill_one(0);
	while (wal_oldest(k.w))
		CHECK_EQ(0, wal_recycle(k.w, &k.err));
	while (wal_wants_spare(k.w))
		CHECK_EQ(0, wal_prepare(k.w, &k.err));
	CHECK(simdisk_used(&k.disk) < bytes() + FIRST);
}

/* They may be the reserve of a disk that is full. */
TEST(spares_of_any_size_are_found_again)
{
	struct wal_stats before, after;

	setup();
	for (int i = 0; i < 6; i++)
		fill_one(0);
	wal_stats(k.w, &before);
	CHECK(wal_segment_size(k.w) > wal_size_of(k.w, segments()));
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	wal_stats(k.w, &after);
	CHECK_EQ(before.spare_bytes, after.spare_bytes);
	CHECK_EQ(8 * FIRST, wal_segment_size(k.w));
}

/* An older version wrote all of them in one size. */
TEST(a_log_of_large_segments_goes_on_with_them)
{
	walkit_start(LARGEST);
	CHECK_EQ(0, walkit_group(1, 1000, true));
	walkit_close();
	k.conf.first_size = FIRST;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(LARGEST, wal_segment_size(k.w));
	fill_one(0);
	CHECK_EQ(LARGEST, size_of(2));
}

TEST(a_disk_that_is_too_small_refuses_a_new_log_with_the_sizes)
{
	walkit_init(LARGEST);
	k.conf.first_size = FIRST;
	k.conf.least_room = 8 * FIRST;
	k.disk.capacity = 7 * FIRST;
	CHECK_EQ(SLU_EFULL, walkit_open());
	CHECK_STR("wal: the volume has 55 KiB free; a new log needs at least 64 KiB", k.err.text);
	k.disk.capacity = 8 * FIRST + 4096;
	CHECK_EQ(0, walkit_open());
	walkit_kill();
	k.disk.capacity = 7 * FIRST; /* one that is there is opened */
	CHECK_EQ(0, walkit_open());
}
