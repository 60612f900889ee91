/*
 * folder.c - the folders of objects, whose own names must survive a power cut, too.
 */
#include "base/mem.h"
#include "store/file/file_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int
file_open_folder(const struct file_store *f, const char *folder)
{
	return openat(f->root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
file_sync_folder(const struct file_store *f, const char *folder)
{
	const int fd = file_open_folder(f, folder);

	if (fd < 0)
		return -1;
	const int rc = fsync(fd);
	const int number = errno;

	close(fd);
	errno = number;
	return rc;
}

static bool
is_known(struct file_store *f, const char *folder)
{
	bool known = false;

	pthread_mutex_lock(&f->mtx);
	for (unsigned i = 0; i < FILE_FOLDERS && !known; i++)
		known = f->folders[i] && strcmp(f->folders[i], folder) == 0;
	pthread_mutex_unlock(&f->mtx);
	return known;
}

/* If memory is out, the folder stays unknown, which costs a sync. */
static void
set_known(struct file_store *f, const char *folder)
{
	char *copy = mem_strdup(folder);

	pthread_mutex_lock(&f->mtx);
	mem_free(f->folders[f->next_folder]);
	f->folders[f->next_folder] = copy;
	f->next_folder = (f->next_folder + 1) % FILE_FOLDERS;
	pthread_mutex_unlock(&f->mtx);
}

/* Makes a folder and those above it, and syncs the folder that holds each: another process may
 * have made it and may not have synced yet. Returns 0, or -1 with errno. */
static int
make_folder(struct file_store *f, const char *folder)
{
	char path[STORE_NAME_MAX], above[STORE_NAME_MAX] = ".";

	for (size_t n = strcspn(folder, "/");; n += 1 + strcspn(folder + n + 1, "/")) {
		snprintf(path, sizeof path, "%.*s", (int)n, folder);
		if (mkdirat(f->root, path, 0700) && errno != EEXIST)
			return -1;
		if (file_sync_folder(f, above))
			return -1;
		if (!folder[n])
			return 0;
		memcpy(above, path, sizeof above);
	}
}

int
file_need_folder(struct file_store *f, const char *folder)
{
	int fd = -1;

	if (strcmp(folder, ".") == 0 || is_known(f, folder))
		fd = file_open_folder(f, folder);
	if (fd >= 0 || make_folder(f, folder))
		return fd;
	fd = file_open_folder(f, folder);
	if (fd >= 0)
		set_known(f, folder);
	return fd;
}
