#include "test.h"

#include "form/arena.h"
#include "api/flat/enqueue.h"
#include "api/flat/packed.h"
#include "api/flat/settle.h"
#include "api/flat/view.h"
#include "api/limits.h"

static struct arena memory;

#define BYTES(text) ((struct slice){ (text), sizeof(text) - 1 })

/* The example of docs/batch-format.md. */
#define QUEUE "\x04shop\x04mail"
#define PUT   "SLB1\x01\0\x01\0\x01\0\0\0" QUEUE           \
	    "\x0e\0\0\0\x02\0\0\0\0\0\0\0{\"priority\":3}" \
	    "hi"
#define SETTLE "SLB1\x04\0\x01\0\x01\0\0\0" QUEUE "\0\0\0\0\0\0\0\0\x01\0\x40\0\0\0\0\0\x0c\0\0\0\0\0\0\0"

TEST(the_bytes_of_a_message_are_those_of_the_page)
{
	struct form_puts e = { 0 };
	struct slu_err err = { 0 };
	const struct message *m;
	int64_t index;

	CHECK_EQ(0, flat_enqueue_decode_packed(&e, &memory, BYTES(PUT), &index, &err), err.text);
	CHECK_EQ(1, e.n);
	CHECK_EQ(1, e.items);
	m = &e.puts[0].m;
	CHECK(slice_eq(SLICE("shop"), m->space) && slice_eq(SLICE("mail"), m->queue));
	CHECK(slice_eq(SLICE("hi"), m->payload));
	CHECK_EQ(2, m->payload_size);
	CHECK_EQ(3, m->prio);
}

TEST(a_message_without_members_has_the_defaults_of_json)
{
	struct form_puts packed = { 0 }, json = { 0 };
	struct slu_err err = { 0 };
	int64_t index;

	CHECK_EQ(0, flat_enqueue_decode_packed(&packed, &memory, BYTES("SLB1\x01\0\x01\0\x01\0\0\0\x04Shop\x04mail\0\0\0\0\x02\0\0\0\0\0\0\0hi"), &index, &err),
		 err.text);
	CHECK_EQ(0, form_puts_decode(&json, &memory, SLICE("{\"namespace\":\"Shop\",\"queue\":\"mail\",\"payload\":\"aGk=\"}"), &index, &err),
		 err.text);
	CHECK(slice_eq(json.puts->m.space, packed.puts->m.space));
	CHECK(slice_eq(json.puts->as.space, packed.puts->as.space));
	CHECK(slice_eq(json.puts->m.payload, packed.puts->m.payload));
	json.puts->m.space = packed.puts->m.space;
	json.puts->m.queue = packed.puts->m.queue;
	json.puts->m.payload = packed.puts->m.payload;
	json.puts->as = packed.puts->as;
	CHECK(memcmp(json.puts, packed.puts, sizeof *json.puts) == 0);
}

/* PACKED-1: of every prefix, and of every byte that is changed in the fixed part. */
TEST(a_batch_that_is_cut_or_too_long_is_refused)
{
	struct form_puts e = { 0 };
	struct flat_settle s = { .verb = OP_ACK };
	struct slu_err err = { 0 };
	int64_t index;

	for (size_t n = 0; n < sizeof PUT - 1; n++)
		CHECK_EQ(SLU_EINVAL, flat_enqueue_decode_packed(&e, &memory, (struct slice){ PUT, n }, &index, &err));
	for (size_t n = 0; n < sizeof SETTLE - 1; n++)
		CHECK_EQ(SLU_EINVAL, flat_settle_decode_packed(&s, &memory, (struct slice){ SETTLE, n }, &index, &err));
	CHECK_EQ(SLU_EINVAL, flat_enqueue_decode_packed(&e, &memory, BYTES(PUT "x"), &index, &err));
	CHECK_CONTAINS("1 bytes behind the last item", err.text);
	CHECK_EQ(SLU_EINVAL, flat_settle_decode_packed(&s, &memory, BYTES(SETTLE "x"), &index, &err));
}

TEST(an_invalid_batch_says_what_was_expected)
{
#define HEAD "SLB1\x01\0\x01\0\x01\0\0\0"
	static const struct {
		struct slice body;
		const char *says;
		int64_t index;
	} cases[] = {
		{ BYTES("SLB2\x01\0\x01\0\x01\0\0\0" QUEUE), "expected SLB1", -1 },
		{ BYTES("SLB1\x02\0\x01\0\x01\0\0\0" QUEUE), "expected kind 1", -1 },
		{ BYTES("SLB1\x01\x01\x01\0\x01\0\0\0" QUEUE), "a zero byte", -1 },
		{ BYTES("SLB1\x01\0\x01\0\0\0\0\0" QUEUE), "expected 1 to 10000", -1 },
		{ BYTES("SLB1\x01\0\x01\0\x11\x27\0\0" QUEUE), "expected 1 to 10000", -1 },
		{ BYTES("SLB1\x01\0\0\0\x01\0\0\0"), "expected at least one", -1 },
		{ BYTES(HEAD "\x04sh p\x04mail"), "namespace", -1 },
		{ BYTES(HEAD "\x04shop\x00"
			     "aaaa"),
		  "queue", -1 },
		{ BYTES(HEAD QUEUE "\0\0\0\0\0\0\0\0\x01\0\0\0"), "invalid queue number 1; expected less than 1", 0 },
		{ BYTES(HEAD QUEUE "\0\0\0\0\0\0\0\0\0\0\x01\0"), "expected zeros", 0 },
		{ BYTES(HEAD QUEUE "\x0c\0\0\0\0\0\0\0\0\0\0\0{\"text\":\"a\"}"), "expected no member", 0 },
		{ BYTES(HEAD QUEUE "\x02\0\0\0\0\0\0\0\0\0\0\0[]"), "object", 0 },
		{ BYTES(HEAD QUEUE "\xff\xff\xff\xff\0\0\0\0\0\0\0\0{}"), "cut off", 0 },
	};

	EACH(i, cases) {
		struct form_puts e = { 0 };
		struct slu_err err = { 0 };
		int64_t index;

		CHECK_EQ(SLU_EINVAL, flat_enqueue_decode_packed(&e, &memory, cases[i].body, &index, &err), cases[i].says);
		CHECK_CONTAINS(cases[i].says, err.text);
		CHECK_EQ(cases[i].index, index, cases[i].says);
	}
#undef HEAD
}

TEST(the_bytes_of_a_claimed_message_are_those_of_the_page)
{
	const struct op_row row = { .id = 4194305, .token = 12, .until = 31 * SLU_SEC, .prio = 3, .attempts = 1, .max_attempts = 5, .state = MSG_LEASED };
	const struct message m = { .accepted = SLU_SEC, .due = SLU_SEC, .space = SLICE("shop"), .queue = SLICE("mail"), .payload = SLICE("hi"), .payload_size = 2 };
	static const char want[] = "SLB1\x03\0\x01\0\x01\0\0\0" QUEUE
				   "\0\0\0\0\x02\0\0\0\0\0\x01\0\0\0\x05\0"
				   "\x01\0\x40\0\0\0\0\0\x0c\0\0\0\0\0\0\0"
				   "\x00\x76\xbe\x37\x07\0\0\0\x00\xca\x9a\x3b\0\0\0\0"
				   "\x00\xca\x9a\x3b\0\0\0\0\x03\0\0\0\0\0\0\0"
				   "hi";
	struct buf b;

	buf_init(&b, 4096);
	packed_write_queue(&b, PACKED_MESSAGES, m.space, m.queue);
	flat_view_packed(&b, &row, &m, (struct slice){ 0 });
	packed_count(&b, 0, 1);
	CHECK(slice_eq(BYTES(want), buf_slice(&b)));
	buf_release(&b);
}

TEST(a_claimed_message_has_its_members_as_json)
{
	const struct op_row row = { .id = 1, .token = 2, .state = MSG_LEASED };
	const struct message m = { .key = SLICE("k"), .type = SLICE("t/x"), .payload = SLICE("hi") };
	static const char members[] = "{\"key\":\"k\",\"content_type\":\"t/x\"}";
	struct buf b;

	buf_init(&b, 4096);
	flat_view_packed(&b, &row, &m, (struct slice){ 0 });
	CHECK_EQ(PACKED_MESSAGE_BYTES + sizeof members - 1 + 2, b.n);
	CHECK_EQ(sizeof members - 1, b.p[0]);
	CHECK_STR("{\"key\":\"k\",\"content_type\":\"t/x\"}hi", buf_str(&b) + PACKED_MESSAGE_BYTES);
	buf_release(&b);
}

TEST(a_claimed_message_has_its_checkpoint)
{
	const struct op_row row = { .id = 1, .token = 2, .state = MSG_LEASED };
	const struct message m = { .payload = SLICE("hi") };
	struct buf b;

	buf_init(&b, 4096);
	flat_view_packed(&b, &row, &m, SLICE("[1]"));
	CHECK_STR("{\"checkpoint\":[1]}hi", buf_str(&b) + PACKED_MESSAGE_BYTES);
	buf_release(&b);
}

TEST(items_are_settled_by_id_and_token)
{
	struct flat_settle s = { .verb = OP_ACK };
	struct slu_err err = { 0 };
	int64_t index;

	CHECK_EQ(0, flat_settle_decode_packed(&s, &memory, BYTES(SETTLE), &index, &err), err.text);
	CHECK_EQ(1, s.n);
	CHECK(s.many);
	CHECK(slice_eq(SLICE("shop"), s.items->space) && slice_eq(SLICE("mail"), s.items->queue));
	CHECK_EQ(4194305, s.items->id);
	CHECK_EQ(12, s.items->token);
}

TEST(a_nack_has_its_members_as_json)
{
	struct flat_settle s = { .verb = OP_NACK };
	struct slu_err err = { 0 };
	int64_t index;

	CHECK_EQ(0, flat_settle_decode_packed(&s, &memory, BYTES("SLB1\x04\0\x01\0\x02\0\0\0" QUEUE "\x0c\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0{\"delay\":10}"
								 "\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"),
					      &index, &err),
		 err.text);
	CHECK_EQ(2, s.n);
	CHECK_EQ(10 * SLU_SEC, s.items[0].time);
	CHECK_EQ(VALUE_NO_LEASE, s.items[0].token);
	CHECK_EQ(LEDGER_BY_POLICY, s.items[1].time);
	CHECK_EQ(3, s.items[1].token);
	CHECK_EQ(SLU_EINVAL, flat_settle_decode_packed(&s, &memory,
						       BYTES("SLB1\x04\0\x01\0\x01\0\0\0" QUEUE
							     "\x0e\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0{\"enqueue\":[]}"),
						       &index, &err));
	CHECK_CONTAINS("expected neither \"enqueue\" nor \"release\"", err.text);
}

TEST(an_outcome_has_its_status_and_what_failed)
{
	const struct op_item good = { .id = 7 }, bad = { .id = 8, .rc = SLU_ELEASE };
	struct buf b;

	buf_init(&b, 4096);
	CHECK_EQ(0, flat_settle_packed_outcome(OP_ACK, &good, 0, &b));
	CHECK(slice_eq(BYTES("\0\0\0\0\xc8\0\0\0\x07\0\0\0\0\0\0\0"), buf_slice(&b)));
	buf_clear(&b);
	CHECK_EQ(SLU_ELEASE, flat_settle_packed_outcome(OP_ACK, &bad, 0, &b));
	CHECK_EQ(b.n - PACKED_OUTCOME_BYTES, (unsigned char)b.p[0]);
	CHECK(memcmp(b.p + 4, "\x99\x01\0\0\x08\0\0\0\0\0\0\0", 12) == 0);
	CHECK_CONTAINS("\"error\":\"lease_lost\"", buf_str(&b) + PACKED_OUTCOME_BYTES);
	buf_release(&b);
}
