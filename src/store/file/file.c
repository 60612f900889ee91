#include "store/file/file.h"

#include "base/mem.h"
#include "store/file/file_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BAD_URL "invalid URL; expected file:///absolute/path"

static struct file_store *
of(struct store *s)
{
	return (struct file_store *)(void *)s;
}

/* ---- Errors ---- */

/* What an errno means if it is not STORE_FAILED with SLU_EDOWN. */
static const struct meaning {
	int number;
	enum store_result result;
	enum slu_code code;
} meanings[] = {
	{ EACCES, STORE_REFUSED, SLU_EFORBIDDEN },
	{ EPERM, STORE_REFUSED, SLU_EFORBIDDEN },
	{ EROFS, STORE_REFUSED, SLU_EFORBIDDEN },
	{ EFBIG, STORE_REFUSED, SLU_ETOOBIG },
	{ EISDIR, STORE_REFUSED, SLU_EINVAL },
	{ ENOTDIR, STORE_REFUSED, SLU_EINVAL },
	{ ENAMETOOLONG, STORE_REFUSED, SLU_EINVAL },
	{ ELOOP, STORE_REFUSED, SLU_EINVAL },
	{ ENOSPC, STORE_FAILED, SLU_EFULL },
	{ EDQUOT, STORE_FAILED, SLU_EFULL },
	{ ENOMEM, STORE_FAILED, SLU_ENOMEM },
};

enum store_result
file_fail(int number, const char *what, struct slu_err *err)
{
	struct meaning m = { number, STORE_FAILED, SLU_EDOWN };

	for (size_t i = 0; i < COUNT(meanings); i++)
		if (meanings[i].number == number)
			m = meanings[i];
	slu_fail(err, m.code, "%s: %s", what, strerror(number));
	return m.result;
}

/* The same after a change was made: a sync failed, so the outcome is unknown. */
static enum store_result
fail_late(int number, const char *what, struct slu_err *err)
{
	file_fail(number, what, err);
	err->code = err->code == SLU_EFULL ? SLU_EFULL : SLU_EDOWN;
	return STORE_FAILED;
}

enum store_result
file_check(const struct file_store *f, struct slu_err *err)
{
	struct stat here;

	if (stat(f->path, &here))
		return file_fail(errno == ENOTDIR ? ENOENT : errno, "open the folder", err);
	if (here.st_dev == f->device && here.st_ino == f->inode)
		return STORE_OK;
	slu_fail(err, SLU_EDOWN, "another folder is in its place; expected the folder that was opened");
	return STORE_FAILED;
}

/* ---- Put ---- */

/* Splits a name into its folder and its last segment. */
static const char *
split(const char *name, char folder[static STORE_NAME_MAX])
{
	const char *slash = strrchr(name, '/');

	snprintf(folder, STORE_NAME_MAX, "%.*s", slash ? (int)(slash - name) : 1,
		 slash ? name : ".");
	return slash ? slash + 1 : name;
}

static int
write_all(int fd, struct slice bytes)
{
	for (size_t at = 0; at < bytes.n;) {
		const ssize_t n = pwrite(fd, bytes.p + at, bytes.n - at, (off_t)at);

		if (n < 0 && errno != EINTR)
			return -1;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Whether a temporary file has a second name. It is opened again because an NFS client then asks
 * the server. */
static bool
is_linked(const struct file_store *f, const char *temp)
{
	struct stat st;
	const int fd = openat(f->temp.folder, temp, O_RDONLY | O_CLOEXEC);
	const bool linked = fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink > 1;

	if (fd >= 0)
		close(fd);
	return linked;
}

/* Gives a whole temporary file its name. EEXIST is as final as success: the folder is synced in
 * both cases (STORE-3). */
static enum store_result
give_name(struct file_store *f, const char *temp, int folder, const char *name,
	  struct slu_err *err)
{
	const int failed = linkat(f->temp.folder, temp, folder, name, 0) ? errno : 0;
	const bool won = !failed || is_linked(f, temp);

	if (!won && failed != EEXIST)
		return file_fail(failed, "link", err);
	if (fsync(folder))
		return fail_late(errno, "sync the folder", err);
	return won ? STORE_OK : STORE_EXISTS;
}

/* Links a temporary file that is written and synced. */
static enum store_result
publish(struct file_store *f, const char *temp, const char *name, struct slu_err *err)
{
	char folder[STORE_NAME_MAX];
	const char *last = split(name, folder);
	const int fd = file_need_folder(f, folder);

	if (fd < 0)
		return file_fail(errno, "make the folder", err);
	const enum store_result r = give_name(f, temp, fd, last, err);

	close(fd);
	return r;
}

static enum store_result
put_new(struct file_store *f, const char *name, struct slice object, struct slu_err *err)
{
	char temp[FILE_TEMP];
	const int fd = file_temp_create(&f->temp, temp);
	enum store_result r;

	if (fd < 0)
		return file_fail(errno, "create a temporary file", err);
	if (write_all(fd, object))
		r = file_fail(errno, "write", err);
	else if (fsync(fd))
		r = file_fail(errno, "sync", err);
	else
		r = publish(f, temp, name, err);
	close(fd);
	(void)unlinkat(f->temp.folder, temp, 0); /* a sweep removes it */
	return r;
}

/* Writes over an object that exists. The size changes last, so a shorter text is never cut. */
static enum store_result
overwrite(int fd, struct slice object, struct slu_err *err)
{
	if (write_all(fd, object))
		return fail_late(errno, "write", err);
	if (ftruncate(fd, (off_t)object.n))
		return fail_late(errno, "set the size", err);
	if (fdatasync(fd))
		return fail_late(errno, "sync", err);
	return STORE_OK;
}

static enum store_result
replace(struct file_store *f, const char *name, struct slice object, struct slu_err *err)
{
	int fd = openat(f->root, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno == ENOENT) {
		const enum store_result r = put_new(f, name, object, err);

		if (r != STORE_EXISTS)
			return r;
		fd = openat(f->root, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (fd < 0)
		return file_fail(errno, "open", err);
	const enum store_result r = overwrite(fd, object, err);

	close(fd);
	return r;
}

static enum store_result
file_put(struct store *s, const char *name, struct slice object, enum store_mode mode,
	 struct slu_err *err)
{
	const enum store_result r = file_check(of(s), err);

	if (r != STORE_OK)
		return r;
	return mode == STORE_REPLACE ? replace(of(s), name, object, err)
				     : put_new(of(s), name, object, err);
}

/* ---- Get, remove, clock ---- */

/* Reads up to n bytes; fewer if the file ends. Returns the number, or -1 with errno. */
static int64_t
read_all(int fd, char *p, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		const ssize_t got = pread(fd, p + done, n - done, (off_t)(at + done));

		if (got < 0 && errno != EINTR)
			return -1;
		if (got == 0)
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	return (int64_t)done;
}

static enum store_result
read_object(int fd, uint64_t at, size_t max, struct buf *out, uint64_t *size, struct slu_err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return file_fail(errno, "stat", err);
	if (!S_ISREG(st.st_mode))
		return file_fail(EISDIR, "open", err);
	*size = (uint64_t)st.st_size;
	const uint64_t left = *size > at ? *size - at : 0;
	const size_t n = left < max ? (size_t)left : max;
	char *room = buf_add(out, n);

	if (!room)
		return STORE_OK; /* store.c looks at out */
	const int64_t got = read_all(fd, room, n, at);

	if (got < 0)
		return file_fail(errno, "read", err);
	out->n -= n - (size_t)got;
	return STORE_OK;
}

static bool
is_absent(int number)
{
	return number == ENOENT || number == ENOTDIR;
}

static enum store_result
file_get(struct store *s, const char *name, uint64_t at, size_t max, struct buf *out,
	 uint64_t *size, struct slu_err *err)
{
	char folder[STORE_NAME_MAX];
	const char *last = split(name, folder);
	const enum store_result here = file_check(of(s), err);
	const int dir = here == STORE_OK ? file_open_folder(of(s), folder) : -1;

	if (here != STORE_OK)
		return here;
	if (dir < 0)
		return is_absent(errno) ? STORE_ABSENT : file_fail(errno, "open the folder", err);
	const int fd = openat(dir, last, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const int number = errno;

	close(dir);
	if (fd < 0)
		return is_absent(number) ? STORE_ABSENT : file_fail(number, "open", err);
	const enum store_result r = read_object(fd, at, max, out, size, err);

	close(fd);
	return r;
}

static enum store_result
file_remove(struct store *s, const char *name, struct slu_err *err)
{
	const enum store_result here = file_check(of(s), err);

	if (here != STORE_OK)
		return here;
	if (unlinkat(of(s)->root, name, 0) == 0)
		return STORE_OK;
	return is_absent(errno) ? STORE_ABSENT : file_fail(errno, "remove", err);
}

static enum store_result
file_clock(struct store *s, slu_time *wall, struct slu_err *err)
{
	return file_temp_clock(&of(s)->temp, wall) ? file_fail(errno, "read the clock", err)
						   : STORE_OK;
}

/* ---- Open and close ---- */

static void
file_close(struct store *s)
{
	struct file_store *f = of(s);

	file_temp_close(&f->temp);
	if (f->root >= 0)
		close(f->root);
	for (unsigned i = 0; i < FILE_FOLDERS; i++)
		mem_free(f->folders[i]);
	pthread_mutex_destroy(&f->mtx);
	mem_free(f->path);
	mem_free(f);
}

/* Opens the folder of the store, and makes it if it is missing; the folder above it exists. */
static enum store_result
open_root(struct file_store *f, const char *path, bool read_only, struct slu_err *err)
{
	const bool made = !read_only && mkdir(path, 0700) == 0;
	struct stat here;

	f->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->root < 0 && errno == ENOENT) {
		slu_fail(err, SLU_ENOTFOUND, "the folder%s does not exist", read_only ? "" : " above it");
		return STORE_REFUSED;
	}
	if (f->root < 0)
		return file_fail(errno, "open the folder", err);
	if (fstat(f->root, &here))
		return file_fail(errno, "stat the folder", err);
	f->device = here.st_dev;
	f->inode = here.st_ino;
	if (made && file_sync_folder(f, ".."))
		return file_fail(errno, "sync the folder above", err);
	return STORE_OK;
}

static enum store_result
open_parts(struct file_store *f, const char *path, const struct store_conf *conf,
	   struct slu_err *err)
{
	struct file_place place;
	enum store_result r = open_root(f, path, conf->read_only, err);

	if (r == STORE_OK)
		r = file_place_read(&place, f->root, err);
	if (r == STORE_OK && !conf->read_only)
		r = file_place_check(&place, conf->unsafe, err);
	if (r == STORE_OK && !conf->read_only)
		r = file_temp_open(&f->temp, f->root, err);
	return r;
}

/* The store makes its folder, but no folder above it. */
static int
check_url(const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	char above[STORE_URL_MAX];
	struct stat here;
	size_t n = strlen(rest);

	(void)conf; /* the file system is known when the folder is there */
	if (rest[0] != '/')
		return slu_fail(err, SLU_EINVAL, BAD_URL);
	if (stat(rest, &here) == 0)
		return S_ISDIR(here.st_mode) ? 0 : slu_fail(err, SLU_EINVAL, "expected a folder");
	while (n > 1 && rest[n - 1] == '/')
		n--;
	while (n > 1 && rest[n - 1] != '/')
		n--;
	(void)snprintf(above, sizeof above, "%.*s", (int)n, rest);
	return stat(above, &here) == 0 && S_ISDIR(here.st_mode)
		       ? 0
		       : slu_fail(err, SLU_EINVAL, "the folder above it does not exist");
}

static enum store_result
file_open(struct store **out, const char *rest, const struct store_conf *conf, struct slu_err *err)
{
	if (rest[0] != '/') {
		slu_fail(err, SLU_EINVAL, BAD_URL);
		return STORE_REFUSED;
	}
	struct file_store *f = mem_zalloc(sizeof *f);

	if (!f)
		return file_fail(ENOMEM, "open", err);
	f->root = f->temp.folder = f->temp.lock = -1;
	f->path = mem_strdup(rest);
	pthread_mutex_init(&f->mtx, NULL); /* cannot fail with these attributes */
	const enum store_result r = f->path ? open_parts(f, rest, conf, err)
					    : file_fail(ENOMEM, "open", err);

	if (r == STORE_OK)
		*out = &f->store;
	else
		file_close(&f->store);
	return r;
}

const struct store_ops store_file = {
	.name = "file",
	.doc = "a folder, also on a file system that several machines share",
	.shards = 16,
	.lease = 5 * SLU_SEC,
	.check = check_url,
	.open = file_open,
	.close = file_close,
	.put = file_put,
	.get = file_get,
	.list = file_list,
	.remove = file_remove,
	.clock = file_clock,
};
