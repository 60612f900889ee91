/*
 * ledger.h - every message of a shard and where it stands.
 *
 *                       accept
 *          due later |          | due now
 *                    v          v                  a key's line: only its head
 *      +---------+  tick   +---------+   turn   +--------+   is in the queue
 *      | delayed | ------> |  ready  | <------- |  held  |
 *      +---------+         +---------+          +--------+
 *           ^               |       ^
 *           | retry   claim |       | return, retry, lease ran out
 *           |               v       |
 *           |              +---------+  ack
 *           +------------- | leased  | ------> gone; its idempotency key and result
 *                          +---------+         are kept for a while
 *      ttl ended, rejected,     |              its bytes cannot be read: damaged, out
 *                               |              of all lines, until it is deleted
 *      failures used up         v         redrive: accepted anew
 *                          +---------+
 *                          |  dead   | ------> gone, by delete or retention
 *                          +---------+
 *
 * Two steps make every change. A deciding function checks an operation and fills in
 * a struct change (core/change.h), or returns a code and has changed nothing.
 * ledger_apply carries the change out. The memory engine does one after the other;
 * the log engine also writes the change down, and at start reads them back through
 * ledger_replay. The same changes in the same order give the same ledger.
 *
 *         rc = ledger_ack(l, &ref, now, &c);
 *         if (rc)
 *                 return rc;
 *         c.where = log_append(log, &c, ...);
 *         rc = ledger_apply(l, &c);      cannot fail: deciding reserved the memory
 *
 * Apply what was decided before deciding anything else: a change is right for the
 * ledger it was decided on.
 *
 * Rules (tests cite them; DESIGN section 2 has the reasons):
 *  L1  A message is in exactly one of the six states, counted once in its queue.
 *  L2  Ready messages go by (priority, due, number). An unkeyed retry takes its new
 *      due time, and keeps its number.
 *  L3  The line of a key is ordered by (first due, number), whatever the priorities.
 *      A message joins it when its time has come. The head is in the queue, with its
 *      own priority; the others are held. One that was handed out stays the head
 *      until it is gone or dead, also while it waits for a retry. A redriven message
 *      gets a new number and joins at the end.
 *  L4  Delayed messages fall due in the order (due, number), and while a queue has
 *      some that are due but not yet moved, a new keyed one waits among them. So a
 *      tick that stops half-way brings no line out of order, and falling due needs
 *      no record: when is not observable, only in which order.
 *  L5  Numbers and tokens come from one counter; both rise and never repeat.
 *  L6  A lease ends at its deadline: from then on its token is refused, ticked or
 *      not. The moment counts that is passed as now.
 *  L7  attempts counts deliveries, failures counts failing nacks and leases that ran
 *      out. At max_attempts failures the message dies. A return moves neither, nor does a
 *      spare: that is a return once, until the message is settled or extended.
 *  L8  A ttl never ends a lease; a message whose ttl or failures are used up is not
 *      handed out but dies.
 *  L9  What deciding promised, applying has memory for.
 *  L10 Look-ups by id are scoped to a namespace: elsewhere it is SLU_ENOTFOUND.
 *  L11 A change that was refused has changed nothing but, perhaps, memory reserved.
 *  L12 A place (`where`) that the ledger was given and does not name any more is told
 *      to conf.drop, once: of a message that is gone, of an error or result that has
 *      been replaced, moved, or is over.
 *
 *  L13 A message that a stream has failed is not handed to that stream for SHUN_TIME.
 *
 * Handles name namespaces, queues and messages as long as they exist; they are not
 * the same after a restart. `where` is 48 bits of the engine's own: where the record
 * of a message is. Times are shard time in nanoseconds, 0 or more.
 *
 * Pure: no clock, I/O, lock or log; the caller passes now and dice. Owned by the
 * shard's thread.
 */
#ifndef CORE_LEDGER_H
#define CORE_LEDGER_H

#include "base/bytes.h"
#include "base/footprint.h"
#include "base/hash.h"
#include "base/slab.h"
#include "core/bucket.h"
#include "core/change.h"
#include "core/names.h"
#include "core/owners.h"

/* A lease that is found when a shard is opened lasts at least so long: meanwhile its
 * holder could not reach us. */
#define LEDGER_GRACE (5 * SLU_SEC)

/* A stream that ends so soon after it was handed a message has not read it, perhaps. */
#define LEDGER_SPARE_TIME SLU_SEC

#define LEDGER_WHERE_MAX ((1ull << 48) - 1)

enum {
	LEDGER_SHARD = 64 /* bytes of a shard's name, with the end */
};

enum msg_state {
	MSG_NONE, /* no message: free memory */
	MSG_READY,
	MSG_DELAYED, /* also a retry that waits */
	MSG_LEASED,
	MSG_HELD, /* behind the head of its key */
	MSG_DEAD,
	MSG_DAMAGED, /* set aside: never handed out, gone only by delete */
	MSG_STATES
};

enum msg_flags {
	MSG_HOLDS = 1,    /* was handed out: stays the head of its key */
	MSG_EXTENDED = 2, /* its lease was extended: shown as `processing` */
	MSG_SPARED = 16   /* it was spared (ledger_spare): not again before it is settled */
};

/* The flags that a record, a view and a move have; the others are the ledger's own. */
#define MSG_FLAGS (MSG_HOLDS | MSG_EXTENDED | MSG_SPARED)

struct ledger;

struct ledger_conf {
	struct hash_key secret; /* keys are known by hashes under it. If hashes are
				 * written down, so must this be */
	uint32_t max_idem;      /* remembered idempotency keys; 0: no limit */
	uint32_t max_queues;    /* 0: no limit */

	void (*drop)(void *arg, uint64_t where); /* L12; may be NULL */

	/* How many bytes a message takes whose record is there; may be NULL: none. Always the
	 * same for one message, wherever its record is. */
	uint64_t (*size)(void *arg, uint64_t where);
	void *drop_arg; /* of both */

	/* A message is no more, for whatever reason; may be NULL. */
	void (*forgot)(void *arg, uint64_t id);
	void *forgot_arg;
};

/* SLU_ENOMEM. */
int ledger_new(struct ledger **out, const struct ledger_conf *conf);
void ledger_free(struct ledger *l);

/* ---- Queues. Names are folded by the caller (core/names.h). ---- */

/* The queue of that name, made if there is none. SLU_ENOMEM; SLU_EBUSY at
 * max_queues. That a queue exists is not a change: records name queues. */
int ledger_queue_open(struct ledger *l, struct slice space, struct slice name,
		      uint32_t *out);

/* The same; what is made is shown as it is spelled in `as`. */
int ledger_queue_open_as(struct ledger *l, struct slice space, struct slice name,
			 const struct spelling *as, uint32_t *out);

/* Show a queue and its namespace so, unless they have a spelling: for records that say
 * it. SLU_ENOMEM. */
int ledger_queue_spell(struct ledger *l, uint32_t queue, const struct spelling *as);

/* Is the queue, or its namespace, shown otherwise than it is named? */
bool ledger_queue_is_spelled(const struct ledger *l, uint32_t queue);

/*
 * A queue that is not there any more, with its policy, spelling, remembered idempotency keys
 * and results; a record that names it later makes it anew. Its handle may name another queue
 * from then on.
 *   SLU_ENOTEMPTY  it has messages, in whatever state
 *   SLU_EBUSY      a purge of it is still being freed
 *   SLU_ECONFLICT  it has been moved, or is: it has a mark, a batch or the number of one
 */
int ledger_queue_forget(struct ledger *l, uint32_t queue, slu_time now, struct change *out);

/* The next change that empties a queue, leased messages and dead letters too; idempotency
 * keys are not remembered. CHANGE_NONE: there is nothing left to do but perhaps to wait for a
 * purge. SLU_ECONFLICT as above; SLU_ENOMEM. */
int ledger_queue_clear(struct ledger *l, uint32_t queue, slu_time now, struct change *out);

/* The queue was used at that moment: it is not idle. See limits.idle. */
void ledger_queue_use(struct ledger *l, uint32_t queue, slu_time now);

/* SLAB_NONE when there is none. */
uint32_t ledger_queue_find(struct ledger *l, struct slice space, struct slice name);
uint32_t ledger_space_find(struct ledger *l, struct slice space);

/* The namespace of a queue. */
uint32_t ledger_queue_space(const struct ledger *l, uint32_t queue);

/* All queues, in the order of their handles: SLAB_NONE starts, and ends. */
uint32_t ledger_queue_next(const struct ledger *l, uint32_t queue);

/* What has happened in a queue since the ledger was opened. */
struct ledger_totals {
	uint64_t accepted;
	uint64_t delivered;
	uint64_t done;   /* acked or deleted */
	uint64_t failed; /* failing nacks, and leases that ran out */
	uint64_t died;   /* became dead letters */
};

struct ledger_queue_view {
	uint32_t space;
	const char *space_name; /* as given; live as long as the queue */
	const char *name;
	const char *space_shown; /* as first spelled */
	const char *shown;
	const struct policy *policy;
	uint32_t count[MSG_STATES]; /* messages by state */
	uint32_t depth;             /* of those, what max_depth and warn_depth count */
	struct ledger_totals totals;
	bool purging; /* memory of purged messages is still being freed */
};

void ledger_queue_get(const struct ledger *l, uint32_t queue, struct ledger_queue_view *out);

/* max_attempts of its policy. */
uint16_t ledger_attempts(const struct ledger *l, uint32_t queue);

/* Does the queue compare payloads under one idempotency key? */
bool ledger_is_strict(const struct ledger *l, uint32_t queue);

/* Since when the oldest ready message could be had, or SLU_NEVER. Looks at no more than
 * the first LEDGER_OLDEST_LOOK of the heap, the next to be handed out among them: exact
 * for a queue with so few, and for one whose messages have one priority. */
#define LEDGER_OLDEST_LOOK 64
slu_time ledger_oldest(const struct ledger *l, uint32_t queue);

/* ---- Hashes, for changes that are read back from text. ---- */

uint64_t ledger_key_hash(const struct ledger *l, uint32_t queue, struct slice key);
struct idem_mark ledger_idem_mark(const struct ledger *l, uint32_t queue, struct slice key);

/* ---- Deciding: 0 and a change, or a code and nothing has happened. All may return
 * SLU_ENOMEM. ---- */

struct ledger_offer {
	uint64_t id;       /* new, from the id generator */
	struct slice key;  /* n 0: none */
	struct slice idem; /* n 0: none */
	uint64_t digest;   /* of the payload; needed with an idem if ledger_is_strict */
	int32_t prio;
	slu_time due;          /* a moment; one that has passed means now */
	slu_time ttl;          /* 0: the queue's */
	uint16_t max_attempts; /* 0: the queue's */
	slu_time keep_result;  /* how long after the ack; 0: not kept. To the second */
	uint64_t where;
};

/*
 *   SLU_EEXISTS  the idempotency key is known: out->id is the first message's id
 *   SLU_EIDEM    the same, the queue is strict, and the digest is another one
 *   SLU_EQFULL   the queue is at its max_depth
 *   SLU_EBUSY    too many idempotency keys
 *   SLU_ECONFLICT  the ordering key is set aside: V7 of engine/move.h
 */
int ledger_accept(struct ledger *l, uint32_t queue, const struct ledger_offer *offer,
		  slu_time now, struct change *out);

/* Take back an ACCEPT (or what was given) that was applied just now, the latest first, and that is not
 * going to be written down: for calls that are accepted whole or not at all. */
void ledger_undo(struct ledger *l, const struct change *accepted);

/* The best ready message of the queue, for lease or (0) the queue's own lease time.
 * One change a call. CHANGE_NONE: nothing is ready, or the queue is paused. Besides
 * CLAIM it may be a DIE, of a message that must not be handed out any more: apply
 * it and ask again. */
int ledger_claim(struct ledger *l, uint32_t queue, slu_time lease, slu_time now,
		 struct change *out);

/* The same for a consumer of which more is known. */
struct ledger_taker {
	slu_time lease; /* 0: the queue's */
	uint32_t flow;  /* of a stream, or 0 */
};

/* What a claim left to others: L13. */
struct ledger_passed {
	uint32_t n;     /* ready messages that were passed over */
	slu_time until; /* when the first of them may be had */
};

int ledger_claim_for(struct ledger *l, uint32_t queue, const struct ledger_taker *taker,
		     slu_time now, struct change *out, struct ledger_passed *passed);

/* Which message, and by whose right. */
struct ledger_ref {
	uint32_t space;
	uint32_t queue; /* SLAB_NONE: whichever of the namespace */
	uint64_t id;
	uint64_t token; /* 0: whoever holds the lease now */
	bool apart;     /* redrive: another shard may have messages of its key */
};

/*
 * What a holder may do.
 *   SLU_ENOTFOUND  no such message, or not in this namespace and queue
 *   SLU_ELEASE     not leased, or under another token, or the lease has ended; or no
 *                  token where the queue requires one
 *
 * ack: for a message with keep_result, put the place of its result into out->where.
 * extend: until now + lease, or (0) the queue's lease time. return: for what could
 * not be handed over; aside: for what could not be read.
 */
int ledger_ack(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	       struct change *out);
int ledger_extend(struct ledger *l, const struct ledger_ref *ref, slu_time lease,
		  slu_time now, struct change *out);
int ledger_return(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		  struct change *out);
int ledger_aside(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		 struct change *out);

/* A return of what was handed over to a stream that has ended. CHANGE_NONE, the lease stays: if
 * it is older than LEDGER_SPARE_TIME, was extended, or the message was spared before and has not
 * been settled since. */
int ledger_spare(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		 struct change *out);

#define LEDGER_BY_POLICY ((slu_time)-1)

struct ledger_nack {
	bool defer;      /* no failure: just not now */
	bool dead;       /* for good: to the dead letters, as rejected */
	slu_time delay;  /* or LEDGER_BY_POLICY; of a defer that is 0 */
	uint64_t random; /* for jitter */
};

/* Put the place of an error text into out->where, or leave it 0. */
int ledger_nack(struct ledger *l, const struct ledger_ref *ref,
		const struct ledger_nack *nack, slu_time now, struct change *out);

/* What an operator may do; ref->token is not looked at. redrive: SLU_ENOTFOUND when
 * it is no dead letter; failures start again from 0, attempts go on, the ttl is no
 * more; SLU_ECONFLICT: V5 of engine/move.h. delete: SLU_ELEASE when it is leased. purge:
 * SLU_EBUSY while the purge before is still being freed, SLU_ECONFLICT while something is
 * set aside. */
int ledger_redrive(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		   struct change *out);
int ledger_delete(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		  struct change *out);
int ledger_purge(struct ledger *l, uint32_t queue, slu_time now, struct change *out);

/* SLU_EINVAL, see policy_check; policy must live until the change is applied. */
int ledger_set_policy(struct ledger *l, uint32_t queue, const struct policy *policy,
		      slu_time now, struct change *out);

/* After the last replay: leases found get LEDGER_GRACE. To be written down. */
void ledger_opened(struct ledger *l, slu_time now, struct change *out);

/* ---- Applying ---- */

/* Right after deciding: 0. */
int ledger_apply(struct ledger *l, const struct change *c);

/* What was written down, in order, on a new ledger. SLU_ENOMEM; SLU_EINVAL for what
 * no ledger decided. Not bounded in time as ledger_apply is. */
int ledger_replay(struct ledger *l, const struct change *c);

/* ---- Time ---- */

/*
 * Do what has fallen due by now, in steps: leases and ttls that ended, delays,
 * retention, freeing. True: a change to be written down and applied, then call
 * again. False: nothing is left, or *budget, which goes down with every step, is 0.
 *
 *         while (ledger_tick(l, now, &budget, &c))
 *                 write_and_apply(&c);
 */
bool ledger_tick(struct ledger *l, slu_time now, uint32_t *budget, struct change *out);

/* When ledger_tick has something to do, or SLU_NEVER. */
slu_time ledger_next_due(struct ledger *l);

/* ---- Waking ---- */

/* A queue in which a message has become ready, or whose policy has changed, since
 * this was last asked of it; SLAB_NONE: no other. Whoever found nothing to claim may
 * find something there, and nowhere else. */
uint32_t ledger_woken(struct ledger *l);

/* A queue that has come to hold more than its warn_depth (*deep), or so much less that
 * it is four fifths of it or below, since this last said the other; SLAB_NONE: no other.
 * The gap between the two keeps a queue that hovers from being told of each time. */
uint32_t ledger_deep(struct ledger *l, bool *deep);

/* ---- The counter of numbers and tokens ---- */

/* The last one given. The log engine keeps a ceiling above it on disk. */
uint64_t ledger_counter(const struct ledger *l);

/* The highest id of a message so far, or 0: where an id generator goes on. */
uint64_t ledger_highest_id(const struct ledger *l);

/* At least this; never goes back. */
void ledger_set_counter(struct ledger *l, uint64_t counter);

/* ---- Looking ---- */

struct ledger_view {
	uint64_t id;
	uint32_t queue;
	enum msg_state state;
	uint8_t flags; /* enum msg_flags */
	enum dead_reason reason;
	int32_t prio;
	slu_time due; /* DEAD: since when it is */
	uint64_t number;
	slu_time expires; /* or SLU_NEVER */
	uint16_t attempts;
	uint16_t failures;
	uint16_t max_attempts; /* in force: its own or the queue's */
	slu_time keep_result;
	uint64_t token;   /* LEASED, as the next two; else 0 */
	slu_time until;   /* end of the lease */
	slu_time claimed; /* begin of the lease */
	uint32_t owner;   /* of the lease: ledger_owner_text */
	uint64_t key;     /* hash, or 0 */
	uint64_t where;
	uint64_t error; /* place of the last error text, or 0 */
	bool taken;     /* it is set aside */
};

/* The message, or SLAB_NONE. */
uint32_t ledger_find(const struct ledger *l, uint32_t space, uint64_t id);
void ledger_get(const struct ledger *l, uint32_t msg, struct ledger_view *out);

/* Up to max ready messages in the order they would be handed out. Returns how many.
 * max is at most LEDGER_PEEK_MAX. */
#define LEDGER_PEEK_MAX 1000
int ledger_peek(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max,
		uint32_t *n);

/* Dead letters, oldest first; SLAB_NONE starts, and ends. */
uint32_t ledger_dead_next(const struct ledger *l, uint32_t queue, uint32_t msg);

/* All messages in no order: looks at up to max entries from *cursor (0 at first) on
 * and fills msgs with those that are there; returns how many. *cursor is
 * LEDGER_SCAN_END after the last. */
#define LEDGER_SCAN_END UINT32_MAX
uint32_t ledger_scan(const struct ledger *l, uint32_t *cursor, uint32_t *msgs, uint32_t max);

/* Which messages to browse. */
struct ledger_browse {
	uint32_t space;       /* SLAB_NONE: of any namespace */
	uint32_t queue;       /* SLAB_NONE: of any queue */
	enum msg_state state; /* MSG_NONE: in any state */
};

/*
 * Up to max messages from *cursor (0 at first) on; returns how many. *cursor is where the
 * next page begins, LEDGER_SCAN_END after the last; a page that begins behind one message
 * has the cursor (its handle + 1). A message that is there, and in the state, during the
 * whole walk is seen once. A page before the last may be short, but is not empty. It costs
 * no more than the queue has in that state, nor than a scan of the shard would.
 */
uint32_t ledger_browse(const struct ledger *l, const struct ledger_browse *what,
		       uint32_t *cursor, uint32_t *msgs, uint32_t max);

/* ---- What a log that moves records forward needs ---- */

/* Where the record of a message is now. Not a change: the record says it itself. */
void ledger_move(struct ledger *l, uint32_t msg, uint64_t where);
void ledger_move_error(struct ledger *l, uint32_t msg, uint64_t where);

/* By id alone: for the engine, which has no namespace in mind. SLAB_NONE. */
uint32_t ledger_find_any(const struct ledger *l, uint64_t id);

/* The message whole, as a RESTORE at the moment now. */
void ledger_describe(const struct ledger *l, uint32_t msg, slu_time now, struct change *out);

/* A remembered idempotency key whose message is gone, as a REMEMBER. False when it is
 * not remembered, or its message still exists. */
bool ledger_describe_idem(const struct ledger *l, struct idem_mark idem, slu_time now,
			  struct change *out);

/*
 * ---- Moves: engine/move.h has the rules, V1 to V10. ----
 *
 * A batch that is set aside is a list of messages (or of results, or of remembered keys)
 * that nobody but a DROP or UNTAKE of its number touches: ledger_find finds its messages,
 * what settles them does not.
 */

/* Does any queue live elsewhere? Saves asking for each. */
bool ledger_has_moved(const struct ledger *l);

struct ledger_moving {
	uint64_t epoch;
	const char *lives; /* empty: here */
	uint64_t mark;     /* place of the mark */
	uint64_t batch;    /* number of what is set aside, or 0 */
	const char *whom;  /* and for which shard; empty: nobody knows */
	enum batch_kind what;
	uint32_t n;
	uint64_t where; /* what names it */
};

void ledger_moving(const struct ledger *l, uint32_t queue, struct ledger_moving *out);

/* V1: NONE when the mark counts; or when there is none, and the queue is said to live here: unless
 * that is to be written all the same. say->shard must live until the change is applied, as what
 * is said in `say` by the others. */
int ledger_mark(struct ledger *l, uint32_t queue, const struct change_move *say, bool written,
		slu_time now, struct change *out);

/* Which messages go next (V6), up to max or max_bytes by what size says: *msgs is for
 * mem_free. n 0: there are none that can. SLU_EBUSY: a purge is being freed. */
struct ledger_bound {
	uint32_t max;
	uint64_t max_bytes; /* 0: any */
	uint64_t (*size)(void *arg, uint64_t where);
	void *arg;
};

int ledger_pick(struct ledger *l, uint32_t queue, const struct ledger_bound *bound,
		uint32_t **msgs, uint32_t *n);

/* Set aside; there must be no batch. say gets its number, the next of the counter. DROP and
 * UNTAKE of another number than the one that is there: NONE. A batch that has come, or one
 * after it, is not given again (V8); nor one that was refused. */
int ledger_take(struct ledger *l, uint32_t queue, struct change_move *say, slu_time now,
		struct change *out);
int ledger_end_batch(struct ledger *l, enum change_kind kind, uint32_t queue,
		     const struct change_move *say, slu_time now, struct change *out);
int ledger_given(struct ledger *l, uint32_t queue, const struct change_move *say,
		 uint64_t counter, slu_time now, struct change *out);
int ledger_refuse(struct ledger *l, uint32_t queue, const struct change_move *say, slu_time now,
		  struct change *out);
enum ledger_batch_is {
	LEDGER_BATCH_NEW,
	LEDGER_BATCH_GIVEN,
	LEDGER_BATCH_REFUSED
};

enum ledger_batch_is ledger_batch_is(const struct ledger *l, uint32_t queue,
				     const struct change_move *say);

/* The i-th of the batch: its id, and the message, or SLAB_NONE. */
uint64_t ledger_batch_at(const struct ledger *l, uint32_t queue, uint32_t i, uint32_t *msg);

/* A message as it stood on another shard; the rest as in an offer. EEXISTS: it is here. */
struct ledger_gift {
	struct ledger_offer offer; /* due and ttl are not looked at */
	slu_time due;
	slu_time expires; /* 0: never */
	enum msg_state state;
	uint8_t flags;
	enum dead_reason reason;
	uint16_t attempts, failures;
};

int ledger_give(struct ledger *l, uint32_t queue, const struct ledger_gift *gift,
		slu_time now, struct change *out);

/* Does the key have messages here that are not dead? Are they set aside? */
enum ledger_key_is {
	LEDGER_KEY_AWAY,
	LEDGER_KEY_HERE,
	LEDGER_KEY_TAKEN
};

enum ledger_key_is ledger_key_is(const struct ledger *l, uint32_t queue, struct slice key);

/* The id of the message that the idempotency key is known by, or 0. */
uint64_t ledger_idem_id(const struct ledger *l, uint32_t queue, struct slice key, slu_time now);

/* An idempotency key that is remembered, of a message that is gone: until when, or 0. */
slu_time ledger_remembers(const struct ledger *l, uint32_t queue, struct slice key, uint64_t id,
			  slu_time now, struct idem_mark *mark);
uint32_t ledger_remembered(const struct ledger *l, uint32_t queue); /* how many */

/* Such a key, as a REMEMBER; NONE when it is known, or its time is over. */
int ledger_remember_key(struct ledger *l, uint32_t queue, struct slice key, uint64_t id,
			slu_time until, slu_time now, struct change *out);

/* How many results of the queue there are; and up to max of them, their ids unless NULL, which
 * looks at all of the shard. */
uint32_t ledger_results(const struct ledger *l, uint32_t queue);
uint32_t ledger_results_of(const struct ledger *l, uint32_t queue, uint64_t *ids, uint32_t max);

/* A result whose message is gone, as a RESULT; NONE when there is one, or its time is over. */
int ledger_keep_result(struct ledger *l, uint32_t queue, uint64_t id, slu_time until,
		       slu_time now, struct change *out);

/* Leased ones of the queue, up to max of them; and how many there are with what shares a key
 * with one. */
uint32_t ledger_leased(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max);
uint64_t ledger_bound_by_lease(const struct ledger *l, uint32_t queue);

/* For a log: where what was written down is now; false: nothing names that. */
void ledger_mark_move(struct ledger *l, uint32_t queue, uint64_t where);
void ledger_batch_move(struct ledger *l, uint32_t queue, uint64_t where);
uint64_t ledger_given_where(const struct ledger *l, uint32_t queue, struct slice peer);
void ledger_given_move(struct ledger *l, uint32_t queue, struct slice peer, uint64_t where);

/* ---- Limits ---- */

/* For queues whose policy names none; 0: none. Not a change: whoever sets them says
 * them again after a restart. They bind what comes, never what is there. */
struct ledger_limits {
	uint32_t max_depth;
	struct bucket_rule rate; /* of messages into a queue; rate 0: none */
	slu_time idle;           /* a queue without messages, remembered keys, results and
				  * policy is forgotten after so long without use */
};

void ledger_set_limits(struct ledger *l, const struct ledger_limits *limits);

/* Is there any rate to be kept? Saves asking for each queue. */
bool ledger_has_rates(const struct ledger *l);

/* In force for a queue. */
struct bucket_rule ledger_rate(const struct ledger *l, uint32_t queue);

/* How long n messages have to wait until the queue may take them, 0: not at all; and
 * that they are taken. */
slu_time ledger_rate_wait(const struct ledger *l, uint32_t queue, uint32_t n, slu_time now);
void ledger_rate_take(struct ledger *l, uint32_t queue, uint32_t n, slu_time now);

/* ---- Results ---- */

struct ledger_result {
	uint32_t queue;
	uint64_t where; /* 0: the ack brought none */
	slu_time until;
};

/* The result of a message that is gone. SLU_ENOTFOUND, also from another namespace. */
int ledger_result(const struct ledger *l, uint32_t space, uint64_t id,
		  struct ledger_result *out);

/* The same by id alone, and its new place. */
bool ledger_result_any(const struct ledger *l, uint64_t id, struct ledger_result *out);
void ledger_result_move(struct ledger *l, uint64_t id, uint64_t where);

/* ---- Owners of leases: core/owners.h has the rules. ---- */

/* The handle of a name, to be closed when the changes that name it are applied. SLU_ENOMEM. */
int ledger_owner_open(struct ledger *l, struct slice name, uint32_t *out);
void ledger_owner_close(struct ledger *l, uint32_t owner);

struct slice ledger_owner_text(const struct ledger *l, uint32_t owner);
struct shared_text *ledger_owner_share(const struct ledger *l, uint32_t owner);

/* ---- Numbers ---- */

struct ledger_size {
	uint32_t messages;
	uint32_t queues;
	uint32_t keys;
	uint32_t idem;
	uint32_t remembered; /* of those: the message is gone */
	uint32_t results;
	struct ledger_totals forgotten; /* of queues that are no more, since it was opened */
};

void ledger_size(const struct ledger *l, struct ledger_size *out);

/* What a namespace has in this ledger. Messages are counted in whatever state; those of a purge
 * until their memory is freed. */
struct ledger_space {
	const char *name;
	uint64_t messages;
	uint64_t bytes; /* of their records: ledger_conf.size */
	uint32_t queues;
};

void ledger_space_get(const struct ledger *l, uint32_t space, struct ledger_space *out);

/* The next namespace for which one of these numbers has changed since the last call that named
 * it; SLAB_NONE: there is no more. */
uint32_t ledger_space_changed(struct ledger *l);

/* ---- Memory ---- */

/* Add the memory of the ledger. */
void ledger_footprint(const struct ledger *l, struct footprint *out);

/* How many bytes will be allocated to accept one message more; SLAB_NONE: into a new queue. */
size_t ledger_growth(const struct ledger *l, uint32_t queue, const struct ledger_offer *offer);

/* A number that changes by about the bytes of what comes and goes: cheaper than the footprint. */
uint64_t ledger_mass(const struct ledger *l);

/* Give back memory that is not needed any more, not between deciding and applying. True: there
 * is more to do. */
bool ledger_trim(struct ledger *l);

#endif
