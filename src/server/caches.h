/*
 * caches.h - the folders of the shards of a store that this node does not own.
 *
 *      this node is    the folder
 *      ──────────────  ───────────────────────────────────────────────────────────────────────────
 *      the owner       is the log: the thread leaves it alone
 *      the next owner  follows the line, so that a takeover reads little
 *      another node    is emptied when the node has not been the next owner for `settle`
 *
 *  CACHES-1  If the disk has less than 256 MiB free, the folders of all shards that the node does not
 *      own are emptied, and nothing is fetched for 10 minutes.
 *  CACHES-2  At most 32 MiB a second are fetched.
 *  CACHES-3  A lane that takes its shard waits until the thread has left the folder: at most for one
 *      request to the store.
 *  CACHES-4  A folder that may be the only copy of a part of its log stays as it is (MIRRORFOLLOW-1).
 *
 * One thread for a store. Any thread calls the functions.
 */
#ifndef SERVER_CACHES_H
#define SERVER_CACHES_H

#include "members/members.h"

struct caches;
struct store;

struct caches_conf {
	struct store *store; /* borrowed until caches_close, as all pointers here */
	const uint8_t *uuid; /* of the settings of the store */
	uint32_t shards;
	struct slu_log *log;
	slu_time lease;  /* how often a folder follows */
	slu_time settle; /* how long a folder stays that the node does not need */
	enum members_role (*role)(void *arg, uint32_t shard);
	void *arg;
};

/* Returns SLU_ENOMEM. */
int caches_new(struct caches **out, const struct caches_conf *conf, struct slu_err *err);

/* Begins to look after the folders. Returns SLU_EDOWN if the system has no more threads. */
int caches_start(struct caches *c, struct slu_err *err);

/* Ends the thread; takes and closed do nothing from then on. */
void caches_stop(struct caches *c);
void caches_free(struct caches *c); /* NULL is fine */

/* The functions of engine/tenure.h. A shard without a folder is left alone. */
void caches_waits(struct caches *c, uint32_t shard, const char *folder);
void caches_takes(struct caches *c, uint32_t shard);
void caches_closed(struct caches *c, uint32_t shard);

#endif
