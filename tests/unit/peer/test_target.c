/* Which node owns a shard, by members and by hints of other nodes: TARGET-1, TARGET-2. */
#include "test.h"

#include "peer/target.h"

static struct peer_target
target(uint64_t epoch, const char *host)
{
	struct peer_target t = { .epoch = epoch, .port = *host ? 7171 : 0, .life = { (uint8_t)epoch } };

	memcpy(t.host, host, strlen(host) + 1);
	return t;
}

TEST(a_hint_is_believed_if_its_epoch_is_higher)
{
	static const struct {
		const char *label;
		uint64_t known, hint;
		bool believed;
	} rows[] = {
		{ "nothing is known", 0, 1, true },
		{ "a newer owner", 6, 7, true },
		{ "the same epoch", 6, 6, false },
		{ "a former owner", 6, 5, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct peer_target t = target(rows[i].known, "known");
		const struct peer_target hint = target(rows[i].hint, "hinted");

		CHECK_EQ(rows[i].believed, target_learn(&t, &hint), "%s", rows[i].label);
		CHECK_STR(rows[i].believed ? "hinted" : "known", t.host);
		CHECK_EQ(rows[i].believed ? rows[i].hint : rows[i].known, t.epoch, "%s", rows[i].label);
	}
}

TEST(members_do_not_lead_back_behind_a_hint)
{
	struct peer_target t = target(7, "hinted"), older = target(6, "older"), none = target(0, ""), newer = target(8, "newer");

	target_set(&t, &older);
	CHECK_STR("hinted", t.host);
	target_set(&t, &none);
	CHECK_EQ(0, t.port);
	CHECK_EQ(7, t.epoch);
	CHECK(!target_learn(&t, &older));
	target_set(&t, &newer);
	CHECK_STR("newer", t.host);
	CHECK_EQ(8, t.epoch);
}

TEST(a_hint_is_read_as_it_was_written_and_nothing_less)
{
	struct peer_target out;
	struct buf b;

	buf_init(&b, TARGET_BYTES);
	for (unsigned with = 0; with < 2; with++) {
		const struct peer_target in = target(UINT64_MAX, with ? "node.example" : "");
		const size_t alone = 10; /* bytes of the epoch */

		buf_clear(&b);
		target_put(&in, &b);
		CHECK(target_get(buf_slice(&b), &out));
		CHECK_EQ(in.epoch, out.epoch);
		CHECK_EQ(in.port, out.port);
		CHECK_STR(in.host, out.host);
		for (size_t n = 0; n < b.n; n++)
			CHECK_EQ(n == alone, target_get((struct slice){ b.p, n }, &out));
		buf_putc(&b, 0);
		CHECK(!target_get(buf_slice(&b), &out));
	}
	buf_release(&b);
}

TEST(the_longest_hint_fits)
{
	struct peer_target in = target(UINT64_MAX, "x"), out;
	struct buf b;

	memset(in.host, 'h', TARGET_HOST - 1);
	in.port = UINT16_MAX;
	buf_init(&b, TARGET_BYTES);
	target_put(&in, &b);
	CHECK(!b.failed);
	CHECK(target_get(buf_slice(&b), &out));
	CHECK_STR(in.host, out.host);
	buf_release(&b);
}
