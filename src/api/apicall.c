#include "api/apicall.h"

#include "api/authorize.h"
#include "api/audit/audit.h"
#include "api/refusals.h"
#include "base/log.h"
#include "base/mem.h"

#include <assert.h>

enum {
	SPARES = 64 /* per thread */
};

static struct apicall_spares *
spares_of(struct api *api, const struct exchange *x)
{
	return &api->spares[exchange_thread(x)];
}

static struct apicall *
take_spare(struct apicall_spares *s)
{
	struct apicall *const a = s->first;

	if (!a)
		return mem_alloc(sizeof *a);
	s->first = a->next_spare;
	s->n--;
	return a;
}

void
apicall_end(struct apicall *a)
{
	struct apicall_spares *const s = spares_of(a->api, a->x);

	if (s->n == SPARES) {
		apicall_free(a);
		return;
	}
	arena_release(&a->memory);
	a->next_spare = s->first;
	s->first = a;
	s->n++;
}

void
apicall_release_spares(struct api *api)
{
	for (unsigned i = 0; api->spares && i < api->threads; i++)
		while (api->spares[i].first)
			mem_free(take_spare(&api->spares[i]));
	mem_free(api->spares);
	api->spares = NULL;
}

/* On the shard's thread. */
static void
returned(struct op *op)
{
	apicall_free(op->owner);
}

void
apicall_return(struct apicall *a, uint32_t from, const char *what)
{
	log_debug(a->api->log, what, F_U64("messages", a->op.n_rows - from), F_APICALL(a));
	a->op.done = returned;
	if (broker_return(a->api->broker, &a->op, from) == 0)
		return;
	op_unpin(&a->op); /* stopped: the leases end by themselves */
	apicall_free(a);
}

static void
ended(struct exchange *x, bool sent)
{
	(void)sent; /* the work is done either way */
	apicall_end(x->user);
}

struct apicall *
apicall_open(struct api *api, struct exchange *x, const struct apicall_terms *terms)
{
	struct apicall *a;
	struct slu_err err;

	if (!atomic_load_explicit(&api->open, memory_order_acquire)) {
		(void)api_starting(api, &err);
		terms->form->refuse(x, &err, -1);
		return NULL;
	}
	a = take_spare(spares_of(api, x));
	if (!a) {
		refusals_request(api, SLU_ENOMEM, NULL);
		(void)slu_fail(&err, SLU_ENOMEM, "%s", slu_err_row(SLU_ENOMEM)->text);
		terms->form->refuse(x, &err, -1);
		return NULL;
	}
	a->api = api;
	a->x = x;
	a->terms = *terms;
	arena_init(&a->memory, a->room, sizeof a->room);
	a->state = NULL;
	a->arg = 0;
	a->part = NULL;
	a->gone = false;
	a->lacked = false;
	a->starved = false;
	a->worker = NULL;
	a->change = (struct apicall_change){ 0 };
	a->item_of = NULL;
	a->routes = NULL;
	a->passed = false;
	a->ops = &a->op;
	a->n_ops = 1;
	x->user = a;
	x->ended = ended;
	return a;
}

void
apicall_free(struct apicall *a)
{
	arena_release(&a->memory);
	mem_free(a);
}

void *
apicall_state(struct apicall *a, size_t size)
{
	a->state = arena_alloc(&a->memory, size);
	if (!a->state) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return NULL;
	}
	return memset(a->state, 0, size);
}

/* On the loop, when the last op has its answer. */
static void
answered(struct loop_work *w)
{
	struct apicall *const a = CONTAINER(w, struct apicall, work);
	const slu_time took = clock_mono(a->api->clock) - a->posted;

	for (unsigned i = 0; i < a->n_ops; i++)
		api_count(a->api, exchange_thread(a->x), &a->ops[i], took);
	for (unsigned i = 0; i < a->n_ops; i++)
		a->lacked |= refusals_op(a->api, &a->ops[i]);
	if (a->api->audit)
		audit_apicall(a);
	if (a->worker)
		a->terms.form->tell(a);
	a->answer(a);
}

/* On the shard's thread. */
static void
done(struct op *op)
{
	struct apicall *const a = op->owner;

	if (atomic_fetch_sub(&a->left, 1) == 1)
		loop_post(exchange_loop(a->x), &a->work);
}

const struct routes *
apicall_routes(struct apicall *a)
{
	if (!a->routes)
		a->routes = broker_routes(a->api->broker);
	for (unsigned i = 0; i < a->n_ops; i++)
		a->ops[i].route.routes = a->routes;
	return a->routes;
}

void *
apicall_split(struct apicall *a, struct split *split, const uint32_t *shard, uint32_t n_shards,
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
apicall_op(struct apicall *a, struct op *op, enum op_verb verb, struct slice space,
	   struct slice queue)
{
	op_init(op, verb, space, queue, done, a);
	op->route.routes = a->routes;
}

/* APICALL-6 */
static bool
pass_ratelimit(struct apicall *a)
{
	const slu_time now = clock_mono(a->api->clock);
	struct op *failed;
	struct slu_err err;
	int64_t index = -1;

	if (a->terms.vital)
		return true; /* an operator's: a redrive into another queue */
	if (!ratelimit_pass(&a->api->ratelimit, a->ops, a->n_ops, now, &failed, &err))
		return true;
	if (failed)
		index = a->item_of ? a->item_of(a, failed) : (int64_t)failed->failed;
	apicall_refuse_err(a, &err, index);
	return false;
}

bool
apicall_pass(struct apicall *a)
{
	if (a->starved) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	a->passed = authorize_ops(a, a->ops, a->n_ops) && pass_ratelimit(a);
	if (a->passed && a->worker)
		a->terms.form->beat(a);
	return a->passed;
}

void
apicall_run(struct apicall *a, void (*answer)(struct apicall *a))
{
	if (!a->passed && !apicall_pass(a))
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

void
apicall_run_own(struct apicall *a, void (*answer)(struct apicall *a))
{
	for (unsigned i = 0; i < a->n_ops; i++)
		assert(a->ops[i].space.n && a->ops[i].space.p[0] == '.');
	a->passed = true;
	apicall_run(a, answer);
}

/* A page of a large shard may be empty, with a cursor (core/ledger/browse.c). The client gets the first
 * page that is not. */
static void
rows_found(struct apicall *a)
{
	const struct op was = a->op;

	if (was.verb != OP_LIST || was.rc || was.n_rows > 0 || was.cursor == 0 || a->gone) {
		a->rows_answer(a);
		return;
	}
	a->x->gone = apicall_gone;
	apicall_op(a, &a->op, OP_LIST, was.space, was.queue);
	a->op.state = was.state;
	a->op.cursor = was.cursor;
	a->op.rows = was.rows;
	a->op.max_rows = was.max_rows;
	apicall_run(a, rows_found);
}

void
apicall_run_rows(struct apicall *a, uint32_t max_rows, void (*answer)(struct apicall *a))
{
	a->rows_answer = answer;
	a->op.max_rows = max_rows;
	a->op.rows = arena_array(&a->memory, max_rows, sizeof *a->op.rows);
	if (a->op.rows)
		apicall_run(a, rows_found);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}

static int
run_on_file_thread(struct file_job *j)
{
	struct apicall *const a = CONTAINER(j, struct apicall, job);

	return a->job_run(a);
}

static void
back_on_loop(struct file_job *j, int rc)
{
	struct apicall *const a = CONTAINER(j, struct apicall, job);

	a->job_done(a, rc);
}

static void
run_job(struct apicall *a, struct filejobs *limit, int (*run)(struct apicall *a),
	void (*then)(struct apicall *a, int rc))
{
	a->job_run = run;
	a->job_done = then;
	a->job.loop = exchange_loop(a->x);
	a->job.space = a->op.space;
	a->job.run = run_on_file_thread;
	a->job.then = back_on_loop;
	filejobs_run(limit, &a->job);
}

void
apicall_job(struct apicall *a, int (*run)(struct apicall *a), void (*then)(struct apicall *a, int rc))
{
	run_job(a, NULL, run, then);
}

void
apicall_long_job(struct apicall *a, int (*run)(struct apicall *a), void (*then)(struct apicall *a, int rc))
{
	run_job(a, &a->api->filejobs, run, then);
}

static int
run_blocking(struct apicall *a)
{
	return a->job_try(a, true);
}

void
apicall_try(struct apicall *a, int (*run)(struct apicall *a, bool may_block),
	    void (*then)(struct apicall *a, int rc))
{
	const int rc = run(a, false);

	a->job_try = run;
	if (rc == SLU_EBUSY)
		apicall_job(a, run_blocking, then);
	else
		then(a, rc);
}

struct apicall_ids
apicall_ids(const struct apicall *a)
{
	return a->terms.form->ids ? a->terms.form->ids(a->x) : (struct apicall_ids){ 0 };
}

void
apicall_gone(struct exchange *x)
{
	struct apicall *const a = x->user;

	a->gone = true;
	for (unsigned i = 0; i < a->n_ops; i++)
		broker_cancel(a->api->broker, &a->ops[i]);
}

bool
apicall_failed(struct apicall *a)
{
	if (a->op.rc)
		apicall_refuse_op(a, &a->op);
	return a->op.rc;
}

bool
apicall_refused(struct apicall *a, int rc, const char *text)
{
	if (rc)
		apicall_refuse(a, rc, text);
	return rc;
}

static void
note(const struct apicall *a, int rc)
{
	if (!a->lacked)
		refusals_request(a->api, rc, NULL);
}

void
apicall_refuse(struct apicall *a, int rc, const char *text)
{
	apicall_refuse_item(a, rc, text, -1);
}

void
apicall_refuse_item(struct apicall *a, int rc, const char *text, int64_t index)
{
	struct slu_err err;

	note(a, rc);
	(void)slu_fail(&err, (enum slu_code)rc, "%s", text && *text ? text : slu_err_row(rc)->text);
	a->terms.form->refuse(a->x, &err, index);
}

struct slu_err
apicall_err_of(const struct op *op)
{
	struct slu_err err = op->err;

	if (err.code != (enum slu_code)op->rc)
		(void)slu_fail(&err, (enum slu_code)op->rc, "%s", slu_err_row(op->rc)->text);
	return err;
}

void
apicall_refuse_err(struct apicall *a, const struct slu_err *err, int64_t index)
{
	note(a, (int)err->code);
	api_count_limit(a->api, err);
	a->terms.form->refuse(a->x, err, index);
}

void
apicall_refuse_id(struct apicall *a, const struct op *op, struct given_id id)
{
	struct slu_err err = apicall_err_of(op);

	(void)value_id_failed(id, op->rc, &err); /* err has the code */
	apicall_refuse_err(a, &err, -1);
}

void
apicall_refuse_op(struct apicall *a, const struct op *op)
{
	const struct slu_err err = apicall_err_of(op);

	assert(op->rc);
	apicall_refuse_err(a, &err, -1);
}
