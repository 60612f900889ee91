#include "base/base64.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const char letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

enum {
	GOOD = 0x40 /* marks a letter; the six bits below are its value */
};

/* The inverse of the alphabets above. */
#define L(c, v) [c] = GOOD | (v)

/* clang-format off */
static const uint8_t values[256] = {
	L('A', 0), L('B', 1), L('C', 2), L('D', 3), L('E', 4), L('F', 5), L('G', 6),
	L('H', 7), L('I', 8), L('J', 9), L('K', 10), L('L', 11), L('M', 12), L('N', 13),
	L('O', 14), L('P', 15), L('Q', 16), L('R', 17), L('S', 18), L('T', 19),
	L('U', 20), L('V', 21), L('W', 22), L('X', 23), L('Y', 24), L('Z', 25),
	L('a', 26), L('b', 27), L('c', 28), L('d', 29), L('e', 30), L('f', 31),
	L('g', 32), L('h', 33), L('i', 34), L('j', 35), L('k', 36), L('l', 37),
	L('m', 38), L('n', 39), L('o', 40), L('p', 41), L('q', 42), L('r', 43),
	L('s', 44), L('t', 45), L('u', 46), L('v', 47), L('w', 48), L('x', 49),
	L('y', 50), L('z', 51), L('0', 52), L('1', 53), L('2', 54), L('3', 55),
	L('4', 56), L('5', 57), L('6', 58), L('7', 59), L('8', 60), L('9', 61),
	L('+', 62), L('/', 63),
};
/* clang-format on */

#undef L

static void
encode_group(const char *alphabet, uint32_t bits, char *out)
{
	out[0] = alphabet[bits >> 18];
	out[1] = alphabet[bits >> 12 & 63];
	out[2] = alphabet[bits >> 6 & 63];
	out[3] = alphabet[bits & 63];
}

/* The last group, of one or two bytes, with its padding. */
static void
encode_rest(const char *alphabet, struct slice rest, char *out)
{
	const unsigned char *p = (const unsigned char *)rest.p;

	if (rest.n == 0)
		return;
	encode_group(alphabet, (uint32_t)p[0] << 16 | (rest.n == 2 ? (uint32_t)p[1] << 8 : 0), out);
	out[3] = '=';
	if (rest.n == 1)
		out[2] = '=';
}

/* Encodes all whole groups. Returns the number of their bytes. */
static size_t
encode_groups(const char *alphabet, struct slice bytes, char *out)
{
	const unsigned char *p = (const unsigned char *)bytes.p;
	size_t i = 0;

	for (; i + 3 <= bytes.n; i += 3, out += 4)
		encode_group(alphabet,
			     (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2], out);
	return i;
}

#if defined(__x86_64__)
#define WIDE_HERE  __builtin_cpu_supports("ssse3")
#define WIDER_HERE __builtin_cpu_supports("avx2")

/*
 * Four groups at once, while 16 bytes can be read, in a tenth of the steps: payloads are the
 * largest part of a delivered message.
 *
 *      bytes    a b c | d e f | ...          12 of them
 *      lanes    b a c b | e d f e | ...      so that each 16 bits have the bits of two letters
 *      letters  six bits in a byte of its own each, shifted there by two multiplications
 *      text     letter + the offset of its run of the alphabet
 */
__attribute__((target("ssse3"))) static size_t
encode_wide(const char *alphabet, struct slice bytes, char *out)
{
	const __m128i lanes = _mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
	const __m128i runs = _mm_setr_epi8('a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
					   '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
					   '0' - 52, (char)(alphabet[62] - 62),
					   (char)(alphabet[63] - 63), 'A', 0, 0);
	size_t i = 0;

	for (; i + 16 <= bytes.n; i += 12, out += 16) {
		const __m128i in = _mm_loadu_si128((const __m128i *)(bytes.p + i));
		const __m128i of = _mm_shuffle_epi8(in, lanes);
		const __m128i odd = _mm_mulhi_epu16(_mm_and_si128(of, _mm_set1_epi32(0x0fc0fc00)),
						    _mm_set1_epi32(0x04000040));
		const __m128i even = _mm_mullo_epi16(_mm_and_si128(of, _mm_set1_epi32(0x003f03f0)),
						     _mm_set1_epi32(0x01000010));
		const __m128i six = _mm_or_si128(odd, even);
		/* Which run: 0 is a to z, 1 to 10 the digits, then the last two, 13 is A to Z. */
		const __m128i capital = _mm_cmpgt_epi8(_mm_set1_epi8(26), six);
		const __m128i run = _mm_or_si128(_mm_subs_epu8(six, _mm_set1_epi8(51)),
						 _mm_and_si128(capital, _mm_set1_epi8(13)));

		_mm_storeu_si128((__m128i *)out, _mm_add_epi8(six, _mm_shuffle_epi8(runs, run)));
	}
	return i;
}

/* The same with eight groups at once, of 28 bytes or more. The last step goes back to where 28 bytes can be read, and
 * encodes some groups again. */
__attribute__((target("avx2"))) static size_t
encode_wider(const char *alphabet, struct slice bytes, char *out)
{
	const __m256i lanes = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10));
	const __m256i runs = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		'a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
		'0' - 52, '0' - 52, '0' - 52, (char)(alphabet[62] - 62), (char)(alphabet[63] - 63),
		'A', 0, 0));
	const size_t last = (bytes.n - 28) / 3 * 3;
	char *const end = out + base64_text(last);
	size_t at = 0;

	for (;;) {
		const __m128i first = _mm_loadu_si128((const __m128i *)(bytes.p + at));
		const __m128i second = _mm_loadu_si128((const __m128i *)(bytes.p + at + 12));
		const __m256i in = _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
		const __m256i of = _mm256_shuffle_epi8(in, lanes);
		const __m256i odd = _mm256_mulhi_epu16(
			_mm256_and_si256(of, _mm256_set1_epi32(0x0fc0fc00)), _mm256_set1_epi32(0x04000040));
		const __m256i even = _mm256_mullo_epi16(
			_mm256_and_si256(of, _mm256_set1_epi32(0x003f03f0)), _mm256_set1_epi32(0x01000010));
		const __m256i six = _mm256_or_si256(odd, even);
		const __m256i capital = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), six);
		const __m256i run = _mm256_or_si256(_mm256_subs_epu8(six, _mm256_set1_epi8(51)),
						    _mm256_and_si256(capital, _mm256_set1_epi8(13)));

		_mm256_storeu_si256((__m256i *)out,
				    _mm256_add_epi8(six, _mm256_shuffle_epi8(runs, run)));
		if (at == last)
			return last + 24;
		at = at + 24 < last ? at + 24 : last;
		out = at == last ? end : out + 32;
	}
}

/* Encodes as many groups at once as the processor can. Returns the number of their bytes. */
static size_t
encode_at_once(const char *alphabet, struct slice bytes, char *out)
{
	size_t done = 0;

	if (bytes.n >= 28 && WIDER_HERE)
		done = encode_wider(alphabet, bytes, out);
	return done + encode_wide(alphabet, (struct slice){ bytes.p + done, bytes.n - done },
				  out + base64_text(done));
}
#endif

/* Encodes all bytes but the last one or two. Returns their number. */
static size_t
encode_whole(const char *alphabet, struct slice bytes, char *out)
{
	size_t done = 0;

#ifdef WIDE_HERE
	if (WIDE_HERE)
		done = encode_at_once(alphabet, bytes, out);
#endif
	return done + encode_groups(alphabet, (struct slice){ bytes.p + done, bytes.n - done },
				    out + base64_text(done));
}

void
base64_encode(struct slice bytes, char *out)
{
	size_t done;

	if (bytes.n == 0)
		return;
	done = encode_whole(letters, bytes, out);
	encode_rest(letters, (struct slice){ bytes.p + done, bytes.n - done }, out + base64_text(done));
}

/* The 24 bits of a whole group. */
static inline bool
decode_group(const char *text, uint32_t *bits)
{
	const unsigned char *p = (const unsigned char *)text;
	const uint32_t a = values[p[0]], b = values[p[1]];
	const uint32_t c = values[p[2]], d = values[p[3]];

	*bits = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
	return a & b & c & d & GOOD;
}

#ifdef WIDE_HERE
/*
 * Four groups at once, until a byte is no letter or fewer than six groups are left. The store
 * writes 16 bytes, 4 too many: two groups or more follow and write these.
 *
 *      text    16 letters
 *      check   the bits of the upper and of the lower half of a byte; a letter has none in common
 *      six     letter + the offset of its run of the alphabet; the upper half names the run
 *      bytes   six bits of each letter, moved together by two multiplications, 12 bytes
 */
__attribute__((target("ssse3"))) static size_t
decode_wide(struct slice text, char *out)
{
	const __m128i lower = _mm_setr_epi8(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
					    0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a);
	const __m128i upper = _mm_setr_epi8(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10,
					    0x10, 0x10, 0x10, 0x10, 0x10, 0x10);
	/* / is in the run of +, and has an offset of its own: one place before. */
	const __m128i runs = _mm_setr_epi8(0, 63 - '/', 62 - '+', 52 - '0', -'A', -'A', 26 - 'a',
					   26 - 'a', 0, 0, 0, 0, 0, 0, 0, 0);
	const __m128i order = _mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
	const __m128i half = _mm_set1_epi8(0x0f);
	size_t i = 0;

	for (; i + 24 <= text.n; i += 16, out += 12) {
		const __m128i in = _mm_loadu_si128((const __m128i *)(text.p + i));
		const __m128i high = _mm_and_si128(_mm_srli_epi32(in, 4), half);
		const __m128i wrong = _mm_and_si128(_mm_shuffle_epi8(upper, high),
						    _mm_shuffle_epi8(lower, _mm_and_si128(in, half)));
		const __m128i run = _mm_add_epi8(high, _mm_cmpeq_epi8(in, _mm_set1_epi8('/')));
		const __m128i six = _mm_add_epi8(in, _mm_shuffle_epi8(runs, run));
		const __m128i twelve = _mm_maddubs_epi16(six, _mm_set1_epi32(0x01400140));
		const __m128i group = _mm_madd_epi16(twelve, _mm_set1_epi32(0x00011000));

		if (_mm_movemask_epi8(_mm_cmpgt_epi8(wrong, _mm_setzero_si128())))
			break;
		_mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(group, order));
	}
	return i;
}

/* The same with eight groups at once, until fewer than twelve are left: the store writes 8 bytes too
 * many. */
__attribute__((target("avx2"))) static size_t
decode_wider(struct slice text, char *out)
{
	const __m256i lower = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13,
			      0x1a, 0x1b, 0x1b, 0x1b, 0x1a));
	const __m256i upper = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10,
			      0x10, 0x10, 0x10, 0x10, 0x10));
	const __m256i runs = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0, 63 - '/', 62 - '+', 52 - '0', -'A', -'A', 26 - 'a', 26 - 'a', 0,
			      0, 0, 0, 0, 0, 0, 0));
	const __m256i order = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1));
	const __m256i together = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
	const __m256i half = _mm256_set1_epi8(0x0f);
	size_t i = 0;

	for (; i + 48 <= text.n; i += 32, out += 24) {
		const __m256i in = _mm256_loadu_si256((const __m256i *)(text.p + i));
		const __m256i high = _mm256_and_si256(_mm256_srli_epi32(in, 4), half);
		const __m256i low = _mm256_and_si256(in, half);
		const __m256i wrong = _mm256_and_si256(_mm256_shuffle_epi8(upper, high),
						       _mm256_shuffle_epi8(lower, low));
		const __m256i run = _mm256_add_epi8(high, _mm256_cmpeq_epi8(in, _mm256_set1_epi8('/')));
		const __m256i six = _mm256_add_epi8(in, _mm256_shuffle_epi8(runs, run));
		const __m256i twelve = _mm256_maddubs_epi16(six, _mm256_set1_epi32(0x01400140));
		const __m256i group = _mm256_madd_epi16(twelve, _mm256_set1_epi32(0x00011000));
		const __m256i bytes = _mm256_shuffle_epi8(group, order);

		if (!_mm256_testz_si256(wrong, wrong))
			break;
		_mm256_storeu_si256((__m256i *)out, _mm256_permutevar8x32_epi32(bytes, together));
	}
	return i;
}

/* Decodes as many groups at once as the processor can. Returns the number of their letters. */
static size_t
decode_at_once(struct slice text, char *out)
{
	size_t done = 0;

	if (text.n >= 48 && WIDER_HERE)
		done = decode_wider(text, out);
	return done + decode_wide((struct slice){ text.p + done, text.n - done }, out + base64_room(done));
}
#endif

/* Decodes all groups but a padded one. Returns the number of letters in valid groups. */
static size_t
decode_groups(struct slice text, char *out)
{
	uint32_t bits;
	size_t i = 0;

#ifdef WIDE_HERE
	if (WIDE_HERE)
		i = decode_at_once(text, out);
	out += base64_room(i);
#endif

	for (; i + 4 <= text.n && decode_group(text.p + i, &bits); i += 4) {
		*out++ = (char)(bits >> 16);
		*out++ = (char)(bits >> 8);
		*out++ = (char)bits;
	}
	return i;
}

/* Decodes the last group if it ends in one or two =. Returns the number of its bytes, or 0. */
static size_t
decode_padded(const char *group, char *out)
{
	const size_t pads = group[2] == '=' ? 2 : 1;
	char full[4] = { group[0], group[1], 'A', 'A' };
	uint32_t bits;

	if (group[3] != '=')
		return 0;
	if (pads == 1)
		full[2] = group[2];
	if (!decode_group(full, &bits) || bits & (pads == 2 ? 0xffff : 0xff))
		return 0; /* another text has the same bytes */
	out[0] = (char)(bits >> 16);
	if (pads == 1)
		out[1] = (char)(bits >> 8);
	return 3 - pads;
}

static size_t
first_wrong(struct slice text, size_t from)
{
	while (from < text.n && values[(unsigned char)text.p[from]])
		from++;
	return from;
}

int
base64_decode(struct slice text, char *out, size_t *n, struct slu_err *err)
{
	const size_t good = decode_groups(text, out);
	size_t rest = 0;

	if (text.n - good == 4)
		rest = decode_padded(text.p + good, out + base64_room(good));
	if (rest == 0 && good < text.n)
		return slu_fail(err, SLU_EINVAL,
				"expected base64 in groups of four, with padding, "
				"wrong at byte %zu of it",
				first_wrong(text, good));
	*n = base64_room(good) + rest;
	return 0;
}

/* --- for URLs ------------------------------------------------------------------- */

/* A letter of the other alphabet becomes one of neither. */
static char
from_url(char c)
{
	if (c == '-')
		return '+';
	if (c == '_')
		return '/';
	return c == '+' || c == '/' || c == '=' ? '\0' : c;
}

void
base64url_encode(struct slice bytes, char *out)
{
	struct slice rest;
	size_t done;
	char last[4];

	if (bytes.n == 0)
		return;
	done = encode_whole(url_letters, bytes, out);
	rest = (struct slice){ bytes.p + done, bytes.n - done };
	if (rest.n == 0)
		return;
	encode_rest(url_letters, rest, last);
	memcpy(out + base64_text(done), last, rest.n + 1);
}

int
base64url_decode(struct slice text, char *out, size_t *n, struct slu_err *err)
{
	const size_t padded = base64url_room(text.n);

	if (padded - text.n == 3) /* a single letter has too few bits for a byte */
		return slu_fail(err, SLU_EINVAL, "invalid base64url: %zu letters are not whole bytes",
				text.n);
	for (size_t i = 0; i < text.n; i++)
		out[i] = from_url(text.p[i]);
	memset(out + text.n, '=', padded - text.n);
	return base64_decode((struct slice){ out, padded }, out, n, err);
}
