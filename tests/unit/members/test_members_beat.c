/*
 * The object of a node as bytes: golden bytes, limits, and damage at every byte.
 */
#include "members/beat.h"
#include "test.h"

static struct buf out, shards;

static void
before(void)
{
	buf_init(&out, 2 * BEAT_MAX);
	buf_init(&shards, BEAT_MAX);
}

static void
after(void)
{
	buf_release(&out);
	buf_release(&shards);
}

FIXTURE(before, after);

static struct beat
some_beat(void)
{
	buf_clear(&shards);
	beat_shard_put(&shards, &(struct beat_shard){ .number = 2, .epoch = 9 });
	beat_shard_put(&shards, &(struct beat_shard){ .number = 5, .given = true, .epoch = 0x0102 });
	return (struct beat){
		.draining = true,
		.life = "0123456789abcde",
		.number = 7,
		.writes = 2,
		.reads = 3,
		.name = SLICE("a"),
		.address = SLICE("h:1"),
		.version = SLICE("0.2"),
		.n_shards = 2,
		.shards = buf_slice(&shards),
	};
}

TEST(a_name_holds_the_life_and_is_read_back)
{
	const struct beat b = some_beat();
	uint8_t life[LINE_LIFE];
	char name[LINE_NAME_MAX];

	beat_name(name, b.life);
	CHECK_STR("node/30313233343536373839616263646500", name);
	CHECK(beat_life(life, name));
	CHECK(memcmp(life, b.life, LINE_LIFE) == 0);
	CHECK(!beat_life(life, "node/3031"));
	CHECK(!beat_life(life, "node/3031323334353637383961626364650A"));
	CHECK(!beat_life(life, "node/3031323334353637383961626364650x"));
	CHECK(!beat_life(life, "nodes30313233343536373839616263646500"));
}

TEST(a_beat_has_these_bytes)
{
	static const unsigned char bytes[] = {
		's', 'l', 'u', 'i', 'c', 'e', 'n', 'd',
		/* sum */ 0x94, 0x14, 0x1d, 0xd2, /* flags */ 1, 0, 0, 0,
		'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 0,
		/* beat */ 7, 0, 0, 0, 0, 0, 0, 0, /* writes */ 2, 0, 0, 0, /* reads */ 3, 0, 0, 0,
		/* lengths */ 1, 0, 3, 0, 3, 0, 0, 0, /* shards */ 2, 0, 0, 0, 0, 0, 0, 0,
		/* shard */ 2, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,
		/* shard */ 5, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0,
		'a', 'h', ':', '1', '0', '.', '2'
	};
	const struct beat b = some_beat();
	struct beat back;

	beat_encode(&b, &out);
	CHECK_EQ(sizeof bytes, out.n);
	CHECK_EQ(0, beat_decode(&back, buf_slice(&out), NULL));
	CHECK(back.draining && back.number == 7 && back.writes == 2 && back.reads == 3);
	CHECK(slice_eq(back.name, b.name) && slice_eq(back.address, b.address));
	CHECK(slice_eq(back.version, b.version) && memcmp(back.life, b.life, LINE_LIFE) == 0);
	CHECK(back.n_shards == 2 && beat_shard(&back, 0).number == 2 && !beat_shard(&back, 0).given);
	CHECK(beat_shard(&back, 1).number == 5 && beat_shard(&back, 1).given);
	CHECK_EQ(0x0102, beat_shard(&back, 1).epoch);
	for (size_t i = 0; i < sizeof bytes; i++)
		CHECK_EQ(bytes[i], (unsigned char)out.p[i]);
}

TEST(a_beat_with_any_byte_changed_or_missing_is_refused)
{
	const struct beat b = some_beat();
	struct beat back;

	beat_encode(&b, &out);
	for (size_t i = 0; i < out.n; i++) {
		out.p[i] ^= 0x10;
		CHECK_EQ(SLU_ECORRUPT, beat_decode(&back, buf_slice(&out), NULL));
		out.p[i] ^= 0x10;
		CHECK_EQ(SLU_ECORRUPT, beat_decode(&back, (struct slice){ out.p, i }, NULL));
	}
}

TEST(a_beat_that_makes_no_sense_is_refused)
{
	static const struct {
		const char *label;
		uint64_t number;
		struct slice name, address;
		struct beat_shard first, second;
	} cases[] = {
		{ "number 0", 0, SLICE("a"), SLICE("h"), { 1, false, 1 }, { 2, false, 1 } },
		{ "no name", 1, SLICE(""), SLICE("h"), { 1, false, 1 }, { 2, false, 1 } },
		{ "no address", 1, SLICE("a"), SLICE(""), { 1, false, 1 }, { 2, false, 1 } },
		{ "epoch 0", 1, SLICE("a"), SLICE("h"), { 1, false, 1 }, { 2, false, 0 } },
		{ "one shard twice", 1, SLICE("a"), SLICE("h"), { 2, false, 1 }, { 2, false, 1 } },
		{ "shards out of order", 1, SLICE("a"), SLICE("h"), { 2, false, 1 }, { 1, false, 1 } },
	};

	EACH(i, cases) {
		struct beat b = some_beat();

		buf_clear(&shards);
		buf_clear(&out);
		beat_shard_put(&shards, &cases[i].first);
		beat_shard_put(&shards, &cases[i].second);
		b.shards = buf_slice(&shards);
		b.number = cases[i].number;
		b.name = cases[i].name;
		b.address = cases[i].address;
		beat_encode(&b, &out);
		CHECK_EQ(SLU_ECORRUPT, beat_decode(&b, buf_slice(&out), NULL), cases[i].label);
	}
}
