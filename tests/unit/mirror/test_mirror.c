/*
 * A log in a store in memory: its folder may be lost, old, torn, ahead or another's.
 */
#include "mirror_fixture.h"

#include "core/backoff.h"
#include "mirror/mirror_private.h"

FIXTURE(before_mirror, after_mirror);

TEST(MIRROR_2_a_lost_folder_is_filled_from_the_store)
{
	open_log();
	put_groups(50);
	close_log();
	lose_folder();
	open_log();
	CHECK_EQ(50, k.seen);
	put_groups(5);
}

TEST(MIRROR_2_a_restart_fetches_nothing_that_the_folder_has)
{
	open_log();
	put_groups(20);
	close_log();
	open_log();
	CHECK_EQ(20, k.seen);
	CHECK_EQ(0, mirror_facts(my.mirror).fetched);
	put_groups(20);
	close_log();
	open_log();
	CHECK_EQ(40, k.seen);
	CHECK_EQ(0, mirror_facts(my.mirror).fetched);
}

TEST(MIRROR_2_after_a_power_cut_the_folder_is_filled_from_the_store)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		open_log();
		put_groups(20);
		mirror_close(my.mirror);
		my.mirror = NULL;
		walkit_crash(seed);
		snprintf(my.boot, sizeof my.boot, "boot-%u", (unsigned)seed + 1);
	}
	open_log();
	CHECK_EQ(200, k.seen);
}

TEST(MIRROR_2_what_the_line_has_not_is_cut)
{
	open_log();
	put_groups(10);
	write_ahead();
	mirror_close(my.mirror);
	my.mirror = NULL;
	walkit_kill();
	open_log();
	CHECK_EQ(10, k.seen);
	put_groups(10);
	close_log();
	open_log();
	CHECK_EQ(20, k.seen);
}

TEST(MIRROR_2_a_folder_that_another_node_left_behind_is_mended)
{
	struct sim_image *image;

	open_log();
	put_groups(10);
	write_ahead();
	mirror_close(my.mirror);
	my.mirror = NULL;
	walkit_kill();
	image = simdisk_save(&k.disk);
	lose_folder();
	open_log();
	CHECK_EQ(10, k.seen);
	put_groups(30);
	close_log();
	simdisk_load(&k.disk, image);
	sim_image_free(image);
	open_log();
	CHECK_EQ(40, k.seen);
	CHECK(mirror_facts(my.mirror).fetched >= 30);
	CHECK(mirror_facts(my.mirror).fetched < 40);
}

TEST(MIRROR_2_a_folder_with_a_missing_segment_is_filled_again)
{
	open_log();
	put_groups(60);
	close_log();
	CHECK_EQ(0, k.disk.disk.ops->remove(&k.disk.disk, k.disk.disk.ops->folder(&k.disk.disk, "wal"),
					    "00000001.log"));
	open_log();
	CHECK_EQ(60, k.seen);
	CHECK(mirror_facts(my.mirror).fetched > 50);
}

TEST(MIRROR_2_a_damaged_folder_is_filled_again_after_it_was_distrusted)
{
	struct slu_err err = { 0 };
	size_t size;

	open_log();
	put_groups(60);
	close_log();
	walkit_file("00000001.log", &size)[500] ^= 1;
	CHECK_EQ(0, mirror_open(&my.mirror, &my.conf, &err));
	k.conf.mirror = mirror_hook(my.mirror);
	CHECK_EQ(SLU_ECORRUPT, walkit_open());
	mirror_distrust(my.mirror);
	mirror_close(my.mirror);
	open_log();
	CHECK_EQ(60, k.seen);
}

/* The kernel lost the last pages: no record shows that. */
TEST(MIRROR_2_a_folder_that_ends_too_early_is_not_continued)
{
	struct slu_err err = { 0 };
	size_t size;

	open_log();
	put_groups(5);
	close_log();
	memset(walkit_file("00000001.log", &size) + k.where.offset, 0, k.where.length);
	k.answered--;
	open_log();
	CHECK_EQ(SLU_ECORRUPT, mirror_commit(my.mirror, 1, &err));
	CHECK_STR("wal: the folder does not end where the line ends", err.text);
	close_log();
	k.attempted = 5;
	open_log();
	CHECK_EQ(5, k.seen);
}

TEST(MIRROR_2_the_folder_of_another_store_is_refused)
{
	struct slu_err err = { 0 };
	struct store *const other = open_store("memory://other");

	open_log();
	put_groups(5);
	close_log();
	my.conf.store = other;
	CHECK_EQ(SLU_EINVAL, open_mirror(&err));
	CHECK(strstr(err.text, "wal belongs to shard s of store "));
	CHECK(strstr(err.text, "; expected the folder of this shard and store, or an empty folder"));
	store_close(other);
}

TEST(MIRROR_2_the_folder_of_another_shard_is_refused)
{
	struct slu_err err = { 0 };

	open_log();
	put_groups(5);
	close_log();
	my.conf.shard = "other";
	CHECK_EQ(SLU_EINVAL, open_mirror(&err));
	CHECK(strstr(err.text, "wal belongs to shard s of store "));
}

TEST(MIRROR_2_a_log_of_its_own_is_refused)
{
	struct slu_err err = { 0 };

	CHECK_EQ(0, walkit_open());
	walkit_close();
	CHECK_EQ(SLU_EINVAL, open_mirror(&err));
	CHECK_STR("wal is a log of its own; expected an empty folder, or a folder that this store filled "
		  "before",
		  err.text);
}

TEST(MIRROR_1_a_commit_is_busy_until_the_store_has_it)
{
	struct slu_err err = { 0 };
	char name[LINE_NAME_MAX];

	open_log();
	put_groups(3);
	line_name(name, "s", LINE_GROUP, mirror_facts(my.mirror).line.last + 1);
	memstore_hold(my.store, name);
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	while (memstore_held(my.store) == 0)
		sched_yield();
	CHECK_EQ(MIRROR_BUSY, mirror_check(my.mirror, &err));
	memstore_release(my.store);
	CHECK_EQ(0, mirror_wait(my.mirror, SLU_NEVER, &err));
	CHECK_EQ(0, mirror_check(my.mirror, &err));
	while (my.pokes < 4) /* one for each commit */
		sched_yield();
}

TEST(a_put_without_an_answer_is_repeated)
{
	const enum memstore_fault faults[] = { MEMSTORE_LOSE_REQUEST, MEMSTORE_LOSE_ANSWER };

	open_log();
	for (unsigned i = 0; i < 10; i++) {
		memstore_fault(my.store, STORE_PUT, faults[i % 2], 1 + i / 2);
		memstore_fault(my.store, STORE_GET, MEMSTORE_LOSE_ANSWER, i % 3);
		put_groups(1);
	}
	close_log();
	lose_folder();
	memstore_fault(my.store, STORE_LIST, MEMSTORE_LOSE_ANSWER, 2);
	memstore_fault(my.store, STORE_GET, MEMSTORE_LOSE_REQUEST, 5);
	memstore_fault(my.store, STORE_PUT, MEMSTORE_LOSE_ANSWER, 1);
	open_log();
	CHECK_EQ(10, k.seen);
}

TEST(a_refused_put_ends_the_mirror)
{
	struct slu_err err = { 0 };

	open_log();
	put_groups(3);
	memstore_fault(my.store, STORE_PUT, MEMSTORE_REFUSE, 1);
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	CHECK(mirror_wait(my.mirror, SLU_NEVER, &err) != 0);
	CHECK(mirror_check(my.mirror, &err) != 0);
}

TEST(a_store_that_does_not_answer_ends_the_open)
{
	struct slu_err err = { 0 };

	my.conf.patience = 50 * SLU_MS;
	memstore_fault(my.store, STORE_LIST, MEMSTORE_LOSE_REQUEST, 1000000);
	CHECK_EQ(SLU_EDOWN, open_mirror(&err));
	CHECK(strstr(err.text, "the store does not answer: memory://test"));
	memstore_fault(my.store, STORE_LIST, MEMSTORE_NONE, 0);
}

TEST(the_clock_of_the_store_is_asked_again)
{
	struct slu_err err = { 0 };
	slu_time wall = 0;

	open_log();
	memstore_set_clock(my.store, 77 * SLU_SEC);
	memstore_fault(my.store, STORE_CLOCK, MEMSTORE_LOSE_ANSWER, 3);
	CHECK_EQ(0, mirror_clock(my.mirror, &wall, &err));
	CHECK_EQ(77 * SLU_SEC, wall);
}

TEST(a_name_that_no_shard_can_have_is_refused)
{
	struct slu_err err = { 0 };

	my.conf.shard = "settings";
	CHECK_EQ(SLU_EINVAL, open_mirror(&err));
	my.conf.shard = "a/b";
	CHECK_EQ(SLU_EINVAL, open_mirror(&err));
	CHECK_STR("invalid name of a shard in a store: a/b; expected letters, digits, . _ -", err.text);
}

/* ---- A store that several mirrors share ---- */

TEST(mirrors_share_a_pool_and_the_settings)
{
	static const uint8_t uuid[CACHE_UUID] = { 1, 2, 3 };
	const struct store_pool_conf pc = { .store = my.store, .threads = 2, .max = 64 };
	struct store_pool *pool;
	struct mirror *other;
	struct slu_err err = { 0 };

	CHECK_EQ(0, store_pool_open(&pool, &pc, &err));
	my.conf.pool = pool;
	my.conf.uuid = uuid;
	open_log();
	CHECK_EQ(0, count("settings/"));
	CHECK_EQ(0, mirror_open(&other, &my.conf, &err));
	put_groups(3);
	mirror_close(other); /* the pool goes on */
	put_groups(3);
	close_log();
	CHECK_EQ(0, store_pool_count(pool));
	store_pool_close(pool);
}

/* ---- Spans ---- */

TEST(LINE_6_loose_groups_become_a_span_after_some_time)
{
	my.conf.span_age = 10 * SLU_MS;
	open_log();
	for (unsigned i = 1; i <= 3; i++) {
		put_groups(2);
		while (mirror_facts(my.mirror).line.spanned < mirror_facts(my.mirror).line.last)
			sched_yield();
	}
	CHECK(count("s/span/") >= 3);
}

TEST(LINE_6_a_commit_waits_while_too_many_groups_are_loose)
{
	struct slu_err err = { 0 };
	struct mirror_facts facts;

	my.conf.span_groups = 4;
	my.conf.loose_groups = 8;
	open_log();
	memstore_hold(my.store, "s/span/00000000000000000001");
	put_groups(7); /* and the opening */
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	while (memstore_held(my.store) == 0)
		sched_yield();
	CHECK_EQ(MIRROR_BUSY, mirror_check(my.mirror, &err));
	facts = mirror_facts(my.mirror);
	CHECK_EQ(8, facts.line.last - facts.line.spanned);
	memstore_release(my.store);
	CHECK_EQ(0, mirror_wait(my.mirror, SLU_NEVER, &err));
}

/* ---- Where the log begins ---- */

TEST(MIRROR_3_what_is_recycled_goes_from_the_store)
{
	my.conf.span_groups = 4;
	open_log();
	for (unsigned i = 0; i < 40; i++) {
		put_groups(10);
		while (wal_oldest(k.w) && k.where.segment > wal_oldest(k.w) + 1)
			CHECK_EQ(0, walkit_recycle());
	}
	put_groups(2);
	CHECK(mirror_facts(my.mirror).line.begin > 350);
	while (count("s/span/") > 20)
		put_groups(1);
	close_log();
	lose_folder();
	open_log();
	CHECK(mirror_facts(my.mirror).fetched < 80);
	CHECK_EQ(k.attempted, k.seen);
}

/* An opening takes the number for which the group was written whose records lie in two segments. The
 * first of them is gone. */
TEST(MIRROR_3_a_log_may_begin_at_an_opening)
{
	open_log();
	for (int i = 0; i < 40; i++) {
		my.store->breaks++; /* the connections are lost: an opening comes before the next group */
		CHECK_EQ(0, walkit_group(2, 5000, true));
		commit();
	}
	while (wal_oldest(k.w) && k.where.segment > wal_oldest(k.w) + 1)
		CHECK_EQ(0, walkit_recycle());
	put_groups(1);
	CHECK(mirror_facts(my.mirror).line.begin > 1);
	close_log();
	lose_folder();
	open_log();
	CHECK_EQ(k.attempted, k.seen);
}

TEST(MIRROR_3_the_beginning_moves_with_the_group_after_the_recycling)
{
	uint64_t begin;

	open_log();
	put_groups(60);
	begin = mirror_facts(my.mirror).line.begin;
	CHECK_EQ(0, walkit_recycle());
	CHECK_EQ(begin, mirror_facts(my.mirror).line.begin);
	put_groups(1);
	CHECK(mirror_facts(my.mirror).line.begin > begin);
}

TEST(MIRROR_3_a_crash_after_recycling_loses_nothing)
{
	open_log();
	put_groups(60);
	CHECK_EQ(0, walkit_recycle());
	mirror_close(my.mirror);
	my.mirror = NULL;
	walkit_kill();
	open_log();
	CHECK_EQ(60, k.seen);
	put_groups(3);
}

/* ---- Two nodes ---- */

TEST(MIRROR_4_a_node_that_lost_its_shard_never_commits_again)
{
	static struct second_node other;
	struct slu_err err = { 0 };

	my.conf.life[0] = 1;
	open_log();
	put_groups(5);
	open_node(&other);
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	CHECK_EQ(SLU_EBUSY, mirror_wait(my.mirror, SLU_NEVER, &err));
	CHECK(strstr(err.text, "s: another node has taken the shard: life "));
	CHECK(strstr(err.text, ", epoch 2, group "));
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(SLU_EBUSY, mirror_commit(my.mirror, 1, &err));
	close_log();
	my.conf.only_own = true;
	CHECK_EQ(SLU_EBUSY, open_mirror(&err));
	close_node(&other);
	my.conf.only_own = false;
	k.answered = 5;
	open_log();
	CHECK_EQ(5, k.seen);
}

/* Another node's opening is behind the newest group of the line. */
static void
put_opening_of_another_node(void)
{
	const struct line_facts f = mirror_facts(my.mirror).line;
	struct line_group g = { .opening = true, .number = f.last + 1, .epoch = f.epoch + 1, .before = f.mark, .begin = f.begin };
	char name[LINE_NAME_MAX];
	struct slu_err err;
	struct buf object;

	buf_init(&object, 1 << 16);
	line_group_encode(&g, &object);
	line_name(name, "s", LINE_GROUP, g.number);
	CHECK_EQ(STORE_OK, store_put(my.store, name, buf_slice(&object), STORE_IF_ABSENT, &err));
	buf_release(&object);
}

static bool
is_lost(void)
{
	bool lost;

	pthread_mutex_lock(&my.mirror->mtx);
	lost = my.mirror->over;
	pthread_mutex_unlock(&my.mirror->mtx);
	return lost;
}

/* The shard is lost after the commit was confirmed, and before the owner of the log looks at the commit. */
TEST(MIRROR_1_a_commit_that_was_confirmed_counts_also_if_the_shard_is_lost_then)
{
	struct slu_err err = { 0 };

	my.conf.span_groups = 2;
	open_log();
	memstore_hold(my.store, "s/span/00000000000000000001");
	put_groups(2);
	while (!memstore_held(my.store))
		sched_yield();
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	while (mirror_facts(my.mirror).sent)
		sched_yield();
	put_opening_of_another_node();
	my.store->breaks++;
	memstore_release(my.store);
	while (!is_lost())
		sched_yield();
	CHECK_EQ(0, mirror_check(my.mirror, &err));
	CHECK_EQ(0, walkit_group(1, 100, true));
	CHECK_EQ(SLU_EBUSY, mirror_commit(my.mirror, 1, &err));
}

static bool
is_never_fresh(void *arg, slu_time proved)
{
	(void)arg;
	(void)proved; /* the lease has run out, whatever was put */
	return false;
}

TEST(MIRROR_6_an_owner_whose_lease_ran_out_proves_its_shard_by_a_put)
{
	static struct second_node other;
	struct slu_err err = { 0 };
	uint64_t last;

	my.conf.is_fresh = is_never_fresh;
	open_log();
	last = mirror_facts(my.mirror).line.last;
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	CHECK_EQ(0, mirror_wait(my.mirror, SLU_NEVER, &err));
	CHECK_EQ(last + 1, mirror_facts(my.mirror).line.last);
	put_groups(2);
	open_node(&other);
	CHECK_EQ(0, mirror_commit(my.mirror, 1, &err));
	CHECK_EQ(SLU_EBUSY, mirror_wait(my.mirror, SLU_NEVER, &err));
	close_node(&other);
}

TEST(MIRROR_4_a_node_takes_back_what_its_own_open_left)
{
	struct slu_err err = { 0 };

	my.conf.life[0] = 1;
	open_log();
	put_groups(5);
	close_log();
	my.conf.only_own = true;
	open_log(); /* as if it had ended before the log was open */
	close_log();
	CHECK_EQ(0, open_mirror(&err));
	CHECK_EQ(5, k.seen);
}

/* A store that is too busy (SlowDown) fails requests of many shards at once: they must not come again at once. */
TEST(requests_that_failed_are_repeated_at_different_times)
{
	const struct slu_backoff *b;

	my.conf.retry = (struct slu_backoff){ 0 };
	open_log();
	b = &my.mirror->conf.retry;
	CHECK(backoff_delay(b, 5, 1) != backoff_delay(b, 5, 1000000));
	CHECK_EQ(SLU_SEC, backoff_delay(b, 100, SLU_SEC), "at most a second");
}
