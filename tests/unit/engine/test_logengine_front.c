/*
 * The log engine with a front folder: the folder answers, and the store gets the log behind.
 */
#include "logkit.h"
#include "memstore.h"

#include "line/object.h"
#include "mirror/carry.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SEGMENT = 64 << 10,
	FLUSH = 8 << 10, /* front.flush.bytes */
	AWAY = 1000000   /* requests that fail while the store is away */
};

static const struct store_ops *const rows[] = { &store_memory, NULL };

static struct {
	struct logkit *k;
	struct store *store;
} my;

static void
begin(uint64_t seed)
{
	struct slu_err err;

	CHECK_EQ(STORE_OK, store_open(&my.store, rows, &(struct store_conf){ .url = "memory://s" }, &err));
	my.k = logkit_new(SEGMENT, seed, false);
	my.k->max_payload = 3000;
	my.k->more.store = my.store;
	my.k->more.front = FLUSH;
	my.k->more.most = UINT64_MAX; /* all in the log: a payload file needs the store */
	snprintf(my.k->boot, sizeof my.k->boot, "boot-0");
	my.k->more.boot = my.k->boot; /* of the spare folder: another one after each crash */
}

static void
end(void)
{
	logkit_free(my.k);
	store_close(my.store);
}

static int
open_kit(void)
{
	memstore_set_clock(my.store, my.k->now);
	return logkit_open(my.k);
}

static int
work(int n)
{
	int rc = 0;

	for (int i = 0; i < n && !rc; i++)
		rc = logkit_step(my.k);
	return rc;
}

/* Every request to the store fails, or none does. */
static void
set_away(bool away)
{
	static const enum store_verb verbs[] = { STORE_PUT, STORE_GET, STORE_LIST, STORE_REMOVE };

	for (unsigned i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		memstore_fault(my.store, verbs[i], away ? MEMSTORE_LOSE_REQUEST : MEMSTORE_NONE, away ? AWAY : 0);
}

static struct engine_lag
lag(void)
{
	struct engine_lag out;

	CHECK(my.k->e->ops->lag(my.k->e, &out));
	return out;
}

/* Lets the engine carry until the store has all. */
static void
drain(void)
{
	struct engine *const e = my.k->e;
	struct slu_err err = { 0 };

	e->ops->flush(e);
	while (lag().bytes > 0) {
		CHECK_EQ(ENGINE_LATER, e->ops->run(e, NULL, my.k->now, my.k->now, &err));
		CHECK_EQ(0, e->ops->commit(e, &err));
		e->ops->flush(e);
		sched_yield();
	}
}

/* The store alone has every message that was accepted, each once, and no other. */
static void
check_home(void)
{
	simdisk_release(my.k->disk);
	simdisk_init(my.k->disk);
	my.k->more.front = 0;
	my.k->more.without_front = true;
	CHECK_EQ(0, open_kit()); /* it checks what was promised */
	logkit_verify(my.k);
	my.k->more.without_front = false;
}

/* MQ-08, MQ-09, MQ-15: the folder answers, and nothing is lost or doubled on the way. */
TEST(LOGENGINE_13_work_goes_on_while_the_store_is_away)
{
	begin(test_seed());
	CHECK_EQ(0, open_kit());
	set_away(true);
	CHECK_EQ(0, work(100));
	CHECK(lag().bytes > 0 && lag().groups > 1 && lag().since > 0);
	set_away(false);
	drain();
	CHECK_EQ(0, lag().groups);
	logkit_close(my.k);
	check_home();
	end();
}

/* MQ-15: leases, delays and ttls end in time meanwhile. */
TEST(LOGENGINE_13_a_store_may_be_away_for_an_hour)
{
	begin(test_seed());
	CHECK_EQ(0, open_kit());
	set_away(true);
	for (int minute = 0; minute < 60; minute++) {
		my.k->now += SLU_MIN;
		fakeclock_advance(&my.k->clock, SLU_MIN);
		CHECK_EQ(0, work(3));
	}
	CHECK(lag().bytes > 0);
	set_away(false);
	drain();
	logkit_close(my.k);
	check_home();
	end();
}

/* MQ-50, MQ-51 */
TEST(LOGENGINE_13_a_start_carries_what_a_killed_process_left)
{
	begin(test_seed());
	CHECK_EQ(0, open_kit());
	for (int life = 0; life < 10; life++) {
		set_away(true);
		CHECK_EQ(0, work(20));
		set_away(false); /* the next open needs the store */
		logkit_kill(my.k);
		CHECK_EQ(0, open_kit());
	}
	drain();
	logkit_close(my.k);
	check_home();
	end();
}

/* One crash: the power goes at the n-th change of the disk, and requests to the store get lost. Returns false
 * if the work needs fewer changes. */
static bool
crash_at(unsigned long n, uint64_t seed)
{
	int rc;

	begin(seed);
	my.k->more.most = seed % 2 ? UINT64_MAX : 0;
	CHECK_EQ(0, open_kit());
	simdisk_power_off(my.k->disk, n);
	if (seed % 3)
		memstore_fault(my.store, STORE_PUT, seed % 3 == 1 ? MEMSTORE_LOSE_ANSWER : MEMSTORE_LOSE_REQUEST,
			       (unsigned)(seed / 3 % 5));
	rc = work(40);
	logkit_crash(my.k, seed);
	memstore_fault(my.store, STORE_PUT, MEMSTORE_NONE, 0);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(3));
	drain();
	logkit_close(my.k);
	check_home();
	end();
	return rc != 0;
}

static void
crash_often(unsigned lives)
{
	unsigned long n = 1;

	for (unsigned i = 0; i < lives; i++) {
		const bool reached = crash_at(n, i);

		n = reached ? n + 1 + n / 8 : 1 + i % 5;
	}
}

/* Checks that the pieces of the next group lie behind those of the group before, and moves `end` behind them. */
static void
check_group(const char *name, struct carry_place *end)
{
	struct body_reader r;
	struct body_piece piece;
	struct line_group g;
	struct slu_err err;
	struct buf object;

	buf_init(&object, SIZE_MAX);
	CHECK_EQ(STORE_OK, store_get(my.store, name, 0, SIZE_MAX, &object, NULL, &err));
	CHECK_EQ(0, line_group_decode(&g, buf_slice(&object), &err));
	if (g.body.n) {
		CHECK_EQ(0, body_open(&r, g.body, &err));
		while (body_next(&r, &piece)) {
			CHECK(!carry_is_before((struct carry_place){ piece.segment, piece.offset }, *end));
			*end = (struct carry_place){ piece.segment, piece.offset + (uint32_t)piece.bytes.n };
		}
	}
	buf_release(&object);
}

/* No byte of the log came to the store twice. Returns how many groups the store has. */
static uint32_t
check_groups(void)
{
	struct carry_place end = { 0 };
	struct store_names names = { 0 };
	struct slu_err err;
	uint32_t n;

	CHECK_EQ(STORE_OK, store_list(my.store, "0/group/", "", STORE_PAGE_MAX, &names, &err));
	n = names.n;
	CHECK(!names.more);
	for (uint32_t i = 0; i < n; i++)
		check_group(names.names[i], &end);
	store_names_release(&names);
	return n;
}

/* Lets the engine carry a group; the store has it, and the answer is lost. */
static void
carry_without_answer(void)
{
	struct engine *const e = my.k->e;
	const uint32_t before = check_groups();

	memstore_fault(my.store, STORE_PUT, MEMSTORE_LOSE_ANSWER, AWAY);
	e->ops->flush(e);
	while (check_groups() == before)
		sched_yield();
}

/* MQ-16: a start compares the folder with the store, and carries nothing that the store has. */
TEST(MQ_16_a_start_finds_what_the_store_has)
{
	begin(test_seed());
	my.k->no_locks = true;
	CHECK_EQ(0, open_kit());
	for (int life = 0; life < 5; life++) {
		drain();
		set_away(true);
		CHECK_EQ(0, work(5));
		set_away(false);
		carry_without_answer();
		logkit_kill(my.k);
		memstore_fault(my.store, STORE_PUT, MEMSTORE_NONE, 0);
		CHECK_EQ(0, open_kit());
	}
	drain();
	CHECK(check_groups() > 10);
	logkit_close(my.k);
	check_home();
	end();
}

/* MQ-16: a crash at each step of a flush; the count is exact. */
TEST_LIMIT(MQ_16_a_crash_at_any_step_of_a_flush_loses_and_doubles_nothing, 1200)
{
	const char *const crashes = getenv("FRONT_CRASHES");

	crash_often(crashes ? (unsigned)strtoul(crashes, NULL, 10) : 25);
}

/* The segments of the log are recycled only when the store has the copies of their records (MQ-15). */
TEST(LOGENGINE_13_a_log_of_many_segments_waits_for_the_store)
{
	struct wal_stats before;

	begin(test_seed());
	my.k->no_locks = true;
	CHECK_EQ(0, open_kit());
	set_away(true);
	while (logkit_stats(my.k).seq < 3000)
		CHECK_EQ(0, work(1));
	before = logkit_stats(my.k);
	CHECK(before.segments > 10);
	CHECK_EQ(before.last, before.segments, "no segment was recycled");
	set_away(false);
	my.k->enqueues = 5;
	while (logkit_stats(my.k).segments >= before.segments) { /* acked messages leave room */
		CHECK_EQ(0, work(5));
		drain();
	}
	logkit_close(my.k);
	check_home();
	end();
}

/* FRONT-2: a tail that was not synced is cut, and the store never had it. */
TEST(LOGENGINE_13_a_torn_tail_is_cut_and_was_not_carried)
{
	begin(test_seed());
	CHECK_EQ(0, open_kit());
	for (uint64_t life = 0; life < 20; life++) {
		CHECK_EQ(0, work(10));
		drain();                      /* of claims and extends, which are written and not synced, too */
		logkit_crash(my.k, 4 * life); /* nothing that was not synced stays */
		CHECK_EQ(0, open_kit());
	}
	drain();
	logkit_close(my.k);
	check_home();
	end();
}

/* FRONT-2: the folder lost its last record, which the store has, and the file `durable`, which tells of it. */
TEST(FRONT_2_a_log_that_ends_before_the_store_is_refused)
{
	size_t size;
	char *bytes;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(10));
	drain();
	logkit_kill(my.k);
	bytes = simdisk_content(my.k->disk, "log/00000001.log", &size);
	while (size > 0 && bytes[size - 1] == 0)
		size--;
	memset(bytes + size - 8, 0, 8);
	bytes = simdisk_content(my.k->disk, "log/durable", &size);
	memset(bytes, 0, size);
	CHECK_EQ(SLU_ECORRUPT, open_kit());
	CHECK_STR("log: the log ends before the place that the store has", my.k->err.text);
	end();
}

/* LINE-17 */
TEST(LINE_17_no_other_folder_takes_a_pinned_shard)
{
	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	drain();
	logkit_close(my.k);
	simdisk_release(my.k->disk);
	simdisk_init(my.k->disk);
	CHECK_EQ(SLU_EBUSY, open_kit());
	CHECK(strstr(my.k->err.text, "0: the shard is pinned to another front folder: "));
	my.k->more.front = 0;
	CHECK_EQ(SLU_EBUSY, open_kit());
	check_home();
	end();
}

/* FRONT-2 */
TEST(FRONT_2_a_front_folder_is_no_cache)
{
	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	logkit_close(my.k);
	my.k->more.front = 0;
	CHECK_EQ(SLU_EINVAL, open_kit());
	CHECK_STR("log is a front folder, which may have more than the store; expected the setting `store.front: folder`, "
		  "or another folder",
		  my.k->err.text);
	my.k->more.front = FLUSH;
	CHECK_EQ(0, open_kit());
	end();
}

/* MIRROR-8: what another node did without the folder stays, and so does the folder. */
TEST(LINE_17_a_folder_that_was_given_up_is_refused_and_kept)
{
	struct sim_image *image;

	begin(1);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(20));
	drain();
	logkit_close(my.k);
	image = simdisk_save(my.k->disk);
	check_home();
	logkit_close(my.k);
	simdisk_load(my.k->disk, image);
	my.k->more.front = FLUSH;
	CHECK_EQ(SLU_EBUSY, open_kit());
	CHECK(strstr(my.k->err.text, "0: the shard was taken without the front folder log at group "));
	CHECK(strstr(my.k->err.text, "; hand in what the folder has with `sluice admin store rejoin`"));
	sim_image_free(image);
	end();
}

/* A cache becomes a front folder, with what the store has. */
TEST(FRONT_1_a_cache_becomes_a_front_folder)
{
	begin(test_seed());
	my.k->more.front = 0;
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(20));
	logkit_close(my.k);
	my.k->more.front = FLUSH;
	for (unsigned long n = 1; n < 40; n += 3) { /* the power goes while it does */
		simdisk_power_off(my.k->disk, n);
		(void)open_kit();
		logkit_crash(my.k, n);
	}
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(20));
	drain();
	logkit_close(my.k);
	check_home();
	end();
}

/* The power goes at the n-th change while a cache becomes a front folder. Of a folder that is not whole it takes
 * what was written to the log, and leaves the file `mirror`. Returns whether the folder opened. */
static bool
fill_and_crash(unsigned long n)
{
	size_t size;
	char *bytes;
	int rc;

	simdisk_power_off(my.k->disk, n);
	rc = open_kit();
	logkit_crash(my.k, 1); /* all that was written stays */
	bytes = simdisk_content(my.k->disk, "log/front", &size);
	if (bytes && bytes[32] == 1) { /* FRONT_FILLING */
		bytes = simdisk_content(my.k->disk, "log/00000001.log", &size);
		if (bytes)
			memset(bytes, 0, size);
	}
	return rc == 0;
}

/* FRONT-1: until the folder is whole, the store has all and nothing in the folder is trusted. */
TEST(FRONT_1_a_crash_while_the_folder_is_filled)
{
	bool opened = false;

	for (unsigned long n = 1; !opened; n++) {
		begin(n);
		my.k->more.front = 0;
		CHECK_EQ(0, open_kit());
		CHECK_EQ(0, work(5));
		logkit_close(my.k);
		my.k->more.front = FLUSH;
		opened = fill_and_crash(n);
		CHECK_EQ(0, open_kit(), my.k->err.text);
		CHECK_EQ(0, work(3));
		drain();
		logkit_close(my.k);
		check_home();
		end();
	}
}

/* ---- front.down: slow ---- */

static void
begin_slow(uint64_t seed)
{
	begin(seed);
	my.k->more.spare = "spare";
	my.k->breaks = true;
}

/* The engine has failed, and opens again, as a lane does it. */
static int
reopen(void)
{
	const struct engine_conf conf = {
		.folder = my.k->folder,
		.disk = &my.k->disk->disk,
		.log = my.k->log,
		.wall = my.k->now,
	};
	int rc;

	memstore_set_clock(my.store, my.k->now);
	logkit_doubt(my.k);
	rc = my.k->e->ops->reopen(my.k->e, &conf, &my.k->found, &my.k->err);
	if (rc)
		return rc;
	my.k->now = my.k->found.now > my.k->now ? my.k->found.now : my.k->now;
	logkit_verify(my.k);
	return 0;
}

/* No sync succeeds until the engine has failed. */
static void
break_syncs(void)
{
	simdisk_fail(my.k->disk, SIM_BIT(SIM_SYNC), 1, EIO, true);
	while (work(1) == 0)
		;
	simdisk_heal(my.k->disk);
}

/* Whether a file of the spare folder has this name. */
static bool
spare_has(const char *name)
{
	const char *each;

	for (unsigned i = 0; (each = simdisk_name(my.k->disk, i)) != NULL; i++)
		if (strncmp(each, "spare/0/", 8) == 0 && strcmp(each + 8, name) == 0)
			return true;
	return false;
}

static void
end_slow(void)
{
	logkit_close(my.k);
	my.k->more.spare = NULL;
	check_home();
	end();
}

/* MQ-49, MQ-F2, LOGENGINE-15: the folder fails at its n-th change and from then on; the shard goes on without
 * it. Nothing that was answered is lost, nothing is there twice. */
TEST(LOGENGINE_15_a_front_folder_that_fails_is_left)
{
	for (unsigned n = 1; n < 60; n += 1 + n / 4) {
		begin_slow(n);
		CHECK_EQ(0, open_kit());
		CHECK_EQ(0, work((int)n % 7));
		memstore_fault(my.store, STORE_PUT, n % 3 == 0 ? MEMSTORE_LOSE_ANSWER : MEMSTORE_LOSE_REQUEST, n % 4);
		simdisk_fail(my.k->disk, SIM_CHANGES, n, EIO, true);
		while (work(1) == 0)
			;
		simdisk_heal(my.k->disk); /* the spare folder works */
		CHECK_EQ(0, reopen());
		CHECK(spare_has("00000001.log"));
		CHECK_EQ(0, work(20));
		end_slow();
	}
}

/* FRONT-3: the folder was left with everything at home. It may be a front folder again, with another uuid. */
TEST(FRONT_3_a_folder_that_was_left_is_filled_anew)
{
	char first[16];
	size_t size;

	begin_slow(3);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(10));
	memcpy(first, simdisk_content(my.k->disk, "log/front", &size) + 16, sizeof first);
	break_syncs();
	CHECK_EQ(0, reopen());
	CHECK_EQ(3, simdisk_content(my.k->disk, "log/front", &size)[32], "FRONT_LEFT");
	CHECK_EQ(0, work(20));
	logkit_close(my.k);
	CHECK_EQ(0, open_kit());
	CHECK_EQ(2, simdisk_content(my.k->disk, "log/front", &size)[32], "FRONT_WHOLE");
	CHECK(memcmp(first, simdisk_content(my.k->disk, "log/front", &size) + 16, sizeof first) != 0);
	set_away(true);
	CHECK_EQ(0, work(20)); /* the folder answers again */
	set_away(false);
	drain();
	end_slow();
}

/* The power goes while the folder is left, at any step. */
TEST(LOGENGINE_15_a_crash_while_the_folder_is_left)
{
	for (unsigned long i = 0; i < 80; i++) {
		begin_slow(i);
		CHECK_EQ(0, open_kit());
		CHECK_EQ(0, work(10));
		break_syncs();
		simdisk_power_off(my.k->disk, 1 + i % 40);
		if (reopen() == 0)
			(void)work(10);
		logkit_crash(my.k, i);
		CHECK_EQ(0, open_kit(), my.k->err.text);
		CHECK_EQ(0, work(10));
		end_slow();
	}
}

/* MQ-49: a full disk. Acks go on until the store has all; then the folder is left, and new work is accepted. */
TEST(LOGENGINE_15_a_full_front_folder_is_left_when_the_store_has_all)
{
	uint64_t before;

	begin_slow(5);
	my.k->enqueues = 90;
	CHECK_EQ(0, open_kit());
	CHECK_EQ(0, work(5));
	simdisk_fill(my.k->disk, true);
	while (work(1) == 0)
		;
	CHECK(strstr(my.k->err.text, "the front folder has no room for new work"));
	simdisk_fill(my.k->disk, false); /* of the spare folder */
	CHECK_EQ(0, reopen());
	before = my.k->accepted;
	CHECK_EQ(0, work(20));
	CHECK(my.k->accepted > before);
	end_slow();
}

/* LOGENGINE-15: bytes that were synced and cannot be read are damage, not an end. */
TEST(LOGENGINE_15_a_folder_that_lost_what_was_synced_is_not_left)
{
	size_t size;
	char *bytes;

	begin_slow(6);
	CHECK_EQ(0, open_kit());
	set_away(true);
	CHECK_EQ(0, work(20));
	break_syncs();
	set_away(false);
	bytes = simdisk_content(my.k->disk, "log/00000001.log", &size);
	memset(bytes + 8192, 0, 4096);
	CHECK_EQ(SLU_ECORRUPT, reopen());
	CHECK(!spare_has("00000001.log"));
	end();
}
