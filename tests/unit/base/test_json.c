#include "test.h"

#include "base/json/json_whole.h"
#include "base/parse.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

TEST(the_caller_loops_over_members_and_elements)
{
	struct json_str name;
	int64_t sum = 0;
	int items = 0;
	struct json r;

	json_init(&r, SLICE("[{\"n\":1,\"skip\":[{\"n\":9}],\"n\":2},{},{\"\\u006e\":3}]"),
		  JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		items++;
		json_object(&r);
		while (json_member(&r, &name))
			if (json_str_is(&name, SLICE("n")))
				sum += json_i64(&r, 0, 10);
	}
	CHECK_EQ(0, json_end(&r, NULL));
	CHECK_EQ(3, items);
	CHECK_EQ(6, sum, "what nobody asked for was skipped");
}

TEST(the_first_failure_counts_and_ends_every_loop)
{
	struct slu_err err;
	struct json r;
	int rounds = 0;

	json_init(&r, SLICE("[1,true,\"x\",4]"), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		rounds++;
		(void)json_i64(&r, 0, 10);
	}
	CHECK_EQ(2, rounds);
	json_fail(&r, SLU_ETOOBIG, NULL, "too late");
	CHECK_EQ(0, json_i64(&r, 0, 10));
	CHECK_EQ(0, json_text(&r).n);
	CHECK_EQ(0, json_skip(&r).n);
	CHECK_EQ(JSON_NONE, json_peek(&r));
	CHECK(!json_null(&r) && !json_bool(&r));
	CHECK_EQ(SLU_EINVAL, json_end(&r, &err));
	CHECK_STR("line 1, column 4 (byte 3): expected a number, not true", err.text);
}

TEST(the_caller_may_refuse_too)
{
	struct slu_err err;
	struct json r;

	json_init(&r, SLICE("[ 3, 4 ]"), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r))
		if (json_i64(&r, 0, 10) % 2 == 0)
			json_fail(&r, SLU_ECONFLICT, NULL, "expected an odd number");
	CHECK_EQ(SLU_ECONFLICT, json_end(&r, &err));
	CHECK_STR("line 1, column 6 (byte 5): expected an odd number", err.text);

	json_init(&r, SLICE("[ [3, [4]] ]"), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		(void)json_skip(&r);
		json_fail(&r, SLU_ECONFLICT, NULL, "expected an odd number");
	}
	CHECK_EQ(SLU_ECONFLICT, json_end(&r, &err));
	CHECK_STR("line 1, column 3 (byte 2): expected an odd number", err.text);
	json_blame(&r, SLICE("limit"));
	CHECK_EQ(SLU_ECONFLICT, json_report(&r, &err));
	CHECK_STR("line 1, column 3 (byte 2): limit: expected an odd number", err.text);
	for (int i = 0; i < 10; i++)
		json_blame(&r, SLICE("a name that is so long that it is cut somewhere"));
	CHECK_EQ(SLU_ECONFLICT, json_report(&r, &err));
}

TEST(every_type_but_the_right_one_is_refused)
{
	static const char *const values[] = { "null", "true", "1", "\"1\"", "[1]", "{}" };

	EACH(i, values) {
		struct json_str s;
		struct json r[6];

		EACH(k, r)
			json_init(&r[k], slice_of(values[i]), JSON_DEPTH);
		(void)json_null(&r[0]);
		(void)json_bool(&r[1]);
		(void)json_double(&r[2]);
		(void)json_string(&r[3], &s);
		json_array(&r[4]);
		json_object(&r[5]);
		CHECK_EQ(i == 0 ? JSON_BEHIND : JSON_AT_VALUE, r[0].state, "null may be asked for");
		EACH(k, r)
			if (k > 0)
				CHECK_EQ(k == i, r[k].state != JSON_FAILED, values[i]);
	}
}

TEST(whole_numbers_are_exact_to_64_bits)
{
	static const struct {
		const char *text;
		int64_t i;
		uint64_t u;
		bool is_i, is_u;
	} cases[] = {
		{ "0", 0, 0, true, true },
		{ "-0", 0, 0, true, true },
		{ "-1", -1, 0, true, false },
		{ "9007199254740993", 9007199254740993, 9007199254740993, true, true },
		{ "9223372036854775807", INT64_MAX, INT64_MAX, true, true },
		{ "9223372036854775808", 0, (uint64_t)INT64_MAX + 1, false, true },
		{ "-9223372036854775808", INT64_MIN, 0, true, false },
		{ "-9223372036854775809", 0, 0, false, false },
		{ "18446744073709551615", 0, UINT64_MAX, false, true },
		{ "18446744073709551616", 0, 0, false, false },
		{ "100000000000000000000000000", 0, 0, false, false },
		{ "1.0", 0, 0, false, false },
		{ "1e3", 0, 0, false, false },
		{ "1E0", 0, 0, false, false },
		{ "-0.0", 0, 0, false, false },
		{ "1e999", 0, 0, false, false },
	};

	EACH(i, cases) {
		struct json r;

		json_init(&r, slice_of(cases[i].text), JSON_DEPTH);
		CHECK_EQ(cases[i].i, json_i64(&r, INT64_MIN, INT64_MAX), cases[i].text);
		CHECK_EQ(cases[i].is_i ? 0 : SLU_EINVAL, json_end(&r, NULL), cases[i].text);
		json_init(&r, slice_of(cases[i].text), JSON_DEPTH);
		CHECK(cases[i].u == json_u64(&r, 0, UINT64_MAX));
		CHECK_EQ(cases[i].is_u ? 0 : SLU_EINVAL, json_end(&r, NULL), cases[i].text);
	}
}

/* What json_whole reads is what the other way reads, and what it does not read stays. */
TEST(digits_that_are_read_once_have_the_same_value)
{
	static const char letters[] = "0123456789.e-";
	uint64_t seed = test_seed();
	unsigned whole = 0;

	for (int i = 0; i < 20000; i++) {
		char text[24];
		const size_t n = 1 + test_random(&seed) % (sizeof text - 1);
		uint64_t got = 0, want = 0;
		struct slice number;
		struct json r, again;

		for (size_t k = 0; k < n; k++)
			text[k] = letters[test_random(&seed) % (k > 0 && test_random(&seed) % 8 == 0 ? 13 : 10)];
		json_init(&r, (struct slice){ text, n }, JSON_DEPTH);
		json_init(&again, (struct slice){ text, n }, JSON_DEPTH);
		number = json_number(&again);
		if (!json_whole(&r, 1000, UINT64_MAX / 2, &got)) {
			CHECK(r.state == JSON_AT_VALUE && r.p == text);
			CHECK(number.n == 0 || parse_u64(number, 1000, UINT64_MAX / 2, &want, NULL) != 0 || n > 19);
			continue;
		}
		whole++;
		CHECK_EQ(0, parse_u64(number, 1000, UINT64_MAX / 2, &want, NULL));
		CHECK(got == want && r.p == again.p);
	}
	CHECK(whole > 1000);
}

TEST(whole_numbers_keep_to_their_range)
{
	struct slu_err err;
	struct json r;

	json_init(&r, SLICE(" 11"), JSON_DEPTH);
	CHECK_EQ(0, json_i64(&r, -5, 10));
	CHECK_EQ(SLU_EINVAL, json_end(&r, &err));
	CHECK_STR("line 1, column 2 (byte 1): expected a whole number from -5 to 10", err.text);
	json_init(&r, SLICE("0"), JSON_DEPTH);
	CHECK_EQ(0, json_u64(&r, 1, 10));
	CHECK_EQ(SLU_EINVAL, json_end(&r, &err));
	CHECK_STR("line 1, column 1 (byte 0): expected a whole number from 1 to 10", err.text);
}

static double
read_double(struct slice text, int want_rc)
{
	struct json r;
	double v;

	json_init(&r, text, JSON_DEPTH);
	v = json_double(&r);
	CHECK_EQ(want_rc, json_end(&r, NULL));
	return v;
}

TEST(doubles_are_the_nearest_whatever_the_locale)
{
	static char digits[600];

	(void)setlocale(LC_ALL, "de_DE.UTF-8"); /* a comma, where it is installed */
	CHECK(read_double(SLICE("1.5"), 0) == 1.5);
	CHECK(read_double((struct slice){ "1.567", 3 }, 0) == 1.5);
	CHECK(read_double(SLICE("-0.0"), 0) == 0 && signbit(read_double(SLICE("-0"), 0)));
	CHECK(read_double(SLICE("0.1"), 0) == 0.1);
	CHECK(read_double(SLICE("1e3"), 0) == 1000);
	CHECK(read_double(SLICE("9007199254740993"), 0) == 9007199254740992.0);
	CHECK(read_double(SLICE("1.7976931348623157e308"), 0) == DBL_MAX);
	CHECK(read_double(SLICE("4.9406564584124654e-324"), 0) > 0);
	CHECK(read_double(SLICE("1e-999"), 0) == 0);
	CHECK(read_double(SLICE("1e999"), SLU_EINVAL) == 0);
	CHECK(read_double(SLICE("-1e309"), SLU_EINVAL) == 0);
	memset(digits, '1', sizeof digits);
	CHECK(read_double((struct slice){ digits, 300 }, 0) > 1e299);
	digits[1] = '.';
	CHECK(read_double((struct slice){ digits, 500 }, 0) < 2);
	CHECK(read_double((struct slice){ digits, 501 }, SLU_EINVAL) == 0);
}

TEST(strings_are_unescaped_only_when_they_must_be)
{
	static const struct {
		const char *raw;
		struct slice want;
	} cases[] = {
		{ "\"\"", SLICE("") },
		{ "\"plain\"", SLICE("plain") },
		{ "\"caf\xc3\xa9\"", SLICE("caf\xc3\xa9") },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", SLICE("\"\\/\b\f\n\r\t") },
		{ "\"a\\nb\\nc\"", SLICE("a\nb\nc") },
		{ "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"",
		  SLICE("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") },
		{ "\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
		  SLICE("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf") },
		{ "\"\\ud800\\udc00\\udbff\\udfff\"",
		  SLICE("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf") },
		{ "\"\\\\n\"", SLICE("\\n") },
		{ "\"x\\u0000y\"", SLICE("x\0y") },
	};

	EACH(i, cases) {
		const struct slice document = slice_of(cases[i].raw);
		char room[64];
		struct json_str s;
		struct slice got;
		struct json r;

		json_init(&r, document, JSON_DEPTH);
		CHECK(json_string(&r, &s));
		CHECK_EQ(0, json_end(&r, NULL));
		CHECK(s.raw.p == document.p + 1);
		CHECK_EQ(document.n - 2, s.raw.n);
		CHECK_EQ(cases[i].want.n, s.n, cases[i].raw);
		CHECK_EQ(memchr(cases[i].want.p, 0, cases[i].want.n) != NULL, s.has_nul);
		got = json_str_text(&s, room);
		CHECK(slice_eq(cases[i].want, got));
		CHECK_EQ(strchr(cases[i].raw, '\\') != NULL, got.p == room);
		CHECK(json_str_is(&s, cases[i].want));
	}
}

TEST(names_are_compared_by_what_they_mean)
{
	struct json_str name;
	struct json r;

	json_init(&r, SLICE("{\"\\u0074opi\\u0063\":1}"), JSON_DEPTH);
	json_object(&r);
	CHECK(json_member(&r, &name));
	CHECK(json_str_is(&name, SLICE("topic")));
	CHECK(!json_str_is(&name, SLICE("topid")));
	CHECK(!json_str_is(&name, SLICE("sopic")));
	CHECK(!json_str_is(&name, SLICE("topics")));
	CHECK(!json_str_is(&name, SLICE("topi")));
	CHECK(!json_str_is(&name, SLICE("")));
	CHECK(!json_member(&r, &name));
	CHECK_EQ(0, json_end(&r, NULL));
}

TEST(text_is_unescaped_into_the_room_given)
{
	static const char document[] = "[\"a\\/b\",\"plain\",\"\\n\"]";
	char room[sizeof document];
	struct slu_err err;
	struct json r;

	json_init(&r, SLICE(document), JSON_DEPTH);
	json_room(&r, room, 4);
	json_array(&r);
	CHECK(json_element(&r) && slice_eq(SLICE("a/b"), json_text(&r)));
	CHECK(json_element(&r) && slice_eq(SLICE("plain"), json_text(&r)));
	CHECK(json_element(&r) && slice_eq(SLICE("\n"), json_text(&r)));
	CHECK(!json_element(&r));
	CHECK_EQ(0, json_end(&r, NULL));
	CHECK(memcmp(room, "a/b\n", 4) == 0);

	json_init(&r, SLICE("\"\\n\""), JSON_DEPTH);
	CHECK_EQ(0, json_text(&r).n);
	CHECK_EQ(SLU_ETOOBIG, json_end(&r, &err));
	CHECK_STR("line 1, column 1 (byte 0): no room for 1 bytes", err.text);

	json_init(&r, SLICE("\"a\\u0000\""), JSON_DEPTH);
	json_room(&r, room, sizeof room);
	CHECK_EQ(0, json_text(&r).n);
	CHECK_EQ(SLU_EINVAL, json_end(&r, &err));
	CHECK_STR("line 1, column 1 (byte 0): expected a string without \\u0000", err.text);
}

TEST(a_skipped_value_is_its_exact_bytes)
{
	static const char *const values[] = {
		"null",
		"true",
		"false",
		"0",
		"-1.5e+3",
		"\"\"",
		"\"a\\\"]}\"",
		"[]",
		"{}",
		"[ 1 , [ 2 ] ]",
		"{ \"a\" : [ { } ] ,\n\"b\":\"}\" }",
		"\"\xc3\xa9\"",
	};

	EACH(i, values) {
		const struct slice want = slice_of(values[i]);
		char document[128];
		struct json_str name;
		struct slice got;
		struct json r;
		const int n = snprintf(document, sizeof document,
				       "{\"before\":1, \"it\" : \t%s\n ,\"after\":[ %s ]}",
				       values[i], values[i]);

		json_init(&r, (struct slice){ document, (size_t)n }, JSON_DEPTH);
		json_object(&r);
		CHECK(json_member(&r, &name));
		CHECK(json_member(&r, &name));
		got = json_skip(&r);
		CHECK(slice_eq(want, got));
		CHECK(got.p == strchr(document, '\t') + 1);
		CHECK(json_member(&r, &name));
		json_array(&r);
		CHECK(json_element(&r) && slice_eq(want, json_skip(&r)));
		CHECK(!json_element(&r) && !json_member(&r, &name));
		CHECK_EQ(0, json_end(&r, NULL));
	}
}

TEST(events_tell_everything_with_exact_spans)
{
	static const char document[] = " {\"a\" : [ 1, \"b\\n\" ,null],\"c\":{},\"d\":true}";
	static const struct {
		enum json_type type;
		const char *raw;
	} want[] = {
		{ JSON_OBJECT, "{" },
		{ JSON_MEMBER, "\"a\"" },
		{ JSON_ARRAY, "[" },
		{ JSON_NUMBER, "1" },
		{ JSON_STRING, "\"b\\n\"" },
		{ JSON_NULL, "null" },
		{ JSON_CLOSE, "]" },
		{ JSON_MEMBER, "\"c\"" },
		{ JSON_OBJECT, "{" },
		{ JSON_CLOSE, "}" },
		{ JSON_MEMBER, "\"d\"" },
		{ JSON_TRUE, "true" },
		{ JSON_CLOSE, "}" },
	};
	const char *behind = document;
	struct json_event e;
	struct json r;

	json_init(&r, SLICE(document), JSON_DEPTH);
	EACH(i, want) {
		CHECK(json_next(&r, &e));
		CHECK_EQ(want[i].type, e.type, want[i].raw);
		CHECK(slice_eq(slice_of(want[i].raw), e.raw));
		CHECK(e.raw.p >= behind);
		behind = e.raw.p + e.raw.n;
	}
	CHECK(!json_next(&r, &e));
	CHECK_EQ(0, json_end(&r, NULL));
}

TEST(a_peek_does_not_move)
{
	struct json r;

	json_init(&r, SLICE(" [false]"), JSON_DEPTH);
	CHECK_EQ(JSON_ARRAY, json_peek(&r));
	CHECK_EQ(JSON_ARRAY, json_peek(&r));
	json_array(&r);
	CHECK(json_element(&r));
	CHECK_EQ(JSON_FALSE, json_peek(&r));
	CHECK(!json_null(&r));
	CHECK(!json_bool(&r));
	CHECK(!json_element(&r));
	CHECK_EQ(0, json_end(&r, NULL));
	CHECK_STR("an object", json_type_name(JSON_OBJECT));
}

/* Whatever stands where in the 16, or 8, bytes that are looked at together. */
TEST(strings_end_at_the_right_byte_wherever_it_is)
{
	static const char specials[] = { '"', '\\', '\x1f', '\0', '\x7f', '\x80', '\xff', '!', '[' };

	for (size_t at = 0; at < 46; at++) {
		EACH(i, specials) {
			const char c = specials[i];
			char text[47]; /* 16, 16, 8 and 7 one by one */

			memset(text, 'x', sizeof text);
			text[at] = c;
			text[at + 1] = '"'; /* a borrow from below must not hide behind it */
			const char *got = json_plain_end(text, text + sizeof text);

			CHECK_EQ(json_is_plain(c) ? at + 1 : at, got - text);
			CHECK_EQ(at, json_plain_end(text, text + at) - text);
			CHECK(json_all_plain((struct slice){ text, at }));
			CHECK_EQ(json_is_plain(c), json_all_plain((struct slice){ text, at + 1 }));
			for (size_t n = at + 2; n <= sizeof text; n++)
				CHECK(!json_all_plain((struct slice){ text, n }));
		}
	}
	CHECK(json_all_plain((struct slice){ 0 }));
}
