/*
 * mirror_private.h - the inside of a mirror.
 *
 *      mirror.c        requests and answers, commits
 *      mirror_open.c   settings, taking the shard, mending the folder
 *      mirror_front.c  MIRROR-8: carrying a front folder
 *      mirror_leave.c  MIRROR-9
 */
#ifndef MIRROR_MIRROR_PRIVATE_H
#define MIRROR_MIRROR_PRIVATE_H

#include "members/on_store.h"
#include "mirror/body.h"
#include "mirror/cache.h"
#include "mirror/frontfolder.h"
#include "mirror/heads.h"
#include "mirror/mirror.h"

#include "base/clock.h"

#include <pthread.h>

enum {
	MIRROR_SHOTS = 32, /* more than a line has slots */
	MIRROR_TICK = 30,  /* the slot of mirror_tick */
	MIRROR_THREADS = 6 /* of the pool */
};

/* A request of the line on its way. */
struct mirror_shot {
	struct store_request request;
	struct mirror *mirror;
	unsigned slot;
};

struct mirror {
	struct mirror_conf conf; /* with defaults */
	struct wal_mirror hook;
	struct store_pool *pool; /* conf.pool, or own_pool */
	struct store_pool *own_pool;
	struct mirror_shot shots[MIRROR_SHOTS];
	uint8_t uuid[CACHE_UUID];
	char boot[CACHE_BOOT];
	struct body body; /* what the log wrote since the last commit; of the owner's thread */
	struct buf text;  /* the body as bytes; of the owner's thread */
	bool misplaced;   /* the log did not continue where the line ends; of the owner's thread */
	bool wanted;      /* mirror_want_group; of the owner's thread */

	pthread_mutex_t mtx;
	pthread_cond_t changed;

	/* shared, under mtx */
	struct line *line; /* NULL = not taken yet */
	struct cache cache;
	struct heads heads;
	uint64_t from;       /* the first group that the open reads, or the first one with a piece */
	uint64_t fetched;    /* groups that the open read */
	bool trusted;        /* the folder was right up to a group of the line */
	bool opened;         /* the shard is owned, the folder holds all groups */
	bool busy;           /* a commit is not confirmed */
	bool unsent;         /* the line has not got that commit yet */
	bool stored;         /* the last commit is confirmed, whatever happened to the shard since */
	slu_time time;       /* of that commit */
	bool down;           /* the last answer of the store was a failure */
	bool doubt;          /* the store failed: the line compares itself with it (MIRROR-7) */
	uint64_t breaks;     /* of the store, when the line began to compare itself */
	bool news;           /* poke the owner */
	bool closing;        /* no more requests */
	unsigned flying;     /* requests that were posted and are not done */
	bool over;           /* the shard is lost: why */
	struct slu_err why;  /* valid if over */
	struct slu_err last; /* the last failure of the store, for texts */
	slu_time good;       /* boot: the last answer that was not a failure */
	slu_time sent;       /* boot: when the last commit was sent */
	slu_time took;       /* how long the last commit took */

	/* MIRROR-8 */
	struct frontfolder front; /* of the folder */
	bool was_whole;           /* before the open */
	bool superseded;          /* the newest group is not pinned to the folder */
	int leaves;               /* MIRROR-9: the open folder, plus one; 0 = none */
	struct carrier carrier;
	struct carry_place goal;   /* of the last mirror_carry */
	struct carried on_way;     /* the group on its way ends here */
	_Atomic uint64_t home;     /* the line has the log up to here: mirror_pack */
	_Atomic uint64_t carried;  /* groups of the log since the open */
	_Atomic bool goal_reached; /* nothing has to be carried, or the shard is lost */
};

/* A place as a number. */
static inline uint64_t
mirror_pack(struct carry_place p)
{
	return (uint64_t)p.segment << 32 | p.offset;
}

static inline struct carry_place
mirror_unpack(uint64_t n)
{
	return (struct carry_place){ (uint32_t)(n >> 32), (uint32_t)n };
}

/* Under mtx: sends what the line asks for. */
void mirror_pump(struct mirror *m);

/* Under mtx, mirror_front.c: gives the line the next group of a front folder, if it is ready. */
void mirror_carry_on(struct mirror *m);

/* Under mtx, mirror_front.c: the group on its way is confirmed. */
void mirror_carried(struct mirror *m);

/* mirror_front.c: reads the file `front`. Returns SLU_EINVAL if the folder is a front and conf.front is not
 * set. */
int mirror_front_open(struct mirror *m, int folder, struct slu_err *err);

/* mirror_front.c: the cache is open. Makes the folder a front, if it is to become one. FRONT-1, FRONT-3:
 * nothing in a folder that was not whole, or was left, is trusted. */
int mirror_front_begin(struct mirror *m, int folder, struct slu_err *err);

/* Under mtx, mirror_front.c: line_conf.may_take of a whole front. */
bool mirror_front_may_take(struct mirror *m, const struct line_group *newest);

/* Under mtx, mirror_front.c: the line is open, and the folder has what it had. */
int mirror_front_opened(struct mirror *m, struct slu_err *err);

/* Whether the folder is the log. */
static inline bool
mirror_is_whole(const struct mirror *m)
{
	return m->front.state == FRONT_WHOLE;
}

/* Under mtx: begins to write the loose groups as a span at intervals (LINE-6). A request for the
 * clock that is due later is the timer. */
void mirror_tick(struct mirror *m);

/* Under mtx: the mirror has failed. */
void mirror_give_up(struct mirror *m, const struct slu_err *why);

/* Under mtx: waits a moment for news. Returns SLU_EDOWN if the store has failed for longer
 * than the patience, SLU_ECANCELED. */
int mirror_pause(struct mirror *m, struct slu_err *err);

/* Under mtx: posts a request of a line. `done` may be the caller's, and ends with mirror_landed.
 * Returns the codes of the pool. */
int mirror_post(struct mirror *m, const struct line_request *r, slu_time due,
		void (*done)(struct store_request *r), struct slu_err *err);

/* Under mtx: a request is done. After the unlock the mirror may be gone. */
void mirror_landed(struct mirror *m);

/* mirror_open.c: the kernel's number of this start of the machine. If the kernel has none, it differs each
 * time, and the folder is never trusted. */
void mirror_boot(char boot[static CACHE_BOOT]);

/* mirror_open.c: wal_mirror.mend. */
int mirror_mend(void *arg, struct disk *disk, int folder, struct slu_err *err);

#endif
