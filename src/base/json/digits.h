/*
 * digits.h - writes whole numbers as decimal text, eight digits at a time: printf takes ten times as long.
 */
#ifndef BASE_JSON_DIGITS_H
#define BASE_JSON_DIGITS_H

#include <stdint.h>

enum {
	DIGITS_MAX = 20, /* of a number of 64 bits */
	DIGITS_ROOM = 24 /* bytes that digits_put may write */
};

/* The same for numbers with several digits. */
char *digits_put_many(char *out, uint64_t v);

/* Writes v without leading zeros and without a NUL; the bytes behind are undefined, up to DIGITS_ROOM. Returns the end of
 * the text. */
static inline char *
digits_put(char *out, uint64_t v)
{
	if (v >= 10)
		return digits_put_many(out, v);
	*out = (char)('0' + v);
	return out + 1;
}

#endif
