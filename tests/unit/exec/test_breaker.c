/* The rules alone first (core/breaker.c), then the set with its clock, log and
 * metrics (exec/breaker.c). */
#include "fakeclock.h"
#include "test.h"

#include "core/breaker.h"
#include "exec/breaker.h"

#include <stdatomic.h>
#include <stdio.h>

#define CLOSED    SLU_BREAKER_CLOSED
#define OPEN      SLU_BREAKER_OPEN
#define HALF_OPEN SLU_BREAKER_HALF_OPEN

/* --- the rules ------------------------------------------------------------- */

static const struct breaker_rules three = { .failures = 3, .probes = 1, .cooldown = 1000 };

static int
ask(struct breaker *b, const struct breaker_rules *rules, slu_time now)
{
	slu_time wait;

	return breaker_allow(b, rules, now, &wait);
}

static void
fail_times(struct breaker *b, const struct breaker_rules *rules, int times, slu_time now)
{
	for (int i = 0; i < times; i++) {
		CHECK_EQ(0, ask(b, rules, now));
		breaker_report(b, rules, false, now, 0);
	}
}

TEST(a_script_of_calls_leads_to_the_right_state)
{
	/* c a call passes, x one is denied, + success, - failure, > a cool-down */
	static const struct {
		const char *label;
		const char *script;
		enum slu_breaker_state want;
	} cases[] = {
		{ "PW-41: closed lets calls through", "cccccccc", CLOSED },
		{ "closed stays closed", "c+c+c+c+", CLOSED },
		{ "PW-46: failures in a row open", "c-c-c-", OPEN },
		{ "PW-46: a success forgets them", "c-c-c+c-c-", CLOSED },
		{ "also when calls overlap", "ccccc--+--", CLOSED },
		{ "PW-42: open denies", "c-c-c-xxxx", OPEN },
		{ "PW-42: nobody asked, still open", "c-c-c->", OPEN },
		{ "PW-43: one probe passes, no more", "c-c-c->cxx", HALF_OPEN },
		{ "a good probe closes", "c-c-c->cx+c", CLOSED },
		{ "a bad probe opens", "c-c-c->c-x", OPEN },
		{ "which takes a cool-down again", "c-c-c->c->c+c", CLOSED },
		{ "after closing it counts from 0", "c-c-c->c+c-c-", CLOSED },
		{ "late answers do not close an open one", "ccccc---++x", OPEN },
		{ "late failures do not lengthen it", "ccccc---->c", HALF_OPEN },
		{ "a late success is not the probe's", "cccc--->c+x", HALF_OPEN },
		{ "the one after it is", "cccc--->c++c", CLOSED },
		{ "a late failure opens, to be safe", "cccc--->c-x", OPEN },
		{ "and all are accounted for after that", "cccc--->c-->c+c", CLOSED },
		{ "a lost probe is given up", "c-c-c->cx>cx", HALF_OPEN },
		{ "its replacement closes", "c-c-c->cx>c+c", CLOSED },
		{ "so are calls from before", "cccc--->c+x>c+c", CLOSED },
		{ "a report nobody owes counts while closed", "---x", OPEN },
		{ "but not while open", "---+-+-x", OPEN },
	};

	EACH(i, cases) {
		struct breaker b = { 0 };
		slu_time now = 5;

		for (const char *p = cases[i].script; *p; p++) {
			const bool asks = *p == 'c' || *p == 'x';

			now += *p == '>' ? three.cooldown : 0;
			if (asks && (ask(&b, &three, now) != 0) != (*p == 'x'))
				test_fail(__FILE__, __LINE__, "%s: at \"%s\"", cases[i].label, p);
			if (*p == '+' || *p == '-')
				breaker_report(&b, &three, *p == '+', now, 0);
		}
		if (b.state != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s: ends in %d", cases[i].label, (int)b.state);
	}
}

TEST(open_denies_until_the_very_end_of_the_cooldown)
{
	struct breaker b = { 0 };
	slu_time wait = 0;

	fail_times(&b, &three, 3, 100);
	/* PW-42, PW-44 */
	CHECK_EQ(SLU_EDOWN, breaker_allow(&b, &three, 100, &wait));
	CHECK_EQ(1000, wait);
	CHECK_EQ(SLU_EDOWN, breaker_allow(&b, &three, 1099, &wait));
	CHECK_EQ(1, wait);
	CHECK_EQ(0, breaker_allow(&b, &three, 1100, &wait));
	CHECK_EQ(HALF_OPEN, b.state);
}

TEST(exactly_the_number_of_probes_pass_whatever_it_is)
{
	static const uint32_t counts[] = { 1, 2, 3, 10, 1000 };

	EACH(i, counts) { /* PW-43, PW-45 */
		const struct breaker_rules r = { .failures = 1, .probes = counts[i], .cooldown = 10 };
		struct breaker b = { 0 };
		uint32_t passed = 0;

		fail_times(&b, &r, 1, 0);
		for (int call = 0; call < 3000; call++)
			passed += ask(&b, &r, 10) == 0;
		CHECK_EQ(counts[i], passed);
		for (uint32_t n = 1; n < counts[i]; n++)
			breaker_report(&b, &r, true, 11, 0);
		CHECK_EQ(HALF_OPEN, b.state, "until the last probe is back");
		breaker_report(&b, &r, true, 11, 0);
		CHECK_EQ(CLOSED, b.state);
	}
}

TEST(one_bad_probe_of_many_opens)
{
	const struct breaker_rules r = { .failures = 1, .probes = 3, .cooldown = 10 };
	struct breaker b = { 0 };

	fail_times(&b, &r, 1, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(0, ask(&b, &r, 10));
	breaker_report(&b, &r, true, 11, 0);
	breaker_report(&b, &r, false, 12, 0);
	CHECK_EQ(OPEN, b.state);
	breaker_report(&b, &r, true, 13, 0); /* the third probe is late now */
	CHECK_EQ(OPEN, b.state);
	CHECK_EQ(SLU_EDOWN, ask(&b, &r, 21));
	CHECK_EQ(0, ask(&b, &r, 22));
}

TEST(a_report_that_no_call_explains_does_not_count_as_a_probe)
{
	const struct breaker_rules r = { .failures = 1, .probes = 2, .cooldown = 10 };
	struct breaker b = { 0 };

	fail_times(&b, &r, 1, 0);
	CHECK_EQ(0, ask(&b, &r, 10));
	breaker_report(&b, &r, true, 11, 0);
	breaker_report(&b, &r, true, 11, 0); /* from nowhere */
	breaker_report(&b, &r, false, 11, 0);
	CHECK_EQ(HALF_OPEN, b.state);
}

TEST(only_lost_probes_are_let_through_again)
{
	const struct breaker_rules r = { .failures = 1, .probes = 3, .cooldown = 10 };
	struct breaker b = { 0 };

	fail_times(&b, &r, 1, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(0, ask(&b, &r, 15 + i));
	breaker_report(&b, &r, true, 18, 0);
	breaker_report(&b, &r, true, 18, 0);
	CHECK_EQ(SLU_EDOWN, ask(&b, &r, 26)); /* the last one began at 17 */
	CHECK_EQ(0, ask(&b, &r, 27));
	CHECK_EQ(SLU_EDOWN, ask(&b, &r, 28));
	breaker_report(&b, &r, true, 28, 0);
	CHECK_EQ(CLOSED, b.state);
}

TEST(while_probes_are_under_way_it_is_worth_asking_soon)
{
	struct breaker b = { 0 };
	slu_time wait = 0;

	fail_times(&b, &three, 3, 0);
	CHECK_EQ(0, ask(&b, &three, 1000));
	CHECK_EQ(SLU_EDOWN, breaker_allow(&b, &three, 1000, &wait));
	CHECK(wait > 0 && wait < 500);
	CHECK_EQ(SLU_EDOWN, breaker_allow(&b, &three, 1999, &wait));
	CHECK_EQ(1, wait, "not beyond the moment the probe is given up");
}

TEST(jitter_lengthens_a_cooldown_by_up_to_its_percentage)
{
	static const struct {
		const char *label;
		uint32_t percent;
		slu_time cooldown;
		uint64_t random;
		slu_time want;
	} cases[] = {
		{ "none", 0, 1000, 12345, 1000 },
		{ "the lowest throw", 20, 1000, 0, 1000 },
		{ "the highest throw", 20, 1000, 200, 1200 },
		{ "one more starts again", 20, 1000, 201, 1000 },
		{ "all of it", 100, 1000, 1000, 2000 },
		{ "never is never", 100, SLU_NEVER, UINT64_MAX, SLU_NEVER },
	};

	EACH(i, cases) {
		const struct breaker_rules r = {
			.failures = 1,
			.probes = 1,
			.cooldown = cases[i].cooldown,
			.jitter_percent = cases[i].percent,
		};
		struct breaker b = { 0 };

		breaker_report(&b, &r, false, 0, cases[i].random);
		if (b.until != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s: %" PRId64, cases[i].label, b.until);
	}
}

/* Any calls in any order: never more probes than allowed, never a wait of 0. */
TEST(random_calls_keep_the_rules)
{
	const struct breaker_rules r = { .failures = 4, .probes = 3, .cooldown = 50, .jitter_percent = 50 };
	struct breaker b = { 0 };
	uint64_t dice = test_seed();
	slu_time now = 0, wait;

	for (int i = 0; i < 200000; i++) {
		const uint64_t throw = test_random(&dice);

		now += (slu_time)(throw % 8);
		wait = 0;
		if (throw &0x100)
			CHECK_EQ(0, breaker_allow(&b, &r, now, &wait) ? wait <= 0 : wait);
		else
			breaker_report(&b, &r, throw &0x200, now, throw);
		CHECK(b.begun <= r.probes && b.succeeded <= b.begun);
		CHECK(b.failures < r.failures);
		CHECK(b.state == HALF_OPEN || b.begun == 0);
	}
}

/* --- the set ----------------------------------------------------------------- */

static struct {
	struct fakeclock clock;
	struct slu_log *log;
	struct slu_breakers *set;
	char lines[8192];
	size_t n;
} f;

static void
keep_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	CHECK(f.n + n < sizeof f.lines);
	memcpy(f.lines + f.n, line, n);
	f.n += n;
	f.lines[f.n] = 0;
}

static void
setup(struct slu_breaker_config config)
{
	f.n = 0;
	f.lines[0] = 0;
	fakeclock_init(&f.clock, 1000 * SLU_SEC, 0);
	f.log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, keep_line, NULL);
	config.struct_size = sizeof config;
	config.log = f.log;
	CHECK_EQ(0, breakers_new_on(&f.set, &config, &f.clock.clock, NULL));
}

static void
teardown(void)
{
	slu_breakers_free(f.set);
	slu_log_free(f.log);
	fakeclock_release(&f.clock);
}

FIXTURE(NULL, teardown);

static void
fail_calls(struct slu_breaker *b, int times)
{
	for (int i = 0; i < times; i++) {
		CHECK_EQ(0, slu_breaker_allow(b, NULL));
		slu_breaker_report(b, false);
	}
}

static void
check_metric(struct slu_breakers *set, const char *want)
{
	char *text;

	CHECK_EQ(0, slu_breakers_metrics(set, &text));
	CHECK_CONTAINS(want, text);
	slu_free(text);
}

TEST(defaults_are_5_failures_30_s_and_1_probe)
{
	struct slu_breaker *b;
	slu_time wait;

	setup((struct slu_breaker_config){ 0 });
	b = slu_breaker_get(f.set, "mail");
	fail_calls(b, 4);
	CHECK_EQ(CLOSED, slu_breaker_state(b));
	fail_calls(b, 1);
	CHECK_EQ(OPEN, slu_breaker_state(b)); /* PW-46 */
	CHECK_EQ(SLU_EDOWN, slu_breaker_allow(b, &wait));
	CHECK_EQ(30 * SLU_SEC, wait);
	fakeclock_advance(&f.clock, 30 * SLU_SEC - 1);
	CHECK_EQ(SLU_EDOWN, slu_breaker_allow(b, NULL));
	fakeclock_advance(&f.clock, 1);
	CHECK_EQ(0, slu_breaker_allow(b, &wait));
	CHECK_EQ(0, wait);
	CHECK_EQ(SLU_EDOWN, slu_breaker_allow(b, NULL));
}

TEST(settings_are_honoured)
{
	struct slu_breaker *b;
	int passed = 0;

	setup((struct slu_breaker_config){
		.failures = 2,
		.open_cooldown = 7 * SLU_SEC,
		.half_open_probe_count = 4,
	});
	b = slu_breaker_get(f.set, "mail");
	fail_calls(b, 2);
	fakeclock_advance(&f.clock, 7 * SLU_SEC - 1);
	CHECK_EQ(SLU_EDOWN, slu_breaker_allow(b, NULL)); /* PW-44 */
	fakeclock_advance(&f.clock, 1);
	for (int i = 0; i < 20; i++)
		passed += slu_breaker_allow(b, NULL) == 0;
	CHECK_EQ(4, passed); /* PW-45 */
}

TEST(the_gauge_follows_every_transition)
{
	struct slu_breaker *b;

	setup((struct slu_breaker_config){ .failures = 1, .open_cooldown = SLU_SEC });
	b = slu_breaker_get(f.set, "mail");
	/* PW-F16 */
	check_metric(f.set, "\nsluice_breaker_state_gauge{platform=\"mail\"} 0\n");
	fail_calls(b, 1);
	check_metric(f.set, "\nsluice_breaker_state_gauge{platform=\"mail\"} 1\n");
	CHECK_EQ(SLU_EDOWN, slu_breaker_allow(b, NULL));
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(0, slu_breaker_allow(b, NULL));
	check_metric(f.set, "\nsluice_breaker_state_gauge{platform=\"mail\"} 2\n");
	slu_breaker_report(b, true);
	check_metric(f.set, "\nsluice_breaker_state_gauge{platform=\"mail\"} 0\n");
	check_metric(f.set, "\nsluice_breaker_denied_total{platform=\"mail\"} 1\n");
}

TEST(each_change_is_logged_once)
{
	struct slu_breaker *b;

	setup((struct slu_breaker_config){ .failures = 1, .open_cooldown = SLU_SEC });
	b = slu_breaker_get(f.set, "mail");
	fail_calls(b, 1);
	CHECK_CONTAINS("level=warn event=\"breaker opened\" platform=mail was=closed\n", f.lines);
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(0, slu_breaker_allow(b, NULL));
	CHECK_CONTAINS("level=info event=\"breaker half open\" platform=mail was=open\n", f.lines);
	CHECK_EQ(SLU_EDOWN, slu_breaker_allow(b, NULL));
	slu_breaker_report(b, true);
	CHECK_CONTAINS("level=info event=\"breaker closed\" platform=mail was=\"half open\"\n", f.lines);

	f.n = 0;
	CHECK_EQ(0, slu_breaker_allow(b, NULL));
	slu_breaker_report(b, true);
	CHECK_EQ(0, f.n, "nothing changed, nothing said");
}

TEST(each_name_has_a_breaker_of_its_own)
{
	struct slu_breaker *mail, *odd;

	setup((struct slu_breaker_config){ .failures = 1, .metrics_namespace = "shop" });
	mail = slu_breaker_get(f.set, "mail");
	odd = slu_breaker_get(f.set, "a \"b\"\n");
	CHECK(mail && odd && mail != odd);
	CHECK(slu_breaker_get(f.set, "mail") == mail);
	fail_calls(mail, 1);
	CHECK_EQ(0, slu_breaker_allow(odd, NULL));
	check_metric(f.set, "\nshop_breaker_state_gauge{platform=\"mail\"} 1\n");
	check_metric(f.set, "\nshop_breaker_state_gauge{platform=\"a \\\"b\\\"\\n\"} 0\n");
}

TEST(a_name_has_1_to_64_bytes)
{
	char name[66];

	setup((struct slu_breaker_config){ 0 });
	memset(name, 'x', sizeof name);
	name[65] = 0;
	CHECK(!slu_breaker_get(f.set, name));
	name[64] = 0;
	CHECK(slu_breaker_get(f.set, name) != NULL);
	CHECK(!slu_breaker_get(f.set, ""));
	CHECK(!slu_breaker_get(f.set, NULL));
}

TEST(what_makes_no_sense_is_refused)
{
	static const struct {
		struct slu_breaker_config config;
		const char *says;
	} cases[] = {
		{ { .open_cooldown = -1 }, "open_cooldown" },
		{ { .jitter_percent = 101 }, "invalid jitter_percent: 101" },
		{ { .metrics_namespace = "no spaces" }, "no spaces" },
		{ { .metrics_namespace = "0123456789012345678901234567890123456789012345678901234567890123456789" }, "0123" },
	};

	EACH(i, cases) {
		struct slu_breaker_config config = cases[i].config;
		struct slu_breakers *set;
		struct slu_err err;

		config.struct_size = sizeof config;
		CHECK_EQ(SLU_EINVAL, slu_breakers_new(&set, &config, &err));
		CHECK_CONTAINS(cases[i].says, err.text);
	}
}

TEST(jitter_of_the_set_stays_in_its_range)
{
	slu_time wait, least = SLU_NEVER, most = 0;

	setup((struct slu_breaker_config){
		.failures = 1,
		.open_cooldown = 100 * SLU_SEC,
		.jitter_percent = 50,
	});
	for (int i = 0; i < 60; i++) {
		char name[8];
		struct slu_breaker *b;

		(void)snprintf(name, sizeof name, "%d", i);
		b = slu_breaker_get(f.set, name);
		slu_breaker_report(b, false);
		CHECK_EQ(SLU_EDOWN, slu_breaker_allow(b, &wait));
		least = wait < least ? wait : least;
		most = wait > most ? wait : most;
	}
	CHECK(least >= 100 * SLU_SEC && most <= 150 * SLU_SEC);
	CHECK(least < most);
}

TEST(the_system_clock_serves_a_set_without_a_config)
{
	struct slu_breakers *set;

	CHECK_EQ(0, slu_breakers_new(&set, NULL, NULL));
	CHECK_EQ(0, slu_breaker_allow(slu_breaker_get(set, "mail"), NULL));
	slu_breakers_free(set);
	slu_breakers_free(NULL);
}

TORTURE(out_of_memory_leaves_the_set_whole)
{
	struct slu_breakers *set = NULL;
	struct slu_breaker *b;
	char *text = NULL;
	struct slu_err err;
	int rc;

	rc = slu_breakers_new(&set, NULL, &err);
	CHECK_EQ(rc, rc ? (int)err.code : 0);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	if (rc)
		return;
	b = slu_breaker_get(set, "mail");
	if (b)
		CHECK_EQ(0, slu_breaker_allow(b, NULL));
	rc = slu_breakers_metrics(set, &text);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	slu_free(text);
	slu_breakers_free(set);
}

/* --- threads ----------------------------------------------------------------- */

struct rush {
	struct slu_breaker *b;
	_Atomic int passed;
};

static void *
ask_a_lot(void *arg)
{
	struct rush *r = arg;

	for (int i = 0; i < 500; i++)
		atomic_fetch_add(&r->passed, slu_breaker_allow(r->b, NULL) == 0);
	return NULL;
}

static void *
use_a_lot(void *arg)
{
	char name[8], *text;

	(void)arg;
	for (int i = 0; i < 500; i++) {
		struct slu_breaker *b;

		(void)snprintf(name, sizeof name, "%d", i % 50);
		b = slu_breaker_get(f.set, name);
		if (slu_breaker_allow(b, NULL) == 0)
			slu_breaker_report(b, i % 3 == 0);
		(void)slu_breaker_state(b);
		if (i % 100 == 0) {
			CHECK_EQ(0, slu_breakers_metrics(f.set, &text));
			slu_free(text);
		}
	}
	return NULL;
}

static void
run_threads(void *(*fn)(void *), void *arg)
{
	pthread_t threads[4];

	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, fn, arg));
	EACH(i, threads)
		pthread_join(threads[i], NULL);
}

TEST(threads_share_the_probes)
{
	struct rush r = { .passed = 0 };

	setup((struct slu_breaker_config){ .failures = 1, .half_open_probe_count = 7 });
	r.b = slu_breaker_get(f.set, "mail");
	fail_calls(r.b, 1);
	fakeclock_advance(&f.clock, 30 * SLU_SEC);
	run_threads(ask_a_lot, &r);
	CHECK_EQ(7, r.passed); /* PW-43 */
}

TEST(threads_may_do_everything_at_once)
{
	setup((struct slu_breaker_config){ .failures = 50 });
	run_threads(use_a_lot, NULL);
}
