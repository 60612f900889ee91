#include "test.h"

#include "base/clock.h"
#include "fakeclock.h"

#include <errno.h>

TEST(adding_times_stops_at_never)
{
	static const struct {
		const char *label;
		slu_time a, b, want;
	} cases[] = {
		{ "nothing", 0, 0, 0 },
		{ "small", 3, 4, 7 },
		{ "just below never", SLU_NEVER - 2, 1, SLU_NEVER - 1 },
		{ "exactly never", SLU_NEVER - 1, 1, SLU_NEVER },
		{ "would overflow", SLU_NEVER - 1, 2, SLU_NEVER },
		{ "never and nothing", SLU_NEVER, 0, SLU_NEVER },
		{ "never and some", SLU_NEVER, 5, SLU_NEVER },
		{ "some and never", 5, SLU_NEVER, SLU_NEVER },
		{ "never and never", SLU_NEVER, SLU_NEVER, SLU_NEVER },
	};

	EACH(i, cases)
		if (time_add(cases[i].a, cases[i].b) != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s", cases[i].label);
}

/* A thread that waits on a clock until it is signalled or its moment has come. */
struct sleeper {
	struct clock *clock;
	slu_time until;
	pthread_t thread;
	pthread_mutex_t mtx;
	pthread_cond_t cond;
	bool told; /* shared, under mtx, as all below */
	bool awake;
	slu_time woke_at;
};

static void *
sleep_until(void *arg)
{
	struct sleeper *s = arg;

	pthread_mutex_lock(&s->mtx);
	while (!s->told && clock_mono(s->clock) < s->until)
		clock_wait(s->clock, &s->cond, &s->mtx, s->until);
	s->woke_at = clock_mono(s->clock);
	s->awake = true;
	pthread_mutex_unlock(&s->mtx);
	return NULL;
}

static void
sleeper_start(struct sleeper *s, struct clock *c, slu_time until)
{
	*s = (struct sleeper){ .clock = c, .until = until };
	pthread_mutex_init(&s->mtx, NULL);
	CHECK_EQ(0, pthread_cond_init(&s->cond, NULL));
	CHECK_EQ(0, pthread_create(&s->thread, NULL, sleep_until, s));
}

static void
sleeper_tell(struct sleeper *s)
{
	pthread_mutex_lock(&s->mtx);
	s->told = true;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->mtx);
}

static bool
is_awake(struct sleeper *s)
{
	bool awake;

	pthread_mutex_lock(&s->mtx);
	awake = s->awake;
	pthread_mutex_unlock(&s->mtx);
	return awake;
}

/* Returns when it woke. */
static slu_time
sleeper_join(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->cond);
	pthread_mutex_destroy(&s->mtx);
	return s->woke_at;
}

TEST(the_system_clock_never_goes_back)
{
	slu_time before = clock_mono(&clock_system);

	CHECK(before > 0);
	for (int i = 0; i < 10000; i++) {
		const slu_time now = clock_mono(&clock_system);

		CHECK(now >= before);
		before = now;
	}
}

TEST(the_boot_clock_is_never_behind_the_monotonic_one)
{
	const slu_time mono = clock_mono(&clock_system);

	CHECK(clock_boot(&clock_system) >= mono);
}

TEST(the_wall_clock_counts_from_1970)
{
	const slu_time in_2024 = 54 * 365 * 24 * SLU_HOUR;

	CHECK(clock_wall(&clock_system) > in_2024);
	CHECK(clock_wall(&clock_system) < 3 * in_2024);
}

TEST(a_wait_on_the_system_clock_ends_at_its_moment)
{
	const slu_time until = clock_mono(&clock_system) + 2 * SLU_MS;
	struct sleeper s;

	sleeper_start(&s, &clock_system, until);
	CHECK(sleeper_join(&s) >= until);
}

TEST(a_wait_on_the_system_clock_ends_when_signalled)
{
	struct sleeper s;

	sleeper_start(&s, &clock_system, SLU_NEVER);
	sleeper_tell(&s);
	sleeper_join(&s);
	sleeper_start(&s, &clock_system, clock_mono(&clock_system) + SLU_HOUR);
	sleeper_tell(&s);
	sleeper_join(&s);
}

TEST(a_wait_for_the_past_returns_at_once_with_the_mutex_held)
{
	static pthread_mutex_t mtx = PTHREAD_MUTEX_INITIALIZER;
	struct fakeclock f;
	pthread_cond_t cond;

	fakeclock_init(&f, 10, 0);
	CHECK_EQ(0, pthread_cond_init(&cond, NULL));
	pthread_mutex_lock(&mtx);
	clock_wait(&clock_system, &cond, &mtx, 0);
	CHECK_EQ(EBUSY, pthread_mutex_trylock(&mtx));
	clock_wait(&f.clock, &cond, &mtx, 10);
	CHECK_EQ(EBUSY, pthread_mutex_trylock(&mtx));
	CHECK_EQ(0, fakeclock_sleepers(&f));
	pthread_mutex_unlock(&mtx);
	pthread_cond_destroy(&cond);
	fakeclock_release(&f);
}

TEST(a_fake_clock_stands_still_until_it_is_moved)
{
	struct fakeclock f;

	fakeclock_init(&f, 100, 5000);
	CHECK_EQ(100, clock_mono(&f.clock));
	CHECK_EQ(5000, clock_wall(&f.clock));
	fakeclock_advance(&f, 7);
	CHECK_EQ(107, clock_mono(&f.clock));
	CHECK_EQ(5007, clock_wall(&f.clock));
	fakeclock_set_wall(&f, 3);
	CHECK_EQ(107, clock_mono(&f.clock), "a step of the wall clock is no time");
	CHECK_EQ(3, clock_wall(&f.clock));
	fakeclock_release(&f);
}

TEST(a_clock_that_never_sleeps_has_one_monotonic_time)
{
	struct fakeclock f;

	fakeclock_init(&f, 7, 100);
	CHECK_EQ(7, clock_boot(&f.clock));
	fakeclock_release(&f);
}

TEST(a_sleeper_on_a_fake_clock_wakes_at_its_moment_and_not_before)
{
	struct fakeclock f;
	struct sleeper s;

	fakeclock_init(&f, 0, 0);
	sleeper_start(&s, &f.clock, 20 * SLU_SEC);
	WAIT_UNTIL(fakeclock_sleepers(&f) == 1);
	CHECK_EQ(20 * SLU_SEC, fakeclock_until(&f));
	fakeclock_advance(&f, 20 * SLU_SEC - 1);
	WAIT_UNTIL(fakeclock_sleepers(&f) == 1);
	CHECK(!is_awake(&s));
	fakeclock_advance(&f, 1);
	CHECK_EQ(20 * SLU_SEC, sleeper_join(&s));
	CHECK_EQ(0, fakeclock_sleepers(&f));
	fakeclock_release(&f);
}

TEST(a_sleeper_on_a_fake_clock_wakes_when_signalled)
{
	static const slu_time untils[] = { 20 * SLU_SEC, SLU_NEVER };

	EACH(i, untils) {
		struct fakeclock f;
		struct sleeper s;

		fakeclock_init(&f, 0, 0);
		sleeper_start(&s, &f.clock, untils[i]);
		WAIT_UNTIL(fakeclock_sleepers(&f) == 1);
		CHECK_EQ(untils[i], fakeclock_until(&f));
		sleeper_tell(&s);
		CHECK_EQ(0, sleeper_join(&s), "no time has passed");
		fakeclock_release(&f);
	}
}

TEST(a_fake_clock_wakes_each_sleeper_at_its_own_moment)
{
	struct sleeper s[3];
	struct fakeclock f;

	fakeclock_init(&f, 0, 0);
	EACH(i, s)
		sleeper_start(&s[i], &f.clock, (slu_time)(i + 1) * SLU_SEC);
	WAIT_UNTIL(fakeclock_sleepers(&f) == 3);
	CHECK_EQ(SLU_SEC, fakeclock_until(&f));
	fakeclock_advance(&f, SLU_SEC);
	CHECK_EQ(SLU_SEC, sleeper_join(&s[0]));
	CHECK(!is_awake(&s[1]) && !is_awake(&s[2]));
	WAIT_UNTIL(fakeclock_sleepers(&f) == 2);
	CHECK_EQ(2 * SLU_SEC, fakeclock_until(&f));
	fakeclock_advance(&f, SLU_HOUR);
	CHECK_EQ(SLU_SEC + SLU_HOUR, sleeper_join(&s[1]));
	CHECK_EQ(SLU_SEC + SLU_HOUR, sleeper_join(&s[2]));
	fakeclock_release(&f);
}
