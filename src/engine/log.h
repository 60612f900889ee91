/*
 * log.h - the durable engine: a ledger in memory, every change of it in a log.
 *
 *      op ──> clerk ──decides──> ledger
 *               │                  ^
 *               └──keeps──> log    └── at open: read back, record by record
 *
 *  G1  What one run appends is one group: after a crash it is there whole or not at
 *      all. It is synced before run returns when anything in it must be (enqueue, ack,
 *      nack, redrive, delete, purge, policy, dead letter; whatever changes a lock key);
 *      claims, extends and returns alone are written, and synced within a second.
 *  G2  The ledger is what the records say, no more: opening gives the same ledger any
 *      number of times. Memory names records by place (engine/log_place.h).
 *  G3  Numbers and tokens are set aside in blocks: a synced record holds a ceiling,
 *      none above it is ever answered. After an unclean stop the counter goes on at
 *      the ceiling. (With a sync interval, or none, as far as those reach.)
 *  G4  Cleaning reads the oldest segment in slices, appends what of it is still needed
 *      (messages as they stand, results, remembered idempotency keys, policies,
 *      spellings, lock keys and documents, the ceiling), and recycles it when nothing lives
 *      there. Until then replay meets both the old and the new, and the new only says where
 *      things are now: a crash at any point is harmless. Damage stops cleaning, never
 *      deletes.
 *  G5  A write or sync that failed ends the engine: SLU_EUNKNOWN for that run, then
 *      SLU_EDOWN until it is opened anew.
 *  G6  New work leaves room to settle old: 2 spare segments, and one more for every
 *      500,000 messages. Deliveries that end nothing can use that up, too: then they are
 *      refused, and what falls due happens when there is room; acks and purges go on.
 *  G7  A payload over 1 MiB is not in the log but in a file of its own, which the
 *      message's record names: engine/log_file.h.
 *  G8  Records name queues as they are looked up, folded. One that was spelled otherwise
 *      when it was made, or whose namespace was, has a record of its own that says so,
 *      before the first that names it.
 *
 * Limits: 8,192 segments, which grow from 1 MiB to 64 MiB; a record is smaller than the
 * largest.
 */
#ifndef ENGINE_LOG_H
#define ENGINE_LOG_H

#include "engine/engine.h"
#include "wal/salvage.h"

struct clock;

enum {
	LOG_LEAST_ROOM = 8 << 20 /* bytes: what an empty log takes, and a little more */
};

extern const struct engine_ops engine_log;

/* What tests set beside the engine's conf; zeros are the defaults. */
struct log_conf {
	struct clock *clock;    /* when to sync what may wait; NULL: clock_system */
	uint32_t segment_size;  /* of the largest: 64 MiB, which is also the most */
	uint32_t first_size;    /* of the first, if segment_size is set; 0: all are as large. Else
				 * 1 MiB */
	uint32_t max_segments;  /* files in all; 0: until the disk is full */
	bool no_helper;         /* no thread that makes spare segments ahead, or removes files */
	uint64_t most;          /* bytes of a payload that needs no file; 0: 1 MiB */
	struct hash_key secret; /* of the ledger; zeros: a fresh one every time */
};

int log_open(struct engine **out, const struct engine_conf *conf,
	     const struct log_conf *more, struct engine_found *found, struct slu_err *err);

/* For tests and for those who doubt. */
void log_stats(struct engine *e, struct wal_stats *out);
struct ledger *log_ledger(struct engine *e);
struct locks *log_locks(struct engine *e);
bool log_is_late(struct engine *e); /* the last run had no room for what fell due */

struct log_facts {
	uint64_t records;
	uint64_t first_seq;
	uint64_t last_seq;
	slu_time time; /* of the last group */
	uint32_t messages;
	uint32_t damaged; /* of these are set aside */
	uint32_t queues;
	uint32_t locks;           /* lock keys */
	uint32_t states;          /* messages that have one */
	uint32_t missing;         /* documents that keys name and nothing tells of */
	uint64_t files;           /* payloads that have one */
	uint64_t bad_files;       /* of these are missing or damaged */
	struct slu_err first_bad; /* the first, by name */
	bool closed;              /* the last stop was a clean one */
	bool compared;            /* else it would have taken too long to know `wrong` */
	const char *wrong;        /* what the ledger is found to be wrong in, or NULL */
};

/* Read the whole log and every payload file, and change nothing. SLU_ECORRUPT and the
 * like as open. */
int log_check(const struct engine_conf *conf, struct log_facts *out, struct slu_err *err);

struct log_salvage {
	struct salvage found; /* in the damaged log */
	uint64_t kept;        /* records of the new one */
	uint64_t n_left;      /* that did not follow from what is left */
	struct slu_err first_left;
	uint64_t files;     /* payload files copied */
	uint64_t bad_files; /* that could not be: their messages have none */
	struct slu_err first_bad;
};

/* Write what can be read of the log in `from` to a new one in `to`, which must have
 * none. SLU_EEXISTS, SLU_EFULL, SLU_EDOWN. disk NULL: disk_posix. */
int log_salvage(struct disk *disk, const char *from, const char *to,
		struct log_salvage *out, struct slu_err *err);

#endif
