#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void
test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n# replay with TEST_SEED=%" PRIu64 "\n", test_seed());
	fflush(stdout);
	_exit(1);
}

void
test_skip(const char *why)
{
	printf("# skipped: %s\n", why);
	fflush(stdout);
	_exit(TEST_SKIPPED);
}

/* The program knows where it lies, and the compiler got the path of this source, from the top of the build folder. */
const char *
test_document(const char *name)
{
	static char text[64 * 1024], exe[1024], path[4096];
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	FILE *f = NULL;

	if (n > 0) {
		*strrchr(exe, '/') = 0;
		(void)snprintf(path, sizeof path, "%s/../../%s", exe, __FILE__);
		(void)snprintf(strrchr(path, '/'), 1024, "/../../docs/%s", name);
		f = fopen(path, "r");
	}
	if (!f)
		test_skip("built away from the sources");
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	return text;
}

const char *
test_dump(const char *p, size_t from, size_t to)
{
	static char text[4096];
	char *at = text;

	for (size_t i = from; i < to; i++) {
		if ((i - from) % 16 == 0)
			at += sprintf(at, "%08zx ", i);
		at += sprintf(at, " %02x", (unsigned char)p[i]);
		if ((i - from) % 16 == 15 || i == to - 1)
			at += sprintf(at, "\n");
	}
	*at = 0;
	return text;
}

uint64_t
test_seed(void)
{
	const char *set = getenv("TEST_SEED");

	return set ? strtoull(set, NULL, 10) : 20240101;
}

uint64_t
test_random(uint64_t *state) /* splitmix64 */
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void
test_yield(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}
