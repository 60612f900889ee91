#include "count_engine.h"

#include "base/mem.h"
#include "base/option/option.h"
#include "engine/memory/memory.h"

#include <assert.h>

struct count {
	struct engine engine;
	struct engine *inner;
	void (*poke)(void *arg); /* may be NULL */
	void *poke_arg;
	uint64_t runs;
	int outcome;   /* of commit */
	slu_time rest; /* engine_ops.rest */
	bool open;     /* run has returned ENGINE_LATER, commit has returned nothing else yet */
};

static const struct option rows[] = {
	{ .key = "from", .kind = &count_kind, .offset = offsetof(struct count_conf, from), .standard = "0", .max = 1000, .server_key = "count.from", .value = "N", .doc = "number of runs before the first" },
};

static const struct engine_options options = { .rows = rows, .n = 1, .size = sizeof(struct count_conf) };

static struct count *
of_engine(struct engine *e)
{
	return CONTAINER(e, struct count, engine);
}

uint64_t
count_runs(const struct engine *e)
{
	return CONTAINER(e, const struct count, engine)->runs;
}

void
count_hold(struct engine *e)
{
	of_engine(e)->outcome = ENGINE_LATER;
}

void
count_release(struct engine *e, int rc)
{
	struct count *c = of_engine(e);

	c->outcome = rc;
	if (c->poke)
		c->poke(c->poke_arg);
}

void
count_rest(struct engine *e, slu_time rest)
{
	of_engine(e)->rest = rest;
}

static int
count_open(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	   struct slu_err *err)
{
	const struct count_conf *const own = conf->options;
	struct count *c = mem_zalloc(sizeof *c);
	int rc;

	if (!c)
		return slu_fail(err, SLU_ENOMEM, "no memory for an engine");
	c->engine.ops = &engine_count;
	c->runs = own ? own->from : 0;
	c->poke = conf->poke;
	c->poke_arg = conf->poke_arg;
	rc = engine_memory.open(&c->inner, conf, found, err);
	if (rc)
		mem_free(c);
	else
		*out = &c->engine;
	return rc;
}

static int
count_close(struct engine *e)
{
	struct count *c = of_engine(e);
	const int rc = c->inner->ops->close(c->inner);

	mem_free(c);
	return rc;
}

/* The ops name the inner engine (op->engine), which reads and unpins their records. */
static int
count_run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	struct count *c = of_engine(e);
	int rc;

	assert(!c->open); /* ENGINE-1: one batch at a time */
	c->runs++;
	rc = c->inner->ops->run(c->inner, batch, due, now, err);
	c->open = rc == 0;
	return rc ? rc : ENGINE_LATER;
}

static int
count_commit(struct engine *e, struct slu_err *err)
{
	struct count *c = of_engine(e);

	assert(c->open);
	if (c->outcome == ENGINE_LATER) {
		(void)slu_fail(err, SLU_EDOWN, "the store of a test");
		return ENGINE_LATER;
	}
	c->open = false;
	return c->outcome ? slu_fail(err, (enum slu_code)c->outcome, "the store is gone") : 0;
}

/* The messages are still there. */
static int
count_reopen(struct engine *e, const struct engine_conf *conf, struct engine_found *found,
	     struct slu_err *err)
{
	(void)err;
	of_engine(e)->outcome = 0;
	*found = (struct engine_found){ .now = conf->wall };
	return 0;
}

static slu_time
count_next_due(struct engine *e)
{
	struct count *c = of_engine(e);

	return c->inner->ops->next_due(c->inner);
}

static slu_time
count_rests(struct engine *e)
{
	return of_engine(e)->rest;
}

static int
count_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	   bool may_block, struct slu_err *err)
{
	return engine_read(of_engine(e)->inner, ref, at, n, out, may_block, err);
}

static void
count_unpin(struct engine *e, struct op_ref *ref)
{
	engine_unpin(of_engine(e)->inner, ref);
}

const struct engine_ops engine_count = {
	.name = "count",
	.doc = "in memory, with the runs counted",
	.quotas = true,
	.options = &options,
	.open = count_open,
	.reopen = count_reopen,
	.close = count_close,
	.run = count_run,
	.commit = count_commit,
	.next_due = count_next_due,
	.read = count_read,
	.unpin = count_unpin,
	.rest = count_rests,
};
