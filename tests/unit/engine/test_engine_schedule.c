/*
 * OP_SCHEDULE on every engine that has a ledger. The Redis engine refuses it.
 */
#include "engine_rig.h"

#include <string.h>

enum {
	ID = 1000
};

static bool
is_redis(const struct rig *r)
{
	return strcmp(r->row->engine->name, "redis") == 0;
}

/* The schedule is replaced if it has this number, and n messages begin in the queue a. */
static int
step(struct rig *r, uint64_t number, bool remove, const char *payload, uint32_t n)
{
	static struct op_put puts[4];
	static struct op_item item;
	const uint32_t own = !remove;

	memset(puts, 0, sizeof puts);
	item = (struct op_item){ .id = ID, .number = number, .remove = remove };
	rig_op(&r->op, OP_SCHEDULE, RIG_SPACE, ".schedules");
	for (uint32_t i = 0; i < n + own; i++) {
		puts[i].m.id = r->next_id++;
		puts[i].m.queue = i < own ? SLICE(".schedules") : SLICE("a");
		puts[i].delay = i < own ? SLU_HOUR : 0;
		puts[i].m.payload = slice_of(payload);
		puts[i].m.payload_size = puts[i].m.payload.n;
	}
	r->op.items = &item;
	r->op.n_items = 1;
	r->op.puts = puts;
	r->op.n_puts = n + own;
	return rig_do(r, &r->op);
}

CASE(a_schedule_and_its_message_are_one_step)
{
	uint64_t first, second;

	if (is_redis(r)) {
		CHECK_EQ(SLU_EINVAL, step(r, 0, false, "one", 0));
		CHECK_CONTAINS("engine redis has no schedules", r->op.err.text);
		return;
	}
	CHECK_EQ(0, step(r, 0, false, "one", 0));
	first = r->op.puts[0].m.number;
	CHECK_EQ(ID, r->op.puts[0].m.id);
	CHECK_EQ(0, step(r, first, false, "two", 2));
	second = r->op.puts[0].m.number;
	CHECK_EQ(ID + 1, r->op.puts[0].m.id);
	rig_reopen(r);
	CHECK_EQ(1, rig_count(r, ".schedules", MSG_DELAYED));
	CHECK_EQ(2, rig_count(r, "a", MSG_READY));
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, ID));
	CHECK_EQ(0, rig_get(r, ID + 1));
	CHECK_EQ(0, step(r, second, false, "three", 0));
	CHECK_EQ(0, rig_get(r, ID));
	CHECK_EQ(0, step(r, r->rows[0].number, true, "", 1));
	rig_reopen(r);
	CHECK_EQ(0, rig_count(r, ".schedules", MSG_DELAYED));
	CHECK_EQ(3, rig_count(r, "a", MSG_READY));
}

CASE(a_schedule_that_was_changed_meanwhile_is_not_replaced)
{
	uint64_t first;

	if (is_redis(r))
		return;
	CHECK_EQ(SLU_ENOTFOUND, step(r, 5, false, "one", 1));
	CHECK_EQ(0, step(r, 0, false, "one", 0));
	first = r->op.puts[0].m.number;
	CHECK_EQ(SLU_ECONFLICT, step(r, 0, false, "again", 1));
	CHECK_EQ(0, step(r, first, false, "two", 1));
	CHECK_EQ(SLU_ECONFLICT, step(r, first, false, "late", 1));
	CHECK_EQ(SLU_ECONFLICT, step(r, 0, false, "again", 1));
	CHECK_EQ(SLU_ECONFLICT, step(r, first, true, "", 1));
	rig_reopen(r);
	CHECK_EQ(1, rig_count(r, ".schedules", MSG_DELAYED));
	CHECK_EQ(1, rig_count(r, "a", MSG_READY));
}

/* OP-4 */
CASE(a_message_that_is_refused_leaves_the_schedule)
{
	static char long_key[MESSAGE_KEY_MAX + 1];
	uint64_t first;

	if (is_redis(r))
		return;
	CHECK_EQ(0, step(r, 0, false, "one", 0));
	first = r->op.puts[0].m.number;
	memset(long_key, 'k', sizeof long_key);
	r->op.items->number = first;
	r->op.n_puts = 2;
	r->op.puts[1] = (struct op_put){ .m.id = r->next_id++, .m.queue = SLICE("a"), .m.key = { long_key, sizeof long_key } };
	CHECK_EQ(SLU_ETOOBIG, rig_do(r, &r->op));
	rig_reopen(r);
	CHECK_EQ(0, rig_count(r, "a", MSG_READY));
	CHECK_EQ(0, step(r, first, false, "two", 0), "the schedule is as before");
}
