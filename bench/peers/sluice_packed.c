/*
 * sluice_packed.c - the flat HTTP API with application/x-sluice-batch: docs/batch-format.md.
 */
#include "peers/sluice.h"

#include "api/flat/packed.h"
#include "base/le.h"

static const char type[] = "application/x-sluice-batch";
static const char space[] = "bench";

static void
put_head(struct peer_conn *c, enum packed_kind kind, unsigned n)
{
	const char *const queue = c->work->queue;
	char head[PACKED_HEAD] = { 'S', 'L', 'B', '1', (char)kind, 0, 1, 0 };

	le32_put(head + 8, n);
	buf_put(&c->out, head, sizeof head);
	buf_putc(&c->out, (char)strlen(space));
	buf_puts(&c->out, space);
	buf_putc(&c->out, (char)strlen(queue));
	buf_puts(&c->out, queue);
}

static void
packed_put(struct peer_conn *c)
{
	const struct peer_work *w = c->work;
	const size_t body = sluice_begin_post(&c->out, "/enqueue", type);
	char fixed[PACKED_PUT_BYTES] = { 0 };

	put_head(c, PACKED_PUT, w->batch);
	le32_put(fixed + 4, (uint32_t)w->payload.n);
	for (unsigned i = 0; i < w->batch; i++) {
		buf_put(&c->out, fixed, sizeof fixed);
		buf_put(&c->out, w->payload.p, w->payload.n);
	}
	sluice_end_post(&c->out, body);
	c->awaited = 1;
}

static void
packed_take(struct peer_conn *c, bool wait)
{
	(void)wait; /* a put message is available at once */
	buf_printf(&c->out,
		   "GET /dequeue?namespace=%s&topic=%s&limit=%u&lease=%us HTTP/1.1\r\n"
		   "Host: localhost\r\nAccept: %s\r\n\r\n",
		   space, c->work->queue, c->work->batch, PEER_LEASE_SECONDS, type);
	c->awaited = 1;
}

/* A handle is the id and the token, 16 bytes, as in an item. */
static void
packed_ack(struct peer_conn *c, unsigned n)
{
	const size_t body = sluice_begin_post(&c->out, "/ack", type);
	const char nothing[PACKED_SETTLE_BYTES - 16] = { 0 }; /* no members, queue 0 */

	put_head(c, PACKED_SETTLE, n);
	for (unsigned i = 0; i < n; i++) {
		const struct slice handle = held_pop(c);

		buf_put(&c->out, nothing, sizeof nothing);
		buf_put(&c->out, handle.p, handle.n);
	}
	sluice_end_post(&c->out, body);
	c->awaited = 1;
}

static int
read_messages(struct peer_conn *c, struct slice items, unsigned n, struct slu_err *err)
{
	const struct slice whole = items;

	for (unsigned i = 0; i < n; i++) {
		size_t size = PACKED_MESSAGE_BYTES;

		if (items.n >= size)
			size += (size_t)le32_get(items.p) + le32_get(items.p + 4);
		if (items.n < size || le32_get(items.p + 4) != c->work->payload.n)
			return peer_refused("a message without its payload", whole, err);
		held_add(c, (struct slice){ items.p + 16, 16 });
		slice_skip(&items, size);
	}
	return 0;
}

static int
read_outcomes(struct slice items, unsigned n, struct slu_err *err)
{
	for (unsigned i = 0; i < n; i++) {
		if (items.n < PACKED_OUTCOME_BYTES || le16_get(items.p + 4) != 200)
			return peer_refused("an ack was refused", items, err);
		slice_skip(&items, PACKED_OUTCOME_BYTES); /* an ack that succeeded has no members */
	}
	return 0;
}

static int
packed_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	struct slice body;
	unsigned n;
	int rc;

	rc = sluice_body(c, in, &body, err);
	if (rc || !body.p)
		return rc;
	if (body.n < PACKED_HEAD || memcmp(body.p, "SLB1", 4) != 0)
		return peer_refused("an answer in another form", body, err);
	n = le32_get(body.p + 8);
	switch (body.p[4]) {
	case PACKED_OUTCOMES:
		slice_skip(&body, PACKED_HEAD);
		return read_outcomes(body, n, err);
	case PACKED_MESSAGES: /* the names of its queue, then messages */
		slice_skip(&body, PACKED_HEAD + 2 + strlen(space) + strlen(c->work->queue));
		return read_messages(c, body, n, err);
	default:
		return 0; /* ids of a put */
	}
}

const struct peer_protocol protocol_sluice_packed = {
	.name = "sluice-packed",
	.put = packed_put,
	.take = packed_take,
	.ack = packed_ack,
	.answer = packed_answer,
};
