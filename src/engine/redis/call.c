#include "engine/redis/redis_in.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	COMMON = 8,     /* arguments of every call */
	KEY_MAX = 1024, /* bytes of a key */
	TRIES = 16      /* of a call: a queue may get priorities meanwhile */
};

/* As sluice.lua has them. */
static const char *const key_names[] = { "meta", "msg", "delayed", "inprog", "dlq",
					 "held", "heads", "ttl", "idem", "results",
					 "all", "prios", "ends", "aside", "ops",
					 "later", "taken" };

/* And the counter: of the shard, or in a cluster, where a call is for one slot, of the
 * queue. */

enum {
	N_NAMES = sizeof key_names / sizeof key_names[0],
	N_KEYS = N_NAMES + 1
};

struct rcall *
rcall_add(struct redis *r, const struct rverb *verb, struct op *op, uint32_t queue)
{
	struct rcall *c;

	if (r->n_calls == r->room_calls) {
		const uint32_t room = r->room_calls ? 2 * r->room_calls : 64;
		struct rcall *more = mem_realloc(r->calls, room * sizeof *more);

		if (!more)
			return NULL;
		r->calls = more;
		r->room_calls = room;
	}
	c = &r->calls[r->n_calls++];
	*c = (struct rcall){
		.verb = verb,
		.op = op,
		.queue = queue,
		.n_queues = 1,
		.id = ++r->op_id,
		.came = op ? r->now - op->before : 0,
	};
	return c;
}

/* ---- Out ---- */

static const uint32_t *
queues_of(const struct rcall *c)
{
	return c->queues ? c->queues : &c->queue;
}

static void
put_key(struct redis *r, const struct rqueue *q, const char *name, const int32_t *prio)
{
	char key[KEY_MAX];
	int n;

	n = prio ? snprintf(key, sizeof key, "%s%s:%" PRId32, q->base, name, *prio)
		 : snprintf(key, sizeof key, "%s%s", q->base, name);
	rwire_arg(r->wire, (struct slice){ key, (size_t)n });
}

static void
put_keys(struct redis *r, const struct rqueue *q)
{
	for (int i = 0; i < N_NAMES; i++)
		put_key(r, q, key_names[i], NULL);
	if (r->conf.tags)
		put_key(r, q, "counter", NULL);
	else
		rwire_arg(r->wire, slice_of(r->counter));
	for (uint32_t i = 0; i < q->n_prios; i++)
		put_key(r, q, "pending", &q->prios[i]);
}

static void
put_prios(struct redis *r, const struct rqueue *q)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	for (uint32_t i = 0; i < q->n_prios; i++)
		buf_printf(&text, "%s%" PRId32, i ? "," : "", q->prios[i]);
	rwire_arg(r->wire, slice_of(buf_str(&text)));
	buf_release(&text);
}

static void
put_name(struct redis *r, const struct rqueue *q)
{
	char text[2 * MESSAGE_NAME_MAX + 2];

	(void)snprintf(text, sizeof text, "%s/%s", q->space, q->name);
	rwire_arg(r->wire, slice_of(text));
}

/* Of a policy, in the order of sluice.lua. */
static void
put_default_policy(struct redis *r)
{
	char text[256];

	redis_policy_text(&policy_default, text, sizeof text);
	rwire_arg(r->wire, slice_of(text));
}

/* Where to publish what is ready, and as whom. */
static void
put_notice(struct redis *r)
{
	char text[REDIS_PREFIX + 64];

	(void)snprintf(text, sizeof text, "%s %" PRIu64, r->channel, r->self);
	rwire_arg(r->wire, slice_of(text));
}

/* How many; and what the map says of them. */
static void
put_queues(struct redis *r, const struct rcall *c)
{
	char route[MOVE_SHARD + 24], text[MOVE_SHARD + 48];

	redis_route(c, route, sizeof route);
	(void)snprintf(text, sizeof text, "%" PRIu32 "%s", c->n_queues, route);
	rwire_arg(r->wire, slice_of(text));
}

static double
dice(struct redis *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return (double)(r->random >> 11) / (double)(1ull << 53);
}

static void
put_common(struct redis *r, const struct rcall *c)
{
	char text[32];

	rwire_arg(r->wire, slice_of(c->verb->name));
	if (r->conf.given_time)
		rwire_number(r->wire, r->now / 1000);
	else
		rwire_arg(r->wire, SLICE(""));
	rwire_number(r->wire, redis_us(c->came));
	rwire_number(r->wire, r->budget);
	(void)snprintf(text, sizeof text, "%.17g", dice(r));
	rwire_arg(r->wire, slice_of(text));
	put_default_policy(r);
	put_notice(r);
	put_queues(r, c);
}

static void
put_call(struct redis *r, const struct rcall *c)
{
	const uint32_t *queues = queues_of(c);
	size_t keys = 0;

	for (uint32_t i = 0; i < c->n_queues; i++)
		keys += N_KEYS + rqueue_at(r, queues[i])->n_prios;
	rwire_begin(r->wire, 3 + keys + COMMON + 2 * (size_t)c->n_queues + c->verb->count(c));
	rwire_arg(r->wire, SLICE("EVALSHA"));
	rwire_arg(r->wire, slice_of(r->sha));
	rwire_number(r->wire, (int64_t)keys);
	for (uint32_t i = 0; i < c->n_queues; i++)
		put_keys(r, rqueue_at(r, queues[i]));
	put_common(r, c);
	for (uint32_t i = 0; i < c->n_queues; i++) {
		put_name(r, rqueue_at(r, queues[i]));
		put_prios(r, rqueue_at(r, queues[i]));
	}
	c->verb->encode(r, c);
}

/* ---- In ---- */

static int
odd(struct slu_err *err, const struct redis *r, const char *what)
{
	return slu_fail(err, SLU_EDOWN, "redis %s: %.160s", r->conf.wire.address, what);
}

static bool
is_array(const redisReply *reply, size_t least)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}

static void
tell_ended(struct redis *r, const redisReply *ids)
{
	for (size_t i = 0; i < ids->elements; i++) {
		meter_add(&r->outer.meter, METER_LEASES_EXPIRED, 1);
		if (r->outer.changed)
			r->outer.changed(r->outer.changed_arg,
					 &(struct change){ .kind = CHANGE_RETRY,
							   .id = (uint64_t)redis_int(ids->element[i]) });
	}
}

/* What happened to the queues of a call, besides what it was for. */
static int
take_tails(struct redis *r, const struct rcall *c, const redisReply *tails,
	   struct slu_err *err)
{
	if (!is_array(tails, c->n_queues))
		return odd(err, r, "an answer without its end");
	for (uint32_t i = 0; i < c->n_queues; i++) {
		const redisReply *tail = tails->element[i];
		struct rqueue *q = rqueue_at(r, queues_of(c)[i]);
		int64_t ready;

		if (!is_array(tail, 8) || !is_array(tail->element[5], 0) ||
		    !is_array(tail->element[6], 0))
			return odd(err, r, "an answer without its end");
		q->next_due = tail->element[0]->len ? redis_ns(redis_int(tail->element[0]))
						    : SLU_NEVER;
		ready = redis_int(tail->element[1]);
		q->totals.failed += (uint64_t)redis_int(tail->element[2]);
		q->totals.died += (uint64_t)redis_int(tail->element[3]);
		q->totals.done += (uint64_t)redis_int(tail->element[4]);
		tell_ended(r, tail->element[5]);
		redis_tell_freed(r, q, tail->element[6]);
		redis_point_elsewhere(c, tail->element[7]);
		if (ready > 0 && r->outer.ready)
			r->outer.ready(r->outer.ready_arg, slice_of(q->space), slice_of(q->name),
				       (uint32_t)ready);
	}
	return 0;
}

/* D3: nothing has happened. */
static int
learn_prios(struct redis *r, const struct rcall *c, const redisReply *reply,
	    struct slu_err *err)
{
	const redisReply *prios = reply->element[2];
	const int64_t which = redis_int(reply->element[1]);
	int rc = 0;

	if (which < 0 || which >= c->n_queues || !is_array(prios, 1))
		return odd(err, r, "priorities of no queue");
	for (size_t i = 0; i < prios->elements && !rc; i++)
		rc = rqueue_add_prio(rqueue_at(r, queues_of(c)[which]),
				     (int32_t)redis_int(prios->element[i]));
	return rc ? slu_fail(err, rc, "no memory for priorities") : 0;
}

static int
load_script(struct redis *r, struct slu_err *err)
{
	const struct slice words[] = { SLICE("SCRIPT"), SLICE("LOAD"), slice_of(redis_script) };
	redisReply *reply = NULL;
	int rc = redis_ask(r, words, 3, &reply, err);

	if (!rc && (reply->type != REDIS_REPLY_STRING || reply->len != sizeof r->sha - 1))
		rc = odd(err, r, reply->str ? reply->str : "the script was not taken");
	if (!rc)
		memcpy(r->sha, reply->str, sizeof r->sha);
	if (reply)
		freeReplyObject(reply);
	return rc;
}

/* *again: it has to be made once more. */
static int
take_answer(struct redis *r, struct rcall *c, const redisReply *reply, bool *unloaded,
	    struct slu_err *err)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		*unloaded |= strncmp(reply->str, "NOSCRIPT", 8) == 0;
		return *unloaded ? 0 : odd(err, r, reply->str);
	}
	if (!is_array(reply, 3))
		return odd(err, r, "an answer that is none");
	if (strcmp(reply->element[0]->str, "prios") == 0)
		return learn_prios(r, c, reply, err);
	if (!is_array(reply, 5))
		return odd(err, r, "an answer that is none");
	c->done = true;
	if (!r->conf.given_time)
		r->skew = r->now - redis_ns(redis_int(reply->element[1]));
	r->budget -= (uint32_t)redis_int(reply->element[2]) < r->budget
			     ? (uint32_t)redis_int(reply->element[2])
			     : r->budget;
	c->verb->decode(r, c, reply->element[3]);
	return take_tails(r, c, reply->element[4], err);
}

static int
round_of_calls(struct redis *r, bool *left, struct slu_err *err)
{
	bool unloaded = false;
	int rc, worst = 0;

	for (uint32_t i = 0; i < r->n_calls; i++)
		if (!r->calls[i].done)
			put_call(r, &r->calls[i]);
	rc = rwire_send(r->wire, err);
	*left = false;
	for (uint32_t i = 0; i < r->n_calls && !rc; i++) {
		redisReply *reply = NULL;

		if (r->calls[i].done)
			continue;
		rc = rwire_answer(r->wire, &reply, err);
		if (rc)
			break;
		rc = take_answer(r, &r->calls[i], reply, &unloaded, err);
		worst = worst ? worst : rc;
		rc = 0; /* the others still have answers */
		*left |= !r->calls[i].done;
		freeReplyObject(reply);
	}
	rc = rc ? rc : worst;
	return !rc && unloaded ? load_script(r, err) : rc;
}

/* Until every call has its answer. */
static int
rounds(struct redis *r, struct slu_err *err)
{
	bool left = true;
	int rc = 0;

	if (r->wire->fd < 0)
		rc = rwire_open(r->wire, err);
	if (!rc && !*r->sha)
		rc = load_script(r, err);
	for (int i = 0; left && !rc; i++)
		rc = i < TRIES ? round_of_calls(r, &left, err)
			       : odd(err, r, "a queue gets new priorities all the time");
	return rc;
}

void
rcall_fail(struct rcall *c, int rc, const struct slu_err *err)
{
	struct op *op = c->op;

	if (!op)
		return;
	if (!op->n_items) {
		op_unpin(op);
		op->n_rows = 0;
		op_fail(op, rc, err);
	}
	for (uint32_t i = c->from; i < c->to && i < op->n_items; i++)
		op->items[i].rc = rc;
}

/* D4: enqueues are known by their ids, claims by that of the op. What settles is safe to
 * repeat, too: a token counts once; but when it counts no more nobody knows whether it
 * was this one that used it. */
static void
mark_again(struct redis *r)
{
	for (uint32_t i = 0; i < r->n_calls; i++)
		r->calls[i].again = !r->calls[i].done;
}

int
rcalls_run(struct redis *r, struct slu_err *err)
{
	int rc = r->n_calls ? rounds(r, err) : 0;

	if (rc == SLU_EUNKNOWN) {
		mark_again(r);
		rc = rounds(r, err) ? SLU_EUNKNOWN : 0;
	}
	for (uint32_t i = 0; i < r->n_calls; i++) {
		if (!r->calls[i].done)
			rcall_fail(&r->calls[i], rc, err);
		mem_free(r->calls[i].queues);
	}
	r->n_calls = 0;
	return rc;
}

int
redis_ask(struct redis *r, const struct slice *words, size_t n, redisReply **out,
	  struct slu_err *err)
{
	int rc = r->wire->fd < 0 ? rwire_open(r->wire, err) : 0;

	if (rc)
		return rc;
	rwire_begin(r->wire, n);
	for (size_t i = 0; i < n; i++)
		rwire_arg(r->wire, words[i]);
	rc = rwire_send(r->wire, err);
	return rc ? rc : rwire_answer(r->wire, out, err);
}
