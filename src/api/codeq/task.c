#include "api/codeq/task.h"

#include "base/id.h"
#include "base/utf8.h"

static const struct {
	const char *status, *location;
} states[MSG_STATES] = {
	[MSG_READY] = { "PENDING", "PENDING_LIST" },
	[MSG_DELAYED] = { "PENDING", "DELAYED_ZSET" },
	[MSG_LEASED] = { "IN_PROGRESS", "INPROG_SET" },
	[MSG_HELD] = { "PENDING", "PENDING_LIST" },
	[MSG_DEAD] = { "FAILED", "DLQ_SET" },
	[MSG_DAMAGED] = { "FAILED", "NONE" },
};

/* --- attributes --------------------------------------------------------------- */

#define COMMAND "codeq_command"
#define WEBHOOK "codeq_webhook"

void
codeq_extras_read(struct arena *memory, struct slice attributes, struct codeq_extras *out)
{
	char *const room = attributes.n ? arena_alloc(memory, attributes.n) : NULL;
	struct json_str name;
	struct json r;

	*out = (struct codeq_extras){ 0 };
	if (!room)
		return;
	json_init(&r, attributes, JSON_DEPTH);
	json_room(&r, room, attributes.n);
	json_object(&r);
	while (json_member(&r, &name)) {
		if (json_peek(&r) != JSON_STRING)
			continue;
		if (json_str_is(&name, SLICE(COMMAND)))
			out->command = json_text(&r);
		else if (json_str_is(&name, SLICE(WEBHOOK)))
			out->webhook = json_text(&r);
	}
	if (json_end(&r, NULL))
		*out = (struct codeq_extras){ 0 };
}

struct slice
codeq_extras_write(struct apicall *a, const struct codeq_extras *x)
{
	struct json_out w;
	struct buf b;

	if (x->command.n == 0 && x->webhook.n == 0)
		return (struct slice){ 0 };
	buf_init(&b, MESSAGE_ATTRIBUTES_MAX);
	json_out_open(&w, &b);
	if (x->command.n)
		json_out_str(&w, COMMAND, x->command);
	if (x->webhook.n)
		json_out_str(&w, WEBHOOK, x->webhook);
	json_out_close(&w);
	return arena_take(&a->memory, &b);
}

/* --- shown -------------------------------------------------------------------- */

static void
text_if_any(struct json_out *w, const char *name, struct slice text)
{
	if (text.n > 0)
		json_out_str(w, name, text);
}

/* A string that holds JSON. What another API has put in and is not a text is in base64. */
static void
write_payload(struct json_out *w, const struct codeq_view *v)
{
	if (v->without_payload)
		return;
	if (utf8_valid(v->payload)) {
		json_out_str(w, "payload", v->payload);
		return;
	}
	json_out_base64(w, "payload", v->payload);
	json_out_str(w, "payloadEncoding", SLICE("base64"));
}

static void
write_trace(struct json_out *w, struct slice trace)
{
	const size_t n = MESSAGE_TRACE_PARENT;

	if (trace.n == 0)
		return;
	json_out_str(w, "traceParent", (struct slice){ trace.p, n });
	text_if_any(w, "traceState", (struct slice){ trace.p + n, trace.n - n });
}

/* 9 - priority, in the range of codeQ. */
static int64_t
priority_of(int32_t prio)
{
	const int64_t p = CODEQ_PRIORITIES - 1 - (int64_t)prio;

	return p < 0 ? 0 : p >= CODEQ_PRIORITIES ? CODEQ_PRIORITIES - 1
						 : p;
}

static slu_time
updated_at(const struct codeq_view *v)
{
	const struct op_row *const row = v->row;

	if (v->status)
		return v->updated;
	if (row->state == MSG_LEASED && row->claimed)
		return row->claimed;
	return row->state == MSG_DEAD ? row->due : v->m->accepted;
}

static void
write_lease(struct json_out *w, const struct codeq_view *v)
{
	text_if_any(w, "workerId", v->owner);
	if (v->row->state == MSG_LEASED && !v->status)
		json_out_time(w, "leaseUntil", v->row->until);
}

void
codeq_task_write(struct json_out *w, const char *name, struct arena *memory, const struct codeq_view *v)
{
	const struct op_row *const row = v->row;
	char uuid[ID_UUID_TEXT];
	struct codeq_extras x;

	codeq_extras_read(memory, v->m->attributes, &x);
	json_out_object(w, name);
	json_out_plain(w, "id", slice_of(id_to_uuid(row->id, uuid)));
	json_out_str(w, "command", x.command.n ? x.command : v->m->queue);
	write_payload(w, v);
	json_out_i64(w, "priority", priority_of(row->prio));
	text_if_any(w, "webhook", x.webhook);
	write_trace(w, v->m->trace);
	json_out_str(w, "status", slice_of(v->status ? v->status : states[row->state].status));
	json_out_str(w, "lastKnownLocation", slice_of(v->status ? "NONE" : states[row->state].location));
	write_lease(w, v);
	if (row->attempts)
		json_out_u64(w, "attempts", row->attempts);
	json_out_u64(w, "maxAttempts", row->max_attempts);
	text_if_any(w, "error", v->error);
	if (v->status)
		json_out_plain(w, "resultKey", slice_of(uuid));
	json_out_str(w, "tenantId", v->m->space);
	json_out_time(w, "createdAt", v->m->sent ? v->m->sent : v->m->accepted);
	json_out_time(w, "updatedAt", updated_at(v));
	json_out_close(w);
}

/* --- found -------------------------------------------------------------------- */

uint64_t
codeq_id(struct slice text)
{
	uint64_t id;

	return id_from_uuid(text, &id, NULL) ? 0 : id;
}

unsigned
codeq_may_settle(struct apicall *a, const struct codeq_task *t, const char **why)
{
	const struct slice me = holder_of(a, (struct slice){ 0 });

	if (t->rc) {
		*why = slu_err_row(t->rc)->text;
		return codeq_status(t->rc);
	}
	if (!t->alive) {
		*why = t->done.n ? "not-in-progress" : "not-found";
		return t->done.n ? 409 : 404;
	}
	if (t->row.state != MSG_LEASED) {
		*why = "not-in-progress";
		return 409;
	}
	if (t->owner.n == 0 || me.n == 0 || slice_eq(t->owner, me))
		return 0;
	*why = "not-owner";
	return 403;
}
