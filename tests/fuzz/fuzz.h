/*
 * fuzz.h - what a fuzz target is: a function that takes any bytes and returns. It
 * fails by crashing, so it checks with FUZZ_CHECK, which no build switches off.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The name is libFuzzer's. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond)         \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

#endif
