/*
 * logengine.h - the durable engine: a ledger in memory, and every change of it in a log.
 *
 *      op ──> ledger engine ──decides──> ledger
 *                   │                      ^
 *                   └──keeps──> log        └── at open: replayed, record by record
 *
 *  LOGENGINE-1  A run appends one group: after a crash the group is there whole or not at
 *      all. The engine syncs the group before commit returns if it has an enqueue, ack, nack,
 *      redrive, delete, purge, policy, dead letter, or a change of a lock key. A group of
 *      claims, extends and returns is only written, and synced within a second.
 *  LOGENGINE-2  The records alone define the ledger: any number of opens gives the same
 *      ledger. Memory refers to records by place (engine/log/place.h).
 *  LOGENGINE-3  Numbers and tokens are reserved in blocks: a synced record has a ceiling, and
 *      the engine never answers a number above the ceiling. After an unclean stop the counter
 *      continues at the ceiling. (With a sync interval, or without sync, this holds as far as
 *      the log was synced.)
 *  LOGENGINE-4  Cleaning reads the oldest segment in slices, appends the records that are
 *      still needed (messages in their current state, results, remembered idempotency keys,
 *      policies, spellings, lock keys and documents, the ceiling), and recycles the segment
 *      when nothing lives there. Until then replay reads the old record and its copy, and the
 *      copy only changes the place: a crash at any point is harmless. Damage stops cleaning
 *      and never deletes anything.
 *  LOGENGINE-5  A failed write or sync ends the engine: that commit returns SLU_EUNKNOWN, later
 *      runs return SLU_EDOWN until the engine is reopened (LOGENGINE-9).
 *  LOGENGINE-6  New work leaves room to settle old messages: 2 spare segments, and one more
 *      for every 500,000 messages. Claims and nacks may use that room up. Then they are
 *      refused, and leases and ttls end when there is room again; acks and purges go on.
 *  LOGENGINE-7  A payload over 1 MiB is in a file of its own, which the record of the message
 *      names: engine/log/file.h.
 *  LOGENGINE-8  Records name queues in folded form. A queue that was created with another
 *      spelling, of itself or of its namespace, has a spelling record before the first record
 *      that names the queue.
 *  LOGENGINE-9  Reopening a failed engine discards the ledger and replays the log, as after a
 *      killed process: every answered change is there, and an unanswered group is there whole or
 *      not at all. Reopening returns SLU_EBUSY while a record is pinned or a payload file is in
 *      use, because the log may recycle their segments.
 *  LOGENGINE-10  run builds the group in memory. commit writes the group, begins a segment if
 *      need be, syncs, and recycles a cleaned segment: all that may block while the disk hangs.
 *      run waits for the disk only if it needs a spare segment that the helper has not made yet,
 *      or if cleaning reads a segment.
 *  LOGENGINE-11  With a store the log is a line in the store (mirror/mirror.h), and the folder is
 *      a cache. A run is answered when the store has its group. The time at open is the larger of
 *      the last time in the log and the clock of the store. The counter always continues at the
 *      ceiling, also after a clean stop; blocks have 2^24 numbers and are renewed when half is
 *      left. A reopened engine never takes its shard back from another node. Payloads above
 *      1 MiB are objects of their own (FILE-7).
 *  LOGENGINE-12  With a tenure (engine/tenure.h) open takes nothing, and every reopen takes the
 *      shard if the tenure allows it. A read is answered if the tenure is fresh, or after a put
 *      that was sent after the run. An engine that gives its shard up puts a last group, so that
 *      the next owner finds groups that the store has lost (LINE-15). It waits for at most 5 s.
 *  LOGENGINE-16  A virtual machine may be copied with its memory, and both may answer the batch whose group was on its
 *      way: its original delivers what the copy cannot. So if the line put an opening of its own while
 *      the group of a batch was on its way (LINE-1), nothing that the batch granted is given back: the leases end.
 *  LOGENGINE-13  With a front folder (store.front, MIRROR-8) the folder answers as without a store, and
 *      the log goes to the store behind. A segment is recycled after the store has the copies of its
 *      records. If the store lacks front.max bytes, new work waits, and is then refused.
 *  LOGENGINE-15  With front.down: slow the engine leaves a front folder that cannot be written or is full. The
 *      store first gets everything that the folder has synced; then the log goes on in the store, as
 *      without a front folder, and its cache is the folder front.spare. Claims and extends that were not
 *      synced are lost, as after a power cut. A full folder is left when the
 *      store has all of it. If a part that was synced cannot be read, the shard stays closed.
 *  LOGENGINE-14  In a store: a claim has the payload files of the next messages of its queue fetched
 *      into the folder, if the folder lacks them: at most prefetch_batch messages and prefetch_bytes.
 *      The order of claims does not depend on it.
 *
 * Limits: 8,192 segments, which grow from 1 MiB to 64 MiB; a record must fit into the
 * largest segment.
 */
#ifndef ENGINE_LOG_LOGENGINE_H
#define ENGINE_LOG_LOGENGINE_H

#include "engine/engine.h"
#include "store/store.h"
#include "wal/salvage.h"

struct clock;

enum {
	LOGENGINE_LEAST_ROOM = 8 << 20 /* bytes: the files of an empty log, and a little more */
};

extern const struct engine_ops engine_log;

enum logengine_front_kind {
	LOGENGINE_FRONT_NONE,
	LOGENGINE_FRONT_FOLDER
};

enum logengine_front_down {
	LOGENGINE_DOWN_REFUSE,
	LOGENGINE_DOWN_SLOW
};

/* Values of the engine's own settings. */
struct logengine_options {
	char *store;       /* URL; NULL = the log is in the folder */
	slu_time patience; /* engine_found.patience */
	bool unsafe;       /* store_conf.unsafe */
	slu_time delay;    /* store_conf.delay */
	uint32_t puts;     /* store_pool_conf.puts; 0 = the store decides */

	/* LOGENGINE-13 */
	enum logengine_front_kind front;
	slu_time flush_interval; /* a stretch begins at least this often, if there is one */
	uint64_t flush_bytes;    /* and when the log has grown by so many bytes; so large is a group */
	uint64_t front_max;      /* 0 = no limit */
	slu_time front_drain;
	enum logengine_front_down front_down; /* LOGENGINE-15 */
	char *front_spare;                    /* NULL = none */

	uint32_t prefetch_batch; /* LOGENGINE-14: messages; 0 = off */
	uint64_t prefetch_bytes; /* of their payloads */
};

/* Settings for tests; zeros are the defaults. */
struct logengine_conf {
	struct clock *clock;       /* decides when to sync; NULL = clock_system */
	uint32_t segment_size;     /* largest segment, at most 64 MiB; 0 = 64 MiB */
	uint32_t first_size;       /* first segment, if segment_size is set: 0 = segment_size.
				    * Without segment_size it is 1 MiB */
	uint32_t max_segments;     /* files in all; 0 = until the disk is full */
	bool no_helper;            /* no thread makes spare segments ahead or removes files */
	uint64_t most;             /* largest payload without a file, in bytes; 0 = 1 MiB */
	struct hash_key secret;    /* of the ledger; zeros = a new random one */
	struct store *store;       /* keeps the log, instead of logengine_options.store; borrowed */
	const char *boot;          /* mirror_conf.boot */
	struct clock *store_clock; /* mirror_conf.clock */
	uint32_t span_groups;      /* mirror_conf.span_groups */
	uint64_t front;            /* LOGENGINE-13: front.flush.bytes; 0 = no front folder */
	bool without_front;        /* mirror_conf.without_front */
	const char *spare;         /* LOGENGINE-15: front.spare; NULL = front.down is refuse */
};

int logengine_open(struct engine **out, const struct engine_conf *conf,
		   const struct logengine_conf *more, struct engine_found *found, struct slu_err *err);

/* For tests and checks. */
void logengine_stats(struct engine *e, struct wal_stats *out);
struct ledger *logengine_ledger(struct engine *e);
struct locks *logengine_locks(struct engine *e);
bool logengine_is_late(struct engine *e); /* the last run had no room to end a lease or a ttl: LOGENGINE-6 */

struct logengine_facts {
	uint64_t records;
	uint64_t first_seq;
	uint64_t last_seq;
	slu_time time; /* of the last group */
	uint32_t messages;
	uint32_t damaged; /* messages that are quarantined */
	uint32_t queues;
	uint32_t locks;           /* lock keys */
	uint32_t states;          /* messages that have a state */
	uint32_t missing;         /* documents that a key names and the log does not have */
	uint64_t files;           /* payload files that a message names */
	uint64_t bad_files;       /* payload files that are missing or damaged */
	struct slu_err first_bad; /* the first bad file */
	bool closed;              /* the last stop was clean */
	bool compared;            /* `wrong` is known; false = comparing takes too long */
	const char *wrong;        /* the rule of the ledger that does not hold, or NULL */
};

/* Reads the whole log and every payload file, and changes nothing. Returns the codes of
 * open. */
int logengine_check(const struct engine_conf *conf, struct logengine_facts *out, struct slu_err *err);

/*
 * Moves the log of a folder into a store: `sluice admin store adopt`. The folder is locked from open to
 * close, and changes only in claim.
 */
struct logengine_adopt;
struct adopt_conf; /* mirror/adopt.h */

/* Opens and checks the log, as logengine_check; facts tells whether it is sound. `folder` is kept by
 * the caller. */
int logengine_adopt_open(struct logengine_adopt **out, const char *folder, struct logengine_facts *facts,
			 struct slu_err *err);
void logengine_adopt_close(struct logengine_adopt *a); /* NULL is fine */

/* The bytes that put will report to to->progress. */
uint64_t logengine_adopt_bytes(struct logengine_adopt *a);

/* Puts the payload files and the log into the store. Sets *epoch. Returns the codes of adopt_log. */
int logengine_adopt_put(struct logengine_adopt *a, const struct adopt_conf *to, uint64_t *epoch,
			struct slu_err *err);

/* The folder is the cache of the shard from now on. uuid: of the store. */
int logengine_adopt_claim(struct logengine_adopt *a, const uint8_t *uuid, const char *shard,
			  struct slu_err *err);

struct logengine_salvage {
	struct salvage found;      /* in the damaged log */
	uint64_t kept;             /* records written to the new log */
	uint64_t n_left;           /* records left out: LOGSALVAGE-1 of salvage.c */
	struct slu_err first_left; /* why the first record was left out */
	uint64_t files;            /* payload files copied */
	uint64_t bad_files;        /* payload files that cannot be copied */
	struct slu_err first_bad;  /* the first bad file */
};

/* Writes the sound records of the log in `from` to a new log in `to`. Returns SLU_EEXISTS
 * if `to` has a log, SLU_EFULL, SLU_EDOWN. `disk`: NULL = disk_posix. */
int logengine_salvage(struct disk *disk, const char *from, const char *to,
		      struct logengine_salvage *out, struct slu_err *err);

#endif
