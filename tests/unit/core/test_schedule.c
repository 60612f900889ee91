/*
 * The rules of a schedule, SCHEDULE-1 to SCHEDULE-5, with a clock that the test moves.
 */
#include "zonefile.h"

#include "base/rfc3339.h"
#include "core/schedule/schedule_doc.h"

static slu_time
at(const char *text)
{
	slu_time t;

	CHECK_EQ(0, rfc3339_parse(slice_of(text), &t, NULL), text);
	return t;
}

/* A schedule that began at `began`, and its plan. */
static struct schedule_plan
make(struct schedule *s, const char *when, const char *missed, slu_time began)
{
	struct schedule_plan p = { 0 };

	*s = (struct schedule){ .message = SLICE("{\"queue\":\"q\"}") };
	strcpy(s->name, "nightly");
	strcpy(s->when, when);
	CHECK_EQ(0, schedule_missed_parse(slice_of(missed), s, NULL));
	CHECK_EQ(0, cron_parse(&p.cron, slice_of(when), NULL));
	schedule_take(s, NULL, began);
	return p;
}

TEST(ticks_that_were_missed_fire_by_the_policy)
{
	static const struct {
		const char *missed, *now, *first;
		unsigned n, lost;
	} cases[] = {
		{ "one", "2026-11-16T10:00:59Z", NULL, 0, 0 },
		{ "one", "2026-11-16T10:01:00Z", "2026-11-16T10:01:00Z", 1, 0 },
		{ "one", "2026-11-16T10:05:30Z", "2026-11-16T10:05:00Z", 1, 4 },
		{ "skip", "2026-11-16T10:01:30Z", "2026-11-16T10:01:00Z", 1, 0 },
		{ "skip", "2026-11-16T10:05:30Z", "2026-11-16T10:05:00Z", 1, 4 },
		{ "all:3", "2026-11-16T10:05:30Z", "2026-11-16T10:03:00Z", 3, 2 },
		{ "all:100", "2026-11-16T10:05:30Z", "2026-11-16T10:01:00Z", 5, 0 },
	};

	EACH(i, cases) {
		struct schedule s;
		const struct schedule_plan p = make(&s, "* * * * *", cases[i].missed, at("2026-11-16T10:00:00Z"));
		struct schedule_due due;

		schedule_due(&s, &p, at(cases[i].now), &due);
		CHECK_EQ(cases[i].n, due.n, cases[i].now);
		CHECK_EQ(cases[i].lost, due.lost, cases[i].now);
		if (due.n)
			CHECK_EQ(at(cases[i].first), due.ticks[0], cases[i].now);
	}
}

TEST(skip_does_not_fire_a_tick_that_is_late)
{
	struct schedule s;
	const struct schedule_plan p = make(&s, "@daily", "skip", at("2026-11-16T10:00:00Z"));
	struct schedule_due due;

	schedule_due(&s, &p, at("2026-11-17T00:01:00Z"), &due);
	CHECK_EQ(1, due.n);
	schedule_due(&s, &p, at("2026-11-17T00:01:01Z"), &due);
	CHECK_EQ(0, due.n);
	CHECK_EQ(1, due.lost);
	schedule_fire(&s, &due, NULL, at("2026-11-17T00:01:01Z"));
	CHECK_EQ(at("2026-11-18T00:00:00Z"), schedule_next(&s, &p));
	CHECK_EQ(0, s.n_events);
	CHECK_EQ(1, s.lost);
}

TEST(a_clock_that_goes_back_fires_nothing_twice) /* SCHEDULE-1 */
{
	const slu_time began = at("2026-11-16T10:00:00Z");
	struct schedule s;
	const struct schedule_plan p = make(&s, "@every 10s", "one", began);
	struct schedule_due due;
	uint64_t id = 7;

	schedule_due(&s, &p, began + 30 * SLU_SEC, &due);
	CHECK_EQ(1, due.n);
	CHECK_EQ(2, due.lost);
	schedule_fire(&s, &due, &id, began + 30 * SLU_SEC);
	for (int back = 0; back < 3600; back += 7) {
		schedule_due(&s, &p, began + 39 * SLU_SEC - back * SLU_SEC, &due);
		CHECK_EQ(0, due.n);
		CHECK_EQ(0, due.lost);
	}
	schedule_due(&s, &p, began + 40 * SLU_SEC, &due);
	CHECK_EQ(1, due.n);
	CHECK_EQ(7, s.last_id);
}

TEST(a_long_stop_is_counted_and_not_run_through)
{
	const slu_time began = at("2026-11-16T10:00:00Z");
	struct schedule s;
	const struct schedule_plan p = make(&s, "@every 1s", "all:100", began);
	struct schedule_due due;

	schedule_due(&s, &p, began + 20000 * SLU_HOUR, &due);
	CHECK_EQ(100, due.n);
	CHECK_EQ(20000ull * 3600 - 100, due.lost);
	CHECK_EQ(began + 20000 * SLU_HOUR, due.last);
}

TEST(what_a_pause_passes_over_is_not_missed) /* SCHEDULE-3 */
{
	const slu_time began = at("2026-11-16T10:00:00Z");
	struct schedule s;
	const struct schedule_plan p = make(&s, "@every 10s", "all:100", began);
	struct schedule_due due;

	schedule_pause(&s, true, began);
	CHECK_EQ(SLU_NEVER, schedule_next(&s, &p));
	schedule_due(&s, &p, began + 35 * SLU_SEC, &due);
	CHECK_EQ(0, due.n);
	schedule_pause(&s, false, began + 35 * SLU_SEC);
	schedule_due(&s, &p, began + 39 * SLU_SEC, &due);
	CHECK_EQ(0, due.n);
	CHECK_EQ(0, due.lost);
	CHECK_EQ(began + 40 * SLU_SEC, schedule_next(&s, &p));
}

TEST(jitter_is_the_same_everywhere_and_stays_below_its_bound) /* SCHEDULE-4 */
{
	struct schedule s;
	const struct schedule_plan p = make(&s, "@hourly", "one", at("2026-11-16T10:00:00Z"));
	slu_time tick = s.last, seen = 0;

	CHECK_EQ(tick, schedule_moment(&s, tick));
	s.jitter = 10 * SLU_MIN;
	for (int i = 0; i < 100; i++) {
		tick = schedule_tick(&s, &p, tick);
		CHECK(schedule_moment(&s, tick) >= tick && schedule_moment(&s, tick) < tick + s.jitter);
		seen += schedule_moment(&s, tick) - tick;
	}
	CHECK(seen > 200 * SLU_MIN && seen < 800 * SLU_MIN);
	CHECK_EQ(594706050867, schedule_moment(&s, 0));
}

TEST(a_new_definition_keeps_what_has_happened) /* SCHEDULE-5 */
{
	const slu_time began = at("2026-11-16T10:00:00Z");
	struct schedule old, s;
	struct schedule_plan p = make(&old, "@every 1h", "one", began);
	struct schedule_due due;
	uint64_t id = 7;

	schedule_due(&old, &p, began + SLU_HOUR, &due);
	schedule_fire(&old, &due, &id, began + SLU_HOUR);
	(void)make(&s, "@every 1h", "one", began);
	schedule_take(&s, &old, began + 90 * SLU_MIN);
	CHECK_EQ(began + 2 * SLU_HOUR, schedule_next(&s, &p), "the same interval keeps its ticks");
	CHECK_EQ(1, s.fired);
	CHECK_EQ(1, s.n_events);
	p = make(&s, "@every 40m", "one", began);
	schedule_take(&s, &old, began + 90 * SLU_MIN);
	CHECK_EQ(began + 130 * SLU_MIN, schedule_next(&s, &p), "another one begins with the change");
	CHECK_EQ(1, s.fired);
}

TEST(only_the_last_firings_are_kept)
{
	struct schedule s;
	(void)make(&s, "@hourly", "one", 0);

	for (uint64_t i = 1; i <= 30; i++)
		schedule_run(&s, i, (slu_time)i);
	CHECK_EQ(SCHEDULE_HISTORY, s.n_events);
	CHECK_EQ(11, s.events[0].id);
	CHECK_EQ(30, s.events[SCHEDULE_HISTORY - 1].id);
	CHECK_EQ(30, s.last_id);
}

TEST(the_stored_form) /* golden bytes */
{
	static const char doc[] =
		"{\"version\":1,\"name\":\"nightly\",\"when\":\"0 2 * * *\",\"zone\":\"Europe/Berlin\",\"missed\":\"all:10\","
		"\"overlap\":\"skip\",\"jitter\":30000000000,\"paused\":true,\"message\":{\"queue\":\"r\",\"text\":\"\\u00e9\"},"
		"\"anchor\":1763424000000000000,\"last\":1763510400000000000,\"fired\":2,\"lost\":3,\"overlapped\":4,"
		"\"last_id\":318497266802130945,\"queue\":\"r\",\"events\":[[1,2,3,0],[4,5,6,2]]}";
	char room[sizeof doc];
	struct schedule s;
	struct buf out;

	CHECK_EQ(0, schedule_decode(slice_of(doc), room, &s, NULL));
	CHECK_EQ(SCHEDULE_ALL, s.missed);
	CHECK_EQ(10, s.most);
	CHECK_EQ(SCHEDULE_WAIT, s.overlap);
	CHECK_EQ(6, s.events[1].id);
	buf_init(&out, SCHEDULE_DOC_MAX);
	schedule_encode(&s, &out);
	buf_putc(&out, '\0');
	CHECK_STR(doc, out.p);
	buf_release(&out);
}

TEST(documents_that_are_refused)
{
	static const char *const docs[] = { "", "{}", "{\"version\":2}", "[]" };

	EACH(i, docs) {
		char room[64];
		struct schedule s;
		struct slu_err err = { 0 };

		CHECK_EQ(SLU_ECORRUPT, schedule_decode(slice_of(docs[i]), room, &s, &err), docs[i]);
	}
}

TEST(the_names_of_a_schedule)
{
	char idem[SCHEDULE_IDEM];
	struct schedule s;

	(void)make(&s, "@hourly", "one", 0);
	CHECK_EQ(0, schedule_id(SLICE("default"), SLICE("nightly")) & 1);
	CHECK_EQ(1, schedule_id(SLICE("default"), SLICE("nightly")) >> 55);
	CHECK_EQ(49654336518588036, schedule_id(SLICE("default"), SLICE("nightly")), "it is on disk");
	CHECK(schedule_id(SLICE("default"), SLICE("nightly")) != schedule_id(SLICE("default"), SLICE("nightlz")));
	CHECK(schedule_id(SLICE("default"), SLICE("nightly")) != schedule_id(SLICE("other"), SLICE("nightly")));
	idem[schedule_idem(&s, at("2026-11-16T10:00:00Z"), idem)] = '\0';
	CHECK_STR("schedule:nightly:2026-11-16T10:00:00Z", idem);
}
