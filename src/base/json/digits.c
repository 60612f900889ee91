#include "base/json/digits.h"

#include <endian.h>
#include <string.h>

enum {
	EIGHT = 100000000 /* 10 to the power of 8 */
};

#define ZEROS ((uint64_t)0x3030303030303030u)

/*
 * The eight digits of n, a byte each, the first in the lowest byte:
 *
 *      n        12345678
 *      fours    1234        5678          32 bits each
 *      pairs    12    34    56    78      16 bits each
 *      digits   1  2  3  4  5  6  7  8
 *
 * A division by 100 or 10 is a multiplication and a shift, of all parts at once.
 */
static inline uint64_t
digits_of(uint32_t n)
{
	const uint64_t fours = n / 10000 | (uint64_t)(n % 10000) << 32;
	const uint64_t hundreds = fours * 10486 >> 20 & 0x0000007f0000007f;
	const uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
	const uint64_t tens = pairs * 103 >> 10 & 0x000f000f000f000f;

	return tens | (pairs - 10 * tens) << 8;
}

static inline char *
put_8(char *out, uint64_t digits)
{
	const uint64_t text = htole64(digits + ZEROS);

	memcpy(out, &text, sizeof text);
	return out + sizeof text;
}

/* Without leading zeros. */
static inline char *
put_first(char *out, uint32_t n)
{
	const uint64_t digits = digits_of(n);
	const unsigned zeros = (unsigned)__builtin_ctzll(digits) / 8; /* n is not 0 */

	(void)put_8(out, digits >> 8 * zeros);
	return out + 8 - zeros;
}

char *
digits_put_many(char *out, uint64_t v)
{
	const uint64_t high = v / EIGHT;

	if (high == 0)
		return put_first(out, (uint32_t)v);
	if (high < EIGHT)
		out = put_first(out, (uint32_t)high);
	else
		out = put_8(put_first(out, (uint32_t)(high / EIGHT)), digits_of((uint32_t)(high % EIGHT)));
	return put_8(out, digits_of((uint32_t)(v % EIGHT)));
}
