/*
 * file_io.c - writes payload files once and reads them in blocks.
 */
#include "engine/log/file.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "base/mem.h"
#include "wal/wal.h"

#include <errno.h>
#include <inttypes.h>

enum {
	VERSION = 1,
	HEAD_FIXED = 64,
	SYNC_EVERY = 4 << 20 /* bytes; so that syncs of other files do not wait long */
};

static const char magic[8] = "sluicepl";

static uint64_t
blocks_of(uint64_t size)
{
	return (size + LOGENGINE_FILE_BYTES - 1) / LOGENGINE_FILE_BYTES;
}

static uint64_t
offset_of(uint64_t block)
{
	return LOGENGINE_FILE_HEAD + block * LOGENGINE_FILE_BLOCK;
}

static void
fill_head(const struct logengine_file *f, char head[static HEAD_FIXED])
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

/* The descriptor, or -1 if the file is not open. The reader has a pin, so no other thread
 * closes it. */
static int
opened(struct logengine_file *f)
{
	int fd;

	pthread_mutex_lock(&f->home->mtx);
	fd = f->fd;
	pthread_mutex_unlock(&f->home->mtx);
	return fd;
}

/* Stores *fd. If another thread was faster, sets *fd to its descriptor and returns the
 * caller's, which the caller closes. Returns -1 otherwise. */
static int
keep_open(struct logengine_file *f, int *fd)
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

/* Opens without the mutex, so that other threads do not wait for the disk. */
static int
open_file(struct logengine_file *f, int *fd, struct slu_err *err)
{
	struct logengine_files *s = f->home;
	char name[LOGENGINE_FILE_NAME];
	int other;

	*fd = opened(f);
	if (*fd >= 0)
		return 0;
	*fd = s->disk->ops->open(s->disk, s->folder, logengine_file_name(f->number, name));
	if (*fd == -ENOENT && s->store) {
		const int rc = logengine_file_fetch(f, err);

		if (rc)
			return rc;
		*fd = s->disk->ops->open(s->disk, s->folder, name);
	}
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
damaged(const struct logengine_file *f, const char *what, uint64_t offset, struct slu_err *err)
{
	char name[LOGENGINE_FILE_NAME];

	return slu_fail(err, SLU_ECORRUPT, "%s: %s at %" PRIu64,
			logengine_file_name(f->number, name), what, offset);
}

/* Reads and checks a block. p has room for a whole block; the payload begins at p + 4. */
static int
read_block(struct logengine_file *f, int fd, uint64_t block, char *p, bool may_block,
	   struct slu_err *err)
{
	struct disk *disk = f->home->disk;
	const uint64_t rest = f->size - block * LOGENGINE_FILE_BYTES;
	const size_t n = rest < LOGENGINE_FILE_BYTES ? (size_t)rest : LOGENGINE_FILE_BYTES;
	const uint64_t from = offset_of(block);
	char name[LOGENGINE_FILE_NAME];
	int64_t got;

	got = may_block ? disk->ops->read(disk, fd, p, n + 4, from)
			: disk->ops->read_now(disk, fd, p, n + 4, from);
	if (got == -EAGAIN)
		return SLU_EBUSY;
	if (got < 0)
		return disk_fail(got, "read", logengine_file_name(f->number, name), err);
	if (got < (int64_t)n + 4)
		return damaged(f, "cut", from + (uint64_t)got, err);
	if (le32_get(p) != logengine_file_sum(f, block, p + 4, n))
		return damaged(f, "bad block", from, err);
	return 0;
}

static int
read_blocks(struct logengine_file *f, int fd, uint64_t at, size_t n, char *out, char *room,
	    bool may_block, struct slu_err *err)
{
	while (n > 0) {
		const uint64_t block = at / LOGENGINE_FILE_BYTES;
		const size_t skip = (size_t)(at % LOGENGINE_FILE_BYTES);
		const size_t k = n < LOGENGINE_FILE_BYTES - skip ? n : LOGENGINE_FILE_BYTES - skip;
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
logengine_file_read(struct logengine_file *f, uint64_t at, size_t n, char *out, bool may_block,
		    struct slu_err *err)
{
	char *room;
	int fd, rc;

	if (at > f->size || n > f->size - at)
		return slu_fail(err, SLU_EINVAL, "invalid range: %zu bytes at %" PRIu64 " of %" PRIu64, n,
				at, f->size);
	if (!may_block && opened(f) < 0)
		return SLU_EBUSY;
	room = mem_alloc(LOGENGINE_FILE_BLOCK);
	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory to read a payload");
	rc = open_file(f, &fd, err);
	if (!rc)
		rc = read_blocks(f, fd, at, n, out, room, may_block, err);
	mem_free(room);
	return rc;
}

static int
check_head(struct logengine_file *f, int fd, struct slu_err *err)
{
	char head[HEAD_FIXED], want[HEAD_FIXED];
	char name[LOGENGINE_FILE_NAME];
	int64_t got;

	got = f->home->disk->ops->read(f->home->disk, fd, head, sizeof head, 0);
	if (got < 0)
		return disk_fail(got, "read", logengine_file_name(f->number, name), err);
	if (got == sizeof head && memcmp(head, magic, 8) == 0 && le32_get(head + 8) > VERSION)
		return slu_fail(err, SLU_EINVAL, "%s: a newer version wrote it",
				logengine_file_name(f->number, name));
	fill_head(f, want);
	if (got < (int64_t)sizeof head || memcmp(head, want, sizeof head) != 0)
		return damaged(f, "bad head", 0, err);
	return 0;
}

int
logengine_file_check(struct logengine_file *f, struct slu_err *err)
{
	char *room = mem_alloc(LOGENGINE_FILE_BLOCK);
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

int
logengine_file_store(struct logengine_file *f, struct slu_err *err)
{
	int fd;
	const int rc = open_file(f, &fd, err);

	return rc ? rc : logengine_file_upload(f, fd, err);
}

/* ---- Copying ---- */

uint64_t
logengine_file_length(const struct logengine_file *f)
{
	return LOGENGINE_FILE_HEAD + f->size + 4 * blocks_of(f->size);
}

int
logengine_file_raw(struct logengine_file *f, uint64_t at, size_t n, char *out, struct slu_err *err)
{
	struct disk *disk = f->home->disk;
	char name[LOGENGINE_FILE_NAME];
	int64_t got;
	int fd, rc;

	rc = open_file(f, &fd, err);
	if (rc)
		return rc;
	got = disk->ops->read(disk, fd, out, n, at);
	if (got < 0)
		return disk_fail(got, "read", logengine_file_name(f->number, name), err);
	return got < (int64_t)n ? damaged(f, "cut", at + (uint64_t)got, err) : 0;
}

static int
copy_bytes(struct logengine_file *f, int from, struct logengine_files *to, int fd, struct slu_err *err)
{
	char *room = mem_alloc(LOGENGINE_FILE_BLOCK);
	char head[HEAD_FIXED], name[LOGENGINE_FILE_NAME];
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory to copy a payload");
	fill_head(f, head);
	rc = to->disk->ops->write(to->disk, fd, head, sizeof head, 0);
	for (uint64_t i = 0; !rc && i < blocks_of(f->size); i++) {
		const uint64_t rest = f->size - i * LOGENGINE_FILE_BYTES;
		const size_t n = rest < LOGENGINE_FILE_BYTES ? (size_t)rest : LOGENGINE_FILE_BYTES;

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
	return rc ? disk_fail(rc, "copy", logengine_file_name(f->number, name), err) : 0;
}

static int
copy_file(struct logengine_file *f, struct logengine_files *to, struct slu_err *err)
{
	char name[LOGENGINE_FILE_NAME];
	int from, fd, rc;

	rc = open_file(f, &from, err);
	if (!rc)
		rc = check_head(f, from, err);
	if (rc)
		return rc;
	fd = to->disk->ops->create(to->disk, to->folder, logengine_file_name(f->number, name));
	if (fd < 0)
		return disk_fail(fd, "create", name, err);
	rc = copy_bytes(f, from, to, fd, err);
	to->disk->ops->close(to->disk, fd);
	if (rc)
		(void)to->disk->ops->remove(to->disk, to->folder, name); /* if this fails: FILE-2 */
	return rc;
}

int
logengine_file_copy(struct logengine_files *from, const struct message *m, struct logengine_files *to,
		    struct slu_err *err)
{
	struct logengine_file *f;
	uint32_t handle;
	int rc;

	rc = logengine_files_name(from, m, &handle, err);
	if (rc)
		return rc;
	f = logengine_files_pin(from, handle);
	rc = f->names > 1 ? SLU_EEXISTS : copy_file(f, to, err);
	logengine_file_unpin(f);
	return rc;
}

/* ---- Writing ---- */

struct logengine_writer {
	struct logengine_file *file;
	int fd;          /* -1 = closed: sealed, or a write failed */
	size_t n;        /* bytes in the block */
	uint64_t synced; /* bytes of the file that are synced */
	char block[LOGENGINE_FILE_BLOCK];
};

static struct logengine_writer *
of_file(struct engine_file *w)
{
	return (struct logengine_writer *)w;
}

/* FILE-5: returns SLU_EFULL if the next SYNC_EVERY bytes have no room. */
static int
check_room(const struct logengine_files *s, struct slu_err *err)
{
	const int64_t room = s->disk->ops->room(s->disk, s->folder);

	if (room >= 0 && (uint64_t)room < (s->wal ? wal_owed(s->wal) : 0) + SYNC_EVERY)
		return slu_fail(err, SLU_EFULL, "disk full: no room for a payload");
	return 0;
}

/* Removes the file at once: on a full disk its room is needed. Returns rc. */
static int
give_up(struct logengine_writer *w, int rc)
{
	struct logengine_files *s = w->file->home;
	char name[LOGENGINE_FILE_NAME];

	if (w->fd < 0)
		return rc;
	s->disk->ops->close(s->disk, w->fd);
	w->fd = -1;
	(void)s->disk->ops->remove(s->disk, s->folder,
				   logengine_file_name(w->file->number, name)); /* if this fails: FILE-2 */
	return rc;
}

static int
open_writer(struct logengine_files *s, struct engine_file **out, struct slu_err *err)
{
	struct logengine_writer *w;
	char name[LOGENGINE_FILE_NAME];
	int rc;

	rc = check_room(s, err);
	if (!rc)
		rc = logengine_files_folder(s, err);
	if (rc)
		return rc;
	w = mem_alloc(sizeof *w);
	if (!w)
		return slu_fail(err, SLU_ENOMEM, "no memory to write a payload");
	w->n = 0;
	w->synced = 0;
	rc = logengine_files_make(s, &w->file, err);
	if (rc) {
		mem_free(w);
		return rc;
	}
	w->fd = s->disk->ops->create(s->disk, s->folder, logengine_file_name(w->file->number, name));
	if (w->fd < 0) {
		rc = disk_fail(w->fd, "create", name, err);
		w->fd = -1;
		logengine_writer_close((struct engine_file *)w);
		return rc;
	}
	*out = (struct engine_file *)w;
	return 0;
}

int
logengine_writer_open(struct logengine_files *s, struct engine_file **out, struct slu_err *err)
{
	int rc = logengine_files_enter(s, err);

	if (rc)
		return rc;
	rc = open_writer(s, out, err);
	logengine_files_leave(s);
	return rc;
}

static int
write_block(struct logengine_writer *w, struct slu_err *err)
{
	struct logengine_file *f = w->file;
	struct logengine_files *s = f->home;
	const uint64_t block = f->size / LOGENGINE_FILE_BYTES;
	const uint64_t to = offset_of(block);
	char name[LOGENGINE_FILE_NAME];
	int rc;

	le32_put(w->block, logengine_file_sum(f, block, w->block + 4, w->n));
	rc = s->disk->ops->write(s->disk, w->fd, w->block, w->n + 4, to);
	if (!rc && to - w->synced >= SYNC_EVERY) {
		rc = s->store ? 0 : s->disk->ops->sync(s->disk, w->fd);
		w->synced = to;
		if (!rc && check_room(s, err))
			return SLU_EFULL;
	}
	if (rc)
		return disk_fail(rc, "write", logengine_file_name(f->number, name), err);
	f->size += w->n;
	w->n = 0;
	return 0;
}

int
logengine_writer_write(struct engine_file *file, const void *p, size_t n, struct slu_err *err)
{
	struct logengine_writer *w = of_file(file);
	int rc = 0;

	if (w->fd < 0)
		return slu_fail(err, SLU_EDOWN, "an earlier write of this payload failed");
	if (w->file->home->shut)
		return give_up(w, slu_fail(err, SLU_EDOWN, "the shard has failed"));
	if (n > MESSAGE_PAYLOAD_MAX - w->file->size - w->n)
		return give_up(w, slu_fail(err, SLU_ETOOBIG, "payload too large: more than %d bytes",
					   MESSAGE_PAYLOAD_MAX));
	while (n > 0 && !rc) {
		const size_t room = LOGENGINE_FILE_BYTES - w->n;
		const size_t k = n < room ? n : room;

		memcpy(w->block + 4 + w->n, p, k);
		w->n += k;
		p = (const char *)p + k;
		n -= k;
		if (w->n == LOGENGINE_FILE_BYTES)
			rc = write_block(w, err);
	}
	return rc ? give_up(w, rc) : 0;
}

static int
write_head(struct logengine_writer *w, struct slu_err *err)
{
	struct disk *const disk = w->file->home->disk;
	char head[HEAD_FIXED], name[LOGENGINE_FILE_NAME];
	int rc;

	fill_head(w->file, head);
	rc = disk->ops->write(disk, w->fd, head, sizeof head, 0);
	return rc ? disk_fail(rc, "write", logengine_file_name(w->file->number, name), err) : 0;
}

/* FILE-8: the shard may get another owner while the file is stored; it is then stored once more. The first
 * objects stay: a copy of this node may have had its message accepted (FILE-9). */
static int
store_in_epoch(struct logengine_writer *w, struct slu_err *err)
{
	struct logengine_file *const f = w->file;
	int rc = 0;

	for (int i = 0; i < 2 && !rc; i++) {
		rc = logengine_file_renumber(f, err);
		if (!rc)
			rc = write_head(w, err);
		if (!rc)
			rc = logengine_file_upload(f, w->fd, err);
		if (rc || logengine_file_is_current(f))
			break;
	}
	return rc;
}

static int
sync_file(struct logengine_writer *w, struct slu_err *err)
{
	const struct logengine_files *const s = w->file->home;
	char name[LOGENGINE_FILE_NAME];
	int rc = s->disk->ops->sync(s->disk, w->fd);

	if (!rc)
		rc = s->disk->ops->sync_folder(s->disk, s->own);
	return rc ? disk_fail(rc, "sync", logengine_file_name(w->file->number, name), err) : 0;
}

/* FILE-1 */
static int
write_end(struct logengine_writer *w, struct slu_err *err)
{
	const struct logengine_files *const s = w->file->home;
	int rc = 0;

	if (w->n > 0)
		rc = write_block(w, err);
	if (!rc && s->transit)
		return store_in_epoch(w, err);
	if (!rc)
		rc = write_head(w, err);
	if (rc)
		return rc;
	if (s->store)
		rc = logengine_file_upload(w->file, w->fd, err);
	return rc || (s->store && !s->front) ? rc : sync_file(w, err);
}

int
logengine_writer_seal(struct engine_file *file, struct message *m, struct slu_err *err)
{
	struct logengine_writer *w = of_file(file);
	const struct logengine_file *f = w->file;
	int rc;

	if (w->fd < 0)
		return slu_fail(err, SLU_EDOWN, "an earlier write of this payload failed");
	rc = f->home->shut ? slu_fail(err, SLU_EDOWN, "the shard has failed") : write_end(w, err);
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
logengine_writer_close(struct engine_file *file)
{
	struct logengine_writer *w = of_file(file);

	(void)give_up(w, 0);
	logengine_files_unmake(w->file);
	mem_free(w);
}
