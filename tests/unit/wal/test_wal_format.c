/*
 * The bytes on disk, as docs/log-format.md shows them. Whoever changes them changes
 * the version, and goes on reading the old ones.
 */
#include "test.h"

#include "base/le.h"
#include "simdisk.h"
#include "wal/durable.h"
#include "wal/group.h"

#include <stdio.h>
#include <stdlib.h>

static const char golden_head[] =
	"00000000  73 6c 75 69 63 65 77 6c 01 00 00 00 46 4d fd 66\n"
	"00000010  78 56 34 12 01 00 00 00 07 00 00 00 00 00 00 00\n"
	"00000020  00 00 2a 36 fe 9c 97 17 00 20 00 00 00 00 00 00\n"
	"00000030  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n";

static const char golden_group[] =
	"00000040  ae 8a 43 b8 05 00 00 00 07 00 00 00 00 00 00 00\n"
	"00000050  06 00 00 00 00 00 00 00 01 03 00 00 fe ca 00 00\n"
	"00000060  01 00 2a 36 fe 9c 97 17 68 65 6c 6c 6f 00 00 00\n"
	"00000070  7a 62 f4 7a 09 00 00 00 08 00 00 00 00 00 00 00\n"
	"00000080  06 00 00 00 00 00 00 00 02 00 00 00 fe ca 00 00\n"
	"00000090  62 69 67 20 77 6f 72 6c 64 00 00 00 00 00 00 00\n";

static const char golden_durable[] =
	"00000000  08 00 00 00 00 00 00 00 01 00 2a 36 fe 9c 97 17\n"
	"00000010  01 00 00 00 60 6a 95 21 00 00 00 00 00 00 00 00\n";

/* A disk with one segment of two records, and the file `durable`. */
struct golden {
	struct simdisk disk;
	int folder;
	struct segment *segment;
	struct slu_err err;
};

static void
golden_init(struct golden *g)
{
	struct disk *d = &g->disk.disk;
	int file;

	simdisk_init(&g->disk);
	g->folder = d->ops->folder(d, "wal");
	file = d->ops->create(d, g->folder, "spare-00000001");
	CHECK_EQ(0, d->ops->allocate(d, file, 8192));
	g->segment = segment_new(d, file, 8192);
	CHECK(g->segment);
	g->segment->spare = 1;
	segment_plan(g->segment, 1, 0x12345678);
	CHECK_EQ(0, segment_begin(g->segment, g->folder, 7, 1700000000 * SLU_SEC, &g->err));
}

static void
golden_release(struct golden *g)
{
	segment_unref(g->segment);
	simdisk_release(&g->disk);
}

static void
write_group(struct golden *g)
{
	const struct slice hello = SLICE("hello"), world = SLICE("big world");
	struct record r = {
		.seq = 7,
		.durable = 6,
		.time = 1700000000 * SLU_SEC + 1,
		.type = 1,
		.life = 0xcafe,
		.flags = RECORD_GOES_ON | RECORD_HAS_TIME,
		.body = { NULL, hello.n },
		.size = (uint32_t)record_size(hello.n, true),
	};
	struct group group;

	CHECK_EQ(0, group_init(&group));
	CHECK_EQ(0, group_reserve(&group, 200, 1));
	group_add_piece(&group, g->segment, SEGMENT_HEAD);
	group_put(&group, &r, &hello, 1);
	r.seq = 8;
	r.type = 2;
	r.flags = RECORD_GOES_ON;
	r.body.n = world.n;
	r.size = (uint32_t)record_size(world.n, false);
	group_put(&group, &r, &world, 1);
	group_finish(&group);
	CHECK_EQ(4096 - 64, group_piece_size(&group, 0));
	CHECK_EQ(0, g->disk.disk.ops->write(&g->disk.disk, g->segment->file, group.p,
					    group_piece_size(&group, 0), SEGMENT_HEAD));
	group_release(&group);
}

TEST(a_segment_and_its_records_have_these_bytes)
{
	struct golden g;
	size_t size;
	const char *p;

	golden_init(&g);
	write_group(&g);
	p = simdisk_content(&g.disk, "wal/00000001.log", &size);
	CHECK_EQ(8192, size);
	CHECK_STR(golden_head, test_dump(p, 0, 64));
	CHECK_STR(golden_group, test_dump(p, 64, 160));
	golden_release(&g);
}

TEST(durable_has_these_bytes)
{
	struct durable durable;
	struct golden g;
	size_t size;
	const char *p;

	golden_init(&g);
	CHECK_EQ(0, durable_open(&durable, &g.disk.disk, g.folder, false, &g.err));
	CHECK_EQ(0, durable_put(&durable, 8, 1700000000 * SLU_SEC + 1, &g.err));
	p = simdisk_content(&g.disk, "wal/durable", &size);
	CHECK_EQ(512, size);
	CHECK_STR(golden_durable, test_dump(p, 0, 32));
	durable_close(&durable);
	golden_release(&g);
}

TEST(the_document_shows_these_bytes)
{
	const char *text = test_document("log-format.md");

	CHECK_CONTAINS(golden_head, text);
	CHECK_CONTAINS(golden_group, text);
	CHECK_CONTAINS(golden_durable, text);
}

/* Everything that record_get must not take for a record. */
TEST(bytes_that_are_no_record_are_reported)
{
	char good[48], p[48];
	struct record r = { .seq = 9, .type = 1, .body = { NULL, 4 }, .size = 40 };
	const uint32_t salt = 77;

	memset(good, 0, sizeof good);
	record_put_head(good, &r);
	memcpy(good + 32, "body", 4);
	record_seal(good, salt, true);
	CHECK(record_get(good, 40, salt, &r));
	CHECK(!record_get(good, 40, salt + 8, &r));
	CHECK(!record_get(good, 39, salt, &r));
	CHECK(!record_get(good, 31, salt, &r));
	memset(p, 0, sizeof p);
	CHECK(!record_get(p, 40, 0, &r));
	memset(p, 0xff, sizeof p);
	CHECK(!record_get(p, 40, salt, &r));
	for (int i = 24; i < 28; i++) { /* with a good sum: type 0, flags, zeros */
		memcpy(p, good, sizeof p);
		p[i] = i == 24 ? 0 : 4;
		record_seal(p, salt, false);
		CHECK(!record_get(p, 40, salt, &r));
	}
	memcpy(p, good, sizeof p);
	le64_put(p + 8, 0); /* no record has seq 0 */
	record_seal(p, salt, false);
	CHECK(!record_get(p, 40, salt, &r));
}

TEST(sizes_do_not_wrap)
{
	char p[32] = { 0 };
	struct record r = { .seq = 1, .type = 1 };

	record_put_head(p, &r);
	CHECK_EQ(32, record_claims(p, 32));
	le32_put(p + 4, UINT32_MAX);
	CHECK_EQ(0, record_claims(p, UINT32_MAX));
	le32_put(p + 4, UINT32_MAX - 31);
	CHECK_EQ(0, record_claims(p, 1 << 30));
	CHECK(!record_get(p, 32, 0, &r));
}
