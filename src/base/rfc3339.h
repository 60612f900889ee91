/*
 * rfc3339.h - moments as text: 2023-10-27T10:00:00.25Z, 2023-10-27T12:00:00+02:00.
 *
 * A moment is a slu_time: ns since 1970-01-01 UTC, from 1677-09-21T00:12:43.145224192Z
 * to 2262-04-11T23:47:16.854775806Z (one ns later is SLU_NEVER). Strict: the date, a T,
 * the time with its seconds, then Z or an offset. T and Z may be lower case, as in the
 * RFC. A fraction finer than 1 ns and a leap second are refused.
 */
#ifndef BASE_RFC3339_H
#define BASE_RFC3339_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	RFC3339_TEXT = 31 /* with the NUL */
};

/* Returns SLU_EINVAL and leaves *out unchanged if s is not a moment. */
int rfc3339_parse(struct slice s, slu_time *out, struct slu_err *err);

/* Writes the moment in UTC, its fraction without trailing zeros. Returns out. */
const char *rfc3339_format(slu_time t, char out[static RFC3339_TEXT]);

#endif
