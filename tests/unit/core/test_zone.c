#include "zonefile.h"

#include "core/calendar/civil.h"

static const char *const names[] = {
	"Europe/Berlin",
	"America/New_York",
	"Australia/Lord_Howe",
	"Asia/Kolkata",
	"Africa/Casablanca",
	"Europe/Dublin",
	"America/Sao_Paulo",
	"Pacific/Apia",
	"America/Scoresbysund",
	"Asia/Tehran",
	"UTC",
	"Antarctica/Troll",
};

TEST(dates_are_those_of_the_c_library)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < 20000; i++) {
		const int64_t day = (int64_t)(test_random(&seed) % 200000) - 60000;
		const struct civil date = civil_of_days(day);
		const time_t t = day * CIVIL_DAY;
		struct tm tm;

		CHECK(gmtime_r(&t, &tm));
		CHECK_EQ(tm.tm_year + 1900, date.year);
		CHECK_EQ(tm.tm_mon + 1, date.month);
		CHECK_EQ(tm.tm_mday, date.day);
		CHECK_EQ(tm.tm_wday, date.weekday);
		CHECK_EQ(day, civil_to_days(date.year, date.month, date.day));
	}
}

TEST(offsets_are_those_of_the_c_library)
{
	uint64_t seed = test_seed();

	EACH(i, names) {
		struct zone *z = zonefile_open(names[i]);

		zonefile_oracle(names[i]);
		for (int j = 0; j < 5000; j++) {
			const time_t t = (time_t)(test_random(&seed) % 4000000000u); /* to the year 2096 */
			struct tm tm;

			CHECK(localtime_r(&t, &tm));
			CHECK_EQ(tm.tm_gmtoff, zone_offset(z, t), names[i]);
		}
		zone_free(z);
	}
}

TEST(every_transition_is_found_once_and_in_order)
{
	EACH(i, names) {
		struct zone *z = zonefile_open(names[i]);
		int64_t at = 0, day = 0;

		while (at < 4000000000) {
			const int64_t next = zone_next(z, at);

			CHECK(next > at);
			for (; day < next && day < 4000000000; day += CIVIL_DAY)
				if (day > at)
					CHECK_EQ(zone_offset(z, at), zone_offset(z, day), names[i]);
			at = next;
		}
		zone_free(z);
	}
}

TEST(a_local_time_in_a_gap_is_its_end_and_one_that_comes_twice_is_the_first)
{
	static const struct {
		const char *zone;
		int64_t local, moment;
	} cases[] = {
		/* 2026-03-29T02:30 does not exist: 03:00+02:00 */
		{ "Europe/Berlin", 1774751400, 1774746000 },
		{ "Europe/Berlin", 1774749599, 1774745999 }, /* 01:59:59+01:00 */
		{ "Europe/Berlin", 1774753200, 1774746000 }, /* 03:00+02:00 */
		/* 2026-10-25T02:30 comes twice: 02:30+02:00 */
		{ "Europe/Berlin", 1792895400, 1792888200 },
		/* 2026-10-04T02:10 does not exist: 02:30+11:00; half an hour */
		{ "Australia/Lord_Howe", 1791079800, 1791041400 },
		{ "Asia/Kolkata", 1774751400, 1774731600 },
	};

	EACH(i, cases) {
		struct zone *z = zonefile_open(cases[i].zone);

		CHECK_EQ(cases[i].moment, zone_moment(z, cases[i].local), cases[i].zone);
		zone_free(z);
	}
	CHECK_EQ(5, zone_moment(NULL, 5));
	CHECK_EQ(0, zone_offset(NULL, 5));
	CHECK(zone_next(NULL, 5) == ZONE_NEVER);
}

TEST(a_file_that_is_cut_is_refused)
{
	static char bytes[ZONE_FILE];
	FILE *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
	struct zone *z;
	size_t n;

	CHECK(f);
	n = fread(bytes, 1, sizeof bytes, f);
	(void)fclose(f);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(SLU_EINVAL, zone_new(&z, (struct slice){ bytes, i }, NULL));
}

TEST(names_of_zones_do_not_leave_the_folder)
{
	static const struct {
		const char *name;
		int rc;
	} cases[] = {
		{ "UTC", 0 },
		{ "America/Argentina/Buenos_Aires", 0 },
		{ "Etc/GMT+5", 0 },
		{ "", SLU_EINVAL },
		{ "../passwd", SLU_EINVAL },
		{ "/etc/passwd", SLU_EINVAL },
		{ "Europe//Berlin", SLU_EINVAL },
		{ "Europe/", SLU_EINVAL },
		{ "a b", SLU_EINVAL },
	};
	struct slu_err err;

	EACH(i, cases)
		CHECK_EQ(cases[i].rc, zone_check_name(slice_of(cases[i].name), &err), cases[i].name);
	CHECK_EQ(SLU_EINVAL, zone_check_name(SLICE("a b"), &err));
	CHECK_STR("invalid time zone \"a b\"; expected a name such as UTC or Europe/Berlin", err.text);
}

TORTURE(a_zone_without_memory)
{
	static char bytes[ZONE_FILE];
	FILE *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
	struct zone *z = NULL;
	size_t n;
	int rc;

	CHECK(f);
	n = fread(bytes, 1, sizeof bytes, f);
	(void)fclose(f);
	rc = zone_new(&z, (struct slice){ bytes, n }, NULL);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	zone_free(z);
}
