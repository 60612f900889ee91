/*
 * simdisk.h - a disk in memory that keeps only what was synced.
 *
 *      write ──> what every read returns ("now")
 *        │
 *        └────> unsynced writes ──sync──> what a power cut leaves ("synced")
 *
 * simdisk_crash takes the power: of what was written since the last sync each sector
 * of 512 bytes is afterwards as it was synced or as any write since left it; of the
 * names that changed since sync_folder a first part stays. Which is decided by the
 * seed, so that a failing run can be run again.
 *
 * It can also fail one call, or all from one on, take the power at the n-th change,
 * fill up, flip bits, and it counts calls. After a failed sync the writes it was
 * asked for are lost for ever, as in a kernel that drops the pages (disk.h, DISK-2).
 *
 * Thread-safe. One folder level, a few dozen files.
 */
#ifndef TESTS_SIMDISK_H
#define TESTS_SIMDISK_H

#include "base/disk.h"

#include <pthread.h>

enum {
	SIM_SECTOR = 512,
	SIM_NAMES = 512,
	SIM_FILES = 16384, /* handles over the life of the disk */
	SIM_NAME = 128
};

enum sim_op {
	SIM_FOLDER,
	SIM_SYNC_FOLDER,
	SIM_LIST,
	SIM_RENAME,
	SIM_REMOVE,
	SIM_CREATE,
	SIM_OPEN,
	SIM_READ,
	SIM_WRITE,
	SIM_SYNC,
	SIM_SIZE,
	SIM_ALLOCATE,
	SIM_LOCK,
	SIM_OPS
};

#define SIM_BIT(op) (1u << (op))
#define SIM_ALL     ((1u << SIM_OPS) - 1)
#define SIM_CHANGES                                                       \
	(SIM_BIT(SIM_SYNC_FOLDER) | SIM_BIT(SIM_RENAME) |                 \
	 SIM_BIT(SIM_REMOVE) | SIM_BIT(SIM_CREATE) | SIM_BIT(SIM_WRITE) | \
	 SIM_BIT(SIM_SYNC) | SIM_BIT(SIM_ALLOCATE))

struct sim_write; /* one that was not synced */

struct sim_inode {
	char *now;
	size_t size;
	char *synced;
	size_t synced_size;
	struct sim_write *writes; /* newest first */
	bool locked;
	unsigned refs; /* names, old names and open files */
};

struct sim_names {
	unsigned n;
	struct {
		char name[SIM_NAME]; /* folder/name */
		struct sim_inode *inode;
	} at[SIM_NAMES];
	struct sim_names *older; /* the names before the last change */
};

struct sim_file {
	struct sim_inode *inode; /* NULL: a folder, or closed */
	char folder[SIM_NAME];
	bool locks;
};

struct simdisk {
	struct disk disk; /* first */
	pthread_mutex_t mtx;
	struct sim_names *names; /* newest first; the last ones are synced */
	struct sim_file *files;  /* SIM_FILES */
	int n_files;
	uint64_t capacity; /* bytes of all files; 0: endless */
	bool cold;         /* nothing can be read without waiting */
	bool steady;       /* the power never goes: only "now" is kept */
	bool dead;         /* the power is gone */
	unsigned long counts[SIM_OPS];
	unsigned long changes;   /* calls of SIM_CHANGES that were done */
	unsigned long power_off; /* dead when changes reaches it; 0: never */
	unsigned fail_ops;       /* SIM_BIT()s */
	unsigned long fail_in;   /* 1: the next one of them; 0: off */
	int fail_errno;
	bool fail_on; /* all of them from then on */
	bool failed;  /* it was reached */
};

void simdisk_init(struct simdisk *s);
void simdisk_release(struct simdisk *s);

/* The n-th call of one of ops from now fails with error; on: and all after it. */
void simdisk_fail(struct simdisk *s, unsigned ops, unsigned long n, int error, bool on);
void simdisk_heal(struct simdisk *s);

/* After n more changes every call fails with EIO and nothing changes any more. */
void simdisk_power_off(struct simdisk *s, unsigned long n);

/* The process dies and the machine goes on: handles and locks are gone, all else is
 * as it was, synced or not. */
void simdisk_kill(struct simdisk *s);

/* Power cut and back: handles are void, DISK-1 decides what is there. Seeds divisible
 * by 4 keep nothing that was not synced, those with rest 1 all. */
void simdisk_crash(struct simdisk *s, uint64_t seed);

/* The same, but all that was written is there, and of the last write to a file whose name
 * ends so, if it was not synced, the first n bytes alone. Returns how long that write
 * was, 0: there is none. */
size_t simdisk_tear(struct simdisk *s, const char *ending, size_t n);

/* All is synced and nothing open any more: a clean stop of the machine. */
void simdisk_settle(struct simdisk *s);

/* The bytes of a file, now and synced, for tests that spoil them; NULL when there
 * is none. "folder/name" */
char *simdisk_content(struct simdisk *s, const char *path, size_t *size);

/* The name of the i-th file, NULL behind the last. */
const char *simdisk_name(struct simdisk *s, unsigned i);

struct sim_image;

/* Remember all files and put them back, byte for byte, settled. */
struct sim_image *simdisk_save(struct simdisk *s);
void simdisk_load(struct simdisk *s, const struct sim_image *image);
void sim_image_free(struct sim_image *image);

uint64_t simdisk_used(struct simdisk *s); /* bytes of all files */

/* Sets `capacity` while other threads use the disk. full: what is used now; otherwise endless. */
void simdisk_fill(struct simdisk *s, bool full);

#endif
