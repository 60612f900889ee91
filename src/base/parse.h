/*
 * parse.h - numbers, sizes and lengths of time as people write them.
 *
 *      duration   "100ms"  "20s"  "1.5s"  "1h30m"  "7d"  "0"
 *                 units d h m s ms us ns, larger before smaller, each once; only
 *                 the last part may have a fraction. A number without a unit is
 *                 refused, for nobody knows whether 20 is seconds; 0 needs none.
 *      size       "4096"  "512k"  "64M"  "1GiB"
 *                 k M G T, in either case, alone or with B or iB, are always powers
 *                 of 1024: memory and disks are set aside in those. B is bytes.
 *      number     digits, for parse_i64 perhaps a minus before them
 *
 * Strict: no spaces, no plus, no leading zeros, nothing after the end, nothing that
 * would have to be rounded or does not fit. A refusal is SLU_EINVAL, leaves *out as
 * it was, and names the value and what would have been right.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	DURATION_TEXT = 40, /* room for any duration, and its end */
	SIZE_TEXT = 24,
	SHOWN_TEXT = 48
};

/* 0 or more, and less than SLU_NEVER. */
int parse_duration(struct slice s, slu_time *out, struct slu_err *err);
int parse_size(struct slice s, uint64_t *out, struct slu_err *err);

/* min and max are allowed themselves. */
int parse_u64(struct slice s, uint64_t min, uint64_t max, uint64_t *out,
	      struct slu_err *err);
int parse_i64(struct slice s, int64_t min, int64_t max, int64_t *out,
	      struct slu_err *err);

/* The shortest spelling that parses to the same: "1h30m", "1.5s", "64M". They
 * return out, which is cut when n is too small. A negative duration gets a minus
 * and SLU_NEVER is "never"; those two do not parse. */
const char *format_duration(slu_time t, char *out, size_t n);
const char *format_size(uint64_t size, char *out, size_t n);

/* A value in quotes as a message may show it: cut when long, and with a ? for all
 * but printable ASCII. Returns out. */
const char *parse_shown(struct slice s, char out[static SHOWN_TEXT]);

#endif
