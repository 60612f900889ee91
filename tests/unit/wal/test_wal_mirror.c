/*
 * A log with a mirror (WAL-10): the mirror receives every byte, and the folder is a cache.
 */
#include "test.h"

#include "base/bytes.h"
#include "base/le.h"
#include "walkit.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	PIECES = 4096,
	SEGMENT = 16 << 10
};

static struct {
	struct piece {
		uint32_t segment, offset;
		char *p;
		size_t n;
	} pieces[PIECES];
	unsigned n;
	uint32_t recycled; /* the last one */
	unsigned mended;
} copy;

static void
wrote(void *arg, uint32_t segment, uint32_t offset, struct slice bytes)
{
	struct piece *const p = &copy.pieces[copy.n++];

	(void)arg;
	CHECK(copy.n <= PIECES);
	*p = (struct piece){ segment, offset, malloc(bytes.n), bytes.n };
	memcpy(p->p, bytes.p, bytes.n);
}

static void
recycled(void *arg, uint32_t segment)
{
	(void)arg;
	CHECK_EQ(copy.recycled + 1, segment);
	copy.recycled = segment;
}

static void
write_piece(struct disk *disk, int folder, const struct piece *p)
{
	char name[32];
	int file;

	(void)snprintf(name, sizeof name, "%08u.log", p->segment);
	file = p->offset ? disk->ops->open(disk, folder, name) : disk->ops->create(disk, folder, name);
	CHECK(file >= 0);
	if (p->offset == 0)
		CHECK_EQ(0, disk->ops->allocate(disk, file, le64_get(p->p + 40)));
	CHECK_EQ(0, disk->ops->write(disk, file, p->p, p->n, p->offset));
	disk->ops->close(disk, file);
}

/* An empty folder gets what the mirror has. */
static int
mend(void *arg, struct disk *disk, int folder, struct slu_err *err)
{
	(void)arg;
	(void)err;
	copy.mended++;
	for (unsigned i = 0; i < copy.n; i++)
		if (copy.pieces[i].segment > copy.recycled)
			write_piece(disk, folder, &copy.pieces[i]);
	return 0;
}

static const struct wal_mirror mirror = { .mend = mend, .wrote = wrote, .recycled = recycled };

/* Another machine: an empty disk, and the mirror. */
static void
move_to_another_machine(void)
{
	walkit_close();
	simdisk_release(&k.disk);
	simdisk_init(&k.disk);
}

static void
drop_copy(void)
{
	for (unsigned i = 0; i < copy.n; i++)
		free(copy.pieces[i].p);
}

TEST(WAL_10_the_mirror_has_the_whole_log)
{
	walkit_init(SEGMENT);
	k.conf.mirror = &mirror;
	CHECK_EQ(0, walkit_open());
	for (unsigned i = 0; i < 60; i++)
		CHECK_EQ(0, walkit_group(1 + i % 5, 16 + i * 20, true));
	CHECK(k.where.segment > 4);
	move_to_another_machine();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(60, k.seen);
	CHECK_EQ(2, copy.mended);
	CHECK_EQ(0, walkit_group(1, 16, true));
	walkit_close();
	drop_copy();
	CHECK_STR("", k.logged);
}

TEST(WAL_10_the_mirror_learns_which_segments_are_gone)
{
	walkit_init(SEGMENT);
	k.conf.mirror = &mirror;
	CHECK_EQ(0, walkit_open());
	for (unsigned i = 0; i < 60; i++)
		CHECK_EQ(0, walkit_group(1, 2000, true));
	CHECK_EQ(0, walkit_recycle());
	CHECK_EQ(0, walkit_recycle());
	CHECK_EQ(2, copy.recycled);
	move_to_another_machine();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(60, k.seen);
	walkit_close();
	drop_copy();
}

TEST(WAL_10_nothing_is_synced_and_there_is_no_durable)
{
	size_t size;

	walkit_init(SEGMENT);
	k.conf.mirror = &mirror;
	CHECK_EQ(0, walkit_open());
	for (unsigned i = 0; i < 60; i++)
		CHECK_EQ(0, walkit_group(1, 2000, true));
	CHECK(!wal_wants_spare(k.w));
	walkit_close();
	CHECK_EQ(0, k.disk.counts[SIM_SYNC]);
	CHECK_EQ(0, k.disk.counts[SIM_SYNC_FOLDER]);
	CHECK(!simdisk_content(&k.disk, "wal/durable", &size));
	drop_copy();
}
