/*
 * move.h - how a queue moves from one shard to another while it is in use. docs/moves.md has
 * pictures.
 *
 *      map: heavy (before: primary)
 *
 *      enqueue, ack, get ──> primary ── "not here" ──> heavy
 *      claim             ──> primary ── nothing  ──> heavy, where it waits
 *
 *      copy:   TAKE ──> primary     sets a batch aside
 *              GIVE ──> heavy       accepts the batch in the same order
 *              DROP ──> primary     forgets the batch
 *
 * Each queue of a shard has a mark: the shard that the queue lives on ("": this one), and the epoch
 * since which it lives there. An op carries the epoch of the map that routed it (op->home.epoch) and
 * the shard that the queue lives on by that map (op->home.lives, "": this one). A shard that the
 * queue lived on before is a former shard.
 *
 *  MOVE-1   An op with a higher epoch than the mark sets the mark to what the op says, durably, with
 *           its own answer. A queue without a mark that lives here gets no mark, except by MARK. An
 *           op with a lower or equal epoch leaves the mark, and the mark decides. So the highest
 *           epoch wins on every node, and a node with an old map cannot split a queue.
 *           To send a queue elsewhere, mark the shard that it lives on first: then no two nodes send
 *           it to different shards by one epoch, and the marks lead from every former shard to the
 *           shard that the queue lives on.
 *  MOVE-2   A queue that lives elsewhere keeps what it has here, and claims, looks, acks, nacks and
 *           extends work on it. An enqueue accepts only what must stay together: a message whose
 *           idempotency key is known (`existed`), or whose ordering key has messages here that are
 *           not dead. If the payload of such a message is in a file of another engine, the enqueue
 *           fails with SLU_EBUSY and the limit "move". A put that is dealt with is `taken`. If a put
 *           is not, rc is SLU_EMOVED, op->home.elsewhere names its shard, and the puts that are
 *           taken are done. An enqueue with op->home.known takes only puts whose idempotency key is
 *           known, wherever the queue lives, and does not count for the rate.
 *  MOVE-3   So a key has messages on one shard at a time. Its sequence continues where it is until it is
 *           empty or has moved whole.
 *  MOVE-4   An item (ack, nack, ...) whose message is not here has SLU_ENOTFOUND. A put or item that
 *           is `taken` when the op arrives is not for this shard, which leaves it alone.
 *  MOVE-5   Any other op that finds nothing here (claim, peek, get, result, a list of keys) sets
 *           op->home.elsewhere: the maker asks that shard next. A lock verb fails with SLU_EMOVED and
 *           names the shard
 *           - if its key has neither a state nor a lease here;
 *           - if it is an acquire of a free key with an older map than the mark: a former shard may
 *             have the key set aside;
 *           - if it has a token, and the key or its message is set aside: the holder has the lease
 *             from another shard.
 *           A redrive of a keyed dead letter fails with SLU_ECONFLICT if its key is set aside or has
 *           no messages here: the dead letter has to move first. Where the queue lives, the same
 *           holds while former shards may have messages (op->home.formers).
 *
 * Each step of a move can be repeated, whichever node dies in between:
 *
 *  MOVE-6   TAKE sets the next batch aside, durably. Its messages are counted as before, but are not
 *           delivered, deleted or promoted any more, and an op that settles one has SLU_ENOTFOUND. A
 *           queue has one batch at a time: TAKE repeats it while it is there, with the shard for
 *           which it was set aside, that is the shard the queue lived on by its mark at that time.
 *           The batch goes to that shard and to no other, wherever the queue lives since. A TAKE with
 *           an epoch fails with SLU_EMOVED if the mark is newer.
 *           Order: ready messages as a claim would take them, delayed ones, dead ones; when only dead
 *           ones are left, remembered idempotency keys, then results. (Earlier, a repeated message
 *           of a key that has others here would be accepted as new: MOVE-2.) The messages of an
 *           ordering key that are not dead go together, however large the batch gets, and only while
 *           none of them is leased; dead ones go with them or later, because a redriven message joins
 *           their sequence. Damaged messages stay. Of LOCK_QUEUE, a batch is lock keys that have a state
 *           and no lease, in their order.
 *           The answer begins with row op->cursor of the batch and has at most max_rows; its cursor
 *           is the next row, or 0. A purge fails with SLU_EBUSY while a batch is set aside, and TAKE
 *           while a purge is being freed.
 *  MOVE-7   While the key of a message is set aside, an enqueue with that key fails with SLU_EBUSY and
 *           the limit "move", and the broker tries it again. The same holds for an acquire of a lock
 *           key.
 *  MOVE-8   GIVE accepts a batch once, all rows in one op. A shard remembers the number of the last
 *           batch for each queue and giver; numbers rise, and a GIVE of that number or a lower one
 *           does nothing (rc 0). Ids, times, priorities, attempts and states stay. Numbers are new
 *           and rise in the order of the batch. A message that was due there is due here, whatever
 *           the clocks say. A message whose id is here already stays as it is, and so does a lock key
 *           that is leased here or has a state of the same or a higher version. If one of these is
 *           set aside here, and may leave soon, GIVE fails with SLU_EBUSY and the limit "move".
 *           REFUSE asks whether a batch has come. If not, it never will: its GIVE fails with
 *           SLU_EMOVED from then on.
 *  MOVE-9   GIVE lifts the counter of tokens to at least the counter of the giver. So no token of a message is
 *           given again for that message, and a former holder is refused.
 *           Former shards deliver, too, and the tokens of a key must rise when its sequence ends there and
 *           continues here: the answer with op->home.elsewhere has the counter, and the next shard
 *           lifts its own to that (op->home.above). Before a node stops asking a former shard because
 *           nothing is left there, it lifts the counter of the other one (move_lift). A counter is
 *           never lifted higher than needed: the counters of shards that exchange queues would run
 *           away.
 *  MOVE-10  DROP forgets the batch of that number with its idempotency keys, states and errors; a
 *           second DROP does nothing. UNTAKE brings back a batch that was refused. So a batch is on
 *           one shard or on the other, whichever node still carries it.
 *  MOVE-11  A queue that lives here by a higher epoch than the op's has been on another shard that the
 *           maker does not know. An enqueue of a message whose ordering or idempotency key is not
 *           known here fails with SLU_EMOVED, and op->home.elsewhere of MOVE-4 and MOVE-5 is
 *           MOVE_UNKNOWN: the maker asks all shards for their marks.
 *  MOVE-12  A GIVE with an epoch, of a batch that is not known, fails with SLU_EMOVED if the queue does
 *           not live here or its mark is newer. So messages go from former shards to the current one
 *           and never back, and an op that has found nothing on a former shard misses nothing that
 *           arrives there later.
 */
#ifndef ENGINE_MOVE_H
#define ENGINE_MOVE_H

#include <sluice/api.h>

enum {
	MOVE_SHARD = 64,     /* bytes of the name of a shard, with the final 0 */
	MOVE_EPOCH_BITS = 16 /* epoch: version of the map << this | moves by hand since */
};

#define MOVE_UNKNOWN "." /* no shard has this name */

enum move_step {
	MOVE_LOOK,   /* answers what is here */
	MOVE_MARK,   /* sets the mark to op->home.epoch and op->home.lives */
	MOVE_TAKE,   /* sets a batch aside: rows up to max_rows and max_bytes, and whole keys */
	MOVE_UNTAKE, /* brings a batch back */
	MOVE_GIVE,   /* accepts a batch: puts */
	MOVE_DROP,   /* forgets a batch */
	MOVE_REFUSE, /* never accepts a batch */
	MOVE_STEPS
};

/*
 * The kinds of rows in a batch, and which fields of the row (TAKE) and of the put (GIVE) count:
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
	MOVE_REMEMBERED, /* idempotency keys of messages that are gone, in the form of move_keys.h */
	MOVE_RESULT,     /* the result of a message that is gone */
	MOVE_STATE       /* a document of the message before it in the batch, or of the lock key m.key */
};

enum {
	MOVE_HIDDEN = 1 /* OP_KEYS does not show the lock key */
};

struct op_move {
	enum move_step step;
	char peer[MOVE_SHARD]; /* GIVE, REFUSE: the name of the giver */
	uint64_t batch;        /* GIVE, DROP, UNTAKE, REFUSE: its number; answer of TAKE and LOOK, 0: no
				* batch */
	uint64_t counter;      /* GIVE: the counter of the giver; answer of all others */
	uint64_t max_bytes;    /* TAKE: the page ends when its records have more bytes than this; 0: no
				* limit */
	bool force;            /* TAKE: ends leases first, at most max_rows: of messages by a return, of
				* lock keys by a release that commits nothing */

	/* Answer of all. */
	uint64_t epoch;            /* of the mark */
	char lives[MOVE_SHARD];    /* of the mark: the shard that the queue lives on; empty: this one */
	char receiver[MOVE_SHARD]; /* the shard for which the batch was set aside; empty: none */
	uint64_t messages;         /* messages here in any state; LOCK_QUEUE: keys with a state or a lease */
	uint64_t leased;           /* of these: leased, or of a key with a leased message */
	uint64_t damaged;          /* of these: damaged */
	uint64_t remembered;       /* idempotency keys */
	uint64_t results;          /* results */
	uint64_t given;            /* GIVE: how many puts are new here; REFUSE: 1 = the batch has come */
};

/* MOVE-9: fills in a GIVE without rows that lifts the counter of a shard to the counter of a former one.
 * Returns false if that is not needed. */
static inline bool
move_lift(struct op_move *m, uint64_t counter, uint64_t former)
{
	if (counter >= former)
		return false;
	m->step = MOVE_GIVE;
	m->counter = m->batch = former;
	m->peer[0] = '='; /* no shard has this name */
	m->peer[1] = '\0';
	return true;
}

/* GIVE: the state of a message on the shard that it comes from. */
struct op_stood {
	enum move_kind kind;
	uint8_t state;       /* enum msg_state: READY, DELAYED, HELD, DEAD */
	uint8_t flags;       /* enum msg_flags; STATE: MOVE_HIDDEN */
	uint8_t reason;      /* enum dead_reason */
	uint16_t attempts;   /* deliveries */
	uint16_t failures;   /* failed deliveries */
	const char *error;   /* text of the last failure */
	uint32_t error_size; /* its bytes */
	uint64_t version;    /* STATE: of the key */
};

#endif
