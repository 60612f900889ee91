/*
 * mirror.h - keeps a log in a store; the folder of the log is a cache.
 *
 *      wal ──wrote──> body ──commit──> line ──requests──> pool ──> store
 *       ^                               │ confirmed, lost
 *       └──mend── cache <──read─────────┘
 *
 * A commit of the log becomes one group of the shard's line: the pieces that the log wrote
 * since the last group (body.h). When the line has confirmed the group, the store has it.
 *
 *         mirror_open(&m, &conf, &err);
 *         wal_open(&wal, { .mirror = mirror_hook(m), ... });    takes the shard, mends the folder
 *         for each batch:
 *                 wal_append ..., wal_commit(wal, ...)
 *                 mirror_commit(m, time, &err);
 *                 when conf.poke is called, or with mirror_wait: mirror_check(m, &err)
 *                 answer the batch
 *         mirror_close(m);
 *         wal_close(wal);
 *
 *  MIRROR-1  A batch is answered only after its group is confirmed.
 *  MIRROR-2  At open the folder becomes what the line holds. What the folder has and the line
 *      has not is cut; what the line has and the folder has not is fetched (LINE-8). The
 *      folder of another store or shard is refused by name.
 *  MIRROR-3  The log begins with the first group that has a piece in a segment of the log. A
 *      segment is recycled after the group with the copies of its records is confirmed, and
 *      the beginning moves with the group after that (LINE-7).
 *  MIRROR-4  A mirror that lost its shard never commits again. With only_own it does not
 *      take the shard from another node, and takes back what an earlier open of this life left.
 *  MIRROR-5  If the line lacks a group that it had confirmed to this folder, the store went back
 *      (LINE-15): the mirror refuses to open, and names the group. A folder that was right stays
 *      as it is.
 *  MIRROR-6  A commit without changes puts an empty group if this node may have lost the shard
 *      without having noticed (LINE-13), or if the owner of the mirror wants it.
 *  MIRROR-7  After a request to the store has failed, or a connection that other shards share was lost,
 *      the line compares itself with the store before its next group, and before it confirms the
 *      group on its way (LINE-15). Groups that the store lacks are put again from the folder
 *      (heads.h). If another group is there, the mirror is lost, and the folder stays as it is.
 *
 *  MIRROR-8  With `front` the folder is the log, and the mirror carries it to the line later:
 *
 *              wal ──sync──> folder ──carry──> line ──> store
 *                              │ answers the batch
 *
 *      The line always has a prefix of the log in the folder, in whole groups of the log. A group of
 *      the line has any number of them. At open the mirror finds the end of that prefix: groups that
 *      the file `mirror` does not know are compared with the folder. The shard is pinned (LINE-17).
 *      If another folder or node has the shard, or the store and the folder differ, the mirror
 *      refuses to open. Nothing in the folder is ever cut (frontfolder.h).
 *  MIRROR-9  A front folder that cannot be written any more can be left: mirror_leave carries what the
 *      folder has synced, and a mirror in another folder puts the opening behind it (`left`).
 *
 * One thread owns a mirror. The line belongs to the mutex: pool threads bring the answers of
 * the store.
 */
#ifndef MIRROR_MIRROR_H
#define MIRROR_MIRROR_H

#include "base/log.h"
#include "line/line.h"
#include "mirror/carry.h"
#include "store/store.h"
#include "wal/wal.h"

struct clock;
struct mirror;
struct store_pool;

struct mirror_conf {
	struct store *store;        /* borrowed until mirror_close, as all pointers here */
	struct store_pool *pool;    /* of the store; NULL = the mirror has one of its own */
	const uint8_t *uuid;        /* CACHE_UUID bytes of the settings; NULL = the mirror finds them */
	const char *shard;          /* name of the shard: one segment of a name (STORE-7) */
	uint32_t shards;            /* shards of the store; an existing store must have as many; 0 = 1 */
	const char *folder;         /* path of the log's folder, for texts */
	struct disk *disk;          /* of the folder; NULL = disk_posix */
	struct clock *clock;        /* NULL = clock_system */
	struct slu_log *log;        /* receives log lines */
	slu_time patience;          /* how long a store may fail at open; 0 = 30 s */
	struct slu_backoff retry;   /* after a failed request; zeros = 10 ms to 1 s, with jitter: a store that is too busy fails many at once */
	uint8_t life[LINE_LIFE];    /* of the node; zeros = a new one */
	bool only_own;              /* take the shard only if this life put its newest group */
	bool front;                 /* MIRROR-8 */
	bool without_front;         /* line_conf.unpins */
	const uint8_t *left;        /* line_conf.left */
	bool leaves;                /* MIRROR-9: for mirror_leave; the open does not need to write to the folder */
	uint64_t carry_bytes;       /* MIRROR-8: a group ends with this many bytes; 0 = 1 MiB */
	uint32_t span_groups;       /* LINE-6; 0 = 500 */
	uint32_t loose_groups;      /* LINE-6; 0 = 1,000 */
	uint64_t span_bytes;        /* LINE-6; 0 = 16 MiB */
	slu_time span_age;          /* LINE-6: how often loose groups become a span; 0 = 10 minutes */
	const char *boot;           /* changes when the machine starts; NULL = the kernel's */
	void (*poke)(void *arg);    /* mirror_check has news. A pool thread calls it. May be NULL */
	bool (*goes_on)(void *arg); /* false ends the open: SLU_ECANCELED. May be NULL */

	/* line_conf.may_take. A pool thread calls it, under the lock of the mirror. NULL = always. */
	bool (*may_take)(void *arg, const struct line_group *newest);

	/* Whether a commit without changes is answered at once (MIRROR-6). proved: boot time after
	 * which the line proves that this node owned the shard. NULL = always. */
	bool (*is_fresh)(void *arg, slu_time proved);
	void *arg;
};

enum {
	MIRROR_SEGMENT_SIZE = 16 << 20,
	MIRROR_BUSY = -1 /* of mirror_check; no SLU_ code */
};

/* Finds or creates the settings of the store, if conf->uuid is NULL. Returns SLU_EDOWN if the store
 * fails for longer than the patience, SLU_EINVAL, SLU_ECORRUPT, SLU_ENOMEM, SLU_ECANCELED. */
int mirror_open(struct mirror **out, const struct mirror_conf *conf, struct slu_err *err);

/* Lets the requests that run finish. The log writes nothing any more. NULL is fine. */
void mirror_close(struct mirror *m);

/* For wal_conf.mirror. Its `mend` returns SLU_EBUSY if another node has the shard or takes it
 * at the same time, SLU_ECORRUPT if the line is damaged, and the codes of mirror_open. */
const struct wal_mirror *mirror_hook(struct mirror *m);

/* Sends what the log wrote since the last commit. The commit before is confirmed. Returns
 * SLU_ECORRUPT if the log did not continue where the line ends: then the folder is not trusted
 * any more, and a new open fills it. Returns SLU_ENOMEM, or the reason of a lost shard. */
int mirror_commit(struct mirror *m, slu_time time, struct slu_err *err);

/* The next commit puts a group also without changes: the caller wants the proof that this node owns the
 * shard. */
void mirror_want_group(struct mirror *m);

/* Returns 0 if all commits are confirmed. Returns MIRROR_BUSY if a commit is not confirmed yet;
 * err->text then names what the mirror waits for. If the shard is lost: returns SLU_EBUSY if
 * another node has taken it and the line does not have the commit, SLU_EUNKNOWN if the line may have
 * it, SLU_ECORRUPT or SLU_EDOWN. */
int mirror_check(struct mirror *m, struct slu_err *err);

/* Waits until the mirror is not busy, at most `most` and while the patience lasts, then mirror_check. */
int mirror_wait(struct mirror *m, slu_time most, struct slu_err *err);

/* MIRROR-8: the log is synced up to this place, between two groups of the log: carries it to the line.
 * The place before is reached: mirror_check. conf.poke is called when this one is. */
void mirror_carry(struct mirror *m, struct carry_place to);

/* Tries again to carry, after the budget of the pool made the mirror wait. */
void mirror_nudge(struct mirror *m);

/* Waits until the place is reached, at most until this time (mono). */
void mirror_pause_until(struct mirror *m, slu_time until);

/* What a front folder has more than the line, for any thread. */
struct mirror_home {
	struct carry_place place; /* the line has the log up to here */
	uint64_t groups;          /* groups of the log that were carried since the open */
	bool reached;             /* the place of the last mirror_carry; also if the shard is lost */
};

struct mirror_home mirror_home(struct mirror *m);

/* Counts the groups of the log from the line's place to another one. Returns the codes of carrier_next,
 * SLU_ECORRUPT also if that one is before the line's. */
int mirror_count(struct mirror *m, struct carry_place to, uint64_t *groups, struct slu_err *err);

/* MIRROR-9: takes the shard for the front folder and carries the log up to the record `durable`, which is
 * before `end`. Sets uuid, LINE_LIFE bytes: of the folder. Instead of wal_open; the mirror can only be
 * closed afterwards. Returns the codes of `mend`, SLU_ECORRUPT if a durable record cannot be read,
 * SLU_EDOWN if the store fails. */
int mirror_leave(struct mirror *m, struct carry_place end, uint64_t durable, uint8_t *uuid, struct slu_err *err);

/* How long the next commit should wait because of the budget of the pool (POOL-6); 0 = not at all. */
slu_time mirror_rest(struct mirror *m);

/* Nothing in the folder is right: the next open fills it from the line. */
void mirror_distrust(struct mirror *m);

/* The wall clock of the store (LINE-10). Tries again while the patience lasts. Returns SLU_EDOWN,
 * SLU_ECANCELED. */
int mirror_clock(struct mirror *m, slu_time *wall, struct slu_err *err);

struct mirror_facts {
	struct line_facts line;
	slu_time took;    /* the time of the last put, from mirror_commit to its answer */
	slu_time sent;    /* boot time when the commit on its way was sent; 0 = all are confirmed */
	uint64_t bytes;   /* of the commit on its way */
	uint64_t fetched; /* groups that the open read from the store */
	bool trusted;     /* the folder was right up to a group of the line */
	bool opened;      /* the shard was taken and the folder mended */
	bool whole;       /* the folder was a front folder before the open */
	bool superseded;  /* the shard was taken without the front folder: the open failed for that */
};

struct mirror_facts mirror_facts(struct mirror *m);

/* line_facts.put_epoch; 0 = the mirror has put nothing. */
uint64_t mirror_put_epoch(struct mirror *m);

#endif
