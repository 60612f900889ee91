/*
 * cron.h - when a schedule is due: a cron expression, or an interval.
 *
 *      ┌───────── minute   0-59
 *      │ ┌─────── hour     0-23
 *      │ │ ┌───── day      1-31, L = the last of the month
 *      │ │ │ ┌─── month    1-12 or jan-dec
 *      │ │ │ │ ┌─ weekday  0-7 or sun-sat; 0 and 7 are Sunday
 *      0 9 * * mon-fri
 *
 *      a field     *  5  1-5  1,3,5  mon-fri  * /10 (without the blank)  0-30/10  5/10 = 5-59/10
 *      a name      @hourly @daily @midnight @weekly @monthly @yearly @annually
 *      interval    @every 90s, or 90s alone: of 1 s or more, from the anchor on
 *
 * The moment at which a schedule is due is a tick.
 *
 *  CRON-1  Day and weekday both restricted: one of them must match. If one of the two fields begins with *,
 *          both must match.
 *  CRON-2  Minute and hour without * and without step: a tick is a local time. In a gap of the zone it is
 *          the end of the gap, once; in an overlap the first of the two (core/calendar/zone.h).
 *  CRON-3  Otherwise a tick is each moment whose local time matches: nothing comes in a gap for the local
 *          times that do not exist, and times of an overlap come twice.
 *  CRON-4  The ticks of an interval are anchor + k * interval, k = 1, 2, ...
 *  CRON-5  cron_next is later than `after`.
 *
 * Pure.
 */
#ifndef CORE_CALENDAR_CRON_H
#define CORE_CALENDAR_CRON_H

#include "core/calendar/zone.h"

enum {
	CRON_LONGEST = 128 /* bytes of an expression */
};

struct cron {
	slu_time every;   /* the interval; 0: a cron expression */
	uint64_t minutes; /* bit 0 to 59 */
	uint32_t hours;   /* bit 0 to 23 */
	uint32_t days;    /* bit 1 to 31 */
	uint16_t months;  /* bit 1 to 12 */
	uint8_t weekdays; /* bit 0 to 6 */
	bool last_day;    /* L */
	bool both_days;   /* CRON-1: both fields must match */
	bool elapsed;     /* CRON-3 */
};

/* Returns SLU_EINVAL, also for an expression that is never due, such as 30 February. */
int cron_parse(struct cron *out, struct slice text, struct slu_err *err);

/* The first tick after a moment, 0 or more; SLU_NEVER if that is not in range. */
slu_time cron_next(const struct cron *c, const struct zone *z, slu_time anchor, slu_time after);

#endif
