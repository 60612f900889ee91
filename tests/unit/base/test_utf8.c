#include "test.h"

#include "base/utf8.h"

/* Every character there is, and the surrogates, which are none. */
TEST(every_character_is_written_and_found)
{
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		char text[UTF8_MAX] = { 0 };
		size_t n;

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		n = utf8_put(c, text);
		CHECK_EQ(c < 0x80 ? 1 : c < 0x800 ? 2
				: c < 0x10000     ? 3
						  : 4,
			 n);
		CHECK_EQ(n, utf8_length(text, text + n));
		if (n > 1)
			CHECK_EQ(0, utf8_length(text, text + n - 1), "cut off");
	}
}

/* Of all runs of up to three bytes, and of four with a fixed end, as many are one
 * character as there are characters. */
TEST(nothing_else_is_a_character)
{
	size_t found[UTF8_MAX + 1] = { 0 };

	for (uint32_t v = 0; v < 1u << 24; v++) {
		const char text[] = { (char)(v >> 16), (char)(v >> 8), (char)v, '\x80' };
		const size_t n = utf8_length(text, text + 4);

		found[n]++;
	}
	CHECK_EQ(0x80 << 16, found[1]);
	CHECK_EQ(0x780 << 8, found[2]);
	CHECK_EQ(0xf800 - 0x800, found[3]);
	CHECK_EQ(0x100000 / 64, found[4]);
}

TEST(a_text_is_valid_when_all_of_it_is)
{
	CHECK(utf8_valid((struct slice){ 0 }));
	CHECK(utf8_valid(SLICE("a\0\xc3\xa9\xf0\x9f\x98\x80")));
	CHECK(!utf8_valid(SLICE("a\xc3")));
	CHECK(!utf8_valid(SLICE("\xff")));
	CHECK(!utf8_valid(SLICE("\xed\xa0\x80")));
}
