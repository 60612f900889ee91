#include "base/id.h"

#include "base/parse.h"

#include <assert.h>
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
#define EXACT_MAX ((uint64_t)1 << 53) /* a double has every whole number up to this */

/* Its ms and seq as one number, without the node between them. */
static uint64_t
count_of(uint64_t id)
{
	return id >> LOW_BITS << ID_SEQ_BITS | (id & SEQ_MASK);
}

/* A clock that was never set is at the epoch, not before it. */
static uint64_t
ms_now(const struct idgen *g)
{
	const slu_time wall = clock_wall(g->clock);
	const uint64_t ms = wall < ID_EPOCH ? 0 : (uint64_t)((wall - ID_EPOCH) / SLU_MS);

	return ms > MS_MAX ? MS_MAX : ms;
}

int
idgen_lift(struct idgen *g, uint64_t highest, struct slu_err *err)
{
	const uint64_t count = count_of(highest);
	uint64_t last = atomic_load_explicit(&g->last, memory_order_relaxed);

	if (highest > ID_MAX)
		return slu_fail(err, SLU_EINVAL, "%" PRIu64 " is no id: beyond 63 bits",
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
		return slu_fail(err, SLU_EINVAL, "node %u: expected 0 to %d", node,
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
id_of(const struct idgen *g, uint64_t count)
{
	return count >> ID_SEQ_BITS << LOW_BITS | g->node << ID_SEQ_BITS |
	       (count & SEQ_MASK);
}

uint64_t
idgen_next(struct idgen *g)
{
	const uint64_t now = ms_now(g) << ID_SEQ_BITS;
	uint64_t last = atomic_load_explicit(&g->last, memory_order_relaxed);
	uint64_t count;

	do {
		count = last < now ? now : last + 1;
		while (is_skipped(id_of(g, count)))
			count++;
	} while (!atomic_compare_exchange_weak_explicit(&g->last, &last, count,
							memory_order_relaxed,
							memory_order_relaxed));
	assert(count >> COUNT_BITS == 0); /* 2093 */
	return id_of(g, count);
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

/* The low bits of n as so many digits. printf would take most of an answer's time. */
static char *
put_hex(char *out, unsigned digits, uint64_t n)
{
	for (unsigned i = digits; i-- > 0; n >>= 4)
		out[i] = "0123456789abcdef"[n & 0xf];
	return out + digits;
}

const char *
id_to_uuid(uint64_t id, char out[static ID_UUID_TEXT])
{
	const uint64_t ms = EPOCH_MS + (id >> LOW_BITS);
	char *p = put_hex(out, 8, ms >> 16);

	*p++ = '-';
	p = put_hex(p, 4, ms);
	*p++ = '-';
	p = put_hex(p, 4, 0x7000 | (id >> 10 & 0xfff));
	*p++ = '-';
	p = put_hex(p, 4, 0x8000 | (id & 0x3ff) << 4);
	memcpy(p, "-000000000000", sizeof "-000000000000");
	return out;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The 128 bits of a UUID; false when it is not spelled like one. */
static bool
read_uuid(struct slice s, uint64_t *high, uint64_t *low)
{
	if (s.n != UUID_LEN)
		return false;
	*high = *low = 0;
	for (size_t i = 0; i < UUID_LEN; i++) {
		const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		const int digit = hex_value(s.p[i]);

		if (dash ? s.p[i] != '-' : digit < 0)
			return false;
		if (!dash) {
			*high = *high << 4 | *low >> 60;
			*low = *low << 4 | (uint64_t)digit;
		}
	}
	return true;
}

/* Version 7, variant 10, a time that fits, zeros at the end; else it is not one of
 * ours. */
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
		return slu_fail(err, SLU_EINVAL, "%s: expected a message id as UUID",
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
			"%s: expected a message id, a decimal number or a UUID",
			parse_shown(s, shown));
}
