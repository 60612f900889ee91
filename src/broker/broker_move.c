/*
 * broker_move.c - what the relay has to know of the broker.
 */
#include "broker/broker_in.h"

#include "base/mem.h"
#include "core/supplier.h"

uint32_t
broker_lane_on(const struct broker *b, const char *shard, struct slice space,
	       struct slice queue)
{
	const struct broker_shard *const s = broker_find_shard(b, shard);

	if (!s)
		return UINT32_MAX;
	return s->first + (s->lanes == 1 ? 0 : supplier_hash(space, queue) % s->lanes);
}

static uint32_t
lane_of(void *arg, const char *name, struct slice space, struct slice queue)
{
	return broker_lane_on(arg, name, space, queue);
}

static uint32_t
nth_lane(void *arg, uint32_t i, struct slice space, struct slice queue)
{
	const struct broker *const b = arg;
	const uint32_t open = broker_shards(b);

	for (uint32_t at = 0; at < open; at += b->shard_of[at]->lanes)
		if (i-- == 0)
			return broker_lane_on(b, b->shard_of[at]->name, space, queue);
	return UINT32_MAX;
}

static const char *
name_of(void *arg, uint32_t lane)
{
	return broker_shard_name(arg, lane);
}

static struct shard *
shard_at(void *arg, uint32_t lane)
{
	const struct broker *const b = arg;

	return b->lanes[lane];
}

static bool
is_draining(void *arg)
{
	const struct broker *const b = arg;

	return b->waits_end;
}

static int
post(void *arg, struct op *op)
{
	return broker_post(arg, op);
}

static void
on_stuck(void *arg, struct slice space, struct slice queue, uint32_t lane)
{
	const struct broker *const b = arg;

	if (!b->by_hand)
		mender_post(b->mender, space, queue, lane);
	else if (b->hand)
		b->hand->stuck(b->hand->arg, space, queue, lane);
}

/* ---- What was left when a process died ---- */

struct left {
	struct list node; /* in broker.left */
	uint32_t lane;
	struct slice space, queue;
	char names[];
};

/* Without memory it waits until somebody uses or moves the queue. */
void
broker_note_left(struct broker *b, uint32_t lane, struct slice space, struct slice queue)
{
	struct left *const l = mem_alloc(sizeof *l + space.n + queue.n);

	if (!l)
		return;
	l->lane = lane;
	memcpy(l->names, space.p, space.n);
	memcpy(l->names + space.n, queue.p, queue.n);
	l->space = (struct slice){ l->names, space.n };
	l->queue = (struct slice){ l->names + space.n, queue.n };
	list_append(&b->left, &l->node);
}

void
broker_finish_left(struct broker *b)
{
	LIST_EACH(each, &b->left) {
		const struct left *const l = CONTAINER(each, struct left, node);

		if (l->lane < broker_shards(b)) /* its shard was opened whole */
			on_stuck(b, l->space, l->queue, l->lane);
	}
	broker_forget_left(b);
}

void
broker_forget_left(struct broker *b)
{
	LIST_EACH_SAFE(each, &b->left) {
		list_remove(each);
		mem_free(CONTAINER(each, struct left, node));
	}
}

int
broker_open_relays(struct broker *b, struct slu_log *log, struct slu_err *err)
{
	const struct relay_env env = {
		.arg = b,
		.clock = b->clock,
		.log = log,
		.lane = lane_of,
		.nth = nth_lane,
		.name = name_of,
		.shard = shard_at,
		.is_draining = is_draining,
		.post = post,
		.stuck = on_stuck,
	};
	int rc = relays_new(&b->relays, &env, err);

	return rc ? rc : mender_new(&b->mender, b, log, err);
}
