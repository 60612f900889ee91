#include "cli/backup/stored.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "base/mem.h"
#include "wal/segment.h"

#include <inttypes.h>

enum {
	PIECE = 1 << 20,
	AT_SEGMENT_SIZE = 40 /* H8 of docs/log-format.md */
};

static int
load_manifest(struct stored *b, struct slu_err *err)
{
	struct slu_err why;
	uint64_t bytes;
	char *text;
	int rc;

	rc = archive_find(&b->archive, MANIFEST_NAME, &bytes, &why);
	if (rc == SLU_ENOTFOUND)
		return slu_fail(err, SLU_EINVAL, "missing %s: not a backup, or incomplete",
				MANIFEST_NAME);
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "%s", why.text);
	text = bytes <= MANIFEST_BYTES_MAX ? mem_alloc(bytes + 1) : NULL;
	if (!text)
		return slu_fail(err, SLU_ENOMEM, "no memory for %s", MANIFEST_NAME);
	rc = archive_read(&b->archive, text, bytes, err);
	if (!rc && manifest_read(&b->manifest, (struct slice){ text, bytes }, &why))
		rc = slu_fail(err, SLU_EINVAL, "%s: %s", MANIFEST_NAME, why.text);
	mem_free(text);
	return rc;
}

int
stored_open(struct stored *b, const char *path, struct slu_err *err)
{
	struct slu_err why;
	int rc;

	*b = (struct stored){ .room = mem_alloc(PIECE) };
	if (!b->room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = archive_open(&b->archive, path, err);
	if (!rc && load_manifest(b, &why))
		rc = slu_fail(err, why.code, "%s: %.200s", path, why.text);
	return rc;
}

void
stored_close(struct stored *b)
{
	archive_close(&b->archive);
	manifest_release(&b->manifest);
	mem_free(b->room);
	b->room = NULL;
}

static bool
is_segment(const char *name)
{
	const size_t n = strlen(name);

	return n > 4 && strcmp(name + n - 4, ".log") == 0;
}

/* Checks the size: a segment stores the size of its file in its head; other files have no zeros at the end. */
static int
check_size(const struct manifest_file *f, const char *first, size_t n, struct slu_err *err)
{
	uint64_t size = f->bytes;

	if (is_segment(f->name)) {
		if (n < SEGMENT_HEAD)
			return slu_fail(err, SLU_ECORRUPT, "%s is damaged in the backup: missing head", f->name);
		size = le64_get(first + AT_SEGMENT_SIZE);
	}
	if (size != f->size)
		return slu_fail(err, SLU_ECORRUPT,
				"%s: " MANIFEST_NAME " says that it is %" PRIu64 " bytes long, the file says %" PRIu64,
				f->name, f->size, size);
	return 0;
}

static int
find(struct stored *b, const struct manifest_file *f, struct slu_err *err)
{
	uint64_t bytes;
	const int rc = archive_find(&b->archive, f->name, &bytes, err);

	if (rc == SLU_ENOTFOUND)
		return slu_fail(err, SLU_ECORRUPT, "missing in the backup: %s", f->name);
	if (!rc && bytes != f->bytes)
		return slu_fail(err, SLU_ECORRUPT, "%s has %" PRIu64 " bytes in the backup, not %" PRIu64,
				f->name, bytes, f->bytes);
	return rc;
}

int
stored_read(struct stored *b, const struct manifest_file *f, stored_take *take, void *arg,
	    struct slu_err *err)
{
	uint64_t at = 0;
	uint32_t sum = 0;
	int rc = find(b, f, err);

	if (!rc && f->bytes == 0)
		rc = check_size(f, NULL, 0, err);
	while (!rc && at < f->bytes) {
		const uint64_t left = f->bytes - at;
		const size_t n = left < PIECE ? (size_t)left : PIECE;

		rc = archive_read(&b->archive, b->room, n, err);
		if (!rc && at == 0)
			rc = check_size(f, b->room, n, err);
		if (!rc && take)
			rc = take(arg, b->room, n, err);
		sum = crc32c(sum, b->room, n);
		at += n;
	}
	if (!rc && sum != f->crc32c)
		rc = slu_fail(err, SLU_ECORRUPT, "%s is damaged in the backup: wrong checksum",
			      f->name);
	return rc;
}
