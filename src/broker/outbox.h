/*
 * outbox.h - sends the entries of a shard's outbox (engine/outbox.h) to the shards that accept them.
 *
 *      the engine: entries of a line are ready
 *           │
 *           v            lane of the outbox           lane of the target       lane of the outbox
 *      idle ──> busy ──> PEEK: the first entries ──>  INTAKE  ───────────────> DELETE ──┐
 *        ^                │  no entries     ^   (this or another node)                  │
 *        └────────────────┘                 └───────────────────────────────────────────┘
 *
 * Each lane has an outbox, and an outbox has a line for each lane that it has sent to. A line has one op at a time,
 * and goes on when that op is done, on the thread that has answered it: no thread waits. If the target does not
 * accept, the line tries again after OUTBOX_RETRY, later after up to OUTBOX_RETRY_MAX. If a queue has moved,
 * its entries change their line, in one step. When a shard is opened or taken, the outbox looks for lines that have
 * entries.
 *
 * An OP_FINISH with messages on their way waits for their targets up to OUTBOX_WAIT; then it is answered, and the
 * puts that are still on their way stay `pending`.
 */
#ifndef BROKER_OUTBOX_H
#define BROKER_OUTBOX_H

#include "engine/engine.h"

#define OUTBOX_WAIT      SLU_SEC
#define OUTBOX_RETRY     (50 * SLU_MS)
#define OUTBOX_RETRY_MAX (5 * SLU_SEC)

struct broker;
struct lane;
struct outbox;

/* The outbox of a lane that is about to be opened. Returns SLU_ENOMEM. */
int outbox_new(struct outbox **out, struct broker *b, uint32_t lane, struct slu_err *err);

/* When no op of the broker is under way. NULL is fine. */
void outbox_free(struct outbox *box);

/* The lane is open. */
void outbox_start(struct outbox *box, struct lane *s);

/* engine_conf.home; arg: the outbox. */
int outbox_home(void *arg, struct slice space, struct slice queue, struct engine_home *out, struct slu_err *err);

/* ---- The lane's thread. box may be NULL. ---- */

/* The engine serves again: looks for entries. */
void outbox_opened(struct outbox *box);

/* A line has entries. */
void outbox_kick(struct outbox *box, struct slice line);

/* Returns true if the op, which has its answer, waits for its messages. */
bool outbox_holds(struct outbox *box, struct op *op, slu_time now);

/* Answers the ops whose wait is over; all: every op that waits. */
void outbox_let_go(struct outbox *box, slu_time now, bool all);

/* When outbox_let_go has something to do, in shard time; or SLU_NEVER. */
slu_time outbox_next(const struct outbox *box);

#endif
