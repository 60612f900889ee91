/*
 * make_log.c - a log with three messages: 1 is acked, 2 is dead, 3 waits; key jobs/7 has a
 * state.
 *
 *      make_log FOLDER [ID]      ID: of the first message, 1; the others follow
 */
#include "engine/log/logengine.h"

#include <stdio.h>
#include <stdlib.h>

static struct engine *e;
static struct op_row rows[2];

static void
run(struct op *op)
{
	struct slu_err err;

	if (engine_run(e, op, SLU_SEC, SLU_SEC, &err)) {
		fprintf(stderr, "run: %s\n", err.text);
		exit(1);
	}
}

static void
settle(enum op_verb verb, struct op_item item)
{
	struct op op;

	op_init(&op, verb, SLICE("ns"), SLICE("mail"), NULL, NULL);
	op.items = &item;
	op.n_items = 1;
	run(&op);
}

static void
work(uint64_t id)
{
	struct op_put puts[3] = { { .m = { .id = id } }, { .m = { .id = id + 1 } }, { .m = { .id = id + 2 } } };
	struct op op;

	op_init(&op, OP_ENQUEUE, SLICE("ns"), SLICE("mail"), NULL, NULL);
	op.puts = puts;
	op.n_puts = 3;
	run(&op);
	op_init(&op, OP_CLAIM, SLICE("ns"), SLICE("mail"), NULL, NULL);
	op.rows = rows;
	op.max_rows = 2;
	run(&op);
	settle(OP_ACK, (struct op_item){ .id = id, .token = rows[0].token });
	settle(OP_NACK, (struct op_item){ .id = id + 1, .token = rows[1].token, .dead = true, .text = SLICE("no such address") });
	op_unpin(&op);
}

static void
lock(void)
{
	struct op_put put = { .m = { .payload = SLICE("{}"), .payload_size = 2 } };
	struct op op;

	op_init(&op, OP_ACQUIRE, SLICE("ns"), SLICE(LOCK_QUEUE), NULL, NULL);
	op.lock.key = SLICE("jobs/7");
	op.lock.holder = SLICE("worker-1");
	run(&op);
	op.verb = OP_STATE_PUT; /* by the lease that it was granted */
	op.puts = &put;
	op.n_puts = 1;
	run(&op);
	op.verb = OP_RELEASE;
	run(&op);
}

int
main(int argc, char **argv)
{
	const struct engine_conf conf = { .folder = argc > 1 ? argv[1] : "log", .wall = SLU_SEC };
	const struct logengine_conf more = { .segment_size = 64 << 10, .no_helper = true };
	struct engine_found found;
	struct slu_err err;

	if (logengine_open(&e, &conf, &more, &found, &err)) {
		fprintf(stderr, "open: %s\n", err.text);
		return 1;
	}
	work(argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
	lock();
	e->ops->close(e);
	return 0;
}
