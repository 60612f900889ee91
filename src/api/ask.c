#include "api/ask.h"

#include "api/admit.h"
#include "base/mem.h"

#include <assert.h>

static void
ended(struct call *c, bool sent)
{
	(void)sent; /* what was asked has happened, whoever knows it */
	ask_free(c->user);
}

struct ask *
ask_new(struct api *api, struct call *c)
{
	struct ask *const a = mem_alloc(sizeof *a);

	if (!a) {
		api_refuse(c, SLU_ENOMEM, NULL, -1);
		return NULL;
	}
	a->api = api;
	a->call = c;
	a->memory = (struct arena){ 0 };
	a->state = NULL;
	a->part = NULL;
	a->gone = false;
	a->ops = &a->op;
	a->n_ops = 1;
	c->user = a;
	c->ended = ended;
	return a;
}

void
ask_free(struct ask *a)
{
	arena_release(&a->memory);
	mem_free(a);
}

void *
ask_state(struct ask *a, size_t size)
{
	a->state = arena_alloc(&a->memory, size);
	if (!a->state) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return NULL;
	}
	return memset(a->state, 0, size);
}

bool
ask_params(struct ask *a, const struct param *rows, size_t n, void *out)
{
	const struct slice query = a->call->query;
	char *const room = arena_alloc(&a->memory, query.n);
	struct slu_err err = { 0 };
	int rc = SLU_ENOMEM;

	if (room)
		rc = params_query(rows, n, query, room, out, &err);
	if (rc)
		ask_refuse(a, rc, err.text);
	return rc == 0;
}

bool
ask_body(struct ask *a, const struct param *rows, size_t n, void *out)
{
	const struct slice body = a->call->body;
	char *const room = arena_array(&a->memory, body.n, 2);
	struct slu_err err = { 0 };
	int rc = SLU_ENOMEM;

	if (room)
		rc = params_json(rows, n, body, room, out, &err);
	if (rc)
		ask_refuse(a, rc, err.text);
	return rc == 0;
}

/* On the loop, when the last op has its answer. */
static void
answered(struct loop_work *w)
{
	struct ask *const a = CONTAINER(w, struct ask, work);
	const slu_time took = clock_mono(a->api->clock) - a->posted;

	for (unsigned i = 0; i < a->n_ops; i++)
		api_count(a->api, &a->ops[i], took);
	a->answer(a);
}

/* On the shard's thread. */
static void
done(struct op *op)
{
	struct ask *const a = op->owner;

	if (atomic_fetch_sub(&a->left, 1) == 1)
		loop_post(call_loop(a->call), &a->work);
}

void *
ask_split(struct ask *a, struct split *split, const uint32_t *shard, const void *items,
	  uint32_t n, size_t size)
{
	char *const sorted = arena_array(&a->memory, n, size);

	if (!sorted || split_init(split, &a->memory, shard, n, broker_shards(a->api->broker)))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		memcpy(sorted + split->place[i] * size, (const char *)items + i * size, size);
	a->n_ops = split->n_parts;
	if (a->n_ops > 1)
		a->ops = arena_array(&a->memory, a->n_ops, sizeof *a->ops);
	return a->ops ? sorted : NULL;
}

void
ask_op(struct ask *a, struct op *op, enum op_verb verb, struct slice space,
       struct slice queue)
{
	op_init(op, verb, space, queue, done, a);
}

void
ask_run(struct ask *a, void (*answer)(struct ask *a))
{
	if (!admit_ops(a->call, a->ops, a->n_ops))
		return;
	a->answer = answer;
	a->work.run = answered;
	a->posted = clock_mono(a->api->clock);
	atomic_init(&a->left, a->n_ops + 1);
	for (unsigned i = 0; i < a->n_ops; i++) {
		const int rc = broker_post(a->api->broker, &a->ops[i]);

		if (rc) {
			a->ops[i].rc = rc;
			atomic_fetch_sub(&a->left, 1);
		}
	}
	if (atomic_fetch_sub(&a->left, 1) == 1)
		answered(&a->work);
}

void
ask_gone(struct call *c)
{
	struct ask *const a = c->user;

	a->gone = true;
	for (unsigned i = 0; i < a->n_ops; i++)
		broker_cancel(a->api->broker, &a->ops[i]);
}

void
ask_reply(struct ask *a, unsigned status)
{
	if (a->call->out.failed)
		ask_refuse(a, SLU_ENOMEM, NULL);
	else
		call_answer(a->call, status, api_json, &a->call->out);
}

void
ask_refuse(struct ask *a, int rc, const char *text)
{
	api_refuse(a->call, rc, text, -1);
}

void
ask_refuse_item(struct ask *a, int rc, const char *text, int64_t index)
{
	api_refuse(a->call, rc, text, index);
}

void
ask_refuse_op(struct ask *a, const struct op *op)
{
	assert(op->rc);
	api_refuse(a->call, op->rc, op->err.code == (enum slu_code)op->rc ? op->err.text : NULL,
		   -1);
}
