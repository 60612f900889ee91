#include "test.h"

#include "base/hash.h"

#include <stdlib.h>

/* SQ-13: the published vectors of FNV-1a, 32 bits. */
TEST(fnv1a_gives_the_published_values)
{
	static const struct {
		const char *text;
		uint32_t want;
	} cases[] = {
		{ "", 0x811c9dc5 },
		{ "a", 0xe40c292c },
		{ "b", 0xe70c2de5 },
		{ "fo", 0x6222e842 },
		{ "foo", 0xa9f37ed7 },
		{ "foob", 0x3f5076ef },
		{ "fooba", 0x39aaa18a },
		{ "foobar", 0xbf9cf968 },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].want, fnv1a32(cases[i].text, strlen(cases[i].text)));
}

/* SQ-13: computed elsewhere. Bytes above 127 and hashes above 2^31 are where a
 * signed type would give another shard, or a negative one. */
TEST(keys_go_to_the_shard_that_any_fnv1a_names)
{
	static const struct {
		const char *key;
		uint32_t want;
		unsigned of_4, of_7;
	} cases[] = {
		{ "user-1", 0xf5537974, 0, 3 },
		{ "user-2", 0xf8537e2d, 1, 4 },
		{ "order:77", 0xbc161935, 1, 0 },
		{ "gr\303\274n", 0x6058a537, 3, 0 },
		{ "\346\274\242\345\255\227", 0x5907cff2, 2, 4 },
	};

	EACH(i, cases) {
		const uint32_t h = fnv1a32(cases[i].key, strlen(cases[i].key));

		CHECK_EQ(cases[i].want, h);
		CHECK_EQ(cases[i].of_4, h % 4);
		CHECK_EQ(cases[i].of_7, h % 7);
	}
	CHECK_EQ(0x811c9dc5u * 16777619u, fnv1a32("\0", 1), "a zero byte counts");
}

TEST(fnv1a_in_parts_is_fnv1a_of_the_whole)
{
	uint32_t h = fnv1a32_more(FNV1A32_START, "acme", 4);

	h = fnv1a32_more(h, "/", 1);
	h = fnv1a32_more(h, NULL, 0);
	h = fnv1a32_more(h, "mail", 4);
	CHECK_EQ(fnv1a32("acme/mail", 9), h);
}

/* What OpenSSL's SIPHASH gives with c-rounds 1 and d-rounds 3 for the key 00 01 ..
 * 0f and the bytes 00 01 .. of each length, read as little-endian. */
TEST(the_keyed_hash_is_siphash_1_3)
{
	static const struct {
		size_t n;
		uint64_t want;
	} cases[] = {
		{ 0, 0xabac0158050fc4dc },
		{ 1, 0xc9f49bf37d57ca93 },
		{ 2, 0x82cb9b024dc7d44d },
		{ 3, 0x8bf80ab8e7ddf7fb },
		{ 7, 0xd3927d989bb11140 },
		{ 8, 0x369095118d299a8e },
		{ 9, 0x25a48eb36c063de4 },
		{ 15, 0xd320d86d2a519956 },
		{ 16, 0xcc4fdd1a7d908b66 },
		{ 31, 0x2370dd1f8c21d1bc },
		{ 63, 0x9d199062b7bbb3a8 },
	};
	const struct hash_key key = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
	unsigned char data[64];

	EACH(i, data)
		data[i] = (unsigned char)i;
	EACH(i, cases)
		CHECK_EQ(cases[i].want, hash_keyed(&key, data, cases[i].n));
}

TEST(the_keyed_hash_in_parts_is_that_of_the_whole)
{
	const struct hash_key key = { 1, 2 };
	char data[40];

	EACH(i, data)
		data[i] = (char)(7 * i);
	for (size_t n = 0; n <= sizeof data; n++)
		for (size_t part = 1; part <= 11; part++) {
			struct hash_stream s;

			hash_begin(&s, &key);
			for (size_t at = 0; at < n; at += part)
				hash_more(&s, data + at, n - at < part ? n - at : part);
			CHECK_EQ(hash_keyed(&key, data, n), hash_end(&s));
		}
}

TEST(the_keyed_hash_reads_from_any_address_and_no_byte_beyond)
{
	const struct hash_key key = { 1, 2 };
	const char text[] = "the quick brown fox";

	for (size_t n = 0; n < sizeof text; n++) {
		const uint64_t want = hash_keyed(&key, text, n);

		for (size_t shift = 0; shift < 8; shift++) {
			char *exact = malloc(shift + n + 1);

			CHECK(exact);
			memcpy(exact + shift, text, n);
			CHECK_EQ(want, hash_keyed(&key, exact + shift, n));
			free(exact);
		}
	}
	CHECK_EQ(hash_keyed(&key, "", 0), hash_keyed(&key, NULL, 0));
}

TEST(another_key_gives_another_hash)
{
	struct hash_key a, b;

	CHECK_EQ(0, hash_key_init(&a, NULL));
	CHECK_EQ(0, hash_key_init(&b, NULL));
	CHECK(a.k0 != b.k0 && a.k1 != b.k1);
	CHECK(hash_keyed(&a, "mail", 4) != hash_keyed(&b, "mail", 4));
}

TEST(random_fills_every_byte)
{
	unsigned char seen[300] = { 0 }, bytes[sizeof seen];

	for (int round = 0; round < 8; round++) {
		CHECK_EQ(0, hash_random(bytes, sizeof bytes, NULL));
		EACH(i, seen)
			seen[i] |= bytes[i];
	}
	EACH(i, seen)
		CHECK(seen[i] != 0);
	CHECK_EQ(0, hash_random(NULL, 0, NULL));
}
