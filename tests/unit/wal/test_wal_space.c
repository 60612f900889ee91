/*
 * The log when there is no room, or no more files: faults 7 and 10, WAL-4.
 */
#include "test.h"

#include "walkit.h"

#include <errno.h>
#include <stdio.h>

enum {
	SEGMENT = 8192
};

static int
settle(size_t n)
{
	const struct slice body = { (char[4096]){ 0 }, n };
	int rc;

	rc = wal_reserve(k.w, WAL_SETTLE, wal_size(n), wal_size(n), &k.err);
	if (rc)
		return rc;
	wal_append(k.w, 2, &body, 1);
	return wal_commit(k.w, true, &k.err);
}

static unsigned
settle_all(size_t n)
{
	unsigned done = 0;
	int rc;

	while ((rc = settle(n)) == 0)
		done++;
	CHECK_EQ(SLU_EFULL, rc);
	return done;
}

static unsigned
fill_with_work(void)
{
	unsigned done = 0;
	int rc;

	while ((rc = walkit_group(1, 300, true)) == 0)
		done++;
	CHECK_EQ(SLU_EFULL, rc);
	return done;
}

/* WAL-4: new work fills all but the reserve; what settles has all of that but
 * the last quarter of a segment. */
TEST(a_full_disk_refuses_new_work_and_still_settles)
{
	for (uint32_t reserve = 1; reserve < 4; reserve++) {
		struct wal_stats stats;
		unsigned done;

		walkit_init(SEGMENT);
		k.conf.reserve = reserve;
		k.disk.capacity = 10 * SEGMENT + 4096;
		CHECK_EQ(0, walkit_open());
		done = fill_with_work();
		CHECK(done >= (10 - reserve) * 22 && done <= (10 - reserve) * 24);
		wal_stats(k.w, &stats);
		CHECK_EQ(reserve, stats.spares);
		CHECK_EQ(0, stats.failed);
		done = settle_all(64);
		CHECK(done >= (4 * reserve - 1) * (SEGMENT - 64) / 4 / 104);
		CHECK_EQ(0, wal_reserve(k.w, WAL_FREE, SEGMENT / 5, SEGMENT / 5, &k.err));
	}
}

TEST(the_reserve_is_on_disk_before_the_first_work_is_taken)
{
	walkit_init(SEGMENT);
	k.conf.reserve = 3;
	k.disk.capacity = 3 * SEGMENT + 4096; /* one too few */
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, wal_room(k.w));
	CHECK_EQ(SLU_EFULL, walkit_group(1, 300, true));
	CHECK_EQ(0, settle(300));
	k.disk.capacity += SEGMENT;
	CHECK(wal_room(k.w) > 0);
	CHECK_EQ(SLU_EFULL, walkit_group(1, 300, true)); /* not asked again so soon */
	fakeclock_advance(&k.clock, SLU_SEC);
	CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, 64, 64, &k.err));
}

/* Fault 7: without a restart. */
TEST(work_goes_on_when_there_is_room_again)
{
	unsigned first;

	walkit_init(SEGMENT);
	k.conf.reserve = 2;
	k.disk.capacity = 6 * SEGMENT + 4096;
	CHECK_EQ(0, walkit_open());
	first = fill_with_work();
	k.disk.capacity *= 2;
	CHECK_EQ(SLU_EFULL, walkit_group(1, 300, true));
	fakeclock_advance(&k.clock, 200 * SLU_MS);
	CHECK(fill_with_work() > first);
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	CHECK(k.seen > 2 * first);
}

/* Cleaning gives room without any help from outside. */
TEST(recycling_makes_room_on_a_full_disk)
{
	walkit_init(SEGMENT);
	k.conf.reserve = 2;
	k.disk.capacity = 6 * SEGMENT + 4096;
	CHECK_EQ(0, walkit_open());
	fill_with_work();
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(0, walkit_recycle());
		CHECK(fill_with_work() > 20);
	}
	walkit_kill();
	CHECK_EQ(0, walkit_open());
}

TEST(wal_room_is_what_new_work_can_add)
{
	for (uint32_t reserve = 0; reserve < 3; reserve++) {
		uint64_t room, added = 0;

		walkit_init(SEGMENT);
		k.conf.reserve = reserve;
		k.conf.max_segments = 9;
		CHECK_EQ(0, walkit_open());
		room = wal_room(k.w);
		CHECK_EQ((9 - reserve) * (SEGMENT - 64) - wal_size(0), room);
		while (walkit_group(1, 300, true) == 0)
			added += k.where.length;
		CHECK(added <= room && added > room * 9 / 10);
		CHECK(wal_room(k.w) < 344);
	}
}

TEST(more_reserve_is_asked_for_as_messages_grow)
{
	struct wal_stats stats;

	walkit_start(SEGMENT);
	CHECK_EQ(0, walkit_group(1, 300, true));
	wal_set_reserve(k.w, 5);
	CHECK_EQ(0, walkit_group(1, 300, true));
	wal_stats(k.w, &stats);
	CHECK_EQ(5, stats.spares);
}

TEST(a_group_too_large_for_the_disk_changes_nothing)
{
	struct wal_stats before, after;

	walkit_init(SEGMENT);
	k.conf.reserve = 1;
	k.disk.capacity = 5 * SEGMENT;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, walkit_group(1, 300, true));
	wal_stats(k.w, &before);
	CHECK_EQ(SLU_EFULL, walkit_group(500, 300, true));
	wal_stats(k.w, &after);
	CHECK_EQ(before.seq, after.seq);
	fakeclock_advance(&k.clock, SLU_SEC);
	CHECK_EQ(0, walkit_group(40, 300, true));
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(2, k.seen);
}

TEST(an_op_that_is_refused_does_not_harm_the_group_it_would_have_joined)
{
	const struct slice body = SLICE("0123456789abcdef");
	struct wal_stats stats;

	walkit_init(SEGMENT);
	k.conf.max_segments = 2;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, wal_size(16), wal_size(16), &k.err));
	wal_append(k.w, 1, &body, 1);
	CHECK_EQ(SLU_EFULL, wal_reserve(k.w, WAL_NEW, 3 * SEGMENT, 512, &k.err));
	CHECK_EQ(SLU_ETOOBIG, wal_reserve(k.w, WAL_NEW, SEGMENT, SEGMENT, &k.err));
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, wal_size(16), wal_size(16), &k.err));
	wal_append(k.w, 1, &body, 1);
	CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	wal_stats(k.w, &stats);
	CHECK_EQ(3, stats.durable);
}

/* Faults 7 and 10 at every call: an answer, and either nothing has changed and it
 * works again when the fault is gone, or the log has failed and opens again. */
static void
work_with_fault(void)
{
	for (unsigned i = 0; i < 30; i++) {
		struct wal_stats stats;
		int rc = walkit_group(1 + i % 9, 16 + i * 40, true);

		if (!rc && wal_wants_spare(k.w))
			rc = wal_prepare(k.w, &k.err);
		if (!rc && i % 5 == 0 && wal_oldest(k.w))
			rc = walkit_recycle();
		if (!rc)
			continue;
		CHECK(rc == SLU_EFULL || rc == SLU_EDOWN);
		wal_stats(k.w, &stats);
		if (stats.failed)
			return;
		fakeclock_advance(&k.clock, SLU_SEC);
	}
}

TEST_LIMIT(every_call_may_fail_once, 280)
{
	static const int errors[] = { ENOSPC, EDQUOT, EMFILE, EIO };
	unsigned calls = 0;

	EACH(e, errors)
		for (unsigned n = 1;; n++) {
			bool reached;

			walkit_init(SEGMENT);
			k.conf.reserve = 1;
			simdisk_fail(&k.disk, SIM_ALL & ~SIM_BIT(SIM_READ), n, errors[e], false);
			if (walkit_open() == 0)
				work_with_fault();
			reached = k.disk.failed;
			simdisk_heal(&k.disk);
			if (n % 2)
				walkit_kill();
			else
				walkit_crash(n / 2);
			CHECK_EQ(0, walkit_open());
			work_with_fault();
			walkit_kill();
			CHECK_EQ(0, walkit_open());
			walkit_release();
			if (!reached)
				break;
			calls++;
		}
	printf("# %u calls failed, one at a time\n", calls);
	CHECK(calls > 400);
}

TEST_LIMIT(every_call_may_fail_from_then_on, 280)
{
	static const int errors[] = { ENOSPC, EIO };

	EACH(e, errors)
		for (unsigned n = 1;; n++) {
			bool reached;

			walkit_init(SEGMENT);
			k.conf.reserve = 1;
			simdisk_fail(&k.disk, SIM_CHANGES, n, errors[e], true);
			if (walkit_open() == 0)
				work_with_fault();
			reached = k.disk.failed;
			simdisk_heal(&k.disk);
			walkit_crash(n);
			CHECK_EQ(0, walkit_open());
			walkit_release();
			if (!reached)
				break;
		}
}

/* Fault 41: what was being made when the power went is removed. */
TEST(files_that_were_being_made_are_removed_at_open)
{
	struct disk *d;
	int folder, file;
	size_t size;

	walkit_start(SEGMENT);
	CHECK_EQ(0, walkit_group(1, 300, true));
	walkit_kill();
	d = &k.disk.disk;
	folder = d->ops->folder(d, "wal");
	file = d->ops->create(d, folder, "spare-00000077.tmp");
	CHECK_EQ(0, d->ops->allocate(d, file, 5000));
	d->ops->close(d, d->ops->create(d, folder, "spare-00000078")); /* of size 0 */
	d->ops->close(d, d->ops->create(d, folder, "notes.txt"));
	simdisk_settle(&k.disk);
	CHECK_EQ(0, walkit_open());
	CHECK(!walkit_file("spare-00000077.tmp", &size));
	CHECK(!walkit_file("spare-00000078", &size));
	CHECK(walkit_file("notes.txt", &size));
}

/* SPARES-4: what was planned for the next change is ready for it; no other one is made. */
TEST(a_segment_that_is_planned_counts_as_a_spare)
{
	const uint64_t most = SEGMENT - 64; /* a record that fits into none but a new one */
	struct wal_stats stats;

	walkit_init(SEGMENT);
	k.conf.reserve = 2;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, walkit_group(1, 100, true));
	while (wal_wants_spare(k.w))
		CHECK_EQ(0, wal_prepare(k.w, &k.err));
	wal_stats(k.w, &stats);
	CHECK_EQ(3, stats.spares);
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, most, most, &k.err));
	wal_drop(k.w);
	CHECK(!wal_wants_spare(k.w));
	wal_stats(k.w, &stats);
	CHECK_EQ(3, stats.spares);
	CHECK_EQ(0, wal_reserve(k.w, WAL_NEW, most, most, &k.err));
	wal_append(k.w, 1, &(const struct slice){ (char[SEGMENT]){ 0 }, most - 40 }, 1);
	CHECK_EQ(0, wal_commit(k.w, true, &k.err));
	CHECK(wal_wants_spare(k.w)); /* it is in use now */
}
