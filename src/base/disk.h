/*
 * disk.h - files behind an interface.
 *
 * Code that must survive a power cut takes a struct disk: disk_posix in production, in
 * tests a simulated disk that loses unsynced writes, tears, flips bits, fills up and
 * fails on demand (tests/lib/simdisk.h).
 *
 * A small number names an open file or folder. Functions return 0 or more, or -errno.
 * Any thread may call them, but only one at a time for one file. Rules:
 *
 *  DISK-1  A power cut may undo a write until a sync of its file has returned 0, and a
 *      create, rename or remove until a sync_folder has. Each sector of 512 bytes is then
 *      old or new, independently of the others.
 *  DISK-2  After a failed sync the content of the disk is unknown, and a later sync that
 *      returns 0 does not change that.
 *  DISK-3  An allocated file can be written within its size even if the disk is full.
 */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <sluice/err.h>

struct disk;

enum {
	DISK_BLOCK = 4096 /* bytes; write_past writes whole blocks */
};

/* Called for every name in a folder. A result other than 0 ends the list, which returns it. */
typedef int disk_name_fn(void *arg, const char *name);

struct disk_ops {
	/* Opens a folder. Makes it if it is missing; its parent exists. */
	int (*folder)(struct disk *d, const char *path);
	int (*sync_folder)(struct disk *d, int folder);
	int (*list)(struct disk *d, int folder, disk_name_fn *fn, void *arg);
	int (*rename)(struct disk *d, int folder, const char *from, const char *to);
	int (*remove)(struct disk *d, int folder, const char *name);
	int64_t (*room)(struct disk *d, int folder);  /* bytes free */
	int64_t (*whole)(struct disk *d, int folder); /* bytes of the file system */

	/* Both open for reading and writing; create fails if the name exists. */
	int (*create)(struct disk *d, int folder, const char *name);
	int (*open)(struct disk *d, int folder, const char *name);
	void (*close)(struct disk *d, int file); /* a file or a folder */

	/* Returns the number of bytes read: less than n only at the end of the file. */
	int64_t (*read)(struct disk *d, int file, void *p, size_t n, uint64_t at);

	/* The same without waiting: returns -EAGAIN unless all bytes are in memory. */
	int64_t (*read_now)(struct disk *d, int file, void *p, size_t n, uint64_t at);

	/* Writes all n bytes. After an error any part may have been written. */
	int (*write)(struct disk *d, int file, const void *p, size_t n, uint64_t at);

	/* Optional; NULL: use write. The same past the page cache, for bytes that are not read again:
	 * it costs less than half as much. p, n and at are multiples of DISK_BLOCK. */
	int (*write_past)(struct disk *d, int file, const void *p, size_t n, uint64_t at);
	int (*sync)(struct disk *d, int file); /* content and size */
	int64_t (*size)(struct disk *d, int file);

	/* Makes the file this long, zeros where it was not written (DISK-3). */
	int (*allocate)(struct disk *d, int file, uint64_t size);

	/* Locks the file until it is closed. Returns -EWOULDBLOCK if another process has it. */
	int (*lock)(struct disk *d, int file);
};

struct disk {
	const struct disk_ops *ops; /* first member of every disk's struct */
};

extern struct disk disk_posix;

/* Fills err for a call that returned rc: "create 00000002.log: No space left on device". Returns
 * SLU_EFULL if the disk or a quota is full, SLU_ENOMEM, or SLU_EDOWN. */
int disk_fail(int64_t rc, const char *what, const char *name, struct slu_err *err);

#endif
