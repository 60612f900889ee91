/*
 * lane.h - a thread with a mailbox and an engine: it runs ops.
 *
 *      lane_post ──> mailbox ──> fair queue ──> batch ──> engine.run ──> engine.commit ──> done
 *                                (by namespace)   │  ^
 *                                                 v  │ when there may be something
 *                                               dispatch: ops that wait
 *
 * A shard of the map has one lane, or several if its settings say so.
 *
 *  LANE-1    A batch has at most LANE_BATCH_OPS messages and LANE_BATCH_BYTES bytes; LANE_FAR_OPS and
 *            LANE_FAR_BYTES if the engine could not commit the last batch at once, and the batch took
 *            longer than LANE_FAR. A larger op runs alone. Namespaces take turns.
 *  LANE-2    The lane judges an op by the moment at which the op reached the mailbox. Nothing falls due
 *            before an op that arrived earlier has run, however long the op had to wait for its turn.
 *  LANE-3    Shard time starts at the time that the engine found (the later of the wall clock and the
 *            last time in the log) and continues by clock_boot. It never goes back and does not follow
 *            a wall clock that is set.
 *  LANE-4    If a run fails, every op of the batch fails with that code. Ops that wait, and ops that come
 *            later, fail with SLU_EDOWN and the reason. Meanwhile the lane reopens the engine: after
 *            100 ms, then after twice as long each time, up to LANE_RETRY_MAX, and after at least 4
 *            times as long as the last attempt took. After a minute without a failure the delay is
 *            100 ms again. The lane's thread reopens the engine; ops that arrive during an attempt wait
 *            for its end. Time and ids never go back, and streams begin with their whole credit. An
 *            engine without `reopen` stays failed.
 *  LANE-5    The lane answers every op once. After lane_close it runs the ops that came before, ends
 *            all waits and commits the last batch, if it has not lost patience; then the thread ends.
 *  LANE-6    The lane calls op->done once op->route.canceled is DONE, and not while a cancel is on its
 *            way: so the thread that cancels an op may touch the op.
 *  LANE-7    An op that would wait fails with SLU_EBUSY if as many ops wait already as the quota allows.
 *            An op that does not wait is never refused by this.
 *  LANE-8    A claim whose stream has no credit waits until it has; then it runs as if it came just
 *            now.
 *  LANE-9    A lane whose last batch had one op, which came within LANE_LINGER, polls its mailbox that
 *            long before it sleeps: waking a thread takes longer than an op. If another node owns the shard,
 *            the last mail counts instead of the last batch.
 *  LANE-10   A claim that found only messages which its stream has just failed (LEDGER-13 of
 *            core/ledger/ledger.h) leaves them to the claims behind it, and runs again when it may have
 *            one.
 *  LANE-11   If a lease of a stream runs out, the lane answers the waiting claim of that stream without
 *            rows, and the stream ends: its client does not read, or is too slow, and would cost further
 *            messages an attempt each. A stream that is still sending has no claim here, and continues.
 *  LANE-12   A batch that has run is open until the engine has committed it. The lane answers its ops
 *            after that, and starts no other run before. Ops of the batch that go on waiting are no
 *            part of the open batch. While a batch is open, the lane takes new ops, ends waits and
 *            handles cancels. A cancel of an open op changes nothing: the op gets its answer.
 *  LANE-13   The engine may block in commit. After LANE_SLOW the stand-in (broker/standin.h) does the
 *            work of LANE-12 in place of the lane's thread. The lane's thread alone calls every
 *            other function of the engine.
 *  LANE-14   If a batch is open for longer than LANE_HUNG, or than conf.patience if that is shorter, ops
 *            that have not run fail with SLU_EDOWN when the time of their wait is over. If a batch is
 *            open for longer than conf.patience, the ops of the batch fail with SLU_EUNKNOWN, and ops
 *            that have not run and may not wait fail with SLU_EDOWN. The batch stays open. When the
 *            engine has committed it, the lane returns the messages and keys that the batch had
 *            granted, and goes on without reopening. The engine may leave them (LOGENGINE-16). If commit fails, LANE-4 holds.
 *  LANE-15   After a batch that the engine could not commit at once, the lane waits until as many ops
 *            have come as it has answered: their makers probably ask again, and more ops share the next
 *            commit. The wait ends when no op has come for a tenth of the time that the batch took, or 1 ms
 *            if that is more; and after half of that time, but at least 0.5 and at most 20 ms. Ops
 *            that come meanwhile do not wake the thread.
 *            If the engine has a budget of commits (engine_ops.rest), the lane waits for that, too: at
 *            most 1 s.
 *  LANE-16   A lane with a tenure (engine/tenure.h) begins without its engine, and does not reopen it by
 *            itself. The order TAKE opens the engine; the order GIVE closes it when no batch is open. The
 *            lane gives up an engine that has failed. While the engine is closed, ops fail with SLU_EMOVED
 *            and the address of the owner; ops that go from lane to lane and ask this node alone
 *            (route.local) find nothing here. The lane reports the end of each order.
 *  LANE-17   An id that was drawn before the engine was opened may be the id of a message that another node
 *            has accepted. So the lane refuses the op with SLU_EMOVED.
 *
 *  LANE-18   If another node owns the shard, and the broker has a remote, the lane sends the op to that
 *            node. An op that another node sent goes no further. An op that comes back because nothing
 *            has happened is looked at anew, and sent again at most LANE_SENDS times in all. An op
 *            over all lanes travels with the number of the lane in its cursor. A lane that drains gives the
 *            claims of other nodes' streams back with SLU_ECLOSED: they go to the next owner.
 *  LANE-19   An op that a node of an older version could not read (engine/formats.h) fails while such a node
 *            lives: before it is sent to another node, and before it runs.
 *  LANE-20   While the lease of the node has lapsed (LINE-12 m of members/members.h), ops that wait fail with SLU_EMOVED,
 *            also those that would wait behind an open batch: another node may own the shard, and have what they
 *            wait for. Nothing has happened, so another node may run them.
 *  LANE-21   A purge that has removed a part (MSGBATCH-7 of engine/msgbatch.h) runs again, between other ops, until all is
 *            gone, and is answered then. If the lane cannot go on, its answer is SLU_EUNKNOWN.
 *
 * Moves (broker/move/follow.h) meet a lane in two functions. The lane calls follow_answered with every
 * answer: if the queue of the op moves, that forwards the op to the next lane, runs it here again later,
 * or ends it. The lane calls follow_ready when messages can be claimed.
 */
#ifndef BROKER_LANE_H
#define BROKER_LANE_H

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "broker/credit.h"
#include "broker/fairqueue.h"
#include "exec/mailbox.h"

enum {
	LANE_SENDS = 4, /* LANE-18 */
	LANE_BATCH_OPS = 4096,
	LANE_BATCH_BYTES = 1 << 20,
	LANE_FAR_OPS = 32768,
	LANE_FAR_BYTES = 8 << 20
};

#define LANE_RETRY_MAX (5 * SLU_SEC) /* LANE-4 */
#define LANE_LATER     (5 * SLU_MS)
#define LANE_LINGER    (150 * SLU_US)
#define LANE_SLOW      (50 * SLU_MS) /* LANE-13 */
#define LANE_FAR       (5 * SLU_MS)  /* LANE-1 */
#define LANE_HUNG      SLU_SEC       /* LANE-14 */

struct lane_debt;
struct outbox;
struct standin;

/* The rows of struct broker_totals. Only the lane's thread writes them. */
enum lane_total {
	LANE_OPS,
	LANE_BATCHES,
	LANE_ACCEPTED,
	LANE_DELIVERED,
	LANE_RETURNED,
	LANE_ACKED,
	LANE_NACKED,
	LANE_DELETED,
	LANE_WAITING,
	LANE_TOTALS
};

struct lane {
	/* Fixed once open. */
	uint32_t index;                /* its number */
	const _Atomic uint32_t *lanes; /* how many the broker has */
	struct clock *clock;
	struct slu_log *log;
	struct quota *quota; /* NULL: no limits */
	struct meter_lane meter;
	struct follows *follows;            /* NULL: no queue ever moves */
	const struct broker_remote *remote; /* NULL: other nodes get no ops */
	struct outbox *outbox;              /* NULL: none */
	const struct broker_notice *notice; /* NULL: no scheduler */
	struct engine *engine;
	uint64_t highest_id; /* that the engine knew at open */
	pthread_t thread;
	bool started;

	/* Shared. */
	struct mailbox mailbox;
	_Atomic uint64_t totals[LANE_TOTALS];
	_Atomic bool draining;          /* waiting claims end */
	_Atomic bool hurried;           /* waits end as if their time was over */
	_Atomic bool one_queue;         /* engine_found.one_queue */
	_Atomic slu_time ahead_of_boot; /* `offset`, for other threads; 0: not open yet */
	_Atomic int failed;             /* LANE-4: 0, or the code of the failure */
	_Atomic int order;              /* LANE-16: enum broker_order */
	_Atomic bool news;              /* LANE-16: `owner` has changed */
	_Atomic bool lapsed;            /* LANE-20 */
	pthread_mutex_t mtx;
	bool doubted;       /* LANE-14: the open batch was answered SLU_EUNKNOWN; under mtx */
	const char *owner;  /* LANE-16: address; NULL: no node owns the shard; under mtx */
	struct slu_err why; /* explains `failed` or `doubted`; under mtx */

	/* LANE-13. The stand-in locks `turn`, and may touch what follows while `committing` is set. */
	struct standin *standin;     /* NULL: the lane has none */
	pthread_mutex_t turn;        /* held by the stand-in, and to reset `committing` */
	_Atomic slu_time committing; /* when the batch ran that commit works on, by clock_mono; 0: the
				      * thread is not in commit */

	/* The lane thread's. */
	bool sent; /* LANE-18: ops have been sent since the last flush */
	struct fairqueue fairqueue;
	struct dispatch dispatch;
	struct credits credits;
	bool deaths;        /* the run made dead letters */
	struct list later;  /* ops with route.later, in the order of that time */
	struct op *resumed; /* claims whose stream has credit again, by route.next; during a run */
	slu_time offset;    /* shard time - clock_boot */
	slu_time now;       /* shard time of this round */
	slu_time took;      /* by the last run */
	bool crowded;       /* the last batch, or mail (LANE-9), had several ops */
	bool brisk;         /* the last mail came within LANE_LINGER */
	uint64_t held;      /* ops that have not been answered */
	uint32_t told;      /* ops that wait, as counted in quota->waits */
	bool closed;        /* lane_close was called */

	/* The open batch: LANE-12, LANE-14. */
	bool open;                /* a batch is open */
	bool late;                /* commit has returned ENGINE_LATER for it */
	struct op *batch;         /* its ops, by route.next */
	slu_time ran;             /* when it ran, in shard time */
	slu_time began;           /* the same, by clock_mono */
	struct slu_err waits_for; /* what the engine waits for, as commit said; empty: not known */
	struct lane_debt *debts;  /* grants that go back when the batch is committed */

	/* LANE-15. */
	uint32_t answered;     /* ops of the last batch */
	uint32_t came;         /* ops since then */
	slu_time gather_until; /* the next batch may wait until then, in shard time */
	slu_time gather_end;   /* gather_until is never later; 0 = the lane does not gather */
	slu_time rest_until;   /* the next batch waits until then for the budget, in shard time */

	/* Reopening: LANE-4. */
	struct engine_conf conf;
	char *folder;        /* of conf */
	struct slu_err down; /* the answer to ops while the engine has failed or hangs */
	unsigned attempts;   /* failures and failed attempts in a row */
	slu_time retry_at;   /* of the next attempt */
	slu_time opened_at;

	bool owned;           /* LANE-16: the engine is open, or has failed since */
	uint64_t taken_above; /* LANE-17: ids of new messages are higher; 0: any */
};

/* Opens the engine; the lane sets the callbacks of conf. */
int lane_open(struct lane *s, const struct engine_ops *ops,
	      const struct engine_conf *conf, struct clock *clock, uint32_t index,
	      const _Atomic uint32_t *lanes, struct slu_err *err);

/* Starts the thread. */
int lane_start(struct lane *s, struct slu_err *err);

/* Any thread. Returns SLU_ECLOSED. */
int lane_post(struct lane *s, struct op *op);

/* Any thread. Ends the wait of an op early: OP-7. */
void lane_cancel(struct lane *s, struct op *op);

/* Any thread. Posts an op that another lane has answered. Returns SLU_ECLOSED. */
int lane_forward(struct lane *s, struct op *op);

/* Any thread. Tells the lane of a cancel, after op_unwant has returned true. */
void lane_stop(struct lane *s, struct op *op);

/* The lane's thread. Runs the op that it has just answered again, LANE_LATER from now. */
void lane_later(struct lane *s, struct op *op);

/* Ends the waits, and no op waits from now on. */
void lane_drain(struct lane *s);

/* The same; each wait ends as if its time was over. */
void lane_hurry(struct lane *s);

/* LANE-5. Returns at once. */
void lane_close(struct lane *s);

/* Waits for the thread. */
void lane_join(struct lane *s);

/* Any thread. LANE-16. */
void lane_order(struct lane *s, enum broker_order order);
void lane_set_owner(struct lane *s, const char *address, uint64_t epoch);
const char *lane_owner(struct lane *s);

/* Any thread. LANE-20 */
void lane_set_lapsed(struct lane *s, bool lapsed);

/* Any thread. LANE-18 */
void lane_came_back(struct lane *s, struct op *op, bool again);

/* Any thread. Returns 0, or why the engine has failed (LANE-4) or does not answer (LANE-14). err may
 * be NULL. */
int lane_failure(struct lane *s, struct slu_err *err);

/* After lane_join, or without a thread. Returns the code of the engine's close. */
int lane_release(struct lane *s);

/* The stand-in: takes new ops, ends waits and handles cancels if the lane's thread is in commit. */
void lane_attend(struct lane *s);

/* For tests: one round of the thread. Returns false if the thread ends. */
bool lane_round(struct lane *s);

/* For tests: until when a round would sleep, by clock_boot; 0: it would not. */
slu_time lane_sleeps(struct lane *s);

#endif
