/*
 * redis.c - the Redis engine.
 */
#include "engine/redis/redis_private.h"

#include "base/hash.h"
#include "base/mem.h"
#include "core/supplier.h"
#include "engine/redis/replybytes.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	NOTICES_MAX = 2 << 20
};

/* How often the servers' settings are checked; a weakened setting is noticed within twice that. */
#define JUDGE_EVERY (5 * SLU_SEC)

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
	rstore_stop(&r->store);
	buf_release(&r->notices);
	rnodes_release(&r->nodes);
	rqueues_release(r);
	pthread_mutex_destroy(&r->mtx);
	mem_free(r->calls);
	mem_free(r);
	return 0;
}

/* Whether the queue belongs to this lane: each lane has its part of the queues. */
static bool
is_ours(const struct redis *r, const char *name, const char *slash)
{
	const struct slice space = { name, (size_t)(slash - name) };

	return r->outer.lanes < 2 ||
	       supplier_hash(space, slice_of(slash + 1)) % r->outer.lanes == r->outer.lane;
}

/* Whether both names are valid. Keys are made of names, so other entries are not queues. */
static bool
are_names(const char *name, const char *slash)
{
	const size_t space = (size_t)(slash - name), queue = strlen(slash + 1);

	return space > 0 && space <= MESSAGE_NAME_MAX && queue > 0 && queue <= MESSAGE_NAME_MAX;
}

int
redis_know(struct redis *r, const char *name, struct slu_err *err)
{
	const char *slash = strchr(name, '/');
	uint32_t h;
	int rc;

	if (!slash || !are_names(name, slash) || !is_ours(r, name, slash))
		return 0;
	if (rqueue_open(r, (struct slice){ name, (size_t)(slash - name) }, slice_of(slash + 1), &h))
		return slu_fail(err, SLU_ENOMEM, "no memory for a queue");
	if (rqueue_at(r, h)->listed)
		return 0;
	rc = redis_spell(r, h, &(struct spelling){ 0 }, err);
	rqueue_at(r, h)->listed = rc == 0;
	rqueue_at(r, h)->gone = false;
	return rc ? rc : redis_tick(r, h, r->now, err);
}

/* Forgets queues that another node has deleted. */
static void
miss_queues(struct redis *r)
{
	for (uint32_t h = 0; h < r->queues.used; h++) {
		const struct rqueue *q = rqueue_at(r, h);

		if (q->listed && !q->there && !q->recreated)
			rqueue_forget(r, h);
	}
}

static int
know_listed(struct redis *r, const redisReply *names, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t h = 0; h < r->queues.used; h++)
		rqueue_at(r, h)->there = false;
	for (size_t i = 0; !rc && i < names->elements; i++) {
		const char *name = names->element[i]->str, *slash = strchr(name, '/');
		uint32_t h;

		rc = redis_know(r, name, err);
		h = slash ? rqueue_find(r, (struct slice){ name, (size_t)(slash - name) },
					slice_of(slash + 1))
			  : SLAB_NONE;
		if (h != SLAB_NONE)
			rqueue_at(r, h)->there = true;
	}
	if (!rc)
		miss_queues(r);
	return rc;
}

int
redis_know_all(struct redis *r, struct slu_err *err)
{
	redisReply *reply;
	int rc = redis_ask(r, WORDS(SLICE("ZRANGE"), slice_of(r->listing), SLICE("0"), SLICE("-1")),
			   "[(t)]", &reply, err);

	if (!rc)
		rc = know_listed(r, reply, err);
	freeReplyObject(reply);
	return rc;
}

static int
check_prefix(const char *prefix, struct slu_err *err)
{
	if (strlen(prefix) >= REDIS_PREFIX)
		return slu_fail(err, SLU_EINVAL, "invalid redis.prefix: %s; expected at most %d bytes",
				prefix, REDIS_PREFIX - 1);
	if (strpbrk(prefix, "{}"))
		return slu_fail(err, SLU_EINVAL, "invalid redis.prefix: %s; expected no braces", prefix);
	return 0;
}

static const char *
prefix_of(const struct redis_conf *conf)
{
	return conf->prefix ? conf->prefix : "sluice";
}

static const char *
shard_of(const struct engine_conf *conf)
{
	return conf->shard ? conf->shard : "default";
}

static int
check_names(const struct engine_conf *conf, struct slu_err *err)
{
	const int rc = check_prefix(prefix_of(conf->options), err);

	if (rc)
		return rc;
	if (strlen(shard_of(conf)) >= MOVE_SHARD)
		return slu_fail(err, SLU_EINVAL, "invalid shard name: %s; expected at most %d bytes",
				shard_of(conf), MOVE_SHARD - 1);
	return 0;
}

int
redis_check(const struct engine_conf *conf, struct slu_err *err)
{
	const struct redis_conf *const own = conf->options;
	const int rc = check_names(conf, err);

	return rc ? rc : rwire_check(&own->wire, err);
}

static int
name_keys(struct redis *r, struct slu_err *err)
{
	const char *const prefix = prefix_of(&r->conf);
	const char *const shard = shard_of(&r->outer);
	const int rc = check_names(&r->outer, err);

	if (rc)
		return rc;
	r->conf.prefix = prefix;
	if (strcmp(shard, "default") != 0)
		(void)snprintf(r->segment, sizeof r->segment, ":s:%s", shard);
	(void)snprintf(r->counter, sizeof r->counter, "%s:counter", prefix);
	(void)snprintf(r->ids, sizeof r->ids, "%s:ids", prefix);
	(void)snprintf(r->listing, sizeof r->listing, "%s:queues%s", prefix, r->segment);
	(void)snprintf(r->channel, sizeof r->channel, "%s:ready%s", prefix, r->segment);
	(void)snprintf(r->spelled, sizeof r->spelled, "%s:spelled", prefix);
	return 0;
}

static int
roll_dice(struct redis *r, struct slu_err *err)
{
	int rc = hash_random(&r->random, sizeof r->random, err);

	r->random |= 1;
	if (!rc)
		rc = hash_random(&r->op_id, sizeof r->op_id, err);
	r->self = r->op_id;
	r->op_id >>= 16; /* leaves room to count up */
	return rc;
}

/* Finds the servers, the highest id and the queues. */
static int
look_around(struct redis *r, uint64_t *highest, struct slu_err *err)
{
	int rc;

	r->nodes.now = r->now;
	rc = rnodes_open(&r->nodes, err);
	r->conf.tags |= r->nodes.cluster; /* before the first queue is named */
	if (!rc)
		rc = redis_ids_open(r, highest, err);
	if (!rc)
		rc = redis_know_all(r, err);
	if (!rc)
		rc = rcalls_run(r, err);
	for (uint32_t i = 0; i < r->nodes.n && !rc; i++)
		if (r->nodes.all[i]->listed)
			(void)rnode_ready(&r->nodes, r->nodes.all[i], NULL); /* redis_report_health reports it */
	redis_report_health(r);
	if (!rc)
		redis_check_clients(r);
	if (rc == SLU_EUNKNOWN) /* these commands change no message */
		rc = (int)(err->code = SLU_EDOWN);
	return rc;
}

/* A slot of a cluster has one master, and a call goes to one. */
static struct engine_found
found_of(const struct redis *r, uint64_t highest)
{
	return (struct engine_found){
		.now = r->now,
		.highest_id = highest,
		.one_queue = r->nodes.cluster,
	};
}

static int
redis_open(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	   struct slu_err *err)
{
	struct redis *r = mem_zalloc(sizeof *r);
	uint64_t highest = 0;
	int rc;

	if (!r)
		return slu_fail(err, SLU_ENOMEM, "no memory for an engine");
	r->engine.ops = &engine_redis;
	r->conf = *(const struct redis_conf *)conf->options;
	r->outer = *conf;
	r->now = conf->wall;
	r->budget = 0;                     /* open handles nothing that is due */
	pthread_mutex_init(&r->mtx, NULL); /* cannot fail with these attributes */
	buf_init(&r->notices, NOTICES_MAX);
	rnodes_init(&r->nodes, &r->conf.wire);
	rqueues_init(r);
	rc = name_keys(r, err);
	if (!rc)
		rc = roll_dice(r, err);
	if (!rc)
		rc = look_around(r, &highest, err);
	if (rc == SLU_EDOWN && conf->late) {
		r->unmet = *err;
		rc = 0;
	}
	if (!rc && conf->poke)
		rc = watch_start(&r->watch, &r->conf.wire, r->channel, r->self, conf->poke,
				 conf->poke_arg, err);
	r->judge_at = SLU_NEVER;
	if (!rc && conf->poke && conf->lane == 0) {
		r->judge_at = r->now + JUDGE_EVERY;
		rc = rstore_start(&r->store, &r->conf.wire, err);
	}
	if (rc) {
		(void)redis_close(&r->engine); /* the first error is returned */
		return rc;
	}
	*found = found_of(r, highest);
	*out = &r->engine;
	return 0;
}

/* REDIS-12 */
static int
redis_reopen(struct engine *e, const struct engine_conf *conf, struct engine_found *found,
	     struct slu_err *err)
{
	struct redis *r = of_engine(e);
	uint64_t highest = 0;
	int rc;

	r->now = conf->wall;
	r->budget = 0; /* only look */
	rc = look_around(r, &highest, err);
	if (rc)
		return rc;
	r->unmet.code = SLU_OK;
	*found = found_of(r, highest);
	return 0;
}

/* When a queue has something due, by our own clock; not while its server is down. */
static slu_time
due_at(const struct redis *r, uint32_t h)
{
	const struct rqueue *q = rqueue_at(r, h);
	const slu_time due = q->next_due == SLU_NEVER ? SLU_NEVER : redis_later(q->next_due, r->skew);
	const slu_time up = rnodes_up_at(&r->nodes, q->slot);

	return due > up ? due : up;
}

static void
run_due(struct redis *r, slu_time due)
{
	struct slu_err err;
	int rc = 0;

	for (uint32_t h = 0; h < r->queues.used && !rc; h++)
		if (due_at(r, h) <= due)
			rc = redis_tick(r, h, due, &err);
	(void)rcalls_run(r, &err); /* the rest stays due */
}

/* Handles notices of other nodes. */
static void
take_news(struct redis *r)
{
	static const struct slice any = { 0 };
	struct slu_err err;

	if (!watch_has_news(&r->watch))
		return;
	if (watch_take(&r->watch, &r->notices))
		r->outer.ready(r->outer.ready_arg, any, any, 1);
	for (size_t i = 0; i < r->notices.n; i += strlen(r->notices.p + i) + 1) {
		const char *name = r->notices.p + i, *slash = strchr(name, '/');

		if (*name == '=') {
			redis_notice_leases(r, strchr(name, ':') + 1);
			continue;
		}
		if (redis_notice_freed(r, name) || !slash || !is_ours(r, name, slash))
			continue;
		(void)redis_know(r, name, &err); /* an op for the queue tries again */
		r->outer.ready(r->outer.ready_arg, (struct slice){ name, (size_t)(slash - name) },
			       slice_of(slash + 1), UINT32_MAX);
	}
}

static void
plan_batch(struct redis *r, struct op *batch)
{
	EACH_OP(op, batch)
	{
		struct slu_err err;
		const int rc = redis_plan(r, op, &err);

		if (rc)
			rcall_fail(&(struct rcall){ .op = op, .to = op->n_items }, rc, &err);
	}
}

/* One lane checks for all lanes: they have the same servers. */
static void
judge_servers(struct redis *r)
{
	if (r->now < r->judge_at)
		return;
	r->nodes.now = r->now;
	rnodes_judge(&r->nodes);
	r->judge_at = r->now + JUDGE_EVERY;
}

static int
redis_run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	struct redis *r = of_engine(e);

	if (r->unmet.code) {
		*err = r->unmet;
		return SLU_EDOWN;
	}
	r->now = now;
	r->budget = ENGINE_DUE_MAX;
	EACH_OP(op, batch)
	{
		op->rc = 0;
		if (op_is_of(op->verb, OP_OF_LOCK)) /* other verbs have their own part there */
			op->lock.why = LOCK_OK;
		op->home.elsewhere[0] = '\0';
		op->engine = e;
	}
	plan_batch(r, batch);
	(void)rcalls_run(r, err); /* the ops have the failures */
	take_news(r);
	run_due(r, due);
	judge_servers(r);
	redis_list_recreated(r);
	redis_report_health(r);
	return 0;
}

static slu_time
redis_next_due(struct engine *e)
{
	const struct redis *r = of_engine(e);
	slu_time first = watch_has_news(&r->watch) ? 0 : r->judge_at;

	if (r->unmet.code)
		return 0;
	for (uint32_t h = 0; h < r->queues.used; h++)
		if (due_at(r, h) < first)
			first = due_at(r, h);
	return first;
}

static int
redis_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	   bool may_block, struct slu_err *err)
{
	const struct replybytes *p = ref->pin;

	(void)e;
	(void)may_block; /* the bytes are in memory */
	if (at > p->size || n > p->size - at)
		return slu_fail(err, SLU_EINVAL, "invalid range: %zu bytes at %" PRIu64 " of %u", n, at, p->size);
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
	.doc = "in a Redis server",
	.durable = true,
	.shared = true,
	.options = &redis_options,
	.open = redis_open,
	.reopen = redis_reopen,
	.close = redis_close,
	.run = redis_run,
	.next_due = redis_next_due,
	.health = redis_health,
	.warnings = redis_warnings,
	.read = redis_read,
	.unpin = redis_unpin,
};
