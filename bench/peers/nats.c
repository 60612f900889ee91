/*
 * nats.c - JetStream: a stream that stores a message until it is acked (workqueue), and one pull
 * consumer for all connections. Every publish and every ack requests an answer (a reply subject).
 * Batched: publishes and acks pipelined, a pull for many.
 *
 * A connection has one subscription, _I.<index>.*. The last part of a subject identifies the answer: p
 * put, a ack, s setup, and the number of the pull. Answers of earlier pulls are dropped.
 */
#include "peers/peer.h"

#include <stdio.h>

enum {
	MAX_WORDS = 6
};

struct nats_own {
	char inbox[24]; /* "_I.7." */
	unsigned pulls;
};

static void
publish(struct peer_conn *c, struct slice subject, const char *reply, struct slice body)
{
	const struct nats_own *own = c->own;

	buf_put(&c->out, "PUB ", 4);
	buf_put(&c->out, subject.p, subject.n);
	buf_putc(&c->out, ' ');
	buf_puts(&c->out, own->inbox);
	buf_puts(&c->out, reply);
	buf_putc(&c->out, ' ');
	peer_put_number(&c->out, body.n);
	buf_put(&c->out, "\r\n", 2);
	buf_put(&c->out, body.p, body.n);
	buf_put(&c->out, "\r\n", 2);
}

static void
connect_and_listen(struct peer_conn *c)
{
	struct nats_own *own = c->own;

	(void)snprintf(own->inbox, sizeof own->inbox, "_I.%u.", c->index);
	buf_printf(&c->out,
		   "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,"
		   "\"no_responders\":true,\"lang\":\"c\",\"version\":\"0\"}\r\n"
		   "SUB %s* 1\r\nPING\r\n",
		   own->inbox);
	c->awaited = 1; /* the pong */
}

static void
ask(struct peer_conn *c, const char *verb, const char *suffix, const char *body)
{
	char subject[160];
	const int n = snprintf(subject, sizeof subject, "$JS.API.%s.%s%s", verb, c->work->queue,
			       suffix);

	publish(c, (struct slice){ subject, (size_t)n }, "s", slice_of(body));
	c->awaited = 1;
}

static void
make_stream(struct peer_conn *c)
{
	char body[400];

	(void)snprintf(body, sizeof body,
		       "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"retention\":\"workqueue\","
		       "\"storage\":\"%s\",\"num_replicas\":1,\"max_consumers\":-1,"
		       "\"max_msgs\":-1,\"max_bytes\":-1,\"max_msg_size\":-1,\"discard\":\"old\","
		       "\"duplicate_window\":100000000}",
		       c->work->queue, c->work->queue, c->work->durable ? "file" : "memory");
	ask(c, "STREAM.CREATE", "", body);
}

static void
make_consumer(struct peer_conn *c)
{
	char body[400];

	(void)snprintf(body, sizeof body,
		       "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"w\","
		       "\"ack_policy\":\"explicit\",\"ack_wait\":%lld,\"deliver_policy\":\"all\","
		       "\"replay_policy\":\"instant\",\"max_deliver\":-1,\"max_ack_pending\":-1,"
		       "\"max_waiting\":4096}}",
		       c->work->queue, (long long)(PEER_LEASE_SECONDS * SLU_SEC));
	ask(c, "CONSUMER.DURABLE.CREATE", ".w", body);
}

static void
remove_stream(struct peer_conn *c)
{
	ask(c, "STREAM.DELETE", "", "");
}

static void
nats_put(struct peer_conn *c)
{
	const struct slice subject = slice_of(c->work->queue);

	for (unsigned i = 0; i < c->work->batch; i++)
		publish(c, subject, "p", c->work->payload);
	c->awaited = c->work->batch;
}

static void
nats_take(struct peer_conn *c, bool wait)
{
	struct nats_own *own = c->own;
	char subject[160], body[96], reply[16];
	const int n = snprintf(subject, sizeof subject, "$JS.API.CONSUMER.MSG.NEXT.%s.w",
			       c->work->queue);
	const int m = snprintf(body, sizeof body, "{\"batch\":%u,%s}", c->work->batch,
			       wait ? "\"expires\":1000000000" : "\"no_wait\":true");

	(void)snprintf(reply, sizeof reply, "%u", ++own->pulls);
	publish(c, (struct slice){ subject, (size_t)n }, reply, (struct slice){ body, (size_t)m });
	c->awaited = c->work->batch;
}

static void
nats_ack(struct peer_conn *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		publish(c, held_pop(c), "a", SLICE("+ACK"));
	c->awaited = n;
}

/* The words of "MSG subject sid [reply] bytes" and "HMSG subject sid [reply] head bytes". An
 * empty reply leaves two spaces. */
static unsigned
split(struct slice line, struct slice words[MAX_WORDS])
{
	unsigned n = 0;

	while (line.n > 0 && n < MAX_WORDS) {
		(void)slice_cut(&line, ' ', &words[n]);
		n += words[n].n > 0;
	}
	return n;
}

/* A finished pull sends a head without a body: no message, or timeout. */
static void
end_pull(struct peer_conn *c, struct slice subject)
{
	const struct nats_own *own = c->own;
	const size_t n = strlen(own->inbox);

	if (subject.n > n && peer_number((struct slice){ subject.p + n, subject.n - n }) == own->pulls)
		c->awaited = 0;
}

static int
read_message(struct peer_conn *c, const struct slice *words, unsigned n, struct slice body,
	     struct slu_err *err)
{
	const struct slice subject = words[1];
	const bool delivered = n == 5 && words[0].n == 3; /* MSG with a reply subject */

	if (words[0].n == 4) {
		end_pull(c, subject);
		return 0;
	}
	if (delivered) {
		c->awaited--;
		held_add(c, words[3]);
		return peer_check(c, body.n, err);
	}
	if (body.n && memmem(body.p, body.n, "\"error\":", 8))
		return peer_refused("nats", body, err);
	c->awaited--;
	return 0;
}

static int
read_control(struct peer_conn *c, struct slice line, struct slu_err *err)
{
	if (line.n >= 4 && memcmp(line.p, "PONG", 4) == 0)
		c->awaited--;
	else if (line.n >= 4 && memcmp(line.p, "PING", 4) == 0)
		buf_puts(&c->out, "PONG\r\n");
	else if (line.n >= 4 && memcmp(line.p, "-ERR", 4) == 0)
		return peer_refused("nats", line, err);
	return 0; /* INFO */
}

static int
nats_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	struct slice rest = *in, line, words[MAX_WORDS], body;
	unsigned n;
	int rc;

	if (!peer_line(&rest, &line))
		return 0;
	if (line.n < 4 || (memcmp(line.p, "MSG ", 4) != 0 && memcmp(line.p, "HMSG", 4) != 0)) {
		*in = rest;
		return read_control(c, line, err);
	}
	n = split(line, words);
	body = (struct slice){ rest.p, peer_number(words[n - 1]) };
	if (rest.n < body.n + 2)
		return 0;
	rc = read_message(c, words, n, body, err);
	*in = (struct slice){ body.p + body.n + 2, rest.n - body.n - 2 };
	return rc;
}

static const struct step hello[] = {
	{ .say = connect_and_listen },
	{ .say = make_stream, .first_only = true },
	{ .say = make_consumer, .first_only = true },
	{ 0 },
};

static const struct step bye[] = {
	{ .say = remove_stream, .first_only = true },
	{ 0 },
};

const struct peer_protocol protocol_nats = {
	.name = "nats",
	.own_size = sizeof(struct nats_own),
	.hello = hello,
	.bye = bye,
	.put = nats_put,
	.take = nats_take,
	.ack = nats_ack,
	.answer = nats_answer,
};
