/*
 * broker_move.c - the parts of the broker for queues that move: broker/move/.
 */
#include "broker/broker_private.h"

#include "base/mem.h"

static uint32_t
lane_of_mark(const struct broker *b, const char *name)
{
	const uint32_t open = broker_lanes(b);

	for (uint32_t i = 0; i < open; i++)
		if (strcmp(broker_mark_name(b, i), name) == 0)
			return i;
	return UINT32_MAX;
}

uint32_t
broker_lane_on(const struct broker *b, const char *shard, struct slice space,
	       struct slice queue)
{
	const bool is_mark = strchr(shard, '/'); /* no name of a shard has a slash */
	const struct broker_shard *const s = is_mark ? NULL : broker_find_shard(b, shard);

	if (is_mark)
		return lane_of_mark(b, shard);
	if (!s)
		return UINT32_MAX;
	return broker_lane_in(s, space, queue);
}

void
broker_repair(const struct broker *b, struct slice space, struct slice queue, uint32_t lane)
{
	if (!b->by_hand)
		moverepair_post(b->moverepair, space, queue, lane);
	else if (b->hand)
		b->hand->stuck(b->hand->arg, space, queue, lane);
}

/* ---- Batches that a process left when it died ---- */

struct left {
	struct list node; /* in broker.left */
	uint32_t lane;
	struct slice space, queue;
	char names[];
};

/* Without memory the batch waits until an op uses the queue, or the queue moves. */
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

		if (l->lane < broker_lanes(b)) /* all lanes of its shard are open */
			broker_repair(b, l->space, l->queue, l->lane);
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
broker_open_follows(struct broker *b, struct slu_log *log, struct slu_err *err)
{
	const int rc = follows_new(&b->follows, b, err);

	return rc ? rc : moverepair_new(&b->moverepair, b, log, err);
}
