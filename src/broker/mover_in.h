/*
 * mover_in.h - what the parts of the mover share: mover*.c alone.
 */
#ifndef BROKER_MOVER_IN_H
#define BROKER_MOVER_IN_H

#include "broker/mover.h"
#include "engine/payload.h"

#include <pthread.h>

/* Two ends of a move. */
struct move {
	struct broker *b;
	struct slice space, queue;
	const char *from, *to; /* shards */
	uint32_t from_lane, to_lane;
	struct op_move here, there; /* the last look at each */
	slu_time until;
};

/* ---- mover_step.c: an op, and whoever waits for it ---- */

struct wait {
	struct op op;
	const struct broker *b;
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	bool done;
};

void wait_init(struct wait *w, const struct move *mv, enum op_verb verb);
void wait_release(struct wait *w);
int wait_for(struct wait *w, int posted, struct slu_err *err); /* posted: 0, or why it was not */
int wait_at(struct wait *w, struct broker *b, uint32_t lane, struct slu_err *err);

int step(const struct move *mv, uint32_t lane, enum move_step what, uint64_t batch,
	 struct op_move *out, struct slu_err *err); /* out may be NULL */
int look(struct move *mv, struct slu_err *err);
int no_such_shard(const struct move *mv, const char *shard, struct slu_err *err);

/* ---- mover_marks.c ---- */

bool is_mapped(const struct move *mv);               /* does the map say that the queue lives on `to`? */
int set_marks(struct move *mv, struct slu_err *err); /* Z2, after a look */

/* V9: tokens of `to` are above those of a shard whose counter stands there. After a look. */
int lift(const struct move *mv, uint64_t former, struct slu_err *err);

/* ---- mover_batch.c ---- */

/* False in *more: there was nothing to take. */
int carry_batch(const struct move *mv, const struct move_ask *ask, struct move_told *out,
		bool *more, struct slu_err *err);

int finish_both(struct move *mv, struct move_told *out, struct slu_err *err); /* Z1, and a look */

/* ---- mover_cargo.c ---- */

/* A batch on its way: what was read of it. */
struct cargo {
	struct op_put *puts;
	struct payload **stored; /* of each put, or NULL: in files of the new engine */
	char **texts;            /* what a put points into */
	char **errors;
	uint32_t n, max;
	uint64_t batch;
	uint64_t counter;
	char whom[MOVE_SHARD];
};

void cargo_release(struct cargo *c); /* again is fine */

/* Add what the rows of a TAKE refer to. */
int cargo_add(struct cargo *c, const struct op *taken, struct engine *to, struct slu_err *err);

#endif
