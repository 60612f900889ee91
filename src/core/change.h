/*
 * change.h - one step of a ledger, as it is decided, written down and applied.
 *
 * What a change says is enough to repeat it: applying asks no clock, no dice and no
 * policy. Which fields a kind uses, beside `kind` and `at` (a record of a log needs
 * these and no others):
 *
 *   ACCEPT    queue id number prio due, and if set: key idem digest expires max_attempts
 *             keep where. number is the place of the message in arrival order
 *   CLAIM     id token until, and if set: owner; flow, which no record has
 *   EXTEND    id until
 *   RETURN    id             the claim was not delivered: as if it had not been,
 *                            but its token stays spent
 *   SPARE     id             the same, for what was handed over to a stream that ended at once;
 *                            once, until the message is settled or extended
 *   RETRY     id due failed where    a nack, a defer (not failed), or a lease that
 *                            ran out (failed, expired); where: its error text, or 0
 *   DIE       id reason failed where    to the dead letters
 *   DONE      id remember keep queue where    acked or deleted: gone. keep: until
 *                            when a result is kept, or 0; where: that result
 *   REDRIVE   id number      a dead letter starts anew, at the end of its line
 *   PURGE     queue number remember    all that is neither leased nor dead goes
 *   POLICY    queue policy
 *   COUNTER   number         the counter stands at least here
 *   OPENED                   leases end no earlier than at + LEDGER_GRACE
 *   RESTORE   queue id and every field above: a message as it stands now, for a log
 *             that moves records forward. ledger_describe makes it
 *   REMEMBER  queue idem id remember   an idempotency key whose message is gone
 *   RESULT    queue id keep where   a result whose message is gone
 *   DIGEST    idem id digest    of the payload that came under an idempotency key
 *   ASIDE     id             it cannot be read: damaged, and its key goes on without it
 *   MARK      queue move     where the queue lives, and since which epoch
 *   TAKE      queue move number where   a batch of it is set aside; where: what names them
 *   UNTAKE    queue move     that batch is as before
 *   DROP      queue move     that batch is gone: it is on another shard now. ids: for a log,
 *                            in which they may stand behind the TAKE
 *   GIVEN     queue move number where   a batch has come from another shard, whose counter
 *                            stood at number; where: who that was
 *   FORGET    queue          it is gone, with its policy, remembered keys and results. It
 *                            has no messages
 *
 * Repeating is idempotent: a change for a message that is not there is ignored (but a
 * result is kept), and so is an ACCEPT of one that is or a REMEMBER of what is known.
 * A RESTORE or RESULT of what is there only says where it is now. Whoever writes a
 * RESTORE brings payload and error text along, and says where they are.
 */
#ifndef CORE_CHANGE_H
#define CORE_CHANGE_H

#include "base/bytes.h"
#include "core/policy.h"

enum change_kind {
	CHANGE_NONE, /* nothing to do: an empty claim */
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
	CHANGE_ASIDE,
	CHANGE_MARK,
	CHANGE_TAKE,
	CHANGE_UNTAKE,
	CHANGE_DROP,
	CHANGE_GIVEN,
	CHANGE_REFUSE,
	CHANGE_SPARE,
	CHANGE_DIGEST,
	CHANGE_FORGET,
	CHANGE_KINDS
};

/* Why a message is a dead letter. The numbers are written to disk. */
enum dead_reason {
	DEAD_NOT,
	DEAD_MAX_ATTEMPTS, /* failed as often as it may */
	DEAD_EXPIRED,      /* its ttl ended */
	DEAD_REJECTED      /* a consumer refused it for good */
};

/* What an idempotency key is known by, with its namespace and queue. 80 bits of
 * keyed hash; all zero is none. */
struct idem_mark {
	uint64_t hash;
	uint16_t check;
};

/* What a batch is made of. The numbers are written to disk. */
enum batch_kind {
	BATCH_NONE,
	BATCH_MESSAGES,
	BATCH_KEYS, /* idempotency keys that are remembered */
	BATCH_RESULTS,
	BATCH_LOCKS, /* lock keys; the ledger knows nothing of them */
	BATCH_KINDS
};

/* What the kinds say that are about a move. Which fields count is said at the fields. */
struct change_move {
	uint64_t epoch;    /* MARK */
	const char *shard; /* MARK: where the queue lives, empty: here; TAKE: for whom, empty:
			    * nobody knows; GIVEN, REFUSE: the giver */
	uint64_t batch;    /* all but MARK: its number */
	enum batch_kind what;
	const uint64_t *ids;           /* TAKE: of messages and results; of the message of each key.
					* DROP read back: the same */
	const struct idem_mark *marks; /* TAKE of keys */
	struct slice space;            /* of lock keys */
	struct slice names;            /* TAKE, DROP of lock keys: locks.h has the form */
	uint32_t n;                    /* of these */
};

struct change {
	enum change_kind kind;
	uint32_t queue;
	uint32_t msg; /* set by deciding, for applying: not for records */
	int32_t prio;
	slu_time at; /* shard time; never less than in the change before */
	uint64_t id;
	uint64_t number;
	uint64_t token;
	slu_time due;
	slu_time until;    /* end of the lease */
	slu_time expires;  /* end of the ttl, or 0: none */
	slu_time remember; /* until when its idempotency key is kept */
	slu_time keep;     /* DONE, RESULT: until when; ACCEPT, RESTORE: how long */
	uint64_t where;
	uint64_t key; /* hash of the ordering key, or 0: ledger_key_hash */
	struct idem_mark idem;
	uint64_t digest;       /* of the payload, if the queue is strict; 0: not known */
	uint16_t max_attempts; /* 0: the queue's */
	bool failed;
	bool expired; /* RETRY, DIE: a lease that ran out */
	uint8_t reason;
	uint32_t flow;  /* CLAIM: of a stream, or 0 */
	uint32_t owner; /* CLAIM, RESTORE: of the lease; a handle of core/owners.h */

	const struct policy *policy;    /* borrowed until it is applied, as the next */
	const struct change_move *move; /* MARK, TAKE, UNTAKE, DROP, GIVEN, REFUSE */

	/* RESTORE only */
	uint8_t state;     /* enum msg_state */
	uint8_t flags;     /* enum msg_flags */
	uint16_t attempts; /* deliveries */
	uint16_t failures; /* since it was accepted or redriven */
	slu_time claimed;  /* LEASED: since when. Of an ack or nack: for whoever counts */
	uint64_t error;    /* place of the last error text, or 0 */
};

#endif
