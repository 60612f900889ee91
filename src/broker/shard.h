/*
 * shard.h - a thread with an inbox and an engine: where ops are run.
 *
 *      shard_post ──> inbox ──> turns ──> batch ──> engine.run ──> done
 *                                ^          │ claim that may wait, or found others
 *                                │          v waiting
 *                                │       dispatch ──> again, when there is something
 *                                └─ by namespace
 *
 *  S1  A batch has at most SHARD_BATCH_OPS messages and SHARD_BATCH_BYTES of them; an
 *      op that has more goes alone. Namespaces take turns.
 *  S2  An op is judged by the moment it reached the inbox, and nothing falls due
 *      before an op that came earlier has run, however long it had to wait.
 *  S3  Shard time starts at what the engine found (the larger of the wall clock and
 *      the last time it wrote) and goes on by clock_boot. It never goes back and does
 *      not follow a wall clock that is set.
 *  S4  When a run fails, every op of the batch answers that failure, all that wait
 *      SLU_EDOWN, and so does whatever comes later: until the shard is opened again.
 *  S5  Every op that was posted is answered once. After a close, what came before is
 *      run as ever, and waits end; then the thread ends.
 *  S6  done is called when op->canceled is DONE, and not while a cancel of it is on
 *      its way: so whoever cancels may touch the op.
 *  S7  A claim, peek, result or acquire that would wait is refused where as many wait already as
 *      the quota says: SLU_EBUSY. What may not wait, and what settles, never is.
 *  S8  A claim whose flow has no room waits until it has, then it is as if it came just
 *      now.
 *  S9  A shard that serves one op at a time, whose last one came within SHARD_LINGER, looks for
 *      the next that long before it sleeps: to wake a thread takes longer than an op does.
 *  S10 A claim that found only messages its stream has just failed (L13 of core/ledger.h) leaves
 *      them to those who wait behind it, and runs once more when it may have one.
 *
 * An op that is to be asked elsewhere, too, is answered to the relay (broker/relay.h), which
 * forwards it to the next shard, lets it run here once more after a while, or ends it.
 */
#ifndef BROKER_SHARD_H
#define BROKER_SHARD_H

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "broker/flow.h"
#include "broker/turns.h"
#include "exec/inbox.h"

enum {
	SHARD_BATCH_OPS = 4096,
	SHARD_BATCH_BYTES = 1 << 20
};

#define SHARD_LATER  (5 * SLU_MS)
#define SHARD_LINGER (150 * SLU_US)

/* The rows of struct broker_totals; written by the shard's thread alone. */
enum shard_total {
	SHARD_OPS,
	SHARD_BATCHES,
	SHARD_ACCEPTED,
	SHARD_DELIVERED,
	SHARD_RETURNED,
	SHARD_ACKED,
	SHARD_NACKED,
	SHARD_DELETED,
	SHARD_WAITING,
	SHARD_TOTALS
};

struct shard {
	/* Fixed once open. */
	uint32_t index;
	const _Atomic uint32_t *shards; /* how many there are */
	struct clock *clock;
	struct slu_log *log;
	struct quota *quota; /* NULL: no limits */
	struct meter_shard meter;
	struct relays *relays; /* NULL: no queue ever moves */
	struct engine *engine;
	slu_time offset; /* shard time - clock_boot */
	uint64_t highest_id;
	pthread_t thread;
	bool started;

	/* Shared. */
	struct inbox inbox;
	_Atomic uint64_t totals[SHARD_TOTALS];
	_Atomic bool draining; /* waiting claims end */
	_Atomic bool hurried;  /* they end as if their time was over */
	_Atomic int failed;    /* 0, or why nothing runs any more; then why is set */
	struct slu_err why;

	/* The shard thread's. */
	struct turns turns;
	struct dispatch dispatch;
	struct flows flows;
	bool deaths;       /* of messages, in a run */
	struct list later; /* ops that run when their time has come, in that order */
	struct op *roomy;  /* claims whose flow has room again, by next; during a run */
	slu_time now;
	slu_time took; /* by the last run */
	bool crowded;  /* the last batch had several ops */
	bool brisk;    /* the last mail came soon */
	uint64_t held; /* ops that have not been answered */
	uint32_t told; /* ops that wait, as quota knows it */
	bool closed;
};

/* conf->ready is the shard's own. Opens the engine, starts the thread. */
int shard_open(struct shard *s, const struct engine_ops *ops,
	       const struct engine_conf *conf, struct clock *clock, uint32_t index,
	       const _Atomic uint32_t *shards, struct slu_err *err);
int shard_start(struct shard *s, struct slu_err *err);

/* Any thread. SLU_ECLOSED. */
int shard_post(struct shard *s, struct op *op);
void shard_cancel(struct shard *s, struct op *op);

/* For the relay. Any thread: post an op that another shard has answered. SLU_ECLOSED. */
int shard_forward(struct shard *s, struct op *op);

/* Any thread: op_unwant has said that this shard is to be told. */
void shard_stop(struct shard *s, struct op *op);

/* The shard's thread: the op it has just answered runs here again, SHARD_LATER from now on. */
void shard_later(struct shard *s, struct op *op);

void shard_drain(struct shard *s);

/* The same, but what waits ends as if its time was over, and is not refused. */
void shard_hurry(struct shard *s);
void shard_close(struct shard *s); /* S5; returns at once */
void shard_join(struct shard *s);  /* waits for the thread */

/* After shard_join, or without a thread. What its engine said at close. */
int shard_release(struct shard *s);

/* For tests: what the thread does, once. Returns false when it is to end. */
bool shard_round(struct shard *s);

/* Until when a round would sleep, by clock_boot; 0: not at all. */
slu_time shard_sleeps(struct shard *s);

#endif
