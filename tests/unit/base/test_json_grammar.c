/* The grammar: what is read, what is refused, and where. */
#include "test.h"

#include "base/json/json.h"

#include <stdlib.h>

static const char *const valid[] = {
	/* any value may stand alone, with space around it */
	"null",
	"true",
	"false",
	"0",
	"\"\"",
	"[]",
	"{}",
	" \t\r\n1 \t\r\n",
	"[ ]",
	"{ }",
	"[\n]",
	"{\t}",
	/* numbers */
	"-0",
	"-1",
	"10",
	"1.0",
	"0.5",
	"-0.0",
	"1e3",
	"1E3",
	"1e+3",
	"1e-3",
	"0e0",
	"0E+00",
	"1.5e300",
	"1e999",
	"123456789012345678901234567890",
	"0.00000000000000000000000000000000000000000000001",
	/* strings */
	"\"a\"",
	"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
	"\"/\"",
	"\"\x7f\"",
	"\"\\u0000\"",
	"\"\\u0041\\u00e9\\uFFFF\\uabCD\"",
	"\"\\ud83d\\uDE00\"",
	"\"\\uD800\\uDC00\"",
	"\"\\udbff\\udfff\"",
	"\"\\\\u0000\"",
	"\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"",
	"\"\xc2\x80\"",
	"\"\xdf\xbf\"",
	"\"\xe0\xa0\x80\"",
	"\"\xed\x9f\xbf\"",
	"\"\xee\x80\x80\"",
	"\"\xef\xbf\xbf\"",
	"\"\xf0\x90\x80\x80\"",
	"\"\xf4\x8f\xbf\xbf\"",
	"\"\xe2\x80\xa8\xe2\x80\xa9\"",
	"\"\xef\xbb\xbf\"", /* a byte order mark is a character in a string */
	"\"12345678\"",
	"\"1234567\\n\"",
	"\"12345678\\n\"",
	"\"\\n12345678\"",
	/* arrays and objects */
	"[1]",
	"[1,2]",
	"[ 1 , 2 ]",
	"[[],[[]],{}]",
	"[null,true,false]",
	"{\"a\":1}",
	"{ \"a\" : 1 , \"b\" : 2 }",
	"{\"\":0}",
	"{\"a\":{\"a\":{\"a\":[]}}}",
	"{\"a\":1,\"a\":1}",
	"{\"\\u0061\":1}",
	"[1,\n2\n,\n3\n]",
	"[\"\",\"\"]",
	"{\"a\":[{\"b\":[{}]}]}",
};

static const struct {
	const char *text;
	size_t offset;
} invalid[] = {
	/* no value, half a value, more than one */
	{ "", 0 },
	{ " ", 1 },
	{ "nul", 0 },
	{ "nulL", 0 },
	{ "NULL", 0 },
	{ "True", 0 },
	{ "truee", 4 },
	{ "fals", 0 },
	{ "undefined", 0 },
	{ "null null", 5 },
	{ "1 2", 2 },
	{ "{}{}", 2 },
	{ "[]]", 2 },
	{ "\"\"\"\"", 2 },
	{ "[1]x", 3 },
	{ "\"a\",", 3 },
	/* numbers */
	{ "-", 1 },
	{ "+1", 0 },
	{ "--1", 1 },
	{ "-a", 1 },
	{ "01", 0 },
	{ "-01", 1 },
	{ "00", 0 },
	{ "1.", 2 },
	{ "1.e1", 2 },
	{ ".5", 0 },
	{ "-.5", 1 },
	{ "1e", 2 },
	{ "1e+", 3 },
	{ "1e1.5", 3 },
	{ "1.5.5", 3 },
	{ "0x10", 1 },
	{ "1_000", 1 },
	{ "1,000", 1 },
	{ "NaN", 0 },
	{ "nan", 0 },
	{ "Infinity", 0 },
	{ "-Infinity", 1 },
	{ "inf", 0 },
	{ "1f", 1 },
	{ "\xef\xbc\x91", 0 }, /* a full-width 1 */
	{ "[1e999999999999999999999e]", 24 },
	/* strings */
	{ "\"", 1 },
	{ "\"a", 2 },
	{ "\"\\\"", 3 },
	{ "\"\\", 1 },
	{ "'a'", 0 },
	{ "a", 0 },
	{ "\"\n\"", 1 },
	{ "\"\t\"", 1 },
	{ "\"\x1f\"", 1 },
	{ "\"1234567\x01\"", 8 },
	{ "\"12345678\x01\"", 9 },
	{ "\"\\a\"", 1 },
	{ "\"\\x41\"", 1 },
	{ "\"\\0\"", 1 },
	{ "\"\\'\"", 1 },
	{ "\"\\U0041\"", 1 },
	{ "\"\\u\"", 1 },
	{ "\"\\u004\"", 1 },
	{ "\"\\u004", 1 },
	{ "\"\\u004g\"", 1 },
	{ "\"\\u-041\"", 1 },
	{ "\"\\u 041\"", 1 },
	{ "\"\\u{41}\"", 1 },
	{ "\"\\ud800\"", 1 },
	{ "\"\\udfff\"", 1 },
	{ "\"\\ud800x\"", 1 },
	{ "\"\\ud800\\n\"", 1 },
	{ "\"\\ud800\\u0041\"", 1 },
	{ "\"\\ud800\\ud800\"", 1 },
	{ "\"\\udc00\\ud800\"", 1 },
	{ "\"\\ud800\\udc0\"", 1 },
	{ "\"\\ud800\\udc0", 1 },
	/* not UTF-8 */
	{ "\"\x80\"", 1 },
	{ "\"a\xff\"", 2 },
	{ "\"\xfe\"", 1 },
	{ "\"\xc3\"", 1 },
	{ "\"\xc3", 1 },
	{ "\"\xc0\x80\"", 1 },
	{ "\"\xc1\xbf\"", 1 },
	{ "\"\xe0\x9f\xbf\"", 1 },
	{ "\"\xe2\x82\"", 1 },
	{ "\"\xe2\x82", 1 },
	{ "\"\xe2\x28\xa1\"", 1 },
	{ "\"\xe2\x82\x28\"", 1 },
	{ "\"\xed\xa0\x80\"", 1 }, /* a surrogate */
	{ "\"\xed\xbf\xbf\"", 1 },
	{ "\"\xf0\x8f\xbf\xbf\"", 1 },
	{ "\"\xf4\x90\x80\x80\"", 1 }, /* beyond the last character */
	{ "\"\xf5\x80\x80\x80\"", 1 },
	{ "\"\xf0\x9f\x98\"", 1 },
	{ "\"\xf8\x88\x80\x80\x80\"", 1 },
	{ "[\xe9]", 1 },
	/* a byte order mark, and space that is none here */
	{ "\xef\xbb\xbf{}", 0 },
	{ "\f1", 0 },
	{ "\v1", 0 },
	{ "\xc2\xa0"
	  "1",
	  0 },
	{ "[\xe2\x81\xa0]", 1 },
	{ "1\f", 1 },
	/* arrays */
	{ "[", 1 },
	{ "]", 0 },
	{ "[1", 2 },
	{ "[1,", 3 },
	{ "[1,]", 3 },
	{ "[,]", 1 },
	{ "[,1]", 1 },
	{ "[1,,2]", 3 },
	{ "[1 2]", 3 },
	{ "[1}", 2 },
	{ "[1:2]", 2 },
	{ "[\"a\":1]", 4 },
	{ "[-]", 2 },
	{ "[[]", 3 },
	{ "[nul]", 1 },
	{ "[\"", 2 },
	/* objects */
	{ "{", 1 },
	{ "}", 0 },
	{ "{]", 1 },
	{ "{\"a\"", 4 },
	{ "{\"a\":", 5 },
	{ "{\"a\"}", 4 },
	{ "{\"a\":}", 5 },
	{ "{\"a\":1", 6 },
	{ "{\"a\":1,", 7 },
	{ "{\"a\":1,}", 7 },
	{ "{,}", 1 },
	{ "{,\"a\":1}", 1 },
	{ "{\"a\":1,,\"b\":2}", 7 },
	{ "{\"a\":1 \"b\":2}", 7 },
	{ "{\"a\" 1}", 5 },
	{ "{\"a\",1}", 4 },
	{ "{\"a\"::1}", 5 },
	{ "{\"a\":1 2}", 7 },
	{ "{\"a\":1]", 6 },
	{ "{a:1}", 1 },
	{ "{'a':1}", 1 },
	{ "{1:1}", 1 },
	{ "{null:1}", 1 },
	{ "{[]:1}", 1 },
	{ "{\"a\":a}", 5 },
	{ "{\"\xff\":1}", 2 },
	/* comments */
	{ "/**/1", 0 },
	{ "1//", 1 },
	{ "[1/*,2*/]", 2 },
	{ "#\n1", 0 },
	{ "{\"a\":1/**/}", 6 },
};

static int
check(struct slice document, struct slu_err *err)
{
	struct json r;

	json_init(&r, document, JSON_DEPTH);
	return json_end(&r, err);
}

TEST(what_the_rfc_allows_is_read)
{
	EACH(i, valid) {
		struct slu_err err;

		if (check(slice_of(valid[i]), &err))
			test_fail(__FILE__, __LINE__, "%s: %s", valid[i], err.text);
	}
}

TEST(everything_else_is_refused_with_its_place)
{
	EACH(i, invalid) {
		struct slu_err err = { 0 };
		struct json r;

		json_init(&r, slice_of(invalid[i].text), JSON_DEPTH);
		if (json_end(&r, &err) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "took %s", invalid[i].text);
		if (json_pos(&r).offset != invalid[i].offset)
			test_fail(__FILE__, __LINE__, "%s: want offset %zu: %s",
				  invalid[i].text, invalid[i].offset, err.text);
		CHECK_EQ(SLU_EINVAL, err.code);
		CHECK_CONTAINS("expected ", err.text);
	}
}

TEST(a_nul_byte_is_nothing_special)
{
	CHECK_EQ(SLU_EINVAL, check(SLICE("1\0"), NULL));
	CHECK_EQ(SLU_EINVAL, check(SLICE("\0"), NULL));
	CHECK_EQ(SLU_EINVAL, check(SLICE("[1\0]"), NULL));
	CHECK_EQ(SLU_EINVAL, check(SLICE("\"\0\""), NULL));
	CHECK_EQ(SLU_EINVAL, check(SLICE("{\"a\0\":1}"), NULL));
	CHECK_EQ(SLU_EINVAL, check((struct slice){ 0 }, NULL));
}

/* The copy ends where its memory ends: the sanitizer sees a byte read too many. */
TEST(every_beginning_of_a_document_is_refused)
{
	static const char whole[] = "[{\"name\":\"caf\\u00e9 \xf0\x9f\x98\x80 \\ud83d\\ude00\","
				    "\"n\":-1.5e+10,\"t\":[true,false,null]},\"the end\"]";

	for (size_t n = 0; n < sizeof whole - 1; n++) {
		char *const memory = malloc(n + 1);

		memcpy(memory + 1, whole, n);
		if (check((struct slice){ memory + 1, n }, NULL) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "took the first %zu bytes", n);
		free(memory);
	}
	CHECK_EQ(0, check(SLICE(whole), NULL));
}

/* Fault 29: a bomb of brackets costs no stack. */
TEST(depth_is_capped)
{
	enum {
		DEEP = 100000
	};
	static char deep[2 * DEEP];
	struct slu_err err;
	struct json r;

	for (size_t i = 0; i < DEEP; i++) {
		deep[DEEP - 1 - i] = i % 2 ? '[' : '{';
		deep[DEEP + i] = i % 2 ? ']' : '}';
	}
	CHECK_EQ(SLU_EINVAL, check((struct slice){ deep, sizeof deep }, NULL));
	memset(deep, '[', DEEP);
	memset(deep + DEEP, ']', DEEP);
	CHECK_EQ(SLU_EINVAL, check((struct slice){ deep, sizeof deep }, &err));
	CHECK_STR("line 1, column 65 (byte 64): expected at most 64 levels of nesting",
		  err.text);
	CHECK_EQ(0, check((struct slice){ deep + DEEP - 64, 128 }, NULL));
	CHECK_EQ(SLU_EINVAL, check((struct slice){ deep + DEEP - 65, 130 }, NULL));

	json_init(&r, (struct slice){ deep + DEEP - JSON_DEPTH_MAX, 2 * JSON_DEPTH_MAX },
		  JSON_DEPTH_MAX);
	CHECK_EQ(0, json_end(&r, NULL));
	json_init(&r, SLICE("[]"), 0);
	CHECK_EQ(SLU_EINVAL, json_end(&r, NULL));
	json_init(&r, SLICE("1"), 0);
	CHECK_EQ(0, json_end(&r, NULL));
}

/* One bit a level: a level that is left says nothing about the next one there. */
TEST(arrays_and_objects_mix_at_every_depth)
{
	CHECK_EQ(0, check(SLICE("[[{}],{\"a\":[{}],\"b\":{}},[[]],{}]"), NULL));
	CHECK_EQ(SLU_EINVAL, check(SLICE("[{\"a\":[}]]"), NULL));
	CHECK_EQ(SLU_EINVAL, check(SLICE("[[{]}]"), NULL));
	CHECK_EQ(SLU_EINVAL, check(SLICE("[{},[\"a\":1]]"), NULL));
}

TEST(a_failure_says_where_and_what_was_expected)
{
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{ "", "line 1, column 1 (byte 0): expected a value, not the end" },
		{ "[1,\n 2,\n x]", "line 3, column 2 (byte 9): expected a value" },
		{ "[\"\xc3\xa9\xf0\x9f\x98\x80\"?]",
		  "line 1, column 6 (byte 9): expected a comma or ]" },
		{ "{\"a\":1", "line 1, column 7 (byte 6): expected a comma or }, not the end" },
		{ "{a", "line 1, column 2 (byte 1): expected the name of a member, in quotes" },
		{ "{\"a\"", "line 1, column 5 (byte 4): expected a colon, not the end" },
		{ "[1]\r\n]", "line 2, column 1 (byte 5): expected nothing more" },
		{ "tru", "line 1, column 1 (byte 0): expected null, true or false" },
		{ "01", "line 1, column 1 (byte 0): expected a number without leading zeros" },
		{ "1.", "line 1, column 3 (byte 2): expected a digit, not the end" },
		{ "\"\x01\"",
		  "line 1, column 2 (byte 1): expected control characters escaped in a string" },
		{ "\"\xff\"", "line 1, column 2 (byte 1): expected UTF-8" },
		{ "\"\\u12\"", "line 1, column 2 (byte 1): expected four hex digits after \\u" },
		{ "\"\\ud800\"", "line 1, column 2 (byte 1): expected surrogates in pairs" },
		{ "\"\\q\"", "line 1, column 2 (byte 1): expected one of \" \\ / b f n r t u "
			     "after a backslash" },
		{ "\"abc", "line 1, column 5 (byte 4): expected a quote to end the string, "
			   "not the end" },
	};

	EACH(i, cases) {
		struct slu_err err;

		CHECK_EQ(SLU_EINVAL, check(slice_of(cases[i].text), &err));
		CHECK_STR(cases[i].want, err.text);
	}
}
