/*
 * parse.h - numbers, sizes and durations as people write them.
 *
 *      duration   "100ms"  "20s"  "1.5s"  "1h30m"  "7d"  "0"
 *                 units d h m s ms us ns, larger before smaller, each once; only
 *                 the last part may have a fraction. A number needs a unit, except 0.
 *      size       "4096"  "512k"  "64M"  "1GiB"
 *                 k M G T, in either case, alone or with B or iB, are powers of 1024.
 *                 B is bytes.
 *      number     digits; parse_i64 also accepts a minus before them
 *
 * Strict: no spaces, no plus, no leading zeros, nothing after the value, and no value
 * that is out of range or would need rounding. The functions return SLU_EINVAL, leave
 * *out unchanged, and the text names the value and the expected form.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include "base/bytes.h"

#include <sluice/err.h>

#include <endian.h>

enum {
	DURATION_TEXT = 40, /* room for any duration, with the NUL */
	SIZE_TEXT = 24,     /* for any size */
	SHOWN_TEXT = 48     /* for what parse_shown writes */
};

/* *out is 0 or more, and less than SLU_NEVER. */
int parse_duration(struct slice s, slu_time *out, struct slu_err *err);
int parse_size(struct slice s, uint64_t *out, struct slu_err *err);

/* The range includes min and max. */
int parse_u64(struct slice s, uint64_t min, uint64_t max, uint64_t *out,
	      struct slu_err *err);
int parse_i64(struct slice s, int64_t min, int64_t max, int64_t *out,
	      struct slu_err *err);

/* Write the shortest text that parses to the same value: "1h30m", "1.5s", "64M". They return
 * out, and cut the text if n is too small. A negative duration gets a minus, SLU_NEVER is "never";
 * these two do not parse. */
const char *format_duration(slu_time t, char *out, size_t n);
const char *format_size(uint64_t size, char *out, size_t n);

/* Writes a value in quotes for an error text: cut if it is long, with ? for everything but
 * printable ASCII. Returns out. */
const char *parse_shown(struct slice s, char out[static SHOWN_TEXT]);

/*
 * Eight digits at once: ids and tokens have up to 20.
 *
 *      text   "12345678", the first digit in the lowest byte
 *      pairs  12 . 34 . 56 . 78 .       ten times a digit, plus the digit behind it
 *      fours  1234 . . . 5678 . . .     the same with pairs
 *      eight  12345678
 */

/* Eight bytes as a number, the first byte in the lowest bits. */
static inline uint64_t
parse_load_8(const char *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof word);
	return le64toh(word);
}

/* Whether all eight bytes are digits. A digit has 3 in its upper half, also if 6 is added. */
static inline bool
parse_is_8_digits(const char *p)
{
	const uint64_t word = parse_load_8(p);

	return ((word & 0xf0f0f0f0f0f0f0f0u) | (((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4)) ==
	       0x3333333333333333u;
}

/* How many digits the eight bytes of parse_load_8 begin with. */
static inline unsigned
parse_digits_of(uint64_t word)
{
	const uint64_t values = word ^ 0x3030303030303030u;
	const uint64_t others = ((values + 0x7676767676767676u) | values) & 0x8080808080808080u;

	return others ? (unsigned)__builtin_ctzll(others) / 8 : 8; /* a carry goes to later bytes alone */
}

/* The value of eight bytes that are digits, or 0. */
static inline uint64_t
parse_value_of(uint64_t word)
{
	word &= 0x0f0f0f0f0f0f0f0fu;
	word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ffu;
	word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffffu;
	return (word * 10000 + (word >> 32)) & 0xffffffffu;
}

/* The value of eight digits. */
static inline uint64_t
parse_8_digits(const char *p)
{
	return parse_value_of(parse_load_8(p));
}

#endif
