#include "mirror/heads.h"

#include "base/le.h"
#include "base/mem.h"
#include "mirror/body.h"
#include "wal/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	NAME = LINE_DIGITS + 7, /* with the NUL */
	LENGTH = 4,
	FILE_GROUPS = 1000 /* of a file */
};

static void
file_name(char out[static NAME], uint64_t first)
{
	snprintf(out, NAME, "%0*" PRIu64 ".heads", LINE_DIGITS, first);
}

/* ---- Files ---- */

static int
add_file(struct heads *h, uint64_t first)
{
	uint32_t i = h->n;

	if (h->n == h->max) {
		const uint32_t max = h->max ? 2 * h->max : 16;
		uint64_t *const p = mem_realloc(h->files, max * sizeof *p);

		if (!p)
			return SLU_ENOMEM;
		h->files = p;
		h->max = max;
	}
	while (i > 0 && h->files[i - 1] >= first)
		i--;
	if (i < h->n && h->files[i] == first)
		return 0;
	memmove(h->files + i + 1, h->files + i, (h->n - i) * sizeof *h->files);
	h->files[i] = first;
	h->n++;
	return 0;
}

static int
on_name(void *arg, const char *name)
{
	char same[NAME];
	uint64_t first;

	if (strlen(name) != NAME - 1)
		return 0;
	first = strtoull(name, NULL, 10);
	file_name(same, first);
	return strcmp(name, same) == 0 ? -add_file(arg, first) : 0;
}

int
heads_open(struct heads *h, struct disk *disk, int folder, struct slu_err *err)
{
	int rc;

	*h = (struct heads){ .disk = disk, .folder = folder };
	buf_init(&h->next, SIZE_MAX / 2);
	rc = disk->ops->list(disk, folder, on_name, h);
	return rc == -SLU_ENOMEM ? slu_fail(err, SLU_ENOMEM, "out of memory")
	       : rc              ? disk_fail(rc, "list", "the folder", err)
				 : 0;
}

void
heads_close(struct heads *h)
{
	if (!h->disk)
		return;
	mem_free(h->files);
	buf_release(&h->next);
	*h = (struct heads){ 0 };
}

/* Removes the first n files. */
static int
drop(struct heads *h, uint32_t n, struct slu_err *err)
{
	char name[NAME];
	uint32_t gone = 0;
	int rc = 0;

	for (; gone < n; gone++) {
		file_name(name, h->files[gone]);
		rc = h->disk->ops->remove(h->disk, h->folder, name);
		if (rc && rc != -ENOENT)
			break;
		rc = 0;
	}
	h->n -= gone;
	if (h->n)
		memmove(h->files, h->files + gone, h->n * sizeof *h->files);
	return rc ? disk_fail(rc, "remove", name, err) : 0;
}

int
heads_wipe(struct heads *h, struct slu_err *err)
{
	buf_clear(&h->next);
	h->next_n = 0;
	return drop(h, h->n, err);
}

int
heads_begin(struct heads *h, uint64_t begin, struct slu_err *err)
{
	uint32_t n = 0;

	while (n + 1 < h->n && h->files[n + 1] <= begin)
		n++;
	return drop(h, n, err);
}

/* ---- Add ---- */

/* The bytes of the object in front of the bytes of its pieces. */
static size_t
size_of_head(struct slice object)
{
	const struct slice body = { object.p + LINE_GROUP_HEAD, object.n - LINE_GROUP_HEAD };
	struct body_reader r;

	if (body.n == 0 || body_open(&r, body, NULL))
		return object.n;
	return object.n - r.content.n;
}

static int
write_file(struct heads *h, struct slu_err *err)
{
	const struct disk_ops *const ops = h->disk->ops;
	char name[NAME];
	int file, rc;

	file_name(name, h->next_first);
	(void)ops->remove(h->disk, h->folder, name); /* create reports a name that is still there */
	file = ops->create(h->disk, h->folder, name);
	if (file < 0)
		return disk_fail(file, "create", name, err);
	rc = ops->write(h->disk, file, h->next.p, h->next.n, 0);
	ops->close(h->disk, file);
	return rc ? disk_fail(rc, "write", name, err) : 0;
}

int
heads_flush(struct heads *h, struct slu_err *err)
{
	int rc;

	if (h->next_n == 0)
		return 0;
	rc = h->next.failed || add_file(h, h->next_first) ? slu_fail(err, SLU_ENOMEM, "out of memory")
							  : write_file(h, err);
	buf_clear(&h->next);
	h->next_n = 0;
	return rc;
}

int
heads_add(struct heads *h, uint64_t number, struct slice object, struct slu_err *err)
{
	const size_t n = size_of_head(object);
	char *p;
	int rc = 0;

	if (h->next_n == FILE_GROUPS || number != h->next_first + h->next_n)
		rc = heads_flush(h, err);
	if (h->next_n == 0)
		h->next_first = number;
	h->next_n++;
	p = buf_add(&h->next, LENGTH + n);
	if (p) {
		le32_put(p, (uint32_t)n);
		memcpy(p + LENGTH, object.p, n);
	}
	return rc;
}

/* ---- Get ---- */

/* Reads a part of a file to the end of out. */
static bool
read_part(const struct heads *h, const char *name, size_t n, uint64_t at, struct buf *out)
{
	const int file = h->disk->ops->open(h->disk, h->folder, name);
	char *const p = file < 0 ? NULL : buf_add(out, n);
	bool ok = false;

	if (p)
		ok = h->disk->ops->read(h->disk, file, p, n, at) == (int64_t)n;
	if (file >= 0)
		h->disk->ops->close(h->disk, file);
	return ok;
}

static bool
read_whole(const struct heads *h, uint64_t first, struct buf *out)
{
	char name[NAME];
	int64_t size = -1;
	int file;

	file_name(name, first);
	file = h->disk->ops->open(h->disk, h->folder, name);
	if (file >= 0) {
		size = h->disk->ops->size(h->disk, file);
		h->disk->ops->close(h->disk, file);
	}
	return size >= 0 && read_part(h, name, (size_t)size, 0, out);
}

/* The head of the group among the heads of a file, which begin with group `first`; empty = it is
 * not there. */
static struct slice
find(struct slice heads, uint64_t first, uint64_t number)
{
	for (; heads.n >= LENGTH; first++) {
		const size_t n = le32_get(heads.p);

		if (n > heads.n - LENGTH)
			break;
		if (first == number)
			return (struct slice){ heads.p + LENGTH, n };
		heads.p += LENGTH + n;
		heads.n -= LENGTH + n;
	}
	return (struct slice){ 0 };
}

/* Appends the pieces that the head names. Returns false if the folder lacks one. */
static bool
add_pieces(const struct heads *h, struct slice head, struct buf *out)
{
	const size_t at = LINE_GROUP_HEAD + BODY_HEAD;

	for (size_t i = at; i + BODY_PLACE <= head.n; i += BODY_PLACE) {
		char name[SEGMENT_NAME];

		segment_name(le32_get(head.p + i), name);
		if (!read_part(h, name, le32_get(head.p + i + 8), le32_get(head.p + i + 4), out))
			return false;
	}
	return true;
}

void
heads_get(const struct heads *h, uint64_t number, struct buf *out)
{
	struct slice head = { 0 };
	struct buf heads;

	buf_init(&heads, SIZE_MAX / 2);
	for (uint32_t i = h->n; i-- > 0 && head.n == 0;) {
		if (h->files[i] > number)
			continue;
		buf_clear(&heads);
		if (read_whole(h, h->files[i], &heads))
			head = find(buf_slice(&heads), h->files[i], number);
	}
	buf_put(out, head.p, head.n);
	if (head.n == 0 || !add_pieces(h, head, out))
		buf_clear(out);
	buf_release(&heads);
}
