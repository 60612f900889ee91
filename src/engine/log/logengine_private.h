/*
 * logengine_private.h - the state of the log engine. Only for log*.c.
 */
#ifndef ENGINE_LOG_LOGENGINE_PRIVATE_H
#define ENGINE_LOG_LOGENGINE_PRIVATE_H

#include "engine/ledger/ledgerengine.h"
#include "engine/log/logengine.h"
#include "engine/log/file.h"
#include "engine/log/place.h"
#include "engine/log/record.h"
#include "engine/log/transit.h"
#include "engine/msgbatch.h"

#include "base/mem.h"
#include "mirror/mirror.h"

#include <pthread.h>

/* The last place of a record that the ledger has no place for. */
struct logengine_note {
	uint32_t segment; /* 0 = not written */
	uint32_t length;
};

/* Records about a queue itself. */
struct logengine_queue {
	struct logengine_note policy;
	struct logengine_note spelling;
	bool retake; /* the record of its batch must be written again: CLEAN-8 of clean.c */
};

/* A slice of cleaning: clean.c. */
struct logengine_clean {
	struct wal_cursor cursor;
	uint32_t segment; /* the segment being cleaned, or 0 */
	uint32_t queue;   /* the next queue whose policy and spelling may be in the segment */
	bool rewritten;   /* the policies, the spellings and the ceiling of the segment were written again */
	bool read;        /* the segment was read to its end: it can go when nothing lives there */
	bool again;       /* the next slice is due at once */
	bool blocked;     /* no room or memory: try again in the next run */
	bool damaged;     /* a record cannot be read: cleaning has stopped */
	uint32_t tried;   /* CLEAN-7: segments cleaned on a full disk */
	uint64_t least;   /* CLEAN-7: live bytes when the first of them began */
	uint64_t kept;    /* mean size of the record of a remembered key */
	uint64_t texts;   /* mean size of the errors of relocated messages, 0 = without one */
	uint64_t slice;   /* bytes copied by this run's slice */
	uint64_t copied;  /* bytes copied since open */

	/* The store must have the log up to here before the segment goes; 0 = not known yet. */
	struct wal_where home;
};

/* The search for remembered keys: move.c. */
struct logengine_recall {
	uint32_t queue;
	uint32_t segment; /* the next segment to read; 0 = the first */
	bool wanted;      /* this round found keys to move */
};

enum {
	LOGENGINE_BACKUPS = 4 /* at once; one of a killed client does not block the next */
};

/* The files of a backup: backup.c. */
struct logengine_backup {
	struct wal_copy copy;          /* its files are NULL without a backup */
	struct logengine_file **files; /* payload files, pinned */
	uint32_t n_files;
	uint64_t id;
	slu_time until; /* the backup ends then; each read moves it */
};

/* The thread that makes spare segments ahead of need: helper.c. */
struct logengine_helper {
	pthread_t thread;
	bool started;
	pthread_mutex_t mtx;
	pthread_cond_t cond;
	/* shared, under mtx */
	bool wanted;
	bool stopping;
};

/* LOGENGINE-13: front.c. */
struct logengine_front {
	bool on;
	slu_time interval; /* front.flush.interval */
	uint64_t bytes;    /* front.flush.bytes */
	uint64_t max;      /* front.max; 0 = no limit */
	slu_time drain;    /* front.drain */
	slu_time patience; /* store.patience: how long ops wait with front.max reached */

	struct carry_place end;  /* of the log */
	uint64_t seq;            /* of the last record of the log */
	struct carry_place goal; /* the stretch on its way, or the last one, ends here */
	bool carries;            /* a stretch is on its way */
	bool slow;               /* front.down */
	bool full;               /* new work was refused last: no room, or a new segment cannot be made */
	uint64_t goal_seq;       /* of the last record of that stretch */
	uint64_t home_seq;       /* of the last record that the store has */
	uint64_t groups;         /* of the log: those that the store lacked at open, and all since */
	uint64_t lag;            /* bytes that the store lacks */
	slu_time since;          /* boot: when the oldest of them was written, 0 = never */
	slu_time next_since;     /* the same behind the stretch on its way */
	slu_time tick;           /* mono: the next look */
	slu_time over_since;     /* mono: front.max is reached; 0 = it is not */
};

/* LOGENGINE-15: leave.c. Kept when the engine is reopened. */
struct logengine_leave {
	bool broken;             /* the front folder has failed, or is full */
	struct carry_place end;  /* of what it has answered */
	uint64_t durable;        /* of the last record that is known to be synced */
	bool left;               /* the log goes on without the front folder */
	uint8_t uuid[LINE_LIFE]; /* of that folder */
	char *folder;            /* the spare folder of the shard; NULL = not known yet */
};

/* Fetches payload files ahead of claims: prefetch.c. All zeros: off. */
struct logengine_prefetch {
	uint32_t batch; /* messages ahead */
	uint64_t bytes; /* of their payloads */
	uint32_t scans; /* of the run */
	pthread_t thread;
	bool started;
	pthread_mutex_t mtx;
	pthread_cond_t cond;
	/* shared, under mtx */
	struct logengine_file **waiting; /* pinned; room for `batch` */
	uint32_t n;
	bool stopping;
};

/* A log in a store: stored.c. All zeros without one. */
struct logengine_stored {
	struct store *store;
	struct mirror *mirror;
	bool own_store;                /* close it */
	bool sent;                     /* the group of the batch is on its way */
	uint64_t epoch, counter;       /* of line and ledger when the run began (LOGENGINE-16) */
	char line[LINE_SHARD_MAX + 1]; /* number of the shard in the store, as text */
	void (*poke)(void *arg);       /* engine_conf.poke */
	void *poke_arg;
	const struct engine_tenure *tenure; /* engine_conf.tenure */
	uint32_t lane;                      /* engine_conf.lane */
	struct logengine_front front;
};

/* engine_ops.lag, for any thread. */
struct logengine_lag {
	bool in_store;  /* fixed: the log lives in a store */
	bool has_front; /* fixed: LOGENGINE-13 */
	_Atomic uint64_t groups;
	_Atomic uint64_t bytes;
	_Atomic slu_time since;
};

/* Set in op_ref.where for a payload file. Without it `where` is an offset and a length. */
#define LOGENGINE_REF_FILE (1ull << 63)

struct logengine {
	struct engine engine;
	struct logengine_conf more; /* for reopening */
	uint64_t most;              /* largest payload in the log, in bytes: LOGENGINE-7 */
	struct logengine_files files;
	struct logengine_transit transit;
	bool failed;             /* LOGENGINE-5 */
	bool told;               /* a run has returned the failure; false = the next run is due at once */
	char why[240];           /* why the engine failed */
	uint8_t life[LINE_LIFE]; /* LOGENGINE-11: of this engine, in the line */
	bool owned;              /* the engine has owned its shard in the store */
	uint64_t put_epoch;      /* of the newest group that the engine put or tried to put */
	bool given;              /* LOGENGINE-12: not taken, or given up; no failure */
	bool refilled;           /* the folder was damaged, and the store fills it */
	struct logengine_lag lag;
	_Atomic bool flush_wanted; /* engine_ops.flush */
	struct logengine_leave leave;

	/* What follows begins with zeros each time the engine is opened. */
	struct ledgerengine ledgerengine;
	struct ledger *ledger; /* the ledger engine's */
	struct wal *wal;
	struct logengine_stored stored;
	struct places places;
	struct clock *clock;
	struct slu_log *log;
	const struct engine_conf *conf; /* during open */

	/* The current run. */
	slu_time now;          /* time of its group */
	slu_time mono;         /* when the run began, by the clock */
	bool must_sync;        /* LOGENGINE-1 */
	uint64_t appended;     /* bytes in the group, without copies by cleaning */
	uint64_t owed;         /* bytes reserved to undo what the group has: messages that were accepted, keys that were released */
	uint64_t owed_largest; /* of the records of `owed` that are larger than an UNDO, the largest; or 0 */
	struct buf scratch;    /* the head of a message, or an error text */

	uint64_t highest_id;
	uint64_t ceiling; /* LOGENGINE-3 */
	uint32_t block;   /* numbers reserved at a time */
	uint32_t renew;   /* reserve more if fewer numbers are left */
	uint32_t ceiling_segment;
	uint32_t reserve;               /* LOGENGINE-6 */
	uint32_t largest_segment;       /* bytes, once segments have grown: WAL-9 of wal.h */
	struct logengine_queue *queues; /* by handle */
	uint32_t n_queues;
	uint32_t *purging; /* queues with a purge that may still be freeing messages: CLEAN-5 */
	uint32_t n_purging;
	uint32_t max_purging;

	struct logengine_clean clean;
	struct logengine_recall recall;
	struct logengine_backup backups[LOGENGINE_BACKUPS];
	struct logengine_helper helper;
	struct logengine_prefetch prefetch;

	/* Replay. */
	bool dry; /* without a log: no places, no live bytes */

	/* Called for each record. If it returns false, replay ignores the record. NULL = not called. */
	bool (*watch)(void *arg, const struct wal_record *rec);
	void *watch_arg;
	uint64_t records;
	uint64_t first_seq;
	uint64_t last_seq;
	uint32_t missing; /* documents that a key names and the log does not have */
	bool closed;      /* the last record was CLOSED */
	struct {
		uint64_t id;
		struct idem_mark idem;
	} keyed;             /* the last accept, restore or remember; for LOGENGINE_DIGEST */
	bool has_moved;      /* the last record was MESSAGE */
	struct change moved; /* the change of that MESSAGE */
	char moved_share[MESSAGE_SHARE_MAX];
	char moved_value[MESSAGE_VALUE_MAX];
};

static inline struct logengine *
logengine_of(struct ledgerengine *k)
{
	return CONTAINER(k, struct logengine, ledgerengine);
}

/* logengine.c: makes an engine without a log. */
int logengine_new(struct logengine **out, const struct engine_conf *conf,
		  const struct logengine_conf *more, struct slu_err *err);

/* Opens and replays the log. */
int logengine_open_wal(struct logengine *l, const struct engine_conf *conf, bool read_only,
		       struct slu_err *err);
void logengine_free(struct logengine *l);

/* keep.c */

/* Reserves room for a record with a body of `size` bytes, for a ceiling and for
 * the undo records owed. */
int logengine_reserve(struct logengine *l, enum wal_use use, uint64_t size, struct slu_err *err);

/* The same, and for a digest record if digest is not 0. */
int logengine_reserve_with_digest(struct logengine *l, enum wal_use use, uint64_t size,
				  uint64_t digest, struct slu_err *err);

/* Appends the digest of c, if it has one. Returns the bytes of the record. */
uint32_t logengine_put_digest(struct logengine *l, const struct change *c);

/* Append a record, and a ceiling. The caller has reserved the room. */
struct wal_where logengine_append(struct logengine *l, uint8_t type, const struct slice *parts,
				  unsigned n);
void logengine_put_ceiling(struct logengine *l, uint64_t counter);

/* A REPLACE of this message may follow; it needs the first record (CLEAN-10). */
static inline bool
logengine_is_replaced(const struct message *m)
{
	return m->idem.n > 0 || m->terms.batch == MSGBATCH_SELF;
}

/* CLEAN-9 of clean.c: the segment has a record of this type. keyed: of a message with an idempotency key, or of a batch. */
void logengine_note_need(struct logengine *l, uint8_t type, bool keyed, uint32_t segment);

/* The same, if the ceiling is too low for the number. */
void logengine_raise_ceiling(struct logengine *l, uint64_t number);

/* Makes a place for the last `size` bytes of a record's body and counts the record as live.
 * The caller has reserved the room. `file`: the payload file that the record names, already
 * counted, or SLAB_NONE. */
uint64_t logengine_name(struct logengine *l, struct wal_where at, uint64_t body, uint64_t size,
			uint32_t file);

/* LEDGER-12 of the ledger: arg is the engine. */
void logengine_drop(void *arg, uint64_t where);
uint64_t logengine_size(void *arg, uint64_t where); /* ledger_conf.size */

/* Makes room in l->queues for the queue. */
int logengine_reserve_queue(struct logengine *l, uint32_t queue, struct slu_err *err);

/* The record of the note is at `at` now: the old record is dead, the new one lives. */
void logengine_note(struct logengine *l, struct logengine_note *note, struct wal_where at);

/* The ledger forgets the queue: its records are dead, and its handle may be used again. */
void logengine_forget_queue(struct logengine *l, uint32_t queue);

struct logengine_names {
	char space[NAME_TEXT];
	char queue[NAME_TEXT];
};

/* Folds the names in a LOGENGINE_SPELLING. Returns SLU_ECORRUPT if they are invalid. */
int logengine_fold(const struct logengine_entry *entry, struct logengine_names *out, struct slu_err *err);

extern const struct ledgerengine_ops logengine_keeping;

/* Writes the head of a message's record into scratch. */
int logengine_encode_head(struct logengine *l, const struct message *m, struct slu_err *err);

/* The size of the record of m, whose head is in scratch. */
static inline size_t
logengine_message_size(const struct logengine *l, const struct message *m)
{
	return l->scratch.n + m->payload.n;
}

/* Appends the record of m, whose head is in scratch, and names its payload file. Raises the
 * ceiling if `number` needs that. Sets *where to the record's place. The caller has reserved
 * the room. Returns SLU_EINVAL if there is no such file. */
int logengine_put_message(struct logengine *l, uint8_t type, const struct message *m,
			  uint64_t number, uint64_t *where, struct slu_err *err);

/* Reserves room for a MESSAGE and its RESTORE, a digest if it is not 0, and two places. */
int logengine_reserve_restore(struct logengine *l, enum wal_use use, uint64_t message,
			      uint64_t restore, uint64_t digest, struct slu_err *err);

/* move.c: ledgerengine_ops.keep_given and .recall. */
int logengine_keep_given(struct ledgerengine *k, const struct message *m, struct change *c,
			 struct slice error, struct slu_err *err);
int logengine_recall(struct ledgerengine *k, uint32_t queue, struct ledgerengine_recall *to, bool *end,
		     struct slu_err *err);

/* The type of a RETRY, DIE or RESTORE whose text has attempts (engine/attempts.h). If a node of the store cannot read that
 * type, or the disk is full, only the error is kept: sets the text of the entry, and *text, to it. */
void logengine_type_attempts(const struct logengine *l, struct logengine_entry *entry, struct slice *text);

/* Sets *text to the text of a change of a move, which may be in scratch. Leaves *text alone
 * for other changes. */
int logengine_move_text(struct logengine *l, const struct change *c, struct slice *text,
			struct slu_err *err);

/* Replay and cleaning of the records of moves. */
int logengine_replay_move(struct logengine *l, const struct wal_record *rec,
			  struct logengine_entry *entry, struct slu_err *err);
int logengine_clean_move(struct logengine *l, const struct wal_record *rec,
			 struct logengine_entry *entry, struct slu_err *err);

/* CLEAN-8: writes the records of batches again for all queues with `retake`. */
int logengine_retake(struct logengine *l, struct slu_err *err);

/* replay.c: applies a change. */
int logengine_replay_apply(struct logengine *l, const struct change *c, struct slu_err *err);

/* Returns SLU_ECORRUPT: the record does not follow from the records before it. */
int logengine_unsound(struct slu_err *err);

/* Returns SLU_ENOMEM. */
int logengine_no_memory(struct slu_err *err);

/* keep.c: writes the spelling of a queue, once per log: LOGENGINE-8. */
int logengine_keep_spelling(struct logengine *l, uint32_t queue, enum wal_use use,
			    struct slu_err *err);

/* Adds an undo record to the room that the group needs. */
void logengine_owe_undo(struct logengine *l);

/* lock.c: ledgerengine_ops.keep_lock, .reserve_lock, .sync, .keep_document and .drop. */
int logengine_keep_lock(struct ledgerengine *k, struct lock_change *c, struct slu_err *err);
int logengine_reserve_lock(struct ledgerengine *k, struct lock_change *c, struct slu_err *err);
void logengine_sync_all(struct ledgerengine *k);
int logengine_keep_document(struct ledgerengine *k, const struct message *m, uint64_t *where,
			    struct slu_err *err);
void logengine_drop_document(struct ledgerengine *k, uint64_t where);

/* Replay of lock keys and documents. */
int logengine_replay_lock(struct logengine *l, const struct wal_record *rec,
			  const struct logengine_entry *entry, struct slu_err *err);
int logengine_replay_document(struct logengine *l, const struct message *m, uint64_t where,
			      struct slu_err *err);

/* Ends the replay of lock keys, after the last record. */
void logengine_locks_replayed(struct logengine *l);

/* Whether a lock key names the document. */
bool logengine_names_document(const struct logengine *l, uint64_t etag);

/* Cleaning of lock keys and documents. */
int logengine_clean_lock(struct logengine *l, const struct wal_record *rec,
			 struct logengine_entry *entry, struct slu_err *err);
int logengine_clean_document(struct logengine *l, const struct wal_record *rec,
			     struct logengine_entry *entry, struct slu_err *err);

/* replay.c: a wal_replay_fn; arg is the engine. */
wal_replay_fn logengine_replay;

/* clean.c: copies a slice of live records, before anything else of the group. */
void logengine_clean_slice(struct logengine *l);

/* CLEAN-6: counts one more record that names the payload file of a place. Returns the file, or
 * SLAB_NONE. */
uint32_t logengine_name_file_again(struct logengine *l, uint64_t where);

/* After the commit: recycles the segment if cleaning has read it to its end. */
int logengine_clean_end(struct logengine *l, struct slu_err *err);

/* backup.c: ledgerengine_ops.backup. */
void logengine_backup(struct ledgerengine *k, struct op *op);

/* Ends all backups, or those whose time is over. */
void logengine_backups_end(struct logengine *l);
void logengine_backups_tick(struct logengine *l);

/* When logengine_backups_tick ends the next backup, or SLU_NEVER. */
slu_time logengine_backups_due(const struct logengine *l);
int logengine_backup_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n,
			  char *out, struct slu_err *err);

/* stored.c: whether the log lives in a store. */
bool logengine_is_stored(const struct logengine *l, const struct engine_conf *conf);

/* Whether the folder is a front folder that has the log of its shard. */
bool logengine_is_pinned(const struct logengine *l, const struct engine_conf *conf);

/* Whether the log has a front folder: LOGENGINE-13. */
bool logengine_has_front(const struct logengine *l, const struct engine_conf *conf);

/* How long a batch may wait for the store; 0 = there is no store. */
slu_time logengine_store_patience(const struct logengine *l, const struct engine_conf *conf);

/* Open and close the store and the mirror; l->stored.mirror is NULL without a store. */
int logengine_store_open(struct logengine *l, const struct engine_conf *conf, struct slu_err *err);
void logengine_store_close(struct logengine *l);

/* LOGENGINE-12: puts a last group, and waits for it. Does nothing if the engine has failed, or with a
 * front folder. */
void logengine_store_end(struct logengine *l);

/* Closes the mirror; payload files in the store can still be read. */
void logengine_store_give(struct logengine *l);

/* Refuses a folder that is the cache of a store. */
int logengine_refuse_cache(const struct engine_conf *conf, struct slu_err *err);

/* Sets *now to the time of the shard at open (LINE-10). */
int logengine_store_now(struct logengine *l, slu_time *now, struct slu_err *err);

/* A run begins: payload files may wait for its group (FILE-9). Does nothing without a store. */
void logengine_store_begin(struct logengine *l);

/* Sends what the log committed, if it lives in a store. Returns ENGINE_LATER until the store has
 * it; `wait` waits instead. */
int logengine_store_commit(struct logengine *l, struct slu_err *err);
int logengine_store_wait(struct logengine *l, struct slu_err *err);

/* check.c: opens the log of a new engine read-only, and checks it. */
int logengine_examine(struct logengine *l, const struct engine_conf *conf, struct logengine_facts *out,
		      struct slu_err *err);

/* engine_ops.lag */
bool logengine_store_lag(struct engine *e, struct engine_lag *out);

/* front.c, LOGENGINE-13: after each commit. Returns the reason if the shard is lost or the folder is
 * broken. */
int logengine_front_commit(struct logengine *l, struct slu_err *err);

/* After the first group of this life: begins to carry what the store lacks. */
int logengine_front_opened(struct logengine *l, struct slu_err *err);

/* When the next stretch begins, in shard time. */
slu_time logengine_front_due(const struct logengine *l);

/* Whether the store has the log up to this place. True without a front folder. */
bool logengine_front_is_home(const struct logengine *l, struct wal_where place);

/* With front.max reached: new work waits for store.patience, then SLU_EFULL. */
slu_time logengine_front_rest(struct logengine *l);
int logengine_front_room(const struct logengine *l, struct slu_err *err);

/* leave.c, LOGENGINE-15: the folder of front.spare, or NULL = front.down is refuse. */
const char *logengine_spare(const struct logengine *l, const struct engine_conf *conf);

/* The engine fails: remembers to leave the front folder, if that is the reason. */
void logengine_note_broken(struct logengine *l);

/* Returns SLU_EFULL if the front folder is full, and may be left. */
int logengine_front_full(struct logengine *l, struct slu_err *err);

/* The store gets what the broken front folder has. Sets leave.left. The log is not open. */
int logengine_leave(struct logengine *l, const struct engine_conf *conf, struct slu_err *err);

/* Whether the store has all that the front folder has, after an open failed with rc: sets leave.left. */
bool logengine_may_leave(struct logengine *l, const struct engine_conf *conf, int rc);

/* Sets *to to the settings for an open in the spare folder. */
int logengine_in_spare(struct logengine *l, const struct engine_conf *conf, struct engine_conf *to,
		       struct slu_err *err);

/* FRONT-3: the log is open in the spare folder. */
void logengine_mark_left(struct logengine *l, const struct engine_conf *conf);

/* At a stop: waits for front.drain until the store has all, and logs what is left. */
void logengine_front_drain(struct logengine *l);

/* engine_ops.flush */
bool logengine_flush(struct engine *e);

/* engine_ops.rest */
slu_time logengine_store_rest(struct engine *e);

/* The payload files are in the store, too: FILE-7. Does nothing without a store. */
void logengine_store_files(struct logengine *l);

/* Whether to open once more after rc: the folder was damaged, and the store fills it. */
bool logengine_store_refill(struct logengine *l, int rc);

extern const struct engine_options logengine_options;

/* read.c: engine_ops.read, .read_near and .unpin; ledgerengine_ops.read. */
int logengine_read_here(struct ledgerengine *k, const struct op_ref *ref, char *out, bool may_block, struct slu_err *err);
int logengine_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
		   bool may_block, struct slu_err *err);
uint32_t logengine_read_near(const struct op_row *rows, uint32_t n, struct engine_near *near,
			     bool may_block);
void logengine_unpin(struct engine *e, struct op_ref *ref);

/* prefetch.c: LOGENGINE-14. end: the thread takes no more files; stop: also waits for it. */
int logengine_prefetch_start(struct logengine *l, const struct engine_conf *conf, struct slu_err *err);
void logengine_prefetch_end(struct logengine *l);
void logengine_prefetch_stop(struct logengine *l);
void logengine_claimed(struct ledgerengine *k, uint32_t queue);

/* helper.c */
int logengine_helper_start(struct logengine *l, struct slu_err *err);
void logengine_helper_stop(struct logengine *l);
void logengine_helper_wake(struct logengine *l);

#endif
