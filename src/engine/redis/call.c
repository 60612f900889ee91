#include "engine/redis/redis_private.h"

#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	COMMON = 8,    /* arguments that every call has */
	KEY_MAX = 1024 /* bytes of a key */
};

/* `names` of sluice.lua, without the counter, which is the shard's or, with hash tags, the
 * queue's. */
static const char *const key_names[] = { "meta", "msg", "delayed", "inprog", "dlq",
					 "held", "heads", "ttl", "idem", "results",
					 "all", "prios", "ends", "aside", "ops",
					 "later", "taken" };

enum {
	N_NAMES = sizeof key_names / sizeof key_names[0],
	N_KEYS = N_NAMES + 1
};

struct rcall *
rcall_add(struct redis *r, const struct rverb *verb, struct op *op, uint32_t queue)
{
	struct rcall *c;

	if (!mem_room(&r->calls, &r->room_calls, r->n_calls + 1, sizeof *r->calls))
		return NULL;
	c = &r->calls[r->n_calls++];
	*c = (struct rcall){
		.verb = verb,
		.op = op,
		.queue = queue,
		.n_queues = 1,
		.id = ++r->op_id,
		.came = op ? r->now - op->route.before : 0,
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

/* The default policy, in the order of sluice.lua. */
static void
put_default_policy(struct redis *r)
{
	char text[256];

	redis_policy_text(&policy_default, text, sizeof text);
	rwire_arg(r->wire, slice_of(text));
}

/* The channel of notices, and our name there. */
static void
put_notice(struct redis *r)
{
	char text[sizeof r->channel + 32];

	(void)snprintf(text, sizeof text, "%s %" PRIu64, r->channel, r->self);
	rwire_arg(r->wire, slice_of(text));
}

/* The number of queues, and their home by the map. */
static void
put_queues(struct redis *r, const struct rcall *c)
{
	char route[MOVE_SHARD + 48], text[MOVE_SHARD + 64];

	redis_route(c, route, sizeof route);
	(void)snprintf(text, sizeof text, "%" PRIu32 "%s", c->n_queues, route);
	rwire_arg(r->wire, slice_of(text));
}

/* A number from 0 to 1, which spreads retries. */
static double
dice(struct redis *r)
{
	return (double)(hash_next_random(&r->random) >> 11) / (double)(1ull << 53);
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

void
rcall_encode(struct redis *r, const struct rcall *c)
{
	const uint32_t *queues = queues_of(c);
	size_t keys = 0;

	for (uint32_t i = 0; i < c->n_queues; i++)
		keys += N_KEYS + rqueue_at(r, queues[i])->n_prios;
	rwire_begin(r->wire, 3 + keys + COMMON + 3 * (size_t)c->n_queues + c->verb->args +
				     (c->verb->count ? c->verb->count(c) : 0));
	rwire_arg(r->wire, SLICE("EVALSHA"));
	rwire_arg(r->wire, slice_of(r->sha));
	rwire_number(r->wire, (int64_t)keys);
	for (uint32_t i = 0; i < c->n_queues; i++)
		put_keys(r, rqueue_at(r, queues[i]));
	put_common(r, c);
	for (uint32_t i = 0; i < c->n_queues; i++) {
		put_name(r, rqueue_at(r, queues[i]));
		put_prios(r, rqueue_at(r, queues[i]));
		rwire_number(r->wire, (int64_t)*redis_seen(r, rqueue_at(r, queues[i])));
	}
	if (c->verb->encode)
		c->verb->encode(r, c);
}

/* ---- In ---- */

/* What happened to a queue; and the whole answer, or missing priorities. */
#define TAIL_SHAPE   "[nnuuu[(i)][(t)]tunu]"
#define ANSWER_SHAPE "{[tuu.[(" TAIL_SHAPE ")]]|[tn[(p)]]}"

static int
malformed(struct slu_err *err)
{
	return slu_fail(err, SLU_EUNKNOWN, "malformed reply");
}

static void
tell_ended(struct redis *r, const redisReply *ids)
{
	for (size_t i = 0; i < ids->elements; i++) {
		meter_add(&r->outer.meter, METER_LEASES_EXPIRED, 1);
		if (r->outer.changed)
			r->outer.changed(r->outer.changed_arg,
					 &(struct change){ .kind = CHANGE_RETRY,
							   .expired = true,
							   .id = reply_id(ids->element[i]) });
	}
}

/* Handles what happened to the queues of a call besides its verb. */
static void
take_tails(struct redis *r, const struct rcall *c, const redisReply *tails)
{
	for (uint32_t i = 0; i < c->n_queues; i++) {
		const redisReply *tail = tails->element[i];
		struct rqueue *q = rqueue_at(r, queues_of(c)[i]);
		int64_t ready;

		q->next_due = tail->element[0]->len ? redis_ns(reply_int(tail->element[0]))
						    : SLU_NEVER;
		ready = reply_int(tail->element[1]);
		q->totals.failed += (uint64_t)reply_int(tail->element[2]);
		q->totals.died += (uint64_t)reply_int(tail->element[3]);
		q->totals.done += (uint64_t)reply_int(tail->element[4]);
		tell_ended(r, tail->element[5]);
		redis_report_freed(r, q, tail->element[6]);
		redis_note_number(r, q, (uint64_t)reply_int(tail->element[8]),
				  (uint64_t)reply_int(tail->element[9]));
		redis_point_elsewhere(c, tail->element[7], *redis_seen(r, q));
		if (reply_int(tail->element[10])) {
			r->recreated += !q->recreated;
			q->recreated = true;
		}
		if (ready > 0 && r->outer.ready)
			r->outer.ready(r->outer.ready_arg, slice_of(q->space), slice_of(q->name),
				       (uint32_t)ready);
	}
}

/* REDIS-3: adds the priorities that the call lacks. Nothing has happened. */
static int
learn_prios(struct redis *r, const struct rcall *c, const redisReply *reply,
	    struct slu_err *err)
{
	const redisReply *prios = reply->element[2];
	const int64_t which = reply_int(reply->element[1]);
	int rc = 0;

	if (which < 0 || which >= c->n_queues || prios->elements == 0)
		return malformed(err);
	for (size_t i = 0; i < prios->elements && !rc; i++)
		rc = rqueue_add_prio(rqueue_at(r, queues_of(c)[which]),
				     (int32_t)reply_int(prios->element[i]));
	return rc ? slu_fail(err, rc, "no memory for priorities") : 0;
}

int
rcall_decode(struct redis *r, struct rcall *c, const redisReply *reply, struct slu_err *err)
{
	if (!reply_fits(reply, ANSWER_SHAPE))
		return malformed(err);
	if (reply->elements == 3)
		return reply_is(reply->element[0], "prios") ? learn_prios(r, c, reply, err) : malformed(err);
	if (!reply_is(reply->element[0], "ok") || !reply_fits(reply->element[3], c->verb->shape) ||
	    reply->element[4]->elements != c->n_queues)
		return malformed(err);
	c->done = true;
	if (!r->conf.given_time)
		r->skew = r->now - redis_ns(reply_int(reply->element[1]));
	r->budget -= (uint32_t)reply_int(reply->element[2]) < r->budget
			     ? (uint32_t)reply_int(reply->element[2])
			     : r->budget;
	if (c->verb->decode && !c->verb->decode(r, c, reply->element[3]))
		return malformed(err);
	take_tails(r, c, reply->element[4]);
	return 0;
}
