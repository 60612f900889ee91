#include "broker/broker_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	OP_BYTES = 256 /* that an op counts beside its payloads */
};

/* ---- Ops ---- */

static bool
is_sound(const struct op *op)
{
	if (op_is(op->verb, OP_NEEDS_QUEUE) && (op->queue.n == 0 || op->space.n == 0))
		return false;
	return op->space.n <= MESSAGE_NAME_MAX && op->queue.n <= MESSAGE_NAME_MAX;
}

/* BROKER-6 */
static uint64_t
new_id(struct broker *b, uint32_t lane, slu_time wall)
{
	const struct broker_shard *const s = b->shard_of[lane];
	const uint64_t bits = s->marks ? (s->bits + lane - s->first) & ID_NODE_MAX : b->ids.node;

	return idgen_next_at(&b->ids, wall, (unsigned)bits);
}

/* Sets cost and bytes, and gives ids. */
static void
prepare(struct broker *b, struct op *op, uint32_t lane)
{
	const slu_time wall = op->n_puts ? clock_wall(b->ids.clock) : 0;

	op->route.cost = 1;
	op->route.bytes = OP_BYTES;
	for (uint32_t i = 0; i < op->n_puts; i++) {
		struct message *m = &op->puts[i].m;

		if (op->puts[i].given)
			m->id = op->puts[i].given;
		if (m->id == 0)
			m->id = new_id(b, lane, wall);
		op->route.bytes += m->payload.n + m->attributes.n;
	}
	for (uint32_t i = 0; i < op->n_items; i++)
		op->route.bytes += op->items[i].text.n;
	op->route.cost += op->n_puts + op->n_items;
}

uint64_t
broker_new_lane_id(struct broker *b, uint32_t lane)
{
	return new_id(b, lane, clock_wall(b->ids.clock));
}

int
broker_post(struct broker *b, struct op *op)
{
	struct follow_path path;
	int rc;

	assert(op->verb < OP_VERBS && op->done);
	if (b->draining && op_is(op->verb, OP_BEGINS))
		return SLU_ECLOSED;
	rc = is_sound(op) ? broker_route(b, op, &path) : SLU_EINVAL;
	if (rc)
		return rc;
	prepare(b, op, path.lanes[0]);
	return follow_post(b->follows, op, &path);
}

int
broker_post_at(struct broker *b, uint32_t lane, struct op *op)
{
	if (lane >= broker_lanes(b) || op->space.n == 0 || op->queue.n == 0)
		return SLU_EINVAL;
	prepare(b, op, lane);
	op->route.follow = NULL;
	op->home.elsewhere[0] = '\0';
	return lane_post(b->lanes[lane], op);
}

void
broker_cancel(struct broker *b, struct op *op)
{
	lane_cancel(b->lanes[op->route.lane], op);
}

int
broker_return(struct broker *b, struct op *op, uint32_t from)
{
	if (op->verb == OP_ACQUIRE) { /* the answer has the token to release */
		op->verb = OP_RELEASE;
		op->lock.fence = 0;
		op->lock.rollback = op->lock.undo = true;
		return lane_post(b->lanes[op->route.lane], op);
	}
	assert(op->verb == OP_CLAIM && from <= op->n_rows);
	for (uint32_t i = from; i < op->n_rows; i++) {
		engine_unpin(op->engine, &op->rows[i].record);
		engine_unpin(op->engine, &op->rows[i].payload);
	}
	op->verb = OP_RETURN;
	op->rows += from;
	op->n_rows -= from;
	return lane_post(b->lanes[op->route.lane], op);
}

uint64_t
broker_new_id(struct broker *b, struct slice space, struct slice queue)
{
	return new_id(b, b->stored && queue.n ? broker_lane_of(b, NULL, space, queue) : 0,
		      clock_wall(b->ids.clock));
}

/* ---- Numbers ---- */

uint32_t
broker_lanes(const struct broker *b)
{
	return atomic_load_explicit(&b->open, memory_order_acquire);
}

const char *
broker_shard_name(const struct broker *b, uint32_t lane)
{
	return b->shard_of[lane]->name;
}

const char *
broker_mark_name(const struct broker *b, uint32_t lane)
{
	const struct broker_shard *const s = b->shard_of[lane];

	return s->marks ? s->marks[lane - s->first] : s->name;
}

const char *
broker_batch_name(const struct broker *b, uint32_t lane, char out[static BROKER_BATCH_NAME])
{
	const struct broker_shard *const s = b->shard_of[lane];

	if (s->marks || s->lanes == 1)
		(void)snprintf(out, BROKER_BATCH_NAME, "%s", broker_mark_name(b, lane)); /* always fits */
	else
		(void)snprintf(out, BROKER_BATCH_NAME, "%s/%" PRIu32, s->name, lane - s->first); /* the same */
	return out;
}

uint32_t
broker_first_lane(const struct broker *b, const char *shard)
{
	const struct broker_shard *const s = broker_find_shard(b, shard);

	return s ? s->first : UINT32_MAX;
}

uint32_t
broker_lane_number(const struct broker *b, uint32_t lane)
{
	return lane - b->shard_of[lane]->first;
}

bool
broker_lane_folder(const struct broker *b, uint32_t lane, char out[static BROKER_FOLDER])
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
broker_lane_engine(const struct broker *b, uint32_t lane)
{
	return b->lanes[lane]->engine->ops->name;
}

bool
broker_lane_shared(const struct broker *b, uint32_t lane)
{
	return b->lanes[lane]->engine->ops->shared;
}

const char *
broker_lane_labels(const struct broker *b, uint32_t lane)
{
	return b->shard_of[lane]->labels[lane - b->shard_of[lane]->first];
}

void
broker_totals(const struct broker *b, uint32_t lane, struct broker_totals *out)
{
	const struct lane *s = b->lanes[lane];
	uint64_t *const rows[LANE_TOTALS] = {
		[LANE_OPS] = &out->ops,
		[LANE_BATCHES] = &out->batches,
		[LANE_ACCEPTED] = &out->accepted,
		[LANE_DELIVERED] = &out->delivered,
		[LANE_RETURNED] = &out->returned,
		[LANE_ACKED] = &out->acked,
		[LANE_NACKED] = &out->nacked,
		[LANE_DELETED] = &out->deleted,
		[LANE_WAITING] = &out->waiting,
	};

	for (int i = 0; i < LANE_TOTALS; i++)
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
	const struct meter *meters[BROKER_LANES_MAX];
	const uint32_t open = broker_lanes(b);
	unsigned n = 0;

	for (uint32_t i = 0; i < open; i += b->shard_of[i]->lanes)
		meters[n++] = &b->shard_of[i]->meter;
	meter_write(meters, n, out);
}

unsigned
broker_warnings(const struct broker *b, uint32_t lane, struct engine_warning *out, unsigned max)
{
	struct engine *const e = b->lanes[lane]->engine;

	return e->ops->warnings ? e->ops->warnings(e, out, max) : 0;
}

slu_time
broker_ahead(const struct broker *b, uint32_t lane)
{
	const slu_time offset = atomic_load_explicit(&b->lanes[lane]->ahead_of_boot, memory_order_relaxed);

	return offset ? offset + clock_boot(b->clock) - clock_wall(b->clock) : 0;
}

uint32_t
broker_flush(const struct broker *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < broker_lanes(b); i++) {
		struct engine *const e = b->lanes[i]->engine;

		if (!e->ops->flush || !e->ops->flush(e))
			continue;
		mailbox_poke(&b->lanes[i]->mailbox);
		n++;
	}
	return n;
}

bool
broker_lag(const struct broker *b, uint32_t lane, struct engine_lag *out)
{
	struct engine *const e = b->lanes[lane]->engine;

	return e->ops->lag && e->ops->lag(e, out);
}

bool
broker_has_tenure(const struct broker *b)
{
	return b->stored;
}

bool
broker_has_remote(const struct broker *b)
{
	return b->remote;
}

void
broker_order(struct broker *b, uint32_t lane, enum broker_order order)
{
	lane_order(b->lanes[lane], order);
}

void
broker_set_owner(struct broker *b, uint32_t lane, const char *address, uint64_t epoch)
{
	lane_set_owner(b->lanes[lane], address, epoch);
}

void
broker_set_lapsed(struct broker *b, uint32_t lane, bool lapsed)
{
	lane_set_lapsed(b->lanes[lane], lapsed);
}

const char *
broker_owner(const struct broker *b, uint32_t lane)
{
	return lane_owner(b->lanes[lane]);
}

void
broker_came_back(struct broker *b, struct op *op, bool again)
{
	lane_came_back(b->lanes[op->route.lane], op, again);
}

int
broker_failure(const struct broker *b, uint32_t lane, struct slu_err *err)
{
	return lane_failure(b->lanes[lane], err);
}

int
broker_health(const struct broker *b, uint32_t lane, struct slu_err *err)
{
	struct engine *const e = b->lanes[lane]->engine;
	const int rc = broker_failure(b, lane, err);

	return rc || !e->ops->health ? rc : e->ops->health(e, err);
}
