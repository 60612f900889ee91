/*
 * redis_list.c - a list with leases. QUEUE is the list; a script takes its head into a hash of leased
 * messages (QUEUE:b, by a rising token) and into a set ordered by the end of the leases (QUEUE:l), for
 * finding ended leases. An ack removes both. Batched: RPUSH with many values, one script for many, ZREM
 * and HDEL of many.
 */
#include "peers/redis.h"

#include "base/clock.h"

#include <stdio.h>

static const char lease[] =
	"local items = redis.call('LPOP', KEYS[1], ARGV[1])\n"
	"if not items then return {} end\n"
	"local n = #items\n"
	"local token = redis.call('INCRBY', KEYS[4], n) - n\n"
	"local ends, bodies, out = {}, {}, {}\n"
	"for i = 1, n do\n"
	"  local at = 2 * i\n"
	"  ends[at - 1] = ARGV[2]\n"
	"  ends[at] = token + i\n"
	"  bodies[at - 1] = token + i\n"
	"  bodies[at] = items[i]\n"
	"  out[at - 1] = token + i\n"
	"  out[at] = items[i]\n"
	"end\n"
	"redis.call('ZADD', KEYS[2], unpack(ends))\n"
	"redis.call('HSET', KEYS[3], unpack(bodies))\n"
	"return out\n";

struct redis_list_own {
	char sha[41]; /* the SHA of the script in the server */
};

static void
load_script(struct peer_conn *c)
{
	resp_command(&c->out, 3);
	resp_text(&c->out, "SCRIPT");
	resp_text(&c->out, "LOAD");
	resp_text(&c->out, lease);
	c->awaited = 1;
}

/* Writes QUEUE with a suffix as a word. */
static void
key(struct peer_conn *c, const char *suffix)
{
	char name[96];
	const int n = snprintf(name, sizeof name, "%s%s", c->work->queue, suffix);

	resp_word(&c->out, (struct slice){ name, (size_t)n });
}

static void
remove_keys(struct peer_conn *c)
{
	resp_command(&c->out, 5);
	resp_text(&c->out, "UNLINK");
	key(c, "");
	key(c, ":l");
	key(c, ":b");
	key(c, ":n");
	c->awaited = 1;
}

static void
list_put(struct peer_conn *c)
{
	resp_command(&c->out, 2 + c->work->batch);
	resp_text(&c->out, "RPUSH");
	key(c, "");
	for (unsigned i = 0; i < c->work->batch; i++)
		resp_word(&c->out, c->work->payload);
	c->awaited = 1;
}

static void
list_take(struct peer_conn *c, bool wait)
{
	const slu_time end = clock_wall(&clock_system) + PEER_LEASE_SECONDS * SLU_SEC;
	const struct redis_list_own *own = c->own;

	(void)wait; /* a put message is available at once */
	resp_command(&c->out, 9);
	resp_text(&c->out, "EVALSHA");
	resp_text(&c->out, own->sha);
	resp_number(&c->out, 4);
	key(c, "");
	key(c, ":l");
	key(c, ":b");
	key(c, ":n");
	resp_number(&c->out, c->work->batch);
	resp_number(&c->out, (uint64_t)(end / SLU_MS));
	c->awaited = 1;
}

static void
list_ack(struct peer_conn *c, unsigned n)
{
	struct buf *out = &c->out;
	size_t tokens, bytes;

	resp_command(out, 2 + n);
	resp_text(out, "ZREM");
	key(c, ":l");
	tokens = out->n;
	for (unsigned i = 0; i < n; i++)
		resp_word(out, held_pop(c));
	bytes = out->n - tokens;
	resp_command(out, 2 + n);
	resp_text(out, "HDEL");
	key(c, ":b");
	if (buf_room(out, bytes))
		buf_put(out, out->p + tokens, bytes);
	c->awaited = 2;
}

static int
read_leased(struct peer_conn *c, struct slice reply, struct slu_err *err)
{
	struct resp token, item;
	int rc = 0;

	while (!rc && resp_next(&reply, &token) && resp_next(&reply, &item)) {
		rc = peer_check(c, item.text.n, err);
		held_add(c, token.text);
	}
	return rc;
}

static int
list_answer(struct peer_conn *c, struct slice *in, struct slu_err *err)
{
	struct redis_list_own *own = c->own;
	struct slice reply;
	struct resp top;
	int rc = redis_reply(c, in, &reply, err);

	if (rc || reply.n == 0)
		return rc;
	(void)resp_next(&reply, &top);
	if (top.kind == '$' && top.text.n == sizeof own->sha - 1)
		memcpy(own->sha, top.text.p, top.text.n);
	return top.kind == '*' ? read_leased(c, reply, err) : 0;
}

static const struct step hello[] = {
	{ .say = load_script },
	{ 0 },
};

static const struct step bye[] = {
	{ .say = remove_keys, .first_only = true },
	{ 0 },
};

const struct peer_protocol protocol_redis_list = {
	.name = "redis-list",
	.own_size = sizeof(struct redis_list_own),
	.hello = hello,
	.bye = bye,
	.put = list_put,
	.take = list_take,
	.ack = list_ack,
	.answer = list_answer,
};
