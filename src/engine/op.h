/*
 * op.h - an op: one operation on its way through the broker, first a question, then its answer.
 *
 *   maker (an API, embed.c)        shard thread                      engine
 *   fills in the question  ─────>  mailbox, batch  ─────────────>    rc, results
 *   reads the answer       <─────  op->done(op)  <───────────────    durable
 *
 *  OP-1  The maker owns the op and all memory that it points to, and leaves both alone from
 *        broker_post until `done` is called. Text is borrowed; results go into arrays of the
 *        maker. An engine allocates nothing for an op except what a pin holds.
 *  OP-2  The shard calls `done` exactly once for each op that was posted, on its own thread or, while
 *        that is in engine.commit, on the stand-in's (broker/standin.h). `done` must not block: it
 *        posts the op to the loop of the maker, or signals.
 *  OP-3  rc is 0, or a code that err explains. With a code nothing has happened, except with
 *        SLU_EUNKNOWN: the op may or may not have happened.
 *  OP-4  An enqueue accepts all of its messages or none. The verbs of struct op_item have an outcome
 *        for each item, and rc 0.
 *  OP-5  A result that refers to a record (struct op_ref) pins the record: any thread can read it
 *        until op_unpin, whatever happens to the message.
 *  OP-6  op->wait: how long a claim, peek, watch, result or acquire may wait, from the moment the op
 *        reached the mailbox; 0 = do not wait. A claim or peek that ends without a message has rc 0
 *        and no rows; an acquire that ends without the key has SLU_ELEASE and LOCK_HELD.
 *        Any verb: an op that an engine which hangs holds up for so long ends with SLU_EDOWN
 *        (LANE-14 of broker/lane.h).
 *  OP-7  broker_cancel ends a wait early, with SLU_ECANCELED. An op that is running gets its normal
 *        answer; broker_return gives back what a claim or acquire was granted.
 *
 * All items of an op live on one shard.
 */
#ifndef ENGINE_OP_H
#define ENGINE_OP_H

#include "base/list.h"
#include "core/ledger/ledger.h"
#include "core/locks/locks.h"
#include "engine/message.h"
#include "engine/move.h"
#include "engine/op_verb.h"

#include <stdatomic.h>

struct engine;
struct follow;
struct op_presence;

/* A pinned record. Only engine_read and engine_unpin look into it. */
struct op_ref {
	void *pin;      /* NULL: no record */
	uint64_t where; /* the place, in the terms of the engine */
	uint32_t size;  /* bytes of the record, payload, error or result */
	uint32_t sum;   /* its checksum */
};

/* OP_ENQUEUE, FINISH, SCHEDULE: one message. */
struct op_put {
	/* Namespace and queue with n 0: as of the op. id 0: the broker gives one. due is shard
	 * time (the wall clock) and stays as it is; 0: the engine sets it. The engine sets number,
	 * accepted and expires. A payload that is too large for a record comes in a file:
	 * engine/payload.h. */
	struct message m;
	slu_time delay;        /* from now, if m.due is 0 */
	slu_time ttl;          /* from now; 0: the ttl of the queue */
	slu_time deadline;     /* the end of the ttl as a moment, instead of ttl; 0: none */
	struct spelling as;    /* how to spell a new queue; n 0: op->as */
	struct op_stood stood; /* OP_MOVE: the state of m on the other shard; m.due and m.expires count */
	bool replace;          /* ENQUEUE of a unique message: replaces the first one, if that waits. One put of an op */
	bool taken;            /* MOVE-2, MOVE-4 of engine/move.h */
	bool undated;          /* engine only: this try has set m.due, the maker has not */
	bool ruled;            /* engine only: this try has applied an admission rule; own_prio and own_due: before that */
	int32_t own_prio;
	slu_time own_due;
	uint64_t own_id; /* engine only: the id of the message while m.id is the id of the first; or 0 */
	uint64_t given;  /* INTAKE of an outbox: the id that the message has; 0: the broker gives one */
	uint64_t entry;  /* FINISH, answer: the id of its entry in the outbox (engine/outbox.h); 0: no entry */
	uint32_t line;   /* FINISH, answer: the lane that gets the entry */

	/* Answer. */
	bool existed;          /* the idempotency key is known; m.id is the id of the first message */
	bool replaced;         /* ... and has the record of this one now */
	bool pending;          /* FINISH: the message is on its way to another shard, which accepts it later */
	uint16_t max_attempts; /* in force: of the message, or of its queue */
};

/* OP_ACK, NACK, FINISH (one or none), SCHEDULE, EXTEND, REDRIVE, DELETE, QUARANTINE: one message. */
struct op_item {
	struct slice space; /* n 0: op->space */
	struct slice queue; /* n 0: op->queue; if that is empty, too: any queue of the namespace */
	uint64_t id;        /* the message */
	uint64_t token;     /* of the lease; 0: the current lease */
	struct slice text;  /* ack: the result; nack: the error; extend: the checkpoint, JSON, which becomes the state of the
			     * message (LOCK-12 of core/locks/locks.h); may be empty */
	slu_time time;      /* extend: the lease, 0: as the queue's policy; nack: the delay, or
			     * LEDGER_BY_POLICY */
	bool defer;         /* nack: no failure, the message is only postponed */
	bool dead;          /* nack: to the dead letters */
	bool has_prio;      /* nack, adjust: the message gets the priority `prio`. adjust without: it is due at the moment `time` */
	int32_t prio;
	bool guarded; /* adjust: only if the message still has the priority was_prio, and is due at was_due */
	int32_t was_prio;
	slu_time was_due;
	bool nack;           /* finish: a nack; otherwise an ack */
	bool remove;         /* finish: deletes the message, which must not be leased; schedule: nothing takes its place */
	uint64_t number;     /* schedule: of the message; 0: it must not exist */
	bool delayed;        /* redrive: also a delayed message without a key, which is due now */
	bool cancel;         /* delete: also a leased message, which is canceled (LEDGER-17 of core/ledger/ledger.h) */
	uint8_t scope;       /* nack with a hold: 0: the message alone; otherwise 1 + enum gate_kind */
	slu_time hold;       /* nack: nothing of the scope of the message is delivered for so long; 0: no hold */
	bool taken;          /* MOVE-4 of engine/move.h */
	bool rounded;        /* API only: the form in which the id was sent; see struct given_id */
	struct slice reason; /* nack: the name of a breaker (core/queue/breakers.h); n 0: none */

	/* Answer. */
	int rc;         /* of this item */
	slu_time until; /* extend: the end of the lease; nack, adjust: when the message is due, or died */
	bool died;      /* nack: the message is a dead letter now */
	bool runs;      /* delete with cancel: the message is canceled, and leased until `until` */
};

enum {
	OP_CHECKPOINT_MAX = 64 << 10,             /* bytes of a checkpoint: its makers check it */
	OP_STATE_SHOWN = OP_CHECKPOINT_MAX + 2048 /* bytes of a record that a claim shows: a checkpoint, and its head */
};

/* A message: answer of claim, get, peek and list. The record has its key, payload and the rest. */
struct op_row {
	uint64_t id;
	uint64_t token;        /* LEASED: of the lease; otherwise 0 */
	slu_time until;        /* LEASED: the end of the lease */
	slu_time claimed;      /* LEASED: the start of the lease */
	slu_time due;          /* when the message is due; DEAD: when it died */
	slu_time expires;      /* the end of its ttl, or SLU_NEVER */
	uint64_t number;       /* of the record */
	int32_t prio;          /* lower goes first */
	uint16_t attempts;     /* deliveries */
	uint16_t failures;     /* failed deliveries */
	uint16_t max_attempts; /* in force */
	uint8_t state;         /* enum msg_state */
	uint8_t flags;         /* enum msg_flags */
	uint8_t reason;        /* enum dead_reason */
	uint8_t kind;          /* MOVE: enum move_kind */
	uint64_t after;        /* LIST of a queue: the cursor of the page behind this row */
	struct op_ref record;  /* the message */
	struct op_ref payload; /* the payload, if it has a file of its own and is not in the record */
	union {
		struct op_ref error;      /* GET, PEEK, LIST, WHY: of its failures: engine/attempts.h */
		struct op_ref checkpoint; /* CLAIM: the record of its state, if that has at most OP_STATE_SHOWN bytes; otherwise no
					   * pin. In the place of `error`: nodes of earlier versions pass it on */
	};
	struct shared_text *holder; /* LEASED: the name of the holder; NULL: not known. Not with claims */

	/* A claim that is `stateful`. */
	uint64_t state_version; /* of the state of the message */
	uint64_t state_etag;    /* 0: the message has no state */
};

/* A queue: answer of STATS and QUEUES. The names are copies: the queue may be gone when the answer
 * is read. */
struct op_queue {
	char space[NAME_TEXT];
	char name[NAME_TEXT];
	char space_shown[NAME_TEXT]; /* the first spelling of the namespace */
	char shown[NAME_TEXT];       /* the first spelling of the queue */
	uint32_t count[MSG_STATES];  /* messages by state */
	struct ledger_totals totals; /* since the shard was opened */
	slu_time oldest;             /* how long the oldest ready message has waited, or -1; see
				      * ledger_oldest */
	uint32_t warn_depth;         /* of the policy */
	slu_time warn_age;           /* the same */
	char tags[POLICY_TAGS];      /* the same */
	bool paused;                 /* the same */
	bool draining;               /* the same */
	struct pause_note pause;     /* the same */
	char letters[NAME_TEXT];     /* dead_letter_queue of the policy */
	slu_time wait;               /* core/ledger/recent.h */
	slu_time empty;              /* the same */
	slu_time held;               /* the end of the hold of the queue; 0: it is not held */
	slu_time now;                /* the time of the shard when it answered; 0: a node of an earlier version has answered */
	uint32_t workers;            /* API only: its crew (api/worker/crews.h) */
	uint32_t slots, used;        /* the same */
};

/*
 * OP_BACKUP: the files of a shard as of the BEGIN. The backup has all that was answered before,
 * whatever happens until its END. A shard has up to four backups, and ends one if nothing of it
 * was read for OP_BACKUP_IDLE.
 *   SLU_EINVAL     the engine has no files
 *   SLU_ECONFLICT  BEGIN: too many backups are under way
 *   SLU_ENOTFOUND  READ, END: this backup has ended
 */
enum backup_step {
	BACKUP_BEGIN,
	BACKUP_READ, /* one file: op->result pins it for engine_read_file */
	BACKUP_END
};

#define OP_BACKUP_IDLE (60 * SLU_SEC)

struct op_backup {
	enum backup_step step;
	uint32_t lane; /* its number: broker/broker.h */
	uint64_t id;   /* of the backup; the maker of the BEGIN chooses it */
	uint32_t file; /* READ: the number of the file, from 0 */

	/* Answer. */
	uint32_t files; /* BEGIN: how many files */
	uint64_t bytes; /* BEGIN: of all files; READ: of this file */
	uint64_t last;  /* BEGIN: the number of the last record */
	slu_time time;  /* BEGIN: the time of the last record */
	uint64_t size;  /* READ: of the file; behind `bytes` it has zeros */
	char name[64];  /* READ: in the folder of the shard */
};

/* Counts of a shard: answer of OP_SHARD. A count that an engine does not have is 0. */
struct op_shard {
	uint64_t messages;              /* messages */
	uint64_t keys;                  /* ordering keys of messages */
	uint64_t idempotency;           /* remembered idempotency keys */
	uint64_t results;               /* results */
	struct ledger_totals forgotten; /* of queues that were forgotten since the shard was opened */
	uint64_t locks;                 /* lock keys */
	uint64_t leases;                /* lock keys that are leased */
	uint64_t states;                /* messages with a state */
	uint64_t segments;              /* files of the log */
	uint64_t spares;                /* files of the log that are made ahead */
	uint64_t bytes;                 /* of all files */
	uint64_t live;                  /* bytes of these that are needed */
	int64_t disk_free;              /* bytes; negative: not known */
	int64_t disk_size;              /* bytes of the disk; negative: not known. Of this node's shards only */
	bool disk_full;                 /* new work is refused: no room */

	/* The store of the shard, if that is a server. A negative number is not known. */
	struct op_store {
		bool told;           /* the store has reported; one lane of a shard reports */
		int64_t memory;      /* bytes */
		int64_t max_memory;  /* bytes */
		int64_t disk;        /* bytes of its append-only file */
		int64_t cpu;         /* microseconds since its start */
		int64_t clients;     /* connections of all clients */
		int64_t max_clients; /* connections */
	} store;
};

/*
 * The verbs of locks: one key of op->space.
 *
 * The key is folded and complete. op->queue says where the key lives: in LOCK_QUEUE, or (key
 * `q/<queue>/state/<uuid>`, see lock_key_of_message) in the queue of the message. The holder of a
 * message holds its state: token is the token of the claim, txn is not compared, and ACQUIRE and
 * KEEPALIVE are refused. core/locks/locks.h has the rules, LOCK-1 to LOCK-8.
 *
 *   verb          question                           answer
 *   ACQUIRE       key holder txn ttl if_absent,      token txn until version etag
 *                 op->wait
 *   KEEPALIVE     key token fence txn ttl            until, and as DESCRIBE
 *   RELEASE       key token fence txn rollback       version etag
 *   STATE_GET     key name token fence; token 0:     version etag updated record payload; rc 0
 *                 what is committed, otherwise       and etag 0: no such document
 *                 what the holder sees
 *   STATE_PUT     key name token fence txn           version etag, as the holder sees them
 *                 if_version if_etag if_absent,
 *                 op->puts[0].m with payload or
 *                 file, type and attributes; the
 *                 engine sets the rest of m
 *   STATE_REMOVE  as STATE_PUT, without puts;        version, op->count: documents removed
 *                 all: all attachments
 *   STATE_META    key token fence txn if_version     version
 *                 hidden
 *   DESCRIBE      key, room in holder                token txn until version etag updated
 *                                                    hidden; an unknown key has version 0 and
 *                                                    no token
 *   KEYS          key: continue behind it (n 0:      keys in the order of their bytes, without
 *                 from the first), room in           hidden ones and states of messages; more:
 *                 op->keys                           there are further keys. The last key has
 *                                                    etag 0 if it only marks the place
 *   ATTACHMENTS   key token fence (token as in       keys; the record of a large attachment may
 *                 STATE_GET), room in op->keys       end where its payload begins
 *                 for LOCK_DOCS_MAX
 *
 * Failures; `why` (enum lock_why) says which:
 *   SLU_ELEASE     HELD (acquire), NONE, EXPIRED, FENCE
 *   SLU_EEXISTS    KNOWN_KEY: if_absent is set
 *   SLU_EINVAL     TXN_MISSING, OF_MESSAGE; or an invalid question
 *   SLU_ECONFLICT  TXN_OTHER, VERSION, ETAG
 *   SLU_ETOOBIG    more attachments than LOCK_DOCS_MAX - 1
 * A refusal has version, etag and (HELD) until of what is committed. A RELEASE of a key that is
 * not held succeeds with rc 0, and `why` says so.
 */
struct op_lock {
	struct slice key;
	struct slice name;     /* of an attachment; n 0: the state itself */
	struct slice holder;   /* ACQUIRE: at most LOCK_HOLDER_MAX bytes */
	uint64_t token;        /* of the lease; 0: none */
	uint64_t fence;        /* the token that the caller expects; 0: any */
	uint8_t txn[LOCK_TXN]; /* the transaction; zeros: not given, an ACQUIRE makes one */
	slu_time ttl;          /* of the lease; 0: LOCK_TTL; at most POLICY_LEASE_MAX */
	int64_t if_version;    /* only if the key has this version; -1 (op_init): any */
	uint64_t if_etag;      /* only if the document has this etag; 0: any */
	bool if_absent;        /* ACQUIRE: only an unknown key; STATE_PUT: only a new document */
	bool rollback;         /* RELEASE: drops what is staged */
	bool undo;             /* RELEASE: the client never received the lease, or it needs no trace: a
				* key that the ACQUIRE made is forgotten at once */
	bool all;              /* STATE_REMOVE: all attachments. KEYS: the keys that are leased, with the token
				* instead of the etag, and no records */
	bool hidden;           /* STATE_META: KEYS does not show the key; answer of DESCRIBE */

	/* Answer; also token, txn and hidden above. */
	enum lock_why why;
	bool more;             /* KEYS: there are further keys */
	uint64_t version;      /* of the key */
	uint64_t etag;         /* of the document */
	slu_time updated;      /* when the key was last committed; 0: never */
	slu_time until;        /* the end of the lease */
	char *held_by;         /* DESCRIBE: room for the holder, LOCK_HOLDER_MAX + 1 bytes; or NULL */
	struct op_ref record;  /* the document; its m.number is the etag, m.accepted the time of the put,
				* m.idem the name of the attachment */
	struct op_ref payload; /* its payload, if that has a file of its own */
};

/* FINISH: the lock key that the step releases. Everything that its holder has staged takes effect with the step, or nothing of
 * it happens (LOCK-13 of core/locks/locks.h). Key, token, fence and txn are as in struct op_lock.
 *   SLU_ETOGETHER  the lock keys of the namespace live on another shard
 *   SLU_ELEASE     the caller does not hold the key: err names it; SLU_EINVAL, SLU_ECONFLICT: as a RELEASE */
struct op_unlock {
	struct slice key; /* n 0: none */
	uint64_t token;
	uint64_t fence;
	uint8_t txn[LOCK_TXN];
	struct slice state; /* JSON that becomes the state of the key; n 0: what is staged */
};

/* A document: answer of KEYS and ATTACHMENTS. */
struct op_key {
	char name[LOCK_KEY_MAX + 1]; /* of the key, or of the attachment */
	uint64_t version;            /* of the key */
	uint64_t etag;               /* of the document */
	slu_time updated;            /* when it was last committed */
	struct op_ref record;        /* as in struct op_lock */
	struct op_ref payload;       /* the same */
};

_Static_assert(LOCK_NAME_MAX <= LOCK_KEY_MAX, "a name fits");

/*
 * OP_INTAKE: op->puts come from a source outside, in a batch with a number. The shard accepts all of them or
 * none, in one group with the number of the batch, once:
 *
 *   batch higher than the last of the source   accepts the puts; remembers the number
 *   otherwise                                  rc 0 and `known`; nothing changes
 *
 * `first`, if it is set, is compared like `batch`: a batch that was accepted in part is `known`.
 * A batch without puts uses its number up; `count` tells such a batch from one that was accepted. The number
 * belongs to the shard: the maker sends a batch to the same shard again until it knows the outcome. SLU_EMOVED: a queue lives on another shard; SLU_EBUSY: too
 * many sources (LEDGER-14 of core/ledger/ledger.h).
 */
struct op_intake {
	uint8_t source[INTAKE_SOURCE]; /* uuid of the source */
	uint64_t batch;                /* 1 or more; rises */
	uint64_t first;                /* an outbox: the lowest number of the batch, which `known` compares, too
					* (OUTBOX-2 of engine/outbox.h); 0: no outbox */

	/* Answer. */
	bool known;     /* this batch, or a later one, was accepted before */
	uint64_t last;  /* the number of the last batch that the shard has accepted */
	uint32_t count; /* messages of that batch */
};

/* A scope of a queue and what it uses of its limits: answer of LIMITS. struct ledger_use has the fields. */
struct op_use {
	uint8_t kind;                   /* enum gate_kind */
	bool is_hold;                   /* a row of the list of holds */
	uint8_t circuit;                /* a row of the list of circuits: enum circuit_state; otherwise 0 */
	bool probed;                    /* a circuit: its probe is under way */
	char breaker[BREAKER_NAME];     /* a circuit: the name of its breaker */
	char name[MESSAGE_KEY_MAX + 1]; /* of the share, key or value; "": the queue, or messages without a share. With
					 * KIND_MARK and GATE_SHARE: of a kind */
	uint32_t messages, ready, leased, concurrency;
	uint32_t rate, burst, tokens;
	uint32_t weight;
	uint64_t delivered;
	slu_time until, hold;
	uint32_t waiting; /* a kind: claims that wait and may take it */
	slu_time oldest;  /* of the queue or a share: how long its oldest ready message has waited; 0: none is ready, or it is not known */
};

enum {
	OP_USES_SHARES = 20,    /* shares that LIMITS lists */
	OP_USES_VALUES = 20,    /* the same of values */
	OP_USES_CIRCUITS = 100, /* the same of circuits that are not closed */
	OP_USES_HOLDS = 100,    /* holds of a page */
	OP_USES_KINDS = 256,    /* kinds */
	OP_USES_PRIORITIES = 256
};

/* LIMITS, HOLD. The rows of LIMITS, in op->uses: the queue, up to OP_USES_SHARES shares and
 * OP_USES_VALUES values, then holds. op->cursor: 0, then
 * what the last answer has here for the next holds; 0: no more. A page behind the first has holds alone. */
struct op_limits {
	bool by_messages;     /* LIMITS: the shares with the most messages; otherwise those nearest to a limit */
	bool by_kind;         /* LIMITS: the kinds instead, those with the most messages first */
	bool by_priority;     /* LIMITS: the priorities of a page of messages instead, in no order; `name` is the number */
	uint8_t scope;        /* HOLD: enum gate_kind */
	struct slice name;    /* HOLD: the share, key or value; n 0: the queue, or messages without a share */
	slu_time hold;        /* HOLD: for how long; 0: the hold ends */
	struct slice breaker; /* HOLD: opens or closes a circuit of this breaker instead; n 0: a hold */

	/* Answer. */
	uint32_t shares;   /* LIMITS: all shares with messages */
	uint32_t holds;    /* LIMITS: all holds */
	uint32_t values;   /* LIMITS: all values with messages */
	uint32_t circuits; /* LIMITS: all circuits that are not closed */
	uint32_t kinds;    /* LIMITS: all kinds with messages */
	uint32_t looked;   /* LIMITS by priority: messages of the page */
	slu_time until;    /* HOLD: the end of the hold, or 0 */
};

/* What a PAUSE sets, as in op->policy. */
enum op_sets {
	OP_SETS_PAUSE = 1, /* policy.paused and policy.pause */
	OP_SETS_DRAIN = 2  /* policy.draining */
};

/* Copies what the bits name, and leaves the rest. */
void op_set_pause(struct policy *to, const struct policy *from, uint8_t sets);

enum {
	OP_WHY_ROWS = 2 /* WHY: the message, and the head of its key */
};

/* TREND: op->steps gets the last max_steps rows, or none if the queue has not moved for an hour. */
struct op_trend {
	uint8_t scale; /* enum trend_scale */
	bool storage;  /* of the storage of the shard (engine/ledger/storage.c), not of messages; without a queue */

	/* Answer. */
	slu_time end; /* when the last step ended */
};

/* CLAIM, PEEK, RETURN: what they ask beside op->rows and op->wait. */
struct op_claim {
	slu_time lease;      /* how long the leases last; 0: the time of the message or the queue */
	uint64_t max_bytes;  /* the claim ends when its records have more bytes than this; 0: no
			      * limit. A claim grants at least one message */
	struct slice holder; /* of the leases, cut after HOLDER_MAX bytes; n 0:
			      * no holder is shown */
	uint64_t stream;     /* number of the stream that claims; 0: no stream */
	uint32_t credit;     /* messages that the stream may hold; the claim waits while it holds
			      * so many */
	uint64_t id;         /* CLAIM: only this message, ready, delayed or dead; SLU_ENOTFOUND otherwise.
			      * 0: the best messages */
	bool stateful;       /* the rows carry the state of their messages */
	struct slice kinds;  /* CLAIM: these kinds alone, each with its mark (core/queue/kind.h); n 0: every message */
	uint32_t spare;      /* RETURN: so many of the first rows may have been read by their client;
			      * they go back by the rule of ledger_spare */

	/* Answer. */
	uint32_t passed; /* messages that are ready, but the stream has just failed them (LEDGER-13 of
			  * core/ledger/ledger.h); set if the claim has no rows */
	slu_time again;  /* when the stream may have one of these */
};

/* Where the queue of an op lives: engine/move.h has the rules. The broker fills in the
 * question from its map of queues to shards. */
struct op_home {
	uint64_t epoch;    /* of the map; 0: the server has no map */
	const char *lives; /* by that map: the shard that the queue lives on; NULL or "": this one */
	uint64_t above;    /* the tokens of this op, and all later ones, are above this (MOVE-9) */
	bool known;        /* ENQUEUE: accept only messages with a known idempotency key (MOVE-2) */
	bool formers;      /* REDRIVE: the queue may have messages on other shards (MOVE-5) */

	/* Answer. */
	char elsewhere[MOVE_SHARD]; /* the shard that the queue lives on; empty: this one */
	uint64_t counter;           /* the highest token this shard may have given (MOVE-9) */
};

/* An op in a mailbox: the op itself, the request to cancel it, or its return from another node. */
struct op_mail {
	struct list node;
	struct op *op;
	bool cancel;
	bool back; /* the op comes back from another node */
};

struct routes; /* broker/broker.h */

/* How the broker brings an op to its shard and back. Makers set `routes` at most. The engine
 * reads next, arrived and before. */
struct op_route {
	const struct routes *routes; /* finds the shard; NULL: the routes of this moment */
	uint32_t lane;               /* its number: broker/broker.h */
	bool spans;                  /* the cursor goes over all shards */
	struct follow *follow;       /* while several shards are asked: broker/move/follow.h */

	/* In the shard. */
	struct op *next;     /* in the batch */
	slu_time arrived;    /* when the op reached the mailbox: ack, nack, extend and return use
			      * this time, not the time of the run */
	slu_time before;     /* what falls due until then happens before this op */
	uint32_t cost;       /* in messages */
	uint64_t bytes;      /* memory that the op counts for */
	uint32_t waiter;     /* in the dispatcher, or SLAB_NONE */
	uint32_t backlog;    /* of the namespace in the fair queue, while the op is there */
	struct op_mail mail; /* in a mailbox, then in the backlog of its namespace */
	struct list age;     /* in order of arrival */
	slu_time later;      /* the op runs then; 0: now. Until the op has reached the shard: how long after that,
			      * set by the maker */
	bool stalled;        /* the op waits until its stream has room */
	bool waited;         /* the wait of this ACQUIRE is over; it answers who holds the key */

	/* Between nodes: LANE-18 of broker/lane.h. */
	bool forwarded; /* another node sent the op: it goes no further. Set by the maker */
	bool local;     /* the op asks this node alone: over all lanes, it finds nothing on a lane that
			 * another node owns. Set by the maker */
	bool away;      /* another node has the op */
	bool again;     /* the op came back, and nothing has happened */
	uint8_t sent;   /* how often it was sent to another node */
	void *call;     /* of broker_remote, while the op is away */

	/* Its end. */
	struct op_mail stop;  /* the cancel on its way */
	_Atomic int canceled; /* enum op_cancel */
	_Atomic int unwanted; /* enum op_unwanted */
	bool open;            /* the op is in a batch that has run and is not committed yet */
	bool stopped;         /* the cancel of an open op has arrived: the op ends with its answer */
	bool ended;           /* answered; only a cancel is still on its way */
};

/*
 * In order: the question of every verb, the question by verb, the answer of every verb, the
 * answer by verb, question and answer of one family of verbs each, and the part of the broker.
 */
struct op {
	enum op_verb verb;
	struct slice space; /* namespace; n 0: all, for LIST, QUEUES and a GET without a queue */
	struct slice queue; /* n 0: see struct op_item, LIST, QUEUES */
	slu_time wait;      /* OP-6 */
	void (*done)(struct op *op);
	void *owner; /* the maker's */

	struct op_put *puts;   /* ENQUEUE, INTAKE, FINISH, SCHEDULE; STATE_PUT: one */
	uint32_t n_puts;       /* how many */
	uint32_t n_items;      /* how many items */
	struct op_item *items; /* the verbs of struct op_item */
	struct spelling as;    /* ENQUEUE, POLICY_SET: how to spell a queue that they make */
	uint64_t id;           /* GET, WHY, RESULT: the message. WATCH: the message that the maker knows,
				* or 0; then the answer. Rc SLU_ETIMEOUT: it is still the same */
	uint64_t cursor;       /* LIST, QUEUES, LIMITS, MOVE_TAKE: 0, then what the last answer has here; the
				* answer is 0 after the last page, and a page may be short or empty
				* before that. GET, WHY, RESULT, and DELETE of one item, without a queue; STATS and TREND
				* with `here`: the shard to look at, above BROKER_CURSOR_BITS */
	enum msg_state state;  /* PEEK: MSG_DELAYED: delayed messages, the next due first; otherwise ready
				* ones. LIST: only messages in this state; MSG_NONE: all. Dead letters come
				* oldest first, others in no order, but each that stays exactly
				* once */
	bool here;             /* STATS, TREND: of the shard that cursor names alone */
	bool force;            /* FORGET: the messages go first, in whatever state they are */
	uint8_t sets;          /* PAUSE: bits of enum op_sets; 0, of an earlier version: OP_SETS_PAUSE */

	int rc;                /* OP-3 */
	struct slu_err err;    /* OP-3 */
	struct engine *engine; /* that pinned the refs of this answer */

	struct op_row *rows;     /* CLAIM, GET, PEEK, LIST: room for max_rows. RETURN: the question,
				  * n_rows that go back */
	uint32_t max_rows;       /* 1 or more; WHY: OP_WHY_ROWS */
	uint32_t n_rows;         /* rows that are filled in */
	struct op_queue *queues; /* STATS, WHY: room for 1. QUEUES: for max_queues */
	uint32_t max_queues;     /* room in queues */
	uint32_t n_queues;       /* queues that are filled in */
	struct op_key *keys;     /* KEYS, ATTACHMENTS: room for max_keys */
	uint32_t max_keys;       /* room in keys */
	uint32_t n_keys;         /* keys that are filled in */
	struct op_use *uses;     /* LIMITS: room for max_uses */
	uint32_t max_uses;       /* room in uses: 1 or more */
	uint32_t n_uses;         /* uses that are filled in */
	struct trend_row *steps; /* TREND: room for max_steps, oldest first */
	uint32_t max_steps;      /* at most the steps of the scale */
	uint32_t n_steps;        /* steps that are filled in */
	uint32_t failed;         /* ENQUEUE, INTAKE: which of the puts was refused */
	uint64_t count;          /* PURGE, FORGET: messages that went. STATS, WHY: claims that wait, also
				  * for a queue without messages. STATE_REMOVE: documents that went. DESCRIBE: acquires that
				  * wait for the key */
	struct op_ref result;    /* RESULT; no pin with rc 0: the ack had no result. Rc
				  * SLU_ETIMEOUT: not acked yet */
	slu_time until;          /* RESULT: when the result is forgotten */

	/* By family: only the part that op_verbs[verb].family names is there. */
	union {
		struct op_claim claim;
		struct op_lock lock;
		struct policy policy; /* answer of POLICY_GET and PAUSE, question of POLICY_SET */
		struct op_backup backup;
		struct op_move move;
		struct op_shard on_shard;     /* answer of SHARD */
		struct op_presence *presence; /* engine/presence.h */
		struct op_intake intake;
		struct op_unlock unlock;
		struct {
			struct why_facts why;       /* answer of WHY */
			char rule[RULES_TEXT];      /* WHY: the admission rule that applied to the message, or "" */
			char breaker[BREAKER_NAME]; /* WHY: the breaker that keeps it back, or "" */
			char kind[KIND_MAX + 1];    /* WHY: its kind, or "" */
		};
		struct op_limits limits;
		struct op_trend trend;
	};

	struct op_home home;
	struct op_route route;
};

/* op->route.canceled. It goes from NONE to ASKED or to DONE. Only a DONE op has had its `done` called;
 * an op in ASKED waits for the cancel that is on its way. */
enum op_cancel {
	OP_CANCEL_NONE,
	OP_CANCEL_ASKED,
	OP_CANCEL_DONE,
	OP_CANCEL_AWAY /* the op is between two shards; the next one checks `unwanted` */
};

/* op->route.unwanted: why a wait is to end. Set before `canceled`. */
enum op_unwanted {
	OP_WANTED,
	OP_NUDGED,  /* another shard may have what the op waits for */
	OP_CANCELED /* the maker has canceled the op: final */
};

/* The names of a put or an item, or of the op itself. */
struct op_names {
	struct slice space, queue;
};

#define EACH_OP(each, batch) for (struct op *each = (batch); each; each = each->route.next)

/* Zeroes the op, of the parts by family only that of the verb, and sets the question that every verb has. */
void op_init(struct op *op, enum op_verb verb, struct slice space, struct slice queue,
	     void (*done)(struct op *op), void *owner);

/* Makes an op that was initialised as an ACK or NACK of one item a FINISH. */
void op_make_finish(struct op *op);

/* Returns whether the op is one step, on the shard of the queue that it names. */
static inline bool
op_is_step(const struct op *op)
{
	return op->verb == OP_FINISH || op->verb == OP_SCHEDULE;
}

/* Returns whether the op is a PURGE that has removed some messages and is to run again. */
static inline bool
op_is_begun(const struct op *op)
{
	return op->verb == OP_PURGE && op->cursor;
}

/* How many puts or items the op has; a step is one part, the queue of the op. */
static inline uint32_t
op_parts(const struct op *op)
{
	if (op_is_step(op))
		return 1;
	return op->n_puts ? op->n_puts : op->n_items;
}

/* The names of the i-th put or item; of the op, if it has neither, or is a step. A name with n 0: as of the op. */
struct op_names op_names(const struct op *op, uint32_t i);

static inline bool
op_names_are(struct op_names a, struct op_names b)
{
	return slice_eq(a.space, b.space) && slice_eq(a.queue, b.queue);
}

/* Returns true if another shard may have what the op asks for (MOVE-4, MOVE-5 of engine/move.h): the op
 * does not wait on this shard. */
static inline bool
op_is_elsewhere(const struct op *op)
{
	return op->home.elsewhere[0] != '\0';
}

/* Returns true if a shard could not answer: its op may or may not have happened. */
static inline bool
op_is_failure(int rc)
{
	return rc == SLU_EDOWN || rc == SLU_EUNKNOWN || rc == SLU_ECLOSED;
}

/* Sets rc, and err to a copy of err; to the text of the code if err is NULL or of another code. */
void op_fail(struct op *op, int rc, const struct slu_err *err);

/* Marks the op as unwanted, before a cancel. Returns true if its shard, op->route.lane, must be told;
 * the op does not end or leave that shard before. Any thread that may touch the op. */
bool op_unwant(struct op *op, enum op_unwanted why);

/* Unpins every record of the answer; a second call does nothing. Any thread that has the op. */
void op_unpin(struct op *op);

/* ---- For engines ---- */

/* Puts without a namespace, a queue or a spelling get it from the op. */
void op_name_puts(struct op *op);

/* Before a put is tried: resets what an earlier try, perhaps on another shard, has set. */
void op_begin_put(struct op_put *put);

/* Unpins what a row has pinned. */
void op_unpin_row(struct engine *e, struct op_row *row);

/* The answer failed: unpins its rows, keys and documents, and removes them. */
void op_drop_rows(struct op *op);

/* The part of the error of a nack that is kept: without NULs at the beginning, at most ATTEMPTS_ERROR bytes. */
struct slice op_error_text(struct slice text);

/* Answers a WATCH; head: the first ready message, or 0. */
void op_watch(struct op *op, uint64_t head);

/* Returns true if the op, which has no items, must also ask the shard that its queue lives on: MOVE-5
 * of engine/move.h. */
bool op_finds_nothing(const struct op *op);

/* Copies the names of a queue; shown NULL: the name itself. */
void op_name_queue(struct op_queue *q, const char *space, const char *name,
		   const char *space_shown, const char *shown);

/* Check the question of a lock verb, a step of a move, a message of a GIVE. SLU_EINVAL. */
int op_check_lock(const struct op *op, struct slu_err *err);
int op_check_move(const struct op *op, struct slu_err *err);
int op_check_given(const struct op_put *put, struct slu_err *err);

/* Set err and return its code: SLU_EIDEM with queue and idempotency key; a FORGET of a queue that was
 * moved, or that has messages. */
int op_fail_key(const struct message *m, struct slu_err *err);
int op_fail_moved(const struct op *op, struct slu_err *err);
int op_fail_not_empty(const struct op *op, uint64_t messages, struct slu_err *err);

/* Why a key was refused, in words. */
const char *op_lock_reason(enum lock_why why);

/* How long the lease of a key lasts: as asked for, within the limit. */
slu_time op_lock_ttl(const struct op_lock *q);

#endif
