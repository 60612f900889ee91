/*
 * temp.c - temporary files, and those that dead processes left.
 *
 * An open store has a random name, its owner, and holds a lock on <owner>.lock from before its
 * first temporary file to after its last one. A process that dies loses the lock. So a store that
 * gets the lock of another owner may remove the owner's files. It removes the lock file last,
 * under the lock. A store that creates its own lock file may lose it that way before it has the
 * lock; it sees that the file has no name any more and draws another one.
 *
 * Locks decide only what is removed. If they do not work over machines, the put that loses its
 * temporary file fails and is repeated.
 */
#include "store/file/file_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER ".tmp"

/* The owner of a file below .tmp: 16 hexadecimal digits before a dot. */
static bool
owner_of(const char *name, char owner[static FILE_OWNER])
{
	if (strspn(name, "0123456789abcdef") != FILE_OWNER - 1 || name[FILE_OWNER - 1] != '.')
		return false;
	memcpy(owner, name, FILE_OWNER - 1);
	owner[FILE_OWNER - 1] = '\0';
	return true;
}

/* Opens or creates the lock file of an owner and locks it. Returns the descriptor, or -1 with
 * errno: EWOULDBLOCK if a living process has the lock or has just removed the file. */
static int
lock_owner(int folder, const char *owner, int wait)
{
	char name[FILE_TEMP];
	struct stat st;

	snprintf(name, sizeof name, "%s.lock", owner);
	const int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | wait) == 0 && fstat(fd, &st) == 0) {
		if (st.st_nlink > 0)
			return fd;
		errno = EWOULDBLOCK;
	}
	const int number = errno;

	close(fd);
	errno = number;
	return -1;
}

/* Calls fn for every file below .tmp with its owner. Returns 0, or -1 with errno. */
static int
each_file(int folder, void (*fn)(int folder, const char *name, const char *owner, const char *arg),
	  const char *arg)
{
	const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char owner[FILE_OWNER];

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
		if (owner_of(e->d_name, owner))
			fn(folder, e->d_name, owner, arg);
	closedir(dir);
	return 0;
}

static void
remove_of(int folder, const char *name, const char *owner, const char *dead)
{
	if (strcmp(owner, dead) == 0 && strcmp(name + FILE_OWNER, "lock") != 0)
		(void)unlinkat(folder, name, 0); /* the next sweep tries again */
}

/* Removes the files of an owner if its process is dead. */
static void
sweep_owner(int folder, const char *name, const char *owner, const char *mine)
{
	char lock_name[FILE_TEMP];
	(void)name;

	if (strcmp(owner, mine) == 0)
		return;
	const int lock = lock_owner(folder, owner, LOCK_NB);

	if (lock < 0)
		return;
	snprintf(lock_name, sizeof lock_name, "%s.lock", owner);
	if (each_file(folder, remove_of, owner) == 0)
		(void)unlinkat(folder, lock_name, 0); /* as above */
	close(lock);
}

/* Locks a name that no other store has. */
static int
lock_mine(struct file_temp *t)
{
	do {
		uint64_t random;

		if (getrandom(&random, sizeof random, 0) != sizeof random)
			return -1;
		snprintf(t->owner, sizeof t->owner, "%016" PRIx64, random);
		t->lock = lock_owner(t->folder, t->owner, 0);
	} while (t->lock < 0 && (errno == EWOULDBLOCK || errno == EINTR));
	return t->lock;
}

enum store_result
file_temp_open(struct file_temp *t, int root, struct slu_err *err)
{
	t->folder = t->lock = -1;
	if (mkdirat(root, FOLDER, 0700) && errno != EEXIST)
		return file_fail(errno, "create " FOLDER, err);
	t->folder = openat(root, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->folder < 0)
		return file_fail(errno, "open " FOLDER, err);
	if (lock_mine(t) < 0)
		return file_fail(errno, "lock a file below " FOLDER, err);
	if (each_file(t->folder, sweep_owner, t->owner))
		return file_fail(errno, "list " FOLDER, err);
	return STORE_OK;
}

void
file_temp_close(struct file_temp *t)
{
	char name[FILE_TEMP];

	if (t->lock >= 0) {
		snprintf(name, sizeof name, "%s.lock", t->owner);
		(void)unlinkat(t->folder, name, 0); /* the next sweep tries again */
		close(t->lock);
	}
	if (t->folder >= 0)
		close(t->folder);
}

int
file_temp_create(struct file_temp *t, char name[static FILE_TEMP])
{
	snprintf(name, FILE_TEMP, "%s.%" PRIu64, t->owner, atomic_fetch_add(&t->next, 1));
	return openat(t->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* The time that a file system writes into a file is its own: on NFS the time of the server. */
int
file_temp_clock(const struct file_temp *t, slu_time *wall)
{
	struct stat st;

	if (futimens(t->lock, NULL) || fstat(t->lock, &st))
		return -1;
	*wall = (slu_time)st.st_mtim.tv_sec * SLU_SEC + st.st_mtim.tv_nsec;
	return 0;
}
