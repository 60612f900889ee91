#include "test.h"

#include "base/rfc3339.h"

#include <time.h>

TEST(times_are_read)
{
	static const struct {
		const char *text;
		slu_time want;
	} cases[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1970-01-01T00:00:00.000000001Z", 1 },
		{ "1969-12-31T23:59:59.999999999Z", -1 },
		{ "1969-12-31T23:59:59Z", -SLU_SEC },
		{ "2023-10-27T10:00:00Z", 1698400800 * SLU_SEC },
		{ "2023-10-27t10:00:00z", 1698400800 * SLU_SEC },
		{ "2023-10-27T12:00:00+02:00", 1698400800 * SLU_SEC },
		{ "2023-10-27T04:30:00-05:30", 1698400800 * SLU_SEC },
		{ "2023-10-27T10:00:00-00:00", 1698400800 * SLU_SEC },
		{ "2023-10-28T09:59:00+23:59", 1698400800 * SLU_SEC },
		{ "2023-10-27T10:00:00.25Z", 1698400800 * SLU_SEC + 250 * SLU_MS },
		{ "2023-10-27T10:00:00.123456789+00:00", 1698400800 * SLU_SEC + 123456789 },
		{ "2023-10-27T10:00:00.1000000000000Z", 1698400800 * SLU_SEC + 100 * SLU_MS },
		{ "2000-02-29T00:00:00Z", 951782400 * SLU_SEC },
		{ "2024-02-29T23:59:59Z", 1709251199 * SLU_SEC },
		{ "2100-03-01T00:00:00Z", 4107542400 * SLU_SEC },
		{ "1677-09-21T00:12:43.145224192Z", INT64_MIN },
		{ "2262-04-11T23:47:16.854775806Z", SLU_NEVER - 1 },
		{ "2262-04-12T01:47:16.854775806+02:00", SLU_NEVER - 1 },
	};

	EACH(i, cases) {
		struct slu_err err;
		slu_time got = 77;

		if (rfc3339_parse(slice_of(cases[i].text), &got, &err))
			test_fail(__FILE__, __LINE__, "%s", err.text);
		CHECK_EQ(cases[i].want, got, cases[i].text);
	}
}

TEST(what_is_no_time_is_refused)
{
	static const struct {
		const char *label;
		const char *text;
	} cases[] = {
		{ "nothing", "" },
		{ "a date alone", "2023-10-27" },
		{ "no offset", "2023-10-27T10:00:00" },
		{ "no seconds", "2023-10-27T10:00Z" },
		{ "a space for the T", "2023-10-27 10:00:00Z" },
		{ "space before", " 2023-10-27T10:00:00Z" },
		{ "space after", "2023-10-27T10:00:00Z " },
		{ "two digits of a year", "23-10-27T10:00:00Z" },
		{ "five digits of a year", "12023-10-27T10:00:00Z" },
		{ "one digit of a month", "2023-1-27T10:00:00Z" },
		{ "a sign", "+2023-10-27T10:00:00Z" },
		{ "no dashes", "20231027T100000Z" },
		{ "month 0", "2023-00-27T10:00:00Z" },
		{ "month 13", "2023-13-27T10:00:00Z" },
		{ "day 0", "2023-10-00T10:00:00Z" },
		{ "day 32", "2023-10-32T10:00:00Z" },
		{ "April 31", "2023-04-31T10:00:00Z" },
		{ "no leap year", "2023-02-29T10:00:00Z" },
		{ "no leap century", "2100-02-29T10:00:00Z" },
		{ "February 30", "2024-02-30T10:00:00Z" },
		{ "hour 24", "2023-10-27T24:00:00Z" },
		{ "minute 60", "2023-10-27T10:60:00Z" },
		{ "second 61", "2023-10-27T10:00:61Z" },
		{ "a leap second", "2016-12-31T23:59:60Z" },
		{ "point without digits", "2023-10-27T10:00:00.Z" },
		{ "comma", "2023-10-27T10:00:00,5Z" },
		{ "finer than a ns", "2023-10-27T10:00:00.0000000001Z" },
		{ "offset without colon", "2023-10-27T10:00:00+0200" },
		{ "offset of hours alone", "2023-10-27T10:00:00+02" },
		{ "offset hour 24", "2023-10-27T10:00:00+24:00" },
		{ "offset minute 60", "2023-10-27T10:00:00+02:60" },
		{ "offset and Z", "2023-10-27T10:00:00+02:00Z" },
		{ "a zone by name", "2023-10-27T10:00:00UTC" },
		{ "letters", "2o23-10-27T10:00:00Z" },
		{ "year 0", "0000-10-27T10:00:00Z" },
		{ "too early", "1677-09-21T00:12:43.145224191Z" },
		{ "too early by the offset", "1677-09-21T00:12:44.5+00:01" },
		{ "never", "2262-04-11T23:47:16.854775807Z" },
		{ "too late", "2262-04-11T23:47:17Z" },
		{ "far too late", "9999-12-31T23:59:59Z" },
		{ "far too early", "0001-01-01T00:00:00Z" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };
		slu_time got = -7;

		if (rfc3339_parse(slice_of(cases[i].text), &got, &err) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "took %s", cases[i].label);
		CHECK_EQ(SLU_EINVAL, err.code);
		CHECK_EQ(-7, got, "left as it was");
	}
}

TEST(a_time_ends_where_its_slice_does)
{
	static const char text[] = "2023-10-27T10:00:00.5+02:00";
	slu_time t;

	for (size_t n = 0; n < sizeof text - 1; n++)
		CHECK_EQ(SLU_EINVAL, rfc3339_parse((struct slice){ text, n }, &t, NULL));
	CHECK_EQ(0, rfc3339_parse(SLICE(text), &t, NULL));
}

TEST(a_refusal_shows_what_is_right)
{
	struct slu_err err;
	slu_time t;

	CHECK_EQ(SLU_EINVAL, rfc3339_parse(SLICE("soon"), &t, &err));
	CHECK_STR("\"soon\": expected a time as 2023-10-27T10:00:00Z or "
		  "2023-10-27T12:00:00.25+02:00",
		  err.text);
	CHECK_EQ(SLU_EINVAL, rfc3339_parse(SLICE("9999-12-31T23:59:59Z"), &t, &err));
	CHECK_STR("\"9999-12-31T23:59:59Z\": expected a time from 1677-09-21T00:12:44Z to "
		  "2262-04-11T23:47:16Z",
		  err.text);
}

TEST(times_are_written_in_utc)
{
	static const struct {
		slu_time t;
		const char *want;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00Z" },
		{ 1, "1970-01-01T00:00:00.000000001Z" },
		{ -1, "1969-12-31T23:59:59.999999999Z" },
		{ 1698400800 * SLU_SEC + 250 * SLU_MS, "2023-10-27T10:00:00.25Z" },
		{ 1709164800 * SLU_SEC, "2024-02-29T00:00:00Z" },
		{ INT64_MIN, "1677-09-21T00:12:43.145224192Z" },
		{ INT64_MAX, "2262-04-11T23:47:16.854775807Z" },
	};

	EACH(i, cases) {
		char text[RFC3339_TEXT];

		CHECK_STR(cases[i].want, rfc3339_format(cases[i].t, text));
	}
}

/* Every day there is, against libc. */
TEST(every_day_is_what_libc_says)
{
	const int64_t first = INT64_MIN / SLU_SEC / 86400;
	const int64_t last = INT64_MAX / SLU_SEC / 86400;

	for (int64_t day = first; day <= last; day++) {
		const time_t seconds = day * 86400 + 86399 * (day < last && day > first);
		char text[RFC3339_TEXT], want[RFC3339_TEXT];
		struct tm tm;
		slu_time back;

		gmtime_r(&seconds, &tm);
		strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%SZ", &tm);
		CHECK_STR(want, rfc3339_format(seconds * SLU_SEC, text));
		CHECK_EQ(0, rfc3339_parse(slice_of(text), &back, NULL));
		CHECK_EQ(seconds * SLU_SEC, back);
	}
}

TEST(random_times_come_back)
{
	uint64_t seed = test_seed();

	for (int round = 0; round < 100000; round++) {
		const slu_time t = (slu_time)test_random(&seed);
		char text[RFC3339_TEXT];
		slu_time back = 0;

		CHECK_EQ(0, rfc3339_parse(slice_of(rfc3339_format(t, text)), &back, NULL), "any");
		CHECK_EQ(t, back);
	}
}
