/*
 * shim.c - a kernel that fails on command. Preloaded into a real server.
 *
 * The file that FAULT_SHIM names is mapped by the test and by the server: what the
 * test writes there holds from the next call on. faults.py has the same layout.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

struct faults {
	_Atomic int64_t clock_step; /* ns that the wall clock is ahead */
	_Atomic int64_t sync_fails; /* so many syncs of data fail with EIO */
	_Atomic int64_t full;       /* files cannot grow: ENOSPC */
	_Atomic int64_t syncs;      /* counted: syncs of data that were asked for */
	_Atomic int64_t failed;     /* counted: calls that were made to fail */
	_Atomic int64_t sync_stall; /* ns that every sync takes longer */
	_Atomic int64_t alloc_skip; /* so many allocations go well */
	_Atomic int64_t alloc_fail; /* then so many fail; 0: not counted */
	_Atomic int64_t read_stall; /* ns that every pread takes longer */
	_Atomic int64_t sync_stuck; /* not 0: where a sync has failed, all do; 1: nowhere yet */
	_Atomic int64_t no_fsync;   /* not 0: fsync, which stores and folders use, fails with EIO */
};

static struct faults none;
static struct faults *faults = &none;

__attribute__((constructor)) static void
shim_init(void)
{
	const char *const path = getenv("FAULT_SHIM");
	const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *const p = fd < 0 ? MAP_FAILED
			       : mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE,
				      MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		abort(); /* a test without its faults would prove nothing */
	faults = p;
	close(fd);
}

/* The function that this one stands before. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int
fail(int error)
{
	faults->failed++;
	errno = error;
	return -1;
}

int
clock_gettime(clockid_t id, struct timespec *t)
{
	static __typeof__(&clock_gettime) next;
	const int64_t step = faults->clock_step;
	int rc;

	if (!next)
		next = NEXT(clock_gettime);
	rc = next(id, t);
	if (id == CLOCK_REALTIME && rc == 0 && step) {
		const int64_t ns = t->tv_sec * 1000000000LL + t->tv_nsec + step;

		t->tv_sec = ns / 1000000000;
		t->tv_nsec = ns % 1000000000;
	}
	return rc;
}

/* One of those that are left, if any are. */
static bool
take(_Atomic int64_t *n)
{
	int64_t left = *n;

	while (left > 0)
		if (atomic_compare_exchange_weak(n, &left, left - 1))
			return true;
	return false;
}

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* A stall that is made shorter ends then. */
static void
wait_for(const _Atomic int64_t *ns)
{
	const struct timespec slice = { 0, 2000000 };
	const int64_t began = *ns ? now() : 0;

	while (*ns && now() - began < *ns)
		nanosleep(&slice, NULL);
}

/* The folder of an open file, as a number that is neither 0 nor 1. 0: a file of a store, which syncs its beats whenever
 * it likes. */
static int64_t
folder_of(int fd)
{
	char link[64], path[4096] = "";
	int64_t sum = 5381;

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof path - 1) < 0)
		return 2;
	if (strstr(path, "/store/"))
		return 0;
	for (const char *p = path; p < strrchr(path, '/'); p++)
		sum = (sum * 33 + *p) & INT32_MAX;
	return sum | 2;
}

/* Does a sync of this file fail? */
static bool
is_stuck(int fd)
{
	int64_t fresh = 1, folder;

	if (!faults->sync_stuck && !faults->sync_fails)
		return false;
	folder = folder_of(fd);
	if (faults->sync_stuck > 1)
		return folder == faults->sync_stuck;
	if (!folder || !take(&faults->sync_fails))
		return false;
	atomic_compare_exchange_strong(&faults->sync_stuck, &fresh, folder);
	return true;
}

int
fdatasync(int fd)
{
	faults->syncs++;
	wait_for(&faults->sync_stall);
	return is_stuck(fd) ? fail(EIO) : NEXT(fdatasync)(fd);
}

int
fsync(int fd)
{
	return faults->no_fsync ? fail(EIO) : NEXT(fsync)(fd);
}

int
fallocate(int fd, int mode, off_t at, off_t n)
{
	return faults->full ? fail(ENOSPC) : NEXT(fallocate)(fd, mode, at, n);
}

int
fstatvfs(int fd, struct statvfs *st)
{
	const int rc = NEXT(fstatvfs)(fd, st);

	if (rc == 0 && faults->full)
		st->f_bavail = st->f_bfree = 0;
	return rc;
}

ssize_t
pread(int fd, void *p, size_t n, off_t at)
{
	wait_for(&faults->read_stall);
	return NEXT(pread)(fd, p, n, at);
}

/* Within what a file already has, a full disk still takes writes. */
ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
	if (faults->full && at + (off_t)n > lseek(fd, 0, SEEK_END))
		return fail(ENOSPC);
	return NEXT(pwrite)(fd, p, n, at);
}

/* --- memory, of the server and of all it links ------------------------------------ */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static bool
alloc_fails(void)
{
	if (faults->alloc_fail == 0 || take(&faults->alloc_skip) || !take(&faults->alloc_fail))
		return false;
	(void)fail(ENOMEM);
	return true;
}

void *
malloc(size_t n)
{
	return alloc_fails() ? NULL : __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
	return alloc_fails() ? NULL : __libc_realloc(p, n);
}

int
posix_memalign(void **out, size_t align, size_t n)
{
	*out = alloc_fails() ? NULL : __libc_memalign(align, n);
	return *out ? 0 : ENOMEM;
}
