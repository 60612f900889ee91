/*
 * json_same.c - a number is its sign, its digits without zeros at both ends, and the power of ten of the last digit:
 *
 *      -120.50    - 1205 -1        digits 12050; the last 0 is dropped
 *      1e2        + 1 2
 *      0.0        + (none) 0
 */
#include "base/json/json_same.h"

#include "base/json/json.h"
#include "base/parse.h"

enum {
	EXPONENT_DIGITS = 17 /* the power of ten stays an int64_t, however many digits the number has */
};

struct decimal {
	bool negative;
	bool exact;          /* the exponent is known */
	struct slice digits; /* from the first one that is not 0 to the last one; may contain the point */
	int64_t power;       /* of the last digit */
};

/* The exponent behind e or E, with its sign. */
static bool
read_exponent(struct slice text, int64_t *out)
{
	bool negative = false;
	uint64_t value;

	*out = 0;
	if (text.n == 0)
		return true;
	slice_skip(&text, 1); /* e */
	if (*text.p == '+' || *text.p == '-') {
		negative = *text.p == '-';
		slice_skip(&text, 1);
	}
	while (text.n > 1 && *text.p == '0')
		slice_skip(&text, 1);
	if (text.n > EXPONENT_DIGITS || parse_u64(text, 0, INT64_MAX, &value, NULL))
		return false;
	*out = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

static bool
is_counted(char c)
{
	return c != '0' && c != '.';
}

static struct slice
mantissa_of(struct slice number)
{
	size_t n = 0;

	while (n < number.n && number.p[n] != 'e' && number.p[n] != 'E')
		n++;
	return (struct slice){ number.p, n };
}

/* Digits of the mantissa behind its point. */
static int64_t
places_of(struct slice mantissa)
{
	const char *const point = mantissa.n ? memchr(mantissa.p, '.', mantissa.n) : NULL;

	return point ? (mantissa.p + mantissa.n) - point - 1 : 0;
}

static struct decimal
decimal_of(struct slice number)
{
	struct decimal d = { 0 };
	struct slice mantissa;

	if (number.n && *number.p == '-') {
		d.negative = true;
		slice_skip(&number, 1);
	}
	mantissa = mantissa_of(number);
	d.exact = read_exponent((struct slice){ number.p + mantissa.n, number.n - mantissa.n }, &d.power);
	d.power -= places_of(mantissa);
	while (mantissa.n && !is_counted(*mantissa.p))
		slice_skip(&mantissa, 1);
	for (; mantissa.n && !is_counted(mantissa.p[mantissa.n - 1]); mantissa.n--)
		d.power += mantissa.p[mantissa.n - 1] == '0';
	d.digits = mantissa;
	return d;
}

/* Compares the digits, whatever the places of the points. */
static bool
same_digits(struct slice a, struct slice b)
{
	for (;;) {
		if (a.n && *a.p == '.')
			slice_skip(&a, 1);
		if (b.n && *b.p == '.')
			slice_skip(&b, 1);
		if (!a.n || !b.n)
			return a.n == b.n;
		if (*a.p != *b.p)
			return false;
		slice_skip(&a, 1);
		slice_skip(&b, 1);
	}
}

bool
json_number_same(struct slice a, struct slice b)
{
	const struct decimal x = decimal_of(a), y = decimal_of(b);

	if (x.digits.n == 0 || y.digits.n == 0)
		return x.digits.n == y.digits.n; /* 0 has any sign and power */
	if (!x.exact || !y.exact)
		return slice_eq(a, b);
	return x.negative == y.negative && x.power == y.power && same_digits(x.digits, y.digits);
}

bool
json_number_is(struct slice text)
{
	struct json r;
	size_t n;

	json_init(&r, text, 0);
	n = json_number(&r).n;
	return n == text.n && json_end(&r, NULL) == 0;
}
