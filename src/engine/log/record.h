/*
 * record.h - the records of the log engine as bytes.
 *
 * A record is a sequence of fields, little-endian, without gaps (docs/log-format.md has
 * them all). The tables in record.c are the format: they write records, read them and
 * show them.
 *
 *  RECORD-1  A record has one meaning: logengine_decode reads every byte and accepts only
 *      records that the engine could have written. It never reads beyond the record.
 *  RECORD-2  A type never changes. A new meaning gets a new number. The engine refuses a log
 *      with an unknown number.
 *  RECORD-3  A change without a time field happened at its group's time (wal.h). Places are
 *      not written: an error or result is the end of the record that has it.
 */
#ifndef ENGINE_LOG_RECORD_H
#define ENGINE_LOG_RECORD_H

#include "core/change.h"
#include "core/locks/lock.h"
#include "engine/message.h"

/* The numbers are those on disk. */
enum logengine_type {
	LOGENGINE_ACCEPT = 1,
	LOGENGINE_CLAIM,
	LOGENGINE_EXTEND,
	LOGENGINE_RETURN,
	LOGENGINE_RETRY,
	LOGENGINE_DIE,
	LOGENGINE_DONE, /* a message is gone */
	LOGENGINE_KEEP, /* a message is gone; its idempotency key or result stays */
	LOGENGINE_REDRIVE,
	LOGENGINE_PURGE,
	LOGENGINE_POLICY,
	LOGENGINE_CEILING, /* no number or token above this one was given */
	LOGENGINE_OPENED,
	LOGENGINE_CLOSED,  /* a clean stop: the counter has this value */
	LOGENGINE_UNDO,    /* a message that this group accepted is not accepted */
	LOGENGINE_MESSAGE, /* the record of a message, relocated; a RESTORE with its state follows */
	LOGENGINE_RESTORE,
	LOGENGINE_REMEMBER,
	LOGENGINE_RESULT,
	LOGENGINE_POLICY_RATED,       /* a policy with a rate */
	LOGENGINE_ASIDE,              /* a damaged message is quarantined */
	LOGENGINE_SPELLING,           /* how a queue and its namespace are shown */
	LOGENGINE_LOCK,               /* a lock key with all its fields */
	LOGENGINE_DOCUMENT,           /* a document of a key, as a message; its number is the etag */
	LOGENGINE_MARK,               /* where a queue lives */
	LOGENGINE_TAKE,               /* a batch is set aside; replaced by LOGENGINE_TAKEN */
	LOGENGINE_UNTAKE,             /* the batch is back in its queue */
	LOGENGINE_DROP,               /* the batch has gone to another shard */
	LOGENGINE_GIVEN,              /* a batch has come from another shard: the last from there */
	LOGENGINE_TAKEN,              /* a batch is set aside for a shard */
	LOGENGINE_REFUSED,            /* a batch will never come from another shard */
	LOGENGINE_CLAIM_OWNED,        /* a claim with its holder */
	LOGENGINE_SPARE,              /* a message returns from a stream that ended at once */
	LOGENGINE_RESTORE_OWNED,      /* a restore with the holder of the lease */
	LOGENGINE_FORGET = 35,        /* a queue without messages is gone */
	LOGENGINE_POLICY_FIELDS = 36, /* a policy with fields that the two older types lack */
	LOGENGINE_DIGEST,             /* of the payload of the accept, restore or remember before */
	LOGENGINE_INTAKE,             /* the last batch that came from a source outside */
	LOGENGINE_HOLD,               /* a queue, share or key is on hold until a moment; 0: no longer */
	LOGENGINE_REPLACE,            /* the record of a message that waits: instead of the one before */
	LOGENGINE_PRIORITY,           /* another priority of a message */
	LOGENGINE_BREAKER,            /* a circuit of a breaker is open until a moment; 0: it is closed */
	LOGENGINE_RETRY_ATTEMPTS,     /* a retry with the last attempts (engine/attempts.h) */
	LOGENGINE_DIE_ATTEMPTS,       /* a die with them */
	LOGENGINE_RESTORE_ATTEMPTS,   /* a restore with them; the holder of the lease may be empty */
	LOGENGINE_CANCEL,             /* a leased message is canceled */
	LOGENGINE_DUE,                /* another due time of a message that waits */
	LOGENGINE_TYPES
};

enum {
	LOGENGINE_FIXED_MAX = 2048 /* bytes of a record without its text or message */
};

/* A record. The table in record.c says which fields a type has. */
struct logengine_entry {
	enum logengine_type type;
	struct change change;   /* logengine_decode sets its kind, if the type has one */
	struct message message; /* ACCEPT, REPLACE, MESSAGE, DOCUMENT */
	struct lock_draft lock; /* LOCK, without places */
	uint8_t lock_flags;     /* LOCK: its flags as bits */
	struct slice holder;    /* RESTORE_OWNED, RESTORE_ATTEMPTS: of the lease */
	struct slice space;     /* namespace of the queue that changes */
	struct slice queue;     /* name of the queue that changes */
	struct slice idem;      /* REMEMBER: the idempotency key */
	struct slice receiver;  /* TAKEN: the name of a shard, or empty */
	struct slice text;      /* the rest of the record, may be empty: error or result, the
				 * documents of a key, the content of a batch, a shard's name */
	struct policy policy;
	uint64_t highest;        /* the highest id that was ever given */
	struct change_move move; /* of a move: epoch, batch, what */
	struct change_intake intake;
};

/* The bytes of a record: head, then text or payload. */
struct logengine_bytes {
	char fixed[LOGENGINE_FIXED_MAX + 8]; /* a number of any width is written as 8 bytes */
	struct slice parts[2];
	unsigned n;
	size_t size;
};

enum {
	LOGENGINE_STEP_MAX = 24
};

/* The body of a LOGENGINE_CLAIM or LOGENGINE_DONE, as logengine_encode writes it: each message has both. Returns its length. */
size_t logengine_encode_step(const struct change *c, char out[static LOGENGINE_STEP_MAX]);

/* Encodes a record. Not for types with a message: their body is the message's record.
 * out->parts points into out and into the entry's text. */
void logengine_encode(const struct logengine_entry *entry, struct logengine_bytes *out);

/* The oldest type that can hold the policy, so that older versions can read it. */
enum logengine_type logengine_policy_type(const struct policy *p);

/* Sets the type of a RETRY, DIE or RESTORE: that with attempts, if its text has them. */
void logengine_type_failure(struct logengine_entry *entry);

/* Decodes a record; the slices of out point into body. Returns SLU_ECORRUPT, and SLU_EINVAL
 * if a newer version wrote the record. */
int logengine_decode(uint8_t type, struct slice body, struct logengine_entry *out,
		     struct slu_err *err);

/* Fills a LOGENGINE_LOCK in. Appends the key's documents to docs, which must live as long as the
 * entry. The caller checks docs->failed. */
void logengine_fill_lock(struct logengine_entry *entry, const struct lock *lock, struct buf *docs);

/* For logengine_decode: reads the key from the entry. Returns false if the key is invalid. */
bool logengine_take_lock(struct logengine_entry *entry);

/* The highest token or etag of the key. */
uint64_t logengine_lock_top(const struct lock *lock);

/* "accept"; NULL if there is no such type. */
const char *logengine_type_name(uint8_t type);

/* Whether the record follows the MESSAGE that it belongs to. */
static inline bool
logengine_is_restore(uint8_t type)
{
	return type == LOGENGINE_RESTORE || type == LOGENGINE_RESTORE_OWNED || type == LOGENGINE_RESTORE_ATTEMPTS;
}

/* logengine_show calls it for every field: `text` is its value, or, if text.p is NULL, `number`. */
typedef void logengine_show_fn(void *arg, const char *name, int64_t number, struct slice text);
void logengine_show(const struct logengine_entry *entry, logengine_show_fn *show, void *arg);

#endif
