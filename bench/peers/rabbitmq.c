/*
 * rabbitmq.c - AMQP 0-9-1 with publisher confirms. Durable: a quorum queue, whose log is
 * synced before it confirms. Otherwise a classic queue of transient messages.
 *
 * The phase `lease` uses basic.get; in cycles the peer pushes deliveries (basic.consume with a prefetch
 * of one batch), as its documentation recommends.
 * Batched: publishes pipelined, confirms and acks of many at once. AMQP has no answer to an
 * ack: it is done when it is sent.
 */
#include "peers/amqp.h"
#include "peers/peer.h"

enum {
	CHANNEL = 1,
	FRAME_MAX = 131072,
	PERSISTENT = 2,
	TRANSIENT = 1
};

struct rabbitmq_own {
	uint64_t published, confirmed; /* numbers of publishes on this channel */
	uint64_t tag;                  /* of the delivery whose body is coming */
	size_t body_left;
	bool consuming;
	bool taking;    /* the awaited answers are deliveries */
	unsigned early; /* deliveries that came before a take */
};

/* --- requests ------------------------------------------------------------------- */

static void
say_header(struct peer_conn *c)
{
	buf_put(&c->out, "AMQP\0\0\11\1", 8);
	c->awaited = 1;
}

static void
log_in(struct peer_conn *c)
{
	const size_t mark = amqp_method(&c->out, 0, AMQP_START_OK);

	amqp_int(&c->out, 4, 0); /* no properties */
	amqp_short_text(&c->out, "PLAIN");
	amqp_long_text(&c->out, SLICE("\0guest\0guest"));
	amqp_short_text(&c->out, "en_US");
	amqp_end(&c->out, mark);
	c->awaited = 1;
}

static void
open_connection(struct peer_conn *c)
{
	size_t mark = amqp_method(&c->out, 0, AMQP_TUNE_OK);

	amqp_int(&c->out, 2, 16); /* channels */
	amqp_int(&c->out, 4, FRAME_MAX);
	amqp_int(&c->out, 2, 0); /* no heartbeats */
	amqp_end(&c->out, mark);
	mark = amqp_method(&c->out, 0, AMQP_OPEN);
	amqp_short_text(&c->out, "/");
	amqp_int(&c->out, 2, 0);
	amqp_end(&c->out, mark);
	c->awaited = 1;
}

static void
open_channel(struct peer_conn *c)
{
	size_t mark = amqp_method(&c->out, CHANNEL, AMQP_CHANNEL_OPEN);

	amqp_int(&c->out, 1, 0);
	amqp_end(&c->out, mark);
	mark = amqp_method(&c->out, CHANNEL, AMQP_CONFIRM);
	amqp_int(&c->out, 1, 0);
	amqp_end(&c->out, mark);
	c->awaited = 2;
}

static void
make_queue(struct peer_conn *c)
{
	static const char quorum[] = "\14x-queue-typeS\0\0\0\6quorum";
	static const char classic[] = "\17x-queue-versionI\0\0\0\2";
	const size_t mark = amqp_method(&c->out, CHANNEL, AMQP_DECLARE);

	amqp_int(&c->out, 2, 0);
	amqp_short_text(&c->out, c->work->queue);
	amqp_int(&c->out, 1, c->work->durable ? 2 : 0); /* the bit `durable` */
	amqp_long_text(&c->out, c->work->durable ? SLICE(quorum) : SLICE(classic));
	amqp_end(&c->out, mark);
	c->awaited = 1;
}

static void
remove_queue(struct peer_conn *c)
{
	struct rabbitmq_own *own = c->own;
	const size_t mark = amqp_method(&c->out, CHANNEL, AMQP_DELETE);

	amqp_int(&c->out, 2, 0);
	amqp_short_text(&c->out, c->work->queue);
	amqp_int(&c->out, 1, 0);
	amqp_end(&c->out, mark);
	own->taking = false;
	c->awaited = 1;
}

static void
consume(struct peer_conn *c)
{
	struct rabbitmq_own *own = c->own;
	size_t mark;

	if (own->consuming)
		return; /* since an earlier phase */
	own->consuming = true;
	mark = amqp_method(&c->out, CHANNEL, AMQP_QOS);

	amqp_int(&c->out, 4, 0);
	amqp_int(&c->out, 2, c->work->batch);
	amqp_int(&c->out, 1, 0);
	amqp_end(&c->out, mark);
	mark = amqp_method(&c->out, CHANNEL, AMQP_CONSUME);
	amqp_int(&c->out, 2, 0);
	amqp_short_text(&c->out, c->work->queue);
	amqp_short_text(&c->out, "c");
	amqp_int(&c->out, 1, 0);
	amqp_int(&c->out, 4, 0); /* no arguments */
	amqp_end(&c->out, mark);
	c->awaited = 2;
}

static void
publish(struct peer_conn *c)
{
	const struct peer_work *w = c->work;
	size_t mark = amqp_method(&c->out, CHANNEL, AMQP_PUBLISH);

	amqp_int(&c->out, 2, 0);
	amqp_short_text(&c->out, ""); /* the exchange that knows queues by their name */
	amqp_short_text(&c->out, w->queue);
	amqp_int(&c->out, 1, 0);
	amqp_end(&c->out, mark);
	mark = amqp_begin(&c->out, AMQP_HEADER, CHANNEL);
	amqp_int(&c->out, 4, AMQP(60, 0));
	amqp_int(&c->out, 8, w->payload.n);
	amqp_int(&c->out, 2, 0x1000); /* delivery mode */
	amqp_int(&c->out, 1, w->durable ? PERSISTENT : TRANSIENT);
	amqp_end(&c->out, mark);
	mark = amqp_begin(&c->out, AMQP_BODY, CHANNEL);
	buf_put(&c->out, w->payload.p, w->payload.n);
	amqp_end(&c->out, mark);
}

static void
rabbitmq_put(struct peer_conn *c)
{
	struct rabbitmq_own *own = c->own;

	for (unsigned i = 0; i < c->work->batch; i++)
		publish(c);
	own->published += c->work->batch;
	own->taking = false;
	c->awaited = c->work->batch;
}

static void
rabbitmq_take(struct peer_conn *c, bool wait)
{
	struct rabbitmq_own *own = c->own;

	own->taking = true;
	if (wait) {
		c->taken = own->early;
		c->awaited = own->early < c->work->batch ? c->work->batch - own->early : 0;
		own->early = 0;
		return;
	}
	for (unsigned i = 0; i < c->work->batch; i++) {
		const size_t mark = amqp_method(&c->out, CHANNEL, AMQP_GET);

		amqp_int(&c->out, 2, 0);
		amqp_short_text(&c->out, c->work->queue);
		amqp_int(&c->out, 1, 0);
		amqp_end(&c->out, mark);
	}
	c->awaited = c->work->batch;
}

/* A handle is the tag, 8 bytes as on the wire. Tags rise: the last one with `multiple` acks all of
 * them. */
static void
rabbitmq_ack(struct peer_conn *c, unsigned n)
{
	size_t mark;
	struct slice tag = { NULL, 0 };

	for (unsigned i = 0; i < n; i++)
		tag = held_pop(c);
	mark = amqp_method(&c->out, CHANNEL, AMQP_ACK);
	buf_put(&c->out, tag.p, tag.n);
	amqp_int(&c->out, 1, n > 1);
	amqp_end(&c->out, mark);
	c->awaited = 0;
}

/* --- answers -------------------------------------------------------------------- */

static int
confirmed(struct peer_conn *c, const struct amqp_frame *f)
{
	struct rabbitmq_own *own = c->own;
	const uint64_t tag = amqp_at(f->payload, 4, 8);
	const bool multiple = amqp_at(f->payload, 12, 1) != 0;
	const uint64_t n = multiple ? tag - own->confirmed : 1;

	own->confirmed += n; /* the peer may confirm out of order: only the count matters */
	c->awaited -= (unsigned)n;
	return 0;
}

/* The tag follows the number of the method; in a delivery it follows the name of the consumer. */
static void
begin_delivery(struct peer_conn *c, const struct amqp_frame *f)
{
	struct rabbitmq_own *own = c->own;
	const size_t name = f->method == AMQP_DELIVER ? 1 + amqp_at(f->payload, 4, 1) : 0;

	own->tag = amqp_at(f->payload, 4 + name, 8);
}

static void
end_delivery(struct peer_conn *c)
{
	struct rabbitmq_own *own = c->own;
	const unsigned taken = c->taken;
	char tag[8];

	for (unsigned i = 0; i < sizeof tag; i++)
		tag[i] = (char)(own->tag >> (8 * (7 - i)));
	held_add(c, (struct slice){ tag, sizeof tag });
	if (own->taking && c->awaited > 0) {
		c->awaited--;
	} else {
		own->early++;
		c->taken = taken;
	}
}

static int
read_method(struct peer_conn *c, const struct amqp_frame *f, struct slu_err *err)
{
	switch (f->method) {
	case AMQP_ACK:
		return confirmed(c, f);
	case AMQP_GET_OK:
	case AMQP_DELIVER:
		begin_delivery(c, f);
		return 0;
	case AMQP_NACK:
	case AMQP_CLOSE:
	case AMQP_CHANNEL_CLOSE:
		return peer_refused("rabbitmq", (struct slice){ f->payload.p + 7, f->payload.n - 7 }, err);
	default: /* the peer's part of an exchange that we began */
		c->awaited--;
		return 0;
	}
}

static int
rabbitmq_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	struct rabbitmq_own *own = c->own;
	struct amqp_frame f;

	if (!amqp_next(in, &f))
		return 0;
	switch (f.type) {
	case AMQP_METHOD:
		return read_method(c, &f, err);
	case AMQP_HEADER:
		own->body_left = amqp_at(f.payload, 4, 8);
		return peer_check(c, own->body_left, err);
	case AMQP_BODY:
		own->body_left -= f.payload.n;
		if (own->body_left == 0)
			end_delivery(c);
		return 0;
	default:
		return 0;
	}
}

static const struct step hello[] = {
	{ .say = say_header },
	{ .say = log_in },
	{ .say = open_connection },
	{ .say = open_channel },
	{ .say = make_queue, .first_only = true },
	{ 0 },
};

static const struct step consume_steps[] = {
	{ .say = consume },
	{ 0 },
};

static const struct step bye[] = {
	{ .say = remove_queue, .first_only = true },
	{ 0 },
};

const struct peer_protocol protocol_rabbitmq = {
	.name = "rabbitmq",
	.own_size = sizeof(struct rabbitmq_own),
	.acks_unanswered = true,
	.hello = hello,
	.consume = consume_steps,
	.bye = bye,
	.put = rabbitmq_put,
	.take = rabbitmq_take,
	.ack = rabbitmq_ack,
	.answer = rabbitmq_answer,
};
