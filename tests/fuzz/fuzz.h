/*
 * fuzz.h - what a fuzz target is: a function that takes any bytes and returns. It
 * fails by crashing, so it checks with FUZZ_CHECK, which no build switches off.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bytes.h"

/* The name is libFuzzer's. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond)         \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

/* Reads every byte, so that a sanitizer sees a slice that is wrong. */
static inline void
fuzz_touch(struct slice s)
{
	FUZZ_CHECK(s.n == 0 || s.p);
	for (size_t i = 0; i < s.n; i++)
		(void)*(const volatile char *)&s.p[i];
}

#endif
