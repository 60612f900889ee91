/*
 * beat.c - the object of a node as bytes.
 */
#include "members/beat.h"

#include "base/crc32c.h"
#include "base/le.h"

#include <assert.h>
#include <stdio.h>

enum {
	SUMMED = 12, /* the sum covers the object from here on */
	DRAINING = 1,
	GIVEN = 1
};

static const char magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 'n', 'd' };

void
beat_name(char out[LINE_NAME_MAX], const uint8_t life[LINE_LIFE])
{
	int n = snprintf(out, LINE_NAME_MAX, BEAT_PREFIX);

	for (unsigned i = 0; i < LINE_LIFE; i++)
		n += snprintf(out + n, LINE_NAME_MAX - (size_t)n, "%02x", life[i]);
}

/* One life has one name: capital letters are refused. */
bool
beat_life(uint8_t life[LINE_LIFE], const char *name)
{
	const size_t n = strlen(BEAT_PREFIX);
	char same[LINE_NAME_MAX];

	if (strncmp(name, BEAT_PREFIX, n) != 0 || strlen(name) != n + 2 * (size_t)LINE_LIFE)
		return false;
	for (unsigned i = 0; i < LINE_LIFE; i++) {
		const int high = ascii_hex(name[n + 2 * i]), low = ascii_hex(name[n + 2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		life[i] = (uint8_t)(high << 4 | low);
	}
	beat_name(same, life);
	return strcmp(name, same) == 0;
}

void
beat_shard_put(struct buf *out, const struct beat_shard *s)
{
	char *const p = buf_add(out, BEAT_SHARD);

	if (!p)
		return;
	le32_put(p, s->number);
	le32_put(p + 4, s->given ? GIVEN : 0);
	le64_put(p + 8, s->epoch);
}

struct beat_shard
beat_shard(const struct beat *b, uint32_t i)
{
	const char *const p = b->shards.p + BEAT_SHARD * (size_t)i;

	assert(i < b->n_shards);
	return (struct beat_shard){
		.number = le32_get(p),
		.given = le32_get(p + 4) & GIVEN,
		.epoch = le64_get(p + 8),
	};
}

void
beat_encode(const struct beat *b, struct buf *out)
{
	const size_t n = BEAT_HEAD + b->shards.n + b->name.n + b->address.n + b->version.n;
	const size_t from = out->n;
	char *const p = buf_add(out, BEAT_HEAD);

	assert(b->shards.n == BEAT_SHARD * (size_t)b->n_shards && n <= BEAT_MAX);
	if (!p)
		return;
	memset(p, 0, BEAT_HEAD);
	memcpy(p, magic, sizeof magic);
	le32_put(p + 12, b->draining ? DRAINING : 0);
	memcpy(p + 16, b->life, LINE_LIFE);
	le64_put(p + 32, b->number);
	le32_put(p + 40, b->writes);
	le32_put(p + 44, b->reads);
	le16_put(p + 48, (uint16_t)b->name.n);
	le16_put(p + 50, (uint16_t)b->address.n);
	le16_put(p + 52, (uint16_t)b->version.n);
	le16_put(p + 54, b->port);
	le32_put(p + 56, b->n_shards);
	buf_put(out, b->shards.p, b->shards.n);
	buf_put(out, b->name.p, b->name.n);
	buf_put(out, b->address.p, b->address.n);
	buf_put(out, b->version.p, b->version.n);
	if (!out->failed)
		le32_put(out->p + from + 8, crc32c(0, out->p + from + SUMMED, n - SUMMED));
}

/* The shards are in order and have epochs. */
static bool
shards_are_valid(const struct beat *b)
{
	for (uint32_t i = 0; i < b->n_shards; i++) {
		const struct beat_shard s = beat_shard(b, i);

		if (s.epoch == 0 || (i > 0 && s.number <= beat_shard(b, i - 1).number))
			return false;
	}
	return true;
}

static bool
lengths_are_valid(const struct beat *b, size_t n)
{
	return b->name.n > 0 && b->name.n <= BEAT_NAME_MAX &&
	       b->address.n > 0 && b->address.n <= BEAT_ADDRESS_MAX &&
	       b->version.n <= BEAT_VERSION_MAX && b->n_shards <= BEAT_SHARDS_MAX &&
	       n == BEAT_HEAD + BEAT_SHARD * (size_t)b->n_shards + b->name.n + b->address.n + b->version.n;
}

int
beat_decode(struct beat *b, struct slice object, struct slu_err *err)
{
	const char *const p = object.p;

	if (object.n < BEAT_HEAD || memcmp(p, magic, sizeof magic) != 0)
		return slu_fail(err, SLU_ECORRUPT, "not a node");
	if (crc32c(0, p + SUMMED, object.n - SUMMED) != le32_get(p + 8))
		return slu_fail(err, SLU_ECORRUPT, "bad checksum");
	*b = (struct beat){
		.draining = le32_get(p + 12) & DRAINING,
		.number = le64_get(p + 32),
		.writes = le32_get(p + 40),
		.reads = le32_get(p + 44),
		.name.n = le16_get(p + 48),
		.address.n = le16_get(p + 50),
		.version.n = le16_get(p + 52),
		.port = le16_get(p + 54),
		.n_shards = le32_get(p + 56),
	};
	memcpy(b->life, p + 16, LINE_LIFE);
	if (!lengths_are_valid(b, object.n))
		return slu_fail(err, SLU_ECORRUPT, "invalid lengths");
	b->shards = (struct slice){ p + BEAT_HEAD, BEAT_SHARD * (size_t)b->n_shards };
	b->name.p = b->shards.p + b->shards.n;
	b->address.p = b->name.p + b->name.n;
	b->version.p = b->address.p + b->address.n;
	if (b->number == 0 || !shards_are_valid(b))
		return slu_fail(err, SLU_ECORRUPT, "invalid head");
	return 0;
}
