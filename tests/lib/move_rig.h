/*
 * move_rig.h - two engines of one kind, and the steps of a mover between them.
 *
 *         MOVE_CASE(order_is_kept)
 *         {
 *                 const uint64_t first = rig_put(a, "q", NULL);
 *
 *                 move_all(a, b, "q", 10);
 *                 CHECK_EQ(first, rig_claim_one(b, "q"));
 *         }
 */
#ifndef TESTS_MOVE_RIG_H
#define TESTS_MOVE_RIG_H

#include "engine_rig.h"

#define MOVE_EPOCH ((uint64_t)1 << MOVE_EPOCH_BITS)

#define MOVE_CASE(fn)                                 \
	static void fn(struct rig *a, struct rig *b); \
	TEST(memory_##fn)                             \
	{                                             \
		rig_run_two(RIG_MEMORY, fn);          \
	}                                             \
	TEST(log_##fn)                                \
	{                                             \
		rig_run_two(RIG_LOG, fn);             \
	}                                             \
	TEST(stored_##fn)                             \
	{                                             \
		rig_run_two(RIG_STORED, fn);          \
	}                                             \
	TEST(redis_##fn)                              \
	{                                             \
		rig_run_two(RIG_REDIS, fn);           \
	}                                             \
	static void fn(struct rig *a, __attribute__((unused)) struct rig *b)

/* A step; r->op has the answer. */
int move_step(struct rig *r, const char *queue, enum move_step step, uint64_t batch);

/* The mark of a queue. */
void move_mark(struct rig *r, const char *queue, uint64_t epoch, const char *lives);
const char *move_lives(struct rig *r, const char *queue);

/* TAKE: all pages of the batch, which stay in the rig; the batch, or 0. */
struct move_take {
	uint32_t max;       /* rows of a batch; 0: RIG_ROWS */
	uint64_t max_bytes; /* 0: any */
	bool force;
};

uint64_t move_take(struct rig *r, const char *queue, const struct move_take *how);

/* GIVE what a's last TAKE answered to b; its rc. And saying that by this epoch the queue lives
 * there. */
int move_give(struct rig *a, struct rig *b, const char *queue);
int move_give_by(struct rig *a, struct rig *b, const char *queue, uint64_t epoch);

/* Does b have that batch of a's? Else it refuses it for ever. */
bool move_has(struct rig *a, struct rig *b, const char *queue, uint64_t batch);

/* TAKE, GIVE, DROP until there is nothing more; how many batches that were. */
unsigned move_all(struct rig *a, struct rig *b, const char *queue, uint32_t max);

/* The rows of the batch that was taken last. */
struct move_row {
	struct op_row row;
	struct message m;
	char *bytes; /* of the record, or of the payload */
	char *error;
	char *large; /* the payload, if that has a file */
};

extern struct move_row *move_rows;
extern uint32_t move_n;

#endif
