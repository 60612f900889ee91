#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "engine/redis/redis.h"
#include "shards/shardload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct bare_load {
	struct engine *engine;
	struct op *ops;
	struct op_put *puts; /* batch of each op */
	char *payload;
	char queue[48];
	uint64_t next_id;
};

static void
done(struct op *op)
{
	(void)op; /* the engine is run by hand */
}

static int
load_make(struct bare_load *l, const struct shardload *o, struct slu_err *err)
{
	l->ops = mem_array(o->ops, sizeof *l->ops);
	l->puts = mem_array(o->ops * o->batch, sizeof *l->puts);
	l->payload = mem_alloc(o->size ? o->size : 1);
	if (!l->ops || !l->puts || !l->payload)
		return slu_fail(err, SLU_ENOMEM, "no memory");
	memset(l->payload, 'x', o->size);
	(void)snprintf(l->queue, sizeof l->queue, "bare-%ld", (long)getpid());
	l->next_id = 1;
	return 0;
}

/* One pipeline: every op is a call of the script. */
static int
round_of(struct bare_load *l, const struct shardload *o, struct slu_err *err)
{
	struct op *last = NULL;
	int rc;

	memset(l->puts, 0, o->ops * o->batch * sizeof *l->puts);
	for (uint64_t i = o->ops; i-- > 0; last = &l->ops[i]) {
		struct op *const op = &l->ops[i];

		op_init(op, OP_ENQUEUE, SLICE("bench"), slice_of(l->queue), done, NULL);
		op->puts = l->puts + i * o->batch;
		op->n_puts = (uint32_t)o->batch;
		op->route.next = last;
		for (uint64_t k = 0; k < o->batch; k++) {
			op->puts[k].m.id = l->next_id++;
			op->puts[k].m.prio = 5;
			op->puts[k].m.payload = (struct slice){ l->payload, o->size };
		}
	}
	rc = engine_run(l->engine, l->ops, clock_wall(&clock_system),
			clock_wall(&clock_system), err);
	for (uint64_t i = 0; i < o->ops && !rc; i++)
		rc = l->ops[i].rc ? slu_fail(err, (enum slu_code)l->ops[i].rc, "%s",
					     l->ops[i].err.text)
				  : 0;
	return rc;
}

int
shardload_bare(const struct shardload *o, struct slu_err *err)
{
	const struct redis_conf redis = { .wire = { .address = o->to }, .prefix = "bare" };
	const struct engine_conf conf = { .wall = clock_wall(&clock_system), .options = &redis };
	struct engine_found found = { 0 };
	struct bare_load l = { 0 };
	uint64_t messages = 0;
	slu_time began;
	int rc = load_make(&l, o, err);

	if (!rc)
		rc = engine_redis.open(&l.engine, &conf, &found, err);
	if (!rc && l.next_id <= found.highest_id)
		l.next_id = found.highest_id + 1;
	began = bench_now();
	while (!rc && bench_now() - began < o->duration) {
		rc = round_of(&l, o, err);
		messages += o->ops * o->batch;
	}
	if (!rc)
		printf("{\"messages\":%" PRIu64 ",\"rate\":%.0f}\n", messages,
		       (double)messages * 1e9 / (double)(bench_now() - began));
	if (l.engine)
		l.engine->ops->close(l.engine);
	mem_free(l.ops);
	mem_free(l.puts);
	mem_free(l.payload);
	return rc;
}
