/*
 * op_verb.h - the verbs of ops, one row each. The broker, the audit and the metrics read the row.
 *
 *      op_verbs[OP_CLAIM]   name     "claim": in metrics, in the audit, in logs
 *                           family   which part of struct op is its own
 *                           waits    for what, if it finds nothing
 *                           follows  how, if its queue moves between shards
 *                           traits   what else holds for it
 *
 * CONTRIBUTING.md lists the files of a new verb. Its question and answer are fields of struct op
 * (engine/op.h).
 */
#ifndef ENGINE_OP_VERB_H
#define ENGINE_OP_VERB_H

#include <stdbool.h>
#include <stdint.h>

/* The fields of struct op say which verbs use them. */
enum op_verb {
	OP_ENQUEUE,    /* accepts messages */
	OP_CLAIM,      /* leases the best messages of a queue; may wait */
	OP_RETURN,     /* ends leases of a claim whose answer was not received: rows */
	OP_ACK,        /* items: ends messages */
	OP_NACK,       /* items: messages have failed, or are deferred */
	OP_FINISH,     /* items: one, acked, nacked or removed, or none; puts; and unlock: all of it happens, or nothing.
			* The op names the queue of the item, or of a put. Puts of other shards go by the outbox
			* (engine/outbox.h). Its outcome is rc. SLU_ETOGETHER: a put cannot go by the outbox */
	OP_SCHEDULE,   /* items: one document (core/reserved.h) is made, replaced or removed, if its number is still the one
			* that the maker has read; puts: what takes its place, then the messages that begin with it. All
			* of it happens, or nothing: SLU_ECONFLICT: another number; SLU_ENOTFOUND: no such message;
			* SLU_ETOGETHER: a put lives on another shard */
	OP_EXTEND,     /* items: leases last longer */
	OP_REDRIVE,    /* items: dead letters start anew */
	OP_DELETE,     /* items: removes messages in any state but leased */
	OP_QUARANTINE, /* items: quarantines messages that a claim granted and that cannot be read;
			* with tokens */
	OP_GET,        /* one message by its id; of a queue of documents: by either id of one */
	OP_WHY,        /* why: the reasons for which one message is not running. rows: the message, then the head
			* of its key if the message is behind it, both without records. queues: its queue */
	OP_PEEK,       /* ready messages in the order a claim would take them; may wait */
	OP_WATCH,      /* the id of the first ready message, once it is another; may wait */
	OP_LIST,       /* messages by state, page by page */
	OP_RESULT,     /* the result of a message that was acked; may wait */
	OP_STATS,      /* counts of one queue */
	OP_QUEUES,     /* counts of all queues, page by page; of the queues of one name, if the op has
			* one. Queues of core/reserved.h are listed only if the op names them. The outbox
			* (engine/outbox.h) is listed */
	OP_PURGE,      /* removes all messages of a queue that are neither leased nor dead. A cursor other than 0: not
			* finished, run it again (LANE-21 of broker/lane.h); its maker never sees one */
	OP_PAUSE,      /* sets or clears policy.paused, policy.draining or both, of a queue that exists: op->sets */
	OP_POLICY_GET, /* the policy of a queue; the default policy, if the queue does not exist */
	OP_POLICY_SET, /* replaces the policy of a queue */
	OP_FORGET,     /* removes a queue that exists, with all that it has. SLU_ENOTEMPTY: it has
			* messages, and force is not set; SLU_ECONFLICT: it has been moved. The
			* answer has a cursor other than 0: not finished, ask again */
	OP_BACKUP,     /* backup: holds the files of a shard while they are copied */
	OP_SHARD,      /* counts of the shard that the cursor names, as in QUEUES */
	OP_PRESENCE,   /* presence: registers this node at the shard that the cursor names, and lists the
			* others; see engine/presence.h */
	OP_INTAKE,     /* intake: accepts a batch of messages from outside once; its cursor names the shard,
			* as in QUEUES */
	OP_LIMITS,     /* limits, uses: what a queue that exists uses of its limits, its shares and its holds */
	OP_HOLD,       /* limits: holds a queue that exists, or a share or key of it, back for a while, or ends that */
	OP_MOVE,       /* move: a step of a queue's move to another shard; see engine/move.h */

	/* Locks: see struct op_lock. */
	OP_ACQUIRE,      /* leases a key; may wait */
	OP_KEEPALIVE,    /* the lease lasts longer */
	OP_RELEASE,      /* ends the lease; commits what was staged, or rolls it back */
	OP_STATE_GET,    /* reads a document */
	OP_STATE_PUT,    /* stages puts[0] as a document */
	OP_STATE_REMOVE, /* stages the removal of a document */
	OP_STATE_META,   /* stages whether KEYS shows the document */
	OP_DESCRIBE,     /* the holder and the version of a key */
	OP_KEYS,         /* committed states of a namespace, page by page */
	OP_ATTACHMENTS,  /* the attachments of a key */

	OP_ADJUST, /* items: messages that wait get another priority or due time, and stay what they are */
	OP_TREND,  /* steps: the recent past of a queue, or of the shard that the cursor names (core/queue/trend.h) */
	OP_VERBS
};

/* The part of struct op that is a verb's own. */
enum op_family {
	OP_OF_QUEUE,    /* none: puts, items and rows say all */
	OP_OF_CLAIM,    /* op->claim */
	OP_OF_LOCK,     /* op->lock */
	OP_OF_POLICY,   /* op->policy */
	OP_OF_BACKUP,   /* op->backup */
	OP_OF_MOVE,     /* op->move */
	OP_OF_SHARD,    /* op->on_shard */
	OP_OF_PRESENCE, /* op->presence */
	OP_OF_INTAKE,   /* op->intake */
	OP_OF_FINISH,   /* op->unlock */
	OP_OF_WHY,      /* op->why */
	OP_OF_LIMITS,   /* op->limits */
	OP_OF_TREND,    /* op->trend */
	OP_FAMILIES
};

/* What an op waits for if op->wait allows it. The broker has a waitlist of ops for each
 * (broker/dispatch.h), and one row of rules (broker/lane_wait.c). */
enum op_wait {
	OP_WAIT_NONE,
	OP_WAIT_MESSAGE, /* of its queue, to take it */
	OP_WAIT_LOOK,    /* for a message of its queue, to look at it */
	OP_WAIT_HEAD,    /* until another message of its queue is the first */
	OP_WAIT_KEY,     /* until a lock key is free */
	OP_WAIT_RESULT,  /* until a message is acked */
	OP_WAITS
};

/* How an op follows a queue that is on several shards (broker/move/follow.h). */
enum op_follow {
	OP_FOLLOW_NOT,    /* it asks the shard that it was routed to, and no other */
	OP_FOLLOW_REFUSE, /* it is refused while its queue moves */
	OP_FOLLOW_PUTS,   /* what a shard does not take goes to the next */
	OP_FOLLOW_ITEMS,  /* items that a shard does not have go to the next */
	OP_FOLLOW_CLAIM,  /* the first shard that has rows; the wait is where the queue lives */
	OP_FOLLOW_WATCH,  /* as claims */
	OP_FOLLOW_FIRST,  /* the first shard that has the message */
	OP_FOLLOW_LOCK,   /* the first shard that has the key */
	OP_FOLLOW_RESULT, /* as FIRST, and the wait is on each shard in turn */
	OP_FOLLOW_SUM,    /* all shards, added up */
	OP_FOLLOW_PAGES,  /* one shard after the other, page by page */
	OP_FOLLOW_KEYS,   /* pages in the order of keys over all shards */
	OP_FOLLOW_ALL,    /* all shards do it */
	OP_FOLLOW_HOME,   /* only the shard that the queue lives on */
	OP_FOLLOWS
};

enum op_trait {
	OP_NEEDS_QUEUE = 1 << 0,   /* refused without a namespace and a queue */
	OP_BEGINS = 1 << 1,        /* begins work: refused while the broker drains */
	OP_CHANGES = 1 << 2,       /* a caller without the answer cannot assume that nothing changed.
				    * A claim or acquire that was not received goes back */
	OP_AUDITED = 1 << 3,       /* the audit has a line of it */
	OP_SPANS = 1 << 4,         /* its cursor goes over all shards */
	OP_SPANS_UNNAMED = 1 << 5, /* the same, if it names no queue */
	OP_AT_CURSOR = 1 << 6,     /* its cursor names the shard, if it names no queue */
	OP_SHIFTS_HEAD = 1 << 7,   /* may change the first message of a queue, though none becomes ready */
	OP_ENDS = 1 << 8,          /* messages may be gone after it: waits for their results end */
	OP_STRICT = 1 << 9,        /* a shard that does not answer stops it (FOLLOW-3 of broker/move/follow.h) */
	OP_KEYED = 1 << 10         /* what it brings may continue a key that another shard had (MOVE-9) */
};

struct op_verb_row {
	const char *name; /* "enqueue" */
	uint8_t family;   /* enum op_family */
	uint8_t waits;    /* enum op_wait */
	uint8_t follows;  /* enum op_follow */
	uint16_t traits;  /* of enum op_trait */
};

extern const struct op_verb_row op_verbs[OP_VERBS];

static inline bool
op_is(enum op_verb verb, enum op_trait trait)
{
	return op_verbs[verb].traits & trait;
}

static inline bool
op_is_of(enum op_verb verb, enum op_family family)
{
	return op_verbs[verb].family == family;
}

static inline const char *
op_verb_name(enum op_verb verb)
{
	return op_verbs[verb].name;
}

#endif
