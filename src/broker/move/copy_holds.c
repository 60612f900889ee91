/*
 * copy_holds.c - the holds of a queue go with it: COPY-6.
 */
#include "broker/move/copy_private.h"

#include "base/mem.h"
#include "broker/broker_private.h"

/* A shard whose engine has no holds refuses: then the queue has none there. */
static bool
has_none(int rc)
{
	return rc == SLU_EINVAL || rc == SLU_ENOTFOUND;
}

static int
put_hold(const struct movecopy *mv, const struct op_use *u, struct slu_err *err)
{
	/* A circuit that is half-open opens for a moment, and is half-open again. */
	const slu_time end = u->circuit ? u->until : u->hold, now = clock_wall(mv->b->clock);
	const slu_time left = u->circuit && end <= now ? 1 : end - now;
	struct movewait w;
	int rc = 0;

	movewait_init(&w, mv, OP_HOLD);
	w.op.limits.scope = u->kind;
	w.op.limits.name = slice_of(u->name);
	w.op.limits.hold = left;
	w.op.limits.breaker = slice_of(u->breaker);
	if (left > 0)
		rc = movewait_at(&w, mv->b, mv->to_lane, err);
	movewait_release(&w);
	return rc;
}

static int
copy_page(const struct movecopy *mv, struct op_use *room, uint64_t *cursor, struct slu_err *err)
{
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_LIMITS);
	w.op.cursor = *cursor;
	w.op.uses = room;
	w.op.max_uses = MOVECOPY_HOLDS;
	rc = movewait_at(&w, mv->b, mv->from_lane, err);
	*cursor = rc ? 0 : w.op.cursor;
	for (uint32_t i = 0; !rc && i < w.op.n_uses; i++)
		if (room[i].is_hold || room[i].circuit)
			rc = put_hold(mv, &room[i], err);
	movewait_release(&w);
	return has_none(rc) ? 0 : rc;
}

int
movecopy_holds(const struct movecopy *mv, struct slu_err *err)
{
	struct op_use *const room = mem_array(MOVECOPY_HOLDS, sizeof *room);
	uint64_t cursor = 0;
	int rc = room ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for the holds of a queue");

	do {
		if (!rc)
			rc = copy_page(mv, room, &cursor, err);
	} while (!rc && cursor);
	mem_free(room);
	return rc;
}
