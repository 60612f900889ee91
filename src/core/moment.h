/*
 * moment.h - dates and times in documents and in the conditions on them.
 *
 *      2025-06-01                     a day, of UTC
 *      2025-06-01T12:00:00+02:00      a moment of RFC 3339
 *      2025-06-01T10:00:00            the same without an offset: UTC
 *
 * A day and a moment are equal if the moment is on that day, in UTC. For < and >, a day is its
 * midnight.
 */
#ifndef CORE_MOMENT_H
#define CORE_MOMENT_H

#include "base/bytes.h"

struct moment {
	slu_time at; /* of a day: its midnight */
	bool is_day;
};

/* Returns false if the text is neither. Ignores blanks around it. */
bool moment_parse(struct slice text, struct moment *out);

/* Also accepts now, today and yesterday, without regard to case. */
bool moment_parse_since(struct slice text, slu_time now, struct moment *out);

bool moment_eq(struct moment a, struct moment b);

#endif
