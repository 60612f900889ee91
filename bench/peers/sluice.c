/*
 * sluice.c - the flat HTTP API. Batched: arrays of messages and acks, dequeue with a limit. Only the
 * needed members are searched: parsing all JSON would cost as much as the server's work.
 */
#include "peers/sluice.h"

#include <stdio.h>

static const char after_name[] = "\",\"text\":\"";
static const char before_name[] = "{\"namespace\":\"bench\",\"topic\":\"";

static const char json[] = "application/json";

size_t
sluice_begin_post(struct buf *out, const char *path, const char *type)
{
	buf_printf(out, "POST %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n"
			"Content-Type: %s\r\nContent-Length:         \r\n\r\n",
		   path, type, type);
	return out->n;
}

void
sluice_end_post(struct buf *out, size_t body)
{
	char digits[9];

	if (out->failed)
		return;
	(void)snprintf(digits, sizeof digits, "%8zu", out->n - body);
	memcpy(out->p + body - 4 - 8, digits, 8);
}

static void
sluice_put(struct peer_conn *c)
{
	const struct peer_work *w = c->work;
	const size_t body = sluice_begin_post(&c->out, "/enqueue", json);

	for (unsigned i = 0; i < w->batch; i++) {
		buf_putc(&c->out, i ? ',' : '[');
		buf_put(&c->out, before_name, sizeof before_name - 1);
		buf_puts(&c->out, w->queue);
		buf_put(&c->out, after_name, sizeof after_name - 1);
		buf_put(&c->out, w->payload.p, w->payload.n);
		buf_put(&c->out, "\"}", 2);
	}
	buf_putc(&c->out, ']');
	sluice_end_post(&c->out, body);
	c->awaited = 1;
}

static void
sluice_take(struct peer_conn *c, bool wait)
{
	(void)wait; /* a put message is available at once */
	buf_printf(&c->out,
		   "GET /dequeue?namespace=bench&topic=%s&limit=%u&lease=%us HTTP/1.1\r\n"
		   "Host: localhost\r\n\r\n",
		   c->work->queue, c->work->batch, PEER_LEASE_SECONDS);
	c->awaited = 1;
}

/* A handle is `ID,"fencing_token":TOKEN`, as in an ack. */
static void
sluice_ack(struct peer_conn *c, unsigned n)
{
	const size_t body = sluice_begin_post(&c->out, "/ack", json);

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
	sluice_end_post(&c->out, body);
	c->awaited = 1;
}

static int
read_messages(struct peer_conn *c, struct slice body, struct slu_err *err)
{
	const size_t base64 = (c->work->payload.n + 2) / 3 * 4;

	while (slice_skip_past(&body, "{\"id\":")) {
		const uint64_t id = peer_number(body);
		char handle[64];
		int n;

		if (!slice_skip_past(&body, "\"payload\":\"") || body.n <= base64 || body.p[base64] != '"')
			return peer_refused("a message without its payload", body, err);
		slice_skip(&body, base64);
		if (!slice_skip_past(&body, "\"fencing_token\":"))
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

	while (slice_skip_past(&body, "\"status\":"))
		if (peer_number(body) != 200)
			return peer_refused("an ack was refused", whole, err);
	return 0;
}

static uint64_t
hex_number(struct slice s)
{
	uint64_t n = 0;

	for (int digit; s.n > 0 && (digit = ascii_hex(*s.p)) >= 0; slice_skip(&s, 1))
		n = n << 4 | (unsigned)digit;
	return n;
}

/* The body of a chunked answer, with its pieces moved together in c->in. Long answers are chunked. */
static int
join_chunks(struct peer_conn *c, struct slice *in, struct slice rest, struct slice *body, struct slu_err *err)
{
	struct slice chunks = rest, line;
	char *const start = c->in.p + (rest.p - c->in.p);
	size_t joined = 0;
	uint64_t n;

	do { /* is it complete? */
		if (!peer_line(&chunks, &line))
			return 0;
		n = hex_number(line);
		if (chunks.n < n + 2) {
			c->need = (size_t)(chunks.p - in->p) + (size_t)n + 2;
			return 0;
		}
		slice_skip(&chunks, (size_t)n + 2);
	} while (n > 0);
	*in = chunks;
	for (chunks = rest; peer_line(&chunks, &line) && (n = hex_number(line)) > 0; joined += (size_t)n) {
		memmove(start + joined, chunks.p, (size_t)n);
		slice_skip(&chunks, (size_t)n + 2);
	}
	*body = (struct slice){ start, joined };
	c->awaited--;
	return joined > 0 ? 0 : peer_refused("an answer without a body", rest, err);
}

int
sluice_body(struct peer_conn *c, struct slice *in, struct slice *body, struct slu_err *err)
{
	struct slice rest = *in, head = *in;
	size_t n;

	body->p = NULL;
	if (!slice_skip_past(&rest, "\r\n\r\n"))
		return 0;
	head.n -= rest.n;
	if (head.n < 12 || memcmp(head.p + 9, "200", 3) != 0)
		return peer_refused("sluiced", *in, err);
	if (!slice_skip_past(&head, "Content-Length: "))
		return join_chunks(c, in, rest, body, err);
	n = peer_number(head);
	if (rest.n < n) {
		c->need = (size_t)(rest.p - in->p) + n;
		return 0;
	}
	*body = (struct slice){ rest.p, n };
	*in = (struct slice){ rest.p + n, rest.n - n };
	c->awaited--;
	return 0;
}

static int
sluice_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	struct slice body;
	const int rc = sluice_body(c, in, &body, err);

	if (rc || !body.p)
		return rc;
	if (body.n > 2 && memcmp(body.p, "[{\"id\":", 7) != 0)
		return 0; /* ids of a put */
	if (body.n > 9 && memmem(body.p, body.n < 80 ? body.n : 80, "\"status\":", 9))
		return read_acks(body, err);
	return read_messages(c, body, err);
}

const struct peer_protocol protocol_sluice = {
	.name = "sluice",
	.put = sluice_put,
	.take = sluice_take,
	.ack = sluice_ack,
	.answer = sluice_answer,
};
