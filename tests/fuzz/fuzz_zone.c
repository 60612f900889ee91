/* fuzz_zone.c - in a zone that is read, the first moment of a local time is not later than any other. */
#include "fuzz.h"

#include "core/calendar/cron.h"

static void
check_at(const struct zone *z, int64_t moment)
{
	const int64_t local = zone_local(z, moment);
	const int64_t first = zone_moment(z, local);

	FUZZ_CHECK(first <= moment);
	FUZZ_CHECK(zone_local(z, first) >= local);
	FUZZ_CHECK(zone_next(z, moment) > moment);
}

static void
check_ticks(const struct zone *z, const char *text)
{
	slu_time after = 1700000000 * SLU_SEC;
	struct cron c;

	FUZZ_CHECK(cron_parse(&c, slice_of(text), NULL) == 0);
	for (int i = 0; i < 3; i++) {
		const slu_time next = cron_next(&c, z, 0, after);

		FUZZ_CHECK(next > after);
		after = next;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct zone *z;

	if (zone_new(&z, (struct slice){ (const char *)data, size }, NULL))
		return 0;
	for (int64_t moment = -4000000000; moment < 8000000000; moment += 123456789)
		check_at(z, moment);
	check_ticks(z, "30 2 * * *");
	check_ticks(z, "*/7 * * * *");
	zone_free(z);
	return 0;
}
