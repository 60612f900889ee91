/*
 * fuzz_flat.c - what the flat API takes is sound: whatever a codec lets pass, an
 * engine may have. The first byte chooses the codec, the rest is what a client sends.
 */
#include "fuzz.h"

#include "api/flat/claim.h"
#include "api/flat/enqueue.h"
#include "api/flat/policy.h"
#include "api/flat/settle.h"
#include "api/limits.h"

#include <stdlib.h>

static void
check_name(struct slice name)
{
	FUZZ_CHECK(name.n >= 1 && name.n <= MESSAGE_NAME_MAX && name.p[0] != '.');
	for (size_t i = 0; i < name.n; i++)
		FUZZ_CHECK(name.p[i] < 'A' || name.p[i] > 'Z');
}

typedef int decode_enqueue(struct form_puts *e, struct arena *a, struct slice body, int64_t *index,
			   struct slu_err *err);
typedef int decode_settle(struct flat_settle *s, struct arena *a, struct slice body, int64_t *index,
			  struct slu_err *err);

static void
enqueue(decode_enqueue *decode, struct slice body)
{
	struct form_puts e = { 0 };
	struct arena a = { 0 };
	int64_t index;

	if (decode(&e, &a, body, &index, NULL) == 0) {
		FUZZ_CHECK(e.n >= 1 && e.n <= API_ENQUEUE_MAX);
		for (uint32_t i = 0; i < e.n; i++) {
			check_name(e.puts[i].m.space);
			check_name(e.puts[i].m.queue);
			FUZZ_CHECK(message_check(&e.puts[i].m, NULL) == 0);
			FUZZ_CHECK(e.puts[i].delay >= 0 && e.puts[i].m.due >= 0);
		}
	}
	arena_release(&a);
}

static void
settle(decode_settle *decode, enum op_verb verb, struct slice body)
{
	struct flat_settle s = { .verb = verb };
	struct arena a = { 0 };
	int64_t index;

	if (decode(&s, &a, body, &index, NULL) == 0) {
		FUZZ_CHECK(s.n >= 1 && s.n <= API_SETTLE_MAX);
		for (uint32_t i = 0; i < s.n; i++) {
			check_name(s.items[i].space);
			FUZZ_CHECK(s.items[i].time >= -1 && !(s.items[i].defer && s.items[i].dead));
		}
	}
	arena_release(&a);
}

static void
claim(struct slice query, struct slice body)
{
	char *const room = malloc(query.n + 2 * body.n + 1);
	struct flat_claim q;

	FUZZ_CHECK(room);
	if (flat_claim_decode(&q, query, body, room, NULL) == 0) {
		check_name(q.namespace);
		check_name(q.queue);
		FUZZ_CHECK(q.limit >= 1 && q.limit <= API_CLAIM_MAX);
		FUZZ_CHECK(q.wait >= 0 && q.wait <= API_WAIT_MAX);
		FUZZ_CHECK(q.lease >= 0 && q.lease <= API_LEASE_MAX);
	}
	free(room);
}

static void
policy(struct slice body)
{
	struct policy p = policy_default, again = policy_default;
	struct json_out w;
	struct buf b;

	if (flat_policy_decode(&p, body, NULL))
		return;
	buf_init(&b, 1 << 16);
	json_out_init(&w, &b);
	json_out_object(&w, NULL);
	flat_policy_encode(&p, &w);
	json_out_close(&w);
	json_out_end(&w);
	FUZZ_CHECK(flat_policy_decode(&again, buf_slice(&b), NULL) == 0);
	FUZZ_CHECK(memcmp(&p, &again, sizeof p) == 0);
	buf_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice none = { 0 };
	const struct slice rest = { (const char *)data + 1, size ? size - 1 : 0 };

	switch (size ? data[0] : 0) {
	case 'e':
		enqueue(form_puts_decode, rest);
		break;
	case 'a':
		settle(flat_settle_decode, OP_ACK, rest);
		break;
	case 'n':
		settle(flat_settle_decode, OP_NACK, rest);
		break;
	case 'x':
		settle(flat_settle_decode, OP_EXTEND, rest);
		break;
	case 'E':
		enqueue(flat_enqueue_decode_packed, rest);
		break;
	case 'A':
		settle(flat_settle_decode_packed, OP_ACK, rest);
		break;
	case 'N':
		settle(flat_settle_decode_packed, OP_NACK, rest);
		break;
	case 'q':
		claim(rest, none);
		break;
	case 'b':
		claim(none, rest);
		break;
	case 'p':
		policy(rest);
		break;
	}
	return 0;
}
