/*
 * fuzz_link.c - any bytes to one end of a link between nodes. The first byte: 0 = an owner before the
 * hello, 1 = an owner behind it, 2 = a caller behind it with ops on their way; the second: the size of
 * the pieces in which the bytes come.
 */
#include "fuzz.h"

#include "peer/link.h"

enum {
	OPS = 3
};

static struct link_op asked[OPS], accepted;

static void
on_asked(struct peer_link *l, uint64_t number, struct peer_bytes *message)
{
	peer_bytes_unpin(message);
	if (accepted.number || link_accept(l, &accepted, number))
		link_not_owner(l, number, NULL);
}

static void
on_canceled(struct peer_link *l, struct link_op *op)
{
	link_answer(l, op, SLICE("canceled"));
}

static void
on_answered(struct peer_link *l, struct link_op *op, struct peer_bytes *message)
{
	(void)l;
	FUZZ_CHECK(op >= asked && op < asked + OPS && op->number == 0);
	peer_bytes_unpin(message);
}

static void
on_denied(struct peer_link *l, struct link_op *op, const struct peer_target *hint)
{
	(void)l;
	FUZZ_CHECK(op >= asked && op < asked + OPS && op->number == 0);
	FUZZ_CHECK(!hint || (hint->epoch && (!hint->port || strlen(hint->host) > 0)));
}

static const struct link_events events = {
	.asked = on_asked,
	.denied = on_denied,
	.canceled = on_canceled,
	.answered = on_answered,
};

static void
pass(struct peer_link *from, struct peer_link *to)
{
	struct buf wire;

	buf_init(&wire, 1 << 20);
	(void)link_give(from, &wire);
	(void)link_take(to, wire.p, wire.n, 0);
	buf_release(&wire);
}

static void
feed(struct peer_link *l, struct slice bytes, size_t piece)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	while (bytes.n > 0) {
		const size_t n = bytes.n < piece ? bytes.n : piece;

		(void)link_take(l, bytes.p, n, 0);
		slice_skip(&bytes, n);
		buf_clear(&out);
		(void)link_give(l, &out);
	}
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[HELLO_SECRET];
	const struct link_conf a = { .role = HELLO_CALLER, .events = &events, .secret = secret, .nonce = { 1 } };
	const struct link_conf b = { .role = HELLO_OWNER, .events = &events, .secret = secret, .nonce = { 2 } };
	struct peer_link caller, owner;

	if (size < 2)
		return 0;
	accepted.number = 0;
	link_init(&caller, &a, 0);
	link_init(&owner, &b, 0);
	for (int i = 0; i < 3 && data[0] > 0; i++) {
		pass(&caller, &owner);
		pass(&owner, &caller);
	}
	for (int i = 0; i < OPS && data[0] == 2; i++)
		FUZZ_CHECK(link_ask(&caller, &asked[i], SLICE("?")) == 0);
	if (data[0] == 2)
		pass(&caller, &owner);
	feed(data[0] == 2 ? &caller : &owner, (struct slice){ (const char *)data + 2, size - 2 }, data[1] ? data[1] : 1);
	while (link_leave(&caller) || link_leave(&owner))
		;
	link_release(&caller);
	link_release(&owner);
	return 0;
}
