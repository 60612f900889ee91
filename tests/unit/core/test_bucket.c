#include "test.h"

#include "core/bucket.h"

/* Take n at now, or say how long to wait. */
static slu_time
take(const struct bucket_rule *r, slu_time *full, uint32_t n, slu_time now)
{
	const slu_time wait = bucket_wait(r, *full, n, now);

	if (!wait)
		*full = bucket_take(r, *full, n, now);
	return wait;
}

TEST(a_new_bucket_has_its_burst_and_no_more)
{
	const struct bucket_rule r = { .rate = 10, .burst = 3 };
	slu_time full = 0;

	for (int i = 0; i < 3; i++)
		CHECK_EQ(0, take(&r, &full, 1, SLU_SEC));
	CHECK_EQ(SLU_SEC / 10, take(&r, &full, 1, SLU_SEC));
}

TEST(without_a_burst_a_second_of_the_rate_may_come_at_once)
{
	const struct bucket_rule r = { .rate = 5 };
	slu_time full = 0;

	CHECK_EQ(0, take(&r, &full, 5, 0));
	CHECK_EQ(SLU_SEC / 5, take(&r, &full, 1, 0));
}

TEST(a_client_that_waits_for_retry_after_gets_it)
{
	const struct bucket_rule r = { .rate = 7, .burst = 4 };
	slu_time full = 0, now = 12345;
	slu_time wait;

	CHECK_EQ(0, take(&r, &full, 4, now));
	wait = take(&r, &full, 3, now);
	CHECK(wait > 0);
	CHECK(bucket_wait(&r, full, 3, now + wait - 1) > 0);
	CHECK_EQ(0, take(&r, &full, 3, now + wait));
}

TEST(a_call_larger_than_the_burst_is_taken_when_full_and_paid_off_later)
{
	const struct bucket_rule r = { .rate = 10, .burst = 2 };
	slu_time full = 0;

	CHECK_EQ(0, take(&r, &full, 50, 0));
	CHECK_EQ(5 * SLU_SEC - SLU_SEC / 10, take(&r, &full, 1, 0));
	CHECK(take(&r, &full, 50, SLU_SEC) > 0);
	CHECK_EQ(0, take(&r, &full, 50, 5 * SLU_SEC));
}

TEST(nothing_is_refused_only_while_something_is_owed)
{
	const struct bucket_rule r = { .rate = 1, .burst = 1 };
	slu_time full = 0;

	CHECK_EQ(0, take(&r, &full, 2, 0));
	CHECK_EQ(SLU_SEC, bucket_wait(&r, full, 0, 0));
	CHECK_EQ(0, bucket_wait(&r, full, 0, SLU_SEC));
}

/* TOKENBUCKET-1, X-13 */
TEST(over_any_time_no_more_than_burst_and_rate_come_through)
{
	const struct bucket_rule r = { .rate = 1000, .burst = 50 };
	slu_time full = 0;
	uint64_t taken = 0;

	for (slu_time now = 0; now < 10 * SLU_SEC; now += SLU_MS / 7)
		taken += take(&r, &full, 1, now) == 0;
	CHECK(taken <= 50 + 10 * 1000);
	CHECK(taken >= 10 * 1000);
}

TEST(the_largest_numbers_do_not_overflow)
{
	const struct bucket_rule fast = { BUCKET_RATE_MAX, BUCKET_RATE_MAX };
	const struct bucket_rule slow = { 1, BUCKET_RATE_MAX };
	slu_time full = 0;

	CHECK_EQ(0, take(&fast, &full, UINT32_MAX, 0));
	CHECK_EQ(0, take(&slow, &full, UINT32_MAX, 5 * SLU_SEC));
	CHECK_EQ(SLU_NEVER, bucket_take(&slow, SLU_NEVER - 1, UINT32_MAX, 0));
	CHECK(bucket_wait(&slow, SLU_NEVER, 1, 0) > 0);
}
