#include "cli/backup/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	BLOCK = 512, /* block size of a tar file */
	TAR_NAME = 100,
	TAR_PREFIX = 155,
	AT_MODE = 100,
	AT_SIZE = 124,
	AT_TIME = 136,
	AT_SUM = 148,
	AT_TYPE = 156,
	AT_MAGIC = 257,
	AT_PREFIX = 345
};

static int
fail(struct slu_err *err, const char *what, const char *name)
{
	int code = errno == EEXIST ? SLU_EEXISTS : SLU_EDOWN;

	if (errno == ENOSPC || errno == EDQUOT)
		code = SLU_EFULL;
	return slu_fail(err, (enum slu_code)code, "%s %s: %m", what, name);
}

static bool
is_tar(const char *path)
{
	const size_t n = strlen(path);

	return n > 4 && strcmp(path + n - 4, ".tar") == 0;
}

static int
join(char *out, const char *folder, const char *name, struct slu_err *err)
{
	if (snprintf(out, ARCHIVE_PATH, "%s/%s", folder, name) >= ARCHIVE_PATH)
		return slu_fail(err, SLU_EINVAL, "%s: name too long", folder);
	return 0;
}

int
archive_make_folders(const char *base, const char *name, struct slu_err *err)
{
	char path[ARCHIVE_PATH];
	int rc = 0;

	for (const char *p = strchr(name, '/'); p && !rc; p = strchr(p + 1, '/')) {
		if (snprintf(path, sizeof path, "%s/%.*s", base, (int)(p - name), name) >= (int)sizeof path)
			rc = slu_fail(err, SLU_EINVAL, "%s: name too long", base);
		else if (mkdir(path, 0700) && errno != EEXIST)
			rc = fail(err, "make", path);
	}
	return rc;
}

int
archive_sync_folder_of(const char *path, struct slu_err *err)
{
	char copy[ARCHIVE_PATH];
	int fd, rc;

	(void)snprintf(copy, sizeof copy, "%s", path); /* the path was opened before: it fits */
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 || fsync(fd) ? fail(err, "sync the folder of", path) : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Only the owner may read a backup. */
static FILE *
open_new(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *const f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/* --- write ---------------------------------------------------------------------- */

static bool
is_stream(const char *path)
{
	return strcmp(path, "-") == 0;
}

int
archive_check_new(const char *path, struct slu_err *err)
{
	struct stat st;

	if (is_stream(path))
		return isatty(STDOUT_FILENO)
			       ? slu_fail(err, SLU_EINVAL, "--out -: standard output is a terminal; "
							   "redirect it to a file or a pipe")
			       : 0;
	if (strlen(path) + sizeof ".partial" > ARCHIVE_PATH)
		return slu_fail(err, SLU_EINVAL, "name too long: %.40s...", path);
	if (lstat(path, &st) == 0)
		return slu_fail(err, SLU_EEXISTS, "%s exists; name another file or folder", path);
	return 0;
}

/* ARCHIVE-1. On a file system without locks there is no check. */
static int
take_lock(int fd, const char *name, struct slu_err *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	return slu_fail(err, SLU_ECONFLICT, "another backup is writing %s", name);
}

/* Does the name still belong to the open file? The process that had the lock may have renamed it. */
static bool
is_at(int fd, const char *path)
{
	struct stat open_file, named;

	return fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 &&
	       open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

static int
create_tar(struct archive *a, struct slu_err *err)
{
	const int fd = open(a->work, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0)
		return fail(err, "make", a->work);
	rc = take_lock(fd, a->work, err);
	if (!rc && (!is_at(fd, a->work) || ftruncate(fd, 0) || fchmod(fd, 0600)))
		rc = fail(err, "make", a->work);
	a->file = rc ? NULL : fdopen(fd, "w");
	if (!a->file)
		close(fd);
	a->made = a->file != NULL;
	return rc || a->file ? rc : fail(err, "make", a->work);
}

static int
remove_inner(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	return at->level > 0 ? remove(path) : 0;
}

static bool
is_empty(const char *path)
{
	DIR *const d = opendir(path);
	const struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d)) != NULL)
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return d && !found;
}

/* ARCHIVE-2 */
static int
empty_folder(const char *path, struct slu_err *err)
{
	char mark[ARCHIVE_PATH];
	struct stat st;

	if (join(mark, path, ARCHIVE_MARK, err))
		return SLU_EINVAL;
	if (lstat(mark, &st) && !is_empty(path))
		return slu_fail(err, SLU_EEXISTS, "%s exists, and is not an unfinished backup: "
						  "remove it",
				path);
	return nftw(path, remove_inner, 16, FTW_DEPTH | FTW_PHYS) ? fail(err, "empty", path) : 0;
}

static int
mark_folder(struct archive *a, struct slu_err *err)
{
	FILE *f;

	if (join(a->name, a->work, ARCHIVE_MARK, err))
		return SLU_EINVAL;
	f = open_new(a->name);
	return !f || fclose(f) ? fail(err, "make", a->name) : 0;
}

static int
create_folder(struct archive *a, struct slu_err *err)
{
	const bool is_new = mkdir(a->work, 0700) == 0;
	int rc = 0;

	if (!is_new && errno != EEXIST)
		return fail(err, "make", a->work);
	a->lock = open(a->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (a->lock < 0)
		rc = fail(err, "make", a->work);
	if (!rc)
		rc = take_lock(a->lock, a->work, err);
	if (!rc && !is_new)
		rc = empty_folder(a->work, err);
	a->made = !rc;
	return rc ? rc : mark_folder(a, err);
}

int
archive_create(struct archive *a, const char *path, struct slu_err *err)
{
	int rc = archive_check_new(path, err);

	*a = (struct archive){ .stream = is_stream(path), .tar = is_stream(path) || is_tar(path) };
	if (rc)
		return rc;
	if (a->stream) {
		a->file = stdout;
		(void)snprintf(a->work, ARCHIVE_PATH, "standard output");
		return 0;
	}
	(void)snprintf(a->path, ARCHIVE_PATH, "%s", path); /* both fit: archive_check_new checked the path */
	(void)snprintf(a->work, ARCHIVE_PATH, "%s.partial", path);
	return a->tar ? create_tar(a, err) : create_folder(a, err);
}

static void
put_octal(char *at, size_t width, uint64_t value)
{
	at[width - 1] = '\0';
	for (size_t i = width - 1; i-- > 0; value /= 8)
		at[i] = (char)('0' + value % 8);
}

/* Splits a long name: the folders go into the prefix. */
static bool
put_name(char *head, const char *name)
{
	const char *rest = name;

	if (strlen(name) >= TAR_NAME)
		rest = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	if (strlen(rest) >= TAR_NAME || rest - name > TAR_PREFIX)
		return false;
	(void)snprintf(head, TAR_NAME, "%s", rest);
	if (rest > name)
		(void)snprintf(head + AT_PREFIX, TAR_PREFIX, "%.*s", (int)(rest - name - 1), name);
	return true;
}

static bool
has_name(const char *head, const char *name)
{
	char whole[TAR_PREFIX + TAR_NAME + 2];

	(void)snprintf(whole, sizeof whole, "%.*s%s%.*s", TAR_PREFIX, head + AT_PREFIX,
		       head[AT_PREFIX] ? "/" : "", TAR_NAME, head);
	return strcmp(whole, name) == 0;
}

static int
write_tar_head(struct archive *a, const char *name, uint64_t bytes, struct slu_err *err)
{
	static const char magic[8] = { 'u', 's', 't', 'a', 'r', '\0', '0', '0' };
	char head[BLOCK] = { 0 };
	unsigned sum = 0;

	if (!put_name(head, name) || bytes >= 1ull << 33)
		return slu_fail(err, SLU_ETOOBIG, "%s: name or file too large for a tar file; use a folder",
				name);
	put_octal(head + AT_MODE, 8, 0600);
	put_octal(head + AT_MODE + 8, 8, 0);
	put_octal(head + AT_MODE + 16, 8, 0);
	put_octal(head + AT_SIZE, 12, bytes);
	put_octal(head + AT_TIME, 12, (uint64_t)time(NULL));
	head[AT_TYPE] = '0';
	memcpy(head + AT_MAGIC, magic, sizeof magic);
	memset(head + AT_SUM, ' ', 8);
	for (int i = 0; i < BLOCK; i++)
		sum += (unsigned char)head[i];
	put_octal(head + AT_SUM, 7, sum);
	if (fwrite(head, 1, sizeof head, a->file) != sizeof head)
		return fail(err, "write", a->work);
	return 0;
}

int
archive_begin(struct archive *a, const char *name, uint64_t bytes, struct slu_err *err)
{
	int rc;

	(void)snprintf(a->name, sizeof a->name, "%s", name);
	a->left = a->size = bytes;
	if (a->tar)
		return write_tar_head(a, name, bytes, err);
	rc = archive_make_folders(a->work, name, err);
	if (!rc)
		rc = join(a->name, a->work, name, err);
	if (rc)
		return rc;
	a->file = open_new(a->name);
	return a->file ? 0 : fail(err, "make", a->name);
}

int
archive_write(struct archive *a, const void *p, size_t n, struct slu_err *err)
{
	if (n > a->left)
		return slu_fail(err, SLU_EINVAL, "%s: more bytes than announced", a->name);
	a->left -= n;
	return fwrite(p, 1, n, a->file) == n ? 0 : fail(err, "write", a->name);
}

static int
sync_file(FILE *file, const char *name, struct slu_err *err)
{
	return fflush(file) || fsync(fileno(file)) ? fail(err, "sync", name) : 0;
}

int
archive_end(struct archive *a, struct slu_err *err)
{
	static const char zeros[BLOCK];
	const size_t pad = (BLOCK - a->size % BLOCK) % BLOCK;
	int rc;

	if (a->left > 0)
		return slu_fail(err, SLU_EINVAL, "%s: fewer bytes than announced", a->name);
	if (a->tar)
		return fwrite(zeros, 1, pad, a->file) == pad ? 0 : fail(err, "write", a->work);
	rc = sync_file(a->file, a->name, err);
	if (fclose(a->file) && !rc)
		rc = fail(err, "close", a->name);
	a->file = NULL;
	return rc ? rc : archive_sync_folder_of(a->name, err);
}

static int
finish_tar(struct archive *a, struct slu_err *err)
{
	static const char zeros[2 * BLOCK];

	if (fwrite(zeros, 1, sizeof zeros, a->file) != sizeof zeros)
		return fail(err, "write", a->work);
	if (a->stream)
		return fflush(a->file) ? fail(err, "write", a->work) : 0;
	return sync_file(a->file, a->work, err);
}

static int
finish_folder(struct archive *a, struct slu_err *err)
{
	int rc = join(a->name, a->work, ARCHIVE_MARK, err);

	if (!rc && unlink(a->name))
		rc = fail(err, "remove", a->name);
	return rc ? rc : archive_sync_folder_of(a->name, err);
}

int
archive_finish(struct archive *a, struct slu_err *err)
{
	int rc = a->tar ? finish_tar(a, err) : finish_folder(a, err);

	if (rc || a->stream)
		return rc;
	if (rename(a->work, a->path))
		return fail(err, "rename", a->work);
	a->made = false;
	return archive_sync_folder_of(a->path, err);
}

/* --- read ----------------------------------------------------------------------- */

int
archive_open(struct archive *a, const char *path, struct slu_err *err)
{
	struct stat st;

	*a = (struct archive){ 0 };
	if (snprintf(a->path, ARCHIVE_PATH, "%s", path) >= ARCHIVE_PATH)
		return slu_fail(err, SLU_EINVAL, "name too long: %.40s...", path);
	if (stat(path, &st))
		return fail(err, "open", path);
	a->tar = !S_ISDIR(st.st_mode);
	if (!a->tar)
		return 0;
	a->file = fopen(path, "re");
	return a->file ? 0 : fail(err, "open", path);
}

static int
read_octal(const char *at, size_t width, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < width && at[i] && at[i] != ' '; i++) {
		if (at[i] < '0' || at[i] > '7')
			return SLU_EINVAL;
		*out = *out * 8 + (uint64_t)(at[i] - '0');
	}
	return 0;
}

/* Searches a file: the position is then behind its header. Returns SLU_ENOTFOUND if it is missing. */
static int
scan_tar(struct archive *a, const char *name, uint64_t *bytes, struct slu_err *err)
{
	char head[BLOCK];

	if (fseeko(a->file, (off_t)a->next, SEEK_SET))
		return fail(err, "read", a->path);
	while (fread(head, 1, BLOCK, a->file) == BLOCK && head[0]) {
		if (memcmp(head + AT_MAGIC, "ustar", 5) != 0 || read_octal(head + AT_SIZE, 12, bytes))
			return slu_fail(err, SLU_EINVAL, "%s is not a tar file", a->path);
		a->next += BLOCK + (*bytes + BLOCK - 1) / BLOCK * BLOCK;
		if (has_name(head, name))
			return 0;
		if (fseeko(a->file, (off_t)a->next, SEEK_SET))
			return fail(err, "read", a->path);
	}
	return slu_fail(err, SLU_ENOTFOUND, "%s has no %s", a->path, name);
}

/* Searches from the current position, then from the start: most callers ask in order. */
static int
find_in_tar(struct archive *a, const char *name, uint64_t *bytes, struct slu_err *err)
{
	int rc = scan_tar(a, name, bytes, err);

	if (rc != SLU_ENOTFOUND)
		return rc;
	a->next = 0;
	return scan_tar(a, name, bytes, err);
}

int
archive_find(struct archive *a, const char *name, uint64_t *bytes, struct slu_err *err)
{
	struct stat st;
	int rc;

	(void)snprintf(a->name, sizeof a->name, "%s", name);
	if (a->tar)
		return find_in_tar(a, name, bytes, err);
	if (a->file)
		(void)fclose(a->file); /* it was only read */
	a->file = NULL;
	rc = join(a->name, a->path, name, err);
	if (rc)
		return rc;
	a->file = fopen(a->name, "re");
	if (!a->file && errno == ENOENT)
		return slu_fail(err, SLU_ENOTFOUND, "%s has no %s", a->path, name);
	if (!a->file || fstat(fileno(a->file), &st))
		return fail(err, "open", a->name);
	*bytes = (uint64_t)st.st_size;
	return 0;
}

int
archive_read(struct archive *a, void *p, size_t n, struct slu_err *err)
{
	if (fread(p, 1, n, a->file) == n)
		return 0;
	if (ferror(a->file))
		return fail(err, "read", a->name);
	return slu_fail(err, SLU_ECORRUPT, "%s: unexpected end", a->name);
}

void
archive_close(struct archive *a)
{
	if (a->made && !a->tar)
		(void)nftw(a->work, remove_inner, 16, FTW_DEPTH | FTW_PHYS); /* the next run replaces it */
	if (a->made)
		(void)remove(a->work);
	if (a->file && !a->stream)
		(void)fclose(a->file); /* the content was synced */
	if (a->lock > 0)
		close(a->lock);
	a->file = NULL;
	a->lock = 0;
	a->made = false;
}
