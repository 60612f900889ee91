/*
 * fuzz_wal.c - any bytes as the records of a segment, and as the file `durable`.
 *
 * The head is made sound, and so are the sums of records that claim to have one (bit 0
 * of the first byte), so that the search comes further than a CRC.
 *
 *  FUZZWAL-1  Opening a log to look at it changes nothing, and says 0, damage or a newer
 *      version.
 *  FUZZWAL-2  What is replayed lies inside the file and is in order.
 */
#include "fuzz.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "wal/wal.h"

#include <errno.h>

enum {
	SEED = 0x1234,
	SIZE = 3 * SEGMENT_PAGE,
	DURABLE = 24,
	FOLDER = 1,
	LOCK = 2,
	LOG = 3,
	SYNCED = 4
};

struct memory {
	struct disk disk; /* first */
	char log[SIZE];
	char durable[DURABLE];
};

static int
memory_folder(struct disk *d, const char *path)
{
	(void)d;
	(void)path;
	return FOLDER;
}

static int
memory_list(struct disk *d, int folder, disk_name_fn *fn, void *arg)
{
	(void)d;
	(void)folder;
	return fn(arg, "00000001.log");
}

static int
memory_open(struct disk *d, int folder, const char *name)
{
	(void)d;
	(void)folder;
	return name[0] == 'l' ? LOCK : name[0] == 'd' ? SYNCED
						      : LOG;
}

static void
memory_close(struct disk *d, int file)
{
	(void)d;
	(void)file;
}

static int64_t
memory_read(struct disk *d, int file, void *p, size_t n, uint64_t at)
{
	const struct memory *m = (const struct memory *)d;

	FUZZ_CHECK(file == SYNCED || file == LOG);
	FUZZ_CHECK(at + n <= (file == LOG ? SIZE : DURABLE));
	memcpy(p, (file == LOG ? m->log : m->durable) + at, n);
	return (int64_t)n;
}

static int
memory_write(struct disk *d, int file, const void *p, size_t n, uint64_t at)
{
	(void)d;
	(void)p;
	(void)n;
	(void)at;
	FUZZ_CHECK(file == LOCK); /* FUZZWAL-1 */
	return 0;
}

static int64_t
memory_size(struct disk *d, int file)
{
	(void)d;
	return file == LOG ? SIZE : DURABLE;
}

static int
memory_lock(struct disk *d, int file)
{
	(void)d;
	return file == LOCK ? 0 : -EINVAL;
}

/* What is missing here would change something. */
static const struct disk_ops memory_ops = {
	.folder = memory_folder,
	.list = memory_list,
	.open = memory_open,
	.close = memory_close,
	.read = memory_read,
	.write = memory_write,
	.size = memory_size,
	.lock = memory_lock,
};

static void
make_head(char *p, uint64_t first_seq)
{
	memset(p, 0, SEGMENT_HEAD);
	memcpy(p, "sluicewl", 8);
	le32_put(p + 8, SEGMENT_VERSION);
	le32_put(p + 16, SEED);
	le32_put(p + 20, 1);
	le64_put(p + 24, first_seq);
	le64_put(p + 40, SIZE);
	le32_put(p + 12, crc32c(0, p, SEGMENT_HEAD));
}

static void
make_sums(char *log)
{
	uint32_t at = SEGMENT_HEAD, size;

	while (at + RECORD_HEAD <= SIZE) {
		size = record_claims(log + at, SIZE - at);
		if (size)
			record_seal(log + at, SEED + at, false);
		at += size ? size : RECORD_ALIGN;
	}
}

static int
see(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	uint64_t *last = arg;

	(void)w;
	(void)err;
	FUZZ_CHECK(rec->seq > *last); /* FUZZWAL-2 */
	FUZZ_CHECK(rec->where.offset + rec->where.length <= SIZE);
	FUZZ_CHECK(rec->body.n + RECORD_HEAD <= rec->where.length);
	*last = rec->seq;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memory m;
	const struct wal_conf conf = {
		.disk = &m.disk,
		.folder = "wal",
		.segment_size = SIZE,
		.read_only = true,
	};
	struct wal *w = NULL;
	uint64_t last = 0;
	int rc;

	if (size < 1 + DURABLE || size - 1 - DURABLE > SIZE - SEGMENT_HEAD)
		return 0;
	m = (struct memory){ .disk = { &memory_ops } };
	memcpy(m.durable, data + 1, DURABLE);
	memcpy(m.log + SEGMENT_HEAD, data + 1 + DURABLE, size - 1 - DURABLE);
	make_head(m.log, 1 + (data[0] >> 4));
	if (data[0] & 1)
		make_sums(m.log);
	if (data[0] & 2)
		le32_put(m.durable + 20, crc32c(0, m.durable, 20));
	rc = wal_open(&w, &conf, see, &last, NULL);
	FUZZ_CHECK(rc == 0 || rc == SLU_ECORRUPT || rc == SLU_EINVAL);
	wal_close(w);
	return 0;
}
