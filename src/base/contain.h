/*
 * contain.h - a user's function that ends its thread (pthread_exit) ends only its task.
 *
 *         if (GUARD_ENTER(&g))
 *                 failed(g.text);
 *         else
 *                 CONTAIN("the handler", handler(arg));
 *         guard_leave(&g);
 *
 * The exit becomes a panic, on the stack of the function that has the guard. For threads of
 * the library alone: a thread of the program may end where it likes.
 *
 * The C library runs a cleanup routine and then goes on ending the thread; here the routine
 * does not return. glibc has unwound the stack to the frame of CONTAIN by then, so the jump
 * goes to a frame that is whole. tests/unit/test_contain.c holds it to that.
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
