/*
 * lane_private.h - what the parts of the lane share; for lane*.c alone.
 */
#ifndef BROKER_LANE_PRIVATE_H
#define BROKER_LANE_PRIVATE_H

#include "broker/lane.h"

/* Adds to a total, which has one writer. */
static inline void
lane_count(struct lane *lane, enum lane_total row, uint64_t n)
{
	const uint64_t old = atomic_load_explicit(&lane->totals[row], memory_order_relaxed);

	atomic_store_explicit(&lane->totals[row], old + n, memory_order_relaxed);
}

/* Answers the op: LANE-6. */
void lane_answer(struct lane *s, struct op *op);

/* The stream has credit: its claim that waits for credit runs again (LANE-8). 0: no stream. */
void lane_make_room(struct lane *s, uint64_t stream);

/* Tells broker_conf.notice. */
void lane_notice(const struct lane *s, struct slice queue);

/* Runs the op, which is in no waitlist, at `until`. */
void lane_put_off(struct lane *s, struct op *op, slu_time until);

/* Takes an op that the lane itself has made, and runs it as the next. Returns SLU_ENOMEM. */
int lane_adopt(struct lane *s, struct op *op);

/* ---- lane_wait.c ---- */

/* Returns true if the op is parked in the dispatcher now, or was refused; false: run it. */
bool lane_parks(struct lane *s, struct op *op);

/* After a run: returns true if the op found nothing and waits. */
bool lane_still_waits(struct lane *s, struct op *op);

/* Takes an op with an answer out of its waitlist. If the op failed, the next of the waitlist runs. */
void lane_unpark(struct lane *s, struct op *op);

/* Answers an op, which is in no waitlist, with rc and no rows. */
void lane_end_wait(struct lane *s, struct op *op, int rc);

/* Ends all waits if the lane closes, fails or drains. */
void lane_end_waits(struct lane *s);

/* The wait of an op on another node was ended, because this lane drains. */
void lane_end_wait_away(struct lane *s, struct op *op);

/* Ends the waits whose time is over. */
void lane_expire_waits(struct lane *s);

/* ---- lane_engine.c ---- */

int lane_open_engine(struct lane *s, const struct engine_ops *ops, const struct engine_conf *conf,
		     struct slu_err *err);
int lane_close_engine(struct lane *s);

/* The engine has failed: run has returned rc (LANE-4). */
void lane_fail_engine(struct lane *s, int rc, const struct slu_err *err);

/* Reopens a failed engine if it is time (LANE-4). */
void lane_reopen_engine(struct lane *s);

/* The open batch was answered SLU_EUNKNOWN for the reason err (LANE-14); or, err NULL, it is committed. */
void lane_note_doubt(struct lane *s, const struct slu_err *err);

/* Notes why the engine is closed; ops fail with that. */
void lane_note_failure(struct lane *s, int rc, const struct slu_err *err);

/* The engine is open again. */
void lane_serve_again(struct lane *s, const struct engine_found *found);

/* ---- lane_tenure.c ---- */

/* The lane has just been opened, with a tenure: it waits for an order. */
void lane_begin_tenure(struct lane *s);

/* Executes an order, and gives up an engine that has failed: LANE-16. */
void lane_obey(struct lane *s);

/* LANE-19. Sets err if it returns true. */
bool lane_lacks_format(const struct lane *s, const struct op *op, struct slu_err *err);

/* LANE-18. Returns true if another node has the op now. */
bool lane_sends(struct lane *s, struct op *op);

/* After the last op that has come: what lane_sends has sent leaves. */
void lane_flush(struct lane *s);

/* The op came back and nothing has happened: the cursor is the engine's again. */
void lane_drop_name(struct op *op);

/* LANE-17 */
bool lane_is_too_old(const struct lane *s, const struct op *op);

/* ---- lane_run.c ---- */

/* For ops that go from lane to lane: the page behind the last of this lane is the first of the next. */
void lane_span_cursor(const struct lane *s, struct op *op);

/* Fails the ops that have not run. */
void lane_fail_queued(struct lane *s);

/* Forms a batch, runs it, answers it; or commits the open batch. */
void lane_run(struct lane *s);

/* Fails an op of a batch that is in no waitlist. */
void lane_fail_op(struct lane *s, struct op *op, int rc, const struct slu_err *err);

/* The batch has ended: answers its ops, or fails them with rc. */
void lane_end_batch(struct lane *s, int rc, const struct slu_err *err);

/* ---- lane_commit.c ---- */

/* Commits the open batch, and answers it if it is committed. */
void lane_commit(struct lane *s);

/* Ends ops that the open batch has held up for too long: LANE-14. */
void lane_end_held(struct lane *s);

/* When lane_end_held has something to do, in shard time. */
slu_time lane_held_until(const struct lane *s);

/* Forgets what was granted in answers that were SLU_EUNKNOWN. */
void lane_forget_debts(struct lane *s);

/* LANE-15 */
bool lane_gathers(const struct lane *s);
slu_time lane_gathers_until(const struct lane *s);

/* LANE-15: an op has come. */
void lane_gather_on(struct lane *s);

/* How many ops must have come before the lane wakes; 1 unless it gathers. */
uint32_t lane_enough(const struct lane *s);

#endif
