/*
 * settle.c - POST /tasks/{id}/heartbeat, /abandon and /nack.
 *
 *      heartbeat   extend
 *      abandon     a deferring nack without a delay: behind its equals, not counted
 *      nack        a failing nack: by the delay of the request, or the policy of the queue
 */
#include "api/codeq/task.h"
#include "api/codeq/webhook.h"

#include "api/limits.h"
#include "base/utf8.h"

struct state {
	struct codeq_task task;
	struct op_item item;
	struct op_put webhook;
	bool calls; /* webhook: the task dies now */
	enum op_verb verb;
	int64_t seconds; /* extendSeconds, delaySeconds */
	struct slice reason;
	void (*answer)(struct apicall *a);
};

static struct state *
state_of(struct apicall *a)
{
	return codeq_of(a)->own;
}

/* --- answers ------------------------------------------------------------------ */

static void
answer_ok(struct apicall *a)
{
	struct json_out w;

	apicall_object(a, &w);
	json_out_bool(&w, "ok", true);
	apicall_reply_object(a, &w, 200);
}

static void
answer_requeued(struct apicall *a)
{
	struct json_out w;

	apicall_object(a, &w);
	json_out_str(&w, "status", SLICE("requeued"));
	apicall_reply_object(a, &w, 200);
}

static void
answer_nack(struct apicall *a)
{
	const struct state *const s = state_of(a);
	const slu_time left = s->item.until - clock_wall(a->api->clock);
	struct json_out w;

	apicall_object(a, &w);
	json_out_str(&w, "status", s->item.died ? SLICE("dlq") : SLICE("requeued"));
	json_out_i64(&w, "delaySeconds", s->item.died || left <= 0 ? 0 : (left + SLU_SEC - 1) / SLU_SEC);
	apicall_reply_object(a, &w, 200);
}

static void
settled(struct apicall *a)
{
	const struct state *const s = state_of(a);

	const int rc = a->op.rc ? a->op.rc : s->item.rc;

	if (!rc && s->calls)
		codeq_webhook_kick(a);
	if (rc == SLU_ELEASE) /* CODEQ-3 */
		codeq_refuse(a, 409, "not-in-progress");
	else if (rc == SLU_ENOTFOUND)
		codeq_refuse(a, 404, "not-found");
	else if (a->op.rc)
		apicall_refuse_op(a, &a->op);
	else if (rc)
		codeq_refuse_rc(a, rc, NULL);
	else
		s->answer(a);
}

/* --- the op ------------------------------------------------------------------- */

/* The webhook of a task that dies by this nack, in one step with it. */
static void
add_webhook(struct apicall *a, struct state *s)
{
	const struct op_row *const row = &s->task.row;
	struct slice body;
	struct json_out w;
	struct buf b;

	if (s->verb != OP_NACK || s->item.defer || row->failures + 1u < row->max_attempts)
		return;
	buf_init(&b, API_RESULT_MAX);
	codeq_webhook_open(a, &w, &b, &s->task, "FAILED");
	json_out_str(&w, "error", s->reason);
	json_out_time(&w, "completedAt", clock_wall(a->api->clock));
	json_out_close(&w);
	body = arena_take(&a->memory, &b);
	s->calls = codeq_webhook_put(a, &s->task, body, &s->webhook);
	if (!s->calls)
		return;
	s->item.nack = true;
	op_make_finish(&a->op);
	a->op.puts = &s->webhook;
	a->op.n_puts = 1;
}

static void
settle(struct apicall *a)
{
	struct state *const s = state_of(a);
	const char *why;
	const unsigned status = codeq_may_settle(a, &s->task, &why);

	if (status) {
		codeq_refuse(a, status, "%s", why);
		return;
	}
	s->item.id = s->task.id;
	s->item.token = s->task.row.token;
	s->item.text = s->reason;
	apicall_op(a, &a->op, s->verb, codeq_space(a), s->task.m.queue);
	a->op.items = &s->item;
	a->op.n_items = 1;
	if (apicall_pass(a)) { /* before the put: no caller has rights in its namespace */
		add_webhook(a, s);
		apicall_run(a, settled);
	}
}

static const struct json_field fields[] = {
	JSON_ROW("extendSeconds", json_read_i64, struct state, seconds),
	JSON_ROW("delaySeconds", json_read_i64, struct state, seconds),
	JSON_FIELD(text, struct state, reason),
};

/* An empty body has no members. */
static int
read_body(struct apicall *a, struct slu_err *err)
{
	struct state *const s = state_of(a);
	const struct slice body = call_of(a->x)->body;
	char *const room = arena_alloc(&a->memory, body.n + 1);
	struct json r;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (body.n == 0)
		return 0;
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n + 1);
	(void)json_fields(&r, fields, COUNT(fields), JSON_LENIENT, s); /* absent members have their defaults */
	s->reason = utf8_cut(s->reason, API_ERROR_MAX);
	return json_end(&r, err);
}

static int64_t
within(int64_t n, int64_t min, int64_t max)
{
	return n < min ? min : n > max ? max
				       : n;
}

static void
heartbeat(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct slu_err err = { 0 };
	const int rc = read_body(a, &err);

	if (rc) {
		codeq_refuse_rc(a, rc, err.text);
		return;
	}
	s->verb = OP_EXTEND;
	s->answer = answer_ok;
	s->reason.n = 0;
	s->item.time = within(s->seconds > 0 ? s->seconds : CODEQ_LEASE, 1, API_LEASE_MAX / SLU_SEC) * SLU_SEC;
	codeq_find(&s->task, a, codeq_rest(a), settle);
}

static void
abandon(struct apicall *a)
{
	struct state *const s = state_of(a);

	s->verb = OP_NACK;
	s->answer = answer_requeued;
	s->item.defer = true;
	codeq_find(&s->task, a, codeq_rest(a), settle);
}

static void
nack(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct slu_err err = { 0 };
	const int rc = read_body(a, &err);

	if (rc) {
		codeq_refuse_rc(a, rc, err.text);
		return;
	}
	s->verb = OP_NACK;
	s->answer = answer_nack;
	s->item.time = s->seconds > 0 ? within(s->seconds, 1, CODEQ_BACKOFF) * SLU_SEC : LEDGER_BY_POLICY;
	codeq_find(&s->task, a, codeq_rest(a), settle);
}

const struct codeq_action codeq_heartbeat = { heartbeat, sizeof(struct state), CODEQ_WORKER, CODEQ_HEARTBEAT };
const struct codeq_action codeq_abandon = { abandon, sizeof(struct state), CODEQ_WORKER, CODEQ_ABANDON };
const struct codeq_action codeq_nack = { nack, sizeof(struct state), CODEQ_WORKER, CODEQ_NACK };
