/*
 * embed_schedule.c - the schedules of a user's program.
 *
 *      OP_GET ──> read the schedule, change it ──> OP_SCHEDULE
 *        ^                                             │ another call was faster
 *        └─────────────────────────────────────────────┘
 */
#include "embed/embed.h"

#include "base/need.h"
#include "base/sized.h"
#include "core/reserved.h"
#include "duty/definition.h"
#include "duty/firing.h"
#include "form/retry.h"

#include <sluice/schedule.h>

#include <stdio.h>

enum {
	TRIES = 20 /* calls that change one schedule at the same time */
};

/* A schedule that is being changed. */
struct editing {
	struct slu_broker *b;
	char name[NAME_TEXT];
	struct arena memory;
	uint64_t number; /* of the stored schedule; 0: it does not exist */
	struct schedule old, s;
	struct schedule_plan plan;
	struct op_put puts[2]; /* the schedule, and the message of a run */
	uint32_t n_puts;       /* 0: the schedule goes */
	bool nothing;          /* there is nothing to store */
};

/* Makes `s` of `old`. */
typedef int edit(struct editing *c, const void *arg, struct slu_err *err);

static slu_time
now(void)
{
	return clock_wall(&clock_system);
}

static int
not_found(const char *name, struct slu_err *err)
{
	return slu_fail(err, SLU_ENOTFOUND, "there is no schedule %s", name);
}

/* ---- Storing ---- */

static int
load(struct editing *c, struct slu_err *err)
{
	struct slu_broker *const b = c->b;
	struct embed_call call;
	struct op_row row;
	int rc = embed_begin(b, &call, OP_GET, NULL, err);

	if (rc)
		return rc;
	call.op.queue = SLICE(SCHEDULE_QUEUE);
	call.op.id = schedule_id(slice_of(b->space), slice_of(c->name));
	call.op.rows = &row;
	call.op.max_rows = 1;
	rc = embed_run(b, &call, err);
	if (!rc && call.op.n_rows)
		rc = definition_read(call.op.engine, &row.record, slice_of(c->name), &c->memory, &c->old, err);
	c->number = !rc && call.op.n_rows ? row.number : 0;
	op_unpin(&call.op);
	embed_end(b, &call);
	return rc == SLU_ENOTFOUND ? 0 : rc;
}

static int
store(struct editing *c, struct slu_err *err)
{
	struct slu_broker *const b = c->b;
	struct op_item item = {
		.id = schedule_id(slice_of(b->space), slice_of(c->name)),
		.number = c->number,
		.remove = c->n_puts == 0,
	};
	struct embed_call call;
	int rc = embed_begin(b, &call, OP_SCHEDULE, NULL, err);

	if (rc)
		return rc;
	if (c->n_puts)
		rc = firing_schedule(&c->s, slice_of(b->space), &c->memory, &c->puts[0], err);
	call.op.queue = SLICE(SCHEDULE_QUEUE);
	call.op.items = &item;
	call.op.n_items = 1;
	call.op.puts = c->puts;
	call.op.n_puts = c->n_puts;
	if (!rc)
		rc = embed_run(b, &call, err);
	embed_end(b, &call);
	return rc;
}

/* Returns SLU_ECONFLICT if another call was faster. */
static int
try_once(struct editing *c, edit *how, const void *arg, struct slu_err *err)
{
	int rc = load(c, err);

	if (!rc)
		rc = how(c, arg, err);
	if (!rc && !c->nothing)
		rc = store(c, err);
	arena_release(&c->memory);
	return rc == SLU_ENOTFOUND && c->number ? SLU_ECONFLICT : rc;
}

static int
change(struct slu_broker *b, const char *name, edit *how, const void *arg, uint64_t *id, struct slu_err *err)
{
	struct editing c = { .b = b };
	int rc = name_fold(slice_of(name), "name", c.name, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < TRIES; i++) {
		c.n_puts = 1;
		rc = try_once(&c, how, arg, err);
		if (rc != SLU_ECONFLICT)
			break;
	}
	if (!rc && id)
		*id = c.puts[1].m.id;
	return rc;
}

/* ---- The message as JSON ---- */

static int
check_message(const struct slu_put *p, struct slu_err *err)
{
	if (!p->queue)
		return slu_fail(err, SLU_EINVAL, "invalid put; expected a message with a queue");
	if (p->due || p->deadline || p->idempotency || p->unique || p->batch)
		return slu_fail(err, SLU_EINVAL, "invalid put; expected no due, deadline, idempotency, unique and batch in a schedule");
	if (p->retry && p->retry->kind > SLU_BACKOFF_NONE)
		return slu_fail(err, SLU_EINVAL, "invalid retry; expected exponential, linear, fixed or none");
	return 0;
}

static void
write_text(struct json_out *w, const char *name, const char *text)
{
	if (text)
		json_out_str(w, name, slice_of(text));
}

static void
write_time(struct json_out *w, const char *name, slu_time t)
{
	if (t)
		form_span_write(w, name, t);
}

static void
write_message(struct json_out *w, const struct slu_put *p)
{
	json_out_str(w, "queue", slice_of(p->queue));
	json_out_base64(w, "payload", (struct slice){ p->payload, p->size });
	json_out_i64(w, "priority", p->priority);
	write_time(w, "delay", p->delay);
	write_time(w, "ttl", p->ttl);
	write_time(w, "keep_result", p->keep_result);
	write_time(w, "lease", p->lease);
	write_time(w, "max_runtime", p->max_runtime);
	write_text(w, "key", p->key);
	write_text(w, "correlation_id", p->correlation);
	write_text(w, "content_type", p->content_type);
	write_text(w, "share", p->share);
	write_text(w, "kind", p->kind);
	if (p->attributes)
		json_out_raw(w, "attributes", slice_of(p->attributes));
	if (p->max_attempts)
		json_out_u64(w, "max_attempts", p->max_attempts);
	if (p->retry)
		form_retry_write(w, "retry", p->retry);
}

/* Checks the message as slu_enqueue does. */
static int
encode(struct slu_broker *b, const struct slu_put *p, struct buf *out, struct slu_err *err)
{
	struct arena memory = { 0 };
	struct embed_call call;
	struct op_put put;
	struct json_out w;
	int rc = check_message(p, err);

	if (rc)
		return rc;
	rc = embed_begin(b, &call, OP_ENQUEUE, NULL, err);
	if (rc)
		return rc;
	rc = embed_fill(b, &call, p, &memory, &put, err);
	embed_end(b, &call);
	arena_release(&memory);
	if (rc)
		return rc;
	json_out_open(&w, out);
	write_message(&w, p);
	json_out_finish(&w);
	return !out->failed ? 0 : slu_fail(err, SLU_ETOOBIG, "the message is too large for a schedule; expected at most %d bytes as JSON", FIRING_MESSAGE_MAX);
}

/* ---- Changes ---- */

static int
set(struct editing *c, const void *arg, struct slu_err *err)
{
	struct definition d = *(const struct definition *)arg;

	d.name = slice_of(c->name);
	return definition_take(&d, &c->b->zones, slice_of(c->b->space), c->number ? &c->old : NULL, now(), &c->memory, &c->puts[1],
			       &c->s, &c->plan, err);
}

static int
pause(struct editing *c, const void *arg, struct slu_err *err)
{
	const bool paused = *(const bool *)arg;

	if (!c->number)
		return not_found(c->name, err);
	c->s = c->old;
	c->nothing = c->s.paused == paused;
	schedule_pause(&c->s, paused, now());
	return 0;
}

static int delete (struct editing *c, const void *arg, struct slu_err *err)
{
	(void)arg;
	c->n_puts = 0;
	return c->number ? 0 : not_found(c->name, err);
}

static int
run(struct editing *c, const void *arg, struct slu_err *err)
{
	struct op_put *const put = &c->puts[1];
	const struct slice space = slice_of(c->b->space);
	int rc;

	(void)arg;
	if (!c->number)
		return not_found(c->name, err);
	c->s = c->old;
	rc = firing_puts(&c->s, space, NULL, 1, &c->memory, put, err);
	if (rc)
		return rc;
	put->m.id = broker_new_id(c->b->broker, space, put->m.queue);
	schedule_run(&c->s, put->m.id, now());
	memcpy(c->s.queue, put->m.queue.p, put->m.queue.n);
	c->s.queue[put->m.queue.n] = '\0';
	c->n_puts = 2;
	return 0;
}

static struct slice
text_of(const char *text)
{
	return slice_of(text ? text : "");
}

static int
set_schedule(struct slu_broker *b, const struct slu_schedule *s, const struct slu_put *put, struct slu_err *err)
{
	struct definition d = {
		.when = text_of(s->when),
		.zone = text_of(s->zone),
		.missed = text_of(s->missed),
		.overlap = text_of(s->overlap),
		.jitter = s->jitter,
		.paused = s->paused,
	};
	struct buf text;
	int rc;

	buf_init(&text, FIRING_MESSAGE_MAX);
	rc = encode(b, put, &text, err);
	d.message = buf_slice(&text);
	if (!rc)
		rc = change(b, s->name, set, &d, NULL, err);
	buf_release(&text);
	return rc ? rc : embed_schedules_start(b, err);
}

int
slu_schedule_set(struct slu_broker *b, const struct slu_schedule *schedule, struct slu_err *err)
{
	NEED2(b, schedule, err);

	struct slu_schedule room;
	struct slu_put put_room;
	const struct slu_schedule *s = SIZED(slu_schedule, schedule, &room, err);
	const struct slu_put *put;

	if (!s)
		return SLU_EINVAL;
	if (!s->name || !s->when || !s->put)
		return slu_fail(err, SLU_EINVAL, "invalid schedule; expected a name, when and put");
	if (s->jitter < 0 || s->jitter > SCHEDULE_JITTER_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid jitter; expected 0 to 24h");
	put = SIZED(slu_put, s->put, &put_room, err);
	return put ? set_schedule(b, s, put, err) : SLU_EINVAL;
}

int
slu_schedule_pause(struct slu_broker *b, const char *name, bool paused, struct slu_err *err)
{
	NEED2(b, name, err);
	return change(b, name, pause, &paused, NULL, err);
}

int
slu_schedule_delete(struct slu_broker *b, const char *name, struct slu_err *err)
{
	NEED2(b, name, err);
	return change(b, name, delete, NULL, NULL, err);
}

int
slu_schedule_run(struct slu_broker *b, const char *name, uint64_t *id, struct slu_err *err)
{
	NEED2(b, name, err);
	return change(b, name, run, NULL, id, err);
}

/* ---- Looking ---- */

static void
show_next(const struct schedule *s, const struct schedule_plan *plan, struct slu_schedule_info *out)
{
	slu_time tick = s->last;

	for (int i = 0; i < SCHEDULE_NEXT && !s->paused; i++) {
		tick = schedule_tick(s, plan, tick);
		if (tick == SLU_NEVER)
			return;
		out->next[i] = schedule_moment(s, tick);
	}
}

static void
show_last(const struct schedule *s, struct slu_schedule_info *out)
{
	out->n_last = s->n_events;
	for (uint32_t i = 0; i < s->n_events; i++) {
		const struct schedule_event *const e = &s->events[s->n_events - 1 - i];
		struct slu_schedule_event *const to = &out->last[i];

		*to = (struct slu_schedule_event){ .tick = e->tick, .at = e->at, .id = e->id };
		(void)snprintf(to->outcome, sizeof to->outcome, "%s", schedule_outcome_text(e->outcome)); /* fits */
	}
}

_Static_assert((int)SCHEDULE_NEXT == sizeof((struct slu_schedule_info *)0)->next / sizeof(slu_time) &&
		       (int)SCHEDULE_HISTORY == sizeof((struct slu_schedule_info *)0)->last / sizeof(struct slu_schedule_event),
	       "all ticks fit");

/* Reads files of time zones. */
static void
show(struct slu_broker *b, const struct schedule *s, struct arena *a, struct slu_schedule_info *out)
{
	struct schedule_plan plan;
	struct op_put put;
	char missed[16];

	*out = (struct slu_schedule_info){
		.jitter = s->jitter,
		.paused = s->paused,
		.fired = s->fired,
		.lost = s->lost,
		.overlapped = s->overlapped,
	};
	(void)snprintf(out->name, sizeof out->name, "%s", s->name); /* these fit */
	(void)snprintf(out->when, sizeof out->when, "%s", s->when);
	(void)snprintf(out->zone, sizeof out->zone, "%s", s->zone[0] ? s->zone : "UTC");
	(void)snprintf(out->missed, sizeof out->missed, "%s", schedule_missed_text(s, missed));
	(void)snprintf(out->overlap, sizeof out->overlap, "%s", schedule_overlap_text(s));
	if (firing_puts(s, slice_of(b->space), NULL, 1, a, &put, NULL) == 0)
		(void)snprintf(out->queue, sizeof out->queue, "%.*s", (int)put.m.queue.n, put.m.queue.p);
	if (zones_plan(&b->zones, s, &plan, NULL) == 0)
		show_next(s, &plan, out);
	show_last(s, out);
}

int
slu_schedule_get(struct slu_broker *b, const char *name, struct slu_schedule_info *out, struct slu_err *err)
{
	NEED3(b, name, out, err);

	struct editing c = { .b = b };
	int rc = name_fold(slice_of(name), "name", c.name, err);

	if (!rc)
		rc = load(&c, err);
	if (!rc && !c.number)
		rc = not_found(c.name, err);
	if (!rc)
		show(b, &c.old, &c.memory, out);
	arena_release(&c.memory);
	return rc;
}

/* A schedule that cannot be read does not hide the others. */
static void
show_row(struct slu_broker *b, const struct op *op, const struct op_row *row, struct slu_schedule_info *out, size_t *n)
{
	struct arena memory = { 0 };
	struct schedule s;

	if (definition_read(op->engine, &row->record, (struct slice){ 0 }, &memory, &s, NULL) == 0)
		show(b, &s, &memory, &out[(*n)++]);
	arena_release(&memory);
}

int
slu_schedule_list(struct slu_broker *b, uint64_t *cursor, struct slu_schedule_info *out, size_t max, size_t *n, struct slu_err *err)
{
	NEED4(b, cursor, out, n, err);

	struct op_row rows[100];
	struct embed_call call;
	int rc;

	*n = 0;
	if (max == 0)
		return slu_fail(err, SLU_EINVAL, "invalid max: 0; expected 1 or more");
	rc = embed_begin(b, &call, OP_LIST, NULL, err);
	if (rc)
		return rc;
	call.op.queue = SLICE(SCHEDULE_QUEUE);
	call.op.cursor = *cursor;
	call.op.rows = rows;
	call.op.max_rows = max < COUNT(rows) ? (uint32_t)max : (uint32_t)COUNT(rows);
	rc = embed_run(b, &call, err);
	for (uint32_t i = 0; !rc && i < call.op.n_rows; i++)
		show_row(b, &call.op, &rows[i], out, n);
	*cursor = rc ? 0 : call.op.cursor;
	op_unpin(&call.op);
	embed_end(b, &call);
	return rc;
}
