/*
 * sim_look.c - everything that is there, against the model.
 */
#include "sim_world.h"

#include "core/ledger/check.h"

/* ---- One row ---- */

static bool
is_as_known(struct sim_world *w, const struct op_row *row, const struct sim_msg *x)
{
	const enum msg_state state = model_state(&w->model, x);

	if (row->state != state || row->attempts != x->attempts ||
	    row->failures != x->failures)
		return false;
	if (state == MSG_DEAD)
		return row->reason == x->reason && row->due == x->died;
	if (state == MSG_LEASED && (row->token != x->token || row->until != x->until))
		return false;
	return row->due == x->due && row->expires == x->expires &&
	       row->max_attempts == model_max_attempts(&w->model, x);
}

/* What never changes. */
static bool
is_same(const struct op_row *row, const struct sim_msg *x)
{
	const bool numbered = x->number && !x->redriven && !(x->doubt & DOUBT_STATE);

	return row->id == x->id && row->prio == x->prio &&
	       (!numbered || row->number == x->number);
}

void
world_check_row(struct sim_world *w, const struct op_row *row, const struct sim_msg *x)
{
	if (is_same(row, x) && is_as_known(w, row, x))
		return;
	world_fail(w,
		   "I1: %" PRIu64 " is not as it was: state %d, want %d; token %" PRIu64
		   ", %" PRIu64 "; until %" PRId64 ", %" PRId64 "; due %" PRId64 ", %" PRId64
		   "; attempts %u, %u; failures %u, %u; number %" PRIu64 ", %" PRIu64
		   "; reason %d, %d",
		   row->id, row->state, model_state(&w->model, x), row->token, x->token,
		   row->until, x->until, row->due, x->state == M_DEAD ? x->died : x->due,
		   row->attempts, x->attempts, row->failures, x->failures, row->number,
		   x->number, row->reason, x->reason);
}

/* ---- Calls that are answered at once ---- */

static void
on_done(struct op *op)
{
	*(bool *)op->owner = true;
}

bool
world_call_now(struct sim_world *w, struct op *op)
{
	bool done = false;

	op->owner = &done;
	op->done = on_done;
	if (broker_post(w->broker, op))
		world_fail(w, "%s was not taken", op_verb_name(op->verb));
	w->want.ops++;
	for (int i = 0; !done && i < 100; i++)
		broker_round(w->broker);
	if (!done)
		world_fail(w, "%s is not answered", op_verb_name(op->verb));
	if ((op->rc == SLU_EDOWN || op->rc == SLU_EUNKNOWN) && (w->disk->dead || w->failing))
		return false;
	return true;
}

static void
op_for(struct op *op, enum op_verb verb, unsigned queue)
{
	op_init(op, verb, world_space(queue), world_queue(queue), on_done, NULL);
}

size_t
world_list(struct sim_world *w)
{
	size_t n = 0;
	struct op op;

	op_init(&op, OP_LIST, (struct slice){ 0 }, (struct slice){ 0 }, on_done, NULL);
	do {
		op.rows = w->rows + n;
		op.max_rows = (uint32_t)(COUNT(w->rows) - n);
		if (!world_call_now(w, &op))
			return SIZE_MAX;
		if (op.rc)
			world_fail(w, "a list was refused: %d, %s", op.rc, op.err.text);
		for (uint32_t i = 0; i < op.n_rows; i++)
			w->engines[n + i] = op.engine;
		n += op.n_rows;
	} while (op.cursor);
	return n;
}

void
world_unlist(struct sim_world *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		engine_unpin(w->engines[i], &w->rows[i].record);
		engine_unpin(w->engines[i], &w->rows[i].error);
		shared_text_unref(w->rows[i].holder);
	}
}

/* ---- Policies, keys, results after an open ---- */

/* I9, and all else that a ledger can be wrong in. */
static void
check_ledgers(struct sim_world *w)
{
	for (unsigned i = 0; i < w->n_shards; i++) {
		const char *wrong;

		if (w->shards[i].failed || w->disk->dead)
			continue;
		wrong = ledger_scan_check(logengine_ledger(w->shards[i].engine));
		if (!wrong)
			wrong = locks_scan_check(logengine_locks(w->shards[i].engine));
		if (wrong)
			world_fail(w, "I9: shard %u: %s", i, wrong);
	}
}

static bool
adopt_policy(struct sim_world *w, unsigned queue)
{
	struct model_queue *q = &w->model.queues[queue];
	struct op op;

	op_for(&op, OP_POLICY_GET, queue);
	if (!world_call_now(w, &op))
		return false;
	if (!model_same_policy(&op.policy, &q->policy) &&
	    !(q->doubt && model_same_policy(&op.policy, &q->other)) &&
	    !(q->blank && model_same_policy(&op.policy, &policy_default)))
		world_fail(w, "the policy of queue %u is lost", queue);
	q->policy = op.policy;
	q->doubt = q->blank = false;
	q->known = !model_same_policy(&op.policy, &policy_default);
	return true;
}

static bool
adopt_result(struct sim_world *w, unsigned i)
{
	struct sim_kept *r = &w->model.results[i];
	struct op op;

	op_for(&op, OP_RESULT, r->queue);
	op.id = r->id;
	if (!world_call_now(w, &op))
		return false;
	if (op.rc && !r->doubt && world_now(w, r->queue) < r->from)
		world_fail(w, "the result of %" PRIu64 " is lost: %d", r->id, op.rc);
	if (!op.rc && op.result.pin)
		world_check_text(w, op.engine, &op.result, 'r', r->id);
	if (!op.rc && !r->doubt && r->text != (op.result.pin != NULL))
		world_fail(w, "the result of %" PRIu64 " is another", r->id);
	r->text = !op.rc && op.result.pin;
	if (op.rc)
		r->until = r->from = 0;
	r->doubt = false;
	op_unpin(&op);
	return true;
}

/* I2: of two messages that are there, one was accepted though its key was known. */
static void
check_idems(struct sim_world *w)
{
	EACH_MSG(x, &w->model)
	for (const struct sim_msg *y = w->model.msgs; y < x; y++)
		if (x->idem >= 0 && x->idem == y->idem && x->queue == y->queue)
			world_fail(w, "I2: %" PRIu64 " and %" PRIu64 " have one key", y->id, x->id);
}

static void
adopt_idems(struct sim_world *w)
{
	for (unsigned q = 0; q < MODEL_QUEUES; q++)
		for (int k = 0; k < MODEL_IDEMS; k++) {
			struct sim_idem *i = &w->model.idems[q][k];

			EACH_MSG(x, &w->model)
			if (i->doubt && x->queue == q && x->idem == k)
				*i = (struct sim_idem){ .id = x->id, .live = true };
		}
}

/* ---- Messages after an open ---- */

static void
grace(struct sim_world *w)
{
	EACH_MSG(x, &w->model)
	{
		const slu_time least = world_now(w, x->queue) + LEDGER_GRACE;

		if (x->state == M_LEASED && x->until < least)
			x->until = least;
	}
}

/* What is there is right from now on. */
static void
take_over(struct sim_world *w, struct sim_msg *x, const struct op_row *row)
{
	uint64_t *top = &w->model.top[w->model.queues[x->queue].shard];

	if (row->state == MSG_LEASED && !(row->holder && strcmp(row->holder->p, WORLD_HOLDER) == 0))
		world_fail(w, "%" PRIu64 " is leased, and nobody has it", row->id);
	*top = row->number > *top ? row->number : *top;
	x->state = row->state == MSG_LEASED ? M_LEASED : row->state == MSG_DEAD ? M_DEAD
										: M_WAIT;
	x->delayed = row->state == MSG_DELAYED;
	x->number = row->number;
	x->redriven = false;
	if (row->state == MSG_LEASED)
		x->token = row->token;
	x->until = row->until;
	x->due = row->due;
	x->died = row->due;
	x->expires = row->expires;
	x->attempts = row->attempts;
	x->failures = row->failures;
	x->reason = row->reason;
	x->holds = row->flags & MSG_HOLDS;
	x->doubt = 0;
	x->fading = false;
	x->seen = true;
}

/* Held or ready may hang on another one's doubts: all waiting is the same here. */
static bool
is_where_it_was(struct sim_world *w, const struct op_row *row, const struct sim_msg *x)
{
	if (x->state != M_WAIT || row->state == MSG_LEASED || row->state == MSG_DEAD)
		return is_as_known(w, row, x);
	return row->due == x->due && row->expires == x->expires &&
	       row->failures == x->failures && row->attempts == x->attempts;
}

static void
see_row(struct sim_world *w, const struct op_row *row, struct engine *engine)
{
	struct sim_msg *x = model_find(&w->model, row->id);
	const unsigned doubts = DOUBT_IN | DOUBT_OUT | DOUBT_STATE | (w->lost ? DOUBT_POWER | DOUBT_FRESH : 0);
	bool has_error;

	if (!x)
		world_fail(w, "I3: %" PRIu64 " is there, and %s", row->id,
			   model_is_gone(&w->model, row->id) ? "was gone" : "nobody put it");
	if (x->seen)
		world_fail(w, "I8: %" PRIu64 " is there twice", row->id);
	if (!is_same(row, x))
		world_check_row(w, row, x);
	world_check_record(w, engine, row, x);
	has_error = row->error.pin && world_check_text(w, engine, &row->error, 'e', row->id);
	if (x->error && !has_error)
		world_fail(w, "the error of %" PRIu64 " is lost", row->id);
	if (!(x->doubt & doubts) && !is_where_it_was(w, row, x))
		world_check_row(w, row, x);
	x->error = has_error;
}

/* As many dead letters as there may be are there, and died after it: of some of them, or of
 * it, that is known only now, after a run with an unknown outcome. */
static bool
is_one_too_many(struct sim_world *w, const struct sim_msg *x)
{
	const struct policy *p = &w->model.queues[x->queue].policy;
	uint32_t later = 0;

	if (!p->dlq_max || (x->state != M_DEAD && !x->doubt))
		return false;
	EACH_MSG(y, &w->model)
	later += y->seen && y->queue == x->queue && y->state == M_DEAD && y->died >= x->died;
	return later >= p->dlq_max;
}

/* It may have died, and been one dead letter too many. */
static bool
may_be_retired(struct sim_world *w, const struct sim_msg *x)
{
	const struct policy *p = &w->model.queues[x->queue].policy;

	return x->fading || is_one_too_many(w, x) ||
	       (x->doubt && (p->dlq_max || p->dlq_retention));
}

/* I1, I2: accepted and not there. Of one call all or none. */
static void
miss(struct sim_world *w, struct sim_msg *x)
{
	if (!(x->doubt & (DOUBT_IN | DOUBT_OUT)) && !may_be_retired(w, x))
		world_fail(w, "I1: %" PRIu64 " was accepted and is lost: state %d, doubts %x, died "
			      "%" PRId64 ", expires %" PRId64,
			   x->id, x->state, x->doubt, x->died, x->expires);
	if (is_one_too_many(w, x))
		return;
	EACH_MSG(y, &w->model)
	if ((x->doubt & DOUBT_IN) && y->seen && y->call == x->call && x->call &&
	    !(x->doubt & DOUBT_OUT))
		world_fail(w, "I2: of one call %" PRIu64 " is there and %" PRIu64 " is not",
			   y->id, x->id);
}

/* A message that an OP_FINISH may have ended is gone exactly if the messages of that call are there. */
static void
check_ender(struct sim_world *w, const struct sim_msg *x)
{
	if (!x->ender || x->ender == UINT32_MAX || (!x->seen && may_be_retired(w, x)))
		return;
	EACH_MSG(y, &w->model)
	if (y->call == x->ender && !(y->doubt & DOUBT_OUT) && y->seen == x->seen && (y->seen || !may_be_retired(w, y)))
		world_fail(w, "I2: %" PRIu64 " is %s, and %" PRIu64 " of the call that ends it is %s", x->id,
			   x->seen ? "there" : "gone", y->id, y->seen ? "there" : "not");
}

static void
drop_missing(struct sim_world *w)
{
	struct sim_model *m = &w->model;

	EACH_MSG(x, m)
	if (!x->seen)
		miss(w, x);
	EACH_MSG(x, m)
	check_ender(w, x);
	for (unsigned i = 0; i < m->n;) {
		struct sim_msg *x = &m->msgs[i];
		const bool never = x->doubt & DOUBT_IN;

		if (x->seen) {
			x->call = x->ender = 0;
			i++;
			continue;
		}
		if (never)
			model_forget(m, x);
		else
			model_remove(m, x, 0, world_now(w, x->queue));
	}
}

/* All rows have been taken over: do states fit each other? */
static void
check_states(struct sim_world *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		world_check_row(w, &w->rows[i], model_find(&w->model, w->rows[i].id));
}

static bool
adopt_messages(struct sim_world *w)
{
	const size_t n = world_list(w);

	if (n == SIZE_MAX)
		return false;
	EACH_MSG(x, &w->model)
	x->seen = false;
	for (size_t i = 0; i < n; i++) {
		see_row(w, &w->rows[i], w->engines[i]);
		take_over(w, model_find(&w->model, w->rows[i].id), &w->rows[i]);
	}
	drop_missing(w);
	check_states(w, n);
	world_unlist(w, n);
	return true;
}

static bool
adopt(struct sim_world *w)
{
	for (unsigned q = 0; q < MODEL_QUEUES; q++)
		if (!adopt_policy(w, q))
			return false;
	grace(w);
	for (unsigned i = 0; i < w->n_shards; i++) {
		const slu_time now = clock_boot(&w->clock.clock) + w->shards[i].offset;

		model_tick(&w->model, i, now, now);
	}
	if (!adopt_messages(w))
		return false;
	for (unsigned i = 0; i < w->model.n_results; i++)
		if (!adopt_result(w, i))
			return false;
	check_idems(w);
	adopt_idems(w);
	EACH_MSG(x, &w->model)
	w->model.queues[x->queue].known = true;
	check_ledgers(w);
	return world_check_locks(w, true);
}

bool
world_adopt(struct sim_world *w)
{
	static struct sim_model before;

	before = w->model;
	if (adopt(w))
		return true;
	w->model = before; /* but what fell due may have happened, and been written */
	for (unsigned i = 0; i < w->n_shards; i++)
		world_doubt_run(w, i);
	return false;
}

void
world_verify(struct sim_world *w)
{
	size_t n;

	for (unsigned i = 0; i < w->n_shards; i++)
		if (w->shards[i].failed)
			return;
	n = world_list(w);
	if (n == SIZE_MAX)
		return;
	if (n != w->model.n)
		world_fail(w, "I9: %zu messages are there, not %u", n, w->model.n);
	for (size_t i = 0; i < n; i++) {
		struct sim_msg *x = model_find(&w->model, w->rows[i].id);

		if (!x)
			world_fail(w, "I3: %" PRIu64 " is there", w->rows[i].id);
		world_check_row(w, &w->rows[i], x);
		world_check_record(w, w->engines[i], &w->rows[i], x);
	}
	world_unlist(w, n);
	check_ledgers(w);
	(void)world_check_locks(w, false); /* a disk that failed is met by others */
	world_count_states(w);
}
