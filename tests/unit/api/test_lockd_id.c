#include "api/lockd/id.h"
#include "test.h"

static const struct lockd_xid none;

TEST(an_xid_is_twenty_characters_and_back)
{
	static const struct {
		const char *label;
		struct lockd_xid x;
		const char *text;
	} cases[] = {
		{ "zeros", { { 0 } }, "00000000000000000000" },
		{ "ones",
		  { { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 } },
		  "vvvvvvvvvvvvvvvvvvvg" },
		/* Golden: the example of rs/xid, which every client can read. */
		{ "as others write it",
		  { { 0x4d, 0x88, 0xe1, 0x5b, 0x60, 0xf4, 0x86, 0xe4, 0x28, 0x41, 0x2d, 0xc9 } },
		  "9m4e2mr0ui3e8a215n4g" },
	};

	EACH(i, cases) {
		struct lockd_xid back;
		char text[LOCKD_XID_TEXT];

		CHECK_STR(cases[i].text, lockd_xid_text(&cases[i].x, text));
		CHECK_EQ(true, lockd_xid_parse(slice_of(text), &back), cases[i].label);
		CHECK_EQ(0, memcmp(&back, &cases[i].x, sizeof back), cases[i].label);
	}
}

TEST(what_is_no_xid_is_refused)
{
	static const char *const cases[] = { "", "9m4e2mr0ui3e8a215n4", "9m4e2mr0ui3e8a215n4g0",
					     "9M4E2MR0UI3E8A215N4G", "9m4e2mr0ui3e8a215n4w",
					     "vvvvvvvvvvvvvvvvvvvv" };
	struct lockd_xid x;

	EACH(i, cases)
		CHECK_EQ(false, lockd_xid_parse(slice_of(cases[i]), &x), cases[i]);
}

TEST(a_lease_says_its_token_and_what_is_known_of_the_message)
{
	char text[LOCKD_XID_TEXT];
	unsigned flags;

	lockd_lease_text(77, &none, 0, text);
	CHECK_EQ(77u, lockd_lease_parse(slice_of(text), &none, &flags));
	CHECK_EQ(0u, flags);
	lockd_lease_text(77, &none, LOCKD_CORRELATED, text);
	CHECK_EQ(77u, lockd_lease_parse(slice_of(text), &none, &flags));
	CHECK_EQ((unsigned)LOCKD_CORRELATED, flags);
	CHECK_EQ(77u, lockd_lease_token(slice_of(text)));
}

TEST(a_lease_belongs_to_its_transaction)
{
	const struct lockd_xid txn = lockd_txn_of(1), other = lockd_txn_of(2);
	char own[LOCKD_XID_TEXT], given[LOCKD_XID_TEXT];
	const struct lockd_xid made = lockd_txn_of(77);
	unsigned flags;

	lockd_lease_text(77, &none, 0, own);
	lockd_lease_text(77, &txn, 0, given);
	CHECK_EQ(77u, lockd_lease_parse(slice_of(own), &made, &flags));
	CHECK_EQ(77u, lockd_lease_parse(slice_of(given), &txn, &flags));
	CHECK_EQ((unsigned)LOCKD_TXN_GIVEN, flags);
	CHECK_EQ(77u, lockd_lease_parse(slice_of(given), &none, &flags)); /* it was not said */
	CHECK_EQ(LOCKD_NO_TOKEN, lockd_lease_parse(slice_of(given), &other, &flags));
	CHECK_EQ(LOCKD_NO_TOKEN, lockd_lease_parse(slice_of(own), &txn, &flags));
}

/* A guess at another token has the wrong check. */
TEST(a_lease_that_was_never_given_has_no_token)
{
	struct lockd_xid x;
	char text[LOCKD_XID_TEXT];
	unsigned flags;

	lockd_lease_text(77, &none, 0, text);
	CHECK_EQ(true, lockd_xid_parse(slice_of(text), &x));
	x.b[7]++;
	lockd_xid_text(&x, text);
	CHECK_EQ(78u, lockd_lease_token(slice_of(text)));
	CHECK_EQ(LOCKD_NO_TOKEN, lockd_lease_parse(slice_of(text), &none, &flags));
	CHECK_EQ(LOCKD_NO_TOKEN, lockd_lease_parse(SLICE("l-77"), &none, &flags));
	CHECK_EQ(LOCKD_NO_TOKEN, lockd_lease_token(SLICE("00000000000000000000")));
}

TEST(an_etag_of_a_delivery_can_be_read_back)
{
	const struct lockd_meta m = { 1ull << 52, 1789000000123456 * SLU_US, 43200 };
	struct lockd_meta back = { 0 };
	char text[LOCKD_ETAG_TEXT];

	CHECK_EQ(true, lockd_meta_parse(slice_of(lockd_meta_text(&m, text)), &back));
	CHECK_EQ(m.token, back.token);
	CHECK_EQ(m.until, back.until);
	CHECK_EQ(m.seconds, back.seconds);
}

TEST(what_is_no_etag_of_a_delivery_is_refused)
{
	static const char *const cases[] = { "", "1", "1-2", "1-2-", "-2-3", "1-2-3-4", "1-2-g",
					     "1-ffffffffffffffff-3", "1-2-1000000",
					     "11111111111111111-2-3" };
	struct lockd_meta m;

	EACH(i, cases)
		CHECK_EQ(false, lockd_meta_parse(slice_of(cases[i]), &m), cases[i]);
}

TEST(an_etag_of_a_document_is_compared_without_quotes)
{
	char text[LOCKD_ETAG_TEXT];

	CHECK_STR("000000000000002a", lockd_etag_text(42, text));
	CHECK_EQ(42u, lockd_etag_parse(SLICE(" \"000000000000002a\" ")));
	CHECK_EQ(0u, lockd_etag_parse(SLICE("2a")));
	CHECK_EQ(0u, lockd_etag_parse(SLICE("")));
}

TEST(a_uuid_that_is_made_up_has_version_seven)
{
	char text[LOCKD_UUID_TEXT];

	lockd_uuid_text(1700000000123 * SLU_MS, UINT64_MAX, UINT64_MAX, text);
	CHECK_STR("018bcfe5-687b-7fff-bfff-ffffffffffff", text);
}
