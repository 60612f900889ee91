#include "exec/guard.h"

#include "base/need.h"

#include <sluice/panic.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct guard *innermost;

/*
 * A panic leaves frames that may have cleanup handlers pushed (pthread_cleanup_push, also by
 * contain.h), and glibc keeps them in a list that runs through those frames. Forget them, or
 * a pthread_exit that comes later would jump into a frame that is gone.
 */
#ifdef __GLIBC__
static void
note_cleanups(struct guard *g)
{
	__pthread_register_cancel(&g->cleanups); /* notes what was first, and is it now */
	__pthread_unregister_cancel(&g->cleanups);
}

static void
drop_cleanups(struct guard *g)
{
	__pthread_unregister_cancel(&g->cleanups); /* what was noted is first again */
}
#else
static void
note_cleanups(struct guard *g)
{
	(void)g;
}

static void
drop_cleanups(struct guard *g)
{
	(void)g;
}
#endif

void
guard_push(struct guard *g)
{
	note_cleanups(g);
	g->outer = innermost;
	g->text[0] = 0;
	innermost = g;
}

void
guard_leave(struct guard *g)
{
	innermost = g->outer;
}

void
slu_panic(const char *fmt, ...)
{
	struct guard *g = innermost;
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

	struct guard g;
	int rc;

	if (GUARD_ENTER(&g))
		rc = slu_fail(err, SLU_EPANIC, "panic: %s", g.text);
	else
		rc = fn(arg);
	guard_leave(&g);
	return rc;
}
