/*
 * steps.c - wrote the folder `steps` with the library of version 0.1.0: records that a
 * server writes only in rare moments (return, untake, refused).
 *
 * Kept to show what is in that folder. It is not built: it uses the inner headers of
 * that version.
 */
#include "engine/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct engine *e;
static slu_time now;
static struct op_row rows[8];

static void
run(struct op *op)
{
	struct slu_err err;

	if (e->ops->run(e, op, now, now, &err) || op->rc) {
		fprintf(stderr, "verb %d: %s %s\n", op->verb, err.text, op->err.text);
		exit(1);
	}
}

static void
move(enum move_step step, uint64_t *batch)
{
	struct op op;

	op_init(&op, OP_MOVE, SLICE("shop"), SLICE("mail"), NULL, NULL);
	op.move.step = step;
	op.move.batch = *batch;
	strcpy(op.move.peer, "elsewhere");
	if (step == MOVE_MARK) {
		op.epoch = (uint64_t)1 << MOVE_EPOCH_BITS;
		op.lives = "elsewhere";
	}
	op.rows = rows;
	op.max_rows = 8;
	run(&op);
	*batch = op.move.batch;
	op_unpin(&op);
}

int
main(int argc, char **argv)
{
	struct op_put puts[3] = { { .m = { .id = 7001, .payload = SLICE("one"), .payload_size = 3 } },
				  { .m = { .id = 7002, .payload = SLICE("two"), .payload_size = 3 } },
				  { .m = { .id = 7003, .payload = SLICE("three"), .payload_size = 5 } } };
	struct engine_conf conf = { .folder = argc > 1 ? argv[1] : "steps" };
	const struct log_conf more = { .segment_size = 64 << 10, .no_helper = true };
	struct engine_found found;
	struct slu_err err;
	uint64_t batch = 0, other = 4711;
	struct op op;

	conf.wall = now = time(NULL) * SLU_SEC;
	if (log_open(&e, &conf, &more, &found, &err)) {
		fprintf(stderr, "open: %s\n", err.text);
		return 1;
	}
	op_init(&op, OP_ENQUEUE, SLICE("shop"), SLICE("mail"), NULL, NULL);
	op.puts = puts;
	op.n_puts = 3;
	run(&op);
	op_init(&op, OP_CLAIM, SLICE("shop"), SLICE("mail"), NULL, NULL);
	op.rows = rows;
	op.max_rows = 1;
	run(&op);
	op.verb = OP_RETURN;
	run(&op);
	op_unpin(&op);
	move(MOVE_MARK, &batch);
	move(MOVE_TAKE, &batch);
	move(MOVE_UNTAKE, &batch);
	move(MOVE_REFUSE, &other);
	e->ops->close(e);
	return 0;
}
