/*
 * The log when what was synced is not what is there: faults 5, 6 and 8, WAL-2, WAL-3, WAL-8.
 * Damage is refused with file and offset, and nothing is changed; or it lies where
 * nothing is, and all answered groups are there: walkit_open checks every byte.
 */
#include "test.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "walkit.h"

#include <errno.h>
#include <stdio.h>

enum {
	SEGMENT = 8192,
	GROUPS = 9
};

/* Three segments, the last group synced, one spare, one recycled before. */
static struct sim_image *
make_log(void)
{
	walkit_init(SEGMENT);
	k.conf.reserve = 1;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, walkit_group(30, 250, true));
	CHECK_EQ(0, walkit_recycle());
	for (unsigned i = 1; i < GROUPS; i++)
		CHECK_EQ(0, walkit_group(1 + i % 4, 700 + i * 50, true));
	CHECK(k.where.segment >= 4);
	walkit_kill();
	simdisk_settle(&k.disk);
	return simdisk_save(&k.disk);
}

/* The sum of all files but the lock, by name. */
static uint32_t
sum_of_all(void)
{
	uint32_t sum = 0;
	const char *name;

	for (unsigned i = 0; (name = simdisk_name(&k.disk, i)) != NULL; i++) {
		size_t size;
		const char *p = simdisk_content(&k.disk, name, &size);

		if (strcmp(name, "wal/lock") != 0)
			sum ^= crc32c(crc32c(0, name, strlen(name)), p, size);
	}
	return sum;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Open what was spoiled: true when it was refused, as it must be then. */
static bool
is_refused(const char *file)
{
	const uint32_t before = sum_of_all();
	const char *at;
	int rc;

	k.answered = k.attempted = GROUPS;
	rc = walkit_open();
	if (rc == 0) {
		CHECK_EQ(GROUPS, k.seen);
		walkit_kill();
		return false;
	}
	CHECK_EQ(SLU_ECORRUPT, rc, k.err.text);
	if (file)
		CHECK_CONTAINS(file, k.err.text);
	at = strstr(k.err.text, " at ");
	CHECK(at && is_digit(at[4]));
	CHECK_EQ(before, sum_of_all(), "nothing was changed");
	return true;
}

/* Fault 5 */
TEST_LIMIT(every_flipped_byte_is_refused_or_harmless, 280)
{
	unsigned refused = 0, harmless = 0, in_log = 0;
	uint64_t dice = test_seed();
	struct sim_image *image;
	const char *name;
	size_t size = 1;

	image = make_log();
	for (unsigned i = 0; (name = simdisk_name(&k.disk, i)) != NULL; i++)
		for (size_t at = 0; at < size; at++) {
			char file[SIM_NAME];
			bool bad;

			snprintf(file, sizeof file, "%s", name);
			simdisk_content(&k.disk, file, &size)[at] ^=
				(char)(1 + test_random(&dice) % 255);
			bad = is_refused(file + 4);
			refused += bad;
			harmless += !bad;
			in_log += bad && strstr(file, ".log") != NULL;
			simdisk_load(&k.disk, image);
			name = simdisk_name(&k.disk, i);
			simdisk_content(&k.disk, name, &size);
		}
	printf("# %u flips refused (%u in the log), %u harmless\n", refused, in_log, harmless);
	CHECK(in_log > 12000); /* about what was written */
	sim_image_free(image);
}

/* Fault 5 after a power cut that took `durable` with it: all but the last group is
 * still covered by later records. */
TEST_LIMIT(without_durable_only_the_last_group_can_be_mistaken_for_torn, 280)
{
	struct sim_image *image;
	struct wal_where last;
	uint64_t dice = test_seed();
	unsigned cut = 0;
	size_t size;

	image = make_log();
	last = k.where; /* the last group is one record */
	for (size_t at = 64; at < SEGMENT; at++) {
		char name[32];
		int rc;

		snprintf(name, sizeof name, "%08u.log", last.segment);
		memset(walkit_file("durable", &size), 0, 24);
		walkit_file(name, &size)[at] ^= (char)(1 + test_random(&dice) % 255);
		k.attempted = GROUPS;
		k.answered = GROUPS - 1;
		rc = walkit_open();
		CHECK(rc == 0 || rc == SLU_ECORRUPT);
		if (at < last.offset)
			CHECK(rc == SLU_ECORRUPT || k.seen == GROUPS); /* padding */
		if (rc == 0 && k.seen < GROUPS) {
			CHECK(at >= last.offset && at < last.offset + last.length);
			cut++;
		}
		if (rc == 0)
			walkit_kill();
		simdisk_load(&k.disk, image);
	}
	CHECK(cut > 0);
	sim_image_free(image);
}

/* The files of the log, sector by sector. */
static char *
sector(unsigned i, const char **file)
{
	static const char *const files[] = { "00000002.log", "00000003.log", "00000004.log" };
	size_t size;
	char *p;

	*file = files[i / (SEGMENT / SIM_SECTOR)];
	p = walkit_file(*file, &size);
	CHECK(p);
	return p + (size_t)(i % (SEGMENT / SIM_SECTOR)) * SIM_SECTOR;
}

/* Fault 6 */
TEST_LIMIT(swapped_blocks_are_refused_or_harmless, 280)
{
	const unsigned n = 3 * SEGMENT / SIM_SECTOR;
	struct sim_image *image;
	unsigned refused = 0;

	image = make_log();
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++) {
			const char *file;
			char *a, *b, swap[SIM_SECTOR];

			a = sector(i, &file);
			b = sector(j, &file);
			memcpy(swap, a, SIM_SECTOR);
			memcpy(a, b, SIM_SECTOR);
			memcpy(b, swap, SIM_SECTOR);
			refused += is_refused(NULL);
			simdisk_load(&k.disk, image);
		}
	CHECK(refused > n * n / 4);
	sim_image_free(image);
}

/* Fault 6: a block that was never written, and one that went to zeros. */
TEST(lost_and_zeroed_blocks_are_refused_or_harmless)
{
	static const char *const stale = "what stood here in an earlier life of the file";
	const unsigned n = 3 * SEGMENT / SIM_SECTOR;
	struct sim_image *image;
	unsigned refused = 0;

	image = make_log();
	for (unsigned i = 0; i < 2 * n; i++) {
		const char *file;
		char *p = sector(i / 2, &file);

		memset(p, 0, SIM_SECTOR);
		if (i % 2)
			memcpy(p, stale, strlen(stale));
		refused += is_refused(file);
		simdisk_load(&k.disk, image);
	}
	CHECK(refused > n);
	sim_image_free(image);
}

/* Records of one size lie in the same places in every segment: only the segment's
 * random number and the offset tell them apart. */
TEST(a_block_of_another_place_is_no_record)
{
	struct wal_where where[40];
	struct wal_record rec;
	char block[SIM_SECTOR], p[SIM_SECTOR];
	size_t size;

	walkit_start(SEGMENT);
	for (int i = 0; i < 40; i++) { /* 512 bytes each */
		CHECK_EQ(0, walkit_group(1, SIM_SECTOR - 40, true));
		where[i] = k.where;
	}
	memcpy(block, walkit_file("00000001.log", &size) + where[3].offset, SIM_SECTOR);
	memcpy(walkit_file("00000001.log", &size) + where[4].offset, block, SIM_SECTOR);
	CHECK_EQ(0, wal_read(k.w, where[3], p, sizeof p, &rec, &k.err));
	CHECK_EQ(SLU_ECORRUPT, wal_read(k.w, where[4], p, sizeof p, &rec, &k.err));
	CHECK_CONTAINS("00000001.log: bad record at", k.err.text);
	CHECK_EQ(2, where[20].segment);
	CHECK_EQ(0, wal_read(k.w, where[20], p, sizeof p, &rec, &k.err));
	memcpy(walkit_file("00000002.log", &size) + where[20].offset, block, SIM_SECTOR);
	CHECK_EQ(SLU_ECORRUPT, wal_read(k.w, where[20], p, sizeof p, &rec, &k.err));
}

TEST(a_flip_is_found_when_the_record_is_read)
{
	struct wal_record rec;
	char p[1024];
	size_t size;

	walkit_start(SEGMENT);
	CHECK_EQ(0, walkit_group(1, 301, true));
	for (uint32_t i = 0; i < k.where.length; i++) {
		char *file = walkit_file("00000001.log", &size);
		const bool is_padding = i >= 40 + 301;

		file[k.where.offset + i] ^= 0x10;
		CHECK_EQ(is_padding ? 0 : SLU_ECORRUPT,
			 wal_read(k.w, k.where, p, sizeof p, &rec, &k.err));
		CHECK(is_padding || wal_read(k.w, wal_unpack(wal_pack(k.where)), p,
					     sizeof p, &rec, &k.err));
		file[k.where.offset + i] ^= 0x10;
	}
}

/* A good sum is not enough: the record must be the next one, know of no sync that
 * was not, and have a time where one belongs. */
TEST(a_record_that_does_not_follow_is_refused)
{
	static const struct {
		const char *label;
		size_t at;
		char value;
		bool is_added; /* to the byte, which is random */
	} cases[] = {
		{ "as it was", 8, 4, false },
		{ "an old seq", 8, 3, false },
		{ "a later seq", 8, 5, false },
		{ "a sync that was not", 16, 4, false },
		{ "no time", 25, 0, false },
		{ "another life", 28, 1, true },
		{ "the same life begun again", 24, (char)RECORD_OPENS, false },
	};

	EACH(i, cases) {
		uint32_t seed;
		size_t size;
		char *p;

		walkit_start(SEGMENT);
		for (int n = 0; n < 3; n++)
			CHECK_EQ(0, walkit_group(1, 100, true));
		walkit_kill();
		p = walkit_file("00000001.log", &size);
		seed = le32_get(p + 16);
		p += k.where.offset;
		p[cases[i].at] = (char)(cases[i].value + (cases[i].is_added ? p[cases[i].at] : 0));
		record_seal(p, seed + k.where.offset, true);
		CHECK_EQ(i ? SLU_ECORRUPT : 0, walkit_open(), cases[i].label);
	}
}

static void
rename_file(const char *from, const char *to)
{
	struct disk *d = &k.disk.disk;
	const int folder = d->ops->folder(d, "wal");

	if (to)
		CHECK_EQ(0, d->ops->rename(d, folder, from, to));
	else
		CHECK_EQ(0, d->ops->remove(d, folder, from));
	CHECK_EQ(0, d->ops->sync_folder(d, folder));
	d->ops->close(d, folder);
}

TEST(segments_that_are_gone_or_elsewhere_are_refused)
{
	static const struct {
		const char *from, *to;
		const char *file;
	} cases[] = {
		{ "00000003.log", NULL, "00000003.log" },
		{ "00000004.log", NULL, "00000003.log" },
		{ "00000003.log", "00000005.log", "00000003.log" },
		{ "00000002.log", "00000005.log", "00000005.log" },
		{ "00000003.log", "00000002.log", "00000002.log" },
		{ "spare-00000005", "00000005.log", "00000005.log" },
	};

	EACH(i, cases) {
		struct sim_image *image;

		image = make_log();
		rename_file(cases[i].from, cases[i].to);
		CHECK(is_refused(cases[i].file));
		sim_image_free(image);
	}
}

TEST(a_log_that_vanished_is_refused)
{
	static const char *const files[] = { "00000002.log", "00000003.log", "00000004.log" };
	struct sim_image *image;

	image = make_log();
	EACH(i, files)
		rename_file(files[i], NULL);
	CHECK(is_refused("durable"));
	sim_image_free(image);
}

TEST(a_file_that_was_cut_is_refused)
{
	struct sim_image *image;

	image = make_log();
	for (size_t size = 0; size < SEGMENT; size += 256) {
		const unsigned n = (unsigned)(size / 256 % 3);
		char path[32];

		snprintf(path, sizeof path, "wal/0000000%u.log", 2 + n);
		for (unsigned i = 0; simdisk_name(&k.disk, i); i++)
			if (strcmp(simdisk_name(&k.disk, i), path) == 0)
				k.disk.names->at[i].inode->size = size;
		CHECK(is_refused(path + 4));
		simdisk_load(&k.disk, image);
	}
	sim_image_free(image);
}

/* WAL-8: the file is sound, and newer. */
TEST(a_newer_format_is_refused_and_left_alone)
{
	struct sim_image *image;
	uint32_t before;
	size_t size;
	char *p;

	image = make_log();
	p = walkit_file("00000003.log", &size);
	le32_put(p + 8, 2);
	le32_put(p + 12, 0);
	le32_put(p + 12, crc32c(0, p, 64));
	before = sum_of_all();
	CHECK_EQ(SLU_EINVAL, walkit_open());
	CHECK_CONTAINS("00000003.log: format version 2 is newer", k.err.text);
	CHECK_EQ(before, sum_of_all());
	simdisk_load(&k.disk, image);
	p = walkit_file("durable", &size);
	le32_put(p + 16, 2);
	le32_put(p + 20, crc32c(0, p, 20));
	before = sum_of_all();
	CHECK_EQ(SLU_EINVAL, walkit_open());
	CHECK_EQ(before, sum_of_all());
	sim_image_free(image);
}

static void
check_is_down(void)
{
	struct wal_record rec;
	struct wal_stats stats;
	char p[8];

	wal_stats(k.w, &stats);
	CHECK(stats.failed);
	CHECK_EQ(SLU_EDOWN, wal_reserve(k.w, WAL_SETTLE, 64, 64, &k.err));
	CHECK_CONTAINS("the log has failed: ", k.err.text);
	CHECK_EQ(SLU_EDOWN, wal_commit(k.w, true, &k.err));
	CHECK_EQ(SLU_EDOWN, wal_tick(k.w, &k.err));
	CHECK_EQ(SLU_EDOWN, wal_recycle(k.w, &k.err));
	CHECK_EQ(SLU_EDOWN, wal_read(k.w, k.where, p, sizeof p, &rec, &k.err));
	CHECK_EQ(SLU_NEVER, wal_due(k.w));
	CHECK_EQ(0, wal_room(k.w));
}

/* Fault 8, WAL-3: the sync fails once. A later sync that succeeds proves nothing. */
TEST(a_failed_sync_is_never_tried_again)
{
	unsigned long syncs;

	walkit_start(SEGMENT);
	CHECK_EQ(0, walkit_group(3, 100, true));
	simdisk_fail(&k.disk, SIM_BIT(SIM_SYNC), 1, EIO, false);
	CHECK_EQ(SLU_EDOWN, walkit_group(3, 100, true));
	CHECK_CONTAINS("sync 00000001.log", k.err.text);
	CHECK_CONTAINS("event=\"log failed\"", k.logged);
	syncs = k.disk.counts[SIM_SYNC];
	check_is_down();
	wal_close(k.w);
	k.w = NULL;
	CHECK_EQ(syncs, k.disk.counts[SIM_SYNC]);
	simdisk_crash(&k.disk, 1);
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(1, k.seen);
}

TEST(a_failed_write_ends_the_log)
{
	for (unsigned nth = 1; nth <= 2; nth++) { /* of the group, of `durable` */

		walkit_start(SEGMENT);
		CHECK_EQ(0, walkit_group(3, 100, true));
		simdisk_fail(&k.disk, SIM_BIT(SIM_WRITE), nth, ENOSPC, false);
		CHECK_EQ(SLU_EDOWN, walkit_group(3, 100, true));
		check_is_down();
		walkit_crash(0);
		CHECK_EQ(0, walkit_open());
		CHECK_EQ(nth, k.seen);
	}
}

/* A lost group that was asked to be synced later is no longer awaited either. */
TEST(a_failed_sync_by_the_clock_ends_the_log_too)
{
	walkit_start(SEGMENT);
	CHECK_EQ(0, walkit_group(3, 100, false));
	fakeclock_advance(&k.clock, SLU_SEC);
	simdisk_fail(&k.disk, SIM_BIT(SIM_SYNC), 1, EIO, true);
	CHECK_EQ(SLU_EDOWN, wal_tick(k.w, &k.err));
	check_is_down();
	walkit_crash(1);
	CHECK_EQ(0, walkit_open());
}
