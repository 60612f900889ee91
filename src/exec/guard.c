#include "exec/guard.h"

#include <sluice/panic.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct guard *innermost;

void
guard_push(struct guard *g)
{
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
	longjmp(g->back, 1);
}

int
slu_guard(int (*fn)(void *arg), void *arg, struct slu_err *err)
{
	struct guard g;
	int rc;

	if (GUARD_ENTER(&g))
		rc = slu_fail(err, SLU_EPANIC, "panic: %s", g.text);
	else
		rc = fn(arg);
	guard_leave(&g);
	return rc;
}
