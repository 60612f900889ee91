/*
 * redis.c - the Redis engine.
 */
#include "engine/redis/redis_in.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/supplier.h"
#include "engine/redis/piece.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	HEARD_MAX = 2 << 20
};

#define DOWN_FIRST (100 * SLU_MS)
#define DOWN_MOST  (5 * SLU_SEC)

static struct redis *
of_engine(struct engine *e)
{
	return CONTAINER(e, struct redis, engine);
}

static int
redis_close(struct engine *e)
{
	struct redis *r = of_engine(e);

	watch_stop(&r->watch);
	buf_release(&r->heard);
	rwire_release(&r->only);
	rqueues_release(r);
	mem_free(r->calls);
	mem_free(r);
	return 0;
}

/* Of those who share the server, every lane has its queues. */
static bool
is_ours(const struct redis *r, const char *name, const char *slash)
{
	const struct slice space = { name, (size_t)(slash - name) };

	return r->outer.lanes < 2 ||
	       supplier_hash(space, slice_of(slash + 1)) % r->outer.lanes == r->outer.lane;
}

int
redis_know(struct redis *r, const char *name, struct slu_err *err)
{
	const char *slash = strchr(name, '/');
	uint32_t h;
	int rc;

	if (!slash || !is_ours(r, name, slash))
		return 0;
	if (rqueue_open(r, (struct slice){ name, (size_t)(slash - name) }, slice_of(slash + 1), &h))
		return slu_fail(err, SLU_ENOMEM, "no memory for a queue");
	if (rqueue_at(r, h)->listed)
		return 0;
	rc = redis_spell(r, h, &(struct spelling){ 0 }, err);
	rqueue_at(r, h)->listed = rc == 0;
	return rc ? rc : redis_tick(r, h, r->now, err);
}

int
redis_know_all(struct redis *r, struct slu_err *err)
{
	redisReply *reply = NULL;
	int rc;

	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("ZRANGE"), slice_of(r->listing), SLICE("0"),
					       SLICE("-1") },
		       4, &reply, err);
	if (!rc && reply->type != REDIS_REPLY_ARRAY)
		rc = slu_fail(err, SLU_EDOWN, "redis %s: %s", r->conf.wire.address,
			      reply->str ? reply->str : "no list of queues");
	for (size_t i = 0; !rc && i < reply->elements; i++)
		rc = redis_know(r, reply->element[i]->str, err);
	if (reply)
		freeReplyObject(reply);
	return rc;
}

/* A setting of the server, or "" where it does not tell. */
static void
ask_setting(struct redis *r, const char *name, char *out, size_t size)
{
	const struct slice words[] = { SLICE("CONFIG"), SLICE("GET"), slice_of(name) };
	redisReply *reply = NULL;

	*out = '\0';
	if (redis_ask(r, words, 3, &reply, NULL) == 0 && reply->type == REDIS_REPLY_ARRAY &&
	    reply->elements == 2 && reply->element[1]->str)
		(void)snprintf(out, size, "%s", reply->element[1]->str);
	if (reply)
		freeReplyObject(reply);
}

/* What an answer is worth is for the server's settings to say. */
static void
tell_durability(struct redis *r)
{
	char file[16], sync[16];

	ask_setting(r, "appendonly", file, sizeof file);
	ask_setting(r, "appendfsync", sync, sizeof sync);
	if (r->outer.lane == 0 && r->outer.log &&
	    (strcmp(file, "yes") != 0 || strcmp(sync, "always") != 0))
		log_warn(r->outer.log, "redis may lose what was accepted: set appendonly yes and appendfsync always",
			 F_STR("address", r->conf.wire.address), F_STR("appendonly", file),
			 F_STR("appendfsync", sync));
}

static int
redis_open(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	   struct slu_err *err)
{
	struct redis *r = mem_zalloc(sizeof *r);
	uint64_t highest;
	int rc;

	if (!r)
		return slu_fail(err, SLU_ENOMEM, "no memory for an engine");
	if (conf->redis->prefix && strlen(conf->redis->prefix) >= REDIS_PREFIX) {
		mem_free(r);
		return slu_fail(err, SLU_EINVAL, "redis.prefix %s: at most %d bytes",
				conf->redis->prefix, REDIS_PREFIX - 1);
	}
	r->engine.ops = &engine_redis;
	r->conf = *conf->redis;
	r->outer = *conf;
	r->now = conf->wall;
	r->budget = 0; /* only look */
	r->conf.prefix = r->conf.prefix ? r->conf.prefix : "sluice";
	(void)snprintf(r->counter, sizeof r->counter, "%s:counter", r->conf.prefix);
	(void)snprintf(r->ids, sizeof r->ids, "%s:ids", r->conf.prefix);
	(void)snprintf(r->listing, sizeof r->listing, "%s:queues", r->conf.prefix);
	(void)snprintf(r->channel, sizeof r->channel, "%s:ready", r->conf.prefix);
	buf_init(&r->heard, HEARD_MAX);
	(void)snprintf(r->spelled, sizeof r->spelled, "%s:spelled", r->conf.prefix);
	rwire_init(&r->only, &r->conf.wire);
	r->wire = &r->only;
	rqueues_init(r);
	rc = hash_random(&r->random, sizeof r->random, err);
	r->random |= 1;
	if (!rc)
		rc = hash_random(&r->op_id, sizeof r->op_id, err);
	r->self = r->op_id;
	r->op_id >>= 16; /* room to count */
	if (!rc)
		rc = rwire_open(r->wire, err);
	if (!rc)
		rc = redis_ids_open(r, &highest, err);
	if (!rc)
		rc = redis_know_all(r, err);
	if (!rc)
		rc = rcalls_run(r, err);
	if (!rc && conf->poke)
		rc = watch_start(&r->watch, &r->conf.wire, r->channel, r->self, conf->poke,
				 conf->poke_arg, err);
	if (rc) {
		(void)redis_close(&r->engine); /* what was first says more */
		return rc;
	}
	tell_durability(r);
	*found = (struct engine_found){ .now = conf->wall, .highest_id = highest };
	*out = &r->engine;
	return 0;
}

/* When something falls due in a queue, by our own clock. */
static slu_time
due_at(const struct redis *r, uint32_t h)
{
	const slu_time due = rqueue_at(r, h)->next_due;

	return due == SLU_NEVER ? due : due + r->skew;
}

static int
run_due(struct redis *r, slu_time due, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t h = 0; h < r->queues.used && !rc; h++)
		if (due_at(r, h) <= due)
			rc = redis_tick(r, h, due, err);
	return rc ? rc : rcalls_run(r, err);
}

/* What other nodes have made ready. */
static int
take_news(struct redis *r, struct slu_err *err)
{
	static const struct slice any = { 0 };
	int rc = 0;

	if (!watch_has_news(&r->watch))
		return 0;
	if (watch_take(&r->watch, &r->heard))
		r->outer.ready(r->outer.ready_arg, any, any, 1);
	for (size_t i = 0; i < r->heard.n && !rc; i += strlen(r->heard.p + i) + 1) {
		const char *name = r->heard.p + i, *slash = strchr(name, '/');

		if (redis_hear_freed(r, name) || !slash || !is_ours(r, name, slash))
			continue;
		rc = redis_know(r, name, err);
		if (!rc) /* others may have brought what falls due */
			r->outer.ready(r->outer.ready_arg,
				       (struct slice){ name, (size_t)(slash - name) },
				       slice_of(slash + 1), UINT32_MAX);
	}
	return rc;
}

/* D5 */
static void
note_outcome(struct redis *r, int rc, const struct slu_err *why)
{
	const bool lost = rc == SLU_EDOWN || rc == SLU_EUNKNOWN;

	if (lost && !r->down_until && r->outer.log)
		log_error(r->outer.log, "redis cannot be reached", F_STR("why", why->text));
	if (!lost && r->down_until && r->outer.log)
		log_info(r->outer.log, "redis is back", F_STR("address", r->conf.wire.address));
	r->down_step = !lost ? 0 : r->down_step ? 2 * r->down_step
						: DOWN_FIRST;
	r->down_step = r->down_step < DOWN_MOST ? r->down_step : DOWN_MOST;
	r->down_until = lost ? r->now + r->down_step : 0;
	if (lost)
		r->down_why = *why;
	atomic_store(&r->down, lost);
}

/* Answer all that have none. */
static void
fail_batch(struct op *batch, int rc, const struct slu_err *err)
{
	EACH_OP(op, batch)
	if (!op->rc)
		rcall_fail(&(struct rcall){ .op = op, .to = op->n_items }, rc, err);
}

static int
plan_batch(struct redis *r, struct op *batch, struct slu_err *err)
{
	int rc = 0;

	EACH_OP(op, batch)
	{
		if (!rc)
			rc = redis_plan(r, op, err);
		if (rc)
			rcall_fail(&(struct rcall){ .op = op, .to = op->n_items }, rc, err);
	}
	return rc;
}

static int
redis_run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	struct redis *r = of_engine(e);
	int rc, first;

	r->now = now;
	r->budget = ENGINE_DUE_MAX;
	EACH_OP(op, batch)
	{
		op->rc = 0;
		op->lock.why = LOCK_OK;
		op->elsewhere[0] = '\0';
		op->engine = e;
	}
	if (r->down_until > now) {
		fail_batch(batch, SLU_EDOWN, &r->down_why);
		return 0;
	}
	first = plan_batch(r, batch, err);
	rc = rcalls_run(r, err);
	rc = first ? first : rc;
	if (!rc)
		rc = take_news(r, err);
	if (!rc)
		rc = run_due(r, due, err);
	note_outcome(r, rc, err);
	return 0;
}

static slu_time
redis_next_due(struct engine *e)
{
	const struct redis *r = of_engine(e);
	slu_time first = watch_has_news(&r->watch) ? 0 : SLU_NEVER;

	for (uint32_t h = 0; h < r->queues.used; h++)
		if (due_at(r, h) < first)
			first = due_at(r, h);
	return first > r->down_until ? first : r->down_until;
}

static int
redis_health(struct engine *e, struct slu_err *err)
{
	struct redis *r = of_engine(e);

	if (!atomic_load(&r->down))
		return 0;
	return slu_fail(err, SLU_EDOWN, "redis %s cannot be reached", r->conf.wire.address);
}

static int
redis_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	   bool may_block, struct slu_err *err)
{
	const struct piece *p = ref->pin;

	(void)e;
	(void)may_block; /* it never has to wait */
	if (at > p->size || n > p->size - at)
		return slu_fail(err, SLU_EINVAL, "%zu bytes at %" PRIu64 " of %u", n, at, p->size);
	memcpy(out, p->bytes + at, n);
	return 0;
}

static void
redis_unpin(struct engine *e, struct op_ref *ref)
{
	(void)e;
	mem_free(ref->pin);
	ref->pin = NULL;
}

const struct engine_ops engine_redis = {
	.name = "redis",
	.durable = true,
	.shared = true,
	.open = redis_open,
	.close = redis_close,
	.run = redis_run,
	.next_due = redis_next_due,
	.health = redis_health,
	.read = redis_read,
	.unpin = redis_unpin,
};
