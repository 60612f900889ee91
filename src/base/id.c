#include "base/id.h"

#include "base/parse.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <string.h>

enum {
	LOW_BITS = ID_NODE_BITS + ID_SEQ_BITS,
	COUNT_BITS = 63 - ID_NODE_BITS, /* ms and seq */
	UUID_LEN = ID_UUID_TEXT - 1
};

#define SEQ_MASK  (((uint64_t)1 << ID_SEQ_BITS) - 1)
#define MS_MAX    (ID_MAX >> LOW_BITS)
#define EPOCH_MS  ((uint64_t)(ID_EPOCH / SLU_MS))
#define EXACT_MAX ((uint64_t)1 << 53) /* a double is exact up to this */

/* Its ms and seq as one number, without the node between them. */
static uint64_t
count_of(uint64_t id)
{
	return id >> LOW_BITS << ID_SEQ_BITS | (id & SEQ_MASK);
}

/* A clock before the epoch counts as the epoch. */
static uint64_t
ms_of(slu_time wall)
{
	const uint64_t ms = wall < ID_EPOCH ? 0 : (uint64_t)((wall - ID_EPOCH) / SLU_MS);

	return ms > MS_MAX ? MS_MAX : ms;
}

int
idgen_lift(struct idgen *g, uint64_t highest, struct slu_err *err)
{
	const uint64_t count = count_of(highest);
	uint64_t last = atomic_load_explicit(&g->last, memory_order_relaxed);

	if (highest > ID_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid id %" PRIu64 "; expected at most 63 bits",
				highest);
	while (last < count && !atomic_compare_exchange_weak_explicit(&g->last, &last, count,
								      memory_order_relaxed,
								      memory_order_relaxed))
		;
	return 0;
}

int
idgen_init(struct idgen *g, struct clock *clock, unsigned node,
	   uint64_t highest, struct slu_err *err)
{
	if (node > ID_NODE_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid node %u; expected 0 to %d", node,
				ID_NODE_MAX);
	g->clock = clock;
	g->node = node;
	atomic_init(&g->last, 0);
	return idgen_lift(g, highest, err);
}

static bool
is_skipped(uint64_t id)
{
	return id % 64 == 0 || id % 10 == 0;
}

bool
id_is_rounded(uint64_t id)
{
	return id > EXACT_MAX && is_skipped(id);
}

static uint64_t
id_of(uint64_t node, uint64_t count)
{
	return count >> ID_SEQ_BITS << LOW_BITS | node << ID_SEQ_BITS |
	       (count & SEQ_MASK);
}

uint64_t
idgen_next_at(struct idgen *g, slu_time wall, unsigned node)
{
	const uint64_t now = ms_of(wall) << ID_SEQ_BITS;
	uint64_t last = atomic_load_explicit(&g->last, memory_order_relaxed);
	uint64_t count;

	do {
		count = last < now ? now : last + 1;
		while (is_skipped(id_of(node, count)))
			count++;
	} while (!atomic_compare_exchange_weak_explicit(&g->last, &last, count,
							memory_order_relaxed,
							memory_order_relaxed));
	assert(count >> COUNT_BITS == 0); /* 2093 */
	return id_of(node, count);
}

uint64_t
idgen_next(struct idgen *g)
{
	return idgen_next_at(g, clock_wall(g->clock), (unsigned)g->node);
}

slu_time
id_time(uint64_t id)
{
	return ID_EPOCH + (slu_time)(id >> LOW_BITS) * SLU_MS;
}

unsigned
id_node(uint64_t id)
{
	return id >> ID_SEQ_BITS & ID_NODE_MAX;
}

#define EVERY(byte) ((uint64_t)0x0101010101010101u * (byte))

/*
 * Writes 8 hex digits at once:
 *
 *      n       12345678             a number of 32 bits
 *      digits  1 2 3 4 5 6 7 8      a byte each, the first in the lowest byte
 *      text    + '0', and + 39 for a digit above 9: that gives a to f
 */
static void
put_hex_8(char *out, uint32_t n)
{
	uint64_t digits = (uint64_t)(n & 0xffff) << 32 | n >> 16;
	uint64_t above_9;

	digits = (digits & 0x000000ff000000ff) << 16 | (digits >> 8 & 0x000000ff000000ff);
	digits = (digits & 0x000f000f000f000f) << 8 | (digits >> 4 & 0x000f000f000f000f);
	above_9 = (digits + EVERY(6)) >> 4 & EVERY(1);
	digits = htole64(digits + EVERY('0') + above_9 * ('a' - '0' - 10));
	memcpy(out, &digits, sizeof digits);
}

const char *
id_to_uuid(uint64_t id, char out[static ID_UUID_TEXT])
{
	const uint64_t ms = EPOCH_MS + (id >> LOW_BITS);
	char middle[8], last[8];

	put_hex_8(middle, (uint32_t)(ms << 16) | 0x7000 | (id >> 10 & 0xfff));
	put_hex_8(last, (uint32_t)(0x8000 | (id & 0x3ff) << 4) << 16);
	put_hex_8(out, (uint32_t)(ms >> 16));
	out[8] = out[13] = out[18] = '-';
	memcpy(out + 9, middle, 4);
	memcpy(out + 14, middle + 4, 4);
	memcpy(out + 19, last, 4);
	memcpy(out + 23, "-000000000000", sizeof "-000000000000");
	return out;
}

/* Reads the 128 bits of a UUID. Returns false if s is not one. */
static bool
read_uuid(struct slice s, uint64_t *high, uint64_t *low)
{
	if (s.n != UUID_LEN)
		return false;
	*high = *low = 0;
	for (size_t i = 0; i < UUID_LEN; i++) {
		const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		const int digit = ascii_hex(s.p[i]);

		if (dash ? s.p[i] != '-' : digit < 0)
			return false;
		if (!dash) {
			*high = *high << 4 | *low >> 60;
			*low = *low << 4 | (uint64_t)digit;
		}
	}
	return true;
}

/* Version 7, variant 10, a time in range, zeros at the end; no other UUID is an id. */
static bool
id_of_bits(uint64_t high, uint64_t low, uint64_t *out)
{
	const uint64_t ms = (high >> 16) - EPOCH_MS;
	const uint64_t bits = (high & 0xfff) << 10 | (low >> 52 & 0x3ff);

	if (high >> 16 < EPOCH_MS || ms > MS_MAX || (high >> 12 & 0xf) != 7)
		return false;
	if (low >> 62 != 2 || low << 12 != 0)
		return false;
	*out = ms << LOW_BITS | bits;
	return *out != 0;
}

int
id_from_uuid(struct slice s, uint64_t *out, struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	uint64_t high, low, id;

	if (!read_uuid(s, &high, &low) || !id_of_bits(high, low, &id))
		return slu_fail(err, SLU_EINVAL, "invalid id %s; expected the UUID of a message",
				parse_shown(s, shown));
	*out = id;
	return 0;
}

int
id_parse(struct slice s, uint64_t *out, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	if (parse_u64(s, 1, ID_MAX, out, NULL) == 0 ||
	    id_from_uuid(s, out, NULL) == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"invalid id %s; expected a decimal number or a UUID",
			parse_shown(s, shown));
}
