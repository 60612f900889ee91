#include "test.h"

#include "base/base64.h"

#include <stdio.h>

/* The vectors of RFC 4648, section 10, and the two letters that are not
 * alphanumeric. */
TEST(bytes_become_text_and_come_back)
{
	static const struct {
		struct slice bytes;
		const char *text;
	} cases[] = {
		{ SLICE(""), "" },
		{ SLICE("f"), "Zg==" },
		{ SLICE("fo"), "Zm8=" },
		{ SLICE("foo"), "Zm9v" },
		{ SLICE("foob"), "Zm9vYg==" },
		{ SLICE("fooba"), "Zm9vYmE=" },
		{ SLICE("foobar"), "Zm9vYmFy" },
		{ SLICE("\xfb\xff\xbf"), "+/+/" },
		{ SLICE("\0\0\0\0"), "AAAAAA==" },
		{ SLICE("\xff\xff"), "//8=" },
	};

	EACH(i, cases) {
		char text[16] = { 0 };
		char bytes[16];
		size_t n = 99;

		base64_encode(cases[i].bytes, text);
		CHECK_STR(cases[i].text, text);
		CHECK_EQ(strlen(text), base64_text(cases[i].bytes.n));
		CHECK_EQ(0, base64_decode(slice_of(text), bytes, &n, NULL));
		CHECK(slice_eq(cases[i].bytes, (struct slice){ bytes, n }));
		CHECK(n <= base64_room(strlen(text)));
	}
}

TEST(what_is_not_canonical_is_refused)
{
	static const struct {
		const char *text;
		size_t at;
	} cases[] = {
		{ "Z", 1 },
		{ "Zg", 2 },
		{ "Zg=", 2 },
		{ "Zm8", 3 },
		{ "=", 0 },
		{ "====", 0 },
		{ "Z===", 1 },
		{ "Zg==Zg==", 2 },
		{ "Zg==A", 2 },
		{ "Zg==\n", 2 },
		{ "Zm9v\n", 4 },
		{ "Zm9v Zm9v", 4 },
		{ "Zm 9v", 2 },
		{ "Zm9v====", 4 },
		{ "Zg=a", 2 },
		{ "Zh==", 2 }, /* bits to spare that are not zero */
		{ "Zm9=", 3 },
		{ "Zm-_", 2 }, /* the alphabet of URLs */
		{ "Zm9\xc3", 3 },
		{ "Zm9v!m9v", 4 },
	};

	EACH(i, cases) {
		char bytes[16], want[32];
		struct slu_err err;
		size_t n = 7;

		if (base64_decode(slice_of(cases[i].text), bytes, &n, &err) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "took %s", cases[i].text);
		snprintf(want, sizeof want, "at byte %zu of", cases[i].at);
		CHECK_CONTAINS(want, err.text);
		CHECK_EQ(7, n, "left as it was");
	}
}

TEST(a_text_may_be_decoded_where_it_lies)
{
	char memory[] = "Zm9vYmFyZm9vYmE=";
	size_t n;

	CHECK_EQ(0, base64_decode((struct slice){ memory, sizeof memory - 1 }, memory, &n, NULL));
	CHECK(slice_eq(SLICE("foobarfooba"), (struct slice){ memory, n }));
}

/* A byte is right in every place, and just one text stands for some bytes: what is
 * taken is what would be written. */
TEST(random_groups_decode_to_what_encodes_to_them)
{
	static const char some[] = "AZaz09+/=BgQw \xff";
	uint64_t seed = test_seed();

	for (int round = 0; round < 200000; round++) {
		char text[8], bytes[8], again[8];
		size_t n;

		EACH(i, text)
			text[i] = some[test_random(&seed) % (sizeof some - 1)];
		if (base64_decode((struct slice){ text, 8 }, bytes, &n, NULL))
			continue;
		base64_encode((struct slice){ bytes, n }, again);
		CHECK(base64_text(n) == 8 && memcmp(text, again, 8) == 0);
	}
}

TEST(every_byte_comes_back)
{
	char bytes[256 + 3], text[512], back[512];
	size_t n;

	EACH(i, bytes)
		bytes[i] = (char)i;
	for (size_t from = 0; from < 3; from++) {
		const struct slice s = { bytes + from, 256 };

		base64_encode(s, text);
		CHECK_EQ(0, base64_decode((struct slice){ text, base64_text(256) }, back, &n, NULL));
		CHECK(slice_eq(s, (struct slice){ back, n }));
	}
}

/* Long runs go another way than short ones: every length, and every letter in every place. */
TEST(bytes_of_every_length_come_back)
{
	char bytes[100], text[137], back[102];
	uint64_t seed = test_seed();
	size_t n;

	for (unsigned turn = 0; turn < 64; turn++)
		for (size_t len = 0; len <= sizeof bytes; len++) {
			const struct slice s = { bytes, len };

			for (size_t i = 0; i < len; i++)
				bytes[i] = (char)test_random(&seed);
			text[base64_text(len)] = '!';
			base64_encode(s, text);
			CHECK_EQ('!', text[base64_text(len)], "nothing beyond the end");
			CHECK_EQ(0, base64_decode((struct slice){ text, base64_text(len) }, back, &n, NULL));
			CHECK(slice_eq(s, (struct slice){ back, n }));
		}
}

/* Decodes a group at a time, and so never four at once. Returns false if a group is invalid, or
 * padded before the end. */
static bool
decode_by_groups(struct slice text, char *out, size_t *n)
{
	size_t more = 3;

	*n = 0;
	for (size_t i = 0; i < text.n; i += 4, *n += more)
		if (more < 3 || base64_decode((struct slice){ text.p + i, 4 }, out + *n, &more, NULL))
			return false;
	return true;
}

TEST(every_byte_in_every_place_of_a_long_text_is_judged_like_in_a_short_one)
{
	char text[64], out[48], want[48];

	for (size_t place = 0; place < sizeof text; place++)
		for (unsigned byte = 0; byte < 256; byte++) {
			const struct slice s = { text, sizeof text };
			char found[40];
			struct slu_err err = { 0 };
			size_t n = 0, m;
			bool good;

			memset(text, 'Z', sizeof text);
			text[place] = (char)byte;
			good = decode_by_groups(s, want, &m);
			CHECK_EQ(good ? 0 : SLU_EINVAL, base64_decode(s, out, &n, &err));
			if (good)
				CHECK(n == m && memcmp(out, want, n) == 0);
			snprintf(found, sizeof found, "at byte %zu of", place);
			if (!good && byte != '=')
				CHECK_CONTAINS(found, err.text);
		}
}

TEST(a_long_text_may_be_decoded_where_it_lies_and_fills_no_byte_more)
{
	char bytes[100], text[137], out[102];
	uint64_t seed = test_seed();

	for (size_t len = 0; len <= sizeof bytes; len++) {
		const struct slice s = { text, base64_text(len) };
		size_t n;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (char)test_random(&seed);
		base64_encode((struct slice){ bytes, len }, text);
		memset(out, '!', sizeof out);
		CHECK_EQ(0, base64_decode(s, out, &n, NULL));
		CHECK_EQ('!', out[len], "nothing beyond the bytes");
		text[s.n] = '!';
		CHECK_EQ(0, base64_decode(s, text, &n, NULL));
		CHECK(slice_eq((struct slice){ bytes, len }, (struct slice){ text, n }));
		CHECK_EQ('!', text[s.n], "nothing beyond the text");
	}
}

/* --- for URLs --------------------------------------------------------------------- */

TEST(url_letters_have_no_padding)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg" },
		{ "fo", "Zm8" },
		{ "foo", "Zm9v" },
		{ "\xfb\xff\xfe?", "-__-Pw" },
		/* long enough to be written four groups at a time */
		{ "\xfb\xff\xfe\xfb\xff\xfe\xfb\xff\xfe\xfb\xff\xfe\xfb\xff\xfe\xfb\xff\xfe?",
		  "-__--__--__--__--__--__-Pw" },
	};

	EACH(i, cases) {
		const struct slice text = slice_of(cases[i].text);
		char out[32];
		size_t n;

		CHECK_EQ(text.n, base64url_text(strlen(cases[i].bytes)));
		base64url_encode(slice_of(cases[i].bytes), out);
		CHECK(slice_eq(text, (struct slice){ out, text.n }));
		CHECK_EQ(0, base64url_decode(text, out, &n, NULL));
		CHECK(slice_eq(slice_of(cases[i].bytes), (struct slice){ out, n }));
	}
}

TEST(url_letters_have_no_second_spelling)
{
	static const char *const cases[] = {
		"Zg==", "Zg=", "Zh", "Zm9", "+__-Pw", "-_/-Pw", "Z", "Zm9vZ", "Zm 8", "Zm9v\n",
		"Zm9v=", "===="
	};

	EACH(i, cases) {
		char out[16];
		size_t n;

		CHECK_EQ(SLU_EINVAL, base64url_decode(slice_of(cases[i]), out, &n, NULL), cases[i]);
	}
}
