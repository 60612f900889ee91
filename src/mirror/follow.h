/*
 * follow.h - the folder of a shard that another node owns.
 *
 *      the owner          puts groups ──> store: span 1 to 500, span 501 to 900, groups 901, 902 ...
 *      the next owner     fetches the spans ahead, so a takeover reads little
 *      any other node     empties the folder
 *
 *  MIRRORFOLLOW-1  A folder changes only if the line still has the last group that this folder had from it, or if
 *      the line begins behind that group. Otherwise the store has lost groups, and the folder may be the
 *      only copy of them (LINE-15).
 *  MIRRORFOLLOW-2  Only spans are fetched: one object has many groups. A takeover reads the newest span and
 *      the groups that are in no span.
 *  MIRRORFOLLOW-3  The folder is locked meanwhile. A call that is killed leaves a folder that the next open
 *      continues.
 *  MIRRORFOLLOW-4  A segment that the log has left behind is removed.
 *  MIRRORFOLLOW-5  A front folder (frontfolder.h) never changes: it may be the only copy of its last groups.
 *
 * Blocks. One thread at a time uses a folder.
 */
#ifndef MIRROR_FOLLOW_H
#define MIRROR_FOLLOW_H

#include "base/disk.h"
#include "store/store.h"

struct follow_conf {
	struct store *store;
	const uint8_t *uuid; /* CACHE_UUID bytes of the settings of the store */
	const char *shard;   /* name of the shard in the store */
	const char *folder;  /* path of the log's folder */
	struct disk *disk;   /* NULL = disk_posix */
	struct slu_log *log; /* receives log lines */
	const char *boot;    /* mirror_conf.boot */

	/* Called before each request to the store. bytes: how many the request before it has fetched. If it
	 * returns false, the call ends with SLU_ECANCELED. May be NULL. */
	bool (*goes_on)(void *arg, uint64_t bytes);

	/* follow_empty has emptied the folder of the log, which is still locked: the caller removes files
	 * of its own. May be NULL. */
	void (*emptied)(void *arg, struct disk *disk, int folder);
	void *arg;
};

struct follow_facts {
	uint64_t span;   /* the first group of the newest span; 0 = the line has no span */
	uint64_t last;   /* the folder has the log up to this group; 0 = nothing is known */
	uint64_t groups; /* groups that were fetched */
	uint64_t bytes;  /* bytes of spans that were fetched */
};

/* Fetches the spans that the folder lacks, unless the newest span begins with group `seen`: then nothing
 * is new. Returns SLU_EBUSY if another process has the folder or the line has changed meanwhile,
 * SLU_ECORRUPT if MIRRORFOLLOW-1 or MIRRORFOLLOW-5 forbids it or the line is damaged, SLU_EINVAL if the folder is another
 * shard's, SLU_EFULL, SLU_EDOWN, SLU_ECANCELED, SLU_ENOMEM. */
int follow_line(const struct follow_conf *conf, uint64_t seen, struct follow_facts *out, struct slu_err *err);

/* Removes the log from the folder. Returns the codes of follow_line. */
int follow_empty(const struct follow_conf *conf, struct slu_err *err);

#endif
