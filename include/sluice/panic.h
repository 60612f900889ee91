/*
 * panic.h - aborts a task from anywhere inside it.
 *
 * slu_panic leaves the task's function at once, from any depth of calls, and fails this
 * attempt with SLU_EPANIC; the worker logs it, counts it and goes on with the next task.
 * It works as longjmp does: it cleans up no frame, no C++ destructor runs, a held lock
 * stays held. Use it as a panic in Go: for bugs, not for errors.
 *
 * Call it on the thread that runs the task, the handler or the session hook. On any other
 * thread the text goes to stderr and the process aborts.
 *
 * A task or handler that calls pthread_exit fails in the same way, with SLU_EPANIC, and
 * the thread goes on. (Inside slu_guard on a thread of your own, the thread ends.)
 *
 * A memory fault (SIGSEGV, SIGBUS) or abort() inside a task ends the process: a task may
 * have damaged the memory of all. Run work that may crash in a process of its own.
 */
#ifndef SLUICE_PANIC_H
#define SLUICE_PANIC_H

#include <sluice/err.h>

SLU_BEGIN_DECLS

SLU_API void slu_panic(const char *fmt, ...) SLU_NORETURN SLU_PRINTF(1, 2);

/* Calls fn(arg). Returns SLU_EPANIC, with the text of slu_panic in err, if fn panics; otherwise the
 * result of fn. For your own code that calls functions which may panic. Thread of fn: the
 * caller's. */
SLU_API int slu_guard(int (*fn)(void *arg), void *arg, struct slu_err *err);

SLU_END_DECLS

#endif
