/*
 * Cleaning: fault 40, WAL-6. A small store of values stands on the log: put and delete
 * are records, what lives is copied forward, and the disk stays bounded.
 */
#include "test.h"

#include "base/le.h"
#include "walkit.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	SEGMENT = 64 * 1024,
	KEYS = 20000,
	PUT = 1,
	DEL = 2,
	BATCH = 16
};

struct store {
	struct simdisk disk;
	struct fakeclock clock;
	struct wal_conf conf;
	struct wal *w;
	struct slu_err err;
	struct wal_where where[KEYS]; /* length 0: not there */
	uint32_t value[KEYS];
	struct wal_cursor cursor;
	uint64_t copied;
	uint64_t put;
};

static void
forget(struct store *s, struct wal *w, uint32_t key)
{
	if (s->where[key].length)
		wal_live(w, s->where[key], -(int64_t)s->where[key].length);
	s->where[key].length = 0;
}

static void
remember(struct store *s, struct wal *w, uint32_t key, uint32_t value,
	 struct wal_where where)
{
	forget(s, w, key);
	s->where[key] = where;
	s->value[key] = value;
	wal_live(w, where, where.length);
}

static int
replay(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	const uint32_t key = le32_get(rec->body.p);

	(void)err;
	if (rec->type == PUT)
		remember(arg, w, key, le32_get(rec->body.p + 4), rec->where);
	else
		forget(arg, w, key);
	return 0;
}

static void
store_open(struct store *s)
{
	memset(s->where, 0, sizeof s->where);
	CHECK_EQ(0, wal_open(&s->w, &s->conf, replay, s, &s->err));
}

static struct store *
store_new(uint32_t reserve)
{
	struct store *s = calloc(1, sizeof *s);

	CHECK(s);
	simdisk_init(&s->disk);
	fakeclock_init(&s->clock, SLU_SEC, SLU_SEC);
	s->conf = (struct wal_conf){
		.disk = &s->disk.disk,
		.clock = &s->clock.clock,
		.folder = "wal",
		.segment_size = SEGMENT,
		.reserve = reserve,
	};
	store_open(s);
	return s;
}

static void
store_free(struct store *s)
{
	wal_cursor_close(&s->cursor);
	wal_close(s->w);
	simdisk_release(&s->disk);
	fakeclock_release(&s->clock);
	free(s);
}

static struct wal_where
append(struct store *s, uint8_t type, uint32_t key, uint32_t value, size_t n)
{
	char body[2048] = { 0 };
	const uint64_t size = wal_size(n);

	le32_put(body, key);
	le32_put(body + 4, value);
	CHECK_EQ(0, wal_reserve(s->w, type == PUT ? WAL_NEW : WAL_SETTLE, size, size,
				&s->err));
	return wal_append(s->w, type, &(struct slice){ body, n }, 1);
}

/* Copy at most `budget` bytes forward. The segment is recycled in the next call, when
 * the copies are committed. */
static void
clean(struct store *s, uint64_t budget)
{
	struct wal_record rec;

	if (!s->cursor.reader)
		CHECK_EQ(0, wal_cursor_open(&s->cursor, s->w, wal_oldest(s->w), &s->err));
	for (uint64_t copied = 0; copied < budget;) {
		uint32_t key;

		CHECK_EQ(0, wal_cursor_next(&s->cursor, &rec, &s->err));
		if (rec.type == 0)
			return;
		key = le32_get(rec.body.p);
		if (rec.type != PUT || wal_pack(s->where[key]) != wal_pack(rec.where) ||
		    !s->where[key].length)
			continue;
		CHECK_EQ(0, wal_reserve(s->w, WAL_SETTLE, wal_size(rec.body.n),
					wal_size(rec.body.n), &s->err));
		remember(s, s->w, key, le32_get(rec.body.p + 4),
			 wal_append(s->w, PUT, &rec.body, 1));
		copied += rec.where.length;
		s->copied += rec.where.length;
	}
}

static void
commit(struct store *s)
{
	CHECK_EQ(0, wal_commit(s->w, true, &s->err));
	if (s->cursor.done) {
		wal_cursor_close(&s->cursor);
		CHECK_EQ(0, wal_recycle(s->w, &s->err));
	}
	if (wal_wants_spare(s->w))
		CHECK_EQ(0, wal_prepare(s->w, &s->err));
}

static void
check_bound(struct store *s)
{
	struct wal_stats stats;

	wal_stats(s->w, &stats);
	if (simdisk_used(&s->disk) > 3 * stats.live + 4 * SEGMENT + 4096)
		test_fail(__FILE__, __LINE__,
			  "%" PRIu64 " bytes on disk for %" PRIu64 " that live",
			  simdisk_used(&s->disk), stats.live);
}

static void
batch(struct store *s, uint64_t *dice, unsigned keep, bool grow)
{
	wal_begin(s->w, 1);
	if (wal_excess(s->w))
		clean(s, 16 * 1024);
	for (int i = 0; i < BATCH; i++) {
		const uint32_t key = (uint32_t)(test_random(dice) % KEYS);
		const size_t n = 50 + test_random(dice) % 500;

		if (grow && (!s->where[key].length || key % keep)) {
			const uint32_t value = (uint32_t)test_random(dice);

			remember(s, s->w, key, value, append(s, PUT, key, value, n));
			s->put += n;
		} else if (s->where[key].length && key % keep) {
			append(s, DEL, key, 0, 8);
			forget(s, s->w, key);
		}
	}
	commit(s);
}

static void
check_values(struct store *s)
{
	struct wal_record rec;
	char p[2048];

	for (uint32_t key = 0; key < KEYS; key++) {
		if (!s->where[key].length)
			continue;
		CHECK_EQ(0, wal_read(s->w, s->where[key], p, sizeof p, &rec, &s->err));
		CHECK_EQ(key, le32_get(rec.body.p));
		CHECK_EQ(s->value[key], le32_get(rec.body.p + 4));
	}
}

/* Fault 40: 99 of 100 are deleted, every 100th stays. */
TEST_LIMIT(disk_stays_under_three_times_what_lives_and_4_segments, 120)
{
	uint64_t dice = test_seed();
	struct store *s = store_new(2);

	for (int i = 0; i < 30000; i++) {
		batch(s, &dice, 100, i / 1000 % 2 == 0);
		check_bound(s);
	}
	check_values(s);
	printf("# %" PRIu64 " bytes put, %" PRIu64 " copied\n", s->put, s->copied);
	CHECK(s->copied < 2 * s->put);
	store_free(s);
}

TEST(in_the_long_run_segments_are_recycled_and_none_is_made)
{
	uint64_t dice = test_seed();
	struct store *s = store_new(2);
	struct wal_stats stats;

	for (int i = 0; i < 20000; i++) {
		if (i == 10000)
			s->disk.counts[SIM_CREATE] = 0;
		batch(s, &dice, KEYS, i % 2 == 0);
	}
	wal_stats(s->w, &stats);
	printf("# %lu files made, %" PRIu64 " segments begun\n",
	       s->disk.counts[SIM_CREATE], s->put / SEGMENT / 2);
	CHECK(s->disk.counts[SIM_CREATE] < s->put / SEGMENT / 2 / 10);
	store_free(s);
}

TEST_LIMIT(a_store_that_was_cleaned_is_the_same_after_any_end, 120)
{
	uint64_t dice = test_seed();
	struct store *s = store_new(2);
	static uint32_t value[KEYS];
	static bool there[KEYS];

	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 200; i++)
			batch(s, &dice, 20, i % 2 == 0);
		for (uint32_t key = 0; key < KEYS; key++) {
			there[key] = s->where[key].length > 0;
			value[key] = s->value[key];
		}
		wal_cursor_close(&s->cursor);
		s->disk.dead = true;
		wal_close(s->w);
		simdisk_crash(&s->disk, test_random(&dice));
		store_open(s);
		for (uint32_t key = 0; key < KEYS; key++) {
			CHECK_EQ(there[key], s->where[key].length > 0);
			if (there[key])
				CHECK_EQ(value[key], s->value[key]);
		}
		check_values(s);
	}
	store_free(s);
}

TEST(only_sealed_segments_are_cleaned)
{
	struct store *s = store_new(0);

	CHECK_EQ(0, wal_oldest(s->w));
	CHECK_EQ(0, wal_excess(s->w));
	for (uint32_t key = 0; key < 200; key++)
		remember(s, s->w, key, 1, append(s, PUT, key, 1, 1000));
	commit(s);
	CHECK_EQ(1, wal_oldest(s->w));
	CHECK_EQ(0, wal_excess(s->w));
	for (uint32_t key = 0; key < 150; key++)
		forget(s, s->w, key);
	CHECK(wal_excess(s->w) > 0);
	clean(s, UINT64_MAX);
	commit(s);
	CHECK_EQ(2, wal_oldest(s->w));
	check_values(s);
	store_free(s);
}

/* WAL-6: the copies are on disk before the original goes. */
TEST(a_segment_is_recycled_only_when_the_copies_are_synced)
{
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct store *s = store_new(0);
		unsigned there = 0;

		for (uint32_t key = 0; key < 100; key++)
			remember(s, s->w, key, key, append(s, PUT, key, key, 1000));
		commit(s);
		clean(s, UINT64_MAX);
		CHECK_EQ(0, wal_commit(s->w, false, &s->err));
		wal_cursor_close(&s->cursor);
		CHECK_EQ(0, wal_recycle(s->w, &s->err));
		s->disk.dead = true;
		wal_close(s->w);
		simdisk_crash(&s->disk, seed);
		store_open(s);
		for (uint32_t key = 0; key < 100; key++)
			there += s->where[key].length > 0;
		CHECK_EQ(100, there);
		store_free(s);
	}
}

TEST(a_cursor_names_what_it_cannot_read)
{
	struct wal_record rec;
	struct wal_cursor c;
	size_t size;

	walkit_start(SEGMENT);
	for (int i = 0; i < 300; i++)
		CHECK_EQ(0, walkit_group(1, 300, true));
	CHECK_EQ(SLU_ENOTFOUND, wal_cursor_open(&c, k.w, 99, &k.err));
	CHECK_EQ(0, wal_cursor_open(&c, k.w, 1, &k.err));
	CHECK_EQ(0, wal_cursor_next(&c, &rec, &k.err));
	CHECK_EQ(2, rec.seq);
	wal_cursor_close(&c);
	walkit_file("00000001.log", &size)[rec.where.offset + rec.where.length + 50] ^= 4;
	CHECK_EQ(0, wal_cursor_open(&c, k.w, 1, &k.err));
	CHECK_EQ(0, wal_cursor_next(&c, &rec, &k.err));
	CHECK_EQ(SLU_ECORRUPT, wal_cursor_next(&c, &rec, &k.err));
	CHECK_CONTAINS("00000001.log: bad record at 448", k.err.text);
	wal_cursor_close(&c);
	wal_cursor_close(&c);
}
