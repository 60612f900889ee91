/*
 * walkit.h - a log on a simulated disk, and what must be in it.
 *
 * Records carry their group, their place in it, how many it has and in which life of
 * the log they were written; the rest of the body follows from those. So replay can
 * see without any memory of its own that groups are whole, in order, unharmed, and
 * not left over from an earlier life: it fails the test on the spot.
 *
 *         walkit_init(&k, 64 * 1024);
 *         walkit_open(&k);
 *         walkit_group(&k, 3, 100, true);         answered
 *         walkit_crash(&k, seed);                 power cut
 *         walkit_open(&k);                        checks: group 1 is there
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

struct walkit {
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
	uint32_t in_group; /* of the one that is not whole yet */
};

void walkit_init(struct walkit *k, uint32_t segment_size);
void walkit_release(struct walkit *k);

/* Opens and checks: all that was answered is there, and what else is there are whole
 * groups that were attempted. From then on they count as answered. */
int walkit_open(struct walkit *k);
void walkit_close(struct walkit *k);

/* One group; a code when reserve or commit gave one (k->err has it). Answered when
 * it was synced and returned 0. */
int walkit_group(struct walkit *k, unsigned records, size_t body, bool sync);

/* Give the oldest segment back, whatever it holds. */
int walkit_recycle(struct walkit *k);

void walkit_crash(struct walkit *k, uint64_t seed); /* the power goes and comes back */
void walkit_kill(struct walkit *k);                 /* the process does */

/* The bytes of a file of the folder. */
char *walkit_file(struct walkit *k, const char *name, size_t *size);

#endif
