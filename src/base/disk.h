/*
 * disk.h - files behind an interface.
 *
 * Code that must survive a power cut takes a struct disk. In production it is
 * disk_posix; a test passes one that loses what was not synced, tears, flips bits,
 * fills up and fails on demand (tests/lib/simdisk.h).
 *
 * A file, like an open folder, is named by a small number. Calls return 0 or more,
 * or -errno. They may be called from any thread; who shares a file keeps its calls
 * apart. What they promise:
 *
 *  D1  A write is lost with the power unless a sync of its file returned 0 after it;
 *      a new, renamed or removed name unless a sync_folder did. Until then any sector
 *      of 512 bytes may be old or new, whatever the others are.
 *  D2  After a failed sync nobody knows what is on the disk, and a later sync that
 *      returns 0 says nothing about it.
 *  D3  An allocated file can be written within its size on a full disk.
 */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <sluice/err.h>

struct disk;

/* Called for every name in a folder; other than 0 ends the list and is returned. */
typedef int disk_name_fn(void *arg, const char *name);

struct disk_ops {
	/* Open a folder, making it (its parent is there) when it is missing. */
	int (*folder)(struct disk *d, const char *path);
	int (*sync_folder)(struct disk *d, int folder);
	int (*list)(struct disk *d, int folder, disk_name_fn *fn, void *arg);
	int (*rename)(struct disk *d, int folder, const char *from, const char *to);
	int (*remove)(struct disk *d, int folder, const char *name);
	int64_t (*room)(struct disk *d, int folder); /* bytes free */

	/* Both open for reading and writing; create wants the name to be new. */
	int (*create)(struct disk *d, int folder, const char *name);
	int (*open)(struct disk *d, int folder, const char *name);
	void (*close)(struct disk *d, int file); /* of a folder, too */

	/* How many bytes there were: less than n only at the end of the file. */
	int64_t (*read)(struct disk *d, int file, void *p, size_t n, uint64_t at);

	/* The same without waiting: -EAGAIN when not all is in memory. */
	int64_t (*read_now)(struct disk *d, int file, void *p, size_t n, uint64_t at);

	/* All or an error, after which any part may have been written. */
	int (*write)(struct disk *d, int file, const void *p, size_t n, uint64_t at);
	int (*sync)(struct disk *d, int file); /* content and size */
	int64_t (*size)(struct disk *d, int file);

	/* Make the file this long, zeros where it was not written, D3. */
	int (*allocate)(struct disk *d, int file, uint64_t size);

	/* Nobody else's until it is closed; -EWOULDBLOCK when it is somebody's. */
	int (*lock)(struct disk *d, int file);
};

struct disk {
	const struct disk_ops *ops; /* first member of every disk's struct */
};

extern struct disk disk_posix;

/* Say that a call returned rc: "create 00000002.log: No space left on device". Gives
 * SLU_EFULL when the disk or a quota is full, SLU_ENOMEM, or SLU_EDOWN. */
int disk_fail(int64_t rc, const char *what, const char *name, struct slu_err *err);

#endif
