#include "broker/broker_in.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	OP_BYTES = 256 /* what an op weighs beside its payloads */
};

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
	struct relay_path path;
	int rc;

	assert(op->verb < OP_VERBS && op->done);
	if (b->draining && begins_work[op->verb])
		return SLU_ECLOSED;
	rc = is_sound(op) ? broker_route(b, op, &path) : SLU_EINVAL;
	if (rc)
		return rc;
	prepare(b, op);
	op->relay = NULL;
	op->elsewhere[0] = '\0';
	op->above = 0;
	if (op->verb == OP_FORGET) {
		rc = relay_check_forget(b->relays, op, &path);
		op->epoch = 0; /* it leaves no mark */
	}
	if (rc)
		return rc;
	if (op->epoch && (path.n > 1 || relays_any(b->relays)))
		return relay_post(b->relays, op, &path);
	if (op->verb == OP_LIST && !op->spans)
		op->cursor = relay_list_cursor(op->cursor);
	return shard_post(b->lanes[path.lanes[0]], op);
}

int
broker_post_at(struct broker *b, uint32_t lane, struct op *op)
{
	if (lane >= broker_shards(b) || op->space.n == 0 || op->queue.n == 0)
		return SLU_EINVAL;
	prepare(b, op);
	op->relay = NULL;
	op->elsewhere[0] = '\0';
	return shard_post(b->lanes[lane], op);
}

void
broker_cancel(struct broker *b, struct op *op)
{
	if (op_unwant(op, OP_CANCELED))
		shard_stop(b->lanes[op->shard], op);
}

int
broker_return(struct broker *b, struct op *op, uint32_t from)
{
	if (op->verb == OP_ACQUIRE) { /* its answer says what to release */
		op->verb = OP_RELEASE;
		op->lock.fence = 0;
		op->lock.rollback = op->lock.undo = true;
		return shard_post(b->lanes[op->shard], op);
	}
	assert(op->verb == OP_CLAIM && from <= op->n_rows);
	for (uint32_t i = from; i < op->n_rows; i++) {
		engine_unpin(op->engine, &op->rows[i].record);
		engine_unpin(op->engine, &op->rows[i].payload);
	}
	op->verb = OP_RETURN;
	op->rows += from;
	op->n_rows -= from;
	return shard_post(b->lanes[op->shard], op);
}

uint64_t
broker_new_id(struct broker *b)
{
	return idgen_next(&b->ids);
}

/* ---- Numbers ---- */

uint32_t
broker_shards(const struct broker *b)
{
	return atomic_load_explicit(&b->open, memory_order_acquire);
}

const char *
broker_shard_name(const struct broker *b, uint32_t lane)
{
	return b->shard_of[lane]->name;
}

uint32_t
broker_shard_lane(const struct broker *b, uint32_t lane)
{
	return lane - b->shard_of[lane]->first;
}

bool
broker_shard_folder(const struct broker *b, uint32_t lane, char out[static BROKER_FOLDER])
{
	const struct broker_shard *const s = b->shard_of[lane];
	const char *const name = s->standard ? "" : s->name;
	const char *const slash = *name && s->lanes > 1 ? "/" : "";
	char number[12] = "";

	if (s->lanes > 1)
		(void)snprintf(number, sizeof number, "%" PRIu32, lane - s->first);
	(void)snprintf(out, BROKER_FOLDER, "%s%s%s", name, slash, number); /* always fits */
	return b->lanes[lane]->engine->ops->read_file != NULL;
}

const char *
broker_shard_engine(const struct broker *b, uint32_t lane)
{
	return b->lanes[lane]->engine->ops->name;
}

bool
broker_shard_shared(const struct broker *b, uint32_t lane)
{
	return b->lanes[lane]->engine->ops->shared;
}

const char *
broker_shard_labels(const struct broker *b, uint32_t lane)
{
	return b->shard_of[lane]->labels[lane - b->shard_of[lane]->first];
}

void
broker_totals(const struct broker *b, uint32_t shard, struct broker_totals *out)
{
	const struct shard *s = b->lanes[shard];
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
	const struct meter *meters[BROKER_SHARDS_MAX];
	const uint32_t open = broker_shards(b);
	unsigned n = 0;

	for (uint32_t i = 0; i < open; i += b->shard_of[i]->lanes)
		meters[n++] = &b->shard_of[i]->meter;
	meter_write(meters, n, out);
}

unsigned
broker_warnings(const struct broker *b, uint32_t shard, struct engine_warning *out, unsigned max)
{
	struct engine *const e = b->lanes[shard]->engine;

	return e->ops->warnings ? e->ops->warnings(e, out, max) : 0;
}

int
broker_failure(const struct broker *b, uint32_t shard, struct slu_err *err)
{
	const struct shard *const s = b->lanes[shard];
	const int rc = s->failed;

	if (rc && err)
		*err = s->why;
	return rc;
}

int
broker_health(const struct broker *b, uint32_t shard, struct slu_err *err)
{
	struct engine *const e = b->lanes[shard]->engine;
	const int rc = broker_failure(b, shard, err);

	return rc || !e->ops->health ? rc : e->ops->health(e, err);
}
