/*
 * msgbatch.h - a batch of messages: members, and a message (the callback) that begins when all of them have ended.
 *
 *      shard of queue a         shard of .batches             shard of queue b
 *      member 1 ── ended ────>  events ──> batch ──callback─> the message that follows
 *      member 2 ── ended ────>
 *
 * A batch is a message in the queue MSGBATCH_QUEUE of its namespace; its id is the id of the batch, and its payload is
 * struct msgbatch. It is due when something has to happen by itself, and nobody claims it. A member names its batch
 * (struct terms, `batch`). An event is a message in MSGBATCH_QUEUE that names the batch, too; its payload is struct
 * msgbatch_event. So records, replay, cleaning, moves, backups and takeovers treat it as a message.
 *
 *  MSGBATCH-1  Members join on the shard of their batch: it counts them and accepts them, or promises them by its outbox
 *              (engine/outbox.h), in one group.
 *  MSGBATCH-2  The end of a member and its event are in one group of the log. A member ends by an ack (done), or by its
 *              death, a delete or a purge (failed). A redrive takes the failure back.
 *  MSGBATCH-3  An event counts once: the batch, as it is stored, names the events that it has counted and that may still
 *              exist.
 *  MSGBATCH-4  The callback begins in one group with the batch that says so, once: when the batch is closed and every
 *              member has ended, or at the deadline. After that, only the counters change.
 *  MSGBATCH-5  A duplicate is no member: the shard that finds its idempotency key sends an event.
 *  MSGBATCH-6  A batch is kept for MSGBATCH_KEEP after its callback began. Events of a batch that is gone are dropped.
 *  MSGBATCH-7  A purge with few members sends one event for each batch. One with more deletes members first, some in each
 *              run: no run does unbounded work.
 */
#ifndef ENGINE_MSGBATCH_H
#define ENGINE_MSGBATCH_H

#include "base/bytes.h"
#include "core/reserved.h"
#include "engine/message.h"

#define MSGBATCH_QUEUE BATCH_QUEUE
#define MSGBATCH_KEEP  (24 * SLU_HOUR)
#define MSGBATCH_NEVER (7258118400 * SLU_SEC) /* 2200-01-01 */

enum {
	MSGBATCH_SELF = 1, /* terms.batch of a message that is a batch; no message has this id */
	MSGBATCH_MEMBERS_MAX = 1000000,
	MSGBATCH_SEEN = 64, /* events that are counted in one step */
	MSGBATCH_VERSION = 1,
	MSGBATCH_HEAD = 88,
	MSGBATCH_CALLBACK_MAX = 32 << 10, /* bytes of the record of the callback */
	MSGBATCH_EVENT = 5                /* bytes of an event */
};

/* Records store the numbers. */
enum msgbatch_outcome {
	MSGBATCH_OPEN,   /* it has not called back */
	MSGBATCH_DONE,   /* every member is done */
	MSGBATCH_FAILED, /* every member has ended, and some failed */
	MSGBATCH_LATE,   /* the deadline has passed */
	MSGBATCH_OUTCOMES
};

struct msgbatch {
	uint32_t members;
	uint32_t done, failed; /* modulo 2^32: an event may arrive before the one that it takes back */
	bool closed;           /* no more members */
	enum msgbatch_outcome outcome;
	slu_time created;
	slu_time deadline; /* 0: none */
	slu_time ended;    /* when it called back */
	uint64_t callback; /* the id of the callback; 0: it has not begun, or could not */
	slu_time delay;    /* of the callback */
	slu_time ttl;      /* of the callback */
	uint32_t n_seen;
	uint64_t seen[MSGBATCH_SEEN]; /* MSGBATCH-3: ids of events */
	struct slice message;         /* the record of the callback; n 0: none */
};

/* Records store the numbers. */
enum msgbatch_what {
	MSGBATCH_ACKED,    /* members are done */
	MSGBATCH_LOST,     /* members have failed */
	MSGBATCH_REDRIVEN, /* members that had failed begin anew */
	MSGBATCH_KNOWN,    /* messages that were duplicates: no members */
	MSGBATCH_WHATS
};

struct msgbatch_event {
	enum msgbatch_what what;
	uint32_t n;
};

void msgbatch_encode(const struct msgbatch *b, struct buf *out);

/* out->message points into text. SLU_ECORRUPT. */
int msgbatch_decode(struct slice text, struct msgbatch *out, struct slu_err *err);

void msgbatch_event_encode(const struct msgbatch_event *e, char out[static MSGBATCH_EVENT]);
int msgbatch_event_decode(struct slice text, struct msgbatch_event *out, struct slu_err *err);

/* Counts an event. */
void msgbatch_count(struct msgbatch *b, const struct msgbatch_event *e);

/* Returns whether the callback begins now, and how the batch has ended. */
bool msgbatch_ends(const struct msgbatch *b, slu_time now, enum msgbatch_outcome *how);

/* When something happens by itself: the deadline, or the end of the batch. */
slu_time msgbatch_due(const struct msgbatch *b);

/* "open", "closed", or how the batch has ended. */
const char *msgbatch_status(const struct msgbatch *b);

/* The put of a batch: fills in all but the payload. */
void msgbatch_name(struct message *m, struct slice space);

/* Appends the attributes of the callback: the counters, then its own attributes. */
void msgbatch_attributes(const struct msgbatch *b, uint64_t id, struct slice own, struct buf *out);

#endif
