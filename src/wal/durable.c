#include "wal/durable.h"

#include "base/crc32c.h"
#include "base/le.h"

#include <errno.h>

enum {
	FILE_SIZE = 512,
	USED = 24,
	AT_SEQ = 0,
	AT_TIME = 8,
	AT_VERSION = 16,
	AT_SUM = 20,
	VERSION = 1
};

static const char name[] = "durable";

static int
create(struct durable *d, int folder, struct slu_err *err)
{
	static const char zeros[FILE_SIZE];
	const struct disk_ops *ops = d->disk->ops;
	int rc;

	d->file = ops->create(d->disk, folder, name);
	if (d->file < 0)
		return disk_fail(d->file, "create", name, err);
	rc = ops->write(d->disk, d->file, zeros, sizeof zeros, 0);
	if (!rc)
		rc = ops->sync(d->disk, d->file);
	if (!rc)
		rc = ops->sync_folder(d->disk, folder);
	return rc ? disk_fail(rc, "create", name, err) : 0;
}

static int
load(struct durable *d, struct slu_err *err)
{
	static const char zeros[USED];
	char p[USED] = { 0 };
	const int64_t got = d->disk->ops->read(d->disk, d->file, p, sizeof p, 0);

	if (got < 0)
		return disk_fail(got, "read", name, err);
	if (memcmp(p, zeros, sizeof zeros) == 0)
		return 0; /* a new file, or a power cut before the first sync */
	if (crc32c(0, p, AT_SUM) != le32_get(p + AT_SUM))
		return slu_fail(err, SLU_ECORRUPT,
				"%s: damaged at 0; check the log, then remove this file", name);
	if (le32_get(p + AT_VERSION) > VERSION)
		return slu_fail(err, SLU_EINVAL, "%s: version %u is newer than %d", name,
				(unsigned)le32_get(p + AT_VERSION), VERSION);
	d->seq = le64_get(p + AT_SEQ);
	d->time = (slu_time)le64_get(p + AT_TIME);
	return 0;
}

int
durable_open(struct durable *d, struct disk *disk, int folder, bool read_only,
	     struct slu_err *err)
{
	*d = (struct durable){ .disk = disk };
	d->file = disk->ops->open(disk, folder, name);
	if (d->file >= 0) {
		d->found = true;
		return load(d, err);
	}
	if (d->file != -ENOENT)
		return disk_fail(d->file, "open", name, err);
	return read_only ? 0 : create(d, folder, err);
}

void
durable_close(struct durable *d)
{
	if (d->disk && d->file >= 0)
		d->disk->ops->close(d->disk, d->file);
	*d = (struct durable){ .file = -1 };
}

int
durable_put(struct durable *d, uint64_t seq, slu_time time, struct slu_err *err)
{
	char p[USED];
	int rc;

	le64_put(p + AT_SEQ, seq);
	le64_put(p + AT_TIME, (uint64_t)time);
	le32_put(p + AT_VERSION, VERSION);
	le32_put(p + AT_SUM, crc32c(0, p, AT_SUM));
	rc = d->disk->ops->write(d->disk, d->file, p, sizeof p, 0);
	if (rc)
		return disk_fail(rc, "write", name, err);
	d->seq = seq;
	d->time = time;
	return 0;
}
