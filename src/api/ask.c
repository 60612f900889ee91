#include "api/ask.h"

#include "api/admit.h"
#include "api/audit.h"
#include "api/refusals.h"
#include "base/mem.h"

#include <assert.h>

enum {
	SPARES = 64 /* a thread */
};

static struct ask_spares *
spares_of(struct api *api, const struct call *c)
{
	return &api->spares[call_thread(c)];
}

static struct ask *
take_spare(struct ask_spares *s)
{
	struct ask *const a = s->first;

	if (!a)
		return mem_alloc(sizeof *a);
	s->first = a->next_spare;
	s->n--;
	return a;
}

void
ask_end(struct ask *a)
{
	struct ask_spares *const s = spares_of(a->api, a->call);

	if (s->n == SPARES) {
		ask_free(a);
		return;
	}
	arena_release(&a->memory);
	a->next_spare = s->first;
	s->first = a;
	s->n++;
}

void
ask_release_spares(struct api *api)
{
	for (unsigned i = 0; api->spares && i < api->threads; i++)
		while (api->spares[i].first)
			mem_free(take_spare(&api->spares[i]));
	mem_free(api->spares);
	api->spares = NULL;
}

static void
ended(struct call *c, bool sent)
{
	(void)sent; /* what was asked has happened, whoever knows it */
	ask_end(c->user);
}

struct ask *
ask_new(struct api *api, struct call *c)
{
	struct ask *a;
	struct slu_err err;

	if (!atomic_load_explicit(&api->open, memory_order_acquire)) {
		(void)api_starting(api, &err);
		api_refuse_err(c, &err, -1);
		return NULL;
	}
	a = take_spare(spares_of(api, c));
	if (!a) {
		refusals_request(api, SLU_ENOMEM, NULL);
		api_refuse(c, SLU_ENOMEM, NULL, -1);
		return NULL;
	}
	a->api = api;
	a->call = c;
	arena_init(&a->memory, a->room, sizeof a->room);
	a->state = NULL;
	a->part = NULL;
	a->gone = false;
	a->lacked = false;
	a->starved = false;
	a->item_of = NULL;
	a->routes = NULL;
	a->passed = false;
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
		api_count(a->api, call_thread(a->call), &a->ops[i], took);
	for (unsigned i = 0; i < a->n_ops; i++)
		a->lacked |= refusals_op(a->api, &a->ops[i]);
	if (a->api->audit)
		audit_ask(a);
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

const struct routes *
ask_routes(struct ask *a)
{
	if (!a->routes)
		a->routes = broker_routes(a->api->broker);
	for (unsigned i = 0; i < a->n_ops; i++)
		a->ops[i].routes = a->routes;
	return a->routes;
}

void *
ask_split(struct ask *a, struct split *split, const uint32_t *shard, uint32_t n_shards,
	  const void *items, uint32_t n, size_t size)
{
	char *const sorted = arena_array(&a->memory, n, size);

	if (!sorted || split_init(split, &a->memory, shard, n, n_shards))
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
	op->routes = a->routes;
}

/* K6 */
static bool
pass_gate(struct ask *a)
{
	const slu_time now = clock_mono(a->api->clock);
	struct op *failed;
	struct slu_err err;
	int64_t index = -1;

	if (a->ops[0].verb != OP_ENQUEUE || a->call->route->vital)
		return true; /* or an operator's: a redrive into another queue */
	if (!gate_pass(&a->api->gate, a->ops, a->n_ops, now, &failed, &err))
		return true;
	if (failed)
		index = a->item_of ? a->item_of(a, failed) : (int64_t)failed->failed;
	ask_refuse_err(a, &err, index);
	return false;
}

bool
ask_pass(struct ask *a)
{
	if (a->starved) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	a->passed = admit_ops(a->call, a->ops, a->n_ops) && pass_gate(a);
	return a->passed;
}

void
ask_run(struct ask *a, void (*answer)(struct ask *a))
{
	if (!a->passed && !ask_pass(a))
		return;
	a->passed = false;
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

static int
run_on_file_thread(struct lane_job *j)
{
	struct ask *const a = CONTAINER(j, struct ask, job);

	return a->job_run(a);
}

static void
back_on_loop(struct lane_job *j, int rc)
{
	struct ask *const a = CONTAINER(j, struct ask, job);

	a->job_done(a, rc);
}

static void
run_job(struct ask *a, struct lane *lane, int (*run)(struct ask *a),
	void (*then)(struct ask *a, int rc))
{
	a->job_run = run;
	a->job_done = then;
	a->job.loop = call_loop(a->call);
	a->job.run = run_on_file_thread;
	a->job.then = back_on_loop;
	lane_run(lane, &a->job);
}

void
ask_job(struct ask *a, int (*run)(struct ask *a), void (*then)(struct ask *a, int rc))
{
	run_job(a, NULL, run, then);
}

void
ask_long_job(struct ask *a, int (*run)(struct ask *a), void (*then)(struct ask *a, int rc))
{
	run_job(a, &a->api->lane, run, then);
}

void
ask_gone(struct call *c)
{
	struct ask *const a = c->user;

	a->gone = true;
	for (unsigned i = 0; i < a->n_ops; i++)
		broker_cancel(a->api->broker, &a->ops[i]);
}

/* What was asked for has happened, and it changed something. */
static bool
has_changed(const struct ask *a)
{
	for (unsigned i = 0; i < a->n_ops; i++)
		if (a->ops[i].rc == 0 && op_changes(a->ops[i].verb))
			return true;
	return false;
}

void
ask_reply(struct ask *a, unsigned status)
{
	api_end_line(&a->call->out);
	if (a->call->out.failed && has_changed(a))
		ask_refuse(a, SLU_EUNKNOWN, "it was done, but there is no memory to say what");
	else if (a->call->out.failed)
		ask_refuse(a, SLU_ENOMEM, NULL);
	else
		call_answer(a->call, status, api_json, &a->call->out);
}

static void
note(const struct ask *a, int rc)
{
	if (!a->lacked)
		refusals_request(a->api, rc, NULL);
}

void
ask_refuse(struct ask *a, int rc, const char *text)
{
	note(a, rc);
	api_refuse(a->call, rc, text, -1);
}

void
ask_refuse_item(struct ask *a, int rc, const char *text, int64_t index)
{
	note(a, rc);
	api_refuse(a->call, rc, text, index);
}

struct slu_err
ask_err_of(const struct op *op)
{
	struct slu_err err = op->err;

	if (err.code != (enum slu_code)op->rc)
		(void)slu_fail(&err, (enum slu_code)op->rc, "%s", slu_err_row(op->rc)->text);
	return err;
}

void
ask_refuse_err(struct ask *a, const struct slu_err *err, int64_t index)
{
	note(a, (int)err->code);
	api_count_limit(a->api, err);
	api_refuse_err(a->call, err, index);
}

void
ask_refuse_id(struct ask *a, const struct op *op, struct given_id id)
{
	struct slu_err err = ask_err_of(op);

	(void)value_id_failed(id, op->rc, &err); /* err has the code */
	ask_refuse_err(a, &err, -1);
}

void
ask_refuse_op(struct ask *a, const struct op *op)
{
	const struct slu_err err = ask_err_of(op);

	assert(op->rc);
	ask_refuse_err(a, &err, -1);
}
