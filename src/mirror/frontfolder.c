#include "mirror/frontfolder.h"

#include "base/crc32c.h"
#include "base/le.h"

#include <errno.h>
#include <string.h>

enum {
	SIZE = 48,
	AT_SUM = 8,
	AT_FORMAT = 12,
	AT_UUID = 16,
	AT_STATE = 32,
	FORMAT = 1
};

static const char name[] = "front";
static const char fresh[] = "front.tmp"; /* while it is written */
static const char magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 'f', 'r' };

static int
decode(struct frontfolder *f, const char p[static SIZE], struct slu_err *err)
{
	const uint32_t state = le32_get(p + AT_STATE);

	if (memcmp(p, magic, sizeof magic) != 0 || crc32c(0, p + AT_FORMAT, SIZE - AT_FORMAT) != le32_get(p + AT_SUM))
		return slu_fail(err, SLU_ECORRUPT, "the file %s is damaged", name);
	if (le32_get(p + AT_FORMAT) > FORMAT || state == FRONT_NONE || state >= FRONT_STATES)
		return slu_fail(err, SLU_EINVAL, "the file %s is of a newer version", name);
	f->state = (enum front_state)state;
	memcpy(f->uuid, p + AT_UUID, FRONT_UUID);
	return 0;
}

int
frontfolder_read(struct frontfolder *f, struct disk *disk, int folder, struct slu_err *err)
{
	const int file = disk->ops->open(disk, folder, name);
	char p[SIZE] = { 0 };
	int64_t got;

	*f = (struct frontfolder){ 0 };
	if (file == -ENOENT)
		return 0;
	if (file < 0)
		return disk_fail(file, "open", name, err);
	got = disk->ops->read(disk, file, p, sizeof p, 0);
	disk->ops->close(disk, file);
	return got < 0 ? disk_fail(got, "read", name, err) : decode(f, p, err);
}

static int
write_fresh(const char *p, size_t n, struct disk *disk, int folder)
{
	int file, rc;

	(void)disk->ops->remove(disk, folder, fresh); /* of a killed process */
	file = disk->ops->create(disk, folder, fresh);
	if (file < 0)
		return file;
	rc = disk->ops->write(disk, file, p, n, 0);
	if (!rc)
		rc = disk->ops->sync(disk, file);
	disk->ops->close(disk, file);
	return rc;
}

int
frontfolder_write(const struct frontfolder *f, struct disk *disk, int folder, struct slu_err *err)
{
	char p[SIZE] = { 0 };
	int rc;

	memcpy(p, magic, sizeof magic);
	le32_put(p + AT_FORMAT, FORMAT);
	memcpy(p + AT_UUID, f->uuid, FRONT_UUID);
	le32_put(p + AT_STATE, f->state);
	le32_put(p + AT_SUM, crc32c(0, p + AT_FORMAT, SIZE - AT_FORMAT));
	rc = write_fresh(p, sizeof p, disk, folder);
	if (!rc)
		rc = disk->ops->rename(disk, folder, fresh, name);
	if (!rc)
		rc = disk->ops->sync_folder(disk, folder);
	return rc ? disk_fail(rc, "write", name, err) : 0;
}

int
frontfolder_remove(struct disk *disk, int folder, struct slu_err *err)
{
	const int rc = disk->ops->remove(disk, folder, name);

	return rc && rc != -ENOENT ? disk_fail(rc, "remove", name, err) : 0;
}

bool
frontfolder_is_log(struct disk *disk, int folder)
{
	struct slu_err err;
	struct frontfolder f;

	return frontfolder_read(&f, disk, folder, &err) != 0 || f.state == FRONT_WHOLE;
}
