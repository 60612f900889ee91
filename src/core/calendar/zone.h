/*
 * zone.h - a time zone, from the bytes of a TZif file (RFC 9636) of the system's zoneinfo.
 *
 *      moment   seconds since 1970-01-01 UTC
 *      local    what a clock on the wall of the zone shows, in the same form: moment + offset
 *
 *      local ^            /            A gap: clocks go ahead, some local times do not exist.
 *            |       gap  :            An overlap: clocks go back, some local times come twice.
 *            |          / :   /
 *            |        /     / : overlap
 *            |      /       : /
 *            +--------------------> moment
 *
 *  ZONE-1  zone_moment of a local time in a gap is the end of the gap.
 *  ZONE-2  zone_moment of a local time in an overlap is the first of the two.
 *  ZONE-3  Behind the last transition of the file its footer holds, for ever.
 *
 * A zone of NULL is UTC. Pure: the caller reads the file. A zone does not change; any thread may
 * use it.
 */
#ifndef CORE_CALENDAR_ZONE_H
#define CORE_CALENDAR_ZONE_H

#include "base/bytes.h"

#include <sluice/err.h>

#define ZONE_NEVER INT64_MAX

enum {
	ZONE_LONGEST = 64,    /* bytes of a name */
	ZONE_FILE = 64 * 1024 /* bytes of the largest file that is accepted */
};

struct zone;

/* Reads a TZif file of version 2 or later, without leap seconds. Returns SLU_EINVAL or SLU_ENOMEM. */
int zone_new(struct zone **out, struct slice file, struct slu_err *err);
void zone_free(struct zone *z);

/* Checks that the name of a zone may be the name of a file: segments of letters, digits, _ + -, with
 * slashes between, as in America/New_York. Returns SLU_EINVAL. */
int zone_check_name(struct slice name, struct slu_err *err);

/* The seconds east of UTC at a moment. */
int32_t zone_offset(const struct zone *z, int64_t moment);

/* The next moment at which the offset may change; ZONE_NEVER if there is no more. */
int64_t zone_next(const struct zone *z, int64_t moment);

/* The first moment at which the local time is `local` or later (ZONE-1, ZONE-2). */
int64_t zone_moment(const struct zone *z, int64_t local);

static inline int64_t
zone_local(const struct zone *z, int64_t moment)
{
	return moment + zone_offset(z, moment);
}

#endif
