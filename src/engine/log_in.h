/*
 * log_in.h - the state of the log engine, for log*.c alone.
 */
#ifndef ENGINE_LOG_IN_H
#define ENGINE_LOG_IN_H

#include "engine/clerk.h"
#include "engine/log.h"
#include "engine/log_file.h"
#include "engine/log_place.h"
#include "engine/log_record.h"

#include "base/mem.h"

#include <pthread.h>

/* Where a record was last written that nothing else names. */
struct log_note {
	uint32_t segment; /* 0: nowhere */
	uint32_t length;
};

/* What the log says of a queue itself. */
struct log_queue {
	struct log_note policy;
	struct log_note spelling;
	bool retake; /* its batch is to be written down anew: C8 of log_clean.c */
};

/* A slice of cleaning: log_clean.c. */
struct log_clean {
	struct wal_cursor cursor;
	uint32_t segment; /* that is being cleaned, or 0 */
	bool read;        /* all of it: it can go when nothing lives there */
	bool again;       /* there is more to do as soon as possible */
	bool blocked;     /* it had no room or memory: try with the next run */
	bool damaged;     /* it met a record that cannot be read: no more cleaning */
	uint32_t tried;   /* C7: segments since then, and: */
	uint64_t least;   /* what lived when the first of them was begun */
	uint64_t kept;    /* mean size of a remembered key's record */
	uint64_t slice;   /* bytes that this run's has copied */
	uint64_t copied;  /* since open */
};

/* The search for remembered keys: log_move.c. */
struct log_recall {
	uint32_t queue;
	uint32_t segment; /* the next to be read, or 0: from the first on */
	bool wanted;      /* since that, some were */
};

/* Files that somebody copies: log_backup.c. */
struct log_backup {
	struct wal_copy copy;    /* files NULL: nobody does */
	struct log_file **files; /* with payloads, pinned */
	uint32_t n_files;
	uint64_t id;
	slu_time until; /* unless it is read once more */
};

/* The thread that makes spare segments ahead: log_helper.c. */
struct log_helper {
	pthread_t thread;
	bool started;
	pthread_mutex_t mtx;
	pthread_cond_t cond;
	/* shared, under mtx */
	bool wanted;
	bool stopping;
};

/* op_ref.where of a payload in a file; else it is an offset and a length. */
#define LOG_REF_FILE (1ull << 63)

struct log_engine {
	struct engine engine;
	struct clerk clerk;
	struct ledger *ledger; /* the clerk's */
	struct wal *wal;
	struct places places;
	struct log_files files;
	uint64_t most; /* bytes of a payload in the log */
	struct clock *clock;
	struct slu_log *log;
	const struct engine_conf *conf; /* while it is opened */

	/* The run. */
	slu_time now;       /* of its group */
	slu_time mono;      /* when it was, by the clock */
	bool must_sync;     /* G1 */
	uint64_t appended;  /* bytes in the group, beside what cleaning copies */
	uint64_t owed;      /* room for taking back what was accepted in it */
	struct buf scratch; /* a message's head, or an error text */

	uint64_t highest_id;
	uint64_t ceiling; /* G3 */
	uint32_t ceiling_segment;
	uint32_t reserve;         /* G6 */
	uint32_t largest_segment; /* bytes, once segments have grown: W9 of wal.h */
	struct log_queue *queues; /* by handle */
	uint32_t n_queues;
	uint32_t *purging; /* queues whose purge is being freed, or was */
	uint32_t n_purging;
	uint32_t max_purging;

	struct log_clean clean;
	struct log_recall recall;
	struct log_backup backup;
	struct log_helper helper;
	bool failed; /* G5 */
	bool told;   /* and some run has said so; else the next one is due at once */
	char why[240];

	/* Replay. */
	bool dry; /* there is no log: no places, no live bytes */
	uint64_t records;
	uint64_t first_seq;
	uint64_t last_seq;
	uint32_t missing; /* documents that keys name and the log does not have */
	bool closed;      /* the last record was CLOSED */
	struct {
		uint64_t id;
		struct idem_mark idem;
	} keyed;             /* replay: the last accept, restore or remember; for LOG_DIGEST */
	bool has_moved;      /* the last record was MESSAGE: */
	struct change moved; /* what it says */
};

/* log.c: an engine without a log; with one; free both. */
int log_new(struct log_engine **out, const struct engine_conf *conf,
	    const struct log_conf *more, struct slu_err *err);
int log_open_wal(struct log_engine *l, const struct engine_conf *conf,
		 const struct log_conf *more, bool read_only, struct slu_err *err);
void log_free(struct log_engine *l);

/* log_keep.c: room for a record whose body has so many bytes, and for what may have to
 * be written with it. */
int log_reserve(struct log_engine *l, enum wal_use use, uint64_t size, struct slu_err *err);

/* The same, and for a digest behind it unless that is 0; and write c's digest. Returns how
 * many bytes that took. */
int log_reserve_with_digest(struct log_engine *l, enum wal_use use, uint64_t size,
			    uint64_t digest, struct slu_err *err);
uint32_t log_put_digest(struct log_engine *l, const struct change *c);

/* Room was reserved. */
struct wal_where log_append(struct log_engine *l, uint8_t type, const struct slice *parts,
			    unsigned n);
void log_put_ceiling(struct log_engine *l, uint64_t counter);

/* The last size bytes of a record's body are named from now on. Room was reserved. file:
 * what the place has named once already, or SLAB_NONE. */
uint64_t log_name(struct log_engine *l, struct wal_where at, uint64_t body, uint64_t size,
		  uint32_t file);

/* L12 of the ledger: arg is the engine. */
void log_drop(void *arg, uint64_t where);
uint64_t log_size(void *arg, uint64_t where); /* ledger_conf.size */

/* Room for what is noted of a queue; and that it is. */
int log_reserve_queue(struct log_engine *l, uint32_t queue, struct slu_err *err);
void log_note(struct log_engine *l, struct log_note *note, struct wal_where at);

/* The queue is being forgotten: nothing of it is needed, and its handle may be another's. */
void log_forget_queue(struct log_engine *l, uint32_t queue);

void log_name_queue(const struct log_engine *l, uint32_t queue, struct log_entry *entry);

/* A LOG_SPELLING of the queue; and what is spelled there: SLU_ECORRUPT. */
void log_spell(const struct log_engine *l, uint32_t queue, struct log_entry *entry);
struct log_names {
	char space[NAME_TEXT];
	char queue[NAME_TEXT];
};
int log_fold(const struct log_entry *entry, struct log_names *out, struct slu_err *err);

extern const struct clerk_ops log_keeping;

/* The head of a message's record, into scratch. */
int log_encode_head(struct log_engine *l, const struct message *m, struct slu_err *err);

/* log_move.c: as clerk_ops has them; the text of a change of a move, perhaps in scratch; read
 * back; and clean. */
int log_keep_given(struct clerk *k, const struct message *m, struct change *c,
		   struct slice error, struct slu_err *err);
int log_move_text(struct log_engine *l, const struct change *c, struct slice *text,
		  struct slu_err *err);
int log_recall(struct clerk *k, uint32_t queue, struct clerk_recall *to, bool *end,
	       struct slu_err *err);
int log_replay_move(struct log_engine *l, const struct wal_record *rec,
		    struct log_entry *entry, struct slu_err *err);
int log_clean_move(struct log_engine *l, const struct wal_record *rec,
		   struct log_entry *entry, struct slu_err *err);
int log_retake(struct log_engine *l, struct slu_err *err);

/* log_replay.c: as the others of its kind. */
int log_replay_apply(struct log_engine *l, const struct change *c, struct slu_err *err);
int log_unsound(struct slu_err *err);

/* log_keep.c: how a queue is spelled, once a log. */
int log_keep_spelling(struct log_engine *l, uint32_t queue, enum wal_use use,
		      struct slu_err *err);
void log_owe_undo(struct log_engine *l);

/* log_lock.c: as clerk_ops has them. */
int log_keep_lock(struct clerk *k, struct lock_change *c, struct slu_err *err);
void log_sync_all(struct clerk *k);
int log_keep_document(struct clerk *k, const struct message *m, uint64_t *where,
		      struct slu_err *err);
void log_drop_document(struct clerk *k, uint64_t where);

/* Read back; after the last record; and clean. */
int log_replay_lock(struct log_engine *l, const struct wal_record *rec,
		    const struct log_entry *entry, struct slu_err *err);
int log_replay_document(struct log_engine *l, const struct message *m, uint64_t where,
			struct slu_err *err);
void log_locks_replayed(struct log_engine *l);
bool log_names_document(const struct log_engine *l, uint64_t etag);
int log_clean_lock(struct log_engine *l, const struct wal_record *rec,
		   struct log_entry *entry, struct slu_err *err);
int log_clean_document(struct log_engine *l, const struct wal_record *rec,
		       struct log_entry *entry, struct slu_err *err);

/* log_replay.c: a wal_replay_fn; arg is the engine. */
wal_replay_fn log_replay;

/* log_clean.c: append a slice of what has to stay, before anything else of the group;
 * then, when the group is committed, let a segment go. */
void log_clean_slice(struct log_engine *l);
uint32_t log_name_file_again(struct log_engine *l, uint64_t where); /* C6 */
int log_clean_end(struct log_engine *l, struct slu_err *err);

/* log_backup.c: OP_BACKUP; let it go, at once or when its time is over; when that is. */
void log_backup(struct clerk *k, struct op *op);
void log_backup_end(struct log_engine *l);
void log_backup_tick(struct log_engine *l);
slu_time log_backup_due(const struct log_engine *l);
int log_backup_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n,
		    char *out, struct slu_err *err);

/* log_read.c: as engine_ops has them. */
int log_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	     bool may_block, struct slu_err *err);
uint32_t log_read_near(const struct op_row *rows, uint32_t n, struct engine_near *near,
		       bool may_block);
void log_unpin(struct engine *e, struct op_ref *ref);

/* log_helper.c */
int log_helper_start(struct log_engine *l, struct slu_err *err);
void log_helper_stop(struct log_engine *l);
void log_helper_wake(struct log_engine *l);
void log_helper_sweep(void *arg); /* log_files.wake: arg is the engine */

#endif
