#include "exec/guard.h"

#include "base/need.h"

#include <sluice/panic.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct panic_guard *innermost;

/*
 * A panic leaves frames that may have pushed cleanup handlers (pthread_cleanup_push, also in
 * contain.h), and glibc links the handlers through these frames. Restore the list, or a later
 * pthread_exit would jump into a frame that is gone.
 */
#ifdef __GLIBC__
static void
note_cleanups(struct panic_guard *g)
{
	__pthread_register_cancel(&g->cleanups); /* saves the head of the list */
	__pthread_unregister_cancel(&g->cleanups);
}

static void
drop_cleanups(struct panic_guard *g)
{
	__pthread_unregister_cancel(&g->cleanups); /* restores it */
}
#else
static void
note_cleanups(struct panic_guard *g)
{
	(void)g;
}

static void
drop_cleanups(struct panic_guard *g)
{
	(void)g;
}
#endif

void
guard_push(struct panic_guard *g)
{
	note_cleanups(g);
	g->outer = innermost;
	g->text[0] = 0;
	innermost = g;
}

void
guard_leave(struct panic_guard *g)
{
	innermost = g->outer;
}

void
slu_panic(const char *fmt, ...)
{
	struct panic_guard *g = innermost;
	char text[GUARD_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap); /* cut is fine */
	va_end(ap);
	if (!g) {
		fprintf(stderr, "sluice: panic outside a task: %s\n", text);
		abort();
	}
	(void)snprintf(g->text, sizeof g->text, "%s", text);
	drop_cleanups(g);
	longjmp(g->back, 1);
}

int
slu_guard(int (*fn)(void *arg), void *arg, struct slu_err *err)
{
	NEED(fn, err);

	struct panic_guard g;
	int rc;

	if (GUARD_ENTER(&g))
		rc = slu_fail(err, SLU_EPANIC, "panic: %s", g.text);
	else
		rc = fn(arg);
	guard_leave(&g);
	return rc;
}
