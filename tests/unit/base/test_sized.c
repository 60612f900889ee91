/* Structs of programs that were built with older and newer headers. */
#include "test.h"

#include "base/sized.h"

#include <stddef.h>

struct slu_sample { /* as the library knows it */
	size_t struct_size;
	int32_t first, second;
	uint64_t answer;
};

struct older {
	size_t struct_size;
	int32_t first, second;
};

struct newer {
	struct slu_sample known;
	uint64_t later;
};

static struct slu_err err;

static const struct slu_sample *
read_as(const void *given, struct slu_sample *room)
{
	return SIZED(slu_sample, given, room, &err);
}

TEST(a_struct_of_our_size_is_used_where_it_is)
{
	const struct slu_sample given = { sizeof given, 1, 2, 3 };
	struct slu_sample room;

	CHECK(read_as(&given, &room) == &given);
}

TEST(no_struct_is_all_zeros)
{
	struct slu_sample room = { 1, 2, 3, 4 };
	const struct slu_sample *s = read_as(NULL, &room);

	CHECK_EQ(sizeof *s, s->struct_size);
	CHECK_EQ(0, s->first);
	CHECK_EQ(0, s->answer);
}

TEST(what_an_older_struct_lacks_is_zero)
{
	const struct older given = { sizeof given, 1, 2 };
	struct slu_sample room = { .answer = 9 };
	const struct slu_sample *s = read_as(&given, &room);

	CHECK_EQ(2, s->second);
	CHECK_EQ(0, s->answer);
}

TEST(a_newer_struct_is_fine_while_what_is_new_is_not_used)
{
	struct newer given = { { sizeof given, 1, 2, 3 }, 0 };
	struct slu_sample room;
	const struct slu_sample *s = read_as(&given, &room);

	CHECK_EQ(3, s->answer);
	given.later = 1;
	CHECK(!read_as(&given, &room));
	CHECK_EQ(SLU_EINVAL, err.code);
	CHECK_CONTAINS("struct slu_sample has members set that version", err.text);
}

TEST(a_missing_struct_size_is_refused_and_the_macro_is_named)
{
	static const size_t sizes[] = { 0, 1, sizeof(size_t) - 1, (size_t)1 << 40, (size_t)-1 };
	struct slu_sample room;

	EACH(i, sizes) {
		const struct slu_sample given = { .struct_size = sizes[i] };

		CHECK(!read_as(&given, &room));
		CHECK_EQ(SLU_EINVAL, err.code);
		CHECK_CONTAINS("SLU_OPTIONS_INIT(struct slu_sample)", err.text);
	}
}

static int
read_array(struct sized_array *a, const void *given, size_t n)
{
	return sized_array(a, given, n, sizeof(struct slu_sample), "slu_sample", &err);
}

TEST(an_array_steps_by_the_size_of_its_elements)
{
	struct newer given[2] = { { { sizeof given[0], 1, 2, 3 }, 0 }, { { sizeof given[0], 4, 5, 6 }, 0 } };
	struct slu_sample *items;
	struct sized_array a;

	CHECK_EQ(0, read_array(&a, given, 2));
	items = a.items;
	CHECK_EQ(5, items[1].second);
	items[1].answer = 7;
	sized_array_answer(&a, given, 2, sizeof *items);
	CHECK_EQ(7, given[1].known.answer);
	CHECK_EQ(sizeof given[0], given[1].known.struct_size);
	sized_array_release(&a);
}

TEST(an_answer_that_an_older_struct_has_no_place_for_is_left_out)
{
	struct older given[2] = { { sizeof given[0], 1, 2 }, { sizeof given[0], 3, 4 } };
	struct slu_sample *items;
	struct sized_array a;

	CHECK_EQ(0, read_array(&a, given, 2));
	items = a.items;
	items[0].answer = UINT64_MAX;
	items[1].second = 8;
	sized_array_answer(&a, given, 2, sizeof *items);
	CHECK_EQ(sizeof given[0], given[1].struct_size);
	CHECK_EQ(8, given[1].second);
	sized_array_release(&a);
}

TEST(every_element_says_its_size)
{
	const struct slu_sample given[2] = { { sizeof given[0], 1, 2, 3 }, { 0, 4, 5, 6 } };
	struct sized_array a;

	CHECK_EQ(SLU_EINVAL, read_array(&a, given, 2));
	CHECK_CONTAINS("element 1", err.text);
	sized_array_release(&a);
}
