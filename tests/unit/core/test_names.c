#include "test.h"

#include "core/names.h"

static char longest[300];

static struct slice
of_length(size_t n)
{
	memset(longest, 'x', sizeof longest);
	return (struct slice){ longest, n };
}

TEST(names_are_folded_or_refused)
{
	static const struct {
		const char *name;
		const char *folded; /* NULL: refused */
		const char *says;
	} cases[] = {
		{ "payments", "payments", NULL },
		{ "Process-Refund_2.v1", "process-refund_2.v1", NULL },
		{ "AZ09az", "az09az", NULL },
		{ "-", "-", NULL },
		{ "a.", "a.", NULL },
		{ "", NULL, "invalid queue of 0 bytes; expected 1 to 128 bytes" },
		{ ".locks", NULL, "begin with a dot" },
		{ "..", NULL, "begin with a dot" },
		{ "a/b", NULL, "expected A-Z a-z 0-9" },
		{ "a b", NULL, "expected A-Z a-z 0-9" },
		{ "a\nb", NULL, "queue \"a?b\"" }, /* nothing raw in a message */
		{ "q\xc3\xbc", NULL, "expected A-Z a-z 0-9" },
		{ "a:b", NULL, "expected A-Z a-z 0-9" },
		{ "{a}", NULL, "expected A-Z a-z 0-9" },
	};

	EACH(i, cases) {
		char out[NAME_TEXT] = "before";
		struct slu_err err = { 0 };
		const int rc = name_fold(slice_of(cases[i].name), "queue", out, &err);

		CHECK_EQ(cases[i].folded ? 0 : SLU_EINVAL, rc, cases[i].name);
		CHECK_STR(cases[i].folded ? cases[i].folded : "before", out);
		CHECK_EQ(cases[i].folded && strcmp(cases[i].folded, cases[i].name) == 0,
			 name_is_folded(slice_of(cases[i].name)), cases[i].name);
		if (cases[i].says)
			CHECK_CONTAINS(cases[i].says, err.text);
	}
}

TEST(lock_keys_are_names_with_slashes_between)
{
	static const struct {
		const char *key;
		const char *folded; /* NULL: refused */
		const char *says;
	} cases[] = {
		{ "orders", "orders", NULL },
		{ "Q/Orders/state/0190.x", "q/orders/state/0190.x", NULL },
		{ ".a/..b", ".a/..b", NULL },
		{ "", NULL, "invalid key of 0 bytes" },
		{ "/a", NULL, "expected no empty segment" },
		{ "a/", NULL, "expected no empty segment" },
		{ "a//b", NULL, "expected no empty segment" },
		{ "a b", NULL, "expected A-Z a-z 0-9" },
	};

	EACH(i, cases) {
		char out[NAME_TEXT] = "before";
		struct slu_err err = { 0 };
		const int rc = lock_key_fold(slice_of(cases[i].key), "key", out, &err);

		CHECK_EQ(cases[i].folded ? 0 : SLU_EINVAL, rc, cases[i].key);
		CHECK_STR(cases[i].folded ? cases[i].folded : "before", out);
		if (cases[i].says)
			CHECK_CONTAINS(cases[i].says, err.text);
	}
	CHECK_EQ(SLU_EINVAL, lock_key_fold(of_length(129), "key", (char[NAME_TEXT]){ 0 }, NULL));
}

TEST(a_name_with_a_nul_inside_is_refused)
{
	char out[NAME_TEXT];

	CHECK_EQ(SLU_EINVAL, name_fold(SLICE("a\0b"), "queue", out, NULL));
	CHECK(!name_is_folded(SLICE("a\0b")));
}

TEST(the_longest_of_each_is_allowed_and_no_more)
{
	char out[NAME_TEXT];
	struct slu_err err;

	CHECK_EQ(0, name_fold(of_length(128), "queue", out, NULL));
	CHECK_EQ(128, strlen(out));
	CHECK_EQ(SLU_EINVAL, name_fold(of_length(129), "queue", out, &err));
	CHECK_CONTAINS("129 bytes", err.text);
	CHECK(name_is_folded(of_length(128)) && !name_is_folded(of_length(129)));
	CHECK_EQ(0, key_check(of_length(256), "key", NULL));
	CHECK_EQ(SLU_EINVAL, key_check(of_length(257), "key", NULL));
	CHECK_EQ(0, correlation_check(of_length(128), "correlation_id", NULL));
	CHECK_EQ(SLU_EINVAL, correlation_check(of_length(129), "correlation_id", NULL));
}

TEST(keys_are_utf8_without_control_characters)
{
	static const struct {
		const char *key;
		const char *says; /* NULL: fine */
	} cases[] = {
		{ "customer 42/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", NULL },
		{ " ", NULL },
		{ "\xc2\xa0", NULL }, /* no-break space, right above the last control */
		{ "", "invalid key of 0 bytes" },
		{ "a\tb", "invalid key: control character at byte 1" },
		{ "ab\x7f", "control character at byte 2" },
		{ "\xc2\x85", "control character at byte 0" },
		{ "\xc2\x9f", "control character at byte 0" },
		{ "ab\xff", "invalid key: not UTF-8 at byte 2" },
		{ "\xc0\xaf", "not UTF-8 at byte 0" },
		{ "x\xe2\x82", "not UTF-8 at byte 1" },
		{ "\xed\xa0\x80", "not UTF-8 at byte 0" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };

		CHECK_EQ(cases[i].says ? SLU_EINVAL : 0,
			 key_check(slice_of(cases[i].key), "key", &err), cases[i].key);
		if (cases[i].says)
			CHECK_CONTAINS(cases[i].says, err.text);
	}
}

TEST(correlation_ids_are_printable_ascii)
{
	static const struct {
		const char *id;
		int rc;
	} cases[] = {
		{ "req-7 {\"a\":~}", 0 },
		{ "", SLU_EINVAL },
		{ "a\r\nX-Evil: 1", SLU_EINVAL },
		{ "\x7f", SLU_EINVAL },
		{ "caf\xc3\xa9", SLU_EINVAL },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].rc,
			 correlation_check(slice_of(cases[i].id), "correlation_id", NULL),
			 cases[i].id);
}
