/*
 * The body of a group: golden bytes, and bytes that are no body.
 */
#include "test.h"

#include "mirror/body.h"

static struct body body;
static struct buf text;

static void
before_body(void)
{
	body_init(&body);
	buf_init(&text, 1 << 16);
}

static void
after_body(void)
{
	body_release(&body);
	buf_release(&text);
}

FIXTURE(before_body, after_body);

static const char golden[] = "\1\0\0\0"
			     "\2\0\0\0"
			     "\7\0\0\0"
			     "\0\1\0\0"
			     "\3\0\0\0"
			     "\10\0\0\0"
			     "\0\0\0\0"
			     "\2\0\0\0"
			     "abc"
			     "xy";

static void
fill(void)
{
	body_add(&body, &(struct body_piece){ 7, 256, SLICE("abc") });
	body_add(&body, &(struct body_piece){ 8, 0, SLICE("xy") });
	CHECK_EQ(0, body_encode(&body, &text));
}

TEST(a_body_has_these_bytes)
{
	fill();
	CHECK_EQ(sizeof golden - 1, text.n);
	CHECK(memcmp(golden, text.p, text.n) == 0);
}

TEST(pieces_are_read_in_order)
{
	struct body_reader r;
	struct body_piece p;

	fill();
	CHECK_EQ(0, body_open(&r, buf_slice(&text), NULL));
	CHECK(body_next(&r, &p));
	CHECK_EQ(7, p.segment);
	CHECK_EQ(256, p.offset);
	CHECK(slice_eq(SLICE("abc"), p.bytes));
	CHECK(body_next(&r, &p));
	CHECK_EQ(8, p.segment);
	CHECK_EQ(0, p.offset);
	CHECK(slice_eq(SLICE("xy"), p.bytes));
	CHECK(!body_next(&r, &p));
}

TEST(a_body_that_was_cut_is_refused)
{
	struct body_reader r;
	struct slu_err err;

	fill();
	for (size_t n = 0; n < text.n; n++)
		CHECK_EQ(SLU_ECORRUPT, body_open(&r, (struct slice){ text.p, n }, &err));
	buf_putc(&text, 'z');
	CHECK_EQ(SLU_ECORRUPT, body_open(&r, buf_slice(&text), &err));
}

TEST(a_newer_format_is_refused)
{
	struct body_reader r;
	struct slu_err err;

	fill();
	text.p[0] = 2;
	CHECK_EQ(SLU_EINVAL, body_open(&r, buf_slice(&text), &err));
	CHECK_STR("format 2 is newer than this program's 1", err.text);
}
