/*
 * mover_in.h - what the parts of the mover share: mover*.c alone.
 */
#ifndef BROKER_MOVER_IN_H
#define BROKER_MOVER_IN_H

#include "broker/mover.h"
#include "engine/payload.h"

/* A batch on its way: what was read of it. */
struct cargo {
	struct op_put *puts;
	struct payload **stored; /* of each put, or NULL: in files of the new engine */
	char **texts;            /* what a put points into */
	char **errors;
	uint32_t n, max;
	uint64_t batch;
	uint64_t counter;
};

void cargo_release(struct cargo *c); /* again is fine */

/* Add what the rows of a TAKE refer to. */
int cargo_add(struct cargo *c, const struct op *taken, struct engine *to, struct slu_err *err);

#endif
