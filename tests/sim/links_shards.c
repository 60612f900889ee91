#include "links_world.h"

#include "engine/memory/memory.h"

#include <stdlib.h>

static uint32_t
serial_of(const struct op *op)
{
	const struct slice text = op->verb == OP_ENQUEUE ? op->puts[0].m.payload : op->claim.holder;
	char digits[16] = "";

	if (text.n > 9)
		memcpy(digits, text.p + 1, 8);
	return (uint32_t)strtoul(digits, NULL, 10);
}

/* ONCE, GRANTS */
static void
note_run(uint32_t shard, const struct op *op)
{
	if (op->rc == 0 && (op->verb == OP_ENQUEUE || (op->verb == OP_CLAIM && op->n_rows > 0)))
		MUST("ONCE", ++world.ops[serial_of(op)].ran == 1);
	for (uint32_t i = 0; op->verb == OP_RETURN && i < op->n_rows; i++)
		MUST("GRANTS", world.returned[shard][op->rows[i].token % TOKENS]);
}

static struct view *
view_of(struct engine *e)
{
	return CONTAINER(e, struct view, engine);
}

static int
view_run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	struct view *const v = view_of(e);
	struct engine *const shard = world.shards[v->lane];
	int rc;

	if (world.views[v->lane] != v)
		return slu_fail(err, SLU_EMOVED, "deposed");
	for (const struct op *op = batch; op; op = op->route.next)
		if (op->verb == OP_RETURN)
			note_run(v->lane, op);
	rc = shard->ops->run(shard, batch, due, now, err);
	for (const struct op *op = batch; op && !rc; op = op->route.next)
		if (op->verb != OP_RETURN)
			note_run(v->lane, op);
	return rc;
}

static int
view_open(struct engine **out, const struct engine_conf *conf, struct engine_found *found, struct slu_err *err)
{
	struct view *const v = mem_zalloc(sizeof *v);
	const struct links_node *const n = conf->tenure->arg;

	(void)err;
	CHECK(v);
	v->engine.ops = conf->options;
	v->node = (unsigned)(n - world.nodes);
	v->lane = conf->lane;
	v->conf = *conf;
	world.all[v->node][v->lane] = v;
	*found = (struct engine_found){ .now = conf->wall };
	*out = &v->engine;
	return 0;
}

static int
view_reopen(struct engine *e, const struct engine_conf *conf, struct engine_found *found, struct slu_err *err)
{
	struct view *const v = view_of(e);

	if (world.owner[v->lane] != v->node)
		return slu_fail(err, SLU_EBUSY, "another node is the owner");
	world.views[v->lane] = v;
	v->owns = true;
	*found = (struct engine_found){ .now = conf->wall, .epoch = world.epochs[v->lane] };
	return 0;
}

static uint64_t
view_release(struct engine *e)
{
	struct view *const v = view_of(e);

	if (world.views[v->lane] == v)
		world.views[v->lane] = NULL;
	v->owns = false;
	return world.epochs[v->lane];
}

static int
view_close(struct engine *e)
{
	struct view *const v = view_of(e);

	(void)view_release(e);
	world.all[v->node][v->lane] = NULL;
	mem_free(v);
	return 0;
}

static slu_time
view_due(struct engine *e)
{
	struct view *const v = view_of(e);
	struct engine *const shard = world.shards[v->lane];

	return world.views[v->lane] == v ? shard->ops->next_due(shard) : SLU_NEVER;
}

static int
view_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out, bool may_block,
	  struct slu_err *err)
{
	return engine_read(world.shards[view_of(e)->lane], ref, at, n, out, may_block, err);
}

static void
view_unpin(struct engine *e, struct op_ref *ref)
{
	engine_unpin(world.shards[view_of(e)->lane], ref);
}

const struct engine_ops view_ops = {
	.name = "view",
	.open = view_open,
	.reopen = view_reopen,
	.release = view_release,
	.close = view_close,
	.run = view_run,
	.next_due = view_due,
	.read = view_read,
	.unpin = view_unpin,
};

/* What a shard reports goes to the lane of its owner. */
static void
on_ready(void *arg, struct slice space, struct slice queue, uint32_t n)
{
	struct view *const v = world.views[(uintptr_t)arg];

	if (v && v->conf.ready)
		v->conf.ready(v->conf.ready_arg, space, queue, n);
}

void
open_shards(void)
{
	for (uint32_t i = 0; i < SHARDS; i++) {
		const struct engine_conf conf = {
			.wall = clock_wall(&world.clock.clock),
			.ready = on_ready,
			.ready_arg = (void *)(uintptr_t)i,
		};
		struct engine_found found;
		struct slu_err err = { 0 };

		CHECK_EQ(0, engine_memory.open(&world.shards[i], &conf, &found, &err), err.text);
		world.owner[i] = UINT_MAX;
	}
}

void
close_shards(void)
{
	for (uint32_t i = 0; i < SHARDS; i++)
		(void)world.shards[i]->ops->close(world.shards[i]);
}
