/*
 * Segments that begin small and grow: W9 of wal.h.
 */
#include "walkit.h"

#include <stdio.h>

enum {
	FIRST = 8192,
	LARGEST = 16 * FIRST
};

static void
setup(struct walkit *k)
{
	walkit_init(k, LARGEST);
	k->conf.first_size = FIRST;
	k->conf.reserve = 2;
	CHECK_EQ(0, walkit_open(k));
}

/* The size of a segment of the log, or 0. */
static size_t
size_of(struct walkit *k, uint32_t number)
{
	char name[32];
	size_t size = 0;

	(void)snprintf(name, sizeof name, "wal/%08u.log", number);
	return simdisk_content(&k->disk, name, &size) ? size : 0;
}

static uint32_t
segments(struct walkit *k)
{
	struct wal_stats stats;

	wal_stats(k->w, &stats);
	return stats.segments;
}

/* Until there is one segment more. */
static void
fill_one(struct walkit *k, slu_time every)
{
	const uint32_t n = segments(k);

	while (segments(k) == n) {
		CHECK_EQ(0, walkit_group(k, 1, 1000, true));
		fakeclock_advance(&k->clock, every);
	}
}

static uint64_t
bytes(struct walkit *k)
{
	struct wal_stats stats;

	wal_stats(k->w, &stats);
	CHECK(stats.bytes <= simdisk_used(&k->disk));
	return stats.bytes;
}

TEST(an_empty_log_is_small)
{
	struct walkit k;

	setup(&k);
	while (wal_wants_spare(k.w))
		CHECK_EQ(0, wal_prepare(k.w, &k.err));
	CHECK_EQ(FIRST + 3 * 2 * FIRST, bytes(&k));
	walkit_release(&k);
}

TEST(segments_that_fill_quickly_double)
{
	static const uint32_t want[] = { 1, 2, 2, 4, 4, 8, 8, 16, 16, 16, 16 };
	struct walkit k;

	setup(&k);
	for (size_t i = 1; i < COUNT(want); i++)
		fill_one(&k, 0);
	for (uint32_t i = 0; i < COUNT(want); i++)
		CHECK_EQ(want[i] * FIRST, size_of(&k, i + 1));
	walkit_kill(&k);
	CHECK_EQ(0, walkit_open(&k));
	CHECK_EQ(LARGEST, wal_segment_size(k.w), "as large as the last one was");
	walkit_release(&k);
}

TEST(segments_that_fill_slowly_stay_and_shrink)
{
	struct walkit k;

	setup(&k);
	for (int i = 0; i < 6; i++)
		fill_one(&k, 20 * SLU_SEC);
	CHECK_EQ(2 * FIRST, wal_segment_size(k.w));
	for (int i = 0; i < 8; i++)
		fill_one(&k, 0);
	CHECK_EQ(LARGEST, wal_segment_size(k.w));
	for (int i = 0; i < 12; i++) {
		fill_one(&k, 10 * SLU_MIN);
		while (segments(&k) > 2)
			CHECK_EQ(0, walkit_recycle(&k));
	}
	CHECK_EQ(2 * FIRST, wal_segment_size(k.w));
	walkit_release(&k);
}

/* Else 8,192 of them would not be much. */
TEST(many_segments_grow_however_slowly_they_fill)
{
	struct walkit k;

	setup(&k);
	while (segments(&k) < 70)
		fill_one(&k, 5 * SLU_MIN);
	CHECK(wal_segment_size(k.w) > 2 * FIRST);
	walkit_release(&k);
}

TEST(a_record_that_needs_a_larger_segment_gets_it)
{
	struct walkit k;

	setup(&k);
	CHECK_EQ(0, walkit_group(&k, 1, 5 * FIRST, true));
	CHECK_EQ(8 * FIRST, size_of(&k, 2));
	CHECK_EQ(8 * FIRST, wal_segment_size(k.w), "so that the reserve can hold its copy");
	CHECK_EQ(SLU_ETOOBIG, walkit_group(&k, 1, LARGEST, true));
	walkit_kill(&k);
	CHECK_EQ(0, walkit_open(&k));
	CHECK_EQ(8 * FIRST, wal_segment_size(k.w));
	walkit_release(&k);
}

TEST(a_group_that_is_larger_than_a_segment_lies_in_a_few)
{
	struct walkit k;

	setup(&k);
	CHECK_EQ(0, walkit_group(&k, 40, 1000, true));
	CHECK(segments(&k) <= 4);
	walkit_kill(&k);
	CHECK_EQ(0, walkit_open(&k));
	CHECK_EQ(1, k.seen);
	walkit_release(&k);
}

/* What was planned for small records is not used for a large one. */
TEST(a_plan_that_is_too_small_is_given_back)
{
	struct walkit k;

	setup(&k);
	CHECK_EQ(0, walkit_group(&k, 1, FIRST / 2, true));
	CHECK_EQ(0, wal_reserve(k.w, WAL_SETTLE, FIRST / 2, FIRST / 2, &k.err));
	CHECK_EQ(0, walkit_group(&k, 1, 3 * FIRST, true));
	CHECK_EQ(0, walkit_group(&k, 30, 1000, true));
	walkit_crash(&k, 7);
	CHECK_EQ(0, walkit_open(&k));
	CHECK_EQ(3, k.seen);
	walkit_release(&k);
}

TEST(on_a_small_disk_segments_stay_small)
{
	struct walkit k;
	int rc = 0;

	walkit_init(&k, LARGEST);
	k.conf.first_size = FIRST;
	k.conf.reserve = 2;
	k.disk.capacity = 40 * FIRST;
	CHECK_EQ(0, walkit_open(&k));
	while (!rc)
		rc = walkit_group(&k, 1, 1000, true);
	CHECK_EQ(SLU_EFULL, rc);
	CHECK_EQ(2 * FIRST, wal_segment_size(k.w));
	CHECK(bytes(&k) > 34 * FIRST);
	CHECK_EQ(0, wal_reserve(k.w, WAL_SETTLE, 2 * FIRST, 1000, &k.err), "W4");
	walkit_release(&k);
}

TEST(spares_of_another_size_go_when_there_are_enough)
{
	struct walkit k;
	struct wal_stats stats;

	setup(&k);
	for (int i = 0; i < 9; i++)
		fill_one(&k, 0);
	while (wal_wants_spare(k.w))
		CHECK_EQ(0, wal_prepare(k.w, &k.err));
	wal_stats(k.w, &stats);
	CHECK_EQ(3, stats.spares);
	CHECK_EQ(3 * LARGEST, stats.spare_bytes);
	walkit_release(&k);
}

/* They may be the reserve of a disk that is full. */
TEST(spares_of_any_size_are_found_again)
{
	struct walkit k;
	struct wal_stats before, after;

	setup(&k);
	for (int i = 0; i < 6; i++)
		fill_one(&k, 0);
	wal_stats(k.w, &before);
	CHECK(wal_segment_size(k.w) > wal_size_of(k.w, segments(&k)));
	walkit_kill(&k);
	CHECK_EQ(0, walkit_open(&k));
	wal_stats(k.w, &after);
	CHECK_EQ(before.spare_bytes, after.spare_bytes);
	CHECK_EQ(8 * FIRST, wal_segment_size(k.w));
	walkit_release(&k);
}

/* An older version wrote all of them in one size. */
TEST(a_log_of_large_segments_goes_on_with_them)
{
	struct walkit k;

	walkit_init(&k, LARGEST);
	CHECK_EQ(0, walkit_open(&k));
	CHECK_EQ(0, walkit_group(&k, 1, 1000, true));
	walkit_close(&k);
	k.conf.first_size = FIRST;
	CHECK_EQ(0, walkit_open(&k));
	CHECK_EQ(LARGEST, wal_segment_size(k.w));
	fill_one(&k, 0);
	CHECK_EQ(LARGEST, size_of(&k, 2));
	walkit_release(&k);
}

TEST(a_disk_that_is_too_small_refuses_a_new_log_with_the_sizes)
{
	struct walkit k;

	walkit_init(&k, LARGEST);
	k.conf.first_size = FIRST;
	k.conf.least_room = 8 * FIRST;
	k.disk.capacity = 7 * FIRST;
	CHECK_EQ(SLU_EFULL, walkit_open(&k));
	CHECK_STR("wal: the volume has 55 KiB free; a new log needs at least 64 KiB", k.err.text);
	k.disk.capacity = 8 * FIRST + 4096;
	CHECK_EQ(0, walkit_open(&k));
	walkit_kill(&k);
	k.disk.capacity = 7 * FIRST; /* one that is there is opened */
	CHECK_EQ(0, walkit_open(&k));
	walkit_release(&k);
}
