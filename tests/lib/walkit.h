/*
 * walkit.h - a log on a simulated disk, and what must be in it.
 *
 * Records carry their group, their place in it, how many it has and in which life of
 * the log they were written; the rest of the body follows from those. So replay can
 * see without any memory of its own that groups are whole, in order, unharmed, and
 * not left over from an earlier life: it fails the test on the spot.
 *
 *         walkit_start(64 * 1024);
 *         walkit_group(3, 100, true);         answered
 *         walkit_crash(seed);                 power cut
 *         walkit_open();                      checks: group 1 is there
 *
 * With KIT_STORE in the environment the log lives in a store, and the folder is a cache
 * (mirror/mirror.h): walkit_group waits until the store has the group. A test program that runs with
 * KIT_STORE names the cases for which that makes sense (tests/unit/meson.build). The value of KIT_STORE is
 * the name of a row of store_rig.h; any other value is the store in memory.
 *
 * There is one, k, which the harness releases after a test.
 */
#ifndef TESTS_WALKIT_H
#define TESTS_WALKIT_H

#include "fakeclock.h"
#include "simdisk.h"
#include "test.h"
#include "wal/wal.h"

enum {
	WALKIT_GROUPS = 100000
};

extern struct walkit {
	struct simdisk disk;
	struct fakeclock clock;
	struct slu_log *log;
	char logged[8192]; /* warnings and worse, as far as they fit */
	struct wal_conf conf;
	struct wal *w; /* NULL: not open */
	struct slu_err err;

	uint32_t life;
	uint32_t answered;      /* groups that must be there */
	uint32_t attempted;     /* those after it may be */
	uint32_t *life_of;      /* [group] in which it was written last */
	struct wal_where where; /* of the last record appended */

	uint32_t recycled; /* groups up to this one may be gone, wholly or in part */

	/* What the last open has seen. */
	uint64_t last_seq;
	uint32_t seen;     /* groups, whole */
	uint32_t records;  /* in all */
	uint32_t in_group; /* of the group that is not whole yet */
} k;

/* Replaces the log that was there. */
void walkit_init(uint32_t segment_size);
void walkit_start(uint32_t segment_size); /* and opens it, which succeeds */
void walkit_release(void);
#ifndef WALKIT_OWN_FIXTURE /* a test program with a fixture of its own calls walkit_release */
FIXTURE(NULL, walkit_release);
#endif

/* Opens and checks: all that was answered is there, and what else is there are whole
 * groups that were attempted. From then on they count as answered. */
int walkit_open(void);
void walkit_close(void);

/* One group; a code when reserve or commit gave one (k.err has it). Answered when
 * it was synced and returned 0. */
int walkit_group(unsigned records, size_t body, bool sync);

/* Give the oldest segment back, whatever it holds. */
int walkit_recycle(void);

void walkit_crash(uint64_t seed); /* the power goes and comes back */
void walkit_kill(void);           /* the process does */

/* The bytes of a file of the folder. */
char *walkit_file(const char *name, size_t *size);

/* The place of a record as one number, and back without its length. */
static inline uint64_t
wal_pack(struct wal_where at)
{
	return (uint64_t)at.segment << 32 | at.offset;
}

static inline struct wal_where
wal_unpack(uint64_t packed)
{
	return (struct wal_where){ (uint32_t)(packed >> 32), (uint32_t)packed, 0 };
}

#endif
