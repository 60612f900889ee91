/*
 * json_compact.c - the grammar of RFC 8259 as a state machine over bytes.
 *
 * A state is a function: it takes one byte, or passes it to another state. So a number, which
 * ends with the byte after it, needs no special case.
 */
#include "base/json/json_compact.h"

#include <assert.h>

enum state {
	AT_VALUE,
	AT_FIRST_ELEMENT, /* or ] */
	AT_FIRST_NAME,    /* or } */
	AT_NAME,
	AT_COLON,
	BEHIND, /* a value: a comma, the end of what it is in, or of all */
	IN_WORD,
	IN_STRING,
	IN_CHARACTER, /* of several bytes */
	AT_ESCAPE,
	IN_UNIT, /* the digits of \u */
	/* Numbers: what was read last. */
	NUMBER_MINUS,
	NUMBER_ZERO,
	NUMBER_DIGITS,
	NUMBER_POINT,
	NUMBER_FRACTION,
	NUMBER_E,
	NUMBER_SIGN,
	NUMBER_EXPONENT,
	STATES
};

static bool
is_space(unsigned char b)
{
	return b == ' ' || b == '\t' || b == '\n' || b == '\r';
}

static bool
is_digit(unsigned char b)
{
	return b >= '0' && b <= '9';
}

/* For a state to return: the byte is taken. */
static bool
refuse(struct json_compact *c, const char *expected)
{
	c->expected = expected;
	return true;
}

/* Take the byte and write it. */
static bool
keep(struct json_compact *c, unsigned char b, struct buf *out, enum state next)
{
	buf_putc(out, (char)b);
	c->state = (uint8_t)next;
	return true;
}

/* Another state takes it. */
static bool
leave(struct json_compact *c, enum state next)
{
	c->state = (uint8_t)next;
	return false;
}

static bool
in_object(const struct json_compact *c)
{
	return c->objects[(c->depth - 1) / 64] >> (c->depth - 1) % 64 & 1;
}

static bool
open_level(struct json_compact *c, unsigned char b, struct buf *out)
{
	const uint64_t bit = (uint64_t)1 << c->depth % 64;

	if (c->depth == c->max_depth)
		return refuse(c, "less nesting");
	if (b == '{')
		c->objects[c->depth / 64] |= bit;
	else
		c->objects[c->depth / 64] &= ~bit;
	c->depth++;
	return keep(c, b, out, b == '{' ? AT_FIRST_NAME : AT_FIRST_ELEMENT);
}

static bool
close_level(struct json_compact *c, unsigned char b, struct buf *out)
{
	c->depth--;
	return keep(c, b, out, BEHIND);
}

static bool
begin_string(struct json_compact *c, unsigned char b, struct buf *out, bool is_name)
{
	c->is_name = is_name;
	return keep(c, b, out, IN_STRING);
}

static bool
begin_word(struct json_compact *c, unsigned char b, struct buf *out)
{
	c->word = b == 't' ? "rue" : b == 'f' ? "alse"
					      : "ull";
	return keep(c, b, out, IN_WORD);
}

static bool
at_value(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (is_space(b))
		return true;
	switch (b) {
	case '{':
	case '[':
		return open_level(c, b, out);
	case '"':
		return begin_string(c, b, out, false);
	case 't':
	case 'f':
	case 'n':
		return begin_word(c, b, out);
	case '-':
		return keep(c, b, out, NUMBER_MINUS);
	case '0':
		return keep(c, b, out, NUMBER_ZERO);
	default:
		return is_digit(b) ? keep(c, b, out, NUMBER_DIGITS) : refuse(c, "a value");
	}
}

static bool
at_first_element(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (is_space(b))
		return true;
	return b == ']' ? close_level(c, b, out) : leave(c, AT_VALUE);
}

static bool
at_first_name(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (is_space(b))
		return true;
	return b == '}' ? close_level(c, b, out) : leave(c, AT_NAME);
}

static bool
at_name(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (is_space(b))
		return true;
	return b == '"' ? begin_string(c, b, out, true) : refuse(c, "a name in quotes");
}

static bool
at_colon(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (is_space(b))
		return true;
	return b == ':' ? keep(c, b, out, AT_VALUE) : refuse(c, "a colon");
}

static bool
behind(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (is_space(b))
		return true;
	if (c->depth == 0)
		return refuse(c, "nothing behind the document");
	if (b == ',')
		return keep(c, b, out, in_object(c) ? AT_NAME : AT_VALUE);
	if (b == (in_object(c) ? '}' : ']'))
		return close_level(c, b, out);
	return refuse(c, in_object(c) ? "a comma or }" : "a comma or ]");
}

static bool
in_word(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (b != (unsigned char)*c->word)
		return refuse(c, "true, false or null");
	c->word++;
	return keep(c, b, out, *c->word ? IN_WORD : BEHIND);
}

/* The first byte of a character that has several: RFC 3629, section 4. */
static bool
begin_character(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (b < 0xc2 || b > 0xf4)
		return refuse(c, "UTF-8");
	c->more = b < 0xe0 ? 1 : b < 0xf0 ? 2
					  : 3;
	c->least = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90
						: 0x80;
	c->most = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f
					       : 0xbf;
	return keep(c, b, out, IN_CHARACTER);
}

static bool
in_string(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (b == '\\')
		return keep(c, b, out, AT_ESCAPE);
	if (c->high)
		return refuse(c, "surrogates in pairs");
	if (b == '"')
		return keep(c, b, out, c->is_name ? AT_COLON : BEHIND);
	if (b < 0x20)
		return refuse(c, "control characters escaped in a string");
	return b < 0x80 ? keep(c, b, out, IN_STRING) : begin_character(c, b, out);
}

static bool
in_character(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (b < c->least || b > c->most)
		return refuse(c, "UTF-8");
	c->least = 0x80;
	c->most = 0xbf;
	c->more--;
	return keep(c, b, out, c->more > 0 ? IN_CHARACTER : IN_STRING);
}

static bool
at_escape(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (b == 'u') {
		c->digits = 4;
		c->unit = 0;
		return keep(c, b, out, IN_UNIT);
	}
	if (c->high)
		return refuse(c, "surrogates in pairs");
	if (b == 0 || !strchr("\"\\/bfnrt", b))
		return refuse(c, "one of \" \\ / b f n r t u after a backslash");
	return keep(c, b, out, IN_STRING);
}

static bool
end_unit(struct json_compact *c)
{
	const bool low = c->unit >= 0xdc00 && c->unit <= 0xdfff;

	if (low != c->high)
		return refuse(c, "surrogates in pairs");
	c->high = c->unit >= 0xd800 && c->unit <= 0xdbff;
	return true;
}

static bool
in_unit(struct json_compact *c, unsigned char b, struct buf *out)
{
	const unsigned char small = b | 0x20;

	if (!is_digit(b) && (small < 'a' || small > 'f'))
		return refuse(c, "four hex digits after \\u");
	c->unit = (uint16_t)(c->unit << 4 | (is_digit(b) ? b - '0' : small - 'a' + 10));
	c->digits--;
	(void)keep(c, b, out, c->digits > 0 ? IN_UNIT : IN_STRING);
	return c->digits > 0 || end_unit(c);
}

static bool
number_minus(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (!is_digit(b))
		return refuse(c, "a digit");
	return keep(c, b, out, b == '0' ? NUMBER_ZERO : NUMBER_DIGITS);
}

static bool
number_zero(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (b == '.')
		return keep(c, b, out, NUMBER_POINT);
	if (b == 'e' || b == 'E')
		return keep(c, b, out, NUMBER_E);
	return leave(c, BEHIND);
}

static bool
number_digits(struct json_compact *c, unsigned char b, struct buf *out)
{
	return is_digit(b) ? keep(c, b, out, NUMBER_DIGITS) : leave(c, NUMBER_ZERO);
}

static bool
number_point(struct json_compact *c, unsigned char b, struct buf *out)
{
	return is_digit(b) ? keep(c, b, out, NUMBER_FRACTION) : refuse(c, "a digit");
}

static bool
number_fraction(struct json_compact *c, unsigned char b, struct buf *out)
{
	if (b == 'e' || b == 'E')
		return keep(c, b, out, NUMBER_E);
	return is_digit(b) ? keep(c, b, out, NUMBER_FRACTION) : leave(c, BEHIND);
}

static bool
number_e(struct json_compact *c, unsigned char b, struct buf *out)
{
	return b == '+' || b == '-' ? keep(c, b, out, NUMBER_SIGN) : leave(c, NUMBER_SIGN);
}

static bool
number_sign(struct json_compact *c, unsigned char b, struct buf *out)
{
	return is_digit(b) ? keep(c, b, out, NUMBER_EXPONENT) : refuse(c, "a digit");
}

static bool
number_exponent(struct json_compact *c, unsigned char b, struct buf *out)
{
	return is_digit(b) ? keep(c, b, out, NUMBER_EXPONENT) : leave(c, BEHIND);
}

typedef bool take_byte(struct json_compact *c, unsigned char b, struct buf *out);

static take_byte *const takes[STATES] = {
	[AT_VALUE] = at_value,
	[AT_FIRST_ELEMENT] = at_first_element,
	[AT_FIRST_NAME] = at_first_name,
	[AT_NAME] = at_name,
	[AT_COLON] = at_colon,
	[BEHIND] = behind,
	[IN_WORD] = in_word,
	[IN_STRING] = in_string,
	[IN_CHARACTER] = in_character,
	[AT_ESCAPE] = at_escape,
	[IN_UNIT] = in_unit,
	[NUMBER_MINUS] = number_minus,
	[NUMBER_ZERO] = number_zero,
	[NUMBER_DIGITS] = number_digits,
	[NUMBER_POINT] = number_point,
	[NUMBER_FRACTION] = number_fraction,
	[NUMBER_E] = number_e,
	[NUMBER_SIGN] = number_sign,
	[NUMBER_EXPONENT] = number_exponent,
};

void
json_compact_init(struct json_compact *c, unsigned max_depth)
{
	assert(max_depth <= JSON_DEPTH_MAX);
	*c = (struct json_compact){ .max_depth = max_depth };
}

static int
fail(const struct json_compact *c, struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL, "byte %llu: expected %s",
			(unsigned long long)c->offset, c->expected);
}

/* Most of a document is plain text in strings: many bytes at once. */
static const char *
plain_run(struct json_compact *c, const char *p, const char *end, struct buf *out)
{
	const char *const stop = json_plain_end(p, end);

	buf_put(out, p, (size_t)(stop - p));
	c->offset += (size_t)(stop - p);
	return stop;
}

int
json_compact(struct json_compact *c, struct slice piece, struct buf *out, struct slu_err *err)
{
	const char *p = piece.p;
	const char *const end = piece.p + piece.n;
	const size_t room = out->max - out->n;

	while (p < end && !c->expected) {
		if (c->state == IN_STRING && !c->high)
			p = plain_run(c, p, end, out);
		if (p == end)
			break;
		while (!takes[c->state](c, (unsigned char)*p, out)) {
		}
		p++;
		c->offset += !c->expected;
	}
	if (c->expected)
		return fail(c, err);
	if (out->failed && piece.n <= room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (out->failed)
		return slu_fail(err, SLU_ETOOBIG, "document of more than %zu bytes", out->max);
	return 0;
}

int
json_compact_end(struct json_compact *c, struct slu_err *err)
{
	static const uint64_t numbers = 1u << NUMBER_ZERO | 1u << NUMBER_DIGITS |
					1u << NUMBER_FRACTION | 1u << NUMBER_EXPONENT;

	if (c->depth == 0 && !c->expected && (c->state == BEHIND || numbers >> c->state & 1))
		return 0;
	if (!c->expected)
		c->expected = "more: the document ends too early";
	return fail(c, err);
}
