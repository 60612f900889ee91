#include "test.h"

#include "engine/message.h"

#include <stdlib.h>

static const struct message full = {
	.id = 0x0102030405060708,
	.number = 0x11,
	.accepted = 0x21,
	.due = 0x31,
	.expires = 0x51,
	.keep = 0x41,
	.prio = -2,
	.max_attempts = 0x0503,
	.payload_size = 3,
	.space = { "ns", 2 },
	.queue = { "mail", 4 },
	.key = { "k", 1 },
	.idem = { "once", 4 },
	.correlation = { "c-1", 3 },
	.type = { "text/plain", 10 },
	.attributes = { "{\"a\":1}", 7 },
	.payload = { "\0x\xff", 3 },
};

/* What `full` is on disk. Never changes: see docs of the version. */
static const char golden[] =
	"\x01\x00\x03\x05\xfe\xff\xff\xff"
	"\x08\x07\x06\x05\x04\x03\x02\x01"
	"\x11\0\0\0\0\0\0\0"
	"\x21\0\0\0\0\0\0\0"
	"\x31\0\0\0\0\0\0\0"
	"\x51\0\0\0\0\0\0\0"
	"\x41\0\0\0\0\0\0\0"
	"\x03\0\0\0\0\0\0\0"
	"\0\0\0\0\0\0\0\0"
	"\x02\x04\x01\0\x04\0\x03\x0a"
	"\x07\0\0\0\0\0\0\0"
	"nsmailkoncec-1text/plain{\"a\":1}\0x\xff";

enum {
	GOLDEN = sizeof(golden) - 1
};

static void
check_same(const struct message *want, const struct message *got)
{
	CHECK_EQ(want->id, got->id);
	CHECK_EQ(want->number, got->number);
	CHECK_EQ(want->accepted, got->accepted);
	CHECK_EQ(want->due, got->due);
	CHECK_EQ(want->expires, got->expires);
	CHECK_EQ(want->keep, got->keep);
	CHECK_EQ(want->prio, got->prio);
	CHECK_EQ(want->max_attempts, got->max_attempts);
	CHECK_EQ(want->payload_size, got->payload_size);
	CHECK_EQ(want->file, got->file);
	CHECK(slice_eq(want->space, got->space));
	CHECK(slice_eq(want->queue, got->queue));
	CHECK(slice_eq(want->key, got->key));
	CHECK(slice_eq(want->idem, got->idem));
	CHECK(slice_eq(want->correlation, got->correlation));
	CHECK(slice_eq(want->type, got->type));
	CHECK(slice_eq(want->attributes, got->attributes));
	CHECK(slice_eq(want->trace, got->trace));
	CHECK(slice_eq(want->share, got->share));
	CHECK(memcmp(&want->terms, &got->terms, sizeof want->terms) == 0);
	CHECK(slice_eq(want->source, got->source));
	CHECK_EQ(want->sent, got->sent);
	CHECK_EQ(want->reason, got->reason);
	CHECK(slice_eq(want->error, got->error));
	CHECK(slice_eq(want->rule, got->rule));
	CHECK(slice_eq(want->payload, got->payload));
}

TEST(a_message_has_these_bytes)
{
	char bytes[GOLDEN];

	CHECK_EQ(GOLDEN, message_size(&full));
	message_encode(&full, bytes);
	CHECK(memcmp(golden, bytes, GOLDEN) == 0);
}

TEST(these_bytes_are_that_message)
{
	struct message m;

	CHECK_EQ(0, message_decode((struct slice){ golden, GOLDEN }, &m, NULL));
	check_same(&full, &m);
}

/* The message can be in a record of n bytes, with `want` behind the fixed part, and comes back. The bytes stay in `bytes`. */
static void
check_bytes(const struct message *m, char *bytes, size_t n, struct slice want)
{
	struct message got;

	CHECK_EQ(0, message_check(m, NULL));
	CHECK_EQ(n, message_size(m));
	message_encode(m, bytes);
	CHECK(memcmp(want.p, bytes + MESSAGE_FIXED, want.n) == 0);
	CHECK_EQ(0, message_decode((struct slice){ bytes, n }, &got, NULL));
	check_same(m, &got);
}

TEST(a_message_of_nothing_but_names_comes_back)
{
	const struct message least = {
		.space = SLICE("a"),
		.queue = SLICE("b"),
	};
	char bytes[MESSAGE_FIXED + 2];

	check_bytes(&least, bytes, sizeof bytes, SLICE(""));
}

TEST(a_record_tells_its_id_without_being_decoded)
{
	struct message m = full;
	char bytes[256];
	bool has_key;

	CHECK_EQ(full.id, message_id_of((struct slice){ golden, GOLDEN }, &has_key));
	CHECK(has_key);
	m.idem = (struct slice){ 0 };
	message_encode(&m, bytes);
	CHECK_EQ(full.id, message_id_of((struct slice){ bytes, message_size(&m) }, &has_key));
	CHECK(!has_key);
	CHECK_EQ(0, message_id_of((struct slice){ bytes, MESSAGE_FIXED - 1 }, &has_key), "cut");
}

TEST(a_payload_in_a_file_is_not_in_the_record)
{
	const struct message big = {
		.space = SLICE("a"),
		.queue = SLICE("b"),
		.file = 77,
		.payload_size = 5 << 20,
	};
	char bytes[MESSAGE_FIXED + 2];

	check_bytes(&big, bytes, sizeof bytes, SLICE(""));
}

TEST(the_head_of_a_record_is_enough_for_all_but_the_payload)
{
	const size_t head = message_head(&full);
	struct message want = full;
	struct message m;

	want.payload = (struct slice){ 0 };
	CHECK_EQ(GOLDEN - 3, head);
	CHECK_EQ(0, message_decode_head((struct slice){ golden, head }, &m, NULL));
	check_same(&want, &m);
	CHECK_EQ(SLU_ETOOBIG,
		 message_decode_head((struct slice){ golden, head - 1 }, &m, NULL));
	CHECK_EQ(head, m.payload_size, "it says how much is needed");
	CHECK_EQ(SLU_ETOOBIG, message_decode_head((struct slice){ golden, 10 }, &m, NULL));
	CHECK_EQ(MESSAGE_FIXED, m.payload_size);
}

/* A copy of exactly n bytes, so that the sanitizer sees a read beyond it. */
static int
decode_copy(const char *p, size_t n, struct message *m)
{
	char *copy = malloc(n ? n : 1);
	int rc;

	memcpy(copy, p, n);
	rc = message_decode((struct slice){ copy, n }, m, NULL);
	free(copy);
	return rc;
}

TEST(a_record_that_is_cut_or_too_long_is_refused)
{
	char longer[GOLDEN + 1];
	struct message m;

	for (size_t n = 0; n < GOLDEN; n++)
		CHECK_EQ(SLU_ECORRUPT, decode_copy(golden, n, &m));
	memcpy(longer, golden, GOLDEN);
	longer[GOLDEN] = 0;
	CHECK_EQ(SLU_ECORRUPT, decode_copy(longer, sizeof longer, &m));
}

#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* Version 2; X-15 */
TEST(a_message_with_a_trace_has_these_bytes)
{
	static const char want[] = "\x3a\0"
				   "nsmailkoncec-1text/plain{\"a\":1}" PARENT "a=1\0x\xff";
	struct message m = full, got;
	char bytes[GOLDEN + 2 + 58];

	m.trace = SLICE(PARENT "a=1");
	check_bytes(&m, bytes, sizeof bytes, (struct slice){ want, sizeof want - 1 });
	CHECK_EQ(2, bytes[0]);
	CHECK(memcmp(golden + 1, bytes + 1, MESSAGE_FIXED - 1) == 0);
	CHECK_EQ(SLU_ETOOBIG, message_decode_head((struct slice){ bytes, 89 }, &got, NULL));
	CHECK_EQ(90, got.payload_size);
	bytes[MESSAGE_FIXED] = 54;
	CHECK_EQ(SLU_ECORRUPT, message_decode((struct slice){ bytes, sizeof bytes }, &got, NULL));
}

/* Version 3 */
TEST(a_message_with_a_share_has_these_bytes)
{
	static const char want[] = "\0\0\x04\0"
				   "nsmailkoncec-1text/plain{\"a\":1}\x01\x02t7\0x\xff";
	struct message m = full, got;
	char bytes[GOLDEN + 4 + 4];

	m.share = SLICE("t7");
	check_bytes(&m, bytes, sizeof bytes, (struct slice){ want, sizeof want - 1 });
	CHECK_EQ(3, bytes[0]);
	CHECK(memcmp(golden + 1, bytes + 1, MESSAGE_FIXED - 1) == 0);
	CHECK_EQ(0, decode_copy(bytes, sizeof bytes, &got));
	for (size_t n = 0; n < sizeof bytes; n++)
		CHECK_EQ(SLU_ECORRUPT, decode_copy(bytes, n, &got));
	CHECK_EQ(SLU_ETOOBIG, message_decode_head((struct slice){ bytes, 91 }, &got, NULL));
	CHECK_EQ(92, got.payload_size);
}

TEST(a_message_with_terms_of_its_own_has_these_bytes)
{
	static const char want[] = "\0\0\x32\0"
				   "nsmailkoncec-1text/plain{\"a\":1}"
				   "\x1e\x08\x07\0\0\0\0\0\0\0\x1f\x08\x08\0\0\0\0\0\0\0\x20\x08\x03\x01\0\0\0\0\0\0"
				   "\x21\x08\x09\0\0\0\0\0\0\0\x22\x08\x0a\0\0\0\0\0\0\0\0x\xff";
	const struct slu_backoff fixed = { .kind = SLU_BACKOFF_FIXED, .jitter = SLU_JITTER_FULL, .base = 9, .max = 10 };
	struct message m = full, got;
	char bytes[GOLDEN + 4 + 50];

	m.terms = (struct terms){ .lease = 7, .run = 8 };
	terms_set_retry(&m.terms, &fixed);
	check_bytes(&m, bytes, sizeof bytes, (struct slice){ want, sizeof want - 1 });
	m.terms.retry = 9;
	message_encode(&m, bytes);
	CHECK_EQ(SLU_ECORRUPT, message_decode((struct slice){ bytes, sizeof bytes }, &got, NULL), "no kind of retry");
}

TEST(a_unique_message_has_these_bytes)
{
	static const char want[] = "\0\0\x14\0"
				   "nsmailkoncec-1text/plain{\"a\":1}"
				   "\x23\x08\x03\0\0\0\0\0\0\0\x24\x08\x07\0\0\0\0\0\0\0\0x\xff";
	struct message m = full, got;
	char bytes[GOLDEN + 4 + 20];

	m.terms = (struct terms){ .unique = UNIQUE_TIME, .unique_for = 7, .unique_end = m.accepted + 7 };
	check_bytes(&m, bytes, sizeof bytes, (struct slice){ want, sizeof want - 1 });
	m.terms.unique = UNIQUE_DONE;
	CHECK_EQ(SLU_EINVAL, message_check(&m, NULL), "done, and for a time");
	message_encode(&m, bytes);
	CHECK_EQ(SLU_ECORRUPT, message_decode((struct slice){ bytes, sizeof bytes }, &got, NULL));
}

TEST(a_dead_letter_of_another_queue_has_these_bytes)
{
	static const char want[] = "\0\0\x1c\0"
				   "nsmailkoncec-1text/plain{\"a\":1}"
				   "\x14\x01q\x15\x08\x07\0\0\0\0\0\0\0\x16\x08\x03\0\0\0\0\0\0\0\x17\x03why\0x\xff";
	struct message m = full, got;
	char bytes[GOLDEN + 4 + 28];

	m.source = SLICE("q");
	m.sent = 7;
	m.reason = 3;
	m.error = SLICE("why");
	check_bytes(&m, bytes, sizeof bytes, (struct slice){ want, sizeof want - 1 });
	memset((char *)memchr(bytes + MESSAGE_FIXED, 0x15, sizeof bytes - MESSAGE_FIXED) + 2, 0, 8);
	CHECK_EQ(SLU_ECORRUPT, message_decode((struct slice){ bytes, sizeof bytes }, &got, NULL), "a number is not 0");
}

TEST(a_message_with_a_rule_has_these_bytes)
{
	static const char want[] = "\0\0\x0d\0"
				   "nsmailkoncec-1text/plain{\"a\":1}\x01\x02t7\x0a\x07x=1:low\0x\xff";
	struct message m = full;
	char bytes[GOLDEN + 4 + 4 + 9];

	m.share = SLICE("t7");
	m.rule = SLICE("x=1:low");
	check_bytes(&m, bytes, sizeof bytes, (struct slice){ want, sizeof want - 1 });
}

TEST(a_share_and_a_trace_fit_into_one_record)
{
	struct message m = full;
	char bytes[GOLDEN + 4 + 2 + MESSAGE_SHARE_MAX + 55];
	char share[MESSAGE_SHARE_MAX + 1];

	memset(share, 's', sizeof share);
	m.trace = SLICE(PARENT);
	m.share = (struct slice){ share, MESSAGE_SHARE_MAX };
	check_bytes(&m, bytes, sizeof bytes, SLICE(""));
	m.share.n++;
	CHECK_EQ(SLU_ETOOBIG, message_check(&m, NULL));
}

TEST(malformed_fields_are_refused)
{
	enum {
		AT = MESSAGE_FIXED + 4 + 31 /* the first field of `full` with a share */
	};
	static const struct {
		const char *label;
		size_t at;
		char byte;
	} cases[] = {
		{ "no fields", 90, 0 },
		{ "half a field", 90, 1 },
		{ "an unknown tag", AT, 9 },
		{ "tag 0", AT, 0 },
		{ "an empty field", AT + 1, 0 },
		{ "a field beyond the end", AT + 1, 3 },
		{ "a rest that is no field", AT + 1, 1 },
	};
	struct message m = full, got;
	char bytes[GOLDEN + 4 + 4];

	m.share = SLICE("t7");
	EACH(i, cases) {
		message_encode(&m, bytes);
		bytes[cases[i].at] = cases[i].byte;
		CHECK_EQ(SLU_ECORRUPT, decode_copy(bytes, sizeof bytes, &got), cases[i].label);
	}
}

TEST(a_trace_is_whole_or_not_there)
{
	struct message m = full;

	m.trace = SLICE("00-");
	CHECK_EQ(SLU_EINVAL, message_check(&m, NULL));
}

TEST(what_cannot_be_in_a_record_is_refused)
{
	static const struct {
		const char *label;
		size_t at;
		char byte;
	} cases[] = {
		{ "version 0", 0, 0 },
		{ "version 2 without a trace", 0, 2 },
		{ "version 3 without fields", 0, 3 },
		{ "version 4", 0, 4 },
		{ "an unknown flag", 1, 2 },
		{ "a flag without its file", 1, 1 },
		{ "a file without its flag", 64, 1 },
		{ "accepted before time", 31, (char)0x80 },
		{ "due before time", 39, (char)0x80 },
		{ "expired before time", 47, (char)0xff },
		{ "kept for less than nothing", 55, (char)0x80 },
		{ "a huge payload", 63, 1 },
		{ "no namespace", 72, 0 },
		{ "a long namespace", 72, (char)129 },
		{ "no queue", 73, 0 },
		{ "a long key", 75, 2 },
		{ "long attributes", 83, 1 },
		{ "not zero", 87, 1 },
	};
	char bytes[GOLDEN];
	struct message m;

	EACH(i, cases) {
		memcpy(bytes, golden, GOLDEN);
		bytes[cases[i].at] = cases[i].byte;
		CHECK_EQ(SLU_ECORRUPT, decode_copy(bytes, GOLDEN, &m), cases[i].label);
	}
}

/* MESSAGE-1: what decodes is written again as the same bytes. */
TEST(whatever_decodes_has_one_spelling)
{
	uint64_t random = test_seed();
	char bytes[GOLDEN], again[GOLDEN];
	struct message m;

	for (int i = 0; i < 200000; i++) {
		const int changes = 1 + (int)(test_random(&random) % 3);

		memcpy(bytes, golden, GOLDEN);
		for (int k = 0; k < changes; k++)
			bytes[test_random(&random) % GOLDEN] = (char)test_random(&random);
		if (message_decode((struct slice){ bytes, GOLDEN }, &m, NULL))
			continue;
		CHECK_EQ(GOLDEN, message_size(&m));
		message_encode(&m, again);
		CHECK(memcmp(bytes, again, GOLDEN) == 0);
	}
}

TEST(a_message_that_no_record_can_hold_is_refused)
{
	static char text[MESSAGE_ATTRIBUTES_MAX + 1];
	struct message m = full;
	struct slu_err err;

	CHECK_EQ(0, message_check(&full, NULL));
	m.space.n = 0;
	CHECK_EQ(SLU_EINVAL, message_check(&m, &err));
	CHECK_STR("missing namespace", err.text);
	m = full;
	m.key = (struct slice){ text, MESSAGE_KEY_MAX + 1 };
	CHECK_EQ(SLU_ETOOBIG, message_check(&m, &err));
	CHECK_STR("invalid key: 257 bytes; expected at most 256", err.text);
	m = full;
	m.attributes = (struct slice){ text, sizeof text };
	CHECK_EQ(SLU_ETOOBIG, message_check(&m, NULL));
	m = full;
	m.payload.n = (size_t)MESSAGE_PAYLOAD_MAX + 1;
	CHECK_EQ(SLU_ETOOBIG, message_check(&m, NULL));
	m = full;
	m.file = 1;
	CHECK_EQ(SLU_EINVAL, message_check(&m, NULL));
}
