#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	SURE_DIGITS = 19 /* every number with so many digits fits into 64 bits */
};

struct unit {
	const char *name;
	uint64_t size;
};

/* Largest first. */
static const struct unit time_units[] = {
	{ "d", 24 * SLU_HOUR },
	{ "h", SLU_HOUR },
	{ "m", SLU_MIN },
	{ "s", SLU_SEC },
	{ "ms", SLU_MS },
	{ "us", SLU_US },
	{ "ns", 1 },
	{ NULL, 0 },
};

#define KIB ((uint64_t)1 << 10)
#define MIB (KIB << 10)
#define GIB (MIB << 10)
#define TIB (GIB << 10)

/* clang-format off */
static const struct unit size_units[] = {
	{ "", 1 }, { "b", 1 },
	{ "k", KIB }, { "kb", KIB }, { "kib", KIB },
	{ "m", MIB }, { "mb", MIB }, { "mib", MIB },
	{ "g", GIB }, { "gb", GIB }, { "gib", GIB },
	{ "t", TIB }, { "tb", TIB }, { "tib", TIB },
	{ NULL, 0 },
};
/* clang-format on */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
at_digit(struct slice s)
{
	return s.n > 0 && is_digit(*s.p);
}

static char
next(struct slice *s)
{
	s->n--;
	return *s->p++;
}

const char *
parse_shown(struct slice s, char out[static SHOWN_TEXT])
{
	const size_t max = SHOWN_TEXT - sizeof "\"...\"";
	const size_t n = s.n > max ? max : s.n;
	char text[SHOWN_TEXT] = { 0 };

	for (size_t i = 0; i < n; i++)
		text[i] = (char)(s.p[i] >= ' ' && s.p[i] < 0x7f ? s.p[i] : '?');
	snprintf(out, SHOWN_TEXT, "\"%.*s%s\"", (int)n, text, s.n > n ? "..." : "");
	return out;
}

/* Takes digits without leading zeros off the front of s. */
static bool
take_u64(struct slice *s, uint64_t *out)
{
	const struct slice in = *s;
	uint64_t v = 0;
	size_t n = 0;

	for (; n + 8 <= SURE_DIGITS && n + 8 <= in.n && parse_is_8_digits(in.p + n); n += 8)
		v = 100000000 * v + parse_8_digits(in.p + n);
	for (; n < in.n && is_digit(in.p[n]); n++) {
		const uint64_t digit = (uint64_t)(in.p[n] - '0');

		if (n < SURE_DIGITS)
			v = 10 * v + digit;
		else if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
			return false;
	}
	if (n == 0)
		return false;
	*out = v;
	*s = (struct slice){ in.p + n, in.n - n };
	return n == 1 || *in.p != '0';
}

int
parse_u64(struct slice s, uint64_t min, uint64_t max, uint64_t *out,
	  struct slu_err *err)
{
	struct slice rest = s;
	char shown[SHOWN_TEXT];
	uint64_t v;

	if (!take_u64(&rest, &v) || rest.n > 0 || v < min || v > max)
		return slu_fail(err, SLU_EINVAL,
				"%s: expected a number from %" PRIu64 " to %" PRIu64,
				parse_shown(s, shown), min, max);
	*out = v;
	return 0;
}

static bool
read_i64(struct slice s, int64_t *out)
{
	const bool minus = s.n > 0 && *s.p == '-';
	const uint64_t most = (uint64_t)INT64_MAX + minus;
	uint64_t v;

	if (minus)
		next(&s);
	if (!take_u64(&s, &v) || s.n > 0 || v > most || (minus && v == 0))
		return false;
	*out = (int64_t)(minus ? -v : v);
	return true;
}

int
parse_i64(struct slice s, int64_t min, int64_t max, int64_t *out,
	  struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	int64_t v;

	if (!read_i64(s, &v) || v < min || v > max)
		return slu_fail(err, SLU_EINVAL,
				"%s: expected a number from %" PRId64 " to %" PRId64,
				parse_shown(s, shown), min, max);
	*out = v;
	return 0;
}

/* Takes the letters at the front of s. Returns the unit with that name if it is smaller than
 * `below`, or NULL. */
static const struct unit *
take_time_unit(struct slice *s, uint64_t below)
{
	struct slice name = { s->p, 0 };

	while (name.n < s->n && s->p[name.n] >= 'a' && s->p[name.n] <= 'z')
		name.n++;
	slice_skip(s, name.n);
	for (const struct unit *u = time_units; u->name; u++)
		if (u->size < below && slice_eq(name, slice_of(u->name)))
			return u;
	return NULL;
}

/* Reads the digits after a point as a part of one unit. Returns false if they need more than
 * nanoseconds. */
static bool
scale_fraction(struct slice digits, uint64_t unit, uint64_t *out)
{
	*out = 0;
	while (digits.n > 0) {
		const uint64_t digit = (uint64_t)(next(&digits) - '0');

		if (digit > 0 && (unit == 0 || unit % 10 > 0))
			return false;
		unit /= 10;
		*out += digit * unit;
	}
	return true;
}

static struct slice
take_fraction(struct slice *s)
{
	struct slice digits;

	next(s); /* the point */
	digits = (struct slice){ s->p, 0 };
	while (at_digit(*s)) {
		next(s);
		digits.n++;
	}
	return digits;
}

/* Adds one part, "1.5h", to *sum. Sets *below to the unit of that part. */
static bool
take_part(struct slice *s, uint64_t *below, uint64_t *sum)
{
	struct slice fraction = { 0 };
	const struct unit *unit;
	uint64_t whole, share;
	bool has_fraction;

	if (!take_u64(s, &whole))
		return false;
	has_fraction = s->n > 0 && *s->p == '.';
	if (has_fraction)
		fraction = take_fraction(s);
	unit = take_time_unit(s, *below);
	if (!unit || (has_fraction && (fraction.n == 0 || s->n > 0)))
		return false;
	*below = unit->size;
	return scale_fraction(fraction, unit->size, &share) &&
	       !__builtin_mul_overflow(whole, unit->size, &whole) &&
	       !__builtin_add_overflow(*sum, whole, sum) &&
	       !__builtin_add_overflow(*sum, share, sum);
}

static bool
read_duration(struct slice s, uint64_t *out)
{
	uint64_t below = UINT64_MAX;

	*out = 0;
	if (slice_eq(s, SLICE("0")))
		return true;
	if (s.n == 0)
		return false;
	while (s.n > 0)
		if (!take_part(&s, &below, out))
			return false;
	return *out < (uint64_t)SLU_NEVER;
}

int
parse_duration(struct slice s, slu_time *out, struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	uint64_t ns;

	if (!read_duration(s, &ns))
		return slu_fail(err, SLU_EINVAL,
				"%s: expected a duration with its unit (d, h, m, s, "
				"ms, us, ns), as 100ms, 1.5s or 1h30m",
				parse_shown(s, shown));
	*out = (slu_time)ns;
	return 0;
}

static const struct unit *
size_unit_of(struct slice name)
{
	char folded[4] = { 0 };

	if (name.n >= sizeof folded)
		return NULL;
	for (size_t i = 0; i < name.n; i++)
		folded[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] + 32
									: name.p[i]);
	for (const struct unit *u = size_units; u->name; u++)
		if (slice_eq((struct slice){ folded, name.n }, slice_of(u->name)))
			return u;
	return NULL;
}

int
parse_size(struct slice s, uint64_t *out, struct slu_err *err)
{
	struct slice rest = s;
	const struct unit *unit;
	char shown[SHOWN_TEXT];
	uint64_t v;
	bool good = take_u64(&rest, &v);

	unit = size_unit_of(rest);
	good = good && unit && !__builtin_mul_overflow(v, unit->size, &v);
	if (!good)
		return slu_fail(err, SLU_EINVAL,
				"%s: expected a size, a whole number of bytes or of "
				"k, M, G, T (times 1024), as 4096, 512k or 64M",
				parse_shown(s, shown));
	*out = v;
	return 0;
}

/* Writes "1.5s": a number of units with a fraction, without trailing zeros. For s and smaller
 * units, which are powers of ten. */
static void
print_fraction(char *out, size_t n, uint64_t ns, const struct unit *u)
{
	const uint64_t billionths = ns % u->size * ((uint64_t)SLU_SEC / u->size);
	char digits[16];
	int n_digits = snprintf(digits, sizeof digits, "%09u", (unsigned)billionths);

	while (n_digits > 0 && digits[n_digits - 1] == '0')
		n_digits--;
	snprintf(out, n, "%" PRIu64 "%s%.*s%s", ns / u->size, n_digits ? "." : "",
		 n_digits, digits, u->name);
}

/* Whole d, h and m, then one part for what is below a minute. */
static void
print_duration(char *out, size_t n, uint64_t ns)
{
	const struct unit *u = time_units;

	for (; u->size >= (uint64_t)SLU_MIN; u++) {
		if (ns >= u->size) {
			const int used = snprintf(out, n, "%" PRIu64 "%s",
						  ns / u->size, u->name);

			out += used;
			n -= (size_t)used;
		}
		ns %= u->size;
	}
	if (ns == 0)
		return;
	while (ns < u->size)
		u++;
	print_fraction(out, n, ns, u);
}

const char *
format_duration(slu_time t, char *out, size_t n)
{
	char text[DURATION_TEXT] = "0s";

	if (t < 0) {
		text[0] = '-';
		print_duration(text + 1, sizeof text - 1, -(uint64_t)t);
	} else if (t == SLU_NEVER) {
		snprintf(text, sizeof text, "never");
	} else if (t > 0) {
		print_duration(text, sizeof text, (uint64_t)t);
	}
	snprintf(out, n, "%s", text);
	return out;
}

const char *
format_size(uint64_t size, char *out, size_t n)
{
	static const char *const names[] = { "", "K", "M", "G", "T" };
	size_t i = 0;

	while (i < 4 && size > 0 && size % 1024 == 0) {
		size /= 1024;
		i++;
	}
	snprintf(out, n, "%" PRIu64 "%s", size, names[i]);
	return out;
}
