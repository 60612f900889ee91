/*
 * guard.h - calls a user's function so that slu_panic in it returns to the caller.
 *
 * Guards nest: a function inside a guarded task may have a guard of its own.
 */
#ifndef EXEC_GUARD_H
#define EXEC_GUARD_H

#include <pthread.h>
#include <setjmp.h>

enum {
	GUARD_TEXT_MAX = 160
};

struct panic_guard {
	jmp_buf back;
	struct panic_guard *outer; /* the guard around this one, or NULL */
#ifdef __GLIBC__
	__pthread_unwind_buf_t cleanups; /* the thread's cleanup handlers at guard_push */
#endif
	char text[GUARD_TEXT_MAX]; /* of slu_panic */
};

/*
 *         struct panic_guard g;
 *
 *         if (GUARD_ENTER(&g))
 *                 rc = panicked(g.text);
 *         else
 *                 rc = task(arg);
 *         guard_leave(&g);
 *
 * A macro, because setjmp must be called by a function that stays on the stack. Locals that change
 * after GUARD_ENTER and are read after a panic must be volatile.
 */
#define GUARD_ENTER(g) (guard_push(g), _setjmp((g)->back))

void guard_push(struct panic_guard *g);
void guard_leave(struct panic_guard *g);

#endif
