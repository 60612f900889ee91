#include "wal/segment.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	AT_MAGIC = 0,
	AT_VERSION = 8,
	AT_SUM = 12,
	AT_SEED = 16,
	AT_NUMBER = 20,
	AT_FIRST_SEQ = 24,
	AT_TIME = 32,
	AT_SIZE = 40
};

static const char magic[8] = "sluicewl"; /* not terminated */

void
segment_name(uint32_t number, char name[static SEGMENT_NAME])
{
	snprintf(name, SEGMENT_NAME, "%08" PRIu32 ".log", number);
}

void
segment_spare_name(uint32_t spare, char name[static SEGMENT_NAME])
{
	snprintf(name, SEGMENT_NAME, "spare-%08" PRIu32, spare);
}

struct segment *
segment_new(struct disk *disk, int file, uint32_t size)
{
	struct segment *s = mem_zalloc(sizeof *s);

	if (!s)
		return NULL;
	s->disk = disk;
	s->file = file;
	s->size = size;
	s->end = SEGMENT_HEAD;
	list_init(&s->node);
	atomic_init(&s->refs, 1);
	return s;
}

void
segment_unref(struct segment *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	s->disk->ops->close(s->disk, s->file);
	mem_free(s);
}

/* The sum of the head, with zeros in place of the sum. */
static uint32_t
head_sum(const char head[static SEGMENT_HEAD])
{
	static const char zeros[4];
	uint32_t sum = crc32c(0, head, AT_SUM);

	sum = crc32c(sum, zeros, sizeof zeros);
	return crc32c(sum, head + AT_SEED, SEGMENT_HEAD - AT_SEED);
}

void
segment_head(const struct segment *s, char head[static SEGMENT_HEAD])
{
	memset(head, 0, SEGMENT_HEAD);
	memcpy(head + AT_MAGIC, magic, sizeof magic);
	le32_put(head + AT_VERSION, SEGMENT_VERSION);
	le32_put(head + AT_SEED, s->seed);
	le32_put(head + AT_NUMBER, s->number);
	le64_put(head + AT_FIRST_SEQ, s->first_seq);
	le64_put(head + AT_TIME, (uint64_t)s->time);
	le64_put(head + AT_SIZE, s->size);
	le32_put(head + AT_SUM, head_sum(head));
}

/* Fills s, which has number, size and name, from the head. */
static int
head_get(struct segment *s, const char head[static SEGMENT_HEAD], struct slu_err *err)
{
	const uint32_t version = le32_get(head + AT_VERSION);

	if (memcmp(head, magic, sizeof magic) != 0 ||
	    head_sum(head) != le32_get(head + AT_SUM))
		return slu_fail(err, SLU_ECORRUPT, "%s: bad head at 0", s->name);
	if (version > SEGMENT_VERSION)
		return slu_fail(err, SLU_EINVAL,
				"%s: format version %" PRIu32 " is newer than this "
				"program's %d; use the program that wrote it",
				s->name, version, SEGMENT_VERSION);
	if (le32_get(head + AT_NUMBER) != s->number)
		return slu_fail(err, SLU_ECORRUPT, "%s: the head names segment %" PRIu32 " at %d",
				s->name, le32_get(head + AT_NUMBER), AT_NUMBER);
	if (le64_get(head + AT_SIZE) != s->size)
		return slu_fail(err, SLU_ECORRUPT,
				"%s: the file has %" PRIu32 " bytes, the head says %" PRIu64 " at %d", s->name,
				s->size, le64_get(head + AT_SIZE), AT_SIZE);
	s->seed = le32_get(head + AT_SEED);
	s->first_seq = le64_get(head + AT_FIRST_SEQ);
	s->time = (slu_time)le64_get(head + AT_TIME);
	return 0;
}

/* Reads the head of an open file. */
static int
read_head(struct segment *s, int64_t size, struct slu_err *err)
{
	char head[SEGMENT_HEAD];
	int rc;

	if (size < SEGMENT_PAGE || size % SEGMENT_PAGE || size > UINT32_MAX)
		return slu_fail(err, SLU_ECORRUPT, "%s: damaged at 0: invalid size: %" PRId64, s->name, size);
	s->size = (uint32_t)size;
	rc = segment_read(s, head, sizeof head, 0, false, err);
	return rc ? rc : head_get(s, head, err);
}

int
segment_open(struct segment **out, struct disk *disk, int folder, uint32_t number,
	     struct slu_err *err)
{
	char name[SEGMENT_NAME];
	struct segment *s;
	int64_t size;
	int file, rc;

	segment_name(number, name);
	file = disk->ops->open(disk, folder, name);
	if (file < 0)
		return disk_fail(file, "open", name, err);
	s = segment_new(disk, file, 0);
	if (!s) {
		disk->ops->close(disk, file);
		return slu_fail(err, SLU_ENOMEM, "open %s: out of memory", name);
	}
	s->number = number;
	s->was_written = true;
	memcpy(s->name, name, sizeof name);
	size = disk->ops->size(disk, file);
	rc = size < 0 ? disk_fail(size, "size of", name, err) : read_head(s, size, err);
	if (rc) {
		segment_unref(s);
		return rc;
	}
	*out = s;
	return 0;
}

void
segment_plan(struct segment *s, uint32_t number, uint32_t seed)
{
	assert(!segment_is_pinned(s)); /* SEGMENT-3 */
	s->number = number;
	s->end = SEGMENT_HEAD;
	s->clear = 0;
	s->live = 0;
	s->uncounted = false;
	s->seed = seed;
}

int
segment_begin(struct segment *s, int folder, uint64_t first_seq, slu_time time,
	      struct slu_err *err)
{
	const struct disk_ops *ops = s->disk->ops;
	char page[SEGMENT_PAGE] = { 0 };
	char spare[SEGMENT_NAME], name[SEGMENT_NAME];
	int rc;

	segment_spare_name(s->spare, spare);
	segment_name(s->number, name);
	s->first_seq = first_seq;
	s->time = time;
	segment_head(s, page);
	rc = ops->write(s->disk, s->file, page, sizeof page, 0);
	if (!rc)
		rc = ops->sync(s->disk, s->file); /* SEGMENT-1: before the name */
	if (!rc)
		rc = ops->rename(s->disk, folder, spare, name);
	if (!rc)
		rc = ops->sync_folder(s->disk, folder);
	if (rc)
		return disk_fail(rc, "begin", name, err);
	memcpy(s->name, name, sizeof name);
	return 0;
}

int
segment_read(const struct segment *s, void *p, size_t n, uint32_t offset, bool now,
	     struct slu_err *err)
{
	const struct disk_ops *ops = s->disk->ops;
	const int64_t got = now ? ops->read_now(s->disk, s->file, p, n, offset)
				: ops->read(s->disk, s->file, p, n, offset);

	if (got == (int64_t)n)
		return 0;
	if (got == -EAGAIN)
		return slu_fail(err, SLU_EBUSY, "%s: not in memory at %" PRIu32,
				s->name, offset);
	if (got < 0)
		return slu_fail(err, SLU_EDOWN, "read %s at %" PRIu32 ": %s", s->name,
				offset, strerror((int)-got));
	return slu_fail(err, SLU_ECORRUPT, "%s: cut at %" PRId64 "; expected %" PRIu32,
			s->name, offset + got, s->size);
}
