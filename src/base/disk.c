#include "base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	ZEROS = 64 * 1024
};

static int
result(int rc)
{
	return rc < 0 ? -errno : rc;
}

static int
posix_sync_folder(struct disk *d, int folder)
{
	(void)d;
	return result(fsync(folder));
}

/* A power cut may remove a new folder until its parent is synced. */
static int
sync_parent(int folder)
{
	const int parent = openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (parent < 0)
		return -errno;
	rc = result(fsync(parent));
	close(parent);
	return rc;
}

static int
posix_folder(struct disk *d, const char *path)
{
	const bool made = mkdir(path, 0700) == 0;
	int folder, rc;

	(void)d;
	if (!made && errno != EEXIST)
		return -errno;
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	rc = made ? sync_parent(folder) : 0;
	if (rc) {
		close(folder);
		return rc;
	}
	return folder;
}

static int
list_stream(DIR *dir, disk_name_fn *fn, void *arg)
{
	for (;;) {
		const struct dirent *e;
		int rc;

		errno = 0;
		e = readdir(dir);
		if (!e)
			return -errno;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		rc = fn(arg, e->d_name);
		if (rc)
			return rc;
	}
}

static int
posix_list(struct disk *d, int folder, disk_name_fn *fn, void *arg)
{
	/* A descriptor of its own: the stream changes its offset and closes it. */
	const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir;
	int rc;

	(void)d;
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		rc = -errno;
		close(fd);
		return rc;
	}
	rc = list_stream(dir, fn, arg);
	closedir(dir);
	return rc;
}

static int
posix_rename(struct disk *d, int folder, const char *from, const char *to)
{
	(void)d;
	return result(renameat(folder, from, folder, to));
}

static int
posix_remove(struct disk *d, int folder, const char *name)
{
	(void)d;
	return result(unlinkat(folder, name, 0));
}

static int64_t
posix_room(struct disk *d, int folder)
{
	struct statvfs st;

	(void)d;
	if (fstatvfs(folder, &st))
		return -errno;
	return (int64_t)(st.f_bavail * st.f_frsize);
}

/* Without what the file system keeps for root: a disk that is full for this process has no room. */
static int64_t
posix_whole(struct disk *d, int folder)
{
	struct statvfs st;

	(void)d;
	if (fstatvfs(folder, &st))
		return -errno;
	return (int64_t)((st.f_blocks - (st.f_bfree - st.f_bavail)) * st.f_frsize);
}

static int
posix_create(struct disk *d, int folder, const char *name)
{
	(void)d;
	return result(openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			     0600));
}

static int
posix_open(struct disk *d, int folder, const char *name)
{
	(void)d;
	return result(openat(folder, name, O_RDWR | O_CLOEXEC));
}

static void
posix_close(struct disk *d, int file)
{
	(void)d;
	close(file); /* its result does not matter: data was synced before */
}

static int64_t
posix_read(struct disk *d, int file, void *p, size_t n, uint64_t at)
{
	size_t done = 0;

	(void)d;
	while (done < n) {
		const ssize_t got = pread(file, (char *)p + done, n - done,
					  (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

static int64_t
posix_read_now(struct disk *d, int file, void *p, size_t n, uint64_t at)
{
	const struct iovec iov = { p, n };
	const ssize_t got = preadv2(file, &iov, 1, (off_t)at, RWF_NOWAIT);

	(void)d;
	if (got == (ssize_t)n)
		return got;
	/* Only a part is in memory, or the file system does not support it: use read. */
	if (got >= 0 || errno == EOPNOTSUPP || errno == EINTR)
		return -EAGAIN;
	return -errno;
}

static int
posix_write(struct disk *d, int file, const void *p, size_t n, uint64_t at)
{
	(void)d;
	for (size_t done = 0; done < n;) {
		const ssize_t put = pwrite(file, (const char *)p + done, n - done,
					   (off_t)(at + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		done += (size_t)put;
	}
	return 0;
}

/* Returns -EINVAL if the file system cannot write past the page cache. */
static int
write_directly(struct disk *d, int file, const void *p, size_t n, uint64_t at)
{
	const int flags = fcntl(file, F_GETFL);
	int rc, back;

	if (flags < 0 || fcntl(file, F_SETFL, flags | O_DIRECT) < 0)
		return -EINVAL;
	rc = posix_write(d, file, p, n, at);
	back = result(fcntl(file, F_SETFL, flags));
	return rc ? rc : back;
}

static int
posix_write_past(struct disk *d, int file, const void *p, size_t n, uint64_t at)
{
	const int rc = write_directly(d, file, p, n, at);

	return rc == -EINVAL ? posix_write(d, file, p, n, at) : rc;
}

static int
posix_sync(struct disk *d, int file)
{
	(void)d;
	return result(fdatasync(file)); /* not again on EINTR: DISK-2 */
}

static int64_t
posix_size(struct disk *d, int file)
{
	struct stat st;

	(void)d;
	return fstat(file, &st) ? -errno : (int64_t)st.st_size;
}

/* For file systems without allocate: writes zeros. */
static int
write_zeros(struct disk *d, int file, uint64_t size)
{
	static const char zeros[ZEROS];
	int64_t at = posix_size(d, file);
	int rc = at < 0 ? (int)at : 0;

	while (!rc && (uint64_t)at < size) {
		const uint64_t rest = size - (uint64_t)at;
		const size_t n = rest < ZEROS ? (size_t)rest : ZEROS;

		rc = posix_write(d, file, zeros, n, (uint64_t)at);
		at += (int64_t)n;
	}
	return rc;
}

static int
posix_allocate(struct disk *d, int file, uint64_t size)
{
	int rc;

	do {
		rc = result(fallocate(file, 0, 0, (off_t)size));
	} while (rc == -EINTR);
	return rc == -EOPNOTSUPP || rc == -ENOSYS ? write_zeros(d, file, size) : rc;
}

static int
posix_lock(struct disk *d, int file)
{
	(void)d;
	return result(flock(file, LOCK_EX | LOCK_NB));
}

int
disk_fail(int64_t rc, const char *what, const char *name, struct slu_err *err)
{
	const int error = (int)-rc;
	const enum slu_code code = error == ENOSPC || error == EDQUOT ? SLU_EFULL
				   : error == ENOMEM                  ? SLU_ENOMEM
								      : SLU_EDOWN;

	errno = error; /* for %m */
	return slu_fail(err, code, "%s %s: %m", what, name);
}

static const struct disk_ops posix_ops = {
	.folder = posix_folder,
	.sync_folder = posix_sync_folder,
	.list = posix_list,
	.rename = posix_rename,
	.remove = posix_remove,
	.room = posix_room,
	.whole = posix_whole,
	.create = posix_create,
	.open = posix_open,
	.close = posix_close,
	.read = posix_read,
	.read_now = posix_read_now,
	.write = posix_write,
	.write_past = posix_write_past,
	.sync = posix_sync,
	.size = posix_size,
	.allocate = posix_allocate,
	.lock = posix_lock,
};

struct disk disk_posix = { .ops = &posix_ops };
