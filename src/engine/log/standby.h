/*
 * standby.h - the folder of a log in a store, while another node owns the shard.
 *
 * mirror/follow.h has the rules. Both functions block. One thread at a time uses a folder.
 */
#ifndef ENGINE_LOG_STANDBY_H
#define ENGINE_LOG_STANDBY_H

#include <sluice/err.h>

struct disk;
struct slu_log;
struct store;

struct logengine_standby {
	struct store *store;
	const uint8_t *uuid; /* of the settings of the store */
	uint32_t shard;      /* number of the shard in the store */
	const char *folder;
	struct disk *disk; /* NULL = disk_posix */
	const char *boot;  /* mirror_conf.boot */
	struct slu_log *log;

	/* Called before each request to the store. bytes: how many the request before it has fetched. If it
	 * returns false, the call ends with SLU_ECANCELED. */
	bool (*goes_on)(void *arg, uint64_t bytes);
	void *arg;

	uint64_t span;  /* the newest span that the folder has, as the last call found it; 0 = unknown */
	uint64_t bytes; /* how many bytes the last call has fetched */
};

/* Fetches what the folder lacks, as far as it is in spans. Returns SLU_ECORRUPT if the folder may be the
 * only copy of a part of the log, and is kept as it is. Returns SLU_EBUSY, SLU_EINVAL, SLU_EFULL,
 * SLU_EDOWN, SLU_ECANCELED, SLU_ENOMEM. */
int logengine_standby_follow(struct logengine_standby *s, struct slu_err *err);

/* Removes the log and the payload files from the folder. Returns the same codes. */
int logengine_standby_empty(struct logengine_standby *s, struct slu_err *err);

#endif
