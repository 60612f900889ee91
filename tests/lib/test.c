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
