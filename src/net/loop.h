/*
 * loop.h - a thread that waits for sockets, timers and what others hand to it.
 *
 *      any thread                           the loop's thread
 *
 *      loop_post ──> posted (a stack) ──> all of it at once, oldest first
 *            └─ wakes the loop when the stack was empty: many posts, one wake-up
 *
 * What runs on a loop must not block: everything else of that loop waits for it.
 *
 *  N1  loop_post and loop_stop may be called by any thread. All else, the handles of
 *      loop_uv() included, belongs to the loop's thread, or to the opener before
 *      loop_start.
 *  N2  What one thread posts runs in the order it was posted, and before the loop
 *      ends. After loop_stop nobody posts any more, unless from the loop itself.
 *  N3  The loop ends when it was stopped and every handle on it is closed; whoever
 *      opened a handle closes it.
 *
 *         struct loop_work { ... } is a member of whatever is handed over:
 *
 *         op->work.run = answer;           called on the loop as answer(&op->work)
 *         loop_post(loop, &op->work);      now op is the loop's
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <sluice/err.h>

#include <uv.h>

struct loop;

struct loop_work {
	struct loop_work *next; /* the loop's, while posted */
	void (*run)(struct loop_work *w);
};

/* SLU_ENOMEM, or SLU_EDOWN when the system gives no descriptors. */
int loop_open(struct loop **out, struct slu_err *err);

/* What libuv needs later and aborts without: places for descriptors below `files`, and
 * the threads that read and write files. Before loop_start. SLU_ENOMEM. */
int loop_reserve(struct loop *l, unsigned files, struct slu_err *err);

/* Run it on a thread of its own; name is seen in top -H. SLU_EDOWN: no thread. */
int loop_start(struct loop *l, const char *name, struct slu_err *err);

enum {
	LOOP_FILE_THREADS = 4 /* libuv has so many, for all loops */
};

enum {
	LOOP_QUIET = 4 /* turns in a row with nothing to do: that is all until something comes */
};

/* By hand, instead of loop_start: one turn, here. True: there is more to do, or a file
 * thread is still at work. What a turn leaves to the next does not show: LOOP_QUIET. */
bool loop_round(struct loop *l);

/* No allocation, no lock, never fails. w must not be posted already. */
void loop_post(struct loop *l, struct loop_work *w);

/* N3. Any number of times. */
void loop_stop(struct loop *l);

/* Wait for its end, whoever stops it; one that was not started runs here until then.
 * Not on the loop itself. */
void loop_wait(struct loop *l);

/* Stop it, wait for its end, free it. NULL is fine. */
void loop_close(struct loop *l);

bool loop_is_here(const struct loop *l); /* the calling thread is the loop's */
uv_loop_t *loop_uv(struct loop *l);

/* Monotonic, read once a turn of the loop, whole milliseconds. */
slu_time loop_now(const struct loop *l);

/* --- timers ---------------------------------------------------------------- */

struct loop_timer {
	uv_timer_t uv;
	void (*fire)(struct loop_timer *t);
	struct loop *loop;
	slu_time at; /* SLU_NEVER: not set */
};

/* t stays where it is until the loop is closed. */
void loop_timer_init(struct loop_timer *t, struct loop *l,
		     void (*fire)(struct loop_timer *t));

/* Fire once, at or soon after that moment; instead of what was set before.
 * SLU_NEVER: not at all. */
void loop_timer_set(struct loop_timer *t, slu_time at);

/* N3; not set again. A zeroed timer that was never initialised is fine. */
void loop_timer_release(struct loop_timer *t);

#endif
