/*
 * move.h - how a queue moves from one shard to another while it is in use.
 *
 *      map: heavy (before: primary)
 *
 *      enqueue, ack, get ──> primary ── "not here" ──> heavy
 *      claim             ──> primary ── nothing  ──> heavy, where it waits
 *
 *      mover:  TAKE ──> primary     a batch is set aside there
 *              GIVE ──> heavy       and accepted here, in the same order
 *              DROP ──> primary     and gone there
 *
 * Every queue of a shard has a mark: where it lives ("" here), and since which epoch. An
 * op says the epoch of the map it was routed by, and whether its maker takes this shard
 * for the one the queue lives on (op->lives "") or for a former one (op->lives names the
 * current one).
 *
 *  V1  An op whose epoch is higher than the mark's sets the mark to what it says, durably,
 *      with its own answer; a queue without a mark that is said to live here needs none, but
 *      MARK sets one all the same. If it is lower or the same, the mark counts and not what the op says. So the
 *      highest epoch wins on every node, and a node with an old map cannot split a queue.
 *      Whoever sends a queue elsewhere marks the shard first where it lives: there
 *      can be no two that take it to different shards by the same epoch, and marks
 *      lead from wherever it lived to where it lives.
 *  V2  A queue that lives elsewhere still has what it had, and all that settles, extends, looks
 *      at or hands out works as ever on what is there. An enqueue takes only what must
 *      stay together: a message whose idempotency key is known (`existed`), or
 *      whose ordering key has messages here that are not dead: if its payload is in a file that
 *      another engine keeps, that is SLU_EBUSY with the limit "move". Each put that was dealt
 *      with is `taken`; if one was not, rc is SLU_EMOVED, op->elsewhere says where it
 *      belongs, and those that are taken are done. An enqueue that only asks (op->known) takes
 *      those whose idempotency key is known and no other, wherever the queue lives, and is
 *      charged no rate.
 *  V3  So a key has messages on one shard at a time: its line goes on where it is, until
 *      it is empty or has been moved whole.
 *  V4  An item (ack, nack, ...) that is not here is SLU_ENOTFOUND, as ever. Puts and items
 *      that are `taken` when the op comes are not for this shard: they are left alone.
 *  V5  Whatever else finds nothing here (claim, peek, get, result, a list of keys) has
 *      op->elsewhere set, too: its maker asks there. A lock verb on a key that has neither state
 *      nor lease here is SLU_EMOVED, and says where. So is an acquire of a free key by an older map
 *      than the mark: a former shard may have the key set aside. And so is one with a token, when the
 *      key, or the message, is set aside: whoever holds that got it elsewhere.
 *      A redrive of a keyed dead letter whose key has no messages here, or is set aside,
 *      is SLU_ECONFLICT: it has to be moved first. So it is where the queue lives, as long as
 *      former shards may have some (op->formers).
 *
 * The mover's steps are safe to repeat, whoever dies:
 *
 *  V6  TAKE sets the next batch aside, durably: its messages are not handed out, deleted
 *      or promoted any more, and what settles them finds SLU_ENOTFOUND. They are counted as before. A
 *      shard has one such batch a queue; as long as it is there TAKE answers the same one, and
 *      for whom it was set aside: where the queue lived by its mark then. To that shard it is given
 *      and to no other, wherever the queue may live since. A TAKE that says an epoch is
 *      SLU_EMOVED where the mark is newer.
 *      Ready ones go first, in the order they would be handed out, then delayed ones, dead
 *      ones; and once there is nothing but dead ones, what is remembered of idempotency
 *      keys, then results. (Else who repeats a message of a key that has others here would be
 *      taken at its word: V2.) The messages of
 *      an ordering key that are not dead go together, and only while none of them is leased, however
 *      large the batch gets by that; dead ones with them or after them, for one that is redriven
 *      joins their line. What TAKE answers begins with the row op->cursor of the
 *      batch (0: the first) and has at most max_rows; the answer's cursor is where it goes
 *      on, or 0. Damaged ones stay. Of LOCK_QUEUE it is the lock keys that have a state and no
 *      lease, in their order. A purge is SLU_EBUSY meanwhile, and so is
 *      TAKE while a purge is being freed.
 *  V7  While the key of a message is set aside, an enqueue of that key is SLU_EBUSY with the limit
 *      "move": the broker tries it again. So is an acquire of a lock key.
 *  V8  GIVE accepts a batch once, all rows of it in one op: a shard knows the last one of each queue and giver by its number,
 *      which rises from batch to batch, and given the same or an older one does nothing (rc 0). Ids, times,
 *      priorities, attempts, states stay; numbers are new and rise in the order given, and
 *      what was due there is due here, whatever the clocks say. A
 *      message that is there already (by its id) is left as it is. So is a lock key that is
 *      leased there, or has a state whose version is as high. If one of them is set aside there,
 *      and may be gone soon, GIVE is SLU_EBUSY with the limit "move".
 *      REFUSE asks whether a batch has come; if not, it never will: it is SLU_EMOVED from then on.
 *  V9  GIVE lifts the counter to at least the giver's: so no token that was ever given for a
 *      message is given for it again, and a former holder is refused.
 *      Former shards hand out, too, and tokens of a key rise when its line ends there and goes on here: with
 *      op->elsewhere comes the counter, and the shard that is asked next is told it
 *      (op->above) and lifts its own to that. Whoever asks a former shard no more, because nothing is left
 *      there, lifts it before (move_lift). Never higher than needed: counters of
 *      shards between which queues go to and fro would run away.
 *  V10 DROP forgets the batch of that number, with its idempotency keys, states and errors;
 *      again: nothing. UNTAKE gives up a batch that was never given, and was refused: so it is either
 *      on one shard or on the other, whoever else still carries it.
 *  V11 A queue that lives here and has an epoch above the op's has been elsewhere, of which its
 *      maker does not know: a message with an ordering or idempotency key that is not known here is
 *      SLU_EMOVED, and in all that V4 and V5 name op->elsewhere is MOVE_UNKNOWN. Its maker
 *      asks for the marks of all shards.
 *  V12 A GIVE that says an epoch, and brings a batch that is not known, is SLU_EMOVED where the
 *      queue does not live, or where its mark is newer: so messages go from former shards to
 *      the current one and never back, whoever comes late; and what was asked for on a former
 *      shard and not found is not carried there behind the back of who asks on.
 */
#ifndef ENGINE_MOVE_H
#define ENGINE_MOVE_H

#include <sluice/api.h>

enum {
	MOVE_SHARD = 64,     /* bytes of a shard's name, with the end */
	MOVE_EPOCH_BITS = 16 /* epoch: version of the map << this | steps by hand since */
};

#define MOVE_UNKNOWN "." /* no name of a shard */

enum move_step {
	MOVE_LOOK, /* what is here */
	MOVE_MARK, /* the mark alone, by op->epoch and op->lives */
	MOVE_TAKE, /* rows, up to max_rows and max_bytes, and whole keys; cursor */
	MOVE_UNTAKE,
	MOVE_GIVE, /* puts */
	MOVE_DROP,
	MOVE_REFUSE,
	MOVE_STEPS
};

/*
 * What a row of TAKE, or a put of GIVE, is, and what of it counts beside kind:
 *
 *              row                                  put
 *   MESSAGE    all but record's due and expires     m, with due and expires of the row; stood
 *   STATE      record; payload; state_version,      m (m.number: its etag; m.idem: its name);
 *              due: updated; flags: MOVE_HIDDEN     m.due: updated; stood.version, .flags
 *   REMEMBERED payload, no record                   m.payload: the same bytes
 *   RESULT     id, payload (or none), no record;    m.id, m.payload, m.due
 *              due: until
 */
enum move_kind {
	MOVE_MESSAGE,
	MOVE_REMEMBERED, /* idempotency keys of messages that are gone, any number: of each
			  * until (8 bytes, little-endian as all), id (8), length (2), text */
	MOVE_RESULT,     /* of a message that is gone */
	MOVE_STATE       /* a document: of the message before it in the batch; or of the lock key m.key */
};

enum {
	MOVE_HIDDEN = 1 /* a lock key that OP_KEYS does not show */
};

struct op_move {
	enum move_step step;
	char peer[MOVE_SHARD]; /* GIVE, REFUSE: the giver */
	uint64_t batch;        /* GIVE, DROP, UNTAKE, REFUSE; answer of TAKE and LOOK, 0: none */
	uint64_t counter;      /* GIVE; answer of TAKE */
	bool force;            /* TAKE: leases end first, as by a return; those of lock keys as by a
				* release that commits nothing. No more than max_rows at a time */

	/* Answer of all. */
	uint64_t epoch; /* the mark */
	char lives[MOVE_SHARD];
	char whom[MOVE_SHARD]; /* for which shard the batch was set aside; empty: for none */
	uint64_t messages;     /* that are here, in any state; LOCK_QUEUE: keys with a state or a lease */
	uint64_t leased;       /* of these, and what shares a key with one that is */
	uint64_t damaged;
	uint64_t remembered;
	uint64_t results;
	uint64_t given; /* GIVE: how many of the puts are new; REFUSE: 1, the batch has come */
};

/* V9: is the counter too low to follow one that stands there? Then a batch of nothing, from
 * nobody, lifts it. */
static inline bool
move_lift(struct op_move *m, uint64_t counter, uint64_t former)
{
	if (counter >= former)
		return false;
	m->step = MOVE_GIVE;
	m->counter = m->batch = former;
	m->peer[0] = '='; /* no shard has such a name */
	m->peer[1] = '\0';
	return true;
}

/* How a message stood where it came from: GIVE. */
struct op_stood {
	enum move_kind kind;
	uint8_t state; /* enum msg_state: READY, DELAYED, HELD, DEAD */
	uint8_t flags;
	uint8_t reason;
	uint16_t attempts;
	uint16_t failures;
	const char *error; /* text of its last failure */
	uint32_t error_size;
	uint64_t version; /* STATE: of the key */
};

#endif
