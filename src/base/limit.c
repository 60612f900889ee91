#include "base/limit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[LIMIT_COUNT] = {
#define X(name, text) [LIMIT_##name] = (text),
	LIMITS(X)
#undef X
};

const char *
limit_name(enum limit limit)
{
	return names[limit];
}

enum limit
limit_by_name(const char *name)
{
	for (int i = 0; name && i < LIMIT_COUNT; i++)
		if (strcmp(names[i], name) == 0)
			return (enum limit)i;
	return LIMIT_COUNT;
}

int
limit_fail(struct slu_err *err, enum slu_code code, enum limit limit, slu_time after,
	   const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return (int)code;
	*err = (struct slu_err){ .code = code, .limit = names[limit], .retry_after = after };
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof err->text, fmt, ap); /* cut is fine */
	va_end(ap);
	return (int)code;
}
