/*
 * moves.c - the move tasks, which are tasks of the server (api/task/tasks.h), and the actions of permissions.
 *
 *      StartMessageMoveTask     move what is ready in the queue SourceArn: to DestinationArn, or each to the queue it died in
 *      ListMessageMoveTasks     the moves of that queue, the newest first
 *      CancelMessageMoveTask    TaskHandle: base64 of {"taskId":"318497266802130944","sourceArn":"arn:aws:sqs:..."}
 */
#include "api/sqs/out.h"
#include "api/sqs/queue.h"

#include "api/task/tasks.h"
#include "base/base64.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	RATE_MAX = 500,
	RESULTS_MAX = 10,
	HANDLE = SQS_URL + 64 /* bytes of a handle, decoded */
};

struct state {
	struct task_call call;
	struct task_list list;
	struct op_queue seen;
	char source[NAME_TEXT]; /* folded */
	void (*then)(struct apicall *a);

	struct slice id, arn; /* of a handle */
};

static struct state *
state_of(struct apicall *a)
{
	return sqs_of(a)->own;
}

/* NULL: the call was refused. */
static struct state *
begin(struct apicall *a)
{
	struct state *const t = arena_alloc(&a->memory, sizeof *t);

	if (!t) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return NULL;
	}
	memset(t, 0, sizeof *t);
	sqs_of(a)->own = t;
	return t;
}

static void
refuse(struct apicall *a, int rc, const struct slu_err *err)
{
	const bool unsupported = rc == SLU_EINVAL || rc == SLU_EBUSY; /* engine redis, or too many tasks */

	if (rc == SLU_ENOTFOUND)
		sqs_refuse(a, SQS_NO_RESOURCE, "The resource that you specified doesn't exist.");
	else
		sqs_refuse(a, unsupported ? SQS_UNSUPPORTED : sqs_code_of(rc), "%s", err->text);
}

/* --- queues --------------------------------------------------------------------- */

/* Takes the queue of arn:aws:sqs:REGION:ACCOUNT:QUEUE. Returns false if it refused the call. */
static bool
take_arn(struct apicall *a, struct slice arn)
{
	struct sqs_call *const s = sqs_of(a);
	const char *const colon = arn.n ? memrchr(arn.p, ':', arn.n) : NULL;
	const char *const before = colon ? memrchr(arn.p, ':', (size_t)(colon - arn.p)) : NULL;
	struct slu_err err = { 0 };
	char path[SQS_URL];

	if (arn.n == 0) {
		sqs_refuse(a, SQS_MISSING, "The request must contain the parameter SourceArn.");
		return false;
	}
	if (arn.n < 12 || arn.n >= SQS_URL || memcmp(arn.p, "arn:aws:sqs:", 12) != 0 || !before) {
		sqs_refuse(a, SQS_BAD_VALUE, "Invalid ARN; expected arn:aws:sqs:REGION:ACCOUNT:QUEUE.");
		return false;
	}
	(void)snprintf(path, sizeof path, "/%.*s/%.*s", (int)(colon - before - 1), before + 1, (int)(arn.p + arn.n - colon - 1),
		       colon + 1); /* fits */
	if (sqs_take_url(s, slice_of(path), &err) == 0)
		return true;
	sqs_refuse(a, SQS_BAD_VALUE, "%s", err.text);
	return false;
}

static void
looked(struct apicall *a)
{
	const struct slu_err err = apicall_err_of(&a->op);

	if (a->op.rc)
		refuse(a, a->op.rc, &err);
	else
		state_of(a)->then(a);
}

/* Refuses the call if the queue of the call does not exist. */
static void
look(struct apicall *a, void (*then)(struct apicall *a))
{
	struct state *const t = state_of(a);
	const struct sqs_call *const s = sqs_of(a);

	t->then = then;
	apicall_op(a, &a->op, OP_STATS, slice_of(s->space), slice_of(s->queue));
	a->op.queues = &t->seen;
	a->op.max_queues = 1;
	apicall_run(a, looked);
}

/* --- handles -------------------------------------------------------------------- */

static void
write_handle(struct apicall *a, struct sqs_out *o, const struct task *t, const char *queue)
{
	char arn[SQS_URL], id[TASK_ID_TEXT], text[HANDLE], handle[HANDLE * 2];
	const int n = snprintf(text, sizeof text, "{\"taskId\":\"%s\",\"sourceArn\":\"%s\"}", task_id_text(t->id, id),
			       sqs_arn(sqs_of(a), queue, arn)); /* fits */

	base64_encode((struct slice){ text, (size_t)n }, handle);
	sqs_out_plain(o, "TaskHandle", (struct slice){ handle, base64_text((size_t)n) });
}

static const struct json_field handle_fields[] = {
	JSON_ROW("taskId", json_read_text, struct state, id, .required = true),
	JSON_ROW("sourceArn", json_read_text, struct state, arn, .required = true),
};

/* Reads s->q.handle. SLU_EINVAL. */
static int
read_handle(struct apicall *a, struct state *t)
{
	const struct slice text = sqs_of(a)->q.handle;
	char *const bytes = arena_alloc(&a->memory, 2 * (text.n + 4));
	struct slu_err err = { 0 };
	struct json r;
	size_t n = 0;

	if (!bytes)
		return SLU_ENOMEM;
	if (text.n == 0 || text.n > 2 * (size_t)HANDLE || base64_decode(text, bytes, &n, &err))
		return SLU_EINVAL;
	json_init(&r, (struct slice){ bytes, n }, JSON_DEPTH);
	json_room(&r, bytes + text.n + 4, text.n + 4);
	(void)json_fields(&r, handle_fields, COUNT(handle_fields), JSON_LENIENT, t);
	if (json_end(&r, &err))
		return SLU_EINVAL;
	return parse_u64(t->id, 1, INT64_MAX, &t->call.t.id, NULL) ? SLU_EINVAL : 0;
}

/* --- StartMessageMoveTask ------------------------------------------------------- */

static void
started(struct apicall *a, int rc, const struct slu_err *err)
{
	struct state *const t = state_of(a);
	struct sqs_out o;

	if (rc) {
		refuse(a, rc, err);
		return;
	}
	sqs_out_begin(&o, a, NULL);
	write_handle(a, &o, &t->call.t, t->source);
	sqs_out_end(&o);
}

static void
start(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = state_of(a);
	const bool to = s->q.destination.n > 0;

	t->call = (struct task_call){
		.space = slice_of(s->space),
		.t = {
			.action = TASK_MOVE,
			.queue = slice_of(t->source),
			.state = MSG_READY,
			.to = to ? slice_of(s->queue) : (struct slice){ 0 },
			.to_source = !to,
			.rate = s->q.rate == SQS_NOT_GIVEN ? 0 : (uint32_t)s->q.rate,
		},
	};
	tasks_begin(a, &t->call, started);
}

static void
start_listed(struct apicall *a, int rc, const struct slu_err *err)
{
	struct sqs_call *const s = sqs_of(a);
	struct state *const t = state_of(a);
	char space[NAME_TEXT];

	if (rc && rc != SLU_ENOTFOUND) {
		refuse(a, rc, err);
		return;
	}
	for (uint32_t i = 0; !rc && i < t->list.n; i++)
		if (t->list.tasks[i].action == TASK_MOVE && t->list.tasks[i].phase == TASK_RUNNING) {
			sqs_refuse(a, SQS_UNSUPPORTED, "There is already a task running. Only one active task is allowed for a source "
						       "queue arn at a given time.");
			return;
		}
	if (s->q.destination.n == 0) {
		start(a);
		return;
	}
	memcpy(space, s->space, sizeof space);
	if (!take_arn(a, s->q.destination))
		return;
	if (strcmp(t->source, s->queue) == 0)
		sqs_refuse(a, SQS_BAD_VALUE, "Source queue arn and destination queue arn must be different.");
	else if (strcmp(space, s->space) != 0)
		sqs_refuse(a, SQS_BAD_VALUE, "DestinationArn must be of the same account as SourceArn.");
	else
		look(a, start);
}

static void
list_of(struct apicall *a, tasks_then *then)
{
	struct state *const t = state_of(a);

	t->list = (struct task_list){ .space = slice_of(sqs_of(a)->space), .queue = slice_of(t->source) };
	tasks_list(a, &t->list, then);
}

static void
start_looked(struct apicall *a)
{
	list_of(a, start_listed);
}

/* The queue SourceArn, which exists. */
static void
with_source(struct apicall *a, void (*then)(struct apicall *a))
{
	struct state *const t = state_of(a);

	if (!take_arn(a, sqs_of(a)->q.source))
		return;
	memcpy(t->source, sqs_of(a)->queue, sizeof t->source);
	look(a, then);
}

void
sqs_start_move(struct apicall *a)
{
	const int64_t rate = sqs_of(a)->q.rate;

	if (rate != SQS_NOT_GIVEN && (rate < 1 || rate > RATE_MAX))
		sqs_refuse(a, SQS_BAD_VALUE, "Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: Must be between 1 and 500.");
	else if (begin(a))
		with_source(a, start_looked);
}

/* --- ListMessageMoveTasks ------------------------------------------------------- */

static const char *
status_of(const struct task *t)
{
	static const char *const names[TASK_PHASES] = {
		[TASK_RUNNING] = "RUNNING",
		[TASK_DONE] = "COMPLETED",
		[TASK_CANCELED] = "CANCELLED",
		[TASK_STOPPED] = "FAILED",
		[TASK_FAILED] = "FAILED",
	};

	return t->phase == TASK_RUNNING && t->cancel ? "CANCELLING" : names[t->phase];
}

static void
write_move(struct apicall *a, struct sqs_out *o, const struct task *t)
{
	const struct sqs_call *const s = sqs_of(a);
	char arn[SQS_URL], to[NAME_TEXT];

	sqs_out_item(o);
	if (t->phase == TASK_RUNNING)
		write_handle(a, o, t, state_of(a)->source);
	sqs_out_plain(o, "Status", slice_of(status_of(t)));
	sqs_out_text(o, "SourceArn", slice_of(sqs_arn(s, state_of(a)->source, arn)));
	(void)snprintf(to, sizeof to, "%.*s", (int)t->to.n, t->to.n ? t->to.p : ""); /* fits */
	if (t->to.n)
		sqs_out_text(o, "DestinationArn", slice_of(sqs_arn(s, to, arn)));
	if (t->rate)
		sqs_out_number(o, "MaxNumberOfMessagesPerSecond", t->rate);
	sqs_out_number(o, "ApproximateNumberOfMessagesMoved", (int64_t)t->done);
	sqs_out_number(o, "ApproximateNumberOfMessagesToMove", (int64_t)t->total);
	if (t->phase == TASK_FAILED || t->phase == TASK_STOPPED)
		sqs_out_text(o, "FailureReason", slice_of(t->error));
	sqs_out_number(o, "StartedTimestamp", t->created / SLU_MS);
	sqs_out_item_end(o);
}

static void
listed(struct apicall *a, int rc, const struct slu_err *err)
{
	const struct state *const t = state_of(a);
	int64_t left = sqs_of(a)->q.max_results == SQS_NOT_GIVEN ? 1 : sqs_of(a)->q.max_results;
	struct sqs_out o;

	if (rc && rc != SLU_ENOTFOUND) {
		refuse(a, rc, err);
		return;
	}
	sqs_out_begin(&o, a, NULL);
	sqs_out_list(&o, "Results", "ListMessageMoveTasksResultEntry");
	for (uint32_t i = 0; !rc && i < t->list.n && left > 0; i++) {
		if (t->list.tasks[i].action != TASK_MOVE)
			continue;
		write_move(a, &o, &t->list.tasks[i]);
		left--;
	}
	sqs_out_list_end(&o);
	sqs_out_end(&o);
}

static void
list_looked(struct apicall *a)
{
	list_of(a, listed);
}

void
sqs_list_moves(struct apicall *a)
{
	const int64_t most = sqs_of(a)->q.max_results;

	if (most != SQS_NOT_GIVEN && (most < 1 || most > RESULTS_MAX))
		sqs_refuse(a, SQS_BAD_VALUE, "Value for parameter MaxResults is invalid. Reason: Must be between 1 and 10.");
	else if (begin(a))
		with_source(a, list_looked);
}

/* --- CancelMessageMoveTask ------------------------------------------------------ */

static void
canceled(struct apicall *a, int rc, const struct slu_err *err)
{
	const struct task *const t = &state_of(a)->call.t;
	struct sqs_out o;

	if (rc) {
		refuse(a, rc, err);
	} else if (t->phase != TASK_RUNNING) {
		sqs_refuse(a, SQS_NO_RESOURCE, "Only active tasks can be cancelled.");
	} else {
		sqs_out_begin(&o, a, NULL);
		sqs_out_number(&o, "ApproximateNumberOfMessagesMoved", (int64_t)t->done);
		sqs_out_end(&o);
	}
}

/* The task of a handle must be a move of the queue that the handle names. */
static void
found(struct apicall *a, int rc, const struct slu_err *err)
{
	struct state *const t = state_of(a);
	const bool is_move = !rc && t->call.t.action == TASK_MOVE && slice_eq(t->call.t.queue, slice_of(sqs_of(a)->queue));

	if (rc)
		refuse(a, rc, err);
	else if (!is_move)
		refuse(a, SLU_ENOTFOUND, NULL);
	else
		tasks_cancel(a, &t->call, canceled);
}

void
sqs_cancel_move(struct apicall *a)
{
	struct state *const t = begin(a);

	if (!t)
		return;
	if (sqs_of(a)->q.handle.n == 0)
		sqs_refuse(a, SQS_MISSING, "The request must contain the parameter TaskHandle.");
	else if (read_handle(a, t))
		sqs_refuse(a, SQS_BAD_VALUE, "Value for parameter TaskHandle is invalid.");
	else if (take_arn(a, t->arn)) {
		t->call.space = slice_of(sqs_of(a)->space);
		tasks_get(a, &t->call, found);
	}
}

void
sqs_unsupported(struct apicall *a)
{
	sqs_refuse(a, SQS_UNSUPPORTED, "Permissions of queues are not supported: rights belong to access keys.");
}
