/*
 * crc32c.c - CRC-32C by instruction, or eight bytes at a time by tables.
 *
 * Entry [k][b] of the tables is the part of byte b, followed by k zero bytes, in the sum. A
 * CRC is linear: the entry of b is the XOR of the entries of its bits. So the compiler makes
 * the 2,048 entries from the 64 numbers below.
 */
#include "base/crc32c.h"

#include <endian.h>
#include <string.h>

/* clang-format off */
#define ENTRY(b, v0, v1, v2, v3, v4, v5, v6, v7)              \
	(((b) & 1 ? v0 : 0u) ^ ((b) & 2 ? v1 : 0u) ^          \
	 ((b) & 4 ? v2 : 0u) ^ ((b) & 8 ? v3 : 0u) ^          \
	 ((b) & 16 ? v4 : 0u) ^ ((b) & 32 ? v5 : 0u) ^        \
	 ((b) & 64 ? v6 : 0u) ^ ((b) & 128 ? v7 : 0u))

#define T0(b) ENTRY(b, 0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, \
		       0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78)
#define T1(b) ENTRY(b, 0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, \
		       0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9)
#define T2(b) ENTRY(b, 0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, \
		       0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743)
#define T3(b) ENTRY(b, 0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, \
		       0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f)
#define T4(b) ENTRY(b, 0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, \
		       0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c)
#define T5(b) ENTRY(b, 0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, \
		       0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6)
#define T6(b) ENTRY(b, 0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, \
		       0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4)
#define T7(b) ENTRY(b, 0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, \
		       0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664)

#define BY4(T, b)   T(b), T((b) + 1), T((b) + 2), T((b) + 3)
#define BY16(T, b)  BY4(T, b), BY4(T, (b) + 4), BY4(T, (b) + 8), BY4(T, (b) + 12)
#define BY64(T, b)  BY16(T, b), BY16(T, (b) + 16), BY16(T, (b) + 32), BY16(T, (b) + 48)
#define BY256(T)    { BY64(T, 0), BY64(T, 64), BY64(T, 128), BY64(T, 192) }

static const uint32_t tables[8][256] = {
	BY256(T0), BY256(T1), BY256(T2), BY256(T3),
	BY256(T4), BY256(T5), BY256(T6), BY256(T7),
};
/* clang-format on */

static inline uint64_t
load_le64(const unsigned char *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof word);
	return le64toh(word);
}

static inline uint32_t
table_word(uint64_t word)
{
	uint32_t sum = 0;

	for (int k = 7; k >= 0; k--) {
		sum ^= tables[k][word & 0xff];
		word >>= 8;
	}
	return sum;
}

uint32_t
crc32c_portable(uint32_t seed, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint32_t sum = ~seed;

	for (; n >= 8; n -= 8, p += 8)
		sum = table_word(load_le64(p) ^ sum);
	for (; n > 0; n--, p++)
		sum = sum >> 8 ^ tables[0][(sum ^ *p) & 0xff];
	return ~sum;
}

#if defined(__x86_64__)
#define STEP_TARGET    __attribute__((target("sse4.2")))
#define STEP_HERE      __builtin_cpu_supports("sse4.2")
#define STEP_8(sum, w) __builtin_ia32_crc32di(sum, w) /* the upper half of the sum stays 0 */
#define STEP_4(sum, w) __builtin_ia32_crc32si((uint32_t)(sum), w)
#define STEP_1(sum, b) __builtin_ia32_crc32qi((uint32_t)(sum), b)
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define STEP_TARGET
#define STEP_HERE      1
#define STEP_8(sum, w) __crc32cd((uint32_t)(sum), w)
#define STEP_4(sum, w) __crc32cw((uint32_t)(sum), w)
#define STEP_1(sum, b) __crc32cb((uint32_t)(sum), b)
#endif

#ifdef STEP_HERE
static inline uint32_t
load_le32(const unsigned char *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof word);
	return le32toh(word);
}

/* One sum, eight bytes a step: some 8 GB a second, far more than any disk. */
STEP_TARGET static uint32_t
by_instruction(uint32_t seed, const unsigned char *p, size_t n)
{
	uint64_t sum = (uint32_t)~seed; /* as wide as a step: no step converts it */

	for (; n >= 32; n -= 32, p += 32) {
		sum = STEP_8(sum, load_le64(p));
		sum = STEP_8(sum, load_le64(p + 8));
		sum = STEP_8(sum, load_le64(p + 16));
		sum = STEP_8(sum, load_le64(p + 24));
	}
	for (; n >= 8; n -= 8, p += 8)
		sum = STEP_8(sum, load_le64(p));
	if (n >= 4) { /* of nearly every record of the log */
		sum = STEP_4(sum, load_le32(p));
		n -= 4;
		p += 4;
	}
	for (; n > 0; n--, p++)
		sum = STEP_1(sum, *p);
	return ~(uint32_t)sum;
}
#endif

uint32_t
crc32c(uint32_t seed, const void *data, size_t n)
{
#ifdef STEP_HERE
	if (STEP_HERE)
		return by_instruction(seed, data, n);
#endif
	return crc32c_portable(seed, data, n);
}
