/*
 * plan.c - which calls an op takes, and of which queues.
 */
#include "engine/redis/redis_in.h"

#include "base/mem.h"

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

/* ---- Which queue ---- */

static bool
is_spelling(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING && reply->len <= MESSAGE_NAME_MAX &&
	       strlen(reply->str) == (size_t)reply->len;
}

/* One word of the first spelling that somebody used: HSETNX, then what is there. */
static int
spell(struct redis *r, struct slice field, struct slice as, char **out, struct slu_err *err)
{
	const struct slice set[] = { SLICE("HSETNX"), slice_of(r->spelled), field, as };
	const struct slice get[] = { SLICE("HGET"), slice_of(r->spelled), field };
	redisReply *reply = NULL;
	int rc = as.n ? redis_ask(r, set, 4, "n", &reply, err) : 0;

	if (reply)
		freeReplyObject(reply);
	reply = NULL;
	if (!rc)
		rc = redis_ask(r, get, 3, "T", &reply, err);
	mem_free(*out);
	*out = !rc && is_spelling(reply) ? mem_strdup(reply->str) : NULL;
	if (reply)
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

/* The queue is in the list of all, and has a spelling. */
static int
list_queue(struct redis *r, struct slice space, struct slice queue, const struct spelling *as,
	   struct slu_err *err)
{
	char member[2 * MESSAGE_NAME_MAX + 2], score[24];
	redisReply *reply = NULL;
	uint32_t h;
	int rc = rqueue_open(r, space, queue, &h);

	if (rc)
		return slu_fail(err, rc, "no memory for a queue");
	if (rqueue_at(r, h)->listed)
		return 0;
	(void)snprintf(member, sizeof member, "%.*s/%.*s", (int)space.n, space.p, (int)queue.n,
		       queue.p);
	(void)snprintf(score, sizeof score, "%" PRId64, redis_us(r->now));
	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("ZADD"), slice_of(r->listing), SLICE("NX"),
					       slice_of(score), slice_of(member) },
		       5, "n", &reply, err);
	if (reply)
		freeReplyObject(reply);
	if (!rc)
		rc = redis_spell(r, h, as, err);
	rqueue_at(r, h)->listed = rc == 0;
	rqueue_at(r, h)->gone = false;
	return rc;
}

/* It was deleted by another node, and made anew by this one, which took it for listed. */
void
redis_list_anew(struct redis *r)
{
	struct slu_err err;

	for (uint32_t h = 0; h < r->queues.used && r->anew; h++) {
		struct rqueue *q = rqueue_at(r, h);

		if (!q->anew)
			continue;
		q->listed = false;
		if (list_queue(r, slice_of(q->space), slice_of(q->name),
			       &(struct spelling){ slice_of(q->space_shown ? q->space_shown : ""),
						   slice_of(q->shown ? q->shown : "") },
			       &err))
			return; /* with the next run */
		q->anew = false;
		r->anew--;
	}
}

/* Does the queue have that message? */
static int
has_message(struct redis *r, const struct rqueue *q, uint64_t id, bool *out,
	    struct slu_err *err)
{
	char key[1024], field[24];
	redisReply *reply = NULL;
	int rc;

	(void)snprintf(key, sizeof key, "%smsg", q->base);
	(void)snprintf(field, sizeof field, "%" PRIu64, id);
	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("HEXISTS"), slice_of(key), slice_of(field) },
		       3, "n", &reply, err);
	*out = !rc && reply_int(reply) == 1;
	if (!rc && !*out) {
		freeReplyObject(reply);
		(void)snprintf(key, sizeof key, "%sresults", q->base);
		rc = redis_ask(r,
			       (const struct slice[]){ SLICE("HEXISTS"), slice_of(key),
						       slice_of(field) },
			       3, "n", &reply, err);
		*out = !rc && reply_int(reply) == 1;
	}
	if (!rc)
		freeReplyObject(reply);
	return rc;
}

/* The queue of a message of which only the namespace is known; SLAB_NONE: there is none. */
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

static const struct spelling *
spelled_as(const struct op *op, const struct op_put *put)
{
	return put->as.queue.n ? &put->as : &op->as;
}

/* Do all puts go to one queue? Where they name none, it is that of the op. */
static bool
is_for_one(const struct op *op)
{
	for (uint32_t i = 1; i < op->n_puts; i++) {
		const struct message *a = &op->puts[i - 1].m, *b = &op->puts[i].m;

		if (!slice_eq(a->queue.n ? a->queue : op->queue, b->queue.n ? b->queue : op->queue) ||
		    !slice_eq(a->space.n ? a->space : op->space, b->space.n ? b->space : op->space))
			return false;
	}
	return true;
}

static int
plan_puts(struct redis *r, struct op *op, struct slu_err *err)
{
	struct rcall *c;
	int rc = 0;

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
		m->space = m->space.n ? m->space : op->space;
		m->queue = m->queue.n ? m->queue : op->queue;
		op->failed = i;
		rc = message_check(m, &r->why);
		if (rc) {
			op_fail(op, rc, &r->why);
			return 0;
		}
		rc = redis_ids_note(r, m->id, err);
		if (!rc)
			rc = list_queue(r, m->space, m->queue, spelled_as(op, &op->puts[i]), err);
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

/* Is it one of those that the op names, by namespace, queue or neither? Lock keys are not messages:
 * they are shown to who asks for them. */
static bool
is_shown(const struct rqueue *q, const struct op *op)
{
	if (q->gone || (op->space.n && !slice_eq(slice_of(q->space), op->space)))
		return false;
	return op->queue.n ? slice_eq(slice_of(q->name), op->queue)
			   : strcmp(q->name, LOCK_QUEUE) != 0;
}

/* A queue that another node may have made meanwhile; SLAB_NONE: there is none. */
static int
find_queue(struct redis *r, struct slice space, struct slice queue, uint32_t *out,
	   struct slu_err *err)
{
	char member[2 * MESSAGE_NAME_MAX + 2];
	redisReply *reply = NULL;
	int rc;

	*out = rqueue_find(r, space, queue);
	if ((*out != SLAB_NONE && !rqueue_at(r, *out)->gone) || space.n == 0 || queue.n == 0)
		return 0;
	(void)snprintf(member, sizeof member, "%.*s/%.*s", (int)space.n, space.p, (int)queue.n,
		       queue.p);
	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("ZSCORE"), slice_of(r->listing),
					       slice_of(member) },
		       3, "T", &reply, err);
	if (!rc && reply->type == REDIS_REPLY_STRING)
		rc = redis_know(r, member, err);
	if (reply)
		freeReplyObject(reply);
	*out = rqueue_find(r, space, queue);
	if (*out != SLAB_NONE && rqueue_at(r, *out)->gone)
		*out = SLAB_NONE;
	return rc;
}

/* V1: what is said to live elsewhere has to have a mark. */
int
redis_find_queue(struct redis *r, const struct op *op, struct slice space,
		 struct slice queue, uint32_t *out, struct slu_err *err)
{
	const bool moved = op->epoch && op->lives && *op->lives && queue.n;
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

static int
plan_queue(struct redis *r, struct op *op, struct slu_err *err)
{
	uint32_t h;
	const int rc = redis_find_queue(r, op, op->space, op->queue, &h, err);

	op->n_rows = op->n_queues = 0;
	op->count = 0;
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
	struct op_meet *const meet = op->on_shard.meet;
	int rc;

	op->cursor = 0;
	op->on_shard = (struct op_shard){
		.meet = meet,
		.disk_free = -1,
		.store = store_take(&r->store),
		.forgotten = r->forgotten,
	};
	if (meet)
		return redis_meet(r, meet, err);
	rc = redis_know_all(r, err);
	for (uint32_t h = 0; h < r->queues.used && !rc; h++)
		if (!rqueue_at(r, h)->gone)
			rc = plan_one(r, op, h, &r->ignored, err);
	return rc;
}

/* Of all queues, one after the other: which, above LIST_BITS of the cursor. */
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
plan_backup(struct redis *r, struct op *op, struct slu_err *err)
{
	(void)err;
	redis_refuse(r, op, SLU_EINVAL, "engine redis keeps no files: there is nothing to copy");
	return 0;
}

/* Out of the list, unless another node has made it anew meanwhile: that may have been before or
 * after, so it is looked for when the name is out. */
static int
unlist_queue(struct redis *r, uint32_t h, struct slu_err *err)
{
	struct rqueue *q = rqueue_at(r, h);
	char member[2 * MESSAGE_NAME_MAX + 2], key[1024];
	redisReply *reply = NULL;
	int rc;

	(void)snprintf(member, sizeof member, "%s/%s", q->space, q->name);
	(void)snprintf(key, sizeof key, "%smeta", q->base);
	rc = redis_ask(r,
		       (const struct slice[]){ SLICE("ZREM"), slice_of(r->listing), slice_of(member) },
		       3, "n", &reply, err);
	if (!rc) {
		freeReplyObject(reply);
		rc = redis_ask(r,
			       (const struct slice[]){ SLICE("HDEL"), slice_of(r->spelled),
						       slice_of(member) },
			       3, "n", &reply, err);
	}
	if (!rc) {
		freeReplyObject(reply);
		rc = redis_ask(r, (const struct slice[]){ SLICE("EXISTS"), slice_of(key) }, 2, "n",
			       &reply, err);
	}
	if (rc)
		return rc;
	if (reply_int(reply) == 1) {
		r->anew += !q->anew;
		q->anew = true;
	} else {
		rqueue_forget(r, h);
		mem_free(q->shown);
		q->shown = NULL;
	}
	freeReplyObject(reply);
	return 0;
}

/* At once, so that an op behind it in the batch finds the queue gone. */
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
	[OP_ASIDE] = plan_items,
	[OP_GET] = plan_id,
	[OP_RESULT] = plan_id,
	[OP_PEEK] = plan_queue,
	[OP_WATCH] = plan_queue,
	[OP_LIST] = plan_list,
	[OP_STATS] = plan_queue,
	[OP_TOPICS] = plan_topics,
	[OP_PURGE] = plan_queue,
	[OP_PAUSE] = plan_queue,
	[OP_POLICY_GET] = plan_queue,
	[OP_POLICY_SET] = plan_policy_set,
	[OP_FORGET] = plan_forget,
	[OP_BACKUP] = plan_backup,
	[OP_SHARD] = plan_shard,
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

int
redis_plan(struct redis *r, struct op *op, struct slu_err *err)
{
	return plans[op->verb](r, op, err);
}
