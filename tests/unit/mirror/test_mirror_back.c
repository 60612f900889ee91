/*
 * A log in a store that went back: it lacks groups that it had confirmed.
 */
#include "mirror_fixture.h"

FIXTURE(before_mirror, after_mirror);

/* ---- A store that went back ---- */

static void
check_refused(void)
{
	struct slu_err err = { 0 };

	CHECK_EQ(SLU_ECORRUPT, open_mirror(&err));
	CHECK(strstr(err.text, "s: the store went back: it lacks group "));
	CHECK(strstr(err.text, ", which it had confirmed to wal; expected a newer copy of the store"));
}

TEST(MIRROR_5_a_store_that_went_back_is_refused_and_the_folder_stays)
{
	size_t size;

	open_log();
	put_groups(10);
	close_log();
	memstore_lose(my.store, "s/group/", 3);
	check_refused();
	check_refused();
	CHECK(walkit_file("00000001.log", &size));
}

TEST(MIRROR_5_also_after_the_machine_restarted)
{
	open_log();
	put_groups(10);
	close_log();
	memstore_lose(my.store, "s/group/", 3);
	snprintf(my.boot, sizeof my.boot, "boot-2");
	check_refused();
	check_refused();
}

TEST(MIRROR_5_also_if_another_node_went_on_meanwhile)
{
	struct sim_image *image;

	open_log();
	put_groups(10);
	close_log();
	memstore_lose(my.store, "s/group/", 3);
	image = simdisk_save(&k.disk);
	lose_folder();
	k.answered = 7;
	open_log();
	put_groups(10);
	close_log();
	simdisk_load(&k.disk, image);
	sim_image_free(image);
	check_refused();
}

/* ---- A store that went back while the owner lives ---- */

/* The next request of the owner fails, so it compares its line with the store. */
static void
interrupt(void)
{
	memstore_fault(my.store, STORE_PUT, MEMSTORE_LOSE_REQUEST, 1);
}

static void
check_whole(unsigned n)
{
	close_log();
	lose_folder();
	open_log();
	CHECK_EQ(n, k.seen);
}

TEST(MIRROR_7_groups_that_the_store_lost_are_put_again)
{
	open_log();
	put_groups(10);
	memstore_lose(my.store, "s/group/", 3);
	interrupt();
	put_groups(1);
	check_whole(11);
}

static void
remove_all_behind(const char *prefix, unsigned keep)
{
	struct store_names names = { 0 };
	struct slu_err err;

	CHECK_EQ(STORE_OK, store_list(my.store, prefix, "", STORE_PAGE_MAX, &names, &err));
	for (uint32_t i = keep; i < names.n; i++)
		CHECK_EQ(STORE_OK, store_remove(my.store, names.names[i], &err));
	store_names_release(&names);
}

static void
wait_for_spans(unsigned n)
{
	while (count("s/span/") < n || count("s/group/") > 5)
		sched_yield();
}

/* The line has forgotten the objects: the folder has their heads, and the bytes of the pieces. */
TEST(MIRROR_7_groups_that_the_folder_has_are_put_again_byte_for_byte)
{
	my.conf.span_groups = 4;
	open_log();
	put_groups(20);
	wait_for_spans(5);
	remove_all_behind("s/span/", 2);
	remove_all_behind("s/group/", 1);
	interrupt();
	put_groups(1);
	check_whole(21);
}

TEST(MIRROR_7_also_groups_of_an_earlier_owner)
{
	my.conf.span_groups = 4;
	open_log();
	put_groups(20);
	wait_for_spans(5);
	check_whole(20);
	remove_all_behind("s/span/", 2);
	remove_all_behind("s/group/", 1);
	interrupt();
	put_groups(1);
	check_whole(21);
}

static bool
has_file(const char *name)
{
	struct disk *const disk = &k.disk.disk;
	const int folder = disk->ops->folder(disk, "wal");
	const int file = disk->ops->open(disk, folder, name);

	if (file >= 0)
		disk->ops->close(disk, file);
	disk->ops->close(disk, folder);
	return file >= 0;
}

TEST(MIRROR_7_heads_of_groups_that_the_log_does_not_need_go)
{
	my.conf.span_groups = 4;
	open_log();
	for (unsigned i = 0; i < 10; i++) {
		put_groups(10);
		while (wal_oldest(k.w) && k.where.segment > wal_oldest(k.w) + 1)
			CHECK_EQ(0, walkit_recycle());
	}
	while (has_file("00000000000000000001.heads"))
		put_groups(1);
}

TEST(MIRROR_7_a_group_of_another_node_in_the_place_of_ours_ends_the_mirror)
{
	static struct second_node other;
	struct slu_err err = { 0 };
	size_t size;

	my.conf.life[0] = 1;
	open_log();
	put_groups(10);
	memstore_lose(my.store, "s/group/", 3);
	open_node(&other);
	interrupt();
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	CHECK_EQ(SLU_ECORRUPT, mirror_wait(my.mirror, SLU_NEVER, &err));
	CHECK(strstr(err.text, "s: the store went back, and another node has put group "));
	CHECK(strstr(err.text, ": life 02000000, epoch 2; ours is life 01000000, epoch 1"));
	close_node(&other);
	close_log();
	check_refused();
	CHECK(walkit_file("00000001.log", &size));
}
