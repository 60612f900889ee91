#include "broker/broker.h"

#include "base/mem.h"
#include "broker/shard.h"
#include "core/supplier.h"

#include <assert.h>
#include <stdio.h>

enum {
	OP_BYTES = 256 /* what an op weighs beside its payloads */
};

struct broker {
	struct idgen ids;
	struct meter meter;
	struct quota quota;
	uint32_t n;
	uint32_t open; /* shards that are */
	bool by_hand;
	_Atomic bool draining; /* no enqueue, no claim */
	pthread_mutex_t stop;  /* held by whoever stops */
	bool stopped;          /* under stop */
	struct shard shards[];
};

/* ---- Which shard ---- */

uint32_t
broker_shards(const struct broker *b)
{
	return b->n;
}

uint32_t
broker_shard_of(const struct broker *b, struct slice space, struct slice queue)
{
	return b->n == 1 ? 0 : supplier_hash(space, queue) % b->n;
}

struct engine *
broker_engine_of(const struct broker *b, struct slice space, struct slice queue)
{
	return b->shards[broker_shard_of(b, space, queue)].engine;
}

static bool
lives_on(const struct broker *b, uint32_t shard, const struct op *op, struct slice space,
	 struct slice queue)
{
	space = space.n ? space : op->space;
	queue = queue.n ? queue : op->queue;
	return queue.n && broker_shard_of(b, space, queue) == shard;
}

/* Do all its items live there? */
static bool
is_whole(const struct broker *b, uint32_t shard, const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (!lives_on(b, shard, op, op->puts[i].m.space, op->puts[i].m.queue))
			return false;
	for (uint32_t i = 0; i < op->n_items; i++)
		if (!lives_on(b, shard, op, op->items[i].space, op->items[i].queue))
			return false;
	return true;
}

/* Where an op begins that has no queue of its own. */
static struct slice
first_queue(const struct op *op, struct slice *space)
{
	*space = op->space;
	if (op->n_puts) {
		*space = op->puts[0].m.space.n ? op->puts[0].m.space : *space;
		return op->puts[0].m.queue;
	}
	if (op->n_items) {
		*space = op->items[0].space.n ? op->items[0].space : *space;
		return op->items[0].queue;
	}
	return (struct slice){ 0 };
}

static bool
is_one_delete(const struct op *op)
{
	return op->verb == OP_DELETE && op->n_items == 1 && op->items[0].queue.n == 0;
}

/* An op for one shard that the maker chose. */
static bool
names_shard(const struct op *op, uint32_t *shard)
{
	if (op->verb == OP_BACKUP)
		*shard = op->backup.shard;
	else if (op->queue.n == 0 && (op->verb == OP_GET || is_one_delete(op)))
		*shard = (uint32_t)(op->cursor >> BROKER_CURSOR_BITS);
	else
		return false;
	return true;
}

static int
route(const struct broker *b, struct op *op, uint32_t *shard)
{
	struct slice space = op->space;
	const struct slice queue = op->queue.n ? op->queue : first_queue(op, &space);

	op->spans = op->verb == OP_TOPICS || op->verb == OP_SHARD ||
		    (op->verb == OP_LIST && op->queue.n == 0);
	*shard = 0;
	if (names_shard(op, shard))
		return *shard < b->n ? 0 : SLU_EINVAL;
	if (op->spans) {
		*shard = (uint32_t)(op->cursor >> BROKER_CURSOR_BITS);
		op->cursor &= (1ull << BROKER_CURSOR_BITS) - 1;
		return *shard < b->n ? 0 : SLU_EINVAL;
	}
	if (b->n == 1)
		return 0;
	if (queue.n == 0)
		return SLU_EINVAL;
	*shard = broker_shard_of(b, space, queue);
	return is_whole(b, *shard, op) ? 0 : SLU_EINVAL;
}

/* ---- Ops ---- */

/* Verbs that are about one queue. */
static const bool needs_queue[OP_VERBS] = {
	[OP_CLAIM] = true,
	[OP_PEEK] = true,
	[OP_WATCH] = true,
	[OP_STATS] = true,
	[OP_PURGE] = true,
	[OP_PAUSE] = true,
	[OP_POLICY_GET] = true,
	[OP_POLICY_SET] = true,
	[OP_ACQUIRE] = true,
	[OP_KEEPALIVE] = true,
	[OP_RELEASE] = true,
	[OP_STATE_GET] = true,
	[OP_STATE_PUT] = true,
	[OP_STATE_REMOVE] = true,
	[OP_STATE_META] = true,
	[OP_DESCRIBE] = true,
	[OP_KEYS] = true,
	[OP_ATTACHMENTS] = true,
};

/* Verbs that are refused while the broker drains. */
static const bool begins_work[OP_VERBS] = {
	[OP_ENQUEUE] = true,
	[OP_CLAIM] = true,
	[OP_ACQUIRE] = true,
};

static bool
is_sound(const struct op *op)
{
	if (needs_queue[op->verb] && (op->queue.n == 0 || op->space.n == 0))
		return false;
	return op->space.n <= MESSAGE_NAME_MAX && op->queue.n <= MESSAGE_NAME_MAX;
}

/* What it costs to run, and ids. */
static void
prepare(struct broker *b, struct op *op)
{
	op->cost = 1;
	op->bytes = OP_BYTES;
	for (uint32_t i = 0; i < op->n_puts; i++) {
		struct message *m = &op->puts[i].m;

		if (m->id == 0)
			m->id = idgen_next(&b->ids);
		op->bytes += m->payload.n + m->attributes.n;
	}
	for (uint32_t i = 0; i < op->n_items; i++)
		op->bytes += op->items[i].text.n;
	op->cost += op->n_puts + op->n_items;
}

int
broker_post(struct broker *b, struct op *op)
{
	uint32_t shard;
	int rc;

	assert(op->verb < OP_VERBS && op->done);
	if (b->draining && begins_work[op->verb])
		return SLU_ECLOSED;
	rc = is_sound(op) ? route(b, op, &shard) : SLU_EINVAL;
	if (rc)
		return rc;
	prepare(b, op);
	return shard_post(&b->shards[shard], op);
}

void
broker_cancel(struct broker *b, struct op *op)
{
	shard_cancel(&b->shards[op->shard], op);
}

int
broker_return(struct broker *b, struct op *op, uint32_t from)
{
	if (op->verb == OP_ACQUIRE) { /* its answer says what to release */
		op->verb = OP_RELEASE;
		op->lock.fence = 0;
		op->lock.rollback = op->lock.undo = true;
		return shard_post(&b->shards[op->shard], op);
	}
	assert(op->verb == OP_CLAIM && from <= op->n_rows);
	for (uint32_t i = from; i < op->n_rows; i++) {
		engine_unpin(op->engine, &op->rows[i].record);
		engine_unpin(op->engine, &op->rows[i].payload);
	}
	op->verb = OP_RETURN;
	op->rows += from;
	op->n_rows -= from;
	return shard_post(&b->shards[op->shard], op);
}

uint64_t
broker_new_id(struct broker *b)
{
	return idgen_next(&b->ids);
}

/* ---- Open and close ---- */

static bool
note_progress(void *arg, uint64_t done, uint64_t all)
{
	struct broker_progress *const p = arg;

	atomic_store(&p->done, done);
	atomic_store(&p->all, all);
	return !p->stop || !p->stop();
}

static int
open_shard(struct broker *b, const struct broker_conf *conf, struct clock *clock,
	   struct slu_err *err)
{
	struct engine_conf storage = conf->storage;
	char folder[4096];
	int rc;

	if (storage.folder && b->n > 1) {
		const int n = snprintf(folder, sizeof folder, "%s/%u", storage.folder, b->open);

		if (n >= (int)sizeof folder)
			return slu_fail(err, SLU_EINVAL, "the name of the folder is too long");
		storage.folder = folder;
	}
	storage.meter = (struct meter_shard){ &b->meter, b->open };
	storage.quota = &b->quota;
	storage.lane = b->open;
	storage.lanes = b->n;
	if (conf->progress) {
		atomic_store(&conf->progress->shard, b->open);
		storage.reading = note_progress;
		storage.reading_arg = conf->progress;
	}
	rc = shard_open(&b->shards[b->open], conf->engine, &storage, clock, b->open, b->n,
			err);
	b->open += rc == 0;
	return rc;
}

static int
open_shards(struct broker *b, const struct broker_conf *conf, struct slu_err *err)
{
	struct clock *clock = conf->clock ? conf->clock : &clock_system;
	uint64_t highest = 0;
	int rc = 0;

	while (!rc && b->open < b->n)
		rc = open_shard(b, conf, clock, err);
	for (uint32_t i = 0; i < b->open; i++)
		if (b->shards[i].highest_id > highest)
			highest = b->shards[i].highest_id;
	if (!rc)
		rc = idgen_init(&b->ids, clock, conf->node, highest, err);
	for (uint32_t i = 0; !rc && !b->by_hand && i < b->n; i++)
		rc = shard_start(&b->shards[i], err);
	return rc;
}

int
broker_open(struct broker **out, const struct broker_conf *conf, struct slu_err *err)
{
	const uint32_t n = conf->shards ? conf->shards : 1;
	struct broker *b;
	int rc;

	if (n > BROKER_SHARDS_MAX)
		return slu_fail(err, SLU_EINVAL, "%u shards: at most %d", n, BROKER_SHARDS_MAX);
	b = mem_aligned(_Alignof(struct shard), sizeof *b + n * sizeof(struct shard));
	if (!b)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u shards", n);
	memset(b, 0, sizeof *b);
	b->n = n;
	b->by_hand = conf->by_hand;
	pthread_mutex_init(&b->stop, NULL); /* cannot fail with these attributes */
	rc = meter_init(&b->meter, n);
	if (rc)
		slu_fail(err, SLU_ENOMEM, "no memory for %u shards", n);
	else
		rc = open_shards(b, conf, err);
	if (rc) {
		(void)broker_close(b); /* what was first says more */
		return rc;
	}
	*out = b;
	return 0;
}

void
broker_drain(struct broker *b)
{
	b->draining = true;
	for (uint32_t i = 0; i < b->open; i++)
		shard_drain(&b->shards[i]);
}

slu_time
broker_round(struct broker *b)
{
	slu_time first = SLU_NEVER;

	assert(b->by_hand);
	for (uint32_t i = 0; i < b->open; i++) {
		struct shard *s = &b->shards[i];
		slu_time until = shard_sleeps(s);

		if (until <= clock_boot(s->clock)) {
			(void)shard_round(s); /* only a stop ends it */
			until = shard_sleeps(s);
		}
		first = until < first ? until : first;
	}
	return first;
}

static void
end_shard(struct broker *b, struct shard *s)
{
	while (b->by_hand && shard_round(s))
		;
	shard_join(s);
}

/* B2: one does it, all others wait for the lock. */
void
broker_stop(struct broker *b)
{
	pthread_mutex_lock(&b->stop);
	if (!b->stopped) {
		for (uint32_t i = 0; i < b->open; i++)
			shard_close(&b->shards[i]);
		for (uint32_t i = 0; i < b->open; i++)
			end_shard(b, &b->shards[i]);
		b->stopped = true;
	}
	pthread_mutex_unlock(&b->stop);
}

int
broker_close(struct broker *b)
{
	int rc = 0;

	if (!b)
		return 0;
	broker_stop(b);
	for (uint32_t i = 0; i < b->open; i++) {
		const int one = shard_release(&b->shards[i]);

		rc = rc ? rc : one;
	}
	meter_release(&b->meter);
	pthread_mutex_destroy(&b->stop);
	mem_free(b);
	return rc;
}

/* ---- Numbers ---- */

void
broker_totals(const struct broker *b, uint32_t shard, struct broker_totals *out)
{
	const struct shard *s = &b->shards[shard];
	uint64_t *const rows[SHARD_TOTALS] = {
		[SHARD_OPS] = &out->ops,
		[SHARD_BATCHES] = &out->batches,
		[SHARD_ACCEPTED] = &out->accepted,
		[SHARD_DELIVERED] = &out->delivered,
		[SHARD_RETURNED] = &out->returned,
		[SHARD_ACKED] = &out->acked,
		[SHARD_NACKED] = &out->nacked,
		[SHARD_DELETED] = &out->deleted,
		[SHARD_WAITING] = &out->waiting,
	};

	for (int i = 0; i < SHARD_TOTALS; i++)
		*rows[i] = atomic_load_explicit(&s->totals[i], memory_order_relaxed);
}

struct quota *
broker_quota(struct broker *b)
{
	return &b->quota;
}

void
broker_metrics(const struct broker *b, struct buf *out)
{
	meter_write(&b->meter, out);
}

int
broker_health(const struct broker *b, uint32_t shard, struct slu_err *err)
{
	struct engine *const e = b->shards[shard].engine;
	const int rc = b->shards[shard].failed;

	if (rc && err)
		*err = b->shards[shard].why;
	return rc || !e->ops->health ? rc : e->ops->health(e, err);
}
