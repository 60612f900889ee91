/*
 * rejoin.h - the parts of `sluice admin store rejoin`.
 *
 *      store_rejoin.c     the folders, what is found, output
 *      rejoin_compare.c   where a folder and its line part
 *      rejoin_send.c      batches to a server
 */
#ifndef CLI_STORE_REJOIN_H
#define CLI_STORE_REJOIN_H

#include "cli/store/store_private.h"
#include "engine/log/rejoin.h"
#include "mirror/cache.h"

enum {
	REJOIN_PATH = 4096,
	REJOIN_SHARD = 64 /* bytes of the name of a shard in an intake */
};

/* Where a folder and the line of its shard part. */
struct rejoin_split {
	struct logengine_spot at;  /* the first place where they differ, or where the line ends */
	uint64_t group;            /* the group of the line that differs; 0 = the line ends there */
	struct logengine_spot end; /* inner: where the last piece that is equal ends */
	bool pinned;               /* the newest group that was read is pinned ... */
	uint8_t life[LINE_LIFE];   /* ... to this front folder */
};

/* Reads the line of the shard and compares it with the segments of the folder. Returns SLU_ECONFLICT if
 * the two have no place in common, SLU_EBUSY if the line changes all the time, SLU_ECORRUPT, SLU_EDOWN. */
int rejoin_compare(struct store_command *c, const char *folder, const char *shard, struct rejoin_split *out,
		   struct slu_err *err);

/*
 * Batches of messages, each accepted once (POST /v1/admin/intake).
 *
 * The source is made of the store, the shard and the last group of the folder, so each run of the command
 * sends the same batches. A queue stays with the shard that the first run chose: the file `rejoin` in the
 * folder remembers it.
 */
struct rejoin_target {
	char shard[REJOIN_SHARD]; /* that accepts the batches */
	uint64_t batch;           /* the number of the next one */
	struct buf messages;      /* of that batch, as JSON, with commas between them */
	uint32_t n;               /* how many */
};

struct rejoin_queue {
	char *space, *queue;
	uint32_t target; /* index */
};

struct rejoin_sender {
	struct session *s;
	const char *folder;
	char source[40]; /* uuid, as text */
	struct rejoin_queue *queues;
	uint32_t n_queues, max_queues;
	struct rejoin_target *targets;
	uint32_t n_targets, max_targets;
	uint64_t sent;  /* messages that this run has handed in */
	uint64_t known; /* messages that an earlier run had handed in */
};

/* Reads the file `rejoin`, if the folder has one. */
int rejoin_sender_open(struct rejoin_sender *r, struct session *s, const char *folder,
		       const struct cache_facts *cache, struct slu_err *err);
void rejoin_sender_close(struct rejoin_sender *r); /* zeroed is fine */

/* Adds a message to the batch of its shard, and sends the batch if it is full. */
int rejoin_send(struct rejoin_sender *r, const struct message *m, struct slu_err *err);

/* Sends the rest. */
int rejoin_flush(struct rejoin_sender *r, struct slu_err *err);

#endif
