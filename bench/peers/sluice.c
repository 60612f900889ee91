/*
 * sluice.c - the flat HTTP API. Batched: arrays of messages and acks, dequeue with a limit.
 * Only the members that are needed are looked for: reading JSON in full would cost this side
 * as much as the server.
 */
#include "peers/peer.h"

#include <stdio.h>

static const char after_name[] = "\",\"text\":\"";
static const char before_name[] = "{\"namespace\":\"bench\",\"topic\":\"";

/* Returns where the body begins; its length is a number of fixed width, filled in after. */
static size_t
begin_post(struct buf *out, const char *path)
{
	buf_printf(out, "POST %s HTTP/1.1\r\nHost: localhost\r\n"
			"Content-Type: application/json\r\nContent-Length:         \r\n\r\n",
		   path);
	return out->n;
}

static void
end_post(struct buf *out, size_t body)
{
	char digits[9];

	if (out->failed)
		return;
	(void)snprintf(digits, sizeof digits, "%8zu", out->n - body);
	memcpy(out->p + body - 4 - 8, digits, 8);
}

static void
sluice_put(struct conn *c)
{
	const struct work *w = c->work;
	const size_t body = begin_post(&c->out, "/enqueue");

	for (unsigned i = 0; i < w->batch; i++) {
		buf_putc(&c->out, i ? ',' : '[');
		buf_put(&c->out, before_name, sizeof before_name - 1);
		buf_puts(&c->out, w->queue);
		buf_put(&c->out, after_name, sizeof after_name - 1);
		buf_put(&c->out, w->payload.p, w->payload.n);
		buf_put(&c->out, "\"}", 2);
	}
	buf_putc(&c->out, ']');
	end_post(&c->out, body);
	c->awaited = 1;
}

static void
sluice_take(struct conn *c, bool wait)
{
	(void)wait; /* what was put is there at once */
	buf_printf(&c->out,
		   "GET /dequeue?namespace=bench&topic=%s&limit=%u&lease=%us HTTP/1.1\r\n"
		   "Host: localhost\r\n\r\n",
		   c->work->queue, c->work->batch, PEER_LEASE_SECONDS);
	c->awaited = 1;
}

/* A handle is `ID,"fencing_token":TOKEN`: as an ack has it, too. */
static void
sluice_ack(struct conn *c, unsigned n)
{
	const size_t body = begin_post(&c->out, "/ack");

	for (unsigned i = 0; i < n; i++) {
		const struct slice handle = held_pop(c);

		buf_putc(&c->out, i ? ',' : '[');
		buf_puts(&c->out, "{\"id\":");
		buf_put(&c->out, handle.p, handle.n);
		buf_puts(&c->out, ",\"namespace\":\"bench\",\"topic\":\"");
		buf_puts(&c->out, c->work->queue);
		buf_put(&c->out, "\"}", 2);
	}
	buf_putc(&c->out, ']');
	end_post(&c->out, body);
	c->awaited = 1;
}

static bool
skip_to(struct slice *in, const char *mark)
{
	const size_t n = strlen(mark);
	const char *at = in->n ? memmem(in->p, in->n, mark, n) : NULL;

	if (!at)
		return false;
	at += n;
	in->n -= (size_t)(at - in->p);
	in->p = at;
	return true;
}

static int
read_messages(struct conn *c, struct slice body, struct slu_err *err)
{
	const size_t base64 = (c->work->payload.n + 2) / 3 * 4;

	while (skip_to(&body, "{\"id\":")) {
		const uint64_t id = peer_number(body);
		char handle[64];
		int n;

		if (!skip_to(&body, "\"payload\":\"") || body.n <= base64 || body.p[base64] != '"')
			return peer_refused("a message without its payload", body, err);
		body.p += base64;
		body.n -= base64;
		if (!skip_to(&body, "\"fencing_token\":"))
			return peer_refused("a message without a token", body, err);
		n = snprintf(handle, sizeof handle, "%llu,\"fencing_token\":%llu",
			     (unsigned long long)id, (unsigned long long)peer_number(body));
		held_add(c, (struct slice){ handle, (size_t)n });
	}
	return 0;
}

static int
read_acks(struct slice body, struct slu_err *err)
{
	const struct slice whole = body;

	while (skip_to(&body, "\"status\":"))
		if (peer_number(body) != 200)
			return peer_refused("an ack was refused", whole, err);
	return 0;
}

static int
sluice_answer(struct conn *c, struct slice *in, struct slu_err *err)
{
	struct slice rest = *in, head = *in, body;

	if (!skip_to(&rest, "\r\n\r\n"))
		return 0;
	head.n -= rest.n;
	if (head.n < 12 || memcmp(head.p + 9, "200", 3) != 0)
		return peer_refused("sluiced", *in, err);
	if (!skip_to(&head, "Content-Length: "))
		return peer_refused("an answer without a length", *in, err);
	body = (struct slice){ rest.p, peer_number(head) };
	if (rest.n < body.n) {
		c->need = (size_t)(rest.p - in->p) + body.n;
		return 0;
	}
	*in = (struct slice){ body.p + body.n, rest.n - body.n };
	c->awaited--;
	if (body.n > 2 && memcmp(body.p, "[{\"id\":", 7) != 0)
		return 0; /* ids of a put */
	if (body.n > 9 && memmem(body.p, body.n < 80 ? body.n : 80, "\"status\":", 9))
		return read_acks(body, err);
	return read_messages(c, body, err);
}

const struct protocol protocol_sluice = {
	.name = "sluice",
	.put = sluice_put,
	.take = sluice_take,
	.ack = sluice_ack,
	.answer = sluice_answer,
};
