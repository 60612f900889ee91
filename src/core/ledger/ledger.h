/*
 * ledger.h - the messages of a shard and their states.
 *
 *                       accept
 *          due later |          | due now
 *                    v          v
 *      +---------+  tick   +---------+  advance +--------+   behind the head
 *      | delayed | ------> |  ready  | <------- |  held  |   of its key
 *      +---------+         +---------+          +--------+
 *           ^               |       ^
 *           | retry   claim |       | return, retry, lease ran out
 *           |               v       |
 *           |              +---------+  ack
 *           +------------- | leased  | ------> gone; the ledger keeps its idempotency
 *                          +---------+         key and result for a while
 *      ttl ended, rejected,     |
 *      max_attempts reached     v         redrive: ready or delayed again
 *                          +---------+
 *                          |  dead   | ------> gone, by delete or retention
 *                          +---------+
 *
 * A sixth state is not in the picture: a message whose bytes cannot be read is damaged
 * (in quarantine) until it is deleted.
 *
 * Every change has two steps. A deciding function checks an operation and fills in
 * a struct change (core/change.h), or returns a code and changes nothing. Then
 * ledger_apply carries the change out. The memory engine does both at once. The log
 * engine writes the change down between them, and at start reads the changes back
 * with ledger_replay. The same changes in the same order give the same ledger.
 *
 *         rc = ledger_ack(l, &ref, now, &c);
 *         if (rc)
 *                 return rc;
 *         c.where = logengine_append(log, &c, ...);
 *         rc = ledger_apply(l, &c);      cannot fail: deciding reserved the memory
 *
 * Apply a change before deciding the next one: a change is valid only for the ledger
 * that it was decided on.
 *
 * Rules (tests cite them):
 *  LEDGER-1   A message is in exactly one of the six states, and counts once in its queue.
 *  LEDGER-2   The order of ready messages is (priority, due, number). A retry without an
 *             ordering key gets a new due time and keeps its number. Between messages of one
 *             priority, in a queue with shares, SHARES-1 of core/queue/shares.h decides.
 *  LEDGER-3   The order in the sequence of a key is (first due, number); priorities have no
 *             part in it. A message joins the sequence when it falls due. The head is in the
 *             queue, with its own priority; the others are held. After its first delivery
 *             a message stays the head until it is gone or dead, also while it waits for a
 *             retry. A redriven message gets a new number and joins at the end.
 *  LEDGER-4   Delayed messages fall due in the order (due, number). While a queue has due
 *             messages that are not ready yet, a new keyed message waits among them. So a
 *             tick that stops half-way keeps every sequence in order, and falling due needs no
 *             record: only the order is observable, not the moment.
 *  LEDGER-5   Numbers and tokens come from one counter; both rise and never repeat.
 *  LEDGER-6   A lease ends at its deadline: from that `now` on its token is refused, even
 *             before the tick.
 *  LEDGER-7   attempts counts deliveries; failures counts failing nacks and leases that ran
 *             out. At max_attempts failures the message dies. A return takes the attempt
 *             back. So does a spare, once, until the message is settled or extended.
 *  LEDGER-8   A ttl never ends a lease. A message whose ttl has ended, or whose failures
 *             have reached max_attempts, dies instead of being delivered.
 *  LEDGER-9   Deciding reserves the memory that applying needs.
 *  LEDGER-10  A look-up by id finds messages of one namespace; others are SLU_ENOTFOUND.
 *  LEDGER-11  A refused operation changes nothing, except that memory may be reserved.
 *  LEDGER-12  The ledger calls conf.drop once for every place (`where`) that it got and no
 *             longer refers to: of a message that is gone, of an error text or result that
 *             was replaced, relocated, or has expired.
 *  LEDGER-13  A stream that has failed a message does not get it again for SHUN_TIME.
 *  LEDGER-14  The ledger remembers the number of the last batch of each source (CHANGE_INTAKE), of at most
 *             LEDGER_SOURCES sources. A new source replaces the source that is silent for longest, if that is
 *             LEDGER_SOURCE_IDLE or more (LEDGER_OUTBOX_IDLE, if it is the outbox of a shard); otherwise the
 *             batch of the new source is refused.
 *
 *  LEDGER-15  A lease ends at the latest max_runtime after its claim, of the message or of the policy, however often
 *             it is extended. Its end is a failure, like the end of every lease.
 *  LEDGER-16  A unique message loses its idempotency key as TERMS-1 of core/queue/terms.h says: at its first delivery, at
 *             its death, or at its moment. It never gets the key back, also not by a redrive.
 *  LEDGER-17  A leased message that is canceled keeps its lease, and holds its key, until the holder settles it or the
 *             lease ends; then it is gone, whatever the holder says. The lease cannot be extended: SLU_ESTOP.
 *
 * Handles name namespaces, queues and messages while these exist, and differ after a
 * restart. `where` is a number of the engine, of 48 bits: the place of a message's
 * record. Times are shard time in nanoseconds, 0 or more.
 *
 * Pure: no clock, I/O, lock or log; the caller passes now and random numbers. Owned by
 * the shard's thread.
 */
#ifndef CORE_LEDGER_LEDGER_H
#define CORE_LEDGER_LEDGER_H

#include "base/bytes.h"
#include "base/footprint.h"
#include "base/hash.h"
#include "base/slab.h"
#include "core/bucket.h"
#include "core/change.h"
#include "core/names.h"
#include "core/queue/gates.h"
#include "core/queue/trend.h"
#include "core/queue/holders.h"
#include "core/why.h"

/* A lease that exists when a shard is opened lasts at least this long: its holder could not reach the shard before. */
#define LEDGER_GRACE (5 * SLU_SEC)

/* A stream that ends this soon after a delivery may not have read it: ledger_spare. */
#define LEDGER_SPARE_TIME SLU_SEC

#define LEDGER_WHERE_MAX ((1ull << 48) - 1)

enum {
	LEDGER_SHARD = 64 /* bytes of a shard's name, with the NUL */
};

enum msg_state {
	MSG_NONE, /* no message: free memory */
	MSG_READY,
	MSG_DELAYED, /* waits for its due time, at first or for a retry */
	MSG_LEASED,
	MSG_HELD, /* behind the head of its key */
	MSG_DEAD,
	MSG_DAMAGED, /* in quarantine: never delivered, gone only by delete */
	MSG_STATES
};

enum msg_flags {
	MSG_HOLDS = 1,    /* was delivered: stays the head of its key */
	MSG_EXTENDED = 2, /* its lease was extended: shown as `processing` */
	MSG_SPARED = 16,  /* was spared (ledger_spare): not again before it is settled */
	MSG_CANCELED = 4, /* LEASED: canceled (LEDGER-17). In views and records; the bit means something else inside */
	MSG_FREED = 128   /* was unique, and has lost its key: TERMS-1 */
};

/* The flags in records, views and moves; other flags are internal to the ledger. */
#define MSG_FLAGS (MSG_HOLDS | MSG_EXTENDED | MSG_SPARED | MSG_FREED)

struct ledger;

struct ledger_conf {
	struct hash_key secret; /* of the hashes of keys. A log that stores hashes stores it, too */
	uint32_t max_idem;      /* remembered idempotency keys; 0: no limit */
	uint32_t max_queues;    /* 0: no limit */

	void (*drop)(void *arg, uint64_t where); /* LEDGER-12; may be NULL */

	/* The bytes of the message whose record is at `where`: always the same for one message.
	 * NULL: 0 for all messages. */
	uint64_t (*size)(void *arg, uint64_t where);
	void *drop_arg; /* argument of drop and size */

	/* Called when a message is gone, for any reason; may be NULL. */
	void (*forgot)(void *arg, uint64_t id);
	void *forgot_arg;
};

/* Returns SLU_ENOMEM if memory is out. */
int ledger_new(struct ledger **out, const struct ledger_conf *conf);
void ledger_free(struct ledger *l);

/* ---- Queues. The caller folds names (core/names.h). ---- */

/* Finds or makes the queue of that name. Returns SLU_ENOMEM, or SLU_EBUSY at max_queues. Making a
 * queue is not a change: records name their queue. */
int ledger_queue_open(struct ledger *l, struct slice space, struct slice name,
		      uint32_t *out);

/* The same; a new queue or namespace is displayed as spelled in `as`. */
int ledger_queue_open_as(struct ledger *l, struct slice space, struct slice name,
			 const struct spelling *as, uint32_t *out);

/* Sets the spelling of a queue and its namespace, unless they have one: for records that have it.
 * Returns SLU_ENOMEM if memory is out. */
int ledger_queue_spell(struct ledger *l, uint32_t queue, const struct spelling *as);

/* Returns whether the queue or its namespace has a spelling that differs from its name. */
bool ledger_queue_is_spelled(const struct ledger *l, uint32_t queue);

/*
 * Decides to remove a queue with its policy, spelling, remembered idempotency keys and results.
 * A later record with its name makes it again. Its handle may name another queue then.
 *   SLU_ENOTEMPTY  the queue has messages, in any state
 *   SLU_EBUSY      a purge of the queue is still being freed
 *   SLU_ECONFLICT  the queue moves or has moved: it has a mark, a batch or a batch number
 */
int ledger_queue_forget(struct ledger *l, uint32_t queue, slu_time now, struct change *out);

/* Decides the next change that empties a queue, also of leased messages and dead letters; their
 * idempotency keys are not remembered. CHANGE_NONE if the queue is empty, or a purge has to be
 * freed first. Returns SLU_ECONFLICT as above, or SLU_ENOMEM. */
int ledger_queue_clear(struct ledger *l, uint32_t queue, slu_time now, struct change *out);

/* Notes that the queue was used now, so that it is not idle: see ledger_limits.idle. */
void ledger_queue_use(struct ledger *l, uint32_t queue, slu_time now);

/* Return SLAB_NONE if the name is unknown. */
uint32_t ledger_queue_find(struct ledger *l, struct slice space, struct slice name);
uint32_t ledger_space_find(struct ledger *l, struct slice space);

/* The namespace of a queue. */
uint32_t ledger_queue_space(const struct ledger *l, uint32_t queue);

/* The queue with the next handle. SLAB_NONE: as argument the start, as result the end. */
uint32_t ledger_queue_next(const struct ledger *l, uint32_t queue);

/* Counts of a queue since the ledger was opened. */
struct ledger_totals {
	uint64_t accepted;
	uint64_t delivered;
	uint64_t done;   /* acked or deleted */
	uint64_t failed; /* failing nacks, and leases that ran out */
	uint64_t died;   /* became dead letters */
};

static inline void
ledger_add_totals(struct ledger_totals *sum, const struct ledger_totals *one)
{
	sum->accepted += one->accepted;
	sum->delivered += one->delivered;
	sum->done += one->done;
	sum->failed += one->failed;
	sum->died += one->died;
}

struct ledger_queue_view {
	uint32_t space;              /* its namespace */
	const char *space_name;      /* folded name of the namespace; valid while the queue exists */
	const char *name;            /* folded name of the queue; the same */
	const char *space_shown;     /* spelling of the namespace */
	const char *shown;           /* spelling of the queue */
	const struct policy *policy; /* in force */
	uint32_t count[MSG_STATES];  /* messages by state */
	uint32_t depth;              /* messages that count against max_depth and warn_depth */
	struct ledger_totals totals;
	bool purging; /* memory of purged messages is still being freed */
};

void ledger_queue_get(const struct ledger *l, uint32_t queue, struct ledger_queue_view *out);

/* max_attempts of the queue's policy. */
uint16_t ledger_attempts(const struct ledger *l, uint32_t queue);

/* Returns whether the queue compares the payloads of messages with one idempotency key. */
bool ledger_is_strict(const struct ledger *l, uint32_t queue);

/* The admission rules of the queue: core/queue/rules.h. */
struct slice ledger_rules(const struct ledger *l, uint32_t queue);

/* The attribute whose values the queue limits; n 0: none. */
struct slice ledger_attribute(const struct ledger *l, uint32_t queue);

/* The moment since which the oldest ready message is ready, or SLU_NEVER. Looks only at the first
 * LEDGER_OLDEST_LOOK nodes of the heap: exact for a queue with so few ready messages, and for one
 * whose messages have the same priority. */
#define LEDGER_OLDEST_LOOK 64
slu_time ledger_oldest(const struct ledger *l, uint32_t queue);

/* ---- Hashes of keys, for changes that are read back from records ---- */

uint64_t ledger_key_hash(const struct ledger *l, uint32_t queue, struct slice key);
struct idem_mark ledger_idem_mark(const struct ledger *l, uint32_t queue, struct slice key);

/* ---- Deciding: returns 0 and fills in a change, or returns a code and changes nothing. Every
 * function may return SLU_ENOMEM. ---- */

/* A new message. */
struct ledger_offer {
	uint64_t id;           /* new, from the id generator */
	struct slice key;      /* ordering key; n 0: none */
	uint64_t key_hash;     /* of ledger_ahead_use; 0: not known */
	struct slice share;    /* or the kind, as KIND-1 of core/queue/kind.h says; n 0: neither */
	struct slice value;    /* of the attribute that the queue limits (ledger_attribute); n 0: none */
	struct slice idem;     /* idempotency key; n 0: none */
	uint64_t digest;       /* of the payload; needed with idem if ledger_is_strict */
	int32_t prio;          /* lower ones go first */
	slu_time due;          /* a moment; a past one means now */
	slu_time ttl;          /* 0: of the policy */
	uint16_t max_attempts; /* 0: of the policy */
	slu_time keep_result;  /* how long after the ack, in whole seconds; 0: not kept */
	slu_time deadline;     /* end of the ttl as a moment, instead of ttl; 0: none */
	struct terms terms;    /* lease, retries and longest run of its own */
	uint64_t where;        /* place of its record */
	uint64_t epoch;        /* of the map that routed it (MOVE-11 of engine/move.h); 0: no map */
	bool known;            /* accept it only if the idempotency key is known (MOVE-2) */
	bool owed;             /* another shard has promised it: no depth, drain, share or number of keys refuses it */
	bool instead;          /* it takes the place of a message of the queue, which goes: no drain refuses it */
};

/*
 * Accepts a message. Returns
 *   SLU_EMOVED     if another shard accepts it (MOVE-2, MOVE-11 of engine/move.h)
 *   SLU_EEXISTS    if the idempotency key is known: out->id is the id of the first message
 *   SLU_EIDEM      if it is known, the queue is strict, and the digests differ
 *   SLU_EDRAINING  if the queue is drained; SLU_EQFULL: it is at its max_depth
 *   SLU_EQUOTA     if the share is new, and the ledger has ledger_limits.shares of them; or if the kind is new, and the
 *                  queue has KINDS_OF_QUEUE of them
 *   SLU_EBUSY      if there are too many idempotency keys
 *   SLU_ECONFLICT  if the ordering key is part of a move (MOVE-7 of engine/move.h)
 */
int ledger_accept(struct ledger *l, uint32_t queue, const struct ledger_offer *offer,
		  slu_time now, struct change *out);

/* Replaces the waiting message `msg` by an offer: REPLACE. The offer has the same queue and idempotency key, and its id does
 * not count. CHANGE_NONE if the message is leased, dead, damaged or set aside, or has another key or share: it stays as it
 * is. */
int ledger_replace(struct ledger *l, uint32_t msg, const struct ledger_offer *offer, slu_time now, struct change *out);

/* Undoes an ACCEPT (or a GIVE) that was applied and will not be written down, the latest first: for
 * calls that are accepted as a whole or not at all. */
void ledger_undo(struct ledger *l, const struct change *accepted);

/* A consumer that may be a stream. */
struct ledger_taker {
	slu_time lease;     /* 0: of the message, or of the policy */
	uint32_t stream_no; /* number of the stream, or 0 */
	struct slice kinds; /* the kinds that it takes (core/queue/kind.h); n 0: every message */
};

/* Messages that a claim left to other consumers: LEDGER-13. */
struct ledger_passed {
	uint32_t n;     /* how many ready messages */
	slu_time until; /* when this consumer may have the first of them */
};

/* Claims the first ready message of the queue. Decides one change a call: a CLAIM; CHANGE_NONE if no
 * message is ready, or the queue is paused; or a DIE of a message that must not be delivered any more:
 * apply it and call again. */
int ledger_claim_for(struct ledger *l, uint32_t queue, const struct ledger_taker *taker,
		     slu_time now, struct change *out, struct ledger_passed *passed);

/* A message that an operation names. */
struct ledger_ref {
	uint32_t space; /* namespace */
	uint32_t queue; /* SLAB_NONE: any queue of the namespace */
	uint64_t id;
	uint64_t token; /* of the lease; 0: any lease */
	uint64_t epoch; /* redrive: of the map that routed it (MOVE-11 of engine/move.h); 0: no map */
	bool apart;     /* redrive: another shard may have messages of its key */
	bool delayed;   /* redrive: also a delayed message without a key */
};

/*
 * Operations of the holder of a lease. They return
 *   SLU_ENOTFOUND  if this namespace and queue do not have the message
 *   SLU_ELEASE     if it is not leased, or under another token, or the lease has ended; or
 *                  if ref has no token and the policy requires one
 *
 * ledger_ack         for a message with keep_result, put the place of its result into out->where
 * ledger_extend      until now + lease, or (0) the lease of the message or of the policy
 * ledger_return      for a message that could not be delivered
 * ledger_quarantine  for a message that could not be read
 */
int ledger_ack(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	       struct change *out);
int ledger_extend(struct ledger *l, const struct ledger_ref *ref, slu_time lease,
		  slu_time now, struct change *out);
int ledger_return(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		  struct change *out);
int ledger_quarantine(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		      struct change *out);

/* Returns a message that was delivered to a stream which has ended. CHANGE_NONE, and the lease
 * stays, if the lease is older than LEDGER_SPARE_TIME or was extended, or if the message was spared
 * before and not settled since. */
int ledger_spare(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		 struct change *out);

#define LEDGER_BY_POLICY ((slu_time)-1)

struct ledger_nack {
	bool defer;      /* later, and not a failure */
	bool dead;       /* becomes a dead letter, with the reason rejected */
	slu_time delay;  /* until the retry; LEDGER_BY_POLICY: of the policy, of a defer 0 */
	uint64_t random; /* for jitter */
};

/* Another priority. */
int ledger_set_priority(struct ledger *l, const struct ledger_ref *ref, int32_t prio, slu_time now, struct change *out);

/* Put the place of an error text into out->where, or leave it 0. */
int ledger_nack(struct ledger *l, const struct ledger_ref *ref,
		const struct ledger_nack *nack, slu_time now, struct change *out);

/*
 * Operations of an operator; ref->token has no meaning.
 *
 * ledger_redrive  returns SLU_ENOTFOUND if the message is not a dead letter, SLU_ECONFLICT if it
 *                 waits for a move (MOVE-5 of engine/move.h). failures start at 0 again, attempts
 *                 do not, and the ttl is removed. A delayed message (ref->delayed) is due now, behind
 *                 its equals, and keeps its failures and its ttl.
 * ledger_delete   returns SLU_ELEASE if the message is leased.
 * ledger_purge    returns SLU_EBUSY while the purge before is being freed, SLU_ECONFLICT while a
 *                 batch of a move is set aside.
 */
int ledger_redrive(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		   struct change *out);
int ledger_delete(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		  struct change *out);
int ledger_purge(struct ledger *l, uint32_t queue, slu_time now, struct change *out);

/* Returns SLU_EINVAL if policy_check refuses it. policy must stay valid until the change is
 * applied. */
int ledger_set_policy(struct ledger *l, uint32_t queue, const struct policy *policy,
		      slu_time now, struct change *out);

/* After the last replay: the leases of the ledger get LEDGER_GRACE. Write the change down. */
void ledger_opened(struct ledger *l, slu_time now, struct change *out);

/* ---- Applying ---- */

/* Applies a change that was decided just before. Returns 0. */
int ledger_apply(struct ledger *l, const struct change *c);

/* Applies changes that were written down, in order, to a new ledger. Returns SLU_ENOMEM, or
 * SLU_EINVAL for a change that no ledger decides. Its time is not bounded, unlike ledger_apply. */
int ledger_replay(struct ledger *l, const struct change *c);

/* ---- Time ---- */

/*
 * Does what is due by now, in steps: ends of leases and ttls, delays, retention, freeing of memory.
 * Returns true with a change to write down and apply; then call it again. Returns false if nothing
 * is left to do, or *budget is 0; every step lowers *budget.
 *
 *         while (ledger_tick(l, now, &budget, &c))
 *                 write_and_apply(&c);
 */
bool ledger_tick(struct ledger *l, slu_time now, uint32_t *budget, struct change *out);

/* The moment at which ledger_tick has something to do, or SLU_NEVER. */
slu_time ledger_next_due(struct ledger *l);

/* ---- Waking ---- */

/* The next queue in which a message became ready, or whose policy changed, since the last call
 * returned it; SLAB_NONE: no more. A claim that found no message can only find one there. */
uint32_t ledger_woken(struct ledger *l);

/* The next queue that rose above its warn_depth (*deep is true), or fell to 80 % of it or below
 * (*deep is false), since the last call returned it; SLAB_NONE: no more. */
uint32_t ledger_deep(struct ledger *l, bool *deep);

/* ---- The counter of numbers and tokens ---- */

/* The last number or token. The log engine stores a ceiling above it on disk. */
uint64_t ledger_counter(const struct ledger *l);

/* Raises the counter to at least this. */
void ledger_set_counter(struct ledger *l, uint64_t counter);

/* ---- Looking ---- */

struct ledger_view {
	uint64_t id;
	uint32_t queue;
	enum msg_state state;
	uint8_t flags;           /* enum msg_flags */
	enum dead_reason reason; /* DEAD */
	int32_t prio;
	slu_time due;          /* DEAD: the moment of its death */
	uint64_t number;       /* in the order of arrival */
	slu_time expires;      /* end of the ttl, or SLU_NEVER */
	uint16_t attempts;     /* deliveries */
	uint16_t failures;     /* since it was accepted or redriven */
	uint16_t max_attempts; /* in force: of the message or of the policy */
	slu_time keep_result;  /* how long after the ack; 0: not kept */
	uint64_t token;        /* LEASED: of the lease; otherwise 0 */
	slu_time until;        /* LEASED: end of the lease */
	slu_time claimed;      /* LEASED: start of the lease */
	uint32_t holder;       /* LEASED: see ledger_holder_text */
	uint64_t key;          /* hash of the ordering key, or 0 */
	uint64_t where;        /* place of its record */
	uint64_t error;        /* place of the last error text, or 0 */
	bool taken;            /* set aside for a move */
};

/* Starts to load what a look-up of the id reads first. */
void ledger_expect(const struct ledger *l, uint64_t id);

/* Returns SLAB_NONE if the namespace does not have the message. */
uint32_t ledger_find(const struct ledger *l, uint32_t space, uint64_t id);
void ledger_get(const struct ledger *l, uint32_t msg, struct ledger_view *out);

/* Why the message is not running at the moment now. It costs at most as much as counting WHY_COUNT messages. */
void ledger_why(const struct ledger *l, uint32_t msg, slu_time now, struct why_facts *out);

/* Fills msgs with up to max ready messages in the order of delivery, and *n with their number. max
 * is at most LEDGER_PEEK_MAX. Returns SLU_ENOMEM if memory is out. */
#define LEDGER_PEEK_MAX 1000
int ledger_peek(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max,
		uint32_t *n);

/* The next dead letter, oldest first. SLAB_NONE: as argument the start, as result the end. */
uint32_t ledger_dead_next(const struct ledger *l, uint32_t queue, uint32_t msg);

/* Scans all messages, in no order: looks at up to max entries from *cursor on (0 at first), fills
 * msgs with the messages found and returns their number. *cursor is LEDGER_SCAN_END after the
 * last. */
#define LEDGER_SCAN_END UINT32_MAX
uint32_t ledger_scan(const struct ledger *l, uint32_t *cursor, uint32_t *msgs, uint32_t max);

/* The messages to browse. */
struct ledger_browse {
	uint32_t space;       /* SLAB_NONE: of any namespace */
	uint32_t queue;       /* SLAB_NONE: of any queue */
	enum msg_state state; /* MSG_NONE: in any state */
};

/*
 * Fills msgs with a page of up to max messages from *cursor on (0 at first) and returns their
 * number. *cursor is then the start of the next page, LEDGER_SCAN_END after the last; the page
 * behind a message has the cursor (its handle + 1). A message that is in the state during the whole
 * walk appears once. A page before the last may be short, or empty: the function looks at a bounded
 * number of entries. The first page of a queue with up to a thousand messages in that state is never empty.
 */
uint32_t ledger_browse(const struct ledger *l, const struct ledger_browse *what,
		       uint32_t *cursor, uint32_t *msgs, uint32_t max);

/* ---- For a log that relocates records ---- */

/* Set the new place of the record, or of the error text. Not a change: the record itself restores
 * it. */
void ledger_relocate(struct ledger *l, uint32_t msg, uint64_t where);
void ledger_relocate_error(struct ledger *l, uint32_t msg, uint64_t where);

/* Finds a message of any namespace: for the engine itself. Returns SLAB_NONE if no message has the id. */
uint32_t ledger_find_any(const struct ledger *l, uint64_t id);

/* Describes a message completely, as a RESTORE at the moment now. */
void ledger_describe(const struct ledger *l, uint32_t msg, slu_time now, struct change *out);

/* Describes a remembered idempotency key whose message is gone, as a REMEMBER. Returns false if it
 * is not remembered, or its message exists. */
bool ledger_describe_idem(const struct ledger *l, struct idem_mark idem, slu_time now,
			  struct change *out);

/*
 * ---- Moves: engine/move.h has the rules, MOVE-1 to MOVE-12. ----
 *
 * A batch that is set aside is a list of messages, of results, or of remembered keys. Only a
 * DROP or UNTAKE with its number touches it: ledger_find finds its messages, the functions that
 * settle do not.
 */

/* Returns whether any queue lives on another shard. Saves a look at each. */
bool ledger_has_moved(const struct ledger *l);

/* Returns whether the queue lives on another shard, or has lived there since the map of that epoch
 * (MOVE-11); epoch 0: no map. */
bool ledger_is_elsewhere(const struct ledger *l, uint32_t queue, uint64_t epoch);

/* A queue and its move. */
struct ledger_moving {
	uint64_t epoch;       /* of the mark; 0: no mark */
	const char *lives;    /* the shard that the mark names; empty: this one */
	uint64_t mark;        /* place of the mark's record */
	uint64_t batch;       /* number of the batch that is set aside, or 0 */
	const char *receiver; /* the shard that gets the batch; empty: unknown */
	enum batch_kind what; /* content of the batch */
	uint32_t n;           /* items of the batch */
	uint64_t where;       /* place of the batch's record */
};

void ledger_moving(const struct ledger *l, uint32_t queue, struct ledger_moving *out);

/* Sets the mark (MOVE-1). CHANGE_NONE if the mark has the same or a higher epoch; or if the queue
 * has no mark, `say` names this shard, and `written` is false. Here and in the functions below,
 * `say` and all it points to must stay valid until the change is applied. */
int ledger_mark(struct ledger *l, uint32_t queue, const struct change_move *say, bool written,
		slu_time now, struct change *out);

/* How much a batch may hold. */
struct ledger_bound {
	uint32_t max;                                /* messages */
	uint64_t max_bytes;                          /* 0: any number */
	uint64_t (*size)(void *arg, uint64_t where); /* bytes of a message */
	void *arg;
};

/* Picks the messages of the next batch (MOVE-6). The caller frees *msgs with mem_free. *n is 0 if no
 * message can move now. Returns SLU_EBUSY while a purge is being freed. */

int ledger_pick(struct ledger *l, uint32_t queue, const struct ledger_bound *bound,
		uint32_t **msgs, uint32_t *n);

/* TAKE: sets a batch aside. The queue must not have one. Writes its number, the next of the counter,
 * into say. */
int ledger_take(struct ledger *l, uint32_t queue, struct change_move *say, slu_time now,
		struct change *out);

/* DROP or UNTAKE, by `kind`. CHANGE_NONE if the queue has no batch with the number of say. */
int ledger_end_batch(struct ledger *l, enum change_kind kind, uint32_t queue,
		     const struct change_move *say, slu_time now, struct change *out);

/* GIVEN: notes that a batch has arrived (MOVE-8). counter: of the shard that gave it (MOVE-9). */
int ledger_given(struct ledger *l, uint32_t queue, const struct change_move *say,
		 uint64_t counter, slu_time now, struct change *out);

/* REFUSE: this batch is never accepted. CHANGE_NONE if it, or a later one, has arrived. */
int ledger_refuse(struct ledger *l, uint32_t queue, const struct change_move *say, slu_time now,
		  struct change *out);

/* Whether this batch, or a later one of the same shard, has arrived or was refused. */
enum ledger_batch_is {
	LEDGER_BATCH_NEW,
	LEDGER_BATCH_GIVEN,
	LEDGER_BATCH_REFUSED
};

enum ledger_batch_is ledger_batch_is(const struct ledger *l, uint32_t queue,
				     const struct change_move *say);

/* Returns the id of item i of the batch, and fills *msg with its message, or SLAB_NONE. */
uint64_t ledger_batch_at(const struct ledger *l, uint32_t queue, uint32_t i, uint32_t *msg);

/* A message of another shard as it was there. */
struct ledger_gift {
	struct ledger_offer offer; /* its due and ttl have no meaning */
	slu_time due;
	slu_time expires; /* 0: never */
	enum msg_state state;
	uint8_t flags; /* enum msg_flags */
	enum dead_reason reason;
	uint16_t attempts, failures;
};

/* Accepts a message of a batch. Returns SLU_EEXISTS if this shard has the message, otherwise as
 * ledger_accept. */
int ledger_give(struct ledger *l, uint32_t queue, const struct ledger_gift *gift,
		slu_time now, struct change *out);

/* Returns whether another shard accepts the message: ledger_accept would return SLU_EMOVED. */
bool ledger_offer_is_elsewhere(const struct ledger *l, uint32_t queue, const struct ledger_offer *offer,
			       slu_time now);

/* The id of the message with this idempotency key, or 0 if the key is unknown. */
uint64_t ledger_idem_id(const struct ledger *l, uint32_t queue, struct slice key, slu_time now);

/* Returns whether the idempotency key of a message that is gone is remembered. Fills idem, remember
 * and digest of *out. */
bool ledger_remembers(const struct ledger *l, uint32_t queue, struct slice key, uint64_t id,
		      slu_time now, struct change *out);

/* The number of these keys. */
uint32_t ledger_remembered(const struct ledger *l, uint32_t queue);

/* The idempotency key of a message that is gone. */
struct ledger_idem_key {
	struct slice text;
	uint64_t id;     /* of the message */
	uint64_t digest; /* of its payload, which a strict queue compares; 0: unknown */
	slu_time until;
};

/* REMEMBER: remembers the key. CHANGE_NONE if it is known, or `until` is past. */
int ledger_remember_key(struct ledger *l, uint32_t queue, const struct ledger_idem_key *key, slu_time now,
			struct change *out);

/* The number of results of a queue. */
uint32_t ledger_results(const struct ledger *l, uint32_t queue);

/* Fills ids, unless it is NULL, with up to max results and returns their number. Scans all results
 * of the shard. */
uint32_t ledger_results_of(const struct ledger *l, uint32_t queue, uint64_t *ids, uint32_t max);

/* RESULT: keeps a result of a message that is gone. CHANGE_NONE if it is known, or `until` is
 * past. */
int ledger_keep_result(struct ledger *l, uint32_t queue, uint64_t id, slu_time until,
		       slu_time now, struct change *out);

/* Fills msgs with up to max leased messages of the queue and returns their number. */
uint32_t ledger_leased(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max);

/* The number of leased messages and of messages that share an ordering key with one. */
uint64_t ledger_bound_by_lease(const struct ledger *l, uint32_t queue);

/* For a log: the new places of these records. */
void ledger_relocate_mark(struct ledger *l, uint32_t queue, uint64_t where);
void ledger_relocate_batch(struct ledger *l, uint32_t queue, uint64_t where);

/* Place of the record of the last batch of that shard, or 0. */
uint64_t ledger_given_where(const struct ledger *l, uint32_t queue, struct slice peer);
void ledger_relocate_given(struct ledger *l, uint32_t queue, struct slice peer, uint64_t where);

/* The share of a message; n 0: none. Valid while the message exists. */
struct slice ledger_share_of(const struct ledger *l, uint32_t msg);

/* The kind of a message, without its mark; n 0: none. */
struct slice ledger_kind_name(const struct ledger *l, uint32_t msg);

/* The value of the attribute that its queue limits; n 0: none. Valid while the message exists. */
struct slice ledger_value_of(const struct ledger *l, uint32_t msg);

/* ---- Limits ---- */

/* Limits of queues whose policy does not set them. Setting them is not a change: the caller sets
 * them again after a restart. They apply to new messages only. */
struct ledger_limits {
	uint32_t max_depth;      /* 0: no limit */
	struct bucket_rule rate; /* of messages into a queue; rate 0: no limit */
	uint32_t shares;         /* of all queues together; 0: no limit */
	slu_time hold;           /* a hold lasts at most so long; 0: LEDGER_HOLD_MAX */
	uint32_t trends;         /* queues with a trend; 0: none, and none of the shard */
	slu_time idle;           /* a queue without messages, remembered keys, results and
				  * policy is forgotten after this time without use; 0: never */
};

void ledger_set_limits(struct ledger *l, const struct ledger_limits *limits);

/* Returns whether any queue has a rate. Saves a look at each. */
bool ledger_has_rates(const struct ledger *l);

/* The rate in force for a queue. A queue that lives on another shard has no rate here. */
struct bucket_rule ledger_rate(const struct ledger *l, uint32_t queue);

/* How long n messages must wait before the queue may accept them; 0: not at all. */
slu_time ledger_rate_wait(const struct ledger *l, uint32_t queue, uint32_t n, slu_time now);

/* Counts n accepted messages. */
void ledger_rate_take(struct ledger *l, uint32_t queue, uint32_t n, slu_time now);

/* ---- Results ---- */

struct ledger_result {
	uint32_t queue;
	uint64_t where; /* place of the result; 0: the ack had none */
	slu_time until; /* the ledger keeps it until then */
};

/* Finds the result of a message that is gone. Returns SLU_ENOTFOUND if the namespace has none. */
int ledger_result(const struct ledger *l, uint32_t space, uint64_t id,
		  struct ledger_result *out);

/* For a log: the result by id alone, and its new place. */
bool ledger_result_any(const struct ledger *l, uint64_t id, struct ledger_result *out);
void ledger_relocate_result(struct ledger *l, uint64_t id, uint64_t where);

/* ---- Holders of leases: core/queue/holders.h has the rules. ---- */

/* Fills *out with the handle of a name. Close it when the changes with it are applied. Returns
 * SLU_ENOMEM if memory is out. */
int ledger_holder_open(struct ledger *l, struct slice name, uint32_t *out);
void ledger_holder_close(struct ledger *l, uint32_t holder);

struct slice ledger_holder_text(const struct ledger *l, uint32_t holder);
struct shared_text *ledger_holder_share(const struct ledger *l, uint32_t holder);

/* ---- Trend: core/queue/trend.h. Not a change; lost at a restart. ---- */

/* Fills rows with the last n steps of a queue, or of the whole shard (SLAB_NONE), that have ended at `now`; *end: when
 * the last one ended. Returns false if the queue has not moved for an hour, or has no trend of that scale. */
bool ledger_trend(struct ledger *l, uint32_t queue, slu_time now, enum trend_scale scale,
		  struct trend_row *rows, uint32_t n, slu_time *end);

/* ---- Numbers ---- */

struct ledger_size {
	uint32_t messages;
	uint32_t queues;
	uint32_t keys;       /* ordering keys */
	uint32_t idem;       /* idempotency keys */
	uint32_t remembered; /* of these, keys whose message is gone */
	uint32_t results;
	struct ledger_totals forgotten; /* of forgotten queues, since the ledger was opened */
};

void ledger_size(const struct ledger *l, struct ledger_size *out);

/* A namespace. Its messages count in every state, purged ones until their memory is freed. */
struct ledger_space {
	const char *name;
	uint64_t messages;
	uint64_t bytes; /* of the messages, by ledger_conf.size */
	uint32_t queues;
};

void ledger_space_get(const struct ledger *l, uint32_t space, struct ledger_space *out);

/* The next namespace in which one of these numbers changed since the last call returned it;
 * SLAB_NONE: no more. */
uint32_t ledger_space_changed(struct ledger *l);

/* ---- Memory ---- */

/* Adds the memory of the ledger to out. */
void ledger_footprint(const struct ledger *l, struct footprint *out);

/* The bytes that accepting this message allocates. queue SLAB_NONE: a new queue. */
size_t ledger_growth(const struct ledger *l, uint32_t queue, const struct ledger_offer *offer);

/* A number that changes by about the bytes of added and removed items: cheaper than the
 * footprint. */
uint64_t ledger_mass(const struct ledger *l);

/* Frees unused memory, in steps. Not between deciding and applying. Returns true if there is more
 * to do. */
bool ledger_trim(struct ledger *l);

#include "core/ledger/ledger_intake.h" /* a part of this header */

#endif
