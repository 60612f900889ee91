/*
 * change.h - one step of a ledger, as it is decided, written down and applied.
 *
 * A change is complete: applying it needs no clock, no random number and no policy. A
 * record of the log stores these fields, besides `kind` and `at`:
 *
 *   kind        fields                    meaning
 *   ACCEPT      queue id number prio due; a new message. number: its place in the order
 *               if set: key share value   of arrival
 *               idem digest expires
 *               max_attempts keep terms
 *               where
 *   CLAIM       id token until; if set:   a lease. stream_no is not stored
 *               holder
 *   EXTEND      id until                  a longer lease
 *   RETURN      id                        the message was not delivered: undoes the CLAIM,
 *                                         except that its token is used up
 *   SPARE       id                        the same for a delivery to a stream that ended at
 *                                         once; once, until the message is settled or extended
 *   RETRY       id due failed expired     a nack, a defer (not failed), or the end of a lease
 *               where                     (failed, expired). where: the error text, or 0
 *   DIE         id reason failed where    becomes a dead letter
 *   DONE        id remember keep queue    acked or deleted. keep: until when the ledger
 *               where                     keeps a result, or 0; where: the result
 *   REDRIVE     id number                 a dead letter starts again, at the end of its sequence; or a
 *                                         delayed message without a key is due now
 *   REPLACE     id prio due where         a waiting message has another record. Without a key it also gets another
 *                                         priority and due time
 *   PRIORITY    id prio                   another priority
 *   DUE         id due                    another due time of a message that waits
 *   PURGE       queue number remember     removes all messages but leased and dead ones
 *   POLICY      queue policy
 *   COUNTER     number                    raises the counter to at least this
 *   OPENED                                no lease ends before at + LEDGER_GRACE
 *   RESTORE     queue id, all others      a message as it is now, for a log that relocates
 *                                         records; ledger_describe fills it in
 *   REMEMBER    queue idem id remember    an idempotency key whose message is gone
 *   RESULT      queue id keep where       a result whose message is gone
 *   DIGEST      idem id digest            of the payload that came with an idempotency key
 *   QUARANTINE  id                        the message cannot be read; its key continues
 *                                         without it
 *   MARK        queue move                where the queue lives, since which epoch
 *   TAKE        queue move number where   a batch is set aside. where: the list of its items
 *   UNTAKE      queue move                the batch is as before
 *   DROP        queue move                the batch is gone: another shard has it. ids: for a
 *                                         log that may have relocated them behind the TAKE
 *   GIVEN       queue move number where   a batch has arrived from a shard whose counter was
 *                                         number. where: the name of that shard
 *   REFUSE      queue move                a batch that did not arrive is never accepted
 *   FORGET      queue                     the queue is gone, with its policy, remembered keys
 *                                         and results. It has no messages
 *   INTAKE      intake where              the last batch that the shard accepted from a source.
 *                                         where: this record
 *   HOLD        queue scope share until   nothing of the scope is delivered until then; 0: the hold
 *                                         has ended. share: the name of the share, key or
 *                                         value
 *   BREAKER     queue scope share value   a circuit of the breaker `value` is open until then; 0: it is
 *               until                     closed. share: as in HOLD
 *   CANCEL      id                        a leased message is gone when its lease ends in any way
 *
 * Replay is idempotent. It ignores a change of a message that does not exist (but keeps its
 * result), an ACCEPT of one that exists, and a REMEMBER of a known key. A RESTORE or RESULT
 * of an existing item only sets its place. A RESTORE is written with the payload and the
 * error text of the message, and with their places.
 */
#ifndef CORE_CHANGE_H
#define CORE_CHANGE_H

#include "base/bytes.h"
#include "core/queue/policy.h"
#include "core/queue/terms.h"

#include <string.h>

enum change_kind {
	CHANGE_NONE, /* nothing to do, as after a claim that found no message */
	CHANGE_ACCEPT,
	CHANGE_CLAIM,
	CHANGE_EXTEND,
	CHANGE_RETURN,
	CHANGE_RETRY,
	CHANGE_DIE,
	CHANGE_DONE,
	CHANGE_REDRIVE,
	CHANGE_PURGE,
	CHANGE_POLICY,
	CHANGE_COUNTER,
	CHANGE_OPENED,
	CHANGE_RESTORE,
	CHANGE_REMEMBER,
	CHANGE_RESULT,
	CHANGE_QUARANTINE,
	CHANGE_MARK,
	CHANGE_TAKE,
	CHANGE_UNTAKE,
	CHANGE_DROP,
	CHANGE_GIVEN,
	CHANGE_REFUSE,
	CHANGE_SPARE,
	CHANGE_DIGEST,
	CHANGE_FORGET,
	CHANGE_INTAKE,
	CHANGE_HOLD,
	CHANGE_REPLACE,
	CHANGE_PRIORITY,
	CHANGE_BREAKER,
	CHANGE_CANCEL,
	CHANGE_DUE,
	CHANGE_KINDS
};

/* Why a message is a dead letter. Records store the numbers. */
enum dead_reason {
	DEAD_NOT,
	DEAD_MAX_ATTEMPTS, /* failures reached max_attempts */
	DEAD_EXPIRED,      /* its ttl ended */
	DEAD_REJECTED,     /* a consumer rejected it */
	DEAD_REASONS
};

/* A keyed hash of 80 bits that stands for an idempotency key with its namespace and queue. All
 * zero: none. */
struct idem_mark {
	uint64_t hash;
	uint16_t check;
};

/* The content of a batch that moves. Records store the numbers. */
enum batch_kind {
	BATCH_NONE,
	BATCH_MESSAGES,
	BATCH_KEYS, /* remembered idempotency keys */
	BATCH_RESULTS,
	BATCH_LOCKS, /* lock keys (core/locks/), which the ledger does not have */
	BATCH_KINDS
};

/* The fields of the changes that are part of a move. */
struct change_move {
	uint64_t epoch;    /* MARK */
	const char *shard; /* MARK: where the queue lives, empty: here. TAKE: the shard that the batch
			    * is for, empty: unknown. GIVEN, REFUSE: the shard that gave it */
	uint64_t batch;    /* its number; all but MARK */
	enum batch_kind what;
	const uint64_t *ids;           /* TAKE: of messages and results, and of the message of each
					* key. DROP, when it is read back: the same */
	const struct idem_mark *marks; /* TAKE: of keys */
	struct slice space;            /* TAKE, DROP: namespace of lock keys */
	struct slice names;            /* TAKE, DROP: of lock keys, in the form of core/locks/locks.h */
	uint32_t n;                    /* length of ids and marks */
};

enum {
	INTAKE_SOURCE = 16 /* bytes of the uuid of a source */
};

/* The first bytes of a source that is the outbox of a shard (engine/outbox.h). A uuid of version 4 or 7 never
 * begins so: its byte 6 begins with 4 or 7. */
#define INTAKE_OUTBOX "outbox\0"

static inline bool
intake_is_outbox(const uint8_t source[static INTAKE_SOURCE])
{
	return memcmp(source, INTAKE_OUTBOX, 7) == 0;
}

/* The fields of INTAKE. */
struct change_intake {
	uint8_t source[INTAKE_SOURCE];
	uint64_t batch; /* the number of the batch, 1 or more */
	slu_time last;  /* when the shard accepted the batch */
	uint32_t count; /* messages of the batch; 0: the number is used up */
};

struct change {
	enum change_kind kind;
	uint32_t queue;
	uint32_t msg; /* from deciding to applying; not in records */
	int32_t prio;
	slu_time at; /* shard time; not before the time of the previous change */
	uint64_t id;
	uint64_t number;
	uint64_t token;
	slu_time due;
	slu_time until;     /* end of the lease */
	slu_time expires;   /* end of the ttl; 0: no ttl */
	slu_time remember;  /* until when the ledger remembers the idempotency key */
	slu_time keep;      /* of the result. DONE, RESULT: until when; ACCEPT, RESTORE: how long */
	uint64_t where;     /* place of the record */
	uint64_t key;       /* hash of the ordering key (ledger_key_hash), or 0 */
	struct slice share; /* ACCEPT, RESTORE, HOLD: borrowed until the change is applied; n 0: none. ACCEPT, RESTORE: or the kind,
			     * as KIND-1 of core/queue/kind.h says */
	struct slice value; /* ACCEPT, RESTORE: of the attribute that the queue limits; BREAKER: its name; as share */
	struct idem_mark idem;
	uint64_t digest;       /* of the payload, if the queue is strict; 0: unknown */
	uint16_t max_attempts; /* 0: of the policy */
	struct terms terms;    /* ACCEPT, RESTORE: of the message */
	bool failed;           /* RETRY, DIE: counts as a failure */
	bool expired;          /* RETRY, DIE: a lease ran out */
	uint8_t reason;        /* DIE: enum dead_reason */
	bool settles;          /* ACCEPT, REPLACE: may use the room for settling of the log; not in records */
	uint8_t scope;         /* HOLD, BREAKER: enum gate_kind */
	uint32_t stream_no;    /* CLAIM: number of the stream, or 0 */
	uint32_t holder;       /* CLAIM, RESTORE: of the lease; a handle of core/queue/holders.h */

	const struct policy *policy;        /* POLICY; borrowed until the change is applied */
	const struct change_move *move;     /* MARK to REFUSE; borrowed in the same way */
	const struct change_intake *intake; /* INTAKE; borrowed in the same way */

	/* RESTORE only */
	uint8_t state;     /* enum msg_state */
	uint8_t flags;     /* enum msg_flags */
	uint16_t attempts; /* deliveries */
	uint16_t failures; /* since it was accepted or redriven */
	slu_time claimed;  /* LEASED: start of the lease. Also of an ack or nack, for metrics */
	uint64_t error;    /* place of the last error text, or 0 */
};

#endif
