/*
 * history.c - GET /v1/admin/history: the recent past of a queue, or of the server, or of its storage.
 *
 *      TREND to each lane that may have some of it ──> counts are added, of times the longest is shown
 *
 *  HISTORY-1  Steps end at the same moments on all shards (TREND-1 of core/queue/trend.h), so rows with one end belong
 *             together. The answer ends with the last step that any shard has ended.
 */
#include "api/admin/admin.h"

#include "api/fanout.h"
#include "api/flat/view.h"
#include "api/handler.h"

#include <stdio.h>

/* By column; NULL: not shown. */
static const char *const of_queues[TREND_COLUMNS] = {
	"in", "done", "failed",
	"ready", "delayed", "leased", "held", "dead",
	"oldest_ms",
	"wait_p50_ms", "wait_p95_ms", "wait_p99_ms",
	"run_p50_ms", "run_p95_ms", "run_p99_ms"
};

static const char *const of_storage[TREND_COLUMNS] = {
	[TREND_IN] = "syncs",
	[TREND_DONE] = "puts",
	[TREND_WAIT] = "sync_p50_ms",
	[TREND_WAIT + 1] = "sync_p95_ms",
	[TREND_WAIT + 2] = "sync_p99_ms",
	[TREND_RUN] = "put_p50_ms",
	[TREND_RUN + 1] = "put_p95_ms",
	[TREND_RUN + 2] = "put_p99_ms",
};

static const struct range {
	const char *name;
	enum trend_scale scale;
	uint32_t steps;
} ranges[] = {
	{ "10m", TREND_10S, 60 },
	{ "1h", TREND_1MIN, 60 },
	{ "24h", TREND_5MIN, 288 },
	{ "7d", TREND_5MIN, 2016 },
};

/* The values of one step on all shards. */
struct step {
	uint64_t v[TREND_COLUMNS];
	bool known[TREND_COLUMNS];
};

struct state {
	struct slice namespace;
	struct slice queue;
	struct slice range;
	struct slice what; /* "queues" or "storage" */
	bool storage;
	const struct range *of;
	slu_time end;
	struct step *steps; /* of->steps, or NULL: no shard has any */
};

static const struct param params[] = {
	PARAM(name, struct state, namespace),
	PARAM(name, struct state, queue, .also = "topic"),
	PARAM(word, struct state, range),
	PARAM_ROW("of", word, struct state, what),
};

/* ---- The answer ---- */

/* With up to three decimals, without zeros at the end. */
static void
write_decimal(struct json_out *w, double v)
{
	char text[40];
	int n = snprintf(text, sizeof text, "%.3f", v);

	while (text[n - 1] == '0')
		n--;
	n -= text[n - 1] == '.';
	json_out_raw(w, NULL, (struct slice){ text, (size_t)n });
}

static void
write_value(struct json_out *w, const struct state *s, const struct step *step, unsigned column)
{
	const double seconds = (double)trend_spans[s->of->scale].length / (double)SLU_SEC;
	const double v = (double)step->v[column];
	const slu_time unit = TREND_UNIT;

	if (!step->known[column])
		json_out_null(w, NULL);
	else if (column < TREND_EVENTS)
		write_decimal(w, v / seconds);
	else if (column < TREND_OLDEST)
		json_out_u64(w, NULL, step->v[column]);
	else
		write_decimal(w, v * (double)unit / (double)SLU_MS);
}

static void
write_steps(struct json_out *w, const struct state *s)
{
	const char *const *const columns = s->storage ? of_storage : of_queues;

	for (unsigned c = 0; c < TREND_COLUMNS; c++) {
		if (!columns[c])
			continue;
		json_out_array(w, columns[c]);
		for (uint32_t i = 0; i < s->of->steps; i++)
			write_value(w, s, &s->steps[i], c);
		json_out_close(w);
	}
}

static void
answer(struct apicall *a, const struct fanout_missing *missing)
{
	const struct state *const s = a->state;
	struct json_out w;

	apicall_object(a, &w);
	if (s->queue.n)
		flat_view_place(&w, s->namespace, s->queue);
	json_out_str(&w, "range", slice_of(s->of->name));
	json_out_u64(&w, "step_ms", (uint64_t)(trend_spans[s->of->scale].length / SLU_MS));
	json_out_u64(&w, "steps", s->steps ? s->of->steps : 0);
	if (s->steps) {
		json_out_time(&w, "end", s->end);
		write_steps(&w, s);
	}
	fanout_write(&w, a, missing);
	apicall_reply_object(a, &w, 200);
}

/* ---- Shards ---- */

static void
add_value(struct step *to, unsigned column, uint16_t code)
{
	const uint64_t v = trend_value(code);

	if (code == TREND_NONE)
		return;
	if (column < TREND_OLDEST)
		to->v[column] += v;
	else if (!to->known[column] || v > to->v[column])
		to->v[column] = v;
	to->known[column] = true;
}

/* HISTORY-1: rows that ended before the first step of the answer are left out. */
static void
add_part(const struct state *s, const struct op *op)
{
	const int64_t later = (s->end - op->trend.end) / trend_spans[s->of->scale].length;

	for (int64_t i = later; i < op->n_steps; i++)
		for (unsigned c = 0; c < TREND_COLUMNS; c++)
			add_value(&s->steps[i - later], c, op->steps[i].v[c]);
}

/* Returns the first failure that is not a missing queue, SLU_ENOTFOUND if no shard has the queue, or 0. */
static int
look_at(const struct fanout *g, struct state *s, const struct op **failed)
{
	int rc = s->queue.n ? SLU_ENOTFOUND : 0;

	for (unsigned i = 0; i < g->n; i++) {
		const struct op *const op = &g->parts[i].op;

		if (!fanout_has(&g->parts[i]) || op->rc == SLU_ENOTFOUND)
			continue;
		*failed = op;
		if (op->rc)
			return op->rc;
		rc = 0;
		if (op->n_steps && op->trend.end > s->end)
			s->end = op->trend.end;
	}
	return rc;
}

static void
refuse(struct apicall *a, int rc, const struct op *failed, const struct fanout_missing *missing)
{
	const struct state *const s = a->state;
	char text[320];

	(void)snprintf(text, sizeof text, "namespace %.*s has no queue %.*s", (int)s->namespace.n, s->namespace.p,
		       (int)s->queue.n, s->queue.p);
	if (rc != SLU_ENOTFOUND)
		apicall_refuse_op(a, failed);
	else if (missing->n)
		apicall_refuse_err(a, &missing->err, -1);
	else
		apicall_refuse(a, rc, text);
}

static void
gathered(struct fanout *g)
{
	struct apicall *const a = g->apicall;
	struct state *const s = a->state;
	struct fanout_missing missing = { 0 };
	const struct op *failed = NULL;
	const int rc = look_at(g, s, &failed);

	fanout_missing(g, &missing);
	if (rc || !fanout_any(g)) {
		refuse(a, rc ? rc : SLU_ENOTFOUND, failed, &missing);
		return;
	}
	if (s->end)
		s->steps = arena_array(&a->memory, s->of->steps, sizeof *s->steps);
	if (s->end && !s->steps) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	if (s->steps)
		memset(s->steps, 0, s->of->steps * sizeof *s->steps);
	for (unsigned i = 0; i < g->n && s->steps; i++)
		if (fanout_has(&g->parts[i]) && g->parts[i].op.n_steps)
			add_part(s, &g->parts[i].op);
	answer(a, &missing);
}

static void
ask(struct apicall *a, const struct broker_place *places, unsigned n)
{
	const struct state *const s = a->state;
	struct fanout *const g = fanout_new(a, n);

	for (unsigned i = 0; g && i < n; i++) {
		if (!fanout_op(g, i, OP_TREND, s->namespace, s->queue, places ? places[i].lane : i, 0) ||
		    !fanout_steps(g, i, s->of->steps))
			return;
		g->parts[i].op.trend.scale = (uint8_t)s->of->scale;
		g->parts[i].op.trend.storage = s->storage;
		g->parts[i].op.here = places && n > 1;
	}
	if (g)
		fanout_run(g, gathered);
}

/* ---- The call ---- */

static int
check(struct state *s, struct slu_err *err)
{
	const char *const expected = s->queue.n ? "10m or 1h" : "10m, 1h, 24h or 7d";

	s->storage = slice_eq(s->what, SLICE("storage"));
	if (s->what.n && !s->storage && !slice_eq(s->what, SLICE("queues")))
		return slu_fail(err, SLU_EINVAL, "invalid of: %.*s; expected queues or storage",
				(int)(s->what.n < 40 ? s->what.n : 40), s->what.p);
	if (s->storage && (s->queue.n || s->namespace.n))
		return slu_fail(err, SLU_EINVAL, "invalid of: storage; expected no queue and no namespace");
	for (unsigned i = 0; i < COUNT(ranges); i++)
		if (slice_eq(s->range.n ? s->range : SLICE("10m"), slice_of(ranges[i].name)) &&
		    (!s->queue.n || ranges[i].scale < TREND_OF_QUEUE))
			s->of = &ranges[i];
	if (!s->of)
		return slu_fail(err, SLU_EINVAL, "invalid range: %.*s; expected %s", (int)(s->range.n < 40 ? s->range.n : 40),
				s->range.p, expected);
	if (s->queue.n && !s->namespace.n)
		return slu_fail(err, SLU_EINVAL, "namespace is missing; expected the namespace of the queue");
	if (s->namespace.n && !s->queue.n)
		return slu_fail(err, SLU_EINVAL, "queue is missing; expected a queue of the namespace, or no namespace");
	return 0;
}

static void
history(struct apicall *a)
{
	struct state *const s = a->state;
	struct broker_place places[SUPPLIED_MAX];
	struct slu_err err = { 0 };
	unsigned n = 0;
	int rc = check(s, &err);

	if (!rc && s->queue.n)
		rc = broker_places(a->api->broker, apicall_routes(a), s->namespace, s->queue, places, &n, &err);
	if (apicall_refused(a, rc, err.text))
		return;
	if (s->queue.n)
		ask(a, places, n);
	else
		ask(a, NULL, broker_lanes(a->api->broker));
}

const struct handler admin_history = { history, sizeof(struct state), QUERY_ROWS(params) };
