/*
 * act.c - POST /v1/admin/message/run, delay, priority, move, edit: acts on one message that is not leased.
 *
 *      {"namespace":"shop","queue":"orders","id":"01a1...","version":"17.0","priority":0}
 *      {"id":...,"uid":"...","version":"23.0","before":{"queue":"orders","priority":5,"deliver_after":"..."}}
 *
 *      OP_GET ──> the record ──> OP_REDRIVE                 run: the message stays the same
 *                           ├──> OP_ADJUST                  priority and delay of one that waits: so does this one
 *                           └──> OP_FINISH, remove and put  the others: another message takes its place, in one step
 *
 *  ACT-1  The version is the number of the message and of its deliveries, and a hash of its priority and due time. With
 *         `version` a call is refused if the message has another one: the inverse of an action undoes nothing that somebody
 *         else has done since.
 *  ACT-2  What would change the order of a key is refused: any action but a priority on a message with a key that has been
 *         due, unless the message is dead.
 *  ACT-3  A message that another one would take the place of is refused if its result can be waited for by its id, if it is
 *         unique until it is delivered or done, or if it is a member of a batch.
 */
#include "api/admin/admin.h"

#include "api/audit/change.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/rows.h"
#include "form/values.h"
#include "base/hash.h"
#include "base/json/json_out.h"
#include "base/time.h"
#include "engine/payload.h"

#include <inttypes.h>
#include <stdio.h>

enum act {
	ACT_RUN,
	ACT_DELAY,
	ACT_PRIORITY,
	ACT_MOVE,
	ACT_EDIT,
	ACTS
};

enum {
	VERSION_TEXT = 48
};

struct state {
	/* The question. */
	struct slice namespace;
	struct slice queue;
	struct given_id id;
	struct slice version; /* n 0: any */
	slu_time delay;       /* delay: from now */
	slu_time until;       /* delay: a moment instead */
	int32_t prio;         /* priority */
	struct slice to;      /* move */
	struct slice text, json, payload;
	uint64_t given; /* rows of `fields` that the body has, by bit */

	struct op_row row;
	struct rows rows;
	struct message m; /* its texts are in the memory of the apicall */
	bool read;
	int rc;
	struct slu_err err;
	struct op_item item;
	struct op_put put;
	uint64_t new_id;
	uint64_t number; /* of the message afterwards, as the next three; 0: not known */
	unsigned attempts;
	int32_t prio_now;
	slu_time due_now;
};

#define FIELD(text, how, member, ...) JSON_ROW(text, json_read_##how, struct state, member, __VA_ARGS__)

static const struct json_field fields[] = {
	FIELD("namespace", name, namespace, .required = true),
	FIELD("queue", name, queue, .required = true, .also = { "topic", 5 }),
	FIELD("id", id, id, .required = true),
	FIELD("version", text, version, .max = VERSION_TEXT),
	FIELD("delay", span, delay, .max = API_DELAY_MAX),
	FIELD("until", time, until),
	FIELD("priority", priority, prio),
	FIELD("to", name, to),
	FIELD("text", text, text),
	FIELD("json", raw, json),
	FIELD("payload", base64, payload),
};

/* By row of `fields`. */
enum {
	HAS_DELAY = 1 << 4,
	HAS_UNTIL = 1 << 5,
	HAS_PRIORITY = 1 << 6,
	HAS_TO = 1 << 7,
	HAS_BODY = 1 << 8 | 1 << 9 | 1 << 10,
	HAS_COMMON = HAS_DELAY - 1
};

static const struct {
	uint64_t takes; /* members that the body may have besides the message and its version: exactly one of these bits */
	const char *wants;
} acts[ACTS] = {
	[ACT_RUN] = { 0, "expected nothing but namespace, queue, id and version" },
	[ACT_DELAY] = { HAS_DELAY | HAS_UNTIL, "expected delay or until" },
	[ACT_PRIORITY] = { HAS_PRIORITY, "expected priority" },
	[ACT_MOVE] = { HAS_TO, "expected to, the name of a queue" },
	[ACT_EDIT] = { HAS_BODY, "expected text, json or payload" },
};

/* --- the question ------------------------------------------------------------- */

static int
decode(struct apicall *a, struct state *s, struct slu_err *err)
{
	const struct slice body = call_of(a->x)->body;
	char *const room = arena_array(&a->memory, body.n + 1, 2);
	uint64_t more;
	struct json r;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, 2 * body.n);
	s->given = json_fields(&r, fields, COUNT(fields), JSON_STRICT, s);
	if (json_end(&r, NULL))
		return json_explain(&r, -1, err);
	more = s->given & ~(uint64_t)HAS_COMMON;
	if (more & ~acts[a->arg].takes || (more & (more - 1)) || (acts[a->arg].takes && !more))
		return slu_fail(err, SLU_EINVAL, "%s", acts[a->arg].wants);
	if (slice_eq(s->to, s->queue))
		return slu_fail(err, SLU_EINVAL, "to: expected another queue than the message's");
	return 0;
}

/* --- the answer --------------------------------------------------------------- */

static const char *
version_text(uint64_t number, unsigned attempts, int32_t prio, slu_time due, char out[static VERSION_TEXT])
{
	const uint32_t hash = fnv1a32_more(fnv1a32(&prio, sizeof prio), &due, sizeof due);

	(void)snprintf(out, VERSION_TEXT, "%" PRIu64 ".%u.%08" PRIx32, number, attempts, hash); /* fits */
	return out;
}

void
admin_write_version(struct json_out *w, const struct op_row *row)
{
	char text[VERSION_TEXT];

	json_out_str(w, "version", slice_of(version_text(row->number, row->attempts, row->prio, row->due, text)));
}

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;
	char text[VERSION_TEXT];
	struct json_out w;

	apicall_object(a, &w);
	flat_view_id(&w, s->new_id);
	if (s->number)
		json_out_str(&w, "version", slice_of(version_text(s->number, s->attempts, s->prio_now, s->due_now, text)));
	json_out_object(&w, "before");
	json_out_str(&w, "queue", s->queue);
	json_out_i64(&w, "priority", s->m.prio);
	json_out_time(&w, "deliver_after", s->row.state == MSG_DEAD ? s->m.due : s->row.due);
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

static void
refuse(struct apicall *a, int rc)
{
	const struct state *const s = a->state;
	char text[160];

	if (rc == SLU_ENOTFOUND && s->id.rounded)
		apicall_refuse_id(a, &(const struct op){ .rc = rc }, s->id);
	else if (rc == SLU_ENOTFOUND || rc == SLU_ELEASE) {
		(void)snprintf(text, sizeof text,
			       rc == SLU_ENOTFOUND ? "no message %" PRIu64 " in this queue; it may be finished"
						   : "message %" PRIu64 " is leased; wait for its holder or for the end of the lease",
			       s->id.id);
		apicall_refuse(a, rc, text);
	} else {
		apicall_refuse_op(a, &a->op);
	}
}

/* --- the action --------------------------------------------------------------- */

static void
finished(struct apicall *a)
{
	struct state *const s = a->state;
	const int rc = a->op.rc ? a->op.rc : s->item.rc;

	if (rc) {
		refuse(a, rc);
		return;
	}
	s->new_id = s->put.m.id;
	s->number = s->put.pending ? 0 : s->put.m.number;
	s->prio_now = s->put.m.prio;
	s->due_now = s->put.m.due > s->put.m.accepted ? s->put.m.due : s->put.m.accepted;
	answer(a);
}

static void
adjusted(struct apicall *a)
{
	struct state *const s = a->state;
	const int rc = a->op.rc ? a->op.rc : s->item.rc;
	char text[160];

	if (rc == SLU_ECONFLICT) { /* between the look and the op */
		(void)snprintf(text, sizeof text, "message %" PRIu64 " has changed; look at it again", s->id.id);
		apicall_refuse(a, rc, text);
		return;
	}
	if (rc) {
		refuse(a, rc);
		return;
	}
	s->new_id = s->id.id;
	s->number = s->row.number;
	s->attempts = s->row.attempts;
	s->prio_now = a->arg == ACT_PRIORITY ? s->prio : s->row.prio;
	s->due_now = a->arg == ACT_DELAY ? s->item.until : s->row.due;
	answer(a);
}

/* One side of the change: what the message is, or is to be. */
static void
write_side(struct json_out *w, struct slice queue, int32_t prio, slu_time due, uint64_t payload_size)
{
	json_out_str(w, "queue", queue);
	json_out_i64(w, "priority", prio);
	json_out_time(w, "deliver_after", due);
	json_out_u64(w, "payload_size", payload_size);
}

/* prio, due: what they are to be. */
static void
note(struct apicall *a, const struct state *s, int32_t prio, slu_time due)
{
	const struct message *const after = s->put.m.payload_size ? &s->put.m : &s->m;
	struct change_note n;

	if (!change_begin(a, &n))
		return;
	write_side(&n.before, s->queue, s->m.prio, s->row.state == MSG_DEAD ? s->m.due : s->row.due, s->m.payload_size);
	write_side(&n.after, s->to.n ? s->to : s->queue, prio, due, after->payload_size);
	if (a->arg == ACT_EDIT)
		json_out_str(&n.after, "payload", SLICE("edited"));
	change_end(a, &n);
}

/* The message keeps its id, its number, its keys and its batch. */
static void
adjust(struct apicall *a, struct state *s)
{
	s->item = (struct op_item){
		.id = s->id.id,
		.has_prio = a->arg == ACT_PRIORITY,
		.prio = s->prio,
		.time = s->until ? s->until : time_add(clock_wall(a->api->clock), s->delay),
		.guarded = true,
		.was_prio = s->row.prio,
		.was_due = s->row.due,
	};
	note(a, s, a->arg == ACT_PRIORITY ? s->prio : s->row.prio, a->arg == ACT_DELAY ? s->item.time : s->row.due);
	apicall_op(a, &a->op, OP_ADJUST, s->namespace, s->queue);
	a->op.items = &s->item;
	a->op.n_items = 1;
	apicall_run(a, adjusted);
}

/* Whether the message that waits stays the same. */
static bool
adjusts(const struct apicall *a, const struct state *s)
{
	return (a->arg == ACT_PRIORITY || a->arg == ACT_DELAY) && s->row.state != MSG_DEAD;
}

/* Another message takes the place of this one. */
static void
replace(struct apicall *a, struct state *s)
{
	s->item = (struct op_item){ .id = s->id.id, .remove = true };
	s->put = (struct op_put){ .m = s->m };
	s->put.m.id = s->put.m.number = 0;
	s->put.m.idem = (struct slice){ 0 }; /* the queue still remembers it for the message that goes */
	s->put.m.due = s->row.state == MSG_DEAD ? 0 : s->row.due;
	s->put.deadline = s->m.expires > 0 && s->m.expires != SLU_NEVER && s->row.state != MSG_DEAD ? s->m.expires : 0;
	s->put.m.expires = 0;
	s->put.m.terms.batch = 0; /* the member has failed */
	if (a->arg == ACT_DELAY) {
		s->put.m.due = s->until;
		s->put.delay = s->delay;
	}
	if (a->arg == ACT_PRIORITY)
		s->put.m.prio = s->prio;
	if (a->arg == ACT_MOVE)
		s->put.m.queue = s->to;
	if (a->arg == ACT_EDIT) {
		s->put.m.payload = s->text.p ? s->text : s->json.p ? s->json
								   : s->payload;
		s->put.m.payload_size = s->put.m.payload.n;
	}
	note(a, s, s->put.m.prio, s->put.delay ? time_add(clock_wall(a->api->clock), s->put.delay) : s->put.m.due);
	apicall_op(a, &a->op, OP_FINISH, s->namespace, s->queue);
	a->op.items = &s->item;
	a->op.n_items = 1;
	a->op.puts = &s->put;
	a->op.n_puts = 1;
	apicall_run(a, finished);
}

/* run: the version of the message afterwards. */
static void
looked_again(struct apicall *a)
{
	struct state *const s = a->state;

	if (!a->op.rc && a->op.n_rows == 1) {
		s->number = a->op.rows->number;
		s->attempts = a->op.rows->attempts;
		s->prio_now = a->op.rows->prio;
		s->due_now = a->op.rows->due;
		op_unpin(&a->op);
	}
	answer(a);
}

static void
look(struct apicall *a, struct op_row *row, void (*then)(struct apicall *a))
{
	const struct state *const s = a->state;

	apicall_op(a, &a->op, OP_GET, s->namespace, s->queue);
	a->op.id = s->id.id;
	a->op.rows = row;
	a->op.max_rows = 1;
	apicall_run(a, then);
}

static void
was_run(struct apicall *a)
{
	struct state *const s = a->state;
	const int rc = a->op.rc ? a->op.rc : s->item.rc;
	struct op_row *row;

	if (rc) {
		refuse(a, rc);
		return;
	}
	s->new_id = s->id.id;
	row = arena_alloc(&a->memory, sizeof *row);
	if (row)
		look(a, row, looked_again);
	else
		answer(a);
}

static void
run(struct apicall *a, struct state *s)
{
	s->item = (struct op_item){ .id = s->id.id, .delayed = true };
	note(a, s, s->row.prio, clock_wall(a->api->clock));
	apicall_op(a, &a->op, OP_REDRIVE, s->namespace, s->queue);
	a->op.items = &s->item;
	a->op.n_items = 1;
	apicall_run(a, was_run);
}

/* Returns why the action is refused, or NULL. */
static const char *
check(struct apicall *a, const struct state *s, char text[static 400])
{
	const bool replaces = a->arg != ACT_RUN && !adjusts(a, s);
	char now[VERSION_TEXT];

	(void)version_text(s->row.number, s->row.attempts, s->row.prio, s->row.due, now);
	if (s->version.n && !slice_eq(s->version, slice_of(now))) /* ACT-1 */
		(void)snprintf(text, 400, "message %" PRIu64 " has changed: its version is %s", s->id.id, now);
	else if (a->arg == ACT_RUN && s->row.state != MSG_DELAYED)
		(void)snprintf(text, 400, "message %" PRIu64 " is not delayed", s->id.id);
	else if (s->m.key.n && s->row.state != MSG_DEAD && a->arg != ACT_PRIORITY && (a->arg == ACT_RUN || s->row.state != MSG_DELAYED || s->row.attempts)) /* ACT-2 */
		(void)snprintf(text, 400, "message %" PRIu64 " has the key %.*s, and the order of that key would change", s->id.id,
			       (int)s->m.key.n, s->m.key.p);
	else if (replaces && s->m.keep) /* ACT-3 */
		(void)snprintf(text, 400, "message %" PRIu64 " has keep_result: its result is waited for by its id", s->id.id);
	else if (replaces && s->m.terms.batch && s->row.state != MSG_DEAD)
		(void)snprintf(text, 400, "message %" PRIu64 " is a member of a batch, which would count it as failed", s->id.id);
	else if (replaces && terms_are_unique(&s->m.terms) && s->row.state != MSG_DEAD)
		(void)snprintf(text, 400, "message %" PRIu64 " is unique, and would lose its key", s->id.id);
	else
		return NULL;
	return text;
}

/* --- the message -------------------------------------------------------------- */

/* On a file thread. */
static void
take_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->apicall->state;
	char *const record = arena_alloc(&r->apicall->memory, r->record.n);

	(void)m; /* points to memory that goes */
	(void)error;
	(void)row;
	s->read = true;
	if (!record) {
		s->rc = SLU_ENOMEM;
		return;
	}
	memcpy(record, r->record.p, r->record.n);
	s->rc = message_decode((struct slice){ record, r->record.n }, &s->m, &s->err);
}

static void
taken(struct apicall *a, int rc)
{
	struct state *const s = a->state;
	char text[400];
	const char *wrong;

	rc = rc ? rc : s->rc;
	if (!rc && !s->read)
		rc = SLU_ECORRUPT;
	if (apicall_refused(a, rc, s->err.text[0] ? s->err.text : NULL))
		return;
	s->m.prio = s->row.prio;
	wrong = check(a, s, text);
	if (wrong)
		apicall_refuse(a, SLU_ECONFLICT, wrong);
	else if (a->arg == ACT_RUN)
		run(a, s);
	else if (adjusts(a, s))
		adjust(a, s);
	else if (s->m.file && a->arg != ACT_EDIT)
		apicall_refuse(a, SLU_ETOOBIG, "a message of more than 1 MiB cannot be changed; enqueue another one and delete it");
	else
		replace(a, s);
}

static void
found(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc) {
		refuse(a, a->op.rc);
		return;
	}
	if (s->row.state == MSG_LEASED || s->row.state == MSG_DAMAGED) {
		op_unpin(&a->op);
		if (s->row.state == MSG_LEASED)
			refuse(a, SLU_ELEASE);
		else
			apicall_refuse(a, SLU_ECORRUPT, "the record is damaged; see the log");
		return;
	}
	s->rows = (struct rows){ .apicall = a, .op = &a->op, .write = take_row, .done = taken };
	json_out_init(&s->rows.w, &a->x->out);
	rows_start(&s->rows);
}

static void
act(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };

	if (!apicall_refused(a, decode(a, s, &err), err.text))
		look(a, &s->row, found);
}

/* clang-format off */
const struct handler admin_message_run = { act, sizeof(struct state), .arg = ACT_RUN };
const struct handler admin_message_delay = { act, sizeof(struct state), .arg = ACT_DELAY };
const struct handler admin_message_priority = { act, sizeof(struct state), .arg = ACT_PRIORITY };
const struct handler admin_message_move = { act, sizeof(struct state), .arg = ACT_MOVE };
const struct handler admin_message_edit = { act, sizeof(struct state), .arg = ACT_EDIT };
/* clang-format on */
