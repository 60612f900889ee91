/*
 * civil.h - dates of the Gregorian calendar and the seconds since 1970-01-01, without a time zone. Pure.
 */
#ifndef CORE_CALENDAR_CIVIL_H
#define CORE_CALENDAR_CIVIL_H

#include <stdint.h>

#define CIVIL_MINUTE 60
#define CIVIL_HOUR   3600
#define CIVIL_DAY    86400

struct civil {
	int year;
	int month;   /* 1 to 12 */
	int day;     /* 1 to 31 */
	int weekday; /* 0 = Sunday */
};

/* The days since 1970-01-01 of a date; negative before. */
int64_t civil_to_days(int year, int month, int day);

/* The date of such a day. */
struct civil civil_of_days(int64_t days);

/* How many days the month has. */
int civil_month_days(int year, int month);

/* The day of a second; rounds down, also before 1970. */
static inline int64_t
civil_day_of(int64_t seconds)
{
	return seconds / CIVIL_DAY - (seconds % CIVIL_DAY < 0);
}

#endif
