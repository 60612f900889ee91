#include "test.h"

#include "base/crc32c.h"

#include <stdlib.h>

typedef uint32_t crc_fn(uint32_t seed, const void *p, size_t n);

static crc_fn *const ways[] = { crc32c, crc32c_portable };

/* One bit at a time, straight from the polynomial. */
static uint32_t
crc_by_bits(uint32_t seed, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint32_t sum = ~seed;

	for (; n > 0; n--, p++) {
		sum ^= *p;
		for (int i = 0; i < 8; i++)
			sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
	}
	return ~sum;
}

TEST(the_vectors_of_rfc_3720_hold)
{
	static const unsigned char read_command[48] = {
		0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
		0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0
	};
	unsigned char zeros[32] = { 0 }, ones[32], up[32], down[32];

	for (int i = 0; i < 32; i++) {
		ones[i] = 0xff;
		up[i] = (unsigned char)i;
		down[i] = (unsigned char)(31 - i);
	}
	EACH(i, ways) {
		CHECK_EQ(0x8a9136aa, ways[i](0, zeros, 32), "32 zeros");
		CHECK_EQ(0x62a8ab43, ways[i](0, ones, 32), "32 ones");
		CHECK_EQ(0x46dd794e, ways[i](0, up, 32), "0 to 31");
		CHECK_EQ(0x113fdb5c, ways[i](0, down, 32), "31 to 0");
		CHECK_EQ(0xd9963a56, ways[i](0, read_command, 48), "a SCSI read");
		CHECK_EQ(0xe3069283, ways[i](0, "123456789", 9), "the check value");
		CHECK_EQ(0xc1d04330, ways[i](0, "a", 1));
		CHECK_EQ(0, ways[i](0, NULL, 0), "nothing");
	}
}

TEST(both_ways_agree_at_every_length_and_address)
{
	uint64_t state = test_seed();
	unsigned char data[300];

	EACH(i, data)
		data[i] = (unsigned char)test_random(&state);
	for (size_t at = 0; at < 16; at++) {
		for (size_t n = 0; n + at <= sizeof data; n++) {
			const uint32_t seed = (uint32_t)test_random(&state);
			const uint32_t want = crc_by_bits(seed, data + at, n);

			CHECK_EQ(want, crc32c(seed, data + at, n));
			CHECK_EQ(want, crc32c_portable(seed, data + at, n));
		}
	}
}

TEST(every_table_entry_is_right)
{
	unsigned char data[8] = { 0 };

	for (int at = 0; at < 8; at++) {
		for (int byte = 0; byte < 256; byte++) {
			data[at] = (unsigned char)byte;
			CHECK_EQ(crc_by_bits(0, data, 8), crc32c_portable(0, data, 8));
		}
		data[at] = 0;
	}
}

TEST(a_sum_over_parts_is_the_sum_of_the_whole)
{
	uint64_t state = test_seed();
	unsigned char data[100];

	EACH(i, data)
		data[i] = (unsigned char)test_random(&state);
	EACH(i, ways)
		for (size_t cut = 0; cut <= sizeof data; cut++)
			CHECK_EQ(ways[i](7, data, sizeof data),
				 ways[i](ways[i](7, data, cut), data + cut,
					 sizeof data - cut));
}

TEST(another_seed_gives_another_sum)
{
	CHECK(crc32c(0, "record", 6) != crc32c(1, "record", 6));
	CHECK(crc32c(0, "", 0) != crc32c(1, "", 0));
}

TEST(no_byte_beyond_the_end_is_read)
{
	for (size_t n = 1; n < 40; n++) {
		unsigned char *exact = calloc(1, n);

		CHECK(exact);
		EACH(i, ways)
			CHECK_EQ(crc_by_bits(0, exact, n), ways[i](0, exact, n));
		free(exact);
	}
}
