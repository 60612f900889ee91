#include "test.h"

#include "base/json/json_compact.h"

/* Through in pieces of n bytes; the code, and what came out. */
static int
compact(struct slice document, size_t n, struct buf *out, struct slu_err *err)
{
	struct json_compact c;

	buf_clear(out);
	json_compact_init(&c, 8);
	for (size_t at = 0; at < document.n; at += n) {
		const size_t left = document.n - at;
		const struct slice piece = { document.p + at, left < n ? left : n };
		const int rc = json_compact(&c, piece, out, err);

		if (rc)
			return rc;
	}
	return json_compact_end(&c, err);
}

TEST(space_goes_and_everything_else_stays)
{
	static const struct {
		const char *document;
		const char *want;
	} cases[] = {
		{ " { \"a\" : [ 1 , 2.50e+3,\t-0 ] ,\r\n\"b c\" : \" x \\\" \" } ", "{\"a\":[1,2.50e+3,-0],\"b c\":\" x \\\" \"}" },
		{ "true", "true" },
		{ " null\n", "null" },
		{ "[ ]", "[]" },
		{ "{ }", "{}" },
		{ "12 ", "12" },
		{ "0.5", "0.5" },
		{ "\"\\u00e9\\ud83d\\ude00é€😀\"", "\"\\u00e9\\ud83d\\ude00é€😀\"" },
		{ "[[[[[[[[]]]]]]]]", "[[[[[[[[]]]]]]]]" },
	};
	struct slu_err err;
	struct buf out;

	buf_init(&out, 4096);
	EACH(i, cases)
		for (size_t n = 1; n <= 64; n++) {
			CHECK_EQ(0, compact(slice_of(cases[i].document), n, &out, &err), cases[i].document);
			CHECK_STR(cases[i].want, buf_str(&out));
		}
	buf_release(&out);
}

TEST(what_is_no_json_is_refused_with_its_place)
{
	static const struct {
		const char *document;
		const char *want;
	} cases[] = {
		{ "", "byte 0: expected more: the document ends too early" },
		{ "[1,]", "byte 3: expected a value" },
		{ "{\"a\" 1}", "byte 5: expected a colon" },
		{ "{a:1}", "byte 1: expected a name in quotes" },
		{ "[1}", "byte 2: expected a comma or ]" },
		{ "{\"a\":1]", "byte 6: expected a comma or }" },
		{ "1 2", "byte 2: expected nothing behind the document" },
		{ "01", "byte 1: expected nothing behind the document" },
		{ "-", "byte 1: expected more: the document ends too early" },
		{ "1.", "byte 2: expected more: the document ends too early" },
		{ "1.e5", "byte 2: expected a digit" },
		{ "1e+", "byte 3: expected more: the document ends too early" },
		{ "nul", "byte 3: expected more: the document ends too early" },
		{ "nulL", "byte 3: expected true, false or null" },
		{ "\"a\nb\"", "byte 2: expected control characters escaped in a string" },
		{ "\"\\x\"", "byte 2: expected one of \" \\ / b f n r t u after a backslash" },
		{ "\"\\u12g4\"", "byte 5: expected four hex digits after \\u" },
		{ "\"\\ud800\"", "byte 7: expected surrogates in pairs" },
		{ "\"\\ud800\\n\"", "byte 8: expected surrogates in pairs" },
		{ "\"\\udc00\"", "byte 6: expected surrogates in pairs" },
		{ "\"\xc0\x80\"", "byte 1: expected UTF-8" },
		{ "\"\xe0\x80\x80\"", "byte 2: expected UTF-8" },
		{ "\"\xed\xa0\x80\"", "byte 2: expected UTF-8" },
		{ "\"\xf4\x90\x80\x80\"", "byte 2: expected UTF-8" },
		{ "[[[[[[[[[1]]]]]]]]]", "byte 8: expected less nesting" },
		{ "[1", "byte 2: expected more: the document ends too early" },
	};
	struct slu_err err;
	struct buf out;

	buf_init(&out, 4096);
	EACH(i, cases)
		for (size_t n = 1; n <= 8; n++) {
			CHECK_EQ(SLU_EINVAL, compact(slice_of(cases[i].document), n, &out, &err), cases[i].document);
			CHECK_STR(cases[i].want, err.text);
		}
	buf_release(&out);
}

TEST(more_than_the_buffer_takes_is_refused)
{
	struct slu_err err;
	struct buf out;

	buf_init(&out, 4);
	CHECK_EQ(SLU_ETOOBIG, compact(SLICE("[1,2,3]"), 64, &out, &err));
	buf_release(&out);
}
