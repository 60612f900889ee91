/*
 * hooked.h - the memory engine, with a test between the shard and it.
 *
 * A test sets `hook` before it opens shards whose engine is engine_hooked(). It is called for each
 * op before that runs, by the thread of its lane, with the number of the lane.
 */
#ifndef TESTS_HOOKED_H
#define TESTS_HOOKED_H

#include "test.h"

#include "engine/memory/memory.h"

enum {
	HOOKED_LANES = 8,
	HOOKED_OPS = 64 /* of a batch */
};

/* True: the op does not run, its answer is set. */
static bool (*hook)(struct engine *e, uint32_t lane, struct op *op, slu_time now);

static struct engine_ops hooked;
static struct engine *hooked_lanes[HOOKED_LANES];
static uint32_t n_hooked;

static inline int
hooked_open(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	    struct slu_err *err)
{
	const int rc = engine_memory.open(out, conf, found, err);

	if (rc)
		return rc;
	CHECK(n_hooked < HOOKED_LANES);
	(*out)->ops = &hooked;
	hooked_lanes[n_hooked++] = *out; /* shards are opened in the order of their lanes */
	return 0;
}

static inline uint32_t
hooked_lane(const struct engine *e)
{
	for (uint32_t i = 0; i < n_hooked; i++)
		if (hooked_lanes[i] == e)
			return i;
	return UINT32_MAX;
}

/* What is not refused runs as one batch, which is whole again afterwards. */
static inline int
hooked_run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	struct op *all[HOOKED_OPS + 1] = { 0 }, *first = NULL, **last = &first;
	uint32_t n = 0;
	int rc;

	EACH_OP(op, batch)
	{
		CHECK(n < HOOKED_OPS);
		all[n++] = op;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (hook && hook(e, hooked_lane(e), all[i], now))
			continue;
		*last = all[i];
		last = &all[i]->route.next;
	}
	*last = NULL;
	rc = engine_memory.run(e, first, due, now, err);
	for (uint32_t i = 0; i < n; i++)
		all[i]->route.next = all[i + 1];
	return rc;
}

static inline const struct engine_ops *
engine_hooked(void)
{
	hooked = engine_memory;
	hooked.open = hooked_open;
	hooked.run = hooked_run;
	n_hooked = 0;
	return &hooked;
}

/* For hooks: this op runs first, as if another client had posted it to that lane. */
static inline void
hooked_first(struct engine *e, struct op *op, slu_time now)
{
	struct slu_err err;

	op->route.arrived = op->route.before = now;
	CHECK_EQ(0, engine_memory.run(e, op, now, now, &err));
	CHECK_EQ(0, op->rc);
}

#endif
