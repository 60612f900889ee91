/*
 * fuzz_redis.c - what a Redis server answers. Two bytes choose the call that was made, the
 * rest is its reply as it comes over the wire. Whatever it is, the op has an answer, or the
 * reply is malformed and the op fails.
 */
#include "fuzz.h"

#include "engine/redis/redis_private.h"

#include <string.h>

enum {
	ROWS = 4,
	ITEMS = 3,
	PUTS = 2,
	KEYS = 3
};

static struct redis r;
static uint32_t queue;

static void
open_once(void)
{
	if (r.engine.ops)
		return;
	r.engine.ops = &engine_redis;
	r.conf.prefix = "fuzz";
	r.now = 1794700000ll * SLU_SEC;
	rqueues_init(&r);
	FUZZ_CHECK(rqueue_open(&r, SLICE("ns"), SLICE("q"), &queue) == 0);
}

/* An op with room for everything, and a call of it. */
struct asked {
	struct op op;
	struct op_row rows[ROWS];
	struct op_item items[ITEMS];
	struct op_put puts[PUTS];
	struct op_key keys[KEYS];
	struct op_queue stats;
	char holder[LOCK_HOLDER_MAX + 1];
	struct rcall call;
};

static bool
settles(enum op_verb verb)
{
	return verb == OP_ACK || verb == OP_NACK || verb == OP_EXTEND || verb == OP_REDRIVE ||
	       verb == OP_DELETE || verb == OP_QUARANTINE;
}

static void
ask(struct asked *a, enum op_verb verb, unsigned more)
{
	const struct rverb *const v = redis_verbs[verb].name ? &redis_verbs[verb] : &redis_lock_verbs[verb];
	struct op *const op = &a->op;

	memset(a, 0, sizeof *a);
	op_init(op, verb, SLICE("ns"), SLICE("q"), NULL, NULL);
	op->engine = &r.engine;
	op->rows = a->rows;
	op->max_rows = ROWS;
	op->keys = a->keys;
	op->max_keys = KEYS;
	if (op_is_of(verb, OP_OF_LOCK)) {
		op->lock.key = SLICE("k");
		op->lock.held_by = a->holder;
	}
	if (op_is_of(verb, OP_OF_CLAIM))
		op->claim.stateful = more & 1;
	if (op_is_of(verb, OP_OF_MOVE))
		op->move.step = more % MOVE_STEPS;
	op->state = more % MSG_STATES;
	if (settles(verb)) {
		op->items = a->items;
		op->n_items = ITEMS;
	}
	if (verb == OP_ENQUEUE) {
		op->puts = a->puts;
		op->n_puts = PUTS;
	}
	for (unsigned i = 0; i < PUTS; i++)
		a->puts[i].m.space = op->space, a->puts[i].m.queue = op->queue;
	op->n_rows = verb == OP_RETURN ? ROWS : 0;
	a->call = (struct rcall){
		.verb = v,
		.op = op,
		.queue = queue,
		.n_queues = 1,
		.to = settles(verb) ? ITEMS : verb == OP_RETURN ? ROWS
								: 0,
		.stats = &a->stats,
		.again = more & 2,
	};
}

static void
hear(struct asked *a, const redisReply *reply)
{
	struct slu_err err = { 0 };
	int rc;

	rc = rcall_decode(&r, &a->call, reply, &err);
	FUZZ_CHECK(rc == 0 || rc == SLU_EUNKNOWN || rc == SLU_ENOMEM);
	if (rc)
		rcall_fail(&a->call, rc, &err);
	FUZZ_CHECK(a->op.n_rows <= ROWS && a->op.n_keys <= KEYS);
	op_unpin(&a->op);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct asked a;
	redisReader *reader;
	void *reply = NULL;
	enum op_verb verb;

	open_once();
	if (size < 2)
		return 0;
	verb = (enum op_verb)(data[0] % OP_VERBS);
	if (!redis_verbs[verb].name && !redis_lock_verbs[verb].name)
		return 0;
	reader = reply_reader();
	FUZZ_CHECK(reader);
	if (redisReaderFeed(reader, (const char *)data + 2, size - 2) == REDIS_OK)
		while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
			ask(&a, verb, data[1]);
			if (((redisReply *)reply)->type != REDIS_REPLY_ERROR)
				hear(&a, reply);
			freeReplyObject(reply);
		}
	redisReaderFree(reader);
	return 0;
}
