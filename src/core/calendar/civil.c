#include "core/calendar/civil.h"

#include <stdbool.h>

#define ERA_DAYS   146097 /* of 400 years */
#define EPOCH_DAYS 719468 /* from 0000-03-01 to 1970-01-01 */

/* Years begin in March here, so the leap day is the last day of its year. */

int64_t
civil_to_days(int year, int month, int day)
{
	const int64_t y = year - (month <= 2);
	const int64_t era = (y >= 0 ? y : y - 399) / 400;
	const int64_t of_era = y - era * 400;
	const int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS;
}

struct civil
civil_of_days(int64_t days)
{
	const int64_t z = days + EPOCH_DAYS;
	const int64_t era = (z >= 0 ? z : z - (ERA_DAYS - 1)) / ERA_DAYS;
	const int64_t of_era = z - era * ERA_DAYS;
	const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
	const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	const int64_t month = (5 * of_year + 2) / 153;

	return (struct civil){
		.year = (int)(year + era * 400 + (month >= 10)),
		.month = (int)(month < 10 ? month + 3 : month - 9),
		.day = (int)(of_year - (153 * month + 2) / 5 + 1),
		.weekday = (int)(((days + 4) % 7 + 7) % 7),
	};
}

int
civil_month_days(int year, int month)
{
	static const int days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}
