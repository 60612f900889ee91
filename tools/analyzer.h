/*
 * analyzer.h - what clang-tidy cannot see: its analyzer reads one file at a time.
 *
 * tools/tidy includes it before every file.
 */
#include <sluice/err.h>

/* slu_fail returns its code, which is not 0. */
#define slu_fail(err, code, ...) (slu_fail(err, code, __VA_ARGS__), (int)(code))
