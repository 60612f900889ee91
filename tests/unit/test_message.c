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

TEST(a_message_of_nothing_but_names_comes_back)
{
	const struct message least = {
		.space = SLICE("a"),
		.queue = SLICE("b"),
	};
	char bytes[MESSAGE_FIXED + 2];
	struct message m;

	CHECK_EQ(sizeof bytes, message_size(&least));
	message_encode(&least, bytes);
	CHECK_EQ(0, message_decode((struct slice){ bytes, sizeof bytes }, &m, NULL));
	check_same(&least, &m);
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
	struct message m;

	CHECK_EQ(sizeof bytes, message_size(&big));
	message_encode(&big, bytes);
	CHECK_EQ(0, message_decode((struct slice){ bytes, sizeof bytes }, &m, NULL));
	check_same(&big, &m);
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
	CHECK_EQ(0, message_check(&m, NULL));
	CHECK_EQ(sizeof bytes, message_size(&m));
	message_encode(&m, bytes);
	CHECK_EQ(2, bytes[0]);
	CHECK(memcmp(golden + 1, bytes + 1, MESSAGE_FIXED - 1) == 0);
	CHECK(memcmp(want, bytes + MESSAGE_FIXED, sizeof want - 1) == 0);
	CHECK_EQ(0, message_decode((struct slice){ bytes, sizeof bytes }, &got, NULL));
	check_same(&m, &got);
	CHECK_EQ(SLU_ETOOBIG, message_decode_head((struct slice){ bytes, 89 }, &got, NULL));
	CHECK_EQ(90, got.payload_size);
	bytes[MESSAGE_FIXED] = 54;
	CHECK_EQ(SLU_ECORRUPT, message_decode((struct slice){ bytes, sizeof bytes }, &got, NULL));
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
		{ "version 3", 0, 3 },
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

/* M1: what decodes is written again as the same bytes. */
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
	CHECK_STR("a message needs a namespace", err.text);
	m = full;
	m.key = (struct slice){ text, MESSAGE_KEY_MAX + 1 };
	CHECK_EQ(SLU_ETOOBIG, message_check(&m, &err));
	CHECK_STR("a key of 257 bytes: at most 256", err.text);
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
