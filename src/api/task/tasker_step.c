/*
 * tasker_step.c - one step of a task: a page of its queue.
 *
 *      OP_LIST ──> each message: was it there when the task began? does it match? may it change?
 *         ^                │
 *         │ cursor         v  at most STEP_ACTS
 *         └────────── the acts ──> counts ──> the progress, each second
 *
 * The cursor of a list of dead letters is the last one that stays dead: one that is gone has no place.
 */
#include "api/task/tasker_private.h"

#include "engine/attempts.h"
#include "engine/engine.h"

#include <inttypes.h>

#define STORE_EACH SLU_SEC /* TASK-3 */
#define COUNT_EACH SLU_SEC

/* ---- The end ---- */

static int
end(struct tasker *s, struct tasked *row, enum task_phase phase, const char *why)
{
	struct task *const t = &row->t;
	struct slu_err err = { 0 };
	int rc;

	t->phase = phase;
	t->ended = clock_wall(&clock_system);
	task_set_error(t, why);
	rc = tasker_store(s, row, &err);
	if (rc) { /* again at the next step */
		t->phase = TASK_RUNNING;
		t->ended = 0;
		row->row.resume = duty_mono() + SLU_SEC;
		return rc == SLU_ENOTFOUND || rc == SLU_EMOVED ? rc : 0;
	}
	tasker_count(s);
	duty_count(&s->duty, TASKER_ENDED, 1);
	s->duty.stale = true; /* tasks that ended before it may be forgotten: TASKS-1 */
	return 0;
}

/* ---- The beginning ---- */

/* TASK-1: by the time of the shard that the messages live on; other shards have other times. */
static int
begin(struct tasker *s, struct tasked *row, struct slu_err *err)
{
	struct op_queue queue;
	struct op op;
	int rc;

	opwait_op(&s->duty.wait, &op, OP_STATS, slice_of(row->row.space), row->t.queue);
	op.wait = TASKER_OP_MAX;
	op.queues = &queue;
	op.max_queues = 1;
	rc = opwait_run(&s->duty.wait, s->duty.broker, &op, 1);
	if (!rc && queue.now)
		row->t.before = queue.now;
	else if (!rc || rc == SLU_ENOTFOUND)
		row->t.before = row->row.accepted;
	else
		*err = op.err;
	return rc == SLU_ENOTFOUND ? 0 : rc == SLU_EMOVED ? SLU_EDOWN
							  : rc;
}

/* ---- Failures of the target ---- */

/* Adds what has failed since the last look. A counter that begins anew belongs to a shard that was opened anew. */
static void
count_failures(struct tasker *s, struct tasked *row)
{
	const struct task *const t = &row->t;
	struct op_queue queue;
	uint64_t failed;
	struct op op;
	int rc;

	opwait_op(&s->duty.wait, &op, OP_STATS, slice_of(row->row.space), t->to.n ? t->to : t->queue);
	op.wait = TASKER_OP_MAX;
	op.queues = &queue;
	op.max_queues = 1;
	row->counted = duty_mono();
	rc = opwait_run(&s->duty.wait, s->duty.broker, &op, 1);
	if (rc && rc != SLU_ENOTFOUND)
		return;
	failed = rc ? 0 : queue.totals.failed;
	if (row->has_failed && failed > row->failed)
		row->t.failures += failed - row->failed;
	row->failed = failed;
	row->has_failed = true;
}

static bool
is_failing(struct tasker *s, struct tasked *row)
{
	const struct task *const t = &row->t;

	if (!t->stop_if_failing || t->dry_run)
		return false;
	if (!row->has_failed || duty_mono() - row->counted >= COUNT_EACH)
		count_failures(s, row);
	return t->failures >= t->stop_if_failing;
}

static int
stop(struct tasker *s, struct tasked *row)
{
	const struct task *const t = &row->t;
	char why[TASK_ERROR];

	(void)snprintf(why, sizeof why, "%" PRIu64 " deliveries of queue %.*s have failed since the task began", t->failures,
		       (int)(t->to.n ? t->to.n : t->queue.n), t->to.n ? t->to.p : t->queue.p);
	return end(s, row, TASK_STOPPED, why);
}

/* ---- A message ---- */

static bool
is_of_state(const struct task *t, const struct op_row *row)
{
	if (t->state != MSG_NONE)
		return row->state == t->state;
	return row->state == MSG_READY || row->state == MSG_DELAYED || row->state == MSG_HELD;
}

/* Whether its record says nothing that the task has to know. */
static bool
needs_no_record(const struct task *t)
{
	return t->state == MSG_DEAD && admin_filter_is_empty(&t->filter) &&
	       (t->action == TASK_DELETE || (t->action == TASK_REDRIVE && !t->to.n));
}

/* Reads the record, and behind it the error if the filter asks for it. */
static int
read_row(struct task_step *p, const struct op_row *row, struct message *m, struct slice *error)
{
	const size_t n = row->record.size;
	const size_t n_error = row->error.pin && admin_filter_needs_error(&p->row->t.filter) ? row->error.size : 0;
	char *const room = arena_alloc(&p->memory, n + n_error);
	struct slu_err err;
	int rc;

	*error = (struct slice){ 0 };
	if (!room)
		return SLU_ENOMEM;
	p->bytes += n + n_error;
	rc = engine_read(p->list.engine, &row->record, 0, n, room, true, &err);
	if (!rc && n_error)
		rc = engine_read(p->list.engine, &row->error, 0, n_error, room + n, true, &err);
	if (rc)
		return rc;
	*error = attempts_error((struct slice){ room + n, n_error });
	return message_decode((struct slice){ room, n }, m, &err);
}

/* TASK-1 */
static bool
was_there(const struct task *t, const struct op_row *row, const struct message *m)
{
	return (row->state == MSG_DEAD ? row->due : m->accepted) <= t->before;
}

static void
take(struct task_step *p, uint32_t i, const struct message *m)
{
	struct tasked *const row = p->row;
	char text[TASK_ERROR];

	p->matched++;
	if (tasker_act_add(p, i, m, text, sizeof text))
		return;
	p->refused++;
	if (!row->refusal[0])
		(void)snprintf(row->refusal, sizeof row->refusal, "%s", text);
}

/* Whether the message already is what the task makes of it. */
static bool
is_as_wanted(const struct task *t, const struct op_row *row)
{
	return (t->action == TASK_PRIORITY && row->prio == t->prio) || (t->action == TASK_DELAY && row->due == t->until);
}

/* Returns SLU_ENOMEM, or why the record cannot be read now. */
static int
look_at(struct task_step *p, uint32_t i)
{
	const struct task *const t = &p->row->t;
	const struct op_row *const row = &p->rows[i];
	struct message m = { 0 };
	struct slice error = { 0 };
	int rc;

	if (!is_of_state(t, row) || is_as_wanted(t, row))
		return 0;
	rc = needs_no_record(t) ? 0 : read_row(p, row, &m, &error);
	if (rc == SLU_ECORRUPT)
		return 0; /* a claim sets it aside */
	if (rc)
		return rc;
	if (was_there(t, row, &m) &&
	    admin_filter_matches(&t->filter, t->before, p->list.engine, row, &m, error, &p->bytes))
		take(p, i, &m);
	return 0;
}

/* ---- A page ---- */

static uint32_t
most_acts(const struct task *t)
{
	const uint32_t n = t->rate / STEPS_A_SECOND;

	if (!t->rate || t->dry_run || n > STEP_ACTS)
		return STEP_ACTS;
	return n ? n : 1;
}

static int
look(struct tasker *s, struct task_step *p)
{
	struct tasked *const row = p->row;
	int rc;

	opwait_op(&s->duty.wait, &p->list, OP_LIST, slice_of(row->row.space), row->t.queue);
	p->list.wait = TASKER_OP_MAX;
	p->list.state = row->t.state;
	p->list.cursor = row->cursor;
	p->list.rows = p->rows;
	p->list.max_rows = STEP_ROWS;
	rc = opwait_run(&s->duty.wait, s->duty.broker, &p->list, 1);
	p->err = p->list.err;
	if (rc == SLU_ENOTFOUND)
		p->list.cursor = p->list.n_rows = 0;
	if (rc)
		return rc == SLU_ENOTFOUND ? 0 : rc;
	for (; p->at < p->list.n_rows && !rc && p->n_acts < p->max_acts && p->bytes < STEP_BYTES; p->at++) {
		p->act_of[p->at] = -1;
		rc = look_at(p, p->at);
	}
	p->looked = p->at;
	op_unpin(&p->list);
	return rc;
}

/* Sets the cursor behind the page. Returns whether the task is at the end. */
static bool
go_on(struct task_step *p)
{
	struct tasked *const row = p->row;
	const bool whole = p->at == p->list.n_rows;

	if (whole && p->list.cursor == 0)
		return true;
	if (row->t.state != MSG_DEAD) {
		row->cursor = whole ? p->list.cursor : p->rows[p->at - 1].after;
		return false;
	}
	for (uint32_t i = 0; i < p->at; i++)
		if (p->act_of[i] < 0 || (p->items[p->act_of[i]].rc && p->items[p->act_of[i]].rc != SLU_ENOTFOUND))
			row->cursor = p->rows[i].id;
	return false;
}

static void
add_up(struct tasker *s, struct task_step *p)
{
	struct task *const t = &p->row->t;

	t->done += p->done;
	t->refused += p->refused;
	t->matched += p->matched;
	t->looked += p->looked;
	duty_count(&s->duty, TASKER_MESSAGES, p->done);
	duty_count(&s->duty, TASKER_REFUSED, p->refused);
}

/* TASKER-3: the page comes again. What is done of it does not match then. */
static int
wait(struct tasker *s, struct task_step *p)
{
	struct tasked *const row = p->row;

	p->looked = p->refused = 0;
	p->matched = p->done;
	add_up(s, p);
	task_set_error(&row->t, p->err.text[0] ? p->err.text : slu_err_row(SLU_EDOWN)->text);
	row->row.resume = duty_mono() + SLU_SEC;
	if (!row->waits)
		(void)tasker_store(s, row, NULL); /* for those who look; the next step stores it again */
	row->waits = true;
	return 0;
}

static slu_time
pause_of(const struct task *t, uint64_t done)
{
	return t->rate ? (slu_time)done * SLU_SEC / t->rate : 0;
}

/* The page was looked at, and its acts are over. */
static int
finish(struct tasker *s, struct task_step *p, slu_time began)
{
	struct tasked *const row = p->row;
	const uint64_t was = row->cursor;
	bool at_end;

	row->waits = false;
	add_up(s, p);
	at_end = go_on(p);
	if (at_end)
		return end(s, row, TASK_DONE, row->refusal);
	task_set_error(&row->t, row->refusal);
	row->row.resume = began + pause_of(&row->t, p->done);
	if (!p->done && row->cursor == was)
		row->row.resume = duty_mono() + SLU_SEC; /* nothing moved: others are at work here */
	return duty_mono() - row->stored < STORE_EACH ? 0 : tasker_store(s, row, NULL);
}

static int
run(struct tasker *s, struct task_step *p)
{
	const slu_time began = duty_mono();
	int rc = look(s, p);

	if (!rc)
		rc = tasker_act_run(s, p);
	if (rc == SLU_EMOVED || p->again || (rc && slu_err_row(rc)->retry != SLU_RETRY_NO))
		return wait(s, p);
	if (!rc)
		return finish(s, p, began);
	add_up(s, p);
	return end(s, p->row, TASK_FAILED, p->err.text[0] ? p->err.text : slu_err_row(rc)->text);
}

/* TASK-4: sets when the next step is. A cancel brings it forward. */
static bool
is_early(struct tasked *row)
{
	const slu_time left = row->t.start - clock_wall(&clock_system);

	if (row->t.start == 0 || row->t.dry_run || left <= 0)
		return false;
	row->row.resume = duty_mono() + left;
	return true;
}

int
tasker_step(struct duty *d, struct duty_row *one, struct slu_err *err)
{
	struct tasker *const s = CONTAINER(d, struct tasker, duty);
	struct tasked *const row = CONTAINER(one, struct tasked, row);
	struct task_step *const p = s->step;
	int rc;

	if (row->t.cancel)
		return end(s, row, TASK_CANCELED, row->refusal);
	rc = row->t.before ? 0 : begin(s, row, err);
	if (!rc && !row->stored) /* TASK-1: the next owner has the same moment */
		rc = tasker_store(s, row, err);
	if (rc)
		return rc;
	if (is_early(row))
		return 0;
	if (is_failing(s, row))
		return stop(s, row);
	p->row = row;
	p->at = 0;
	p->bytes = 0;
	p->n_acts = 0;
	p->max_acts = most_acts(&row->t);
	p->looked = p->matched = p->done = p->refused = 0;
	p->again = false;
	p->err = (struct slu_err){ 0 };
	rc = run(s, p);
	arena_release(&p->memory);
	return rc;
}
