#include "base/rfc3339.h"

#include "base/parse.h"

#define DAY_SECONDS 86400
#define CYCLE_DAYS  146097 /* of 400 years */
#define EPOCH_DAYS  719162 /* from 0001-01-01 to 1970-01-01 */

struct date_time {
	int year, month, day;
	int hour, minute, second;
	int ns;
	int offset; /* minutes east of UTC */
};

/* Days of a year before its months; the 13th is the next year. */
static const int days_before[13] = { 0, 31, 59, 90, 120, 151, 181,
				     212, 243, 273, 304, 334, 365 };

static bool
is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* The days of a year before a month, 1 to 13. */
static int
days_to_month(int year, int month)
{
	return days_before[month - 1] + (month > 2 && is_leap(year));
}

static int
days_in_month(int year, int month)
{
	return days_to_month(year, month + 1) - days_to_month(year, month);
}

/* The days before a year, from the year 1 on. */
static int64_t
days_to_year(int year)
{
	const int64_t past = year - 1;

	return past * 365 + past / 4 - past / 100 + past / 400;
}

/* n digits at the front of s, which must lie between min and max. */
static bool
take_number(struct slice *s, size_t n, int min, int max, int *out)
{
	*out = 0;
	if (s->n < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return false;
		*out = *out * 10 + (s->p[i] - '0');
	}
	slice_skip(s, n);
	return *out >= min && *out <= max;
}

/* One of two characters at the front of s. */
static bool
take_either(struct slice *s, char a, char b)
{
	if (s->n == 0 || (*s->p != a && *s->p != b))
		return false;
	slice_skip(s, 1);
	return true;
}

static bool
take_date(struct slice *s, struct date_time *m)
{
	return take_number(s, 4, 1, 9999, &m->year) && take_either(s, '-', '-') &&
	       take_number(s, 2, 1, 12, &m->month) && take_either(s, '-', '-') &&
	       take_number(s, 2, 1, days_in_month(m->year, m->month), &m->day);
}

/* The digits after the point: at least one, and only zeros below a ns. */
static bool
take_fraction(struct slice *s, struct date_time *m)
{
	int unit = 100000000;
	int digit;

	if (s->n == 0 || *s->p < '0' || *s->p > '9')
		return false;
	while (s->n > 0 && take_number(s, 1, 0, 9, &digit)) {
		if (unit == 0 && digit > 0)
			return false;
		m->ns += digit * unit;
		unit /= 10;
	}
	return true;
}

static bool
take_time(struct slice *s, struct date_time *m)
{
	return take_number(s, 2, 0, 23, &m->hour) && take_either(s, ':', ':') &&
	       take_number(s, 2, 0, 59, &m->minute) && take_either(s, ':', ':') &&
	       take_number(s, 2, 0, 59, &m->second) &&
	       (!take_either(s, '.', '.') || take_fraction(s, m));
}

static bool
take_offset(struct slice *s, struct date_time *m)
{
	const int sign = s->n > 0 && *s->p == '-' ? -1 : 1;
	int hours, minutes;

	if (take_either(s, 'Z', 'z'))
		return true;
	if (!take_either(s, '+', '-') || !take_number(s, 2, 0, 23, &hours) ||
	    !take_either(s, ':', ':') || !take_number(s, 2, 0, 59, &minutes))
		return false;
	m->offset = sign * (hours * 60 + minutes);
	return true;
}

/* Returns false if the moment is out of range. The first moments in range have whole seconds that are
 * out of range, so one second goes to the ns. */
static bool
to_time(const struct date_time *m, slu_time *out)
{
	const int64_t days = days_to_year(m->year) + days_to_month(m->year, m->month) +
			     m->day - 1 - EPOCH_DAYS;
	int64_t seconds = days * DAY_SECONDS + (m->hour * 60 + m->minute) * 60 +
			  m->second - m->offset * 60;
	int64_t ns = m->ns;

	if (seconds < 0 && ns > 0) {
		seconds++;
		ns -= SLU_SEC;
	}
	return !__builtin_mul_overflow(seconds, SLU_SEC, out) &&
	       !__builtin_add_overflow(*out, ns, out) && *out != SLU_NEVER;
}

int
rfc3339_parse(struct slice s, slu_time *out, struct slu_err *err)
{
	struct slice rest = s;
	struct date_time m = { 0 };
	char shown[SHOWN_TEXT];
	slu_time t;

	if (!take_date(&rest, &m) || !take_either(&rest, 'T', 't') ||
	    !take_time(&rest, &m) || !take_offset(&rest, &m) || rest.n > 0)
		return slu_fail(err, SLU_EINVAL,
				"%s: expected a time as 2023-10-27T10:00:00Z or "
				"2023-10-27T12:00:00.25+02:00",
				parse_shown(s, shown));
	if (!to_time(&m, &t))
		return slu_fail(err, SLU_EINVAL,
				"%s: expected a time from 1677-09-21T00:12:44Z to "
				"2262-04-11T23:47:16Z",
				parse_shown(s, shown));
	*out = t;
	return 0;
}

static void
set_date(struct date_time *m, int64_t days)
{
	m->year = (int)(days * 400 / CYCLE_DAYS) + 1; /* at most one too early */
	if (days_to_year(m->year + 1) <= days)
		m->year++;
	days -= days_to_year(m->year);
	m->month = (int)(days / 31) + 1; /* at most one too early */
	if (days_to_month(m->year, m->month + 1) <= days)
		m->month++;
	m->day = (int)days - days_to_month(m->year, m->month) + 1;
}

/* Writes two digits of n and a character. Returns the end. printf would take longer than the rest of
 * a message. */
static char *
put_pair(char *out, int n, char behind)
{
	out[0] = (char)('0' + n / 10);
	out[1] = (char)('0' + n % 10);
	out[2] = behind;
	return out + 3;
}

/* Writes the point and nine digits without trailing zeros; nothing if all are zero. */
static char *
put_fraction(char *out, int ns)
{
	for (int i = 9; i-- > 0; ns /= 10)
		out[i] = (char)('0' + ns % 10);
	out += 9;
	while (out[-1] == '0')
		out--;
	out -= out[-1] == '.';
	*out = 'Z';
	return out + 1;
}

const char *
rfc3339_format(slu_time t, char out[static RFC3339_TEXT])
{
	const int64_t seconds = t / SLU_SEC - (t % SLU_SEC < 0);
	const int64_t days = seconds / DAY_SECONDS - (seconds % DAY_SECONDS < 0);
	const int of_day = (int)(seconds - days * DAY_SECONDS);
	struct date_time m = { 0 };
	char *p = out;

	set_date(&m, days + EPOCH_DAYS);
	(void)put_pair(p, m.year / 100, '-');
	p = put_pair(p + 2, m.year % 100, '-');
	p = put_pair(p, m.month, '-');
	p = put_pair(p, m.day, 'T');
	p = put_pair(p, of_day / 3600, ':');
	p = put_pair(p, of_day / 60 % 60, ':');
	p = put_pair(p, of_day % 60, '.');
	p = put_fraction(p, (int)((t % SLU_SEC + SLU_SEC) % SLU_SEC));
	*p = '\0';
	return out;
}
