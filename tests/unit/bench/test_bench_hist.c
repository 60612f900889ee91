#include "bench/hist.h"

#include <stdlib.h>
#include <test.h>

TEST(nothing_counted_is_zero)
{
	static struct hist h;

	CHECK_EQ(0, hist_percentile(&h, 0.5));
}

TEST(a_percentile_is_right_to_two_percent)
{
	static struct hist h;

	for (slu_time t = 1; t <= 1000000; t++)
		hist_add(&h, t);
	CHECK_EQ(1000000, h.n);
	CHECK(llabs(hist_percentile(&h, 0.5) - 500000) < 10000);
	CHECK(llabs(hist_percentile(&h, 0.99) - 990000) < 20000);
	CHECK(llabs(hist_percentile(&h, 1.0) - 1000000) < 20000);
	CHECK(hist_percentile(&h, 0) <= 1);
}

TEST(any_time_has_a_bucket)
{
	static const slu_time times[] = { -5, 0, 1, 63, 64, 65, 127, 128, SLU_SEC, SLU_NEVER };
	static struct hist h;

	EACH(i, times) {
		static struct hist one;
		const slu_time want = times[i] < 0 ? 0 : times[i];

		one = (struct hist){ 0 };
		hist_add(&one, times[i]);
		hist_add(&h, times[i]);
		CHECK(llabs(hist_percentile(&one, 0.5) - want) <= want / 50);
	}
	CHECK_EQ(COUNT(times), h.n);
}
