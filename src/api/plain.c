#include "api/plain.h"

#include "api/ask.h"
#include "api/flat_view.h"
#include "api/limits.h"
#include "api/openapi.h"
#include "http/server.h"

#include <inttypes.h>

/* --- health ------------------------------------------------------------------- */

void
plain_healthz(struct call *c, void *arg)
{
	(void)arg;
	call_answer_text(c, 200, api_json, SLICE("{\"status\":\"ok\"}"));
}

void
plain_readyz(struct call *c, void *arg)
{
	struct api *const api = arg;
	struct slu_err err = { 0 };
	int rc = 0;

	if (atomic_load(&api->draining))
		rc = slu_fail(&err, SLU_ECLOSED, "stopping, takes no new work");
	for (uint32_t i = 0; i < broker_shards(api->broker) && !rc; i++)
		rc = broker_health(api->broker, i, &err);
	if (rc)
		api_refuse(c, rc, err.text, -1);
	else
		call_answer_text(c, 200, api_json, SLICE("{\"status\":\"ready\"}"));
}

void
plain_openapi(struct call *c, void *arg)
{
	(void)arg;
	call_answer_text(c, 200, api_json, (struct slice){ openapi_text, openapi_size });
}

/* --- metrics ------------------------------------------------------------------ */

struct total {
	const char *name;
	const char *type;
	const char *help;
	size_t offset;
};

#define TOTAL(name, type, member, help)                                  \
	{                                                                \
		name, type, help, offsetof(struct broker_totals, member) \
	}

/* clang-format off */
static const struct total totals[] = {
	TOTAL("shard_ops_total", "counter", ops, "operations run by the shard"),
	TOTAL("shard_batches_total", "counter", batches, "batches they were run in"),
	TOTAL("messages_accepted_total", "counter", accepted, "messages taken into queues"),
	TOTAL("messages_delivered_total", "counter", delivered, "messages handed out"),
	TOTAL("messages_returned_total", "counter", returned, "handed out, not received, back in place"),
	TOTAL("messages_acked_total", "counter", acked, "messages finished"),
	TOTAL("messages_nacked_total", "counter", nacked, "messages given back by their holder"),
	TOTAL("messages_deleted_total", "counter", deleted, "messages deleted by hand"),
	TOTAL("waiting", "gauge", waiting, "operations that wait for a message or a result"),
};
/* clang-format on */

static void
write_totals(struct api *api, struct buf *out)
{
	for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
		const struct total *const t = &totals[i];

		buf_printf(out, "# HELP sluice_%s %s\n# TYPE sluice_%s %s\n", t->name, t->help,
			   t->name, t->type);
		for (uint32_t shard = 0; shard < broker_shards(api->broker); shard++) {
			struct broker_totals values;
			uint64_t value;

			broker_totals(api->broker, shard, &values);
			memcpy(&value, (const char *)&values + t->offset, sizeof value);
			buf_printf(out, "sluice_%s{shard=\"%" PRIu32 "\"} %" PRIu64 "\n",
				   t->name, shard, value);
		}
	}
}

struct state {
	uint64_t count[MSG_STATES]; /* of all queues */
	uint32_t shown;             /* queues with lines of their own */
	uint32_t queues;
	uint32_t warnings; /* queues that have more than their warn_depth */
};

static void
write_head(struct ask *a)
{
	struct api *const api = a->api;
	struct buf *const out = &a->call->out;

	buf_printf(out,
		   "# HELP sluice_info what is running\n"
		   "# TYPE sluice_info gauge\n"
		   "sluice_info{version=\"%s\",engine=\"%s\",durability=\"%s\"} 1\n"
		   "# HELP process_start_time_seconds when it began, in seconds since 1970\n"
		   "# TYPE process_start_time_seconds gauge\n"
		   "process_start_time_seconds %.3f\n",
		   SLUICE_VERSION, api->engine, api->sync, (double)api->started / 1e9);
	if (api->server)
		server_metrics(api->server, out);
	metrics_write(&api->ops, out);
	write_totals(api, out);
	buf_puts(out, "# HELP sluice_queue_messages messages of a queue by state\n"
		      "# TYPE sluice_queue_messages gauge\n");
}

/* Names have no character that would have to be escaped. */
static void
write_queue(struct state *s, const struct op_queue *q, struct buf *out)
{
	const bool shown = s->shown < API_METRIC_QUEUES;

	s->queues++;
	s->warnings += flat_view_warns(q);
	s->shown += shown;
	for (unsigned i = MSG_READY; i < MSG_STATES; i++) {
		s->count[i] += q->count[i];
		if (shown)
			buf_printf(out,
				   "sluice_queue_messages{namespace=\"%s\",topic=\"%s\","
				   "state=\"%s\"} %" PRIu32 "\n",
				   q->space, q->name, flat_view_states[i], q->count[i]);
	}
}

static void
write_tail(const struct state *s, struct buf *out)
{
	buf_puts(out, "# HELP sluice_messages messages of all queues by state\n"
		      "# TYPE sluice_messages gauge\n");
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		buf_printf(out, "sluice_messages{state=\"%s\"} %" PRIu64 "\n",
			   flat_view_states[i], s->count[i]);
	buf_printf(out,
		   "# HELP sluice_queues queues that exist\n"
		   "# TYPE sluice_queues gauge\n"
		   "sluice_queues %" PRIu32 "\n"
		   "# HELP sluice_queues_warning queues with more messages than their warn_depth\n"
		   "# TYPE sluice_queues_warning gauge\n"
		   "sluice_queues_warning %" PRIu32 "\n",
		   s->queues, s->warnings);
}

static void
take_page(struct ask *a)
{
	struct state *const s = a->state;
	struct buf *const out = &a->call->out;

	for (uint32_t i = 0; i < a->op.n_queues && !a->op.rc; i++)
		write_queue(s, &a->op.queues[i], out);
	if (!a->op.rc && a->op.cursor) {
		const uint64_t cursor = a->op.cursor;
		struct op_queue *const queues = a->op.queues;

		ask_op(a, &a->op, OP_TOPICS, (struct slice){ 0 }, (struct slice){ 0 });
		a->op.cursor = cursor;
		a->op.queues = queues;
		a->op.max_queues = API_METRIC_PAGE;
		ask_run(a, take_page);
		return;
	}
	write_tail(s, out); /* of a shard that is down: what is known */
	call_answer(a->call, 200, "text/plain; version=0.0.4; charset=utf-8", out);
}

void
plain_metrics(struct call *c, void *arg)
{
	struct ask *const a = ask_new(arg, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct op_queue *const queues =
		s ? arena_array(&a->memory, API_METRIC_PAGE, sizeof *queues) : NULL;

	if (!s)
		return;
	if (!queues) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	write_head(a);
	ask_op(a, &a->op, OP_TOPICS, (struct slice){ 0 }, (struct slice){ 0 });
	a->op.queues = queues;
	a->op.max_queues = API_METRIC_PAGE;
	ask_run(a, take_page);
}
