/*
 * The simulated disk is what the log's tests stand on, so it has tests of its own.
 */
#include "test.h"

#include "simdisk.h"

#include <errno.h>

enum {
	SIZE = 4 * SIM_SECTOR
};

static struct {
	struct simdisk s;
	struct disk *d;
	int folder;
	int file;
} b;

/* A file of 'o's, synced with its name. */
static void
box_init(void)
{
	char old[SIZE];

	memset(old, 'o', sizeof old);
	simdisk_init(&b.s);
	b.d = &b.s.disk;
	b.folder = b.d->ops->folder(b.d, "f");
	b.file = b.d->ops->create(b.d, b.folder, "a");
	CHECK_EQ(0, b.d->ops->write(b.d, b.file, old, SIZE, 0));
	CHECK_EQ(0, b.d->ops->sync(b.d, b.file));
	CHECK_EQ(0, b.d->ops->sync_folder(b.d, b.folder));
}

static void
box_release(void)
{
	simdisk_release(&b.s);
}

FIXTURE(box_init, box_release);

static void
put(char c)
{
	char p[SIZE];

	memset(p, c, sizeof p);
	CHECK_EQ(0, b.d->ops->write(b.d, b.file, p, SIZE, 0));
}

/* Sector by sector: the letter that each sector holds. */
static void
after_crash(uint64_t seed, char letters[5])
{
	const char *p;
	size_t size;

	simdisk_crash(&b.s, seed);
	p = simdisk_content(&b.s, "f/a", &size);
	CHECK_EQ(SIZE, size);
	for (int i = 0; i < 4; i++) {
		letters[i] = p[i * SIM_SECTOR];
		for (int j = 0; j < SIM_SECTOR; j++)
			CHECK_EQ(letters[i], p[i * SIM_SECTOR + j]);
	}
	letters[4] = 0;
}

TEST(what_was_synced_survives_and_all_else_may_go)
{
	char letters[5];

	put('x');
	after_crash(0, letters);
	CHECK_STR("oooo", letters);
}

TEST(what_was_not_synced_may_survive)
{
	char letters[5];

	put('x');
	after_crash(1, letters);
	CHECK_STR("xxxx", letters);
}

TEST(sectors_are_old_or_new_one_by_one)
{
	unsigned old = 0, middle = 0, newest = 0;

	for (uint64_t seed = 2; seed < 400; seed += 4) {
		char letters[5];

		box_release();
		box_init();
		put('m');
		put('n');
		after_crash(seed, letters);
		for (int i = 0; i < 4; i++) {
			old += letters[i] == 'o';
			middle += letters[i] == 'm';
			newest += letters[i] == 'n';
		}
	}
	CHECK_EQ(400, old + middle + newest);
	CHECK(old > 50 && middle > 50 && newest > 50);
}

TEST(a_failed_sync_loses_the_writes_for_ever)
{
	char letters[5];

	put('x');
	simdisk_fail(&b.s, SIM_BIT(SIM_SYNC), 1, EIO, false);
	CHECK_EQ(-EIO, b.d->ops->sync(b.d, b.file));
	CHECK(b.s.failed);
	CHECK_EQ(0, b.d->ops->sync(b.d, b.file));
	after_crash(1, letters);
	CHECK_STR("oooo", letters);
}

TEST(names_need_a_sync_of_their_own)
{
	size_t size;

	CHECK_EQ(0, b.d->ops->rename(b.d, b.folder, "a", "b"));
	simdisk_crash(&b.s, 0);
	CHECK(simdisk_content(&b.s, "f/a", &size));
	CHECK(!simdisk_content(&b.s, "f/b", &size));
	b.folder = b.d->ops->folder(b.d, "f");
	CHECK_EQ(0, b.d->ops->rename(b.d, b.folder, "a", "b"));
	CHECK_EQ(0, b.d->ops->sync_folder(b.d, b.folder));
	CHECK_EQ(0, b.d->ops->remove(b.d, b.folder, "b"));
	simdisk_crash(&b.s, 0);
	CHECK(simdisk_content(&b.s, "f/b", &size));
}

TEST(a_killed_process_loses_its_lock_and_nothing_else)
{
	size_t size;

	CHECK_EQ(0, b.d->ops->lock(b.d, b.file));
	CHECK_EQ(-EWOULDBLOCK, b.d->ops->lock(b.d, b.file));
	put('x');
	simdisk_kill(&b.s);
	CHECK_EQ('x', simdisk_content(&b.s, "f/a", &size)[0]);
	b.folder = b.d->ops->folder(b.d, "f");
	b.file = b.d->ops->open(b.d, b.folder, "a");
	CHECK_EQ(0, b.d->ops->lock(b.d, b.file));
	simdisk_crash(&b.s, 0);
	CHECK_EQ('o', simdisk_content(&b.s, "f/a", &size)[0]);
}

TEST(the_power_goes_after_so_many_changes)
{
	char letters[5];

	simdisk_power_off(&b.s, 2);
	put('x');
	CHECK_EQ(0, b.d->ops->sync(b.d, b.file));
	CHECK_EQ(-EIO, b.d->ops->write(b.d, b.file, "y", 1, 0));
	CHECK_EQ(-EIO, b.d->ops->read(b.d, b.file, letters, 1, 0));
	after_crash(1, letters);
	CHECK_STR("xxxx", letters);
}

TEST(calls_fail_as_planned_and_are_counted)
{
	simdisk_fail(&b.s, SIM_BIT(SIM_WRITE), 2, ENOSPC, true);
	CHECK_EQ(0, b.d->ops->write(b.d, b.file, "x", 1, 0));
	CHECK_EQ(0, b.d->ops->sync(b.d, b.file));
	CHECK_EQ(-ENOSPC, b.d->ops->write(b.d, b.file, "x", 1, 0));
	CHECK_EQ(-ENOSPC, b.d->ops->write(b.d, b.file, "x", 1, 0));
	simdisk_heal(&b.s);
	CHECK_EQ(0, b.d->ops->write(b.d, b.file, "x", 1, 0));
	CHECK_EQ(5, b.s.counts[SIM_WRITE]);
	CHECK_EQ(2, b.s.counts[SIM_SYNC]);
}

TEST(a_full_disk_takes_what_was_allocated_and_no_more)
{
	int other;

	other = b.d->ops->create(b.d, b.folder, "b");
	b.s.capacity = SIZE + 1024;
	CHECK_EQ(1024, b.d->ops->room(b.d, b.folder));
	CHECK_EQ(-ENOSPC, b.d->ops->allocate(b.d, other, 1025));
	CHECK_EQ(0, b.d->ops->allocate(b.d, other, 1024));
	CHECK_EQ(0, b.d->ops->write(b.d, other, "x", 1, 1023));
	CHECK_EQ(-ENOSPC, b.d->ops->write(b.d, other, "x", 1, 1024));
	CHECK_EQ(0, b.d->ops->room(b.d, b.folder));
	CHECK_EQ(0, b.d->ops->remove(b.d, b.folder, "b"));
	CHECK_EQ(1024, b.d->ops->room(b.d, b.folder));
}

TEST(an_image_brings_every_byte_back)
{
	struct sim_image *image;
	size_t size;

	image = simdisk_save(&b.s);
	put('x');
	CHECK_EQ(0, b.d->ops->rename(b.d, b.folder, "a", "b"));
	simdisk_load(&b.s, image);
	CHECK_EQ('o', simdisk_content(&b.s, "f/a", &size)[0]);
	CHECK_EQ(SIZE, size);
	CHECK_STR("f/a", simdisk_name(&b.s, 0));
	CHECK(!simdisk_name(&b.s, 1));
	sim_image_free(image);
}
