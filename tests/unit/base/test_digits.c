#include "test.h"

#include "base/json/digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void
check(uint64_t v)
{
	char room[DIGITS_ROOM + 1], want[DIGITS_MAX + 1];

	memset(room, '#', sizeof room);
	(void)snprintf(want, sizeof want, "%" PRIu64, v);
	*digits_put(room, v) = '\0';
	CHECK_STR(want, room);
	CHECK_EQ('#', room[DIGITS_ROOM]);
}

TEST(numbers_of_every_length_are_written_as_printf_writes_them)
{
	uint64_t power = 1;

	for (unsigned n = 0; n < DIGITS_MAX; n++, power *= 10) {
		check(power - 1);
		check(power);
		check(power + 1);
		check(power * 9);
	}
	check(UINT64_MAX);
}

TEST(every_number_of_four_digits_is_right_in_every_place)
{
	for (uint64_t n = 0; n < 10000; n++) {
		check(n);
		check(n * 10000);
		check(n * 100000000);
		check(n * 1000000000000);
		check(1234567800000000 + n * 10001);
	}
}

TEST(random_numbers_are_written_as_printf_writes_them)
{
	uint64_t seed = test_seed();

	for (unsigned i = 0; i < 200000; i++)
		check(test_random(&seed) >> test_random(&seed) % 64);
}
