#include "engine_rig.h"

#include "count_engine.h"
#include "engine/log/logengine.h"
#include "engine/memory/memory.h"
#include "engine/redis/redis.h"
#include "fakeclock.h"
#include "redis_server.h"
#include "store_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void
prepare_log(struct engine_conf *conf, bool second)
{
	conf->folder = second ? "log2" : "log";
}

static struct clock *
still_clock(void)
{
	static struct fakeclock still;

	if (!still.clock.ops)
		fakeclock_init(&still, SLU_SEC, SLU_SEC);
	return &still.clock;
}

/* Small segments, so that cases cross them; no thread; opening takes no time. */
static int
open_log(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	 struct slu_err *err)
{
	const struct logengine_conf more = { .clock = still_clock(), .segment_size = 64 << 10, .no_helper = true };

	return logengine_open(out, conf, &more, found, err);
}

/* The same log in a store, whose clock is the wall clock of the test. KIT_STORE: on a real server. */
static int
open_stored(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	    struct slu_err *err)
{
	static struct store *stores[2];
	const bool second = strcmp(conf->folder, "log2") == 0;
	struct logengine_conf more = { .clock = still_clock(), .segment_size = 64 << 10, .no_helper = true };

	if (!stores[second])
		stores[second] = store_rig_open_kit(second ? "memory://two" : "memory://one");
	store_rig_set_clock(stores[second], conf->wall);
	more.store = stores[second];
	return logengine_open(out, conf, &more, found, err);
}

/* A server of the test's own, that ends with it; or one that is there, as a cluster that
 * takes long to form, with a prefix of the test's own. */
static void
prepare_redis(struct engine_conf *conf, bool second)
{
	static struct redis_conf redis[] = {
		{ .wire = { .address = "unix:redis.sock", .timeout = SLU_MIN }, .given_time = true },
		{ .wire = { .address = "unix:redis.sock", .timeout = SLU_MIN },
		  .given_time = true,
		  .prefix = "second" },
	};
	static char prefix[2][32];
	const char *there = getenv("RIG_REDIS");

	if (there) {
		(void)snprintf(prefix[second], sizeof prefix[0], "rig%d%s", (int)getpid(),
			       second ? "-2" : "");
		redis[second].wire.address = there;
		redis[second].prefix = prefix[second];
	} else {
		redis_server_start("redis.sock");
	}
	conf->options = &redis[second];
}

const struct rig_row rig_rows[] = {
	[RIG_MEMORY] = { .engine = &engine_memory },
	[RIG_COUNT] = { .engine = &engine_count },
	[RIG_LOG] = { .engine = &engine_log, .prepare = prepare_log, .open = open_log },
	[RIG_STORED] = { .engine = &engine_log, .prepare = prepare_log, .open = open_stored },
	[RIG_REDIS] = { .engine = &engine_redis, .prepare = prepare_redis },
};

static void
on_ready(void *arg, struct slice space, struct slice queue, uint32_t n)
{
	struct rig *r = arg;
	const size_t used = strlen(r->woken);

	CHECK(n > 0);
	(void)space;
	snprintf(r->woken + used, sizeof r->woken - used, "%s%.*s", used ? " " : "",
		 (int)queue.n, queue.p);
}

static void
on_freed(void *arg, struct slice space, struct slice key)
{
	on_ready(arg, space, key, 1);
}

const char *
rig_woken(struct rig *r)
{
	static char text[sizeof r->woken];

	memcpy(text, r->woken, sizeof text);
	r->woken[0] = 0;
	return text;
}

/* ---- Opening ---- */

void
rig_open(struct rig *r)
{
	const struct engine_ops *ops = r->row->engine;
	struct engine_conf conf = { .wall = r->now, .ready = on_ready, .freed = on_freed, .ready_arg = r };
	struct engine_found found = { 0 };
	struct slu_err err = { 0 };
	int rc;

	if (r->row->prepare)
		r->row->prepare(&conf, r->second);
	rc = (r->row->open ? r->row->open : ops->open)(&r->e, &conf, &found, &err);
	if (rc == SLU_ENOMEM && r->may_fail)
		return;
	if (rc)
		test_fail(__FILE__, __LINE__, "open: %s", err.text);
	CHECK(found.now >= r->now);
	r->now = found.now;
	r->one_queue = found.one_queue;
	if (r->next_id <= found.highest_id)
		r->next_id = found.highest_id + 1;
}

void
rig_close(struct rig *r)
{
	rig_unpin(r);
	free(r->bytes);
	r->bytes = NULL;
	if (r->e)
		r->e->ops->close(r->e);
	r->e = NULL;
}

void
rig_reopen(struct rig *r)
{
	if (!r->e->ops->durable)
		return;
	rig_close(r);
	rig_open(r);
}

static void
end_case(struct rig *r)
{
	rig_check(r);
	rig_reopen(r);
	rig_check(r);
	rig_close(r);
}

void
rig_run(enum rig_engine row, rig_case *test)
{
	static struct rig r;

	r = (struct rig){ .row = &rig_rows[row], .now = RIG_START, .next_id = 1 };
	rig_open(&r);
	test(&r);
	end_case(&r);
}

void
rig_run_two(enum rig_engine row, rig_pair *test)
{
	static struct rig a, b;

	a = (struct rig){ .row = &rig_rows[row], .now = RIG_START, .next_id = 1 };
	b = (struct rig){ .row = a.row, .now = RIG_START, .next_id = 1000000, .second = true };
	rig_open(&a);
	rig_open(&b);
	test(&a, &b);
	end_case(&a);
	end_case(&b);
}

/* ---- Ops ---- */

static void
no_done(struct op *op)
{
	(void)op;
}

void
rig_op(struct op *op, enum op_verb verb, const char *space, const char *queue)
{
	op_init(op, verb, slice_of(space), slice_of(queue), no_done, NULL);
}

void
rig_op_puts(struct op *op, const char *queue, struct op_put *puts, uint32_t n)
{
	rig_op(op, OP_ENQUEUE, RIG_SPACE, queue);
	op->puts = puts;
	op->n_puts = n;
}

int
rig_do(struct rig *r, struct op *op)
{
	const struct op as_asked = *op;
	struct slu_err err = { 0 };
	int rc;

	op->route.arrived = op->route.before = r->now;
	op->route.next = NULL;
	rc = engine_run(r->e, op, r->now, r->now, &err);
	if (rc && r->revive) {
		op_unpin(op);
		*op = as_asked;
		r->revive(r);
		return rig_do(r, op);
	}
	if (rc)
		test_fail(__FILE__, __LINE__, "run: %s", err.text);
	if (op->rc && !(r->may_fail && op->rc == SLU_ENOMEM))
		CHECK(op->err.text[0]);
	return op->rc;
}

void
rig_pass(struct rig *r, slu_time by)
{
	struct slu_err err;

	r->now += by;
	do
		CHECK_EQ(0, engine_run(r->e, NULL, r->now, r->now, &err));
	while (r->e->ops->next_due(r->e) <= r->now);
}

/* Of a text that may be missing. */
static struct slice
maybe(const char *s)
{
	return s ? slice_of(s) : (struct slice){ 0 };
}

static struct op_put
make_put(struct rig *r, const struct rig_msg *g)
{
	return (struct op_put){
		.m = {
			.id = r->next_id++,
			.key = maybe(g->key),
			.share = maybe(g->share),
			.idem = maybe(g->idem),
			.payload = maybe(g->payload),
			.prio = g->prio,
			.due = g->due,
			.keep = g->keep,
			.max_attempts = g->max_attempts,
		},
		.delay = g->delay,
		.ttl = g->ttl,
	};
}

uint64_t
rig_put(struct rig *r, const char *queue, const struct rig_msg *msg)
{
	static const struct rig_msg plain;
	const struct rig_msg *g = msg ? msg : &plain;
	struct op_put put = make_put(r, g);

	rig_op(&r->op, OP_ENQUEUE, g->space ? g->space : RIG_SPACE, queue);
	r->op.puts = &put;
	r->op.n_puts = 1;
	return rig_do(r, &r->op) ? 0 : put.m.id;
}

void
rig_fill(struct rig *r, const char *queue, const struct rig_msg *msg, uint32_t n)
{
	static struct op_put puts[1000];

	while (n > 0) {
		const uint32_t some = n < COUNT(puts) ? n : COUNT(puts);

		for (uint32_t i = 0; i < some; i++)
			puts[i] = make_put(r, msg);
		CHECK_EQ(0, rig_puts(r, queue, puts, some));
		n -= some;
	}
}

uint32_t
rig_turns(const struct rig *r, uint32_t n)
{
	return r->row == &rig_rows[RIG_STORED] && store_rig_kit_row()->shared ? n / 10 : n;
}

void
rig_unpin(struct rig *r)
{
	r->op.rows = r->rows;
	r->op.n_rows = r->n;
	r->op.engine = r->e;
	op_unpin(&r->op);
	r->n = 0;
}

/* Run r->op, which fills rows. */
static uint32_t
fill_rows(struct rig *r, uint32_t max)
{
	r->op.rows = r->rows;
	r->op.max_rows = max;
	(void)rig_do(r, &r->op); /* callers look at the rows */
	r->n = r->op.n_rows;
	r->cursor = r->op.cursor;
	return r->n;
}

static void
begin_rows(struct rig *r, enum op_verb verb, const char *queue)
{
	rig_unpin(r);
	rig_op(&r->op, verb, RIG_SPACE, queue);
}

int
rig_puts(struct rig *r, const char *queue, struct op_put *puts, uint32_t n)
{
	rig_op_puts(&r->op, queue, puts, n);
	return rig_do(r, &r->op);
}

struct op_put
rig_whole_put(void)
{
	return (struct op_put){
		.m = {
			.id = 77,
			.key = SLICE("k"),
			.idem = SLICE("once"),
			.correlation = SLICE("c-1"),
			.type = SLICE("text/plain"),
			.attributes = SLICE("{\"a\":1}"),
			.payload = { "\0bin\xff", 5 },
			.prio = -3,
			.max_attempts = 9,
		},
		.ttl = SLU_HOUR,
	};
}

void
rig_check_whole(struct rig *r, slu_time at)
{
	const struct op_put put = rig_whole_put();
	const struct message *m;

	CHECK_EQ(put.m.id, rig_claim_one(r, "q"));
	CHECK_EQ(put.m.prio, r->rows[0].prio);
	CHECK_EQ(put.m.max_attempts, r->rows[0].max_attempts);
	CHECK_EQ(at, r->rows[0].due);
	CHECK_EQ(at + put.ttl, r->rows[0].expires);
	m = rig_read(r, 0);
	CHECK(slice_eq(SLICE(RIG_SPACE), m->space));
	CHECK(slice_eq(SLICE("q"), m->queue));
	CHECK(slice_eq(put.m.key, m->key));
	CHECK(slice_eq(put.m.idem, m->idem));
	CHECK(slice_eq(put.m.correlation, m->correlation));
	CHECK(slice_eq(put.m.type, m->type));
	CHECK(slice_eq(put.m.attributes, m->attributes));
	CHECK(slice_eq(put.m.payload, m->payload));
	CHECK_EQ(at, m->accepted);
}

uint32_t
rig_claim(struct rig *r, const char *queue, uint32_t max)
{
	begin_rows(r, OP_CLAIM, queue);
	return fill_rows(r, max);
}

uint32_t
rig_claim_for(struct rig *r, const char *queue, slu_time lease)
{
	begin_rows(r, OP_CLAIM, queue);
	r->op.claim.lease = lease;
	return fill_rows(r, 1);
}

uint64_t
rig_claim_kinds(struct rig *r, const char *queue, const char *kinds, uint32_t max)
{
	begin_rows(r, OP_CLAIM, queue);
	r->op.claim.kinds = slice_of(kinds);
	return fill_rows(r, max) ? r->rows[0].id : 0;
}

uint64_t
rig_claim_one(struct rig *r, const char *queue)
{
	return rig_claim(r, queue, 1) ? r->rows[0].id : 0;
}

int
rig_item(struct rig *r, enum op_verb verb, struct op_item *item)
{
	struct op op;

	rig_op(&op, verb, RIG_SPACE, "");
	op.items = item;
	op.n_items = 1;
	item->rc = -1;
	CHECK_EQ(0, rig_do(r, &op));
	return item->rc;
}

int
rig_settle_one(struct rig *r, enum op_verb verb, uint64_t id, uint64_t token)
{
	struct op_item item = { .id = id, .token = token };

	return rig_item(r, verb, &item);
}

void
rig_return(struct rig *r)
{
	struct op op;

	rig_op(&op, OP_RETURN, RIG_SPACE, "");
	op.rows = r->rows;
	op.n_rows = r->n;
	CHECK_EQ(0, rig_do(r, &op));
}

/* ---- Looking ---- */

uint32_t
rig_list(struct rig *r, const char *queue, enum msg_state state, uint32_t max)
{
	const uint64_t cursor = r->cursor;

	begin_rows(r, OP_LIST, queue);
	r->op.state = state;
	r->op.cursor = cursor;
	return fill_rows(r, max);
}

uint32_t
rig_peek(struct rig *r, const char *queue, uint32_t max)
{
	begin_rows(r, OP_PEEK, queue);
	return fill_rows(r, max);
}

int
rig_get(struct rig *r, uint64_t id)
{
	begin_rows(r, OP_GET, "");
	r->op.id = id;
	fill_rows(r, 1);
	return r->op.rc;
}

uint32_t
rig_count(struct rig *r, const char *queue, enum msg_state state)
{
	struct op op;

	rig_op(&op, OP_STATS, RIG_SPACE, queue);
	op.queues = r->queues;
	op.max_queues = 1;
	if (rig_do(r, &op))
		return 0;
	CHECK_EQ(1, op.n_queues);
	return r->queues[0].count[state];
}

int
rig_result(struct rig *r, uint64_t id, char *text, size_t size)
{
	struct op op;
	int rc;

	rig_op(&op, OP_RESULT, RIG_SPACE, "");
	op.id = id;
	rc = rig_do(r, &op);
	text[0] = 0;
	if (rc || !op.result.pin)
		return rc;
	CHECK(op.result.size < size);
	CHECK_EQ(0, engine_read(r->e, &op.result, 0, op.result.size, text, true, NULL));
	text[op.result.size] = 0;
	op_unpin(&op);
	return 0;
}

void
rig_policy(struct rig *r, const char *queue, const struct policy *policy)
{
	struct op op;

	rig_op(&op, OP_POLICY_SET, RIG_SPACE, queue);
	op.policy = *policy;
	CHECK_EQ(0, rig_do(r, &op));
}

static const char *
read_ref(struct rig *r, const struct op_ref *ref)
{
	CHECK(ref->pin);
	free(r->bytes);
	r->bytes = malloc((size_t)ref->size + 1);
	CHECK_EQ(0, engine_read(r->e, ref, 0, ref->size, r->bytes, true, NULL));
	r->bytes[ref->size] = 0;
	return r->bytes;
}

const struct message *
rig_read(struct rig *r, uint32_t row)
{
	const struct op_ref *ref = &r->rows[row].record;
	const char *bytes = read_ref(r, ref);

	CHECK_EQ(0, message_decode((struct slice){ bytes, ref->size }, &r->m, NULL));
	CHECK_EQ(r->rows[row].id, r->m.id);
	return &r->m;
}

const char *
rig_error(struct rig *r, uint32_t row)
{
	const struct op_ref *const ref = &r->rows[row].error;
	const char *const kept = ref->pin ? read_ref(r, ref) : "";

	return ref->pin ? attempts_error((struct slice){ kept, ref->size }).p : "";
}

unsigned
rig_attempts(struct rig *r, uint32_t row, struct attempts *out)
{
	const struct op_ref *const ref = &r->rows[row].error;

	*out = (struct attempts){ 0 };
	if (ref->pin)
		CHECK(attempts_read((struct slice){ read_ref(r, ref), ref->size }, out));
	return out->n;
}

/* ---- Counters equal a scan (I9 of the faults) ---- */

static void
scan(struct rig *r, const struct op_queue *q, uint32_t *count)
{
	struct op op;

	rig_unpin(r);
	rig_op(&op, OP_LIST, q->space, q->name);
	op.rows = r->rows;
	op.max_rows = RIG_ROWS;
	do {
		CHECK_EQ(0, rig_do(r, &op));
		for (uint32_t i = 0; i < op.n_rows; i++)
			count[r->rows[i].state]++;
		op_unpin(&op);
	} while (op.cursor);
}

void
rig_check(struct rig *r)
{
	struct op op;

	rig_pass(r, 0); /* nothing moves between one look and the next */
	rig_op(&op, OP_QUEUES, "", "");
	op.queues = r->queues;
	op.max_queues = RIG_QUEUES;
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(0, op.cursor);
	for (uint32_t i = 0; i < op.n_queues; i++) {
		uint32_t count[MSG_STATES] = { 0 };

		scan(r, &r->queues[i], count);
		for (int state = MSG_READY; state < MSG_STATES; state++)
			CHECK_EQ(count[state], r->queues[i].count[state], r->queues[i].name);
	}
}
