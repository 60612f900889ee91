/*
 * schedules.c - one schedule: show, set, delete, pause, resume, run now.
 *
 *      OP_GET ──> read the schedule, change it (a file thread) ──> OP_SCHEDULE ──> answer
 *        ^                                                             │ another call was faster
 *        └─────────────────────────────────────────────────────────────┘
 */
#include "api/admin/admin.h"

#include "api/audit/change.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "duty/definition.h"
#include "duty/firing.h"
#include "api/schedule/show.h"

#include <stdio.h>

enum {
	TRIES = 20, /* calls that change one schedule at the same time */
	TEXT = 320
};

/* handler.arg */
enum {
	SHOW,
	SET,
	DELETE,
	PAUSE,
	RESUME,
	RUN
};

struct state {
	struct slice namespace;
	struct slice name;

	/* SET: the definition as given. */
	struct slice when, zone, missed, overlap, message;
	slu_time jitter;
	bool paused;
	uint64_t given; /* a bit for each row of set_fields */

	struct op_row row;
	uint64_t number; /* of the stored schedule; 0: it does not exist */
	struct schedule old, s;
	struct schedule_plan plan;
	struct op_item item;
	struct op_put puts[2]; /* the schedule, and the message of a RUN */
	uint64_t id;           /* of that message */
	bool changed;          /* there is something to store */
	unsigned tries;
	struct slu_err err;
};

static const struct param params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(name, struct state, name, .required = true),
};

enum {
	HAS_PAUSED = 1 << 8
};

/* The index of a row is the number of its bit. */
static const struct json_field set_fields[] = {
	JSON_FIELD(name, struct state, namespace, .required = true),
	JSON_FIELD(name, struct state, name, .required = true),
	JSON_FIELD(text, struct state, when, .required = true, .max = CRON_LONGEST),
	JSON_FIELD(text, struct state, zone, .max = ZONE_LONGEST),
	JSON_FIELD(text, struct state, missed),
	JSON_FIELD(text, struct state, overlap),
	JSON_FIELD(span, struct state, jitter, .max = SCHEDULE_JITTER_MAX),
	JSON_FIELD(object, struct state, message, .required = true, .max = FIRING_MESSAGE_MAX),
	JSON_FIELD(bool, struct state, paused),
};

/* ---- The schedule as it is ---- */

static int
find_old(struct apicall *a, struct state *s)
{
	const bool found = a->op.rc == 0 && a->op.n_rows;
	const int rc = found ? definition_read(a->op.engine, &s->row.record, s->name, &a->memory, &s->old, &s->err) : 0;

	op_unpin(&a->op);
	s->number = found && !rc ? s->row.number : 0;
	return rc;
}

/* ---- The changes, on a file thread ---- */

static int
set(struct apicall *a, struct state *s)
{
	const struct definition d = {
		.name = s->name,
		.when = s->when,
		.zone = s->zone,
		.missed = s->missed,
		.overlap = s->overlap,
		.message = s->message,
		.jitter = s->jitter,
		.paused = s->given & HAS_PAUSED ? s->paused : s->number && s->old.paused,
	};

	s->changed = true;
	return definition_take(&d, &a->api->zones, s->namespace, s->number ? &s->old : NULL, clock_wall(a->api->clock), &a->memory,
			       &s->puts[1], &s->s, &s->plan, &s->err);
}

/* The message gets its id here, so that the schedule can name it; if another node accepts it, that gives the id. */
static int
run_now(struct apicall *a, struct state *s)
{
	struct op_put *const put = &s->puts[1];
	const int rc = firing_puts(&s->s, s->namespace, NULL, 1, &a->memory, put, &s->err);

	if (rc)
		return rc;
	if (!broker_has_remote(a->api->broker))
		put->m.id = broker_new_id(a->api->broker, s->namespace, put->m.queue);
	schedule_run(&s->s, put->m.id, clock_wall(a->api->clock));
	memcpy(s->s.queue, put->m.queue.p, put->m.queue.n);
	s->s.queue[put->m.queue.n] = '\0';
	s->changed = true;
	return 0;
}

static int
change(struct apicall *a, struct state *s)
{
	s->changed = false;
	if (a->arg == SET)
		return set(a, s);
	if (!s->number)
		return SLU_ENOTFOUND;
	s->s = s->old;
	if (a->arg == PAUSE || a->arg == RESUME) {
		s->changed = s->s.paused != (a->arg == PAUSE);
		schedule_pause(&s->s, a->arg == PAUSE, clock_wall(a->api->clock));
	}
	return a->arg == RUN ? run_now(a, s) : 0;
}

/* On a file thread. */
static int
work(struct apicall *a)
{
	struct state *const s = a->state;
	int rc;

	s->err = (struct slu_err){ 0 };
	rc = find_old(a, s);
	if (!rc)
		rc = change(a, s);
	if (rc || a->arg == DELETE)
		return rc;
	if (s->changed)
		rc = firing_schedule(&s->s, s->namespace, &a->memory, &s->puts[0], &s->err);
	return rc ? rc : zones_plan(&a->api->zones, &s->s, &s->plan, &s->err);
}

/* ---- Answers ---- */

static void
refuse(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	char text[TEXT];

	if (s->err.code) {
		apicall_refuse_err(a, &s->err, -1);
		return;
	}
	(void)snprintf(text, sizeof text, "namespace %.*s has no schedule %.*s", (int)s->namespace.n, s->namespace.p,
		       (int)s->name.n, s->name.p);
	apicall_refuse(a, rc, rc == SLU_ENOTFOUND ? text : NULL);
}

static void
reply(struct apicall *a)
{
	struct state *const s = a->state;
	struct json_out w;

	if (apicall_refused(a, mask_put_for_caller(a, s->namespace, &s->s.message), NULL))
		return;
	apicall_object(a, &w);
	if (a->arg == SHOW || a->arg == SET || a->arg == PAUSE || a->arg == RESUME) {
		schedule_show(&w, s->namespace, &s->s, &s->plan, true);
		apicall_reply_object(a, &w, 200);
		return;
	}
	json_out_str(&w, "namespace", s->namespace);
	json_out_str(&w, "name", s->name);
	if (a->arg == DELETE)
		json_out_bool(&w, "deleted", true);
	else
		flat_view_id(&w, s->id);
	apicall_reply_object(a, &w, 200);
}

/* ---- Storing ---- */

static void load(struct apicall *a);
static void store(struct apicall *a, uint32_t n_puts);

/* The message of a RUN began on another shard. */
static void
enqueued(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	s->id = s->puts[1].m.id;
	store(a, 1);
}

static void
enqueue(struct apicall *a)
{
	struct state *const s = a->state;

	s->puts[1].m.id = 0;
	apicall_op(a, &a->op, OP_ENQUEUE, s->namespace, s->puts[1].m.queue);
	a->op.puts = &s->puts[1];
	a->op.n_puts = 1;
	apicall_run(a, enqueued);
}

static void
stored(struct apicall *a)
{
	struct state *const s = a->state;
	const bool late = a->op.rc == SLU_ECONFLICT || (a->op.rc == SLU_ENOTFOUND && s->number);

	if (late && ++s->tries < TRIES && !s->id) {
		load(a);
		return;
	}
	if (a->op.rc == SLU_ETOGETHER && a->arg == RUN) {
		enqueue(a);
		return;
	}
	if (apicall_failed(a))
		return;
	if (a->arg == RUN && !s->id)
		s->id = s->puts[1].m.id;
	reply(a);
}

/* One side of the change, without the message. */
static void
write_side(struct json_out *w, const struct schedule *s)
{
	char missed[16];

	json_out_str(w, "when", slice_of(s->when));
	json_out_str(w, "zone", slice_of(s->zone));
	json_out_str(w, "missed", slice_of(schedule_missed_text(s, missed)));
	json_out_str(w, "overlap", slice_of(schedule_overlap_text(s)));
	json_out_bool(w, "paused", s->paused);
}

static void
note(struct apicall *a, const struct state *s)
{
	struct change_note n;

	if (!change_begin(a, &n))
		return;
	if (s->number)
		write_side(&n.before, &s->old);
	if (a->arg != DELETE)
		write_side(&n.after, &s->s);
	change_end(a, &n);
}

static void
store(struct apicall *a, uint32_t n_puts)
{
	struct state *const s = a->state;

	note(a, s);
	apicall_op(a, &a->op, OP_SCHEDULE, s->namespace, SLICE(SCHEDULE_QUEUE));
	s->item = (struct op_item){ .id = schedule_id(s->namespace, s->name), .number = s->number, .remove = a->arg == DELETE };
	a->op.items = &s->item;
	a->op.n_items = 1;
	a->op.puts = s->puts;
	a->op.n_puts = n_puts;
	apicall_run(a, stored);
}

static void
worked(struct apicall *a, int rc)
{
	const struct state *const s = a->state;

	if (rc)
		refuse(a, rc);
	else if (a->arg == DELETE)
		store(a, 0);
	else if (s->changed)
		store(a, a->arg == RUN ? 2 : 1);
	else
		reply(a);
}

/* ---- The calls ---- */

static void
loaded(struct apicall *a)
{
	if (a->op.rc && a->op.rc != SLU_ENOTFOUND)
		apicall_refuse_op(a, &a->op);
	else
		apicall_job(a, work, worked);
}

static void
load(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_GET, s->namespace, SLICE(SCHEDULE_QUEUE));
	a->op.id = schedule_id(s->namespace, s->name);
	a->op.rows = &s->row;
	a->op.max_rows = 1;
	apicall_run(a, loaded);
}

static void
load_set(struct apicall *a)
{
	struct state *const s = a->state;
	const struct slice body = call_of(a->x)->body;
	char *const room = arena_alloc(&a->memory, body.n);
	struct slu_err err = { 0 };
	struct json r;

	if (!room) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	s->given = json_fields(&r, set_fields, COUNT(set_fields), JSON_STRICT, s);
	if (!json_end(&r, NULL))
		load(a);
	else
		apicall_refuse(a, json_explain(&r, -1, &err), err.text);
}

#define ONE(what)                                                            \
	{                                                                    \
		load, sizeof(struct state), BODY_ROWS(params), .arg = (what) \
	}

const struct handler admin_schedule = { load, sizeof(struct state), QUERY_ROWS(params), .arg = SHOW };
const struct handler admin_schedule_set = { load_set, sizeof(struct state), .arg = SET };
const struct handler admin_schedule_delete = ONE(DELETE);
const struct handler admin_schedule_pause = ONE(PAUSE);
const struct handler admin_schedule_resume = ONE(RESUME);
const struct handler admin_schedule_run = ONE(RUN);
