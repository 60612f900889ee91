/*
 * log_record.h - what the records of the log engine say, as bytes.
 *
 * A record is a row of fields, one after the other, little-endian, without gaps
 * (docs/log-format.md has them all). The tables in log_record.c are the format: they
 * write records, read them and show them.
 *
 *  R1  A record has one meaning: every byte of it is read, and what it says could have
 *      been written. Reading looks at nothing beyond it, whatever the bytes are.
 *  R2  A type never changes. Who wants to say something else takes a new number; who
 *      meets a number that he does not know refuses the log.
 *  R3  Times beside those in the fields are the group's (wal.h). Places are not written
 *      down: an error or result is the end of the record that tells of it.
 */
#ifndef ENGINE_LOG_RECORD_H
#define ENGINE_LOG_RECORD_H

#include "core/change.h"
#include "core/lock.h"
#include "engine/message.h"

/* The numbers are those on disk. */
enum log_type {
	LOG_ACCEPT = 1,
	LOG_CLAIM,
	LOG_EXTEND,
	LOG_RETURN,
	LOG_RETRY,
	LOG_DIE,
	LOG_DONE, /* nothing of it is kept */
	LOG_KEEP, /* done, but its idempotency key or result are kept */
	LOG_REDRIVE,
	LOG_PURGE,
	LOG_POLICY,
	LOG_CEILING, /* no number or token above this one was given */
	LOG_OPENED,
	LOG_CLOSED,  /* all is said: the counter stands here */
	LOG_UNDO,    /* what was accepted in this group was not */
	LOG_MESSAGE, /* the record of a message, moved here; the next one says how it is */
	LOG_RESTORE,
	LOG_REMEMBER,
	LOG_RESULT,
	LOG_POLICY_RATED,       /* a policy with a rate */
	LOG_ASIDE,              /* a message that cannot be read */
	LOG_SPELLING,           /* how a queue and its namespace are shown */
	LOG_LOCK,               /* a key as it stands */
	LOG_DOCUMENT,           /* of a key, as the record of a message: number is its etag */
	LOG_MARK,               /* where a queue lives */
	LOG_TAKE,               /* a batch of it is set aside: as it was written before LOG_TAKEN */
	LOG_UNTAKE,             /* and back again */
	LOG_DROP,               /* or gone to another shard */
	LOG_GIVEN,              /* a batch has come from another shard: the last from there */
	LOG_TAKEN,              /* a batch is set aside for a shard */
	LOG_REFUSED,            /* a batch will never come from another shard */
	LOG_CLAIM_OWNED,        /* a claim, and who has it */
	LOG_SPARE,              /* what was handed over to a stream that ended at once goes back */
	LOG_RESTORE_OWNED,      /* a restore, and who has the lease */
	LOG_FORGET = 35,        /* a queue is gone; it had no messages */
	LOG_POLICY_FIELDS = 36, /* a policy with what the two before cannot say */
	LOG_DIGEST,             /* of the payload of the accept, restore or remember before */
	LOG_TYPES
};

enum {
	LOG_FIXED_MAX = 1024 /* bytes of a record without its text or message */
};

/* A record. Which fields count is in the table. */
struct log_entry {
	enum log_type type;
	struct change change;   /* kind is set by reading, where it has one */
	struct message message; /* ACCEPT, MESSAGE, DOCUMENT */
	struct lock_draft lock; /* LOCK; places are not part of it */
	uint8_t lock_flags;     /* the same, as bits */
	struct slice owner;     /* RESTORE_OWNED: of the lease */
	struct slice space;     /* of the queue that the change is about */
	struct slice queue;
	struct slice idem;
	struct slice whom; /* TAKEN: a shard's name, or nothing */
	struct slice text; /* to the end of the record: error or result, may be empty; or
			    * the documents of a key, what a batch has, a shard's name */
	struct policy policy;
	uint64_t highest;        /* id that was ever given */
	struct change_move move; /* of a move: epoch, batch, what */
};

/* The bytes of a record: head, then text or payload. */
struct log_bytes {
	char fixed[LOG_FIXED_MAX];
	struct slice parts[2];
	unsigned n;
	size_t size;
};

/* Not for types that have a message: their body is the message's record. out->parts
 * points into out and into the entry's text. */
void log_encode(const struct log_entry *entry, struct log_bytes *out);

/* The oldest type that can say all of a policy: an older version reads it, too. */
enum log_type log_policy_type(const struct policy *p);

/* The slices of out point into body. SLU_ECORRUPT. */
int log_decode(uint8_t type, struct slice body, struct log_entry *out,
	       struct slu_err *err);

/* Say what a key is; its documents are put behind what is in docs, which has to live as
 * long as the entry. docs may have failed then. */
void log_fill_lock(struct log_entry *entry, const struct lock *lock, struct buf *docs);

/* The other way, for log_decode: false when nobody writes that. */
bool log_take_lock(struct log_entry *entry);

/* The highest token or etag that it has. */
uint64_t log_lock_top(const struct lock *lock);

/* "accept"; NULL when there is no such type. */
const char *log_type_name(uint8_t type);

/* Is it behind the MESSAGE that it is about? */
static inline bool
log_is_restore(uint8_t type)
{
	return type == LOG_RESTORE || type == LOG_RESTORE_OWNED;
}

/* Called for every field of a record by its name, with its value as a number, or as
 * text when text.p is not NULL. */
typedef void log_show_fn(void *arg, const char *name, int64_t number, struct slice text);
void log_show(const struct log_entry *entry, log_show_fn *show, void *arg);

#endif
