#include "test.h"

#include "engine/log/place.h"

TEST(a_place_is_what_was_given)
{
	static const struct {
		const char *label;
		struct place place;
		uint64_t body;
		uint32_t rows;
	} cases[] = {
		{ "the smallest", { { 1, 64, 40 }, 1, SLAB_NONE }, 1, 0 },
		{ "with a time", { { 1, 64, 48 }, 1, SLAB_NONE }, 1, 0 },
		{ "the largest that fits", { { 1, 4096, 2080 }, 2047, SLAB_NONE }, 2047, 0 },
		{ "one more", { { 1, 8192, 2080 }, 2048, SLAB_NONE }, 2048, 1 },
		{ "the end of a body", { { 1, 72, 56 }, 3, SLAB_NONE }, 20, 1 },
		{ "the end of a segment", { { 1, (1 << 26) - 40, 40 }, 8, SLAB_NONE }, 8, 0 },
		{ "a late segment", { { 123456789, 64, 40 }, 8, SLAB_NONE }, 8, 0 },
		{ "a large one", { { 7, 64, (1 << 26) - 64 }, (1 << 26) - 104, SLAB_NONE }, (1 << 26) - 104, 1 },
		{ "a small one with a file", { { 1, 64, 48 }, 9, 5 }, 9, 1 },
	};

	EACH(i, cases) {
		struct places p;
		struct place got;
		uint64_t where;

		places_init(&p);
		CHECK_EQ(0, places_reserve(&p));
		where = places_add(&p, &cases[i].place, cases[i].body);
		CHECK(where != 0 && where < 1ull << 48);
		CHECK_EQ(cases[i].rows, map_count(&p.map), cases[i].label);
		places_get(&p, where, &got);
		CHECK_EQ(cases[i].place.at.segment, got.at.segment, cases[i].label);
		CHECK_EQ(cases[i].place.at.offset, got.at.offset, cases[i].label);
		CHECK_EQ(cases[i].place.at.length, got.at.length, cases[i].label);
		CHECK_EQ(cases[i].place.size, got.size, cases[i].label);
		CHECK_EQ(cases[i].place.file, got.file, cases[i].label);
		CHECK(places_is(&p, where, cases[i].place.at));
		places_drop(&p, where);
		CHECK_EQ(0, map_count(&p.map), cases[i].label);
		places_release(&p);
	}
}

/* PLACE-1 */
TEST(the_low_bits_name_a_segment_of_the_last_8192)
{
	const uint32_t newest = 100000;
	struct places p;
	struct place got;

	places_init(&p);
	for (uint32_t segment = newest - LOGENGINE_SEGMENTS_MAX + 1; segment <= newest; segment += 511) {
		const struct place place = { { segment, 64, 40 }, 8, SLAB_NONE };
		const uint64_t where = places_add(&p, &place, 8);

		places_see(&p, newest);
		places_get(&p, where, &got);
		CHECK_EQ(segment, got.at.segment);
	}
	places_release(&p);
}
