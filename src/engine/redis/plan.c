/*
 * plan.c - plans the calls of an op and finds its queues.
 */
#include "engine/redis/redis_private.h"

#include "base/mem.h"
#include "core/reserved.h"

#include <inttypes.h>
#include <stdio.h>

int
redis_tick(struct redis *r, uint32_t queue, slu_time due, struct slu_err *err)
{
	struct rcall *c = rcall_add(r, &redis_tick_verb, NULL, queue);

	if (!c)
		return slu_fail(err, SLU_ENOMEM, "no memory for a call");
	c->came = r->now - due;
	return 0;
}

/* ---- Queues ---- */

static bool
is_spelling(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING && reply->len <= MESSAGE_NAME_MAX &&
	       strlen(reply->str) == (size_t)reply->len;
}

/* The first spelling of a name: HSETNX, then the stored value. */
static int
spell(struct redis *r, struct slice field, struct slice as, char **out, struct slu_err *err)
{
	const struct slice key = slice_of(r->spelled);
	redisReply *reply = NULL;
	int64_t set;
	int rc = as.n ? redis_ask_number(r, WORDS(SLICE("HSETNX"), key, field, as), &set, err) : 0;

	if (!rc)
		rc = redis_ask(r, WORDS(SLICE("HGET"), key, field), "T", &reply, err);
	mem_free(*out);
	*out = !rc && is_spelling(reply) ? mem_strdup(reply->str) : NULL;
	freeReplyObject(reply);
	return rc;
}

int
redis_spell(struct redis *r, uint32_t queue, const struct spelling *as, struct slu_err *err)
{
	struct rqueue *q = rqueue_at(r, queue);
	char field[2 * MESSAGE_NAME_MAX + 2];
	int rc = spell(r, slice_of(q->space), as->space, &q->space_shown, err);

	(void)snprintf(field, sizeof field, "%s/%s", q->space, q->name);
	return rc ? rc : spell(r, slice_of(field), as->queue, &q->shown, err);
}

/* Adds the queue to the list of all queues, with its spelling. */
static int
list_queue(struct redis *r, struct slice space, struct slice queue, const struct spelling *as,
	   struct slu_err *err)
{
	char member[2 * MESSAGE_NAME_MAX + 2], score[24];
	int64_t added;
	uint32_t h;
	int rc = rqueue_open(r, space, queue, &h);

	if (rc)
		return slu_fail(err, rc, "no memory for a queue");
	if (rqueue_at(r, h)->listed)
		return 0;
	(void)snprintf(member, sizeof member, "%.*s/%.*s", (int)space.n, space.p, (int)queue.n,
		       queue.p);
	(void)snprintf(score, sizeof score, "%" PRId64, redis_us(r->now));
	rc = redis_ask_number(r,
			      WORDS(SLICE("ZADD"), slice_of(r->listing), SLICE("NX"), slice_of(score),
				    slice_of(member)),
			      &added, err);
	if (!rc)
		rc = redis_spell(r, h, as, err);
	rqueue_at(r, h)->listed = rc == 0;
	rqueue_at(r, h)->gone = false;
	return rc;
}

/* Another node deleted the queue, and this one created it again and still took it for
 * listed. */
void
redis_list_recreated(struct redis *r)
{
	struct slu_err err;

	for (uint32_t h = 0; h < r->queues.used && r->recreated; h++) {
		struct rqueue *q = rqueue_at(r, h);

		if (!q->recreated)
			continue;
		q->listed = false;
		if (list_queue(r, slice_of(q->space), slice_of(q->name),
			       &(struct spelling){ slice_of(q->space_shown ? q->space_shown : ""),
						   slice_of(q->shown ? q->shown : "") },
			       &err))
			return; /* the next run tries again */
		q->recreated = false;
		r->recreated--;
	}
}

/* Whether the queue has that message, or its result. */
static int
has_message(struct redis *r, const struct rqueue *q, uint64_t id, bool *out,
	    struct slu_err *err)
{
	static const char *const hashes[] = { "msg", "results" };
	char key[1024], field[24];
	int64_t found = 0;
	int rc = 0;

	(void)snprintf(field, sizeof field, "%" PRIu64, id);
	for (int i = 0; i < 2 && !rc && found != 1; i++) {
		(void)snprintf(key, sizeof key, "%s%s", q->base, hashes[i]);
		rc = redis_ask_number(r, WORDS(SLICE("HEXISTS"), slice_of(key), slice_of(field)), &found,
				      err);
	}
	*out = found == 1;
	return rc;
}

/* Finds the queue of a message by namespace and id; SLAB_NONE if no queue has it. */
static int
locate(struct redis *r, struct slice space, uint64_t id, uint32_t *out, struct slu_err *err)
{
	bool found = false;
	int rc = redis_know_all(r, err);

	*out = SLAB_NONE;
	for (uint32_t h = 0; h < r->queues.used && !rc && !found; h++) {
		const struct rqueue *q = rqueue_at(r, h);

		if (!slice_eq(slice_of(q->space), space))
			continue;
		rc = has_message(r, q, id, &found, err);
		if (found)
			*out = h;
	}
	return rc;
}

/* ---- Plans ---- */

static int
no_memory(struct slu_err *err)
{
	return slu_fail(err, SLU_ENOMEM, "no memory for a call");
}

static void
add_queue(const struct redis *r, struct rcall *c, uint32_t h)
{
	if (rqueue_at(r, h)->call == c->id)
		return;
	rqueue_at(r, h)->call = c->id;
	c->queues[c->n_queues++] = h;
}

/* Whether all puts are for one queue. */
static bool
is_for_one(const struct op *op)
{
	for (uint32_t i = 1; i < op->n_puts; i++) {
		const struct message *a = &op->puts[i - 1].m, *b = &op->puts[i].m;

		if (!slice_eq(a->queue, b->queue) || !slice_eq(a->space, b->space))
			return false;
	}
	return true;
}

static int
plan_puts(struct redis *r, struct op *op, struct slu_err *err)
{
	struct rcall *c;
	int rc = 0;

	op_name_puts(op);
	if (r->nodes.cluster && !is_for_one(op)) {
		redis_refuse(r, op, SLU_EINVAL,
			     "a cluster takes a call for several queues neither whole nor not at all");
		return 0;
	}
	for (uint32_t i = 0; i < op->n_puts && !rc; i++) {
		struct message *m = &op->puts[i].m;
		uint32_t h;

		if (op->puts[i].taken)
			continue;
		op_begin_put(&op->puts[i]);
		op->failed = i;
		rc = redis_check_share(m, &r->why);
		if (!rc)
			rc = message_check(m, &r->why);
		if (rc) {
			op_fail(op, rc, &r->why);
			return 0;
		}
		rc = redis_ids_note(r, m->id, err);
		if (!rc)
			rc = list_queue(r, m->space, m->queue, &op->puts[i].as, err);
		h = rqueue_find(r, m->space, m->queue);
		if (!rc)
			rc = rqueue_add_prio(rqueue_at(r, h), m->prio);
	}
	c = rc ? NULL : rcall_add(r, &redis_verbs[OP_ENQUEUE], op, 0);
	if (!c)
		return rc ? rc : no_memory(err);
	c->queues = mem_array(op->n_puts ? op->n_puts : 1, sizeof *c->queues);
	if (!c->queues)
		return no_memory(err);
	c->n_queues = 0;
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (!op->puts[i].taken)
			add_queue(r, c, rqueue_find(r, op->puts[i].m.space, op->puts[i].m.queue));
	return 0;
}

int
redis_make_queue(struct redis *r, const struct op *op, uint32_t *out, struct slu_err *err)
{
	const int rc = list_queue(r, op->space, op->queue, &op->as, err);

	*out = rc ? SLAB_NONE : rqueue_find(r, op->space, op->queue);
	return rc;
}

/* Whether the op includes the queue, by namespace, queue or neither. The queue of lock keys is
 * included only if the op names it. */
static bool
is_shown(const struct rqueue *q, const struct op *op)
{
	if (q->gone || (op->space.n && !slice_eq(slice_of(q->space), op->space)))
		return false;
	return op->queue.n ? slice_eq(slice_of(q->name), op->queue)
			   : strcmp(q->name, LOCK_QUEUE) != 0;
}

/* Finds a queue that another node may have created; SLAB_NONE if no node has. */
static int
find_queue(struct redis *r, struct slice space, struct slice queue, uint32_t *out,
	   struct slu_err *err)
{
	char member[2 * MESSAGE_NAME_MAX + 2];
	redisReply *reply;
	int rc;

	*out = rqueue_find(r, space, queue);
	if ((*out != SLAB_NONE && !rqueue_at(r, *out)->gone) || space.n == 0 || queue.n == 0)
		return 0;
	(void)snprintf(member, sizeof member, "%.*s/%.*s", (int)space.n, space.p, (int)queue.n,
		       queue.p);
	rc = redis_ask(r, WORDS(SLICE("ZSCORE"), slice_of(r->listing), slice_of(member)), "T", &reply, err);
	if (!rc && reply->type == REDIS_REPLY_STRING)
		rc = redis_know(r, member, err);
	freeReplyObject(reply);
	*out = rqueue_find(r, space, queue);
	if (*out != SLAB_NONE && rqueue_at(r, *out)->gone)
		*out = SLAB_NONE;
	return rc;
}

/* MOVE-1: a queue that lives elsewhere needs a mark here, so it is created. */
int
redis_find_queue(struct redis *r, const struct op *op, struct slice space,
		 struct slice queue, uint32_t *out, struct slu_err *err)
{
	const bool moved = op->home.epoch && op->home.lives && *op->home.lives && queue.n;
	int rc = find_queue(r, space, queue, out, err);

	if (!rc && *out == SLAB_NONE && moved) {
		rc = list_queue(r, space, queue, &op->as, err);
		*out = rqueue_find(r, space, queue);
	}
	return rc;
}

/* The queue of an item, or SLAB_NONE. */
static int
item_queue(struct redis *r, const struct op *op, struct slice space, struct slice queue,
	   uint64_t id, uint32_t *out, struct slu_err *err)
{
	space = space.n ? space : op->space;
	queue = queue.n ? queue : op->queue;
	if (queue.n == 0)
		return locate(r, space, id, out, err);
	return redis_find_queue(r, op, space, queue, out, err);
}

static uint64_t
item_id(const struct op *op, uint32_t i)
{
	return op->verb == OP_RETURN ? op->rows[i].id : op->items[i].id;
}

static int
plan_items(struct redis *r, struct op *op, struct slu_err *err)
{
	const bool rows = op->verb == OP_RETURN;
	const uint32_t n = rows ? op->n_rows : op->n_items;
	struct rcall *last = NULL;

	for (uint32_t i = 0; i < op->n_items && op->verb == OP_NACK; i++) {
		if (op->items[i].has_prio) {
			redis_refuse(r, op, SLU_EINVAL, "engine redis has no priority in a nack; use engine log");
			return 0;
		}
		if (op->items[i].hold) {
			redis_refuse(r, op, SLU_EINVAL, "engine redis has no holds: retry_after with scope is not supported; use engine log");
			return 0;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct slice none = { 0 };
		uint32_t h;
		int rc;

		if (!rows && op->items[i].taken)
			continue;
		rc = item_queue(r, op, rows ? none : op->items[i].space,
				rows ? none : op->items[i].queue, item_id(op, i), &h, err);
		if (rc)
			return rc;
		if (h == SLAB_NONE) {
			last = NULL;
			if (rows)
				op->rows[i].state = MSG_NONE;
			else
				op->items[i].rc = SLU_ENOTFOUND;
			continue;
		}
		if (last && last->queue == h && last->to == i) {
			last->to++;
			continue;
		}
		last = rcall_add(r, &redis_verbs[op->verb], op, h);
		if (!last)
			return no_memory(err);
		last->from = i;
		last->to = i + 1;
	}
	return 0;
}

static int
plan_one(struct redis *r, struct op *op, uint32_t queue, struct op_queue *stats,
	 struct slu_err *err)
{
	struct rcall *c = rcall_add(r, &redis_verbs[op->verb], op, queue);

	if (!c)
		return no_memory(err);
	c->stats = stats;
	return 0;
}

static int
plan_id(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h;
	const int rc = item_queue(r, op, op->space, op->queue, op->id, &h, err);

	op->n_rows = 0;
	op->result = (struct op_ref){ 0 };
	if (rc)
		return rc;
	if (h != SLAB_NONE)
		return plan_one(r, op, h, NULL, err);
	op_fail(op, SLU_ENOTFOUND, NULL);
	return 0;
}

/* What the script does not do: a claim of one message, a peek at delayed ones. */
static bool
is_beyond_script(const struct op *op)
{
	return (op->verb == OP_CLAIM && (op->claim.id || op->claim.kinds.n)) || (op->verb == OP_PEEK && op->state == MSG_DELAYED);
}

static int
plan_queue(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h;
	const int rc = redis_find_queue(r, op, op->space, op->queue, &h, err);

	if (is_beyond_script(op)) {
		redis_refuse(r, op, SLU_EINVAL, "engine redis has no claims by id or kind and no order of delayed messages; use engine log");
		return 0;
	}
	op->n_rows = op->n_queues = 0;
	op->count = 0;
	if (op->verb == OP_PAUSE && (op->policy.pause.until || op->policy.pause.reason[0])) {
		redis_refuse(r, op, SLU_EINVAL, "engine redis keeps no reason and no end of a pause; use engine log");
		return 0;
	}
	if (rc)
		return rc;
	if (h != SLAB_NONE) {
		op->n_queues = op->verb == OP_STATS;
		return plan_one(r, op, h, op->queues, err);
	}
	if (op->verb == OP_STATS || op->verb == OP_PAUSE)
		op_fail(op, SLU_ENOTFOUND, NULL);
	if (op->verb == OP_POLICY_GET)
		op->policy = policy_default;
	if (op->verb == OP_WATCH)
		op_watch(op, 0);
	op->cursor = 0;
	return 0;
}

static int
plan_policy_set(struct redis *r, struct op *op, struct slu_err *err)
{
	int rc = policy_check(&op->policy, &r->why);

	if (!rc && op->policy.breakers[0])
		rc = slu_fail(&r->why, SLU_EINVAL, "engine redis has no breakers; use engine log");
	if (!rc && policy_has_limits(&op->policy))
		rc = slu_fail(&r->why, SLU_EINVAL, "engine redis has no limits of concurrency or rate; use engine log");
	if (!rc && op->policy.max_runtime)
		rc = slu_fail(&r->why, SLU_EINVAL, "engine redis has no max_runtime; use engine log");
	if (!rc && (op->policy.warn_age || op->policy.tags[0]))
		rc = slu_fail(&r->why, SLU_EINVAL, "engine redis has no warn_age and no tags; use engine log");
	if (!rc && op->policy.dead_letter_queue[0])
		rc = slu_fail(&r->why, SLU_EINVAL, "engine redis keeps dead letters in their queue: dead_letter_queue is not supported; use engine log");
	if (!rc && op->policy.rules[0])
		rc = slu_fail(&r->why, SLU_EINVAL, "engine redis has no admission rules: rules is not supported; use engine log");
	if (!rc && op->policy.share_weights[0])
		rc = slu_fail(&r->why, SLU_EINVAL, "engine redis has no shares: share_weights is not supported; use engine log");

	if (rc) {
		op_fail(op, rc, &r->why);
		return 0;
	}
	rc = list_queue(r, op->space, op->queue, &op->as, err);
	return rc ? rc : plan_one(r, op, rqueue_find(r, op->space, op->queue), NULL, err);
}

static int
plan_topics(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h = (uint32_t)op->cursor;
	int rc = h ? 0 : redis_know_all(r, err);

	op->n_queues = 0;
	op->cursor = 0;
	for (; !rc && h < r->queues.used; h++) {
		if (!is_shown(rqueue_at(r, h), op))
			continue;
		rc = plan_one(r, op, h, &op->queues[op->n_queues++], err);
		if (op->n_queues == op->max_queues) {
			op->cursor = h + 1ull;
			break;
		}
	}
	return rc;
}

static int
plan_shard(struct redis *r, struct op *op, struct slu_err *err)
{
	int rc;

	op->cursor = 0;
	op->on_shard = (struct op_shard){
		.disk_free = -1,
		.disk_size = -1,
		.store = rstore_take(&r->store),
		.forgotten = r->forgotten,
	};
	rc = redis_know_all(r, err);
	for (uint32_t h = 0; h < r->queues.used && !rc; h++)
		if (!rqueue_at(r, h)->gone)
			rc = plan_one(r, op, h, &r->ignored, err);
	return rc;
}

/* A list over all queues visits one after the other: the cursor has the queue above LIST_BITS. */
enum {
	LIST_BITS = 36
};

static int
plan_list_all(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h = (uint32_t)(op->cursor >> LIST_BITS);
	uint64_t cursor = op->cursor & ((1ull << LIST_BITS) - 1);
	int rc = 0;

	op->n_rows = 0;
	while (h < r->queues.used && op->n_rows < op->max_rows && !rc && !op->rc) {
		op->cursor = cursor;
		if (is_shown(rqueue_at(r, h), op)) {
			rc = plan_one(r, op, h, NULL, err);
			if (!rc)
				rc = rcalls_run(r, err);
			cursor = op->cursor;
		}
		h += cursor == 0;
	}
	op->cursor = h < r->queues.used ? (uint64_t)h << LIST_BITS | cursor : 0;
	return rc;
}

static int
plan_list(struct redis *r, struct op *op, struct slu_err *err)
{
	return op->queue.n ? plan_queue(r, op, err) : plan_list_all(r, op, err);
}

static int
plan_schedule(struct redis *r, struct op *op, struct slu_err *err)
{
	char text[200];

	(void)err;
	(void)snprintf(text, sizeof text, "engine redis has no schedules and no tasks; place the queue %.32s of the namespace on a shard with engine log",
		       slice_eq(op->queue, SLICE(TASK_QUEUE)) ? TASK_QUEUE : SCHEDULE_QUEUE);
	redis_refuse(r, op, SLU_EINVAL, text);
	return 0;
}

/* Removes the queue from the list. Another node may create it again before or after that, so
 * the queue is searched after the removal, and listed again if it exists. */
static int
unlist_queue(struct redis *r, uint32_t h, struct slu_err *err)
{
	struct rqueue *q = rqueue_at(r, h);
	char member[2 * MESSAGE_NAME_MAX + 2], key[1024];
	int64_t n;
	int rc;

	(void)snprintf(member, sizeof member, "%s/%s", q->space, q->name);
	(void)snprintf(key, sizeof key, "%smeta", q->base);
	rc = redis_ask_number(r, WORDS(SLICE("ZREM"), slice_of(r->listing), slice_of(member)), &n, err);
	if (!rc)
		rc = redis_ask_number(r, WORDS(SLICE("HDEL"), slice_of(r->spelled), slice_of(member)), &n, err);
	if (!rc)
		rc = redis_ask_number(r, WORDS(SLICE("EXISTS"), slice_of(key)), &n, err);
	if (rc)
		return rc;
	if (n == 1) {
		r->recreated += !q->recreated;
		q->recreated = true;
	} else {
		rqueue_forget(r, h);
		mem_free(q->shown);
		q->shown = NULL;
	}
	return 0;
}

/* Runs its call at once, so that a later op of the batch finds the queue gone. */
static int
plan_forget(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h;
	int rc = find_queue(r, op->space, op->queue, &h, err);

	op->count = 0;
	op->cursor = 0;
	if (!rc && h == SLAB_NONE) {
		op_fail(op, SLU_ENOTFOUND, NULL);
		return 0;
	}
	if (!rc)
		rc = plan_one(r, op, h, NULL, err);
	if (!rc)
		rc = rcalls_run(r, err);
	return rc || op->rc ? rc : unlist_queue(r, h, err);
}

typedef int plan_fn(struct redis *r, struct op *op, struct slu_err *err);

static plan_fn *const plans[OP_VERBS] = {
	[OP_ENQUEUE] = plan_puts,
	[OP_CLAIM] = plan_queue,
	[OP_RETURN] = plan_items,
	[OP_ACK] = plan_items,
	[OP_NACK] = plan_items,
	[OP_EXTEND] = plan_items,
	[OP_REDRIVE] = plan_items,
	[OP_DELETE] = plan_items,
	[OP_QUARANTINE] = plan_items,
	[OP_GET] = plan_id,
	[OP_RESULT] = plan_id,
	[OP_PEEK] = plan_queue,
	[OP_WATCH] = plan_queue,
	[OP_LIST] = plan_list,
	[OP_STATS] = plan_queue,
	[OP_QUEUES] = plan_topics,
	[OP_PURGE] = plan_queue,
	[OP_PAUSE] = plan_queue,
	[OP_POLICY_GET] = plan_queue,
	[OP_POLICY_SET] = plan_policy_set,
	[OP_FORGET] = plan_forget,
	[OP_SHARD] = plan_shard,
	[OP_PRESENCE] = redis_plan_presence,
	[OP_SCHEDULE] = plan_schedule,
	[OP_MOVE] = redis_plan_move,
	[OP_ACQUIRE] = redis_plan_lock,
	[OP_KEEPALIVE] = redis_plan_lock,
	[OP_RELEASE] = redis_plan_lock,
	[OP_STATE_GET] = redis_plan_lock,
	[OP_STATE_PUT] = redis_plan_lock,
	[OP_STATE_REMOVE] = redis_plan_lock,
	[OP_STATE_META] = redis_plan_lock,
	[OP_DESCRIBE] = redis_plan_lock,
	[OP_KEYS] = redis_plan_lock,
	[OP_ATTACHMENTS] = redis_plan_lock,
};

/* Verbs without a plan. */
static const char *const refusals[OP_VERBS] = {
	[OP_BACKUP] = "engine redis keeps no files: there is nothing to copy",
	[OP_INTAKE] = "engine redis accepts no batches from outside; use engine log",
	[OP_FINISH] = "engine redis enqueues and releases nothing with an ack; use engine log, or do that first",
	[OP_ADJUST] = "engine redis does not change a message that waits; use engine log",
	[OP_WHY] = "engine redis does not say why a message waits; use engine log, or look at the message with its id",
	[OP_LIMITS] = "engine redis has no limits of deliveries, no holds and no counts of priorities; use engine log",
	[OP_HOLD] = "engine redis has no limits of deliveries and no holds; use engine log",
	[OP_TREND] = "engine redis keeps no history of its queues; use engine log, or the metrics",
};

int
redis_plan(struct redis *r, struct op *op, struct slu_err *err)
{
	if (plans[op->verb])
		return plans[op->verb](r, op, err);
	redis_refuse(r, op, SLU_EINVAL, refusals[op->verb]);
	return 0;
}
