#include "test.h"

#include "base/json/json_same.h"

TEST(numbers_of_the_same_value_are_the_same)
{
	static const char *const same[][2] = {
		{ "0", "-0" },
		{ "0", "0.000e7" },
		{ "1", "1.0" },
		{ "100", "1e2" },
		{ "100", "1.00E+2" },
		{ "100", "1000e-1" },
		{ "0.001", "1e-3" },
		{ "-120.50", "-1205e-1" },
		{ "10.01", "1001e-2" },
		{ "12345678901234567890123", "12345678901234567890123.0" },
		{ "1e400", "10e399" },
		{ "5e00000000000000000000000000003", "5000" },
		{ "1e99999999999999999999", "1e99999999999999999999" },
	};

	EACH(i, same) {
		CHECK_EQ(true, json_number_same(slice_of(same[i][0]), slice_of(same[i][1])), same[i][1]);
		CHECK_EQ(true, json_number_same(slice_of(same[i][1]), slice_of(same[i][0])), same[i][1]);
	}
}

TEST(numbers_that_a_double_cannot_tell_apart_are_different)
{
	static const char *const different[][2] = {
		{ "0", "1e-400" },
		{ "1", "-1" },
		{ "1", "10" },
		{ "101", "1001" },
		{ "1.01", "1.1" },
		{ "12345678901234567890", "12345678901234567891" },
		{ "12345678901234567891", "12345678901234567892" },
		{ "0.1", "0.1000000000000000055511151231257827" },
		{ "1e400", "1e401" },
		{ "1e99999999999999999999", "10e99999999999999999998" },
	};

	EACH(i, different) {
		CHECK_EQ(false, json_number_same(slice_of(different[i][0]), slice_of(different[i][1])), different[i][1]);
		CHECK_EQ(false, json_number_same(slice_of(different[i][1]), slice_of(different[i][0])), different[i][1]);
	}
}

TEST(a_text_is_a_number_if_json_says_so)
{
	static const char *const yes[] = { "0", "-1", "1.5", "1e9", "-0.0E-0" };
	static const char *const no[] = { "", "-", "01", "1.", ".5", "+1", "1e", " 1", "1 ", "0x1", "NaN", "1,2", "\"1\"", "true" };

	EACH(i, yes)
		CHECK_EQ(true, json_number_is(slice_of(yes[i])), yes[i]);
	EACH(i, no)
		CHECK_EQ(false, json_number_is(slice_of(no[i])), no[i]);
}
