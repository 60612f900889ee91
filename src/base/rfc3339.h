/*
 * rfc3339.h - moments as text: 2023-10-27T10:00:00.25Z, 2023-10-27T12:00:00+02:00.
 *
 * A moment is a slu_time of ns since 1970-01-01 UTC, so it lies between
 * 1677-09-21T00:12:43.145224192Z and 2262-04-11T23:47:16.854775806Z (one ns later is
 * SLU_NEVER). Strict: the date, a T, the time with its seconds, then Z or an offset,
 * which is never left out. T and Z may be small, as the RFC has it. Refused: what
 * would have to be rounded to ns, and a leap second, which has no ns of its own.
 */
#ifndef BASE_RFC3339_H
#define BASE_RFC3339_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	RFC3339_TEXT = 31 /* with the end */
};

/* SLU_EINVAL leaves *out as it was. */
int rfc3339_parse(struct slice s, slu_time *out, struct slu_err *err);

/* In UTC, without trailing zeros of a second. Returns out. */
const char *rfc3339_format(slu_time t, char out[static RFC3339_TEXT]);

#endif
