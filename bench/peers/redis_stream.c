/*
 * redis_stream.c - a stream with a consumer group, which has the pending messages. An ack is XACK and
 * XDEL, because a queue deletes finished messages. Batched: XADD pipelined, XREADGROUP with COUNT, XACK
 * and XDEL of many.
 */
#include "peers/redis.h"

static void
make_group(struct peer_conn *c)
{
	resp_command(&c->out, 6);
	resp_text(&c->out, "XGROUP");
	resp_text(&c->out, "CREATE");
	resp_text(&c->out, c->work->queue);
	resp_text(&c->out, "g");
	resp_text(&c->out, "0");
	resp_text(&c->out, "MKSTREAM");
	c->awaited = 1;
}

static void
remove_stream(struct peer_conn *c)
{
	resp_command(&c->out, 2);
	resp_text(&c->out, "UNLINK");
	resp_text(&c->out, c->work->queue);
	c->awaited = 1;
}

static void
stream_put(struct peer_conn *c)
{
	for (unsigned i = 0; i < c->work->batch; i++) {
		resp_command(&c->out, 5);
		resp_text(&c->out, "XADD");
		resp_text(&c->out, c->work->queue);
		resp_text(&c->out, "*");
		resp_text(&c->out, "p");
		resp_word(&c->out, c->work->payload);
	}
	c->awaited = c->work->batch;
}

static void
stream_take(struct peer_conn *c, bool wait)
{
	(void)wait; /* a put message is available at once */
	resp_command(&c->out, 9);
	resp_text(&c->out, "XREADGROUP");
	resp_text(&c->out, "GROUP");
	resp_text(&c->out, "g");
	resp_number(&c->out, c->index);
	resp_text(&c->out, "COUNT");
	resp_number(&c->out, c->work->batch);
	resp_text(&c->out, "STREAMS");
	resp_text(&c->out, c->work->queue);
	resp_text(&c->out, ">");
	c->awaited = 1;
}

static void
stream_ack(struct peer_conn *c, unsigned n)
{
	struct buf *out = &c->out;
	size_t ids, bytes;

	resp_command(out, 3 + n);
	resp_text(out, "XACK");
	resp_text(out, c->work->queue);
	resp_text(out, "g");
	ids = out->n;
	for (unsigned i = 0; i < n; i++)
		resp_word(out, held_pop(c));
	bytes = out->n - ids;
	resp_command(out, 2 + n);
	resp_text(out, "XDEL");
	resp_text(out, c->work->queue);
	if (buf_room(out, bytes))
		buf_put(out, out->p + ids, bytes);
	c->awaited = 2;
}

/* Reads [[stream, [[id, [field, value]], ...]]]: only ids and values are used. */
static int
read_entries(struct peer_conn *c, struct slice reply, struct slu_err *err)
{
	struct resp entry, id, fields, field, value;
	int rc = 0;

	for (unsigned i = 0; i < 3; i++) /* stream, name, entries */
		(void)resp_next(&reply, &entry);
	while (!rc && resp_next(&reply, &entry) && resp_next(&reply, &id) &&
	       resp_next(&reply, &fields) && resp_next(&reply, &field) &&
	       resp_next(&reply, &value)) {
		rc = peer_check(c, value.text.n, err);
		held_add(c, id.text);
	}
	return rc;
}

static int
stream_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	struct slice reply;
	struct resp top;
	int rc = redis_reply(c, in, &reply, err);

	if (rc || reply.n == 0)
		return rc;
	(void)resp_next(&reply, &top);
	return top.kind == '*' && top.n > 0 ? read_entries(c, reply, err) : 0;
}

static const struct step hello[] = {
	{ .say = make_group, .first_only = true },
	{ 0 },
};

static const struct step bye[] = {
	{ .say = remove_stream, .first_only = true },
	{ 0 },
};

const struct peer_protocol protocol_redis_stream = {
	.name = "redis-stream",
	.hello = hello,
	.bye = bye,
	.put = stream_put,
	.take = stream_take,
	.ack = stream_ack,
	.answer = stream_answer,
};
