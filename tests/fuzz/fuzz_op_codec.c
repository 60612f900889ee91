/*
 * fuzz_op_codec.c - a message of another node that is read is the one that is written of what was
 * read. The first byte: 0 = a question, other = an answer to a question with as much room as its value.
 */
#include "fuzz.h"

#include "peer/op_codec.h"
#include "peer/op_fields.h"

enum {
	ELEMENTS = 8
};

static void
check_question(struct slice message)
{
	struct op op;
	struct buf out;

	if (op_decode_question(&op, message, NULL))
		return;
	buf_init(&out, OP_CODEC_MAX);
	/* STATS without room for a queue gets room for one. */
	if (op.verb == OP_STATS && op.max_queues == 1)
		op.max_queues = 0;
	op_encode_question(&op, &out);
	FUZZ_CHECK(slice_eq(message, buf_slice(&out)) || op.verb == OP_STATS);
	op_release_question(&op);
	buf_release(&out);
}

static enum op_verb
verb_of(uint8_t number)
{
	for (int v = 0; v < OP_VERBS; v++)
		if (op_wire[v] == number)
			return (enum op_verb)v;
	return OP_CLAIM;
}

static void
check_answer(unsigned room, struct slice bytes)
{
	static struct op_put puts[ELEMENTS];
	static struct op_item items[ELEMENTS];
	static struct op_row rows[ELEMENTS];
	static struct op_queue queues[ELEMENTS];
	static struct op_key keys[ELEMENTS];
	static char holder[LOCK_HOLDER_MAX + 1];
	struct peer_bytes *const message = peer_bytes_new(bytes.n);
	struct buf out;
	struct op op;

	FUZZ_CHECK(message);
	memcpy(message->p, bytes.p, bytes.n);
	op_init(&op, verb_of(bytes.n > 1 ? (uint8_t)bytes.p[1] : 0), SLICE("ns"), SLICE("q"), NULL, NULL);
	op.puts = puts, op.items = items, op.rows = rows, op.queues = queues, op.keys = keys;
	op.n_puts = op.verb == OP_ENQUEUE ? room % ELEMENTS : 0;
	op.n_items = room % ELEMENTS;
	op.n_rows = op.verb == OP_RETURN ? room % ELEMENTS : 0;
	op.max_rows = op.max_queues = op.max_keys = room % ELEMENTS;
	if (op.verb == OP_DESCRIBE)
		op.lock.held_by = holder;
	buf_init(&out, OP_CODEC_MAX);
	if (op_decode_answer(&op, message, NULL, NULL) == 0) {
		FUZZ_CHECK(op_encode_answer(&op, true, &out) == 0);
		FUZZ_CHECK(slice_eq(bytes, buf_slice(&out)));
		op_unpin(&op);
	}
	FUZZ_CHECK(message->pins == 1);
	peer_bytes_unpin(message);
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = { (const char *)data, size };

	if (size < 1)
		return 0;
	slice_skip(&rest, 1);
	if (data[0] == 0)
		check_question(rest);
	else
		check_answer(data[0], rest);
	return 0;
}
