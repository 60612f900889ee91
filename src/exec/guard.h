/*
 * guard.h - call a user's function so that slu_panic in it comes back here.
 *
 * Guards nest: a handler that runs inside a guarded task may itself be guarded.
 */
#ifndef EXEC_GUARD_H
#define EXEC_GUARD_H

#include <pthread.h>
#include <setjmp.h>

enum {
	GUARD_TEXT_MAX = 160
};

struct guard {
	jmp_buf back;
	struct guard *outer;
#ifdef __GLIBC__
	__pthread_unwind_buf_t cleanups; /* where the thread's cleanup handlers begin here */
#endif
	char text[GUARD_TEXT_MAX]; /* what slu_panic was given */
};

/*
 *         struct guard g;
 *
 *         if (GUARD_ENTER(&g))
 *                 rc = panicked(g.text);
 *         else
 *                 rc = task(arg);
 *         guard_leave(&g);
 *
 * A macro, since setjmp must be called by the function that stays on the stack.
 * Locals changed between the two and read after a panic must be volatile.
 */
#define GUARD_ENTER(g) (guard_push(g), _setjmp((g)->back))

void guard_push(struct guard *g);
void guard_leave(struct guard *g);

#endif
