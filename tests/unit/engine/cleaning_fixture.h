/*
 * cleaning_fixture.h - fills, claims and settles the queue of a log whose segments are small, so that it is cleaned soon.
 */
#ifndef TESTS_CLEANING_FIXTURE_H
#define TESTS_CLEANING_FIXTURE_H

#include "logkit.h"

enum {
	SEGMENT = 64 << 10,
	ROWS = 64
};

static const struct slice space = { "ns", 2 }, queue = { "q", 1 };

static inline void
run_any(struct logkit *k, struct op *op)
{
	if (logkit_run(k, op))
		test_fail(__FILE__, __LINE__, "run: %s", k->err.text);
}

static inline void
run(struct logkit *k, struct op *op)
{
	run_any(k, op);
	CHECK_EQ(0, op->rc);
}

static inline void
put(struct logkit *k, uint64_t id, struct slice payload, const char *idem)
{
	struct op_put p = { .m = { .id = id, .payload = payload } };
	struct op op;

	p.m.idem = idem ? slice_of(idem) : (struct slice){ 0 };
	logkit_enqueue(&op, space, queue, &p, 1);
	run(k, &op);
	CHECK_EQ(idem && p.existed, p.existed);
}

/* Claim some and settle those that want it; the others go on being leased. */
static inline uint32_t
claim_and_ack(struct logkit *k, bool (*wants)(uint64_t id), struct slice result)
{
	static struct op_row rows[ROWS];
	static struct op_item items[ROWS];
	struct op claim, ack;

	op_init(&claim, OP_CLAIM, space, queue, NULL, NULL);
	claim.rows = rows;
	claim.max_rows = ROWS;
	claim.claim.lease = 10 * SLU_HOUR;
	run(k, &claim);
	op_init(&ack, OP_ACK, space, queue, NULL, NULL);
	ack.items = items;
	for (uint32_t i = 0; i < claim.n_rows; i++)
		if (wants(rows[i].id))
			items[ack.n_items++] = (struct op_item){
				.id = rows[i].id, .token = rows[i].token, .text = result
			};
	run(k, &ack);
	op_unpin(&claim);
	return claim.n_rows;
}

#endif
