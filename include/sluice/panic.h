/*
 * panic.h - giving up on a task from anywhere inside it.
 *
 * slu_panic leaves the task's function at once, from any depth of calls, and fails
 * that one attempt with SLU_EPANIC; the worker logs it, counts it and goes on with
 * the next task. It works as longjmp does: nothing of the frames it leaves is
 * cleaned up, no C++ destructor runs, a lock that is held stays held. Use it where
 * C++ or Go would panic: for bugs, not for errors.
 *
 * It must be called on the thread that runs the task, or handler, or session hook.
 * Anywhere else there is no one to go back to: the text goes to stderr and the
 * process aborts.
 *
 * A task or handler that calls pthread_exit is met the same way: its attempt fails with
 * SLU_EPANIC and the thread goes on. (slu_guard on a thread of your own lets it end.)
 *
 * A memory fault (SIGSEGV, SIGBUS) or abort() inside a task is NOT contained:
 * memory that one task has damaged belongs to all. Work that may crash belongs in a
 * process of its own.
 */
#ifndef SLUICE_PANIC_H
#define SLUICE_PANIC_H

#include <sluice/err.h>

SLU_BEGIN_DECLS

SLU_API void slu_panic(const char *fmt, ...) SLU_NORETURN SLU_PRINTF(1, 2);

/* Call fn(arg), and be the one to go back to: SLU_EPANIC, with what slu_panic was given in
 * err; else what fn returns. For code of your own that calls functions which may panic. Thread
 * of fn: the caller's. */
SLU_API int slu_guard(int (*fn)(void *arg), void *arg, struct slu_err *err);

SLU_END_DECLS

#endif
