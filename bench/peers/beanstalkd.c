/*
 * beanstalkd.c - the text protocol of beanstalkd. It has no batches: a batch is a pipeline of commands
 * in one write; the answers are read as they come.
 */
#include "peers/peer.h"

#include <stdio.h>

static void
choose_tube(struct peer_conn *c)
{
	buf_printf(&c->out, "use %s\r\nwatch %s\r\nignore default\r\n", c->work->queue,
		   c->work->queue);
	c->awaited = 3;
}

static void
beanstalkd_put(struct peer_conn *c)
{
	const struct peer_work *w = c->work;
	char head[64];
	const int n = snprintf(head, sizeof head, "put 0 0 %u %zu\r\n", PEER_LEASE_SECONDS,
			       w->payload.n);

	for (unsigned i = 0; i < w->batch; i++) {
		buf_put(&c->out, head, (size_t)n);
		buf_put(&c->out, w->payload.p, w->payload.n);
		buf_put(&c->out, "\r\n", 2);
	}
	c->awaited = w->batch;
}

static void
beanstalkd_take(struct peer_conn *c, bool wait)
{
	for (unsigned i = 0; i < c->work->batch; i++)
		buf_puts(&c->out, wait ? "reserve\r\n" : "reserve-with-timeout 0\r\n");
	c->awaited = c->work->batch;
}

static void
beanstalkd_ack(struct peer_conn *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct slice id = held_pop(c);

		buf_put(&c->out, "delete ", 7);
		buf_put(&c->out, id.p, id.n);
		buf_put(&c->out, "\r\n", 2);
	}
	c->awaited = n;
}

/* Reads "RESERVED <id> <bytes>", the bytes and CRLF. */
static int
read_reserved(struct peer_conn *c, struct slice *in, struct slice line, struct slice rest,
	      struct slu_err *err)
{
	const char *id = line.p + 9;
	const char *space = memchr(id, ' ', line.n - 9);
	size_t bytes;
	int rc;

	if (!space)
		return peer_refused("beanstalkd", line, err);
	bytes = peer_number((struct slice){ space + 1, line.n - (size_t)(space + 1 - line.p) });
	if (rest.n < bytes + 2)
		return 0;
	rc = peer_check(c, bytes, err);
	if (rc)
		return rc;
	held_add(c, (struct slice){ id, (size_t)(space - id) });
	c->awaited--;
	*in = (struct slice){ rest.p + bytes + 2, rest.n - bytes - 2 };
	return 0;
}

static int
beanstalkd_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	static const char *const fine[] = { "INSERTED", "DELETED", "TIMED_OUT", "USING", "WATCHING" };
	struct slice rest = *in, line;

	if (!peer_line(&rest, &line))
		return 0;
	if (line.n > 9 && memcmp(line.p, "RESERVED ", 9) == 0)
		return read_reserved(c, in, line, rest, err);
	for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
		const size_t n = strlen(fine[i]);

		if (line.n >= n && memcmp(line.p, fine[i], n) == 0) {
			c->awaited--;
			*in = rest;
			return 0;
		}
	}
	return peer_refused("beanstalkd", line, err);
}

static const struct step hello[] = {
	{ .say = choose_tube },
	{ 0 },
};

const struct peer_protocol protocol_beanstalkd = {
	.name = "beanstalkd",
	.hello = hello,
	.put = beanstalkd_put,
	.take = beanstalkd_take,
	.ack = beanstalkd_ack,
	.answer = beanstalkd_answer,
};

/* Sluice by this protocol. */
const struct peer_protocol protocol_sluice_beanstalk = {
	.name = "sluice-beanstalk",
	.hello = hello,
	.put = beanstalkd_put,
	.take = beanstalkd_take,
	.ack = beanstalkd_ack,
	.answer = beanstalkd_answer,
};
