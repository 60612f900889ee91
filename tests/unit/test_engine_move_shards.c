/*
 * What a shard owes to others that have some of the same queue: engine/move.h.
 */
#include "move_rig.h"

/* ---- Enqueue: V2 ---- */

static int
put_some(struct rig *r, struct op_put *puts, uint32_t n)
{
	int rc;

	rig_unpin(r);
	rig_op(&r->op, OP_ENQUEUE, RIG_SPACE, "q");
	r->op.puts = puts;
	r->op.n_puts = n;
	rc = rig_do(r, &r->op);
	r->op.puts = NULL;
	return rc;
}

MOVE_CASE(a_call_that_one_shard_refused_is_as_new_for_the_next)
{
	const uint64_t first = rig_put(a, "q", &(struct rig_msg){ .key = "k", .idem = "once" });
	struct op_put puts[] = {
		{ .m = { .id = 100, .idem = SLICE("once") } },
		{ .m = { .id = 101 } },
		{ .m = { .id = 102, .key = SLICE("k") } },
	};

	CHECK(move_take(a, "q", NULL));
	CHECK_EQ(SLU_EBUSY, put_some(a, puts, 3));
	CHECK_STR("move", a->op.err.limit);
	CHECK(!puts[0].taken && !puts[1].taken && !puts[2].taken);

	/* What it found is left there, whichever engine it is. */
	puts[0].own_id = 100;
	puts[0].m.id = first;
	puts[0].existed = puts[1].undated = true;
	puts[1].m.due = a->now;
	b->now = a->now + SLU_MIN;
	CHECK_EQ(0, put_some(b, puts, 3));
	CHECK_EQ(3, rig_claim(b, "q", 10));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(!puts[i].existed);
		CHECK_EQ(100 + i, puts[i].m.id);
		CHECK_EQ(100 + i, b->rows[i].id);
		CHECK_EQ(b->now, b->rows[i].due);
		CHECK_EQ(b->now, rig_read(b, i)->due);
	}
}
