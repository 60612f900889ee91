/*
 * loop.h - a thread that waits for sockets, timers and posted work.
 *
 *      any thread                           the loop's thread
 *
 *      loop_post ──> posted (a stack) ──> all of it at once, oldest first
 *            └─ wakes the loop if the stack was empty: many posts, one wake-up
 *
 * Work on a loop must not block: all other work of the loop waits for it.
 *
 *  LOOP-1  Any thread may call loop_post and loop_stop. All other functions, and the handles
 *          of loop_uv(), belong to the loop's thread, or to the opener before loop_start.
 *  LOOP-2  Work of one thread runs in the order of its posts, and before the loop ends. After
 *          loop_stop only the loop itself posts.
 *  LOOP-3  The loop ends when it was stopped and every handle on it is closed. The opener of a
 *          handle closes it.
 *  LOOP-4  A loop that polls (loop_poll) does not sleep: turn follows turn, and posted work runs in the next one without a
 *          wake-up. Between turns it gives its processor to other threads that are ready.
 *
 *         struct loop_work is a member of the struct that is posted:
 *
 *         op->work.run = answer;           called on the loop as answer(&op->work)
 *         loop_post(loop, &op->work);      now the loop owns op
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <sluice/err.h>

#include <uv.h>

struct loop;

struct loop_work {
	struct loop_work *next; /* private while posted */
	void (*run)(struct loop_work *w);
};

/* Returns SLU_ENOMEM, or SLU_EDOWN if the system has no descriptors. */
int loop_open(struct loop **out, struct slu_err *err);

/* Reserves what libuv needs later and aborts without: room for descriptors below `files`, and
 * the file threads. Before loop_start. Returns SLU_ENOMEM. */
int loop_reserve(struct loop *l, unsigned files, struct slu_err *err);

/* Runs it on a thread of its own; top -H shows the name. Returns SLU_EDOWN if the system has
 * no thread. */
int loop_start(struct loop *l, const char *name, struct slu_err *err);

enum {
	LOOP_FILE_THREADS = 4 /* of libuv, for all loops */
};

enum {
	LOOP_QUIET = 4 /* idle turns in a row that mean: no more work until an event */
};

/* By hand, instead of loop_start: does one turn, on this thread. Returns true if there is more
 * to do or a file thread works. Work that a turn leaves to the next is not visible:
 * LOOP_QUIET. */
bool loop_round(struct loop *l);

/* No allocation, no lock, never fails. w must not be posted already. */
void loop_post(struct loop *l, struct loop_work *w);

/* LOOP-4. On the loop. */
void loop_poll(struct loop *l, bool on);

/* LOOP-3. May be called again. */
void loop_stop(struct loop *l);

/* Waits for its end; a loop that was not started runs here until then. Not on the loop
 * itself. */
void loop_wait(struct loop *l);

/* Stops it, waits for its end, frees it. NULL is fine. */
void loop_close(struct loop *l);

bool loop_is_here(const struct loop *l); /* on the loop's thread? */
uv_loop_t *loop_uv(struct loop *l);

/* Monotonic, read once per turn of the loop, in whole milliseconds. */
slu_time loop_now(const struct loop *l);

/* --- timers ---------------------------------------------------------------- */

struct loop_timer {
	uv_timer_t uv;
	void (*fire)(struct loop_timer *t);
	struct loop *loop;
	slu_time at; /* SLU_NEVER: not set */
};

/* t must not move until the loop is closed. */
void loop_timer_init(struct loop_timer *t, struct loop *l,
		     void (*fire)(struct loop_timer *t));

/* Fires once, at or soon after `at`; replaces the time set before. SLU_NEVER: never. */
void loop_timer_set(struct loop_timer *t, slu_time at);

/* LOOP-3; the timer is not set again. A zeroed timer is fine. */
void loop_timer_release(struct loop_timer *t);

#endif
