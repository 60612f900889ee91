/*
 * The folder of a shard that another node owns: it follows the line, or is emptied.
 */
#include "mirror_fixture.h"

#include "mirror/follow.h"
#include "mirror/frontfolder.h"

static const uint8_t uuid[CACHE_UUID] = "uuid of a store";

static struct {
	struct follow_conf conf;
	struct follow_facts facts;
	struct slu_err err;
	uint64_t bytes;    /* that goes_on was called with */
	unsigned requests; /* that may be sent */
	unsigned emptied;
} f;

static bool
goes_on(void *arg, uint64_t bytes)
{
	(void)arg;
	f.bytes += bytes;
	return f.requests > 0 && f.requests--;
}

static void
on_emptied(void *arg, struct disk *disk, int folder)
{
	(void)arg;
	CHECK(disk == &k.disk.disk && folder >= 0);
	f.emptied++;
}

static void
before_follow(void)
{
	before_mirror();
	my.conf.uuid = uuid;
	my.conf.span_groups = 10;
	f.conf = (struct follow_conf){
		.store = my.store,
		.uuid = uuid,
		.shard = "s",
		.folder = "wal",
		.disk = &k.disk.disk,
		.log = k.log,
		.boot = my.boot,
		.goes_on = goes_on,
		.emptied = on_emptied,
	};
	f.requests = 1000;
}

FIXTURE(before_follow, after_mirror);

/* Returns the code of follow_line. */
static int
follow(uint64_t seen)
{
	return follow_line(&f.conf, seen, &f.facts, &f.err);
}

static uint64_t
newest_span(void)
{
	struct store_names names = { 0 };
	uint64_t first;

	CHECK_EQ(STORE_OK, store_list(my.store, "s/span/", "", STORE_PAGE_MAX, &names, &f.err));
	first = names.n ? line_number(names.names[names.n - 1], "s", LINE_SPAN) : 0;
	store_names_release(&names);
	return first;
}

static void
put_a_span(void)
{
	const uint64_t had = newest_span();

	while (newest_span() == had)
		put_groups(1);
}

static void
put_spans(unsigned n)
{
	while (n-- > 0)
		put_a_span();
}

static bool
has(const char *name)
{
	size_t size;

	return walkit_file(name, &size) != NULL;
}

/* A new node follows, and then takes the shard. Returns how many groups the open read. */
static uint64_t
take_over(void)
{
	open_log();
	CHECK_EQ(k.attempted, k.seen);
	return mirror_facts(my.mirror).fetched;
}

TEST(FOLLOW_2_a_takeover_reads_little_after_the_folder_has_followed)
{
	uint64_t without;

	open_log();
	put_spans(9);
	close_log();
	lose_folder();
	without = take_over();
	close_log();
	lose_folder();
	CHECK_EQ(0, follow(0));
	CHECK(f.facts.groups >= 80);
	CHECK(f.facts.last >= f.facts.groups);
	CHECK(f.facts.bytes > 0 && f.bytes > 0);
	CHECK(take_over() + 70 <= without);
	put_groups(5);
	close_log();
	open_log();
	CHECK_EQ(k.attempted, k.seen);
}

TEST(FOLLOW_2_a_second_call_fetches_what_is_new)
{
	struct sim_image *ahead;

	open_log();
	put_spans(4);
	close_log();
	lose_folder();
	CHECK_EQ(0, follow(0));
	ahead = simdisk_save(&k.disk);
	CHECK_EQ(0, follow(f.facts.span));
	CHECK_EQ(0, f.facts.groups);
	open_log();
	put_spans(3);
	close_log();
	simdisk_load(&k.disk, ahead);
	sim_image_free(ahead);
	CHECK_EQ(0, follow(f.facts.span));
	CHECK(f.facts.groups >= 30 && f.facts.groups < 60);
	CHECK(take_over() < 30);
}

TEST(FOLLOW_2_a_folder_that_has_all_spans_fetches_none)
{
	open_log();
	put_spans(4);
	put_groups(3);
	close_log();
	CHECK_EQ(0, follow(0));
	CHECK_EQ(0, f.facts.groups);
	CHECK_EQ(0, f.facts.bytes);
	CHECK(f.facts.last > 40);
	CHECK_EQ(0, take_over());
}

TEST(FOLLOW_2_a_line_without_a_span_has_nothing_to_fetch)
{
	my.conf.span_groups = 500;
	CHECK_EQ(0, follow(0));
	open_log();
	put_groups(20);
	close_log();
	lose_folder();
	CHECK_EQ(0, follow(0));
	CHECK_EQ(0, f.facts.span);
	CHECK(!has("mirror"));
	CHECK_EQ(k.attempted, take_over());
}

TEST(FOLLOW_3_a_call_may_end_at_any_request)
{
	open_log();
	put_spans(6);
	close_log();
	lose_folder();
	for (unsigned n = 0; n < 30; n++) {
		f.requests = n;
		if (follow(0) == 0)
			break;
		CHECK_EQ(SLU_ECANCELED, f.err.code);
		CHECK(n < 29);
	}
	CHECK(take_over() < 30);
}

TEST(FOLLOW_3_the_folder_of_an_open_log_is_left_alone)
{
	open_log();
	put_spans(1);
	CHECK_EQ(SLU_EBUSY, follow(0));
	CHECK_EQ(SLU_EBUSY, follow_empty(&f.conf, &f.err));
	CHECK_STR("wal is in use", f.err.text);
}

TEST(FOLLOW_4_a_segment_that_the_log_has_left_is_removed)
{
	struct sim_image *old;

	open_log();
	put_spans(20); /* four segments */
	close_log();
	lose_folder();
	CHECK_EQ(0, follow(0));
	CHECK(has("00000001.log"));
	old = simdisk_save(&k.disk);
	open_log();
	while (k.where.segment > wal_oldest(k.w) + 1)
		CHECK_EQ(0, walkit_recycle());
	put_spans(1);
	close_log();
	simdisk_load(&k.disk, old);
	sim_image_free(old);
	CHECK_EQ(0, follow(f.facts.span));
	CHECK(!has("00000001.log"));
	(void)take_over();
}

TEST(FOLLOW_4_a_folder_that_the_log_has_left_begins_anew)
{
	struct sim_image *old;

	open_log();
	put_spans(2);
	old = simdisk_save(&k.disk);
	for (unsigned i = 0; i < 20; i++) {
		put_groups(10);
		while (k.where.segment > wal_oldest(k.w) + 1)
			CHECK_EQ(0, walkit_recycle());
	}
	put_spans(2);
	close_log();
	simdisk_load(&k.disk, old);
	sim_image_free(old);
	CHECK_EQ(0, follow(0));
	CHECK(!has("00000001.log"));
	CHECK(take_over() < 30);
}

/* ---- Emptying ---- */

TEST(a_folder_that_another_node_continues_is_emptied)
{
	open_log();
	put_spans(3);
	put_groups(3);
	close_log();
	CHECK(has("00000001.log"));
	CHECK_EQ(0, follow_empty(&f.conf, &f.err));
	CHECK_EQ(1, f.emptied);
	CHECK(!has("00000001.log"));
	CHECK(!has("spare-00000001"));
	CHECK(!has("00000000000000000001.heads"));
	CHECK_EQ(0, follow_empty(&f.conf, &f.err));
	CHECK(take_over() > 30);
}

TEST(a_folder_that_never_was_a_cache_stays)
{
	CHECK_EQ(0, walkit_open());
	walkit_close();
	CHECK_EQ(0, follow_empty(&f.conf, &f.err));
	CHECK_EQ(0, f.emptied);
	CHECK(has("00000001.log"));
}

/* ---- MIRRORFOLLOW-1 ---- */

static void
remove_group(uint64_t number)
{
	char name[LINE_NAME_MAX];

	line_name(name, "s", LINE_GROUP, number);
	CHECK_EQ(STORE_OK, store_remove(my.store, name, &f.err));
}

static void
check_kept(void)
{
	CHECK_EQ(SLU_ECORRUPT, follow_empty(&f.conf, &f.err));
	CHECK(strstr(f.err.text, "wal is kept: the store went back, it does not have group "));
	CHECK_EQ(SLU_ECORRUPT, follow(0));
	CHECK_EQ(0, f.emptied);
	CHECK(has("00000001.log"));
}

TEST(FOLLOW_1_a_folder_is_kept_if_the_store_lacks_its_last_group)
{
	open_log();
	put_spans(1);
	put_groups(5);
	remove_group(mirror_facts(my.mirror).line.last);
	close_log();
	check_kept();
	snprintf(my.boot, sizeof my.boot, "boot-2");
	check_kept();
}

TEST(FOLLOW_1_a_folder_is_kept_if_another_node_has_put_another_group)
{
	static struct second_node other;
	uint64_t last;

	open_log();
	put_spans(1);
	put_groups(5);
	last = mirror_facts(my.mirror).line.last;
	close_log();
	remove_group(last);
	remove_group(last - 1);
	open_node(&other); /* an opening and a group */
	close_node(&other);
	check_kept();
}

TEST(FOLLOW_1_a_folder_is_kept_if_a_span_has_another_group)
{
	struct sim_image *kept;
	uint64_t last;

	open_log();
	put_spans(1);
	put_groups(5);
	last = mirror_facts(my.mirror).line.last;
	close_log();
	kept = simdisk_save(&k.disk);
	remove_group(last);
	lose_folder();
	k.answered = k.attempted = k.answered - 1;
	open_log();
	put_spans(2);
	close_log();
	simdisk_load(&k.disk, kept);
	sim_image_free(kept);
	check_kept();
}

TEST(FOLLOW_5_a_front_folder_stays_as_it_is)
{
	const struct frontfolder whole = { .state = FRONT_WHOLE, .uuid = "uuid of a front" };
	struct slu_err err;

	open_log();
	put_groups(30);
	put_a_span();
	close_log();
	CHECK_EQ(0, frontfolder_write(&whole, &k.disk.disk, k.disk.disk.ops->folder(&k.disk.disk, "wal"), &err));
	CHECK_EQ(SLU_ECORRUPT, follow(0));
	CHECK_STR("wal is a front folder: it may have more than the store", f.err.text);
	CHECK_EQ(SLU_ECORRUPT, follow_empty(&f.conf, &f.err));
	CHECK_EQ(0, f.emptied);
}
