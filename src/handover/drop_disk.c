#include "handover/drop_private.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
drop_fail(struct slu_err *err, const char *path)
{
	return slu_fail(err, errno == EACCES || errno == EROFS ? SLU_EFORBIDDEN : SLU_EDOWN, "%.150s: %s", path, strerror(errno));
}

int
drop_sync_folder(const char *path, struct slu_err *err)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) ? drop_fail(err, path) : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

int
drop_write(const char *path, const char *text, struct slu_err *err)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	const size_t n = strlen(text);
	int rc = fd < 0 || write(fd, text, n) != (ssize_t)n || fsync(fd) ? drop_fail(err, path) : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

int
drop_read(const char *path, size_t most, char **out, size_t *n, struct slu_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = { 0 };
	size_t got = 0;
	ssize_t r = 1;
	int rc = 0;

	*out = NULL;
	if (fd < 0)
		return errno == ENOENT ? slu_fail(err, SLU_ENOTFOUND, "no such file: %.150s", path) : drop_fail(err, path);
	if (fstat(fd, &st))
		rc = drop_fail(err, path);
	else if ((uint64_t)st.st_size > most)
		rc = slu_fail(err, SLU_ETOOBIG, "%.150s: more than %zu bytes", path, most);
	else if ((*out = mem_alloc((size_t)st.st_size + 1)) == NULL)
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	while (!rc && got < (size_t)st.st_size && (r = read(fd, *out + got, (size_t)st.st_size - got)) > 0)
		got += (size_t)r;
	if (!rc && r < 0)
		rc = drop_fail(err, path);
	close(fd);
	if (rc) {
		mem_free(*out);
		*out = NULL;
		return rc;
	}
	(*out)[got] = '\0';
	*n = got;
	return 0;
}

int
drop_remove_tree(const char *path, struct slu_err *err)
{
	DIR *const dir = opendir(path);
	const struct dirent *e;
	int rc = 0;

	if (!dir)
		return errno == ENOENT ? 0 : drop_fail(err, path);
	while (!rc && (e = readdir(dir)) != NULL) {
		char below[DROP_PATH];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(below, sizeof below, "%.3000s/%.255s", path, e->d_name);
		if (unlink(below) && errno != ENOENT)
			rc = errno == EISDIR || errno == EPERM ? drop_remove_tree(below, err) : drop_fail(err, below);
	}
	closedir(dir);
	return rc || rmdir(path) == 0 || errno == ENOENT ? rc : drop_fail(err, path);
}
