#include "api/task/task.h"

#include "duty/reserved.h"
#include "api/flat/view.h"
#include "base/json/json_table.h"
#include "base/parse.h"
#include "core/schedule/schedule.h"

#include <inttypes.h>

static const char *const actions[TASK_ACTIONS] = {
	[TASK_REDRIVE] = "redrive",
	[TASK_MOVE] = "move",
	[TASK_DELETE] = "delete",
	[TASK_PRIORITY] = "priority",
	[TASK_RUN] = "run",
	[TASK_DELAY] = "delay",
};

static const char *const phases[TASK_PHASES] = {
	[TASK_RUNNING] = "running",
	[TASK_DONE] = "done",
	[TASK_CANCELED] = "canceled",
	[TASK_STOPPED] = "stopped",
	[TASK_FAILED] = "failed",
};

/* ---- Words ---- */

static int
find_word(const char *const *words, unsigned n, struct slice text, unsigned *out)
{
	for (*out = 0; *out < n; (*out)++)
		if (slice_eq(text, slice_of(words[*out])))
			return 0;
	return SLU_EINVAL;
}

int
task_action_parse(struct slice text, enum task_action *out, struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	unsigned i;

	if (find_word(actions, TASK_ACTIONS, text, &i))
		return slu_fail(err, SLU_EINVAL, "invalid action: %s; expected redrive, move, delete, priority, run or delay", parse_shown(text, shown));
	*out = (enum task_action)i;
	return 0;
}

/* "running", "canceling", "done" ... */
static const char *
phase_text(const struct task *t)
{
	return t->phase == TASK_RUNNING && t->cancel ? "canceling" : phases[t->phase];
}

const char *
task_id_text(uint64_t id, char out[static TASK_ID_TEXT])
{
	(void)snprintf(out, TASK_ID_TEXT, "%" PRIu64, id); /* fits */
	return out;
}

void
task_set_error(struct task *t, const char *text)
{
	size_t n = 0;

	for (; text[n] && n + 1 < sizeof t->error; n++)
		t->error[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	t->error[n] = '\0';
}

uint64_t
task_message_id(struct slice space, uint64_t id)
{
	char name[TASK_ID_TEXT + 8];

	(void)snprintf(name, sizeof name, "/task/%" PRIu64, id); /* no name of a schedule has a slash */
	return schedule_id(space, slice_of(name));
}

/* ---- Check ---- */

static int
check_target(const struct task *t, struct slu_err *err)
{
	const bool may = t->action == TASK_REDRIVE || t->action == TASK_MOVE;

	if (!may && (t->to.n || t->to_source))
		return slu_fail(err, SLU_EINVAL, "to: %s has no target", actions[t->action]);
	if (t->action == TASK_MOVE && (t->to.n > 0) == t->to_source)
		return slu_fail(err, SLU_EINVAL, "expected to, the name of a queue, or to_source");
	if (t->action == TASK_REDRIVE && t->to_source)
		return slu_fail(err, SLU_EINVAL, "to_source: expected the action move");
	if (slice_eq(t->to, t->queue))
		return slu_fail(err, SLU_EINVAL, "to: expected another queue than the messages'");
	return 0;
}

static int
check_state(struct task *t, struct slu_err *err)
{
	if (t->action == TASK_REDRIVE && t->state == MSG_NONE)
		t->state = MSG_DEAD;
	if (t->action == TASK_REDRIVE && t->state != MSG_DEAD)
		return slu_fail(err, SLU_EINVAL, "invalid state: %s; expected dead", flat_view_states[t->state]);
	if (t->action == TASK_RUN && t->state == MSG_NONE)
		t->state = MSG_DELAYED;
	if (t->action == TASK_RUN && t->state != MSG_DELAYED)
		return slu_fail(err, SLU_EINVAL, "invalid state: %s; expected delayed", flat_view_states[t->state]);
	if ((t->action == TASK_PRIORITY || t->action == TASK_DELAY) && t->state == MSG_DEAD)
		return slu_fail(err, SLU_EINVAL, "invalid state: dead; expected ready, delayed or held");
	if (t->state == MSG_LEASED || t->state == MSG_DAMAGED)
		return slu_fail(err, SLU_EINVAL, "invalid state: %s; expected ready, delayed, held or dead", flat_view_states[t->state]);
	return 0;
}

int
task_check(struct task *t, struct slu_err *err)
{
	int rc = check_target(t, err);

	if (!rc)
		rc = check_state(t, err);
	return rc ? rc : admin_filter_check(&t->filter, err);
}

/* ---- Encode ---- */

static void
encode_text(struct json_out *w, const char *name, struct slice text)
{
	if (text.n)
		json_out_str(w, name, text);
}

static void
encode_time(struct json_out *w, const char *name, slu_time at)
{
	if (at)
		json_out_i64(w, name, at);
}

static void
encode_filter(const struct admin_filter *f, struct json_out *w)
{
	for (size_t i = 0; i < admin_filter_n_rows; i++) {
		const struct admin_filter_row *const row = &admin_filter_rows[i];

		if (row->how == ADMIN_FILTER_id)
			json_out_u64(w, row->stored, f->id.id);
		else if (row->how == ADMIN_FILTER_span)
			json_out_i64(w, row->stored, admin_filter_time(f, row));
		else
			encode_text(w, row->stored, admin_filter_word(f, row));
	}
}

/* The first version that knows all conditions of the filter: an older server must not run the task without them. */
static unsigned
version_of(const struct admin_filter *f)
{
	const size_t newer = f->share.n + f->kind.n + f->body.n + f->owner.n + f->priority_min.n + f->priority_max.n + f->attempts_over.n +
			     f->attempts_under.n;

	return newer ? TASK_DOC_VERSION : 1;
}

static void
encode_progress(const struct task *t, struct json_out *w)
{
	json_out_str(w, "phase", slice_of(phases[t->phase]));
	json_out_bool(w, "cancel", t->cancel);
	json_out_i64(w, "before", t->before);
	json_out_i64(w, "ended", t->ended);
	json_out_u64(w, "total", t->total);
	json_out_u64(w, "looked", t->looked);
	json_out_u64(w, "matched", t->matched);
	json_out_u64(w, "done", t->done);
	json_out_u64(w, "refused", t->refused);
	json_out_u64(w, "failures", t->failures);
	json_out_str(w, "error", slice_of(t->error));
}

void
task_encode(const struct task *t, struct buf *out)
{
	char id[TASK_ID_TEXT];
	struct json_out w;

	json_out_open(&w, out);
	json_out_u64(&w, "version", version_of(&t->filter));
	json_out_str(&w, "task", slice_of(task_id_text(t->id, id)));
	json_out_str(&w, "action", slice_of(actions[t->action]));
	json_out_str(&w, "queue", t->queue);
	json_out_u64(&w, "state", t->state);
	encode_filter(&t->filter, &w);
	encode_text(&w, "to", t->to);
	json_out_bool(&w, "to_source", t->to_source);
	json_out_i64(&w, "priority", t->prio);
	encode_time(&w, "until", t->until);
	encode_time(&w, "start", t->start);
	json_out_u64(&w, "rate", t->rate);
	json_out_u64(&w, "stop_if_failing", t->stop_if_failing);
	json_out_bool(&w, "dry_run", t->dry_run);
	encode_text(&w, "by", t->by);
	json_out_i64(&w, "created", t->created);
	encode_progress(t, &w);
	json_out_finish(&w);
}

int
task_put(const struct task *t, struct slice space, struct arena *memory, struct op_put *out)
{
	struct buf text;

	buf_init(&text, SCHEDULE_DOC_MAX);
	task_encode(t, &text);
	return reserved_put(space, SLICE(TASK_QUEUE), &text, memory, out);
}

/* ---- Decode ---- */

struct task_doc {
	struct task t;
	uint64_t version, state, rate, stop_if_failing;
	int64_t prio;
	struct slice task, action, phase;
};

#define FIELD(text, how, member, ...)  JSON_ROW(text, json_read_##how, struct task_doc, member, .required = true, __VA_ARGS__)
#define OPTION(text, how, member, ...) JSON_ROW(text, json_read_##how, struct task_doc, member, __VA_ARGS__)

/* A condition as task_encode writes it. */
#define FILTERED(type, at, how, name, stored, member) FILTERED_##how(stored, at.member)
#define FILTERED_id(name, member)                     OPTION(name, u64, member.id)
#define FILTERED_word(name, member)                   OPTION(name, text, member)
#define FILTERED_number(name, member)                 OPTION(name, text, member)
#define FILTERED_span(name, member)                   OPTION(name, i64, member, .max = INT64_MAX)

static const struct json_field fields[] = {
	FIELD("version", u64, version),
	FIELD("task", text, task),
	FIELD("action", text, action),
	FIELD("queue", text, t.queue),
	FIELD("state", u64, state, .max = MSG_DEAD),
	ADMIN_FILTER_ROWS(FILTERED, struct task_doc, t.filter),
	OPTION("to", text, t.to),
	FIELD("to_source", bool, t.to_source),
	FIELD("priority", i64, prio, .min = INT32_MIN, .max = INT32_MAX),
	OPTION("until", i64, t.until, .max = INT64_MAX),
	OPTION("start", i64, t.start, .max = INT64_MAX),
	FIELD("rate", u64, rate, .max = TASK_RATE_MAX),
	FIELD("stop_if_failing", u64, stop_if_failing, .max = UINT32_MAX),
	FIELD("dry_run", bool, t.dry_run),
	OPTION("by", text, t.by),
	FIELD("created", i64, t.created, .max = INT64_MAX),
	FIELD("phase", text, phase),
	FIELD("cancel", bool, t.cancel),
	FIELD("before", i64, t.before, .max = INT64_MAX),
	FIELD("ended", i64, t.ended, .max = INT64_MAX),
	FIELD("total", u64, t.total),
	FIELD("looked", u64, t.looked),
	FIELD("matched", u64, t.matched),
	FIELD("done", u64, t.done),
	FIELD("refused", u64, t.refused),
	FIELD("failures", u64, t.failures),
	FIELD("error", chars, t.error),
};

static int
take_words(struct task_doc *d, struct slu_err *err)
{
	unsigned phase;

	if (d->version < 1 || d->version > TASK_DOC_VERSION)
		return slu_fail(err, SLU_EINVAL, "version: expected 1 to %d", TASK_DOC_VERSION);
	if (parse_u64(d->task, 1, INT64_MAX, &d->t.id, err) || task_action_parse(d->action, &d->t.action, err))
		return SLU_EINVAL;
	if (find_word(phases, TASK_PHASES, d->phase, &phase))
		return slu_fail(err, SLU_EINVAL, "phase: expected a word");
	d->t.phase = (enum task_phase)phase;
	d->t.state = (enum msg_state)d->state;
	d->t.prio = (int32_t)d->prio;
	d->t.rate = (uint32_t)d->rate;
	d->t.stop_if_failing = (uint32_t)d->stop_if_failing;
	return 0;
}

int
task_decode(struct slice doc, char *room, struct task *out, struct slu_err *err)
{
	struct task_doc d = { 0 };
	struct slu_err why = { 0 };
	struct json r;
	int rc;

	json_init(&r, doc, JSON_DEPTH);
	json_room(&r, room, doc.n);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &d);
	rc = json_end(&r, &why);
	if (!rc)
		rc = take_words(&d, &why);
	if (rc)
		return slu_fail(err, SLU_ECORRUPT, "invalid task: %.200s", why.text);
	*out = d.t;
	return 0;
}

/* ---- Show ---- */

static void
show_span(struct json_out *w, const char *name, slu_time span)
{
	char text[DURATION_TEXT];

	if (span)
		json_out_str(w, name, slice_of(format_duration(span, text, sizeof text)));
}

static void
show_condition(struct json_out *w, const struct admin_filter *f, const struct admin_filter_row *row)
{
	char id[TASK_ID_TEXT];

	if (row->how == ADMIN_FILTER_span)
		show_span(w, row->name, admin_filter_time(f, row));
	else if (row->how != ADMIN_FILTER_id)
		encode_text(w, row->name, admin_filter_word(f, row));
	else if (f->id.id)
		json_out_str(w, row->name, slice_of(task_id_text(f->id.id, id)));
}

static void
show_filter(struct json_out *w, const struct task *t)
{
	const struct admin_filter *const f = &t->filter;

	json_out_object(w, "filter");
	if (t->state != MSG_NONE)
		json_out_str(w, "state", slice_of(flat_view_states[t->state]));
	for (size_t i = 0; i < admin_filter_n_rows; i++)
		show_condition(w, f, &admin_filter_rows[i]);
	json_out_close(w);
}

static void
show_orders(struct json_out *w, const struct task *t)
{
	encode_text(w, "to", t->to);
	if (t->to_source)
		json_out_bool(w, "to_source", true);
	if (t->action == TASK_PRIORITY)
		json_out_i64(w, "priority", t->prio);
	if (t->action == TASK_DELAY)
		json_out_time(w, "until", t->until);
	if (t->start)
		json_out_time(w, "start_at", t->start);
	if (t->rate)
		json_out_u64(w, "rate", t->rate);
	if (t->stop_if_failing) {
		json_out_u64(w, "stop_if_failing", t->stop_if_failing);
		json_out_u64(w, "failures", t->failures);
	}
	json_out_bool(w, "dry_run", t->dry_run);
}

void
task_show(struct json_out *w, struct slice space, const struct task *t)
{
	char id[TASK_ID_TEXT];

	json_out_str(w, "task", slice_of(task_id_text(t->id, id)));
	json_out_str(w, "namespace", space);
	json_out_str(w, "queue", t->queue);
	json_out_str(w, "action", slice_of(actions[t->action]));
	json_out_str(w, "state", slice_of(phase_text(t)));
	show_filter(w, t);
	show_orders(w, t);
	json_out_u64(w, "total", t->total);
	json_out_u64(w, "looked", t->looked);
	json_out_u64(w, "matched", t->matched);
	json_out_u64(w, "done", t->done);
	json_out_u64(w, "refused", t->refused);
	if (t->error[0])
		json_out_str(w, "error", slice_of(t->error));
	encode_text(w, "by", t->by);
	json_out_time(w, "created_at", t->created);
	if (t->ended)
		json_out_time(w, "ended_at", t->ended);
}
