/*
 * Groups and spans as bytes: golden bytes, and damage at every byte.
 */
#include "line/object.h"
#include "test.h"

#include "base/crc32c.h"
#include "base/le.h"

static struct buf out;

static void
before(void)
{
	buf_init(&out, 1 << 16);
}

static void
after(void)
{
	buf_release(&out);
}

FIXTURE(before, after);

static struct line_group
some_group(uint64_t number, const char *body)
{
	return (struct line_group){
		.number = number,
		.epoch = 3,
		.life = "0123456789abcde",
		.mark = { .put = 0x1122334455667788 },
		.before = { .put = 0x99aabbccddeeff00, .sum = 0x01020304 },
		.begin = 2,
		.time = 1000,
		.body = slice_of(body),
	};
}

TEST(names_sort_like_numbers_and_are_read_back)
{
	char name[LINE_NAME_MAX];

	line_name(name, "uuid/4", LINE_GROUP, 7);
	CHECK_STR("uuid/4/group/00000000000000000007", name);
	CHECK_EQ(7, line_number(name, "uuid/4", LINE_GROUP));
	CHECK_EQ(0, line_number(name, "uuid/4", LINE_SPAN));
	CHECK_EQ(0, line_number(name, "uuid/5", LINE_GROUP));
	CHECK_EQ(0, line_number("uuid/4/group/7", "uuid/4", LINE_GROUP));
	CHECK_EQ(0, line_number("uuid/4/group/0000000000000000000x", "uuid/4", LINE_GROUP));
	line_name(name, "uuid/4", LINE_SPAN, UINT64_MAX);
	CHECK_EQ(UINT64_MAX, line_number(name, "uuid/4", LINE_SPAN));
}

TEST(a_group_has_these_bytes)
{
	static const unsigned char head[] = {
		's', 'l', 'u', 'i', 'c', 'e', 'g', 'r',
		/* sum */ 0xf8, 0x10, 0xbe, 0x80, /* flags */ 0, 0, 0, 0,
		/* number */ 5, 0, 0, 0, 0, 0, 0, 0, /* epoch */ 3, 0, 0, 0, 0, 0, 0, 0,
		'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 0,
		/* put */ 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		/* begin */ 2, 0, 0, 0, 0, 0, 0, 0, /* time */ 0xe8, 3, 0, 0, 0, 0, 0, 0,
		/* before */ 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 4, 3, 2, 1, 0, 0, 0, 0
	};
	struct line_group g = some_group(5, "body"), back;

	line_group_encode(&g, &out);
	CHECK_EQ(LINE_GROUP_HEAD + 4, out.n);
	CHECK(memcmp(head, out.p, sizeof head) == 0);
	CHECK(memcmp("body", out.p + LINE_GROUP_HEAD, 4) == 0);
	CHECK_EQ(0, line_group_decode(&back, buf_slice(&out), NULL));
	CHECK(line_mark_eq(g.mark, back.mark) && line_mark_eq(g.before, back.before));
	CHECK(back.number == 5 && back.epoch == 3 && back.begin == 2 && back.time == 1000);
	CHECK(!back.opening && slice_eq(back.body, slice_of("body")));
}

TEST(a_group_with_any_byte_changed_or_missing_is_refused)
{
	struct line_group g = some_group(5, "body"), back;

	line_group_encode(&g, &out);
	for (size_t i = 0; i < out.n; i++) {
		out.p[i] ^= 0x10;
		CHECK_EQ(SLU_ECORRUPT, line_group_decode(&back, buf_slice(&out), NULL));
		out.p[i] ^= 0x10;
		CHECK_EQ(SLU_ECORRUPT, line_group_decode(&back, (struct slice){ out.p, i }, NULL));
	}
}

TEST(a_head_that_makes_no_sense_is_refused)
{
	static const struct {
		const char *label;
		struct line_group g;
	} cases[] = {
		{ "number 0", { .number = 0, .epoch = 1, .begin = 1 } },
		{ "epoch 0", { .number = 1, .epoch = 0, .begin = 1 } },
		{ "begin 0", { .number = 1, .epoch = 1, .begin = 0 } },
		{ "begin behind itself", { .number = 1, .epoch = 1, .begin = 2 } },
		{ "an opening with a body", { .opening = true, .number = 1, .epoch = 1, .begin = 1, .body = SLICE("x") } },
	};

	EACH(i, cases) {
		struct line_group g = cases[i].g;

		buf_clear(&out);
		line_group_encode(&g, &out);
		CHECK_EQ(SLU_ECORRUPT, line_group_decode(&g, buf_slice(&out), NULL), cases[i].label);
	}
}

/* LINE-17 */
TEST(a_group_of_a_front_folder_is_pinned)
{
	struct line_group g = some_group(5, "body");
	struct line_group back;

	g.pinned = true;
	line_group_encode(&g, &out);
	CHECK_EQ(2, out.p[12]);
	CHECK_EQ(0, line_group_decode(&back, buf_slice(&out), NULL));
	CHECK(back.pinned && !back.opening);
}

/* LINE-16: a bit that this program does not know changes what a group means. */
TEST(a_group_with_an_unknown_flag_is_refused)
{
	struct line_group g = some_group(5, "body");

	line_group_encode(&g, &out);
	out.p[12] |= 4;
	le32_put(out.p + 8, crc32c(0, out.p + 12, out.n - 12));
	CHECK_EQ(SLU_ECORRUPT, line_group_decode(&g, buf_slice(&out), NULL));
}

TEST(a_span_gives_its_groups_back_byte_for_byte)
{
	static const char *const bodies[] = { "one", "", "three" };
	uint64_t lengths[COUNT(bodies)];
	struct buf groups;
	struct line_span s;
	struct slice object;
	size_t at = 0;

	buf_init(&groups, 1 << 16);
	EACH(i, bodies) {
		struct line_group g = some_group(5 + i, bodies[i]);
		const size_t n = groups.n;

		line_group_encode(&g, &groups);
		lengths[i] = groups.n - n;
	}
	line_span_encode(&out, 5, lengths, COUNT(bodies), buf_slice(&groups));
	CHECK_EQ(0, line_span_decode(&s, buf_slice(&out), NULL));
	CHECK(s.first == 5 && line_span_last(&s) == 7);
	EACH(i, bodies) {
		CHECK(line_span_next(&s, &object));
		CHECK(slice_eq(object, (struct slice){ groups.p + at, lengths[i] }));
		at += lengths[i];
	}
	CHECK(!line_span_next(&s, &object));
	for (size_t i = 0; i < LINE_SPAN_HEAD + 8 * COUNT(bodies); i++) {
		out.p[i] ^= 0x10;
		CHECK_EQ(SLU_ECORRUPT, line_span_decode(&s, buf_slice(&out), NULL));
		out.p[i] ^= 0x10;
	}
	CHECK_EQ(SLU_ECORRUPT, line_span_decode(&s, (struct slice){ out.p, out.n - 1 }, NULL));
	buf_release(&groups);
}
