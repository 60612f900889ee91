#include "test.h"

#include "http/multipart.h"

#include <stdio.h>

#define TYPE "multipart/related; boundary=B"

/* What was read: "[name|type]data[...]end", or "refused: why". */
static const char *
read_all(const char *type, struct slice in, size_t step)
{
	static struct multipart m;
	static char said[8192];
	enum multipart_event e = MULTIPART_MORE;
	struct buf b;

	buf_init(&b, sizeof said - 1);
	if (!multipart_init(&m, slice_of(type)))
		return "no multipart";
	for (size_t at = 0; at < in.n && e != MULTIPART_END && e != MULTIPART_REFUSED;) {
		struct slice piece = { in.p + at, in.n - at < step ? in.n - at : step };
		struct slice data;

		at += piece.n;
		while ((e = multipart_next(&m, &piece, &data)) != MULTIPART_MORE) {
			if (e == MULTIPART_PART)
				buf_printf(&b, "[%.*s|%.*s]", (int)m.name.n, m.name.p ? m.name.p : "",
					   (int)m.type.n, m.type.p ? m.type.p : "");
			else if (e == MULTIPART_DATA)
				buf_put(&b, data.p, data.n);
			else
				break;
		}
	}
	if (e == MULTIPART_END)
		buf_puts(&b, "end");
	if (e == MULTIPART_REFUSED)
		buf_printf(&b, "refused: %s", m.why);
	snprintf(said, sizeof said, "%s", buf_str(&b));
	buf_release(&b);
	return said;
}

/* MULTIPART-3: however it is cut. */
static void
check(const char *type, struct slice in, const char *want, const char *label)
{
	for (size_t step = 1; step <= in.n; step++) {
		const char *const got = read_all(type, in, step);

		if (strcmp(want, got) != 0)
			fprintf(stderr, "# %s, %zu bytes at a time\n", label, step);
		CHECK_STR(want, got);
	}
}

TEST(parts_are_read_however_they_are_cut)
{
	static const struct {
		const char *label;
		struct slice in;
		const char *want;
	} cases[] = {
		/* As liblockdc and Go's mime/multipart write them. */
		{ "two parts",
		  SLICE("--B\r\nContent-Disposition: form-data; name=\"meta\"\r\n"
			"Content-Type: application/json\r\n\r\n{}\r\n"
			"--B\r\nContent-Type: text/plain\r\n"
			"Content-Disposition: form-data; name=\"payload\"\r\n\r\nhello\r\n--B--\r\n"),
		  "[meta|application/json]{}[payload|text/plain]helloend" },
		{ "an empty part", SLICE("--B\r\nA: b\r\n\r\n\r\n--B--"), "[|]end" },
		{ "an empty part without its line", SLICE("--B\r\nA: b\r\n\r\n--B--"), "[|]end" },
		{ "no head", SLICE("--B\r\n\r\nx\r\n--B--"), "[|]xend" },
		{ "before and behind", SLICE("hi\r\n--BX\r\n\r\n--B \t\r\n\r\nx\r\n--B--more"),
		  "[|]xend" },
		{ "what looks like a boundary",
		  SLICE("--B\r\n\r\n\r\n-\r\r\n--\r\n--A\r\n--Bx\r\n--B--"), "[|]\r\n-\r\r\n--\r\n--A\r\n--Bxend" },
		{ "a boundary that is no line", SLICE("--B\r\n\r\n-x--B\r\n--B--"), "[|]-x--Bend" },
		{ "names without quotes, in any case",
		  SLICE("--B\r\nCONTENT-disposition: form-data; filename=\"a;name=b\"; NAME = meta\r\n\r\n\r\n--B--"),
		  "[meta|]end" },
		{ "not whole", SLICE("--B\r\n\r\nx\r\n--B"), "[|]x" },
		{ "no end of a head", SLICE("--B\r\nA: b\r\n"), "" },
		{ "a line feed alone", SLICE("--B\r\nA: b\n\r\n"),
		  "refused: a line in the head of a part does not end in CR LF" },
		{ "no field", SLICE("--B\r\nnothing\r\n\r\n"),
		  "refused: a field in the head of a part is not well formed" },
		{ "a space before the colon", SLICE("--B\r\nA : b\r\n\r\n"),
		  "refused: a field in the head of a part is not well formed" },
		{ "a bad length", SLICE("--B\r\nContent-Length: x\r\n\r\n"),
		  "refused: a field in the head of a part is not well formed" },
		{ "half an end", SLICE("--B-x"), "refused: a boundary is not followed by CR LF" },
		{ "text behind blanks", SLICE("--B x"), "refused: a boundary is not followed by CR LF" },
		{ "CR alone", SLICE("--B\rx"), "refused: a boundary is not followed by CR LF" },
	};

	EACH(i, cases)
		check(TYPE, cases[i].in, cases[i].want, cases[i].label);
}

TEST(a_boundary_stands_in_the_content_type)
{
	static char longest[300];
	static const struct {
		const char *type;
		bool fine;
	} cases[] = {
		{ "multipart/related; boundary=abc", true },
		{ "Multipart/Form-Data;boundary=\"abc\"", true },
		{ "multipart/mixed; type=\"a;boundary=no\"; Boundary=abc", true },
		{ "multipart/related", false },
		{ "multipart/related; boundary=", false },
		{ "multipart/related; boundary=\"abc", false },
		{ "multipart/related; boundary=\"abc \"", false },
		{ "multipart/related; boundary=a\tb", false },
		{ "application/json; boundary=abc", false },
		{ "multipart/", false },
		{ "", false },
	};
	static struct multipart m;

	EACH(i, cases)
		CHECK_EQ(cases[i].fine, multipart_init(&m, slice_of(cases[i].type)), cases[i].type);
	for (size_t n = MULTIPART_BOUNDARY; n <= MULTIPART_BOUNDARY + 1; n++) {
		snprintf(longest, sizeof longest, "multipart/x; boundary=%0*d", (int)n, 1);
		CHECK_EQ(n == MULTIPART_BOUNDARY, multipart_init(&m, slice_of(longest)));
	}
}

TEST(a_head_has_a_limit)
{
	static char in[MULTIPART_HEAD + 64];
	static struct multipart m;

	for (unsigned over = 0; over < 2; over++) {
		struct slice piece, data;
		int n;

		CHECK_EQ(true, multipart_init(&m, SLICE(TYPE)));
		n = snprintf(in, sizeof in, "--B\r\nA: %0*d\r\n\r\n", MULTIPART_HEAD - 7 + (int)over, 1);
		piece = (struct slice){ in, (size_t)n };
		CHECK_EQ(over ? MULTIPART_REFUSED : MULTIPART_PART, multipart_next(&m, &piece, &data));
	}
	CHECK_STR("the head of a part is too long", m.why);
}

/* Data is passed on as it lies there: no copies, no crumbs. */
TEST(data_is_one_slice_of_what_was_given)
{
	static const char in[] = "--B\r\n\r\na\rb\r\nc\r\n--d\r\n--B--";
	struct slice piece = { in, sizeof in - 1 }, data;
	static struct multipart m;

	CHECK_EQ(true, multipart_init(&m, SLICE(TYPE)));
	CHECK_EQ(MULTIPART_PART, multipart_next(&m, &piece, &data));
	CHECK_EQ(MULTIPART_DATA, multipart_next(&m, &piece, &data));
	CHECK(data.p == in + 7 && slice_eq(data, SLICE("a\rb\r\nc\r\n--d")));
	CHECK_EQ(MULTIPART_END, multipart_next(&m, &piece, &data));
	CHECK_EQ(MULTIPART_END, multipart_next(&m, &piece, &data), "for ever");
}

TEST(the_length_of_a_part_is_known)
{
	static const char in[] = "--B\r\nContent-Length: 12\r\n\r\n";
	struct slice piece = { in, sizeof in - 1 }, data;
	static struct multipart m;

	CHECK_EQ(true, multipart_init(&m, SLICE(TYPE)));
	CHECK_EQ(MULTIPART_PART, multipart_next(&m, &piece, &data));
	CHECK(m.has_length && m.length == 12);
}

/* A payload that looks like its own end is taken by its length. */
TEST(a_caller_may_take_the_data_of_a_part_itself)
{
	static const char text[] = "--B\r\nContent-Length: 7\r\n\r\n\r\n--B--\r\n--B--\r\n";
	struct slice in = { text, sizeof text - 1 }, data;
	static struct multipart m;

	CHECK(multipart_init(&m, slice_of(TYPE)));
	CHECK_EQ(MULTIPART_PART, multipart_next(&m, &in, &data));
	CHECK_EQ(7, m.length);
	in = (struct slice){ in.p + m.length, in.n - m.length };
	multipart_taken(&m);
	CHECK_EQ(MULTIPART_END, multipart_next(&m, &in, &data));
}
