/*
 * op.h - one operation on the way through the broker: what is asked, then the answer.
 *
 *   maker (an API, embed.c)        shard thread                      engine
 *   fills in the question  ─────>  inbox, batch  ───────────────>    rc, results
 *   takes the answer       <─────  op->done(op)  <───────────────    durable
 *
 *  O1  An op and all memory it points to is its maker's. The maker leaves it alone
 *      from broker_post until done is called, and keeps it until then. Text in it is
 *      borrowed; results go to arrays that the maker gives. No engine allocates for
 *      an op but what a pin holds.
 *  O2  done is called exactly once for an op that was posted, on the shard's thread.
 *      It must not block: it posts the op to the maker's own loop, or signals.
 *  O3  rc is 0 or a code, and err then says why. With a code nothing has happened,
 *      but SLU_EUNKNOWN: then nobody knows.
 *  O4  An enqueue, however many messages it brings, is accepted whole or not at all.
 *      The verbs of struct op_item have an outcome of their own for each item, and op
 *      rc is 0 then.
 *  O5  A result that refers to a record (struct op_ref) pins it: the record can be
 *      read until op_unpin, by any thread. Whatever becomes of the message.
 *  O6  op->wait is how long a claim, peek, result or acquire may wait, from when it
 *      reached the inbox; 0: not at all. A claim or peek that ends with nothing has rc 0
 *      and no rows; an acquire SLU_ELEASE and LOCK_HELD.
 *  O7  broker_cancel ends a wait early: SLU_ECANCELED. An op that is under way is
 *      answered as ever; what a claim or acquire was granted goes back by broker_return.
 *
 * All items of an op live on one shard.
 */
#ifndef ENGINE_OP_H
#define ENGINE_OP_H

#include "base/list.h"
#include "core/ledger.h"
#include "core/locks.h"
#include "engine/message.h"
#include "engine/move.h"

#include <stdatomic.h>

struct engine;
struct relay;

/* Which fields a verb uses is said at the fields. */
enum op_verb {
	OP_ENQUEUE,
	OP_CLAIM,      /* the best messages of a queue; may wait */
	OP_RETURN,     /* what a claim granted and nobody received: rows; see spare */
	OP_ACK,        /* items */
	OP_NACK,       /* items */
	OP_EXTEND,     /* items */
	OP_REDRIVE,    /* items: dead letters start anew */
	OP_DELETE,     /* items: anything but what is leased */
	OP_ASIDE,      /* items: what a claim granted and nobody can read; with tokens */
	OP_GET,        /* one message by its id */
	OP_PEEK,       /* ready messages in the order they would be handed out; may wait */
	OP_WATCH,      /* the id of the first ready message, when it is another; may wait */
	OP_LIST,       /* messages by state, page by page */
	OP_RESULT,     /* of a message that was acked; may wait */
	OP_STATS,      /* of one queue */
	OP_TOPICS,     /* of all queues, page by page; queue: of those of that name, and of
			* LOCK_QUEUE only so */
	OP_PURGE,      /* all of a queue that is neither leased nor dead */
	OP_PAUSE,      /* a queue that exists: policy.paused alone is set, or cleared */
	OP_POLICY_GET, /* a queue that nobody used has the default one */
	OP_POLICY_SET,
	OP_FORGET, /* a queue that exists: it is no more, with all that it has. SLU_ENOTEMPTY:
		    * it has messages, and force is not set; SLU_ECONFLICT: it has been
		    * moved. cursor other than 0: not yet, ask again */
	OP_BACKUP, /* backup: the files of a shard, held while somebody copies them */
	OP_SHARD,  /* of the shard itself, which cursor names as TOPICS does */
	OP_MOVE,   /* move: a step of a queue's move to another shard; see engine/move.h */

	/* lock: see struct op_lock */
	OP_ACQUIRE, /* a lease on a key; may wait */
	OP_KEEPALIVE,
	OP_RELEASE,      /* commit what was staged, or roll it back */
	OP_STATE_GET,    /* a document */
	OP_STATE_PUT,    /* stage puts[0] as one */
	OP_STATE_REMOVE, /* stage that there is none */
	OP_STATE_META,   /* stage whether OP_KEYS shows it */
	OP_DESCRIBE,     /* who has a key, and which version it is */
	OP_KEYS,         /* committed states of a namespace, page by page */
	OP_ATTACHMENTS,  /* of a key */
	OP_VERBS
};

/* A record, pinned where it is; for engine_read and engine_unpin alone. */
struct op_ref {
	void *pin; /* NULL: there is no record */
	uint64_t where;
	uint32_t size; /* of the record; of a payload, error or result: of that */
	uint32_t sum;
};

/* OP_ENQUEUE: one message. */
struct op_put {
	/* A payload that is too large for a record comes in a file: engine/payload.h.
	 * Its namespace and queue: n 0 means the op's. id 0: the broker gives one.
	 * due: a moment of shard time (that is, of the wall clock), kept as it is, or
	 * 0. The engine sets number, accepted and expires, and due where it is 0. */
	struct message m;
	slu_time delay;        /* from now, when due is 0 */
	slu_time ttl;          /* from now; 0: the queue's */
	struct spelling as;    /* n 0: the op's */
	struct op_stood stood; /* OP_MOVE: beside m, due and expires of which count */
	bool taken;            /* V2, V4 of engine/move.h */
	bool undated;          /* the engine's: due is of its making, and of no other try */
	uint64_t own_id;       /* the same: its id, while m.id is the first message's; or 0 */

	/* Answer: its idempotency key was known; m.id is the first message's. */
	bool existed;
	uint16_t max_attempts; /* in force: its own, or its queue's */
};

/* OP_ACK, NACK, EXTEND, REDRIVE, DELETE: one message. */
struct op_item {
	struct slice space; /* n 0: the op's */
	struct slice queue; /* n 0: the op's; if that is empty, whichever it is in */
	uint64_t id;
	uint64_t token;    /* 0: whoever holds the lease now */
	struct slice text; /* ack: the result; nack: the error; may be empty */
	slu_time time;     /* extend: lease, 0: the queue's; nack: delay, or
			    * LEDGER_BY_POLICY */
	bool defer;        /* nack: no failure, just not now */
	bool dead;         /* nack: to the dead letters */
	bool taken;        /* V4 of engine/move.h */
	bool rounded;      /* the API's: what id was sent as. See struct given_id */

	/* Answer. extend: the end of the lease; nack: when it is due, or dead. */
	int rc;
	slu_time until;
	bool died; /* nack: it is a dead letter now */
};

/* A message as it stands: answer of claim, get, peek and list. Key, payload and the
 * rest are in the record. */
struct op_row {
	uint64_t id;
	uint64_t token; /* LEASED: of the lease, as the next two; else 0 */
	slu_time until;
	slu_time claimed;
	slu_time due;     /* DEAD: since when it is */
	slu_time expires; /* or SLU_NEVER */
	uint64_t number;
	int32_t prio;
	uint16_t attempts;
	uint16_t failures;
	uint16_t max_attempts;
	uint8_t state;  /* enum msg_state */
	uint8_t flags;  /* enum msg_flags */
	uint8_t reason; /* enum dead_reason */
	uint8_t kind;   /* MOVE: enum move_kind */
	uint64_t after; /* LIST of a queue: the cursor that goes on behind this row */
	struct op_ref record;
	struct op_ref payload;     /* when that has a file of its own: then the record has none */
	struct op_ref error;       /* text of the last failure, or none. Not with claims */
	struct shared_text *owner; /* LEASED, not with claims: who holds it, or NULL: not known */

	/* CLAIM, stateful: of the state of the message. Its lease is the message's. */
	uint64_t state_version;
	uint64_t state_etag; /* 0: it has none */
};

/* A queue: answer of stats and topics. It has copies of the names: the queue may be gone
 * when the answer is read. */
struct op_queue {
	char space[NAME_TEXT];
	char name[NAME_TEXT];
	char space_shown[NAME_TEXT]; /* as they were first spelled */
	char shown[NAME_TEXT];
	uint32_t count[MSG_STATES];
	struct ledger_totals totals; /* since the shard was opened */
	slu_time oldest;             /* how long the oldest ready message waits, or -1; see
				      * ledger_oldest */
	uint32_t warn_depth;
	bool paused;
};

/*
 * OP_BACKUP: what a shard keeps, as it was when the backup began. Everything that was
 * answered before is in it, whatever happens until it ends. A shard has one at a time,
 * and lets it go when nobody has read for OP_BACKUP_IDLE.
 *   SLU_EINVAL     the engine keeps no files
 *   SLU_ECONFLICT  BEGIN: there is one already
 *   SLU_ENOTFOUND  READ, END: that one is over
 */
enum backup_step {
	BACKUP_BEGIN,
	BACKUP_READ, /* a file: result pins it, for engine_read_file */
	BACKUP_END
};

#define OP_BACKUP_IDLE (60 * SLU_SEC)

struct op_backup {
	enum backup_step step;
	uint32_t shard;
	uint64_t id;   /* of the backup: the maker of its BEGIN chose it */
	uint32_t file; /* READ: which, from 0 */

	/* Answer. */
	uint32_t files; /* BEGIN: how many */
	uint64_t bytes; /* BEGIN: of all of them; READ: of this one */
	uint64_t last;  /* BEGIN: the last record, and when it was */
	slu_time time;
	uint64_t size; /* READ: of the file: zeros behind bytes */
	char name[64]; /* READ: in the shard's folder */
};

/* A node, as it leaves its name on a shard that several share. */
struct op_peer {
	uint32_t node;          /* its number */
	uint64_t self;          /* drawn at random by each process */
	uint64_t hash, version; /* of its map */
	uint64_t beat;          /* rises as long as it lives */
};

enum {
	OP_PEERS = 1024 /* one for each number of a node */
};

struct op_meet {
	struct op_peer me; /* to be left there */
	unsigned n;        /* answer: who was there before, a former self too */
	struct op_peer peers[OP_PEERS];
};

/* The shard itself: answer of OP_SHARD. What an engine does not have is 0. */
struct op_shard {
	struct op_meet *meet; /* the question; NULL: nobody asks. Where several share it: the
			       * answer is that alone */
	uint64_t messages;
	uint64_t keys;                  /* ordering keys that messages have */
	uint64_t idempotency;           /* keys that are remembered */
	uint64_t results;               /* that are kept */
	struct ledger_totals forgotten; /* of queues that are no more, since it was opened */
	uint64_t locks;                 /* lock keys that are known */
	uint64_t leases;                /* of these are held */
	uint64_t states;                /* messages that have one */
	uint64_t segments;              /* files of the log */
	uint64_t spares;                /* and those made ahead */
	uint64_t bytes;                 /* of all of them */
	uint64_t live;                  /* of these, bytes that are needed */
	int64_t disk_free;              /* bytes; negative: not known */
	bool disk_full;                 /* new work is refused: no room */

	/* Of a server that keeps the shard, as it has told last. */
	struct op_store {
		bool told;      /* false: there is none, it has not yet, or another lane tells */
		int64_t memory; /* bytes; what is not known is negative, also below */
		int64_t max_memory;
		int64_t disk;    /* of its append-only file */
		int64_t cpu;     /* microseconds, since it was started */
		int64_t clients; /* connections, from whomever */
		int64_t max_clients;
	} store;
};

/*
 * The verbs of locks: one key of op->space, and what the caller knows of it.
 *
 * A key is folded and whole, and op->queue says where it lives: LOCK_QUEUE, or (for
 * `q/<queue>/state/<uuid>`, see lock_key_of_message) the queue of that message. The state
 * of a message is held by whoever holds the message: token is that of the claim, txn is
 * not compared, and there is no acquire or keepalive. core/locks.h has the rules, K1 to K8.
 *
 *   ACQUIRE     key owner txn ttl if_absent; op->wait
 *               -> token txn until version etag
 *   KEEPALIVE   key token fence txn ttl           -> until, and as DESCRIBE
 *   RELEASE     key token fence txn rollback      -> version etag
 *   STATE_GET   key name token fence              -> version etag updated record payload.
 *               token 0: what is committed; else what the holder sees. etag 0 and rc 0:
 *               there is none
 *   STATE_PUT   key name token fence txn if_version if_etag if_absent, op->puts[0].m with
 *               payload or file, type, attributes (the rest of m is the engine's)
 *               -> version etag, as the holder sees them
 *   STATE_REMOVE  as PUT, without puts; all: whatever is attached -> version,
 *               op->count: how many there were
 *   STATE_META  key token fence txn if_version hidden  -> version
 *   DESCRIBE    key, room for owner in holder     -> token txn until version etag updated
 *               hidden. An unknown key has version 0 and no token
 *   KEYS        key: go on behind it (n 0: from the first on), room in op->keys
 *               -> keys, in the order of their bytes; more: there are others behind the
 *               last of them, which has etag 0 when that is all that it says. Hidden ones
 *               and states of messages are left out
 *   ATTACHMENTS key token fence, room in op->keys for LOCK_DOCS_MAX; token as in STATE_GET.
 *               The record of a large one may end where its payload begins
 *
 * Failures, told apart by `why` (enum lock_why):
 *   SLU_ELEASE     HELD (acquire), NONE, EXPIRED, FENCE
 *   SLU_EEXISTS    KNOWN_KEY: if_absent
 *   SLU_EINVAL     TXN_MISSING, OF_MESSAGE; or no sound question
 *   SLU_ECONFLICT  TXN_OTHER, VERSION, ETAG
 *   SLU_ETOOBIG    more attachments than LOCK_DOCS_MAX - 1
 * A refusal tells version, etag and (HELD) until, as of what is committed. A RELEASE of
 * what is not held is no failure: rc 0, `why` says so.
 */
struct op_lock {
	struct slice key;
	struct slice name;     /* of an attachment; n 0: the state itself */
	struct slice owner;    /* ACQUIRE; up to LOCK_OWNER_MAX */
	uint64_t token;        /* of the lease; 0: none */
	uint64_t fence;        /* what the caller takes for it; 0: not said */
	uint8_t txn[LOCK_TXN]; /* zeros: not said; an ACQUIRE then makes one */
	slu_time ttl;          /* 0: LOCK_TTL; at most POLICY_LEASE_MAX */
	int64_t if_version;    /* -1, as op_init has it: any */
	uint64_t if_etag;      /* 0: any */
	bool if_absent;
	bool rollback;
	bool undo;   /* RELEASE: the lease was never received, or needs no trace: a key that it made is
		      * forgotten at once */
	bool waited; /* the same: its wait is over, it is only told who has the key */
	bool all;
	bool hidden;

	/* Answer, beside what stands above. */
	enum lock_why why;
	bool more;
	uint64_t version;
	uint64_t etag;
	slu_time updated; /* 0: never */
	slu_time until;
	char *holder;          /* DESCRIBE: room for LOCK_OWNER_MAX + 1, or NULL */
	struct op_ref record;  /* as those of a row: m.number is the etag, m.accepted when it was */
	struct op_ref payload; /* put, m.idem the attachment's name */
};

/* A document: answer of KEYS and ATTACHMENTS. */
struct op_key {
	char name[LOCK_KEY_MAX + 1]; /* of the key, or of the attachment */
	uint64_t version;
	uint64_t etag;
	slu_time updated;
	struct op_ref record, payload;
};

_Static_assert(LOCK_NAME_MAX <= LOCK_KEY_MAX, "a name fits");

/* How an op lies in an inbox: itself, or the wish to cancel it. */
struct op_mail {
	struct list node;
	struct op *op;
	bool cancel;
};

struct routes; /* broker/broker.h */

struct op {
	/* ---- The question. ---- */
	enum op_verb verb;
	struct slice space; /* namespace; n 0 only for an operator's LIST and TOPICS */
	struct slice queue; /* n 0: see struct op_item, LIST, TOPICS */
	slu_time wait;      /* O6 */
	void (*done)(struct op *op);
	void *owner;                 /* the maker's */
	const struct routes *routes; /* by which it finds its shard; NULL: as of now */

	struct op_put *puts; /* ENQUEUE; STATE_PUT: one */
	uint32_t n_puts;
	struct op_item *items;
	uint32_t n_items;

	bool here;            /* STATS: what the queue has on the lane that cursor names, as in GET */
	slu_time lease;       /* CLAIM: 0: the queue's */
	bool stateful;        /* CLAIM: tell of the states of messages, too */
	bool force;           /* FORGET: its messages go first, in whatever state they are */
	uint64_t flow;        /* CLAIM: of a stream, by its number, which has at most flow_max */
	uint32_t flow_max;    /* messages leased at a time; else it waits. 0: of none */
	struct slice taker;   /* CLAIM: who takes them, shown as the owner of the leases; n 0: not said.
			       * What is longer than OWNER_MAX is cut */
	bool spare;           /* RETURN: the first row was handed over, to a stream that ended: it
			       * goes back by the rule of ledger_spare */
	uint64_t max_bytes;   /* CLAIM: ends when its records have more; 0: no limit.
			       * It gives at least one */
	struct spelling as;   /* ENQUEUE, POLICY_SET: for a queue that they make */
	uint64_t id;          /* GET, RESULT. WATCH: the one that is known, or 0: none; then the
			       * answer. Rc SLU_ETIMEOUT: it is still the same */
	enum msg_state state; /* LIST: only those; MSG_NONE: all. Dead letters come
			       * oldest first, others in no order, but each that stays
			       * exactly once */
	uint64_t cursor;      /* GET, and DELETE of one item, without a queue: the shard
			       * to look at, above BROKER_CURSOR_BITS. LIST, TOPICS, MOVE_TAKE: 0,
			       * then what the answer has put here.
			       * The answer is 0 after the last; a page may be short or
			       * empty before that */

	/* ---- The answer. ---- */
	int rc;
	struct slu_err err;
	uint32_t failed;     /* ENQUEUE: which of the puts was refused */
	struct op_row *rows; /* CLAIM, GET, PEEK, LIST: room for max_rows, 1 or more.
			      * RETURN: n_rows that go back */
	uint32_t max_rows;
	uint32_t n_rows;
	uint32_t passed;         /* CLAIM without rows: so many messages are ready, but the stream has just */
	slu_time again;          /* failed them (L13 of core/ledger.h); it may have one of them then */
	struct op_queue *queues; /* STATS: room for 1, TOPICS: for max_queues */
	uint32_t max_queues;
	uint32_t n_queues;
	struct op_ref result; /* RESULT: rc 0 and no pin: the ack brought none. Rc
			       * SLU_ETIMEOUT: not acked yet */
	slu_time until;       /* RESULT: kept so long */
	struct op_backup backup;
	struct op_move move;
	char elsewhere[MOVE_SHARD]; /* where its queue lives, if not here; else empty. Then also: */
	uint64_t counter;           /* no token above it was given here: V9 of engine/move.h */
	struct op_lock lock;
	struct op_key *keys; /* KEYS, ATTACHMENTS: room for max_keys */
	uint32_t max_keys;
	uint32_t n_keys;
	struct op_shard on_shard; /* SHARD */
	struct policy policy;     /* POLICY_GET, PAUSE, and the question of POLICY_SET */
	uint64_t count;           /* PURGE, FORGET: messages that went. STATS: claims that wait, even
				   * for a queue that nobody has used. STATE_REMOVE:
				   * documents that were there */
	struct engine *engine;    /* whose refs these are */

	/* ---- The broker's, and what it tells the engine. ---- */
	struct op *next;  /* in the batch */
	slu_time arrived; /* when it reached the inbox: ack, nack, extend and return are
			   * judged by that */
	slu_time before;  /* what falls due until then happens before this op */
	uint32_t cost;    /* in messages, and in bytes */
	uint64_t bytes;
	uint32_t shard;
	uint32_t waiter;      /* in the dispatcher, or SLAB_NONE */
	uint32_t tenant;      /* in turns, while it is there */
	struct op_mail mail;  /* in an inbox, then in the line of its namespace */
	struct op_mail stop;  /* the cancel on its way */
	struct list age;      /* in order of arrival */
	_Atomic int canceled; /* enum op_cancel */
	_Atomic int unwanted; /* enum op_unwanted */
	struct relay *relay;  /* while several shards are asked: broker/relay.h */
	slu_time later;       /* it runs then, not now; 0: now */
	bool stalled;         /* its flow has no room: it waits for that */
	bool ended;           /* answered but for a cancel on its way */
	bool spans;           /* its cursor goes over all shards */
	uint64_t epoch;       /* of the map it was routed by; 0: there is none */
	const char *lives;    /* by that map: the shard the queue lives on; NULL or "": this one */
	uint64_t above;       /* its tokens, and all later ones, are above this: V9 */
	bool known;           /* ENQUEUE: only what has a known idempotency key; V2 */
	bool formers;         /* REDRIVE: its queue may have messages on other shards; V5 */
};

/* canceled: from NONE either to ASKED or to DONE; only DONE ops have had their done
 * called, and an op with a cancel on its way waits for it. AWAY: no shard has it, it is on
 * its way from one to another, and whoever takes it looks whether it is still wanted. */
enum op_cancel {
	OP_CANCEL_NONE,
	OP_CANCEL_ASKED,
	OP_CANCEL_DONE,
	OP_CANCEL_AWAY
};

/* Why a wait is to end: said before `canceled` is tried. */
enum op_unwanted {
	OP_WANTED,
	OP_NUDGED,  /* another shard may have what it waits for */
	OP_CANCELED /* nobody wants it: final */
};

#define EACH_OP(each, batch) for (struct op *each = (batch); each; each = each->next)

/* Zero it and say what is asked. */
void op_init(struct op *op, enum op_verb verb, struct slice space, struct slice queue,
	     void (*done)(struct op *op), void *owner);

const char *op_verb_name(enum op_verb verb); /* "enqueue" */

/* Whoever does not get the answer of such an op cannot take it for refused. */
bool op_changes(enum op_verb verb);

/* For engines: a put is looked at. Its call may have been refused before, perhaps by another
 * shard: what that found counts no more. */
void op_begin_put(struct op_put *put);

/* For engines: answer a WATCH; head: the first ready message, or 0. */
void op_watch(struct op *op, uint64_t head);

/* V5 of engine/move.h: an op without items whose answer leaves something to be asked where its
 * queue lives. */
bool op_finds_nothing(const struct op *op);

/* Say that it failed: in these words, or those of the code. */
void op_fail(struct op *op, int rc, const struct slu_err *err);

/* SLU_EIDEM, with the queue and the idempotency key of the message in err. */
int op_fail_key(const struct message *m, struct slu_err *err);

/* For engines: copy the names of a queue; shown NULL: as the name is. */
void op_name_queue(struct op_queue *q, const char *space, const char *name,
		   const char *space_shown, const char *shown);

/* For engines: why a FORGET is refused. They return the code. */
int op_fail_moved(const struct op *op, struct slu_err *err);
int op_fail_not_empty(const struct op *op, uint64_t messages, struct slu_err *err);

/* For engines: why a key was refused, in words. */
const char *op_lock_reason(enum lock_why why);

/* Say that nobody waits for it, before a cancel. True: its shard, op->shard, has to be told;
 * it cannot end or leave until it has been. Any thread that may touch the op. */
bool op_unwant(struct op *op, enum op_unwanted why);

/* Let go of every record the answer refers to; again is fine. Any thread that has
 * the op. */
void op_unpin(struct op *op);

#endif
