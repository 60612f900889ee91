/*
 * log_file_io.c - the bytes of payload files: written once, read in pieces.
 */
#include "engine/log_file.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "base/mem.h"
#include "wal/wal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

enum {
	VERSION = 1,
	HEAD_FIXED = 64,
	SYNC_EVERY = 4 << 20 /* so that nobody else's sync waits long */
};

static const char magic[8] = "sluicepl";

static uint64_t
blocks_of(uint64_t size)
{
	return (size + LOG_FILE_BYTES - 1) / LOG_FILE_BYTES;
}

static uint64_t
offset_of(uint64_t block)
{
	return LOG_FILE_HEAD + block * LOG_FILE_BLOCK;
}

static void
fill_head(const struct log_file *f, char head[static HEAD_FIXED])
{
	memset(head, 0, HEAD_FIXED);
	memcpy(head, magic, sizeof magic);
	le32_put(head + 8, VERSION);
	le32_put(head + 16, f->mark);
	le64_put(head + 24, f->number);
	le64_put(head + 32, f->size);
	le32_put(head + 12, crc32c(0, head, HEAD_FIXED));
}

/* ---- Reading ---- */

/* Every reader has a pin, so nobody closes it meanwhile. -1: it is not open. */
static int
opened(struct log_file *f)
{
	int fd;

	pthread_mutex_lock(&f->home->mtx);
	fd = f->fd;
	pthread_mutex_unlock(&f->home->mtx);
	return fd;
}

/* Of two that opened it at once the first counts; the other's is the caller's to close. */
static int
keep_open(struct log_file *f, int *fd)
{
	int other = -1;

	pthread_mutex_lock(&f->home->mtx);
	if (f->fd < 0) {
		f->fd = *fd;
	} else {
		other = *fd;
		*fd = f->fd;
	}
	pthread_mutex_unlock(&f->home->mtx);
	return other;
}

/* Not under the mutex: nobody else is to wait for the disk. */
static int
open_file(struct log_file *f, int *fd, struct slu_err *err)
{
	struct log_files *s = f->home;
	char name[LOG_FILE_NAME];
	int other;

	*fd = opened(f);
	if (*fd >= 0)
		return 0;
	*fd = s->disk->ops->open(s->disk, s->folder, log_file_name(f->number, name));
	if (*fd == -ENOENT)
		return slu_fail(err, SLU_ECORRUPT, "%s is missing", name);
	if (*fd < 0)
		return disk_fail(*fd, "open", name, err);
	other = keep_open(f, fd);
	if (other >= 0)
		s->disk->ops->close(s->disk, other);
	return 0;
}

static int
damaged(const struct log_file *f, const char *what, uint64_t offset, struct slu_err *err)
{
	char name[LOG_FILE_NAME];

	return slu_fail(err, SLU_ECORRUPT, "%s: %s at %" PRIu64,
			log_file_name(f->number, name), what, offset);
}

/* p has room for a whole block; the payload begins 4 bytes behind it. */
static int
read_block(struct log_file *f, int fd, uint64_t block, char *p, bool may_block,
	   struct slu_err *err)
{
	struct disk *disk = f->home->disk;
	const uint64_t rest = f->size - block * LOG_FILE_BYTES;
	const size_t n = rest < LOG_FILE_BYTES ? (size_t)rest : LOG_FILE_BYTES;
	const uint64_t from = offset_of(block);
	char name[LOG_FILE_NAME];
	int64_t got;

	got = may_block ? disk->ops->read(disk, fd, p, n + 4, from)
			: disk->ops->read_now(disk, fd, p, n + 4, from);
	if (got == -EAGAIN)
		return SLU_EBUSY;
	if (got < 0)
		return disk_fail(got, "read", log_file_name(f->number, name), err);
	if (got < (int64_t)n + 4)
		return damaged(f, "it ends", from + (uint64_t)got, err);
	if (le32_get(p) != log_file_sum(f, block, p + 4, n))
		return damaged(f, "bad block", from, err);
	return 0;
}

static int
read_blocks(struct log_file *f, int fd, uint64_t at, size_t n, char *out, char *room,
	    bool may_block, struct slu_err *err)
{
	while (n > 0) {
		const uint64_t block = at / LOG_FILE_BYTES;
		const size_t skip = (size_t)(at % LOG_FILE_BYTES);
		const size_t k = n < LOG_FILE_BYTES - skip ? n : LOG_FILE_BYTES - skip;
		const int rc = read_block(f, fd, block, room, may_block, err);

		if (rc)
			return rc;
		memcpy(out, room + 4 + skip, k);
		out += k;
		at += k;
		n -= k;
	}
	return 0;
}

int
log_file_read(struct log_file *f, uint64_t at, size_t n, char *out, bool may_block,
	      struct slu_err *err)
{
	char *room;
	int fd, rc;

	if (at > f->size || n > f->size - at)
		return slu_fail(err, SLU_EINVAL, "%zu bytes at %" PRIu64 " of %" PRIu64, n,
				at, f->size);
	if (!may_block && opened(f) < 0)
		return SLU_EBUSY;
	room = mem_alloc(LOG_FILE_BLOCK);
	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory to read a payload");
	rc = open_file(f, &fd, err);
	if (!rc)
		rc = read_blocks(f, fd, at, n, out, room, may_block, err);
	mem_free(room);
	return rc;
}

static int
check_head(struct log_file *f, int fd, struct slu_err *err)
{
	char head[HEAD_FIXED], want[HEAD_FIXED];
	char name[LOG_FILE_NAME];
	int64_t got;

	got = f->home->disk->ops->read(f->home->disk, fd, head, sizeof head, 0);
	if (got < 0)
		return disk_fail(got, "read", log_file_name(f->number, name), err);
	if (got == sizeof head && memcmp(head, magic, 8) == 0 && le32_get(head + 8) > VERSION)
		return slu_fail(err, SLU_EINVAL, "%s: written by a newer version",
				log_file_name(f->number, name));
	fill_head(f, want);
	if (got < (int64_t)sizeof head || memcmp(head, want, sizeof head) != 0)
		return damaged(f, "bad head", 0, err);
	return 0;
}

int
log_file_check(struct log_file *f, struct slu_err *err)
{
	char *room = mem_alloc(LOG_FILE_BLOCK);
	int fd, rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory to read a payload");
	rc = open_file(f, &fd, err);
	if (!rc)
		rc = check_head(f, fd, err);
	for (uint64_t i = 0; !rc && i < blocks_of(f->size); i++)
		rc = read_block(f, fd, i, room, true, err);
	mem_free(room);
	return rc;
}

/* ---- Copying ---- */

uint64_t
log_file_length(const struct log_file *f)
{
	return LOG_FILE_HEAD + f->size + 4 * blocks_of(f->size);
}

int
log_file_raw(struct log_file *f, uint64_t at, size_t n, char *out, struct slu_err *err)
{
	struct disk *disk = f->home->disk;
	char name[LOG_FILE_NAME];
	int64_t got;
	int fd, rc;

	rc = open_file(f, &fd, err);
	if (rc)
		return rc;
	got = disk->ops->read(disk, fd, out, n, at);
	if (got < 0)
		return disk_fail(got, "read", log_file_name(f->number, name), err);
	return got < (int64_t)n ? damaged(f, "it ends", at + (uint64_t)got, err) : 0;
}

static int
copy_bytes(struct log_file *f, int from, struct log_files *to, int fd, struct slu_err *err)
{
	char *room = mem_alloc(LOG_FILE_BLOCK);
	char head[HEAD_FIXED], name[LOG_FILE_NAME];
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory to copy a payload");
	fill_head(f, head);
	rc = to->disk->ops->write(to->disk, fd, head, sizeof head, 0);
	for (uint64_t i = 0; !rc && i < blocks_of(f->size); i++) {
		const uint64_t rest = f->size - i * LOG_FILE_BYTES;
		const size_t n = rest < LOG_FILE_BYTES ? (size_t)rest : LOG_FILE_BYTES;

		rc = read_block(f, from, i, room, true, err);
		if (rc) {
			mem_free(room);
			return rc;
		}
		rc = to->disk->ops->write(to->disk, fd, room, n + 4, offset_of(i));
	}
	mem_free(room);
	if (!rc)
		rc = to->disk->ops->sync(to->disk, fd);
	if (!rc)
		rc = to->disk->ops->sync_folder(to->disk, to->own);
	return rc ? disk_fail(rc, "copy", log_file_name(f->number, name), err) : 0;
}

static int
copy_file(struct log_file *f, struct log_files *to, struct slu_err *err)
{
	char name[LOG_FILE_NAME];
	int from, fd, rc;

	rc = open_file(f, &from, err);
	if (!rc)
		rc = check_head(f, from, err);
	if (rc)
		return rc;
	fd = to->disk->ops->create(to->disk, to->folder, log_file_name(f->number, name));
	if (fd < 0)
		return disk_fail(fd, "create", name, err);
	rc = copy_bytes(f, from, to, fd, err);
	to->disk->ops->close(to->disk, fd);
	if (rc)
		(void)to->disk->ops->remove(to->disk, to->folder, name); /* else F2 */
	return rc;
}

int
log_file_copy(struct log_files *from, const struct message *m, struct log_files *to,
	      struct slu_err *err)
{
	struct log_file *f;
	uint32_t handle;
	int rc;

	rc = log_files_name(from, m, &handle, err);
	if (rc)
		return rc;
	f = log_files_pin(from, handle);
	rc = f->names > 1 ? SLU_EEXISTS : copy_file(f, to, err);
	log_file_unpin(f);
	return rc;
}

/* ---- Writing ---- */

struct log_writer {
	struct log_file *file;
	int fd;          /* -1: given up */
	size_t n;        /* bytes in the block */
	uint64_t synced; /* bytes of the file */
	char block[LOG_FILE_BLOCK];
};

static struct log_writer *
of_file(struct engine_file *w)
{
	return (struct log_writer *)w;
}

/* F5: for what is written until the next time this is asked. */
static int
check_room(const struct log_files *s, struct slu_err *err)
{
	const int64_t room = s->disk->ops->room(s->disk, s->folder);

	if (room >= 0 && (uint64_t)room < wal_owed(s->wal) + SYNC_EVERY)
		return slu_fail(err, SLU_EFULL, "the disk has no room for a payload");
	return 0;
}

/* Nothing is left behind: ENOSPC wants its room back at once. */
static int
give_up(struct log_writer *w, int rc)
{
	struct log_files *s = w->file->home;
	char name[LOG_FILE_NAME];

	if (w->fd < 0)
		return rc;
	s->disk->ops->close(s->disk, w->fd);
	w->fd = -1;
	(void)s->disk->ops->remove(s->disk, s->folder,
				   log_file_name(w->file->number, name)); /* else F2 */
	return rc;
}

int
log_writer_open(struct log_files *s, struct engine_file **out, struct slu_err *err)
{
	struct log_writer *w;
	char name[LOG_FILE_NAME];
	int rc;

	rc = check_room(s, err);
	if (!rc)
		rc = log_files_folder(s, err);
	if (rc)
		return rc;
	w = mem_alloc(sizeof *w);
	if (!w)
		return slu_fail(err, SLU_ENOMEM, "no memory to write a payload");
	w->n = 0;
	w->synced = 0;
	rc = log_files_make(s, &w->file, err);
	if (rc) {
		mem_free(w);
		return rc;
	}
	w->fd = s->disk->ops->create(s->disk, s->folder, log_file_name(w->file->number, name));
	if (w->fd < 0) {
		rc = disk_fail(w->fd, "create", name, err);
		w->fd = -1;
		log_writer_close((struct engine_file *)w);
		return rc;
	}
	*out = (struct engine_file *)w;
	return 0;
}

static int
write_block(struct log_writer *w, struct slu_err *err)
{
	struct log_file *f = w->file;
	struct log_files *s = f->home;
	const uint64_t block = f->size / LOG_FILE_BYTES;
	const uint64_t to = offset_of(block);
	char name[LOG_FILE_NAME];
	int rc;

	le32_put(w->block, log_file_sum(f, block, w->block + 4, w->n));
	rc = s->disk->ops->write(s->disk, w->fd, w->block, w->n + 4, to);
	if (!rc && to - w->synced >= SYNC_EVERY) {
		rc = s->disk->ops->sync(s->disk, w->fd);
		w->synced = to;
		if (!rc && check_room(s, err))
			return SLU_EFULL;
	}
	if (rc)
		return disk_fail(rc, "write", log_file_name(f->number, name), err);
	f->size += w->n;
	w->n = 0;
	return 0;
}

int
log_writer_write(struct engine_file *file, const void *p, size_t n, struct slu_err *err)
{
	struct log_writer *w = of_file(file);
	int rc = 0;

	if (w->fd < 0)
		return slu_fail(err, SLU_EDOWN, "writing this payload has failed");
	if (n > MESSAGE_PAYLOAD_MAX - w->file->size - w->n)
		return give_up(w, slu_fail(err, SLU_ETOOBIG, "a payload of more than %d bytes",
					   MESSAGE_PAYLOAD_MAX));
	while (n > 0 && !rc) {
		const size_t room = LOG_FILE_BYTES - w->n;
		const size_t k = n < room ? n : room;

		memcpy(w->block + 4 + w->n, p, k);
		w->n += k;
		p = (const char *)p + k;
		n -= k;
		if (w->n == LOG_FILE_BYTES)
			rc = write_block(w, err);
	}
	return rc ? give_up(w, rc) : 0;
}

/* F1 */
static int
write_end(struct log_writer *w, struct slu_err *err)
{
	struct log_file *f = w->file;
	struct log_files *s = f->home;
	char head[HEAD_FIXED], name[LOG_FILE_NAME];
	int rc = 0;

	if (w->n > 0)
		rc = write_block(w, err);
	if (rc)
		return rc;
	fill_head(f, head);
	rc = s->disk->ops->write(s->disk, w->fd, head, sizeof head, 0);
	if (!rc)
		rc = s->disk->ops->sync(s->disk, w->fd);
	if (!rc)
		rc = s->disk->ops->sync_folder(s->disk, s->own);
	return rc ? disk_fail(rc, "write", log_file_name(f->number, name), err) : 0;
}

int
log_writer_seal(struct engine_file *file, struct message *m, struct slu_err *err)
{
	struct log_writer *w = of_file(file);
	const struct log_file *f = w->file;
	int rc;

	if (w->fd < 0)
		return slu_fail(err, SLU_EDOWN, "writing this payload has failed");
	rc = write_end(w, err);
	if (rc)
		return give_up(w, rc);
	f->home->disk->ops->close(f->home->disk, w->fd);
	w->fd = -1;
	m->file = f->number;
	m->mark = f->mark;
	m->payload_size = f->size;
	m->payload = (struct slice){ 0 };
	return 0;
}

void
log_writer_close(struct engine_file *file)
{
	struct log_writer *w = of_file(file);

	(void)give_up(w, 0);
	log_files_unmake(w->file);
	mem_free(w);
}
