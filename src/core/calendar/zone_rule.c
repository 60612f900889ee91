#include "core/calendar/zone_rule.h"

#include "core/calendar/civil.h"
#include "core/calendar/zone.h"

static bool
take_char(struct slice *s, char c)
{
	if (s->n == 0 || *s->p != c)
		return false;
	slice_skip(s, 1);
	return true;
}

/* Takes 1 to 3 digits with a value between min and max. */
static bool
take_number(struct slice *s, int min, int max, int *out)
{
	int digits = 0;

	*out = 0;
	while (s->n > 0 && *s->p >= '0' && *s->p <= '9' && digits < 3) {
		*out = *out * 10 + (*s->p - '0');
		slice_skip(s, 1);
		digits++;
	}
	return digits > 0 && *out >= min && *out <= max;
}

/* Takes hh, hh:mm or hh:mm:ss, with a sign. */
static bool
take_time(struct slice *s, int max_hours, int32_t *out)
{
	const int sign = take_char(s, '-') ? -1 : 1;
	int hours, minutes = 0, seconds = 0;

	if (sign > 0)
		(void)take_char(s, '+');
	if (!take_number(s, 0, max_hours, &hours))
		return false;
	if (take_char(s, ':')) {
		if (!take_number(s, 0, 59, &minutes))
			return false;
		if (take_char(s, ':') && !take_number(s, 0, 59, &seconds))
			return false;
	}
	*out = sign * (hours * CIVIL_HOUR + minutes * CIVIL_MINUTE + seconds);
	return true;
}

static bool
is_letter(char c)
{
	return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

/* Takes an abbreviation: letters, or anything between < and >. */
static bool
take_abbreviation(struct slice *s)
{
	struct slice name;
	size_t n = 0;

	if (take_char(s, '<'))
		return slice_cut(s, '>', &name) && name.n >= 3;
	while (n < s->n && is_letter(s->p[n]))
		n++;
	slice_skip(s, n);
	return n >= 3;
}

static bool
take_day(struct slice *s, struct zone_day *out)
{
	bool valid;

	*out = (struct zone_day){ .time = 2 * CIVIL_HOUR };
	if (take_char(s, 'M')) {
		out->kind = ZONE_DAY_OF_MONTH;
		valid = take_number(s, 1, 12, &out->month) && take_char(s, '.') &&
			take_number(s, 1, 5, &out->week) && take_char(s, '.') && take_number(s, 0, 6, &out->day);
	} else if (take_char(s, 'J')) {
		out->kind = ZONE_DAY_JULIAN;
		valid = take_number(s, 1, 365, &out->day);
	} else {
		out->kind = ZONE_DAY_OF_YEAR;
		valid = take_number(s, 0, 365, &out->day);
	}
	return valid && (!take_char(s, '/') || take_time(s, 167, &out->time));
}

/* POSIX counts offsets west of Greenwich. */
static bool
take_offset(struct slice *s, int32_t *out)
{
	if (!take_time(s, 24, out))
		return false;
	*out = -*out;
	return true;
}

bool
zone_rule_parse(struct slice text, struct zone_rule *out)
{
	struct slice s = text;

	*out = (struct zone_rule){ 0 };
	if (!take_abbreviation(&s) || !take_offset(&s, &out->standard))
		return false;
	out->summer = out->standard;
	if (s.n == 0)
		return true;
	out->has_summer = true;
	out->summer = out->standard + CIVIL_HOUR;
	if (!take_abbreviation(&s) || (s.n > 0 && *s.p != ',' && !take_offset(&s, &out->summer)))
		return false;
	return take_char(&s, ',') && take_day(&s, &out->begins) && take_char(&s, ',') && take_day(&s, &out->ends) &&
	       s.n == 0;
}

static int64_t
day_of_month(const struct zone_day *d, int year)
{
	const int64_t first = civil_to_days(year, d->month, 1);
	const int length = civil_month_days(year, d->month);
	int day = (d->day - civil_of_days(first).weekday + 7) % 7 + 7 * (d->week - 1);

	while (day >= length)
		day -= 7;
	return first + day;
}

/* The local second of the change in a year. */
static int64_t
local_change(const struct zone_day *d, int year)
{
	int64_t day;

	if (d->kind == ZONE_DAY_OF_MONTH)
		day = day_of_month(d, year);
	else if (d->kind == ZONE_DAY_OF_YEAR)
		day = civil_to_days(year, 1, 1) + d->day;
	else
		day = civil_to_days(year, 1, 1) + d->day - 1 + (d->day > 59 && civil_month_days(year, 2) == 29);
	return day * CIVIL_DAY + d->time;
}

/* The first and the last change around a moment, of the changes of three years. */
struct around {
	int64_t before; /* the last change at or before the moment */
	bool summer;    /* begins with it */
	int64_t after;  /* the first change after the moment */
};

static void
look_at(struct around *a, int64_t moment, int64_t change, bool summer)
{
	if (change > moment && change < a->after)
		a->after = change;
	if (change <= moment && (change > a->before || (change == a->before && summer))) {
		a->before = change;
		a->summer = summer;
	}
}

static struct around
look_around(const struct zone_rule *r, int64_t moment)
{
	const int year = civil_of_days(civil_day_of(moment)).year;
	struct around a = { .before = INT64_MIN, .after = ZONE_NEVER };

	for (int y = year - 1; y <= year + 1; y++) {
		look_at(&a, moment, local_change(&r->begins, y) - r->standard, true);
		look_at(&a, moment, local_change(&r->ends, y) - r->summer, false);
	}
	return a;
}

int32_t
zone_rule_offset(const struct zone_rule *r, int64_t moment)
{
	return r->has_summer && look_around(r, moment).summer ? r->summer : r->standard;
}

int64_t
zone_rule_next(const struct zone_rule *r, int64_t moment)
{
	return r->has_summer ? look_around(r, moment).after : ZONE_NEVER;
}
