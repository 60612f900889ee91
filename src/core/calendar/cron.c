#include "core/calendar/cron.h"

#include "core/calendar/civil.h"

#define NO_MATCH INT64_MAX

/* 29 February is at most 8 years away. */
#define SEARCH_DAYS (9 * 366)

/* Later ticks are out of range. */
#define LATEST (SLU_NEVER / SLU_SEC - INT64_C(10) * 366 * CIVIL_DAY)

static bool
day_matches(const struct cron *c, int64_t day)
{
	const struct civil date = civil_of_days(day);
	const bool by_weekday = c->weekdays >> date.weekday & 1;
	const bool by_day = c->days >> date.day & 1 ||
			    (c->last_day && date.day == civil_month_days(date.year, date.month));

	if (!(c->months >> date.month & 1))
		return false;
	return c->both_days ? by_day && by_weekday : by_day || by_weekday;
}

/* The first minute of a day that matches, from `minute` on, or -1. */
static int
minute_from(const struct cron *c, int minute)
{
	for (int m = minute; m < 24 * 60; m++)
		if (c->hours >> (m / 60) & 1 && c->minutes >> (m % 60) & 1)
			return m;
	return -1;
}

/* The first local minute at or after `local` that matches, or NO_MATCH. */
static int64_t
match_from(const struct cron *c, int64_t local)
{
	const int64_t first = civil_day_of(local + CIVIL_MINUTE - 1);
	int minute = (int)((local + CIVIL_MINUTE - 1 - first * CIVIL_DAY) / CIVIL_MINUTE);

	for (int64_t day = first; day < first + SEARCH_DAYS; day++) {
		const int found = day_matches(c, day) ? minute_from(c, minute) : -1;

		if (found >= 0)
			return day * CIVIL_DAY + found * CIVIL_MINUTE;
		minute = 0;
	}
	return NO_MATCH;
}

/* CRON-3 */
static int64_t
next_elapsed(const struct cron *c, const struct zone *z, int64_t after)
{
	int64_t from = after + 1;

	for (;;) {
		const int32_t offset = zone_offset(z, from);
		const int64_t next = zone_next(z, from);
		const int64_t local = match_from(c, from + offset);

		if (local == NO_MATCH || local - offset < next)
			return local == NO_MATCH ? NO_MATCH : local - offset;
		from = next;
	}
}

/* CRON-2 */
static int64_t
next_local(const struct cron *c, const struct zone *z, int64_t after)
{
	int64_t local = match_from(c, zone_local(z, after) + 1);

	while (local != NO_MATCH) {
		const int64_t moment = zone_moment(z, local);

		if (moment > after)
			return moment;
		local = match_from(c, local + 1);
	}
	return NO_MATCH;
}

/* CRON-4 */
static slu_time
next_interval(slu_time every, slu_time anchor, slu_time after)
{
	const slu_time past = after > anchor ? (after - anchor) / every : 0;

	if (past >= (SLU_NEVER - anchor) / every)
		return SLU_NEVER;
	return anchor + (past + 1) * every;
}

slu_time
cron_next(const struct cron *c, const struct zone *z, slu_time anchor, slu_time after)
{
	const int64_t seconds = after / SLU_SEC;
	int64_t found;

	if (c->every > 0)
		return next_interval(c->every, anchor, after);
	if (seconds > LATEST)
		return SLU_NEVER;
	found = c->elapsed ? next_elapsed(c, z, seconds) : next_local(c, z, seconds);
	return found == NO_MATCH ? SLU_NEVER : found * SLU_SEC;
}
