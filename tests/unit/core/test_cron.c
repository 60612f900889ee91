#include "zonefile.h"

#include "base/rfc3339.h"
#include "core/calendar/cron.h"

static slu_time
at(const char *text)
{
	slu_time t;

	CHECK_EQ(0, rfc3339_parse(slice_of(text), &t, NULL), text);
	return t;
}

TEST(expressions_that_are_refused)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "empty" },
		{ "*", "no interval" },
		{ "* * * *", "wrong number of fields" },
		{ "* * * * * *", "wrong number of fields" },
		{ "60 * * * *", "minute" },
		{ "* 24 * * *", "hour" },
		{ "* * 0 * *", "day" },
		{ "* * * 13 *", "month" },
		{ "* * * * 8", "weekday" },
		{ "*/0 * * * *", "minute" },
		{ "5-1 * * * *", "minute" },
		{ "1, * * * *", "minute" },
		{ "1-2-3 * * * *", "minute" },
		{ "99999 * * * *", "minute" },
		{ "0 0 30 2 *", "no such day" },
		{ "@every", "no interval" },
		{ "@every 1x", "no interval" },
		{ "@every 999ms", "interval below 1s" },
		{ "0", "interval below 1s" },
		{ "@sometimes", "unknown name" },
		{ "@daily x", "unknown name" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };
		struct cron c;

		CHECK_EQ(SLU_EINVAL, cron_parse(&c, slice_of(cases[i].text), &err), cases[i].text);
		CHECK_CONTAINS(cases[i].says, err.text);
		CHECK_CONTAINS("expected 5 fields of cron", err.text);
	}
}

TEST(the_next_tick_of_an_expression)
{
	static const struct {
		const char *text, *zone, *after, *next;
	} cases[] = {
		{ "*/5 * * * *", NULL, "2026-11-16T10:00:00Z", "2026-11-16T10:05:00Z" },
		{ "*/5 * * * *", NULL, "2026-11-16T09:59:59.5Z", "2026-11-16T10:00:00Z" },
		{ "0 9 * * mon-fri", NULL, "2026-11-13T09:00:00Z", "2026-11-16T09:00:00Z" },
		{ "0 9 * * 1-5", "Europe/Berlin", "2026-11-13T09:00:00Z", "2026-11-16T08:00:00Z" },
		{ "0 0 L * *", NULL, "2028-02-01T00:00:00Z", "2028-02-29T00:00:00Z" },
		{ "0 0 29 2 *", NULL, "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z" },
		{ "0 0 13 * fri", NULL, "2026-11-16T00:00:00Z", "2026-11-20T00:00:00Z" }, /* CRON-1: or */
		{ "0 0 * * 7", NULL, "2026-11-16T00:00:00Z", "2026-11-22T00:00:00Z" },
		{ "0 0 1 JAN *", NULL, "2026-11-16T00:00:00Z", "2027-01-01T00:00:00Z" },
		{ "50/5 3 * * *", NULL, "2026-11-16T03:50:00Z", "2026-11-16T03:55:00Z" },
		{ "  1,31   *  * * * ", NULL, "2026-11-16T03:50:00Z", "2026-11-16T04:01:00Z" },
		{ "@hourly", NULL, "2026-11-16T03:50:00Z", "2026-11-16T04:00:00Z" },
		{ "@Daily", "Asia/Kolkata", "2026-11-16T03:50:00Z", "2026-11-16T18:30:00Z" },
		{ "@weekly", NULL, "2026-11-16T03:50:00Z", "2026-11-22T00:00:00Z" },
		{ "@monthly", NULL, "2026-11-16T03:50:00Z", "2026-12-01T00:00:00Z" },
		{ "@yearly", NULL, "2026-11-16T03:50:00Z", "2027-01-01T00:00:00Z" },
		/* CRON-2: in a gap its end; what comes twice the first time, and not again */
		{ "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z" },
		{ "0,30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z" },
		{ "30 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z" },
		{ "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z" },
		{ "30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-26T01:30:00Z" },
		/* CRON-3 */
		{ "30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z" },
		{ "30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z" },
		{ "*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:00:00Z" },
		/* CRON-4 */
		{ "@every 90s", NULL, "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z" },
		{ "90s", NULL, "2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z" },
		{ "1h30m", NULL, "2025-01-01T00:01:30Z", "2026-01-01T01:30:00Z" },
	};

	EACH(i, cases) {
		struct zone *z = cases[i].zone ? zonefile_open(cases[i].zone) : NULL;
		char next[RFC3339_TEXT];
		struct cron c;

		CHECK_EQ(0, cron_parse(&c, slice_of(cases[i].text), NULL), cases[i].text);
		CHECK_STR(cases[i].next,
			  rfc3339_format(cron_next(&c, z, at("2026-01-01T00:00:00Z"), at(cases[i].after)), next));
		zone_free(z);
	}
}

TEST(ticks_end_with_the_range_of_time)
{
	struct cron c;

	CHECK_EQ(0, cron_parse(&c, SLICE("* * * * *"), NULL));
	CHECK(cron_next(&c, NULL, 0, SLU_NEVER - 1) == SLU_NEVER);
	CHECK_EQ(0, cron_parse(&c, SLICE("1s"), NULL));
	CHECK(cron_next(&c, NULL, 0, SLU_NEVER - 1) == SLU_NEVER);
	CHECK_EQ(0, cron_parse(&c, SLICE("100000d"), NULL));
	CHECK(cron_next(&c, NULL, SLU_NEVER / 2, SLU_NEVER / 2 + 1) == SLU_NEVER);
}

/* ---- The oracle: minute by minute, with the local time of the C library. ---- */

enum {
	DAYS = 400,
	MINUTES = DAYS * 24 * 60
};

struct minute {
	int64_t local; /* seconds */
	int8_t field[5];
};

/* An expression, as text and as sets. */
struct random_cron {
	char text[400];
	bool has[5][64];
	bool star[5];
	bool elapsed;
};

static const int lowest[5] = { 0, 0, 1, 1, 0 };
static const int highest[5] = { 59, 23, 31, 12, 6 };

static uint64_t
below(uint64_t *seed, uint64_t n)
{
	return test_random(seed) % n;
}

static void
put_field(struct random_cron *r, int i, uint64_t *seed)
{
	const int n = highest[i] - lowest[i] + 1;
	const int from = lowest[i] + (int)below(seed, (uint64_t)n);
	const int step = 1 + (int)below(seed, (uint64_t)n);
	char *end = r->text + strlen(r->text);
	const size_t room = sizeof r->text - strlen(r->text);

	switch (below(seed, 5)) {
	case 0:
		(void)snprintf(end, room, "* ");
		for (int v = lowest[i]; v <= highest[i]; v++)
			r->has[i][v] = true;
		r->star[i] = true;
		r->elapsed |= i < 2;
		break;
	case 1:
		(void)snprintf(end, room, "*/%d ", step);
		for (int v = lowest[i]; v <= highest[i]; v += step)
			r->has[i][v] = true;
		r->star[i] = true;
		r->elapsed |= i < 2;
		break;
	case 2:
		(void)snprintf(end, room, "%d-%d ", from, highest[i]);
		for (int v = from; v <= highest[i]; v++)
			r->has[i][v] = true;
		break;
	default:
		(void)snprintf(end, room, "%d,%d ", from, highest[i]);
		r->has[i][from] = r->has[i][highest[i]] = true;
	}
}

static bool
oracle_matches(const struct random_cron *r, const int8_t field[static 5])
{
	const bool day = r->has[2][field[2]], weekday = r->has[4][field[4]];

	return r->has[0][field[0]] && r->has[1][field[1]] && r->has[3][field[3]] &&
	       (r->star[2] || r->star[4] ? day && weekday : day || weekday);
}

static void
split_fields(const struct tm *tm, int8_t field[static 5])
{
	field[0] = (int8_t)tm->tm_min;
	field[1] = (int8_t)tm->tm_hour;
	field[2] = (int8_t)tm->tm_mday;
	field[3] = (int8_t)(tm->tm_mon + 1);
	field[4] = (int8_t)tm->tm_wday;
}

static void
fill(struct minute *list, time_t start)
{
	for (int i = 0; i < MINUTES; i++) {
		const time_t t = start + (time_t)i * 60;
		struct tm tm;

		CHECK(localtime_r(&t, &tm));
		list[i].local = (int64_t)t + tm.tm_gmtoff;
		split_fields(&tm, list[i].field);
	}
}

/* Whether a local minute in (from, to] matches; CRON-2. */
static bool
any_matches(const struct random_cron *r, int64_t from, int64_t to)
{
	for (time_t local = (time_t)from + 60; local <= to; local += 60) {
		int8_t field[5];
		struct tm tm;

		CHECK(gmtime_r(&local, &tm));
		split_fields(&tm, field);
		if (oracle_matches(r, field))
			return true;
	}
	return false;
}

static void
compare(const struct random_cron *r, const struct zone *z, const struct minute *list, time_t start)
{
	int64_t highest_local = list[0].local;
	struct cron c;
	slu_time next;

	CHECK_EQ(0, cron_parse(&c, slice_of(r->text), NULL), r->text);
	next = cron_next(&c, z, 0, start * SLU_SEC);
	for (int i = 1; i < MINUTES; i++) {
		const slu_time now = (start + (slu_time)i * 60) * SLU_SEC;
		const int64_t local = list[i].local;
		bool due = false;

		if (r->elapsed || local == highest_local + 60)
			due = oracle_matches(r, list[i].field) && (r->elapsed || local > highest_local);
		else if (local > highest_local)
			due = any_matches(r, highest_local, local);
		if (local > highest_local)
			highest_local = local;
		CHECK_EQ(due, next == now, r->text);
		if (due)
			next = cron_next(&c, z, 0, now);
	}
}

static void
compare_zone(const char *name, uint64_t seed)
{
	static struct minute list[MINUTES];
	const time_t start = 1767225600 + (time_t)below(&seed, 300) * 86400; /* of 2026 */
	struct zone *z = zonefile_open(name);

	zonefile_oracle(name);
	fill(list, start);
	for (int i = 0; i < 20;) {
		struct random_cron r = { 0 };
		struct cron c;

		for (int f = 0; f < 5; f++)
			put_field(&r, f, &seed);
		if (cron_parse(&c, slice_of(r.text), NULL))
			continue; /* such as 30 February */
		compare(&r, z, list, start);
		i++;
	}
	zone_free(z);
}

TEST(ticks_are_those_of_a_search_minute_by_minute)
{
	static const char *const names[] = { "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
					     "Asia/Kolkata" };

	EACH(i, names)
		compare_zone(names[i], test_seed() + i);
}
