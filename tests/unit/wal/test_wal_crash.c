/*
 * The log when the power or the process goes: faults 2, 3, 4 and 41. walkit_open
 * fails the test when an answered group is missing, a group is there in part, or
 * something is left over from an earlier life.
 */
#include "test.h"

#include "walkit.h"

#include <stdio.h>

enum {
	SEGMENT = 8192
};

/* A log of three groups. The last group is written and not synced. */
static struct sim_image *
unsynced_group(unsigned records, size_t body, size_t *from, size_t *to)
{
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, walkit_group(2, 100, true));
	CHECK_EQ(0, walkit_group(1, 300, true));
	*from = k.where.offset + k.where.length;
	CHECK_EQ(0, walkit_group(records, body, false));
	*to = k.where.offset + k.where.length;
	walkit_kill();
	simdisk_settle(&k.disk);
	return simdisk_save(&k.disk);
}

/* Fault 4: whatever follows the cut, zeros or dirt. */
static void
tear_at(const char *file, size_t from, size_t at, size_t to,
	char dirt)
{
	size_t size;
	char *p = walkit_file(file, &size);

	for (size_t i = at; i < to; i++)
		p[i] = dirt == 0 ? 0 : (char)(p[i] ^ dirt);
	k.attempted = 3;
	k.answered = 2;
	k.life = 1;
	k.life_of[3] = 1;
	k.logged[0] = 0;
	CHECK_EQ(0, walkit_open());
	if (k.seen == 2 && at >= from + 8) /* a part of it is there */
		CHECK_CONTAINS("event=\"log tail cut\"", k.logged);
	CHECK_EQ(0, walkit_group(3, 64, true));
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	walkit_kill();
}

TEST(a_group_that_was_not_synced_is_cut_at_every_byte)
{
	static const char dirt[] = { 0, 0x5a };
	size_t from, to;

	EACH(d, dirt) {
		struct sim_image *image;

		walkit_init(SEGMENT);
		image = unsynced_group(3, 150, &from, &to);
		for (size_t at = from; at < to; at++) {
			simdisk_load(&k.disk, image);
			tear_at("00000001.log", from, at, to, dirt[d]);
		}
		sim_image_free(image);
	}
}

TEST(a_group_over_a_border_is_cut_at_every_byte)
{
	struct sim_image *image;
	size_t from, to;

	walkit_init(SEGMENT);
	image = unsynced_group(12, 1000, &from, &to);
	CHECK_EQ(2, k.where.segment);
	for (size_t at = 64; at < to; at += at < 2048 ? 1 : 13) {
		simdisk_load(&k.disk, image);
		tear_at("00000002.log", 56, at, to, 0);
	}
	sim_image_free(image);
}

/* The body of a group of one that ends where a page does: zeros that fill the page
 * then hide nothing of what follows. */
static size_t
to_page_end(void)
{
	struct wal_stats stats;
	size_t rest;

	wal_stats(k.w, &stats);
	rest = 4096 - stats.end % 4096;
	return rest < 56 ? rest + 4096 - 40 : rest - 40;
}

/* WAL-2: a record that was cut cannot come back when what is written later ends just
 * before it, with just the seq before its own. */
TEST(what_was_cut_never_passes_for_part_of_a_later_group)
{
	size_t size;

	walkit_start(SEGMENT);
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(0, walkit_group(2, 1888, false)); /* up to the page; torn below */
	CHECK_EQ(0, walkit_group(1, 100, false));  /* whole, on the next page */
	CHECK_EQ(4096, k.where.offset);
	walkit_kill();
	simdisk_settle(&k.disk);
	walkit_file("00000001.log", &size)[4000] ^= 1;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(1, k.seen);
	CHECK_EQ(0, walkit_group(1, to_page_end(), true));
	CHECK_EQ(4096, k.where.offset + k.where.length);
	walkit_crash(0);
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(2, k.seen); /* walkit has checked its life */
}

/* Others rely on what was found at open: it is synced before the new life begins. */
TEST(what_a_killed_process_left_unsynced_is_synced_first)
{
	walkit_start(SEGMENT);
	CHECK_EQ(0, walkit_group(2, 100, false));
	walkit_kill();
	/* The number in `lock`; the folder; the records once more, and that sync. */
	simdisk_power_off(&k.disk, 4);
	CHECK_EQ(SLU_EDOWN, walkit_open());
	simdisk_crash(&k.disk, 0);
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(1, k.seen);
}

/* A bit of everything: groups within a page, over pages, over segments; synced and
 * not; spares made ahead; segments recycled. Ends early when something fails. */
static void
work(uint64_t *dice, int steps)
{
	for (int i = 0; i < steps; i++) {
		const uint64_t r = test_random(dice);
		const bool fill = r % 6 == 1;
		const unsigned records = (unsigned)(1 + (r >> 8) % (r % 7 ? 6 : 40));
		const size_t body = 16 + (r >> 16) % (r % 5 ? 300 : 3000);
		int rc = walkit_group(fill ? 1 : records, fill ? to_page_end() : body,
				      r % 3 != 0);

		if (!rc && r % 11 == 0 && wal_wants_spare(k.w))
			rc = wal_prepare(k.w, &k.err);
		if (!rc && r % 4 == 0 && wal_oldest(k.w))
			rc = walkit_recycle();
		if (rc)
			return;
	}
}

/* Faults 2, 3 and 41: the power goes after change n, for every n; then again after
 * the repair, and at every change of the repair itself. */
TEST_LIMIT(the_power_may_go_after_any_change, 280)
{
	unsigned n;

	for (n = 1;; n++) {
		bool reached = false;

		for (uint64_t how = 0; how < 6; how++) {
			uint64_t dice = test_seed();

			walkit_init(SEGMENT);
			k.conf.reserve = 1;
			simdisk_power_off(&k.disk, n);
			if (walkit_open() == 0)
				work(&dice, 60);
			reached = k.disk.dead;
			walkit_crash(n * 6 + how);
			if (how % 2) { /* and once more, while it is repaired */
				simdisk_power_off(&k.disk, 1 + n % 5);
				if (walkit_open() == 0)
					work(&dice, 1);
				walkit_crash(n + how);
			}
			CHECK_EQ(0, walkit_open());
			work(&dice, 10);
			walkit_crash(n * 3 + how);
			CHECK_EQ(0, walkit_open());
		}
		if (!reached)
			break;
	}
	printf("# the power went after each of %u changes\n", n - 1);
	CHECK(n > 150);
}

/* Lives that end in every way, one after the other, on one disk. */
static void
end_of_life(uint64_t how)
{
	switch (how % 4) {
	case 0:
		walkit_close();
		break;
	case 1:
		walkit_kill();
		break;
	case 2:
		walkit_crash(how);
		break;
	case 3: /* killed, perhaps opened and killed again, then the power goes */
		walkit_kill();
		if (how % 8 == 3 && walkit_open() == 0)
			walkit_kill();
		walkit_crash(how / 8);
		break;
	}
}

TEST_LIMIT(lives_end_in_every_way, 280)
{
	const uint64_t first = test_seed();

	for (uint64_t seed = first; seed < first + 150; seed++) {
		uint64_t dice = seed;

		walkit_init(SEGMENT);
		k.conf.reserve = (uint32_t)(seed % 3);
		for (int life = 0; life < 12; life++) {
			const uint64_t r = test_random(&dice);

			if (r % 3 == 0)
				simdisk_power_off(&k.disk, 1 + (r >> 8) % 60);
			if (walkit_open() == 0)
				work(&dice, (int)(r >> 20) % 12);
			else
				CHECK(k.disk.dead);
			if (!k.disk.dead)
				end_of_life(r >> 30);
			if (k.disk.dead)
				walkit_crash(r >> 30);
		}
		if (k.disk.dead)
			walkit_crash(seed);
		simdisk_heal(&k.disk);
		CHECK_EQ(0, walkit_open());
	}
}

/* A recycled segment still holds its old records; the log ends before them. */
TEST(what_a_recycled_segment_held_is_never_replayed)
{
	struct wal_stats stats;

	walkit_start(SEGMENT);
	for (int i = 0; i < 400; i++) {
		CHECK_EQ(0, walkit_group(1, 200, true)); /* the same sizes for ever */
		if (wal_oldest(k.w))
			CHECK_EQ(0, walkit_recycle());
		if (i % 7 == 0) {
			walkit_crash((uint64_t)i);
			CHECK_EQ(0, walkit_open());
		}
	}
	wal_stats(k.w, &stats);
	CHECK_EQ(400 + k.life, stats.seq); /* each life has a record of its own */
	CHECK(stats.bytes <= 4 * SEGMENT);
}
