/*
 * fuzz_members.c - a node or settings object that is read is the one that is written of what
 * was read.
 */
#include "fuzz.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "members/beat.h"
#include "members/settings.h"

/* The encoder writes zeros where the format has zeros, and known flags only. */
static bool
is_plain(const char *p)
{
	return le32_get(p + 12) <= 1 && le32_get(p + 60) == 0;
}

static void
check_beat(struct slice object)
{
	struct beat b;
	struct buf shards, out;
	bool plain;

	if (beat_decode(&b, object, NULL))
		return;
	plain = is_plain(object.p);
	buf_init(&shards, BEAT_MAX);
	buf_init(&out, BEAT_MAX);
	for (uint32_t i = 0; i < b.n_shards; i++) {
		const struct beat_shard s = beat_shard(&b, i);

		plain = plain && le32_get(b.shards.p + BEAT_SHARD * i + 4) <= 1;
		beat_shard_put(&shards, &s);
	}
	b.shards = buf_slice(&shards);
	beat_encode(&b, &out);
	FUZZ_CHECK(!plain || slice_eq(object, buf_slice(&out)));
	buf_release(&shards);
	buf_release(&out);
}

static void
check_settings(struct slice object)
{
	struct settings s;
	char out[SETTINGS_SIZE];

	if (settings_decode(&s, object, NULL))
		return;
	settings_encode(&s, out);
	FUZZ_CHECK(le32_get(object.p + 76) != 0 || memcmp(out, object.p, SETTINGS_SIZE) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf in;

	buf_init(&in, size + 1);
	buf_put(&in, data, size);
	if (size >= 12) { /* nothing would get past the sum otherwise */
		le32_put(in.p + 8, crc32c(0, in.p + 12, size - 12));
		check_beat(buf_slice(&in));
		check_settings(buf_slice(&in));
	}
	buf_release(&in);
	return 0;
}
