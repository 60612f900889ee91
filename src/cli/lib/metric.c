#include "cli/lib/metric.h"

#include <stdio.h>
#include <stdlib.h>

bool
metric_is(struct slice line, const char *name)
{
	const size_t n = strlen(name);

	return line.n > n && memcmp(line.p, name, n) == 0 &&
	       (line.p[n] == '{' || line.p[n] == ' ');
}

bool
metric_label(struct slice line, const char *name, char *out, size_t room)
{
	const size_t n = strlen(name);

	for (size_t i = 1; i + n + 2 < line.n; i++) {
		const char *value = line.p + i + n + 2;
		const char *end;

		if ((line.p[i - 1] != '{' && line.p[i - 1] != ',') ||
		    memcmp(line.p + i, name, n) != 0 || memcmp(line.p + i + n, "=\"", 2) != 0)
			continue;
		end = memchr(value, '"', (size_t)(line.p + line.n - value));
		if (!end)
			return false;
		(void)snprintf(out, room, "%.*s", (int)(end - value), value);
		return true;
	}
	return false;
}

double
metric_value(struct slice line)
{
	char text[64];
	size_t at = line.n;

	while (at > 0 && line.p[at - 1] != ' ')
		at--;
	(void)snprintf(text, sizeof text, "%.*s", (int)(line.n - at), line.p + at);
	return strtod(text, NULL);
}
