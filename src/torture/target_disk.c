#include "torture/target_disk.h"

#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT_BYTES (64ll << 20)
#define DISK_SEGMENTS 8 /* a log has five segments at rest */
#define FILL_TRIES    50

static const char ballast[] = "ballast";

/* --- the disk --------------------------------------------------------------------- */

static bool
write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Runs in a process of its own: makes a namespace with a tmpfs on the folder. */
static bool
mount_disk(const char *folder)
{
	const unsigned uid = getuid(), gid = getgid();
	char map[64], size[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return false;
	(void)snprintf(map, sizeof map, "%u %u 1", uid, uid);
	if (!write_file("/proc/self/uid_map", map) || !write_file("/proc/self/setgroups", "deny"))
		return false;
	(void)snprintf(map, sizeof map, "%u %u 1", gid, gid);
	if (!write_file("/proc/self/gid_map", map))
		return false;
	(void)snprintf(size, sizeof size, "size=%lld", DISK_SEGMENTS * SEGMENT_BYTES);
	return mount("none", folder, "tmpfs", 0, size) == 0;
}

/* Reports the result over the pipe, and stays until it is killed. */
static void
keep_disk(const char *folder, int out)
{
	const char ready = mount_disk(folder) ? 'y' : 'n';

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(out, &ready, 1) == 1)
		pause();
	_exit(0);
}

static int
open_of(pid_t pid, const char *name, int flags)
{
	char path[320];

	(void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
	return open(path, flags | O_RDONLY | O_CLOEXEC);
}

/* Descriptors that keep the namespaces after their first process has ended. */
static void
take_disk(struct target *v, pid_t keeper)
{
	char root[300];

	(void)snprintf(root, sizeof root, "root%s", v->folder);
	v->user_ns = open_of(keeper, "ns/user", 0);
	v->mount_ns = open_of(keeper, "ns/mnt", 0);
	v->disk = open_of(keeper, root, O_DIRECTORY);
}

void
target_disk_make(struct target *v)
{
	char ready = 'n';
	int fds[2];
	pid_t keeper;

	(void)snprintf(v->no_disk, sizeof v->no_disk,
		       "user namespaces with a mount are not allowed here");
	if (pipe2(fds, O_CLOEXEC) != 0)
		return;
	keeper = fork();
	if (keeper == 0)
		keep_disk(v->folder, fds[1]);
	close(fds[1]);
	if (keeper > 0 && read(fds[0], &ready, 1) == 1 && ready == 'y')
		take_disk(v, keeper);
	close(fds[0]);
	if (keeper > 0) {
		(void)kill(keeper, SIGKILL);
		(void)waitpid(keeper, NULL, 0);
	}
	if (v->user_ns >= 0 && v->mount_ns >= 0 && v->disk >= 0)
		v->no_disk[0] = '\0';
	else
		target_disk_drop(v);
}

void
target_disk_drop(struct target *v)
{
	int *const fds[] = { &v->user_ns, &v->mount_ns, &v->disk };

	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* Fills the disk. The server writes at the same time, so the free space changes. */
static bool
fill(int fd)
{
	struct statvfs st;
	off_t size = 0;

	for (int i = 0; i < FILL_TRIES; i++) {
		if (fstatvfs(fd, &st) != 0)
			return false;
		if (st.f_bavail == 0)
			return true;
		if (posix_fallocate(fd, size, (off_t)(st.f_bavail * st.f_frsize)) == 0)
			size = lseek(fd, 0, SEEK_END);
	}
	return true; /* except for space that was just freed */
}

int
target_fill(struct target *v, struct slu_err *err)
{
	const int fd = openat(v->disk, ballast, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int rc = 0;

	if (fd < 0 || !fill(fd))
		rc = slu_fail(err, SLU_EDOWN, "cannot fill the disk: %m");
	if (fd >= 0)
		close(fd);
	return rc;
}

void
target_empty(struct target *v)
{
	(void)unlinkat(v->disk, ballast, 0);
}

/* --- the clock -------------------------------------------------------------------- */

/* The paths of Debian, other systems and a local installation. */
static const char *const clock_libs[] = {
	"/usr/lib/*/faketime/libfaketimeMT.so.1",
	"/usr/lib*/faketime/libfaketimeMT.so.1",
	"/usr/local/lib/faketime/libfaketimeMT.so.1",
};

void
target_clock_make(struct target *v)
{
	struct slu_err err;

	for (size_t i = 0; i < sizeof clock_libs / sizeof clock_libs[0] && !v->clock_lib[0]; i++) {
		glob_t found;

		if (glob(clock_libs[i], 0, NULL, &found) != 0)
			continue;
		(void)snprintf(v->clock_lib, sizeof v->clock_lib, "%s", found.gl_pathv[0]);
		globfree(&found);
	}
	(void)snprintf(v->clock_file, sizeof v->clock_file, "%s.clock", v->folder);
	if (!v->clock_lib[0])
		(void)snprintf(v->no_clock, sizeof v->no_clock, "libfaketime is not installed");
	else if (target_step(v, 0, &err))
		(void)snprintf(v->no_clock, sizeof v->no_clock, "%.150s", err.text);
	if (v->no_clock[0])
		v->clock_lib[0] = '\0';
}

/* Writes a new file and renames it, so that it is never read half. */
int
target_step(struct target *v, slu_time step, struct slu_err *err)
{
	char fresh[340];
	FILE *f;
	int rc;

	(void)snprintf(fresh, sizeof fresh, "%s.new", v->clock_file);
	f = fopen(fresh, "we");
	if (!f)
		return slu_fail(err, SLU_EDOWN, "%s: %m", fresh);
	rc = fprintf(f, "%+lld\n", (long long)(step / SLU_SEC)) < 0;
	rc = fclose(f) != 0 || rc || rename(fresh, v->clock_file) != 0;
	return rc ? slu_fail(err, SLU_EDOWN, "%s: %m", v->clock_file) : 0;
}

/* --- going there ------------------------------------------------------------------ */

int
target_enter(void *target)
{
	const struct target *v = target;

	if (v->clock_lib[0] &&
	    (setenv("LD_PRELOAD", v->clock_lib, 1) != 0 ||
	     setenv("FAKETIME_TIMESTAMP_FILE", v->clock_file, 1) != 0 ||
	     setenv("FAKETIME_CACHE_DURATION", "1", 1) != 0 ||
	     setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1) != 0))
		return -1;
	if (stores_tell(v->conf.stores, v->conf.node) != 0)
		return -1;
	if (v->disk < 0)
		return 0;
	return setns(v->user_ns, CLONE_NEWUSER) == 0 && setns(v->mount_ns, CLONE_NEWNS) == 0 ? 0
											     : -1;
}
