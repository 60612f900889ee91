/*
 * contain.h - if a user's function ends its thread (pthread_exit), only its task ends.
 *
 *         if (GUARD_ENTER(&g))
 *                 failed(g.text);
 *         else
 *                 CONTAIN("the handler", handler(arg));
 *         guard_leave(&g);
 *
 * The exit becomes a panic that the guard catches. For threads of the library alone: a thread
 * of the program may end anywhere.
 *
 * pthread_exit runs cleanup routines; the routine of CONTAIN panics, so it never returns.
 * glibc has then unwound the stack to the frame of CONTAIN, which is still valid for the jump
 * (tests/unit/base/test_contain.c checks that).
 */
#ifndef BASE_CONTAIN_H
#define BASE_CONTAIN_H

#include <sluice/panic.h>

#include <pthread.h>

static inline void
contain_exit(void *who)
{
	slu_panic("%s ended its thread (pthread_exit)", (const char *)who);
}

#define CONTAIN(who, call)                                         \
	do {                                                       \
		pthread_cleanup_push(contain_exit, (void *)(who)); \
		call;                                              \
		pthread_cleanup_pop(0);                            \
	} while (0)

#endif
