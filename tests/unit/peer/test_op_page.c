/*
 * The end of a page: peer/op_page.h, PEER-3.
 */
#include "test.h"

#include "broker/broker.h"
#include "peer/op_page.h"
#include "peer/peer_bytes.h"

enum {
	ROWS = 4,
	CURSOR = 900 /* of the whole page */
};

static struct op_row rows[ROWS];
static struct op_key keys[ROWS];

/* An op that has pinned four records of 100 bytes. */
static struct op
answered(enum op_verb verb, struct peer_bytes *bytes)
{
	struct op op;

	op_init(&op, verb, SLICE("ns"), SLICE("q"), NULL, NULL);
	op.engine = &peer_engine;
	op.rows = rows;
	op.keys = keys;
	op.cursor = CURSOR;
	op.n_rows = verb == OP_KEYS ? 0 : ROWS;
	op.n_keys = verb == OP_KEYS ? ROWS : 0;
	for (uint32_t i = 0; i < op.n_rows; i++)
		rows[i] = (struct op_row){ .after = 10 + i, .record = peer_bytes_pin(bytes, 0, 60, 0), .error = peer_bytes_pin(bytes, 0, 40, 0) };
	for (uint32_t i = 0; i < op.n_keys; i++)
		keys[i] = (struct op_key){ .record = peer_bytes_pin(bytes, 0, 100, 0) };
	return op;
}

TEST(a_page_ends_at_its_last_row_that_fits)
{
	static const struct {
		const char *label;
		uint64_t max_bytes;
		uint32_t rows;
		uint64_t cursor;
	} cases[] = {
		{ "all fit", 400, 4, CURSOR },
		{ "the last is cut", 399, 3, 12 },
		{ "two fit", 200, 2, 11 },
		{ "one is always there", 1, 1, 10 },
	};
	struct peer_bytes *const bytes = peer_bytes_new(100);

	CHECK(bytes);
	EACH(i, cases) {
		struct op list = answered(OP_LIST, bytes);

		op_page_end(&list, cases[i].max_bytes);
		CHECK_EQ(cases[i].rows, list.n_rows, cases[i].label);
		CHECK_EQ(cases[i].cursor, list.cursor, cases[i].label);
		CHECK_EQ(1 + 2 * cases[i].rows, bytes->pins, cases[i].label);
		op_unpin(&list);
	}
	CHECK_EQ(1, bytes->pins);
	peer_bytes_unpin(bytes);
}

TEST(the_cursor_of_a_list_over_all_lanes_names_the_lane)
{
	struct peer_bytes *const bytes = peer_bytes_new(100);
	struct op list;

	CHECK(bytes);
	list = answered(OP_LIST, bytes);
	list.route.spans = true;
	list.route.lane = 3;
	op_page_end(&list, 250);
	CHECK_EQ(3ull << BROKER_CURSOR_BITS | 11, list.cursor);
	op_unpin(&list);
	peer_bytes_unpin(bytes);
}

TEST(keys_and_peeks_end_and_claims_do_not)
{
	static const struct {
		const char *label;
		enum op_verb verb;
		uint32_t rows;
	} cases[] = {
		{ "peek", OP_PEEK, 2 },
		{ "keys", OP_KEYS, 2 },
		{ "claim", OP_CLAIM, 4 },
		{ "get", OP_GET, 4 },
	};
	struct peer_bytes *const bytes = peer_bytes_new(100);

	CHECK(bytes);
	EACH(i, cases) {
		struct op op = answered(cases[i].verb, bytes);

		op_page_end(&op, 250);
		CHECK_EQ(cases[i].rows, op.n_rows + op.n_keys, cases[i].label);
		CHECK_EQ(CURSOR, op.cursor, cases[i].label);
		if (cases[i].verb == OP_KEYS)
			CHECK(op.lock.more);
		op_unpin(&op);
		CHECK_EQ(1, bytes->pins, cases[i].label);
	}
	peer_bytes_unpin(bytes);
}
