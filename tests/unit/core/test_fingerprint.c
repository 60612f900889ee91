#include "test.h"

#include "core/fingerprint.h"

#include <stdio.h>

static const struct {
	const char *label, *error, *text;
} cases[] = {
	{ "no error", "", "" },
	{ "a number", "gateway timeout after 512 ms", "gateway timeout after # ms" },
	{ "an address and a port", "connect 10.0.0.7:5432: refused", "connect #: refused" },
	{ "an id in hex", "order 7f3a90bc1 is gone", "order # is gone" },
	{ "hex digits that are a word", "feedbacc and deadbeef", "feedbacc and deadbeef" },
	{ "a short word with digits", "utf8 in v2", "utf# in v#" },
	{ "a UUID", "job 550e8400-e29b-41d4-a716-446655440000 failed", "job # failed" },
	{ "a moment", "at 2026-11-18T20:00:01.5Z", "at #T#Z" },
	{ "a pointer", "fault at 0x7FFe01", "fault at #" },
	{ "the first line", "no route\n  at main.c:7\n", "no route" },
	{ "spaces", "  no \t  route  ", "no route" },
	{ "other letters", "größe 12 zu groß", "größe # zu groß" },
};

TEST(errors_that_differ_in_numbers_and_ids_are_alike)
{
	struct fingerprint f;

	EACH(i, cases) {
		fingerprint_of(1, slice_of(cases[i].error), &f);
		if (strcmp(cases[i].text, f.text) != 0)
			printf("# %s\n", cases[i].label);
		CHECK_STR(cases[i].text, f.text);
	}
}

TEST(a_fingerprint_is_the_same_everywhere_and_has_the_reason_in_it)
{
	struct fingerprint a, b, c;

	fingerprint_of(1, SLICE("timeout after 5 s"), &a);
	fingerprint_of(1, SLICE("timeout after 731 s"), &b);
	fingerprint_of(2, SLICE("timeout after 5 s"), &c);
	CHECK_EQ(a.hash, b.hash, "alike");
	CHECK(a.hash != c.hash);
	CHECK_EQ(0xa72f37d6cca7dce1u, a.hash, "golden");
}

TEST(a_long_error_is_cut_between_characters)
{
	char text[4 * FINGERPRINT_TEXT];
	struct fingerprint f;

	for (size_t i = 0; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "ö", 2);
	fingerprint_of(1, (struct slice){ text, sizeof text }, &f);
	CHECK_EQ(FINGERPRINT_TEXT - 2, strlen(f.text), "whole characters");
	memset(text, 'x', sizeof text);
	fingerprint_of(1, (struct slice){ text, sizeof text }, &f);
	CHECK_EQ(FINGERPRINT_TEXT - 1, strlen(f.text), "ASCII");
}
