#include "api/fanout.h"

#include "api/authorize.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

#define WARN_EVERY (10 * SLU_SEC)

enum state {
	ASKED,    /* not answered yet */
	ANSWERED, /* the op has the answer */
	LATE,     /* the lane owns the op until it is done */
	SKIPPED   /* FANOUT-3 */
};

enum {
	FANOUTS_ASKED,
	FANOUTS_PARTIAL,
	FANOUTS_LATE,
	FANOUTS_SKIPPED,
	FANOUTS_ROWS
};

static const struct metric rows[FANOUTS_ROWS] = {
	[FANOUTS_ASKED] = { "queries_total", METRIC_COUNTER, "questions to several shards: stats, lists of queues, metrics" },
	[FANOUTS_PARTIAL] = { "partial_total", METRIC_COUNTER, "of these, answered without what some shard had to say" },
	[FANOUTS_LATE] = { "timeouts_total", METRIC_COUNTER, "lanes of shards that did not answer within stats.timeout" },
	[FANOUTS_SKIPPED] = { "skipped_total", METRIC_COUNTER, "lanes that were not asked, as they owed an answer from before" },
};

struct fanouts {
	struct metrics m;
	_Atomic slu_time warned;                 /* when a warning was logged last, on the clock of the api */
	_Atomic uint32_t owed[BROKER_LANES_MAX]; /* by a lane: LATE ops */
};

int
fanouts_new(struct fanouts **out)
{
	struct fanouts *const s = mem_zalloc(sizeof *s);

	*out = s;
	return s ? metrics_init(&s->m, "sluice_cross_shard_", rows, FANOUTS_ROWS, NULL, 1)
		 : SLU_ENOMEM;
}

void
fanouts_free(struct fanouts *s)
{
	if (!s)
		return;
	metrics_release(&s->m);
	mem_free(s);
}

void
fanouts_metrics(const struct fanouts *s, struct buf *out)
{
	metrics_write(&s->m, out);
}

/* --- memory ------------------------------------------------------------------- */

struct fanout *
fanout_new(struct apicall *a, unsigned n)
{
	struct fanout *const g = mem_zalloc(sizeof *g);

	if (g)
		g->parts = arena_array(&g->memory, n, sizeof *g->parts);
	if (!g || !g->parts) {
		mem_free(g);
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return NULL;
	}
	memset(g->parts, 0, n * sizeof *g->parts);
	g->apicall = a;
	g->api = a->api;
	g->loop = exchange_loop(a->x);
	g->n = n;
	return g;
}

static void
drop(struct fanout *g)
{
	arena_release(&g->memory);
	mem_free(g);
}

static void
unref(struct fanout *g)
{
	if (atomic_fetch_sub(&g->refs, 1) == 1)
		drop(g);
}

/* --- ops ---------------------------------------------------------------------- */

static void
on_closed(uv_handle_t *timer)
{
	unref(timer->data);
}

/* FANOUT-1: runs on the loop when `left` is 0. */
static void
finish(struct fanout *g)
{
	const slu_time took = clock_mono(g->api->clock) - g->apicall->posted;
	bool partial = false;

	for (unsigned i = 0; i < g->n; i++) {
		const struct fanout_part *const p = &g->parts[i];

		partial |= !fanout_has(p);
		if (atomic_load(&p->state) == ANSWERED)
			api_count(g->api, exchange_thread(g->apicall->x), &p->op, took);
	}
	if (partial)
		metrics_add(&g->api->fanouts->m, FANOUTS_PARTIAL, 0, 1);
	g->answer(g);
	for (unsigned i = 0; i < g->n; i++)
		if (atomic_load(&g->parts[i].state) == ANSWERED)
			op_unpin(&g->parts[i].op);
	if (g->timed)
		uv_close((uv_handle_t *)&g->timer, on_closed);
	else
		unref(g);
}

static void
on_posted(struct loop_work *w)
{
	finish(CONTAINER(w, struct fanout, work));
}

/* On the lane's thread. FANOUT-2. */
static void
done(struct op *op)
{
	struct fanout_part *const p = CONTAINER(op, struct fanout_part, op);
	struct fanout *const g = op->owner;
	int asked = ASKED;

	if (!atomic_compare_exchange_strong(&p->state, &asked, ANSWERED)) {
		op_unpin(op);
		atomic_fetch_sub(&g->api->fanouts->owed[p->lane], 1);
	} else if (atomic_fetch_sub(&g->left, 1) == 1) {
		loop_post(g->loop, &g->work);
	}
	unref(g);
}

/* If a lane is between its answer and the decrement of `left`, that lane brings `left` to 0. */
static void
on_time(uv_timer_t *timer)
{
	struct fanout *const g = timer->data;
	struct fanouts *const s = g->api->fanouts;
	bool last = false;

	for (unsigned i = 0; i < g->n; i++) {
		struct fanout_part *const p = &g->parts[i];
		int asked = ASKED;

		/* Add first: `done` may subtract at the same moment. */
		atomic_fetch_add(&s->owed[p->lane], 1);
		if (!atomic_compare_exchange_strong(&p->state, &asked, LATE)) {
			atomic_fetch_sub(&s->owed[p->lane], 1);
			continue;
		}
		metrics_add(&s->m, FANOUTS_LATE, 0, 1);
		last |= atomic_fetch_sub(&g->left, 1) == 1;
	}
	if (last)
		finish(g);
}

bool
fanout_op(struct fanout *g, unsigned i, enum op_verb verb, struct slice space,
	  struct slice queue, uint32_t lane, uint32_t max_queues)
{
	struct fanout_part *const p = &g->parts[i];

	/* The names are in the memory of the apicall, which may end before the op. */
	op_init(&p->op, verb, arena_copy(&g->memory, space), arena_copy(&g->memory, queue), done,
		g);
	p->lane = lane;
	p->op.route.local = g->local;
	p->op.cursor = (uint64_t)lane << BROKER_CURSOR_BITS;
	p->op.max_queues = max_queues;
	if (max_queues)
		p->op.queues = arena_array(&g->memory, max_queues, sizeof *p->op.queues);
	p->op.max_rows = verb == OP_WHY ? OP_WHY_ROWS : verb == OP_GET;
	if (p->op.max_rows)
		p->op.rows = arena_array(&g->memory, p->op.max_rows, sizeof *p->op.rows);
	if (p->op.space.n == space.n && p->op.queue.n == queue.n && (p->op.queues || !max_queues) &&
	    (p->op.rows || !p->op.max_rows))
		return true;
	apicall_refuse(g->apicall, SLU_ENOMEM, NULL);
	drop(g);
	return false;
}

bool
fanout_steps(struct fanout *g, unsigned i, uint32_t n)
{
	struct op *const op = &g->parts[i].op;

	op->max_steps = n;
	op->steps = arena_array(&g->memory, n, sizeof *op->steps);
	if (op->steps)
		return true;
	apicall_refuse(g->apicall, SLU_ENOMEM, NULL);
	drop(g);
	return false;
}

struct fanout *
fanout_shards(struct apicall *a)
{
	const uint32_t n = broker_lanes(a->api->broker);
	struct fanout *const g = fanout_new(a, n);

	if (g)
		g->local = true;
	for (uint32_t i = 0; g && i < n; i++)
		if (!fanout_op(g, i, OP_SHARD, (struct slice){ 0 }, (struct slice){ 0 }, i, 0))
			return NULL; /* fanout_op has freed it */
	return g;
}

/* --- ask ---------------------------------------------------------------------- */

/* FANOUT-4 */
static void
start_timer(struct fanout *g)
{
	const slu_time time = atomic_load(&g->api->stats_timeout);

	if (time == 0 || (broker_lanes(g->api->broker) == 1 && !broker_has_tenure(g->api->broker)))
		return;
	(void)uv_timer_init(loop_uv(g->loop), &g->timer); /* always 0 */
	g->timer.data = g;
	g->timed = true;
	uv_update_time(loop_uv(g->loop)); /* the time of the turn, which may be old */
	(void)uv_timer_start(&g->timer, on_time, (uint64_t)(time / SLU_MS), 0);
}

/* Posts the op. Returns false if the op will not run. */
static bool
post(struct fanout *g, struct fanout_part *p)
{
	int rc;

	if (g->timed && atomic_load(&g->api->fanouts->owed[p->lane]) > 0) {
		atomic_store(&p->state, SKIPPED);
		metrics_add(&g->api->fanouts->m, FANOUTS_SKIPPED, 0, 1);
		return false;
	}
	p->op.wait = atomic_load(&g->api->stats_timeout); /* FANOUT-4 */
	rc = broker_post(g->api->broker, &p->op);
	if (rc) {
		op_fail(&p->op, rc, &p->op.err);
		atomic_store(&p->state, ANSWERED);
	}
	return rc == 0;
}

void
fanout_run(struct fanout *g, void (*answer)(struct fanout *g))
{
	for (unsigned i = 0; i < g->n; i++) {
		if (!authorize_ops(g->apicall, &g->parts[i].op, 1)) { /* FANOUT-5 */
			drop(g);
			return;
		}
	}
	g->answer = answer;
	g->work.run = on_posted;
	g->apicall->posted = clock_mono(g->api->clock);
	metrics_add(&g->api->fanouts->m, FANOUTS_ASKED, 0, 1);
	atomic_init(&g->left, g->n + 1);
	atomic_init(&g->refs, g->n + 1);
	start_timer(g);
	for (unsigned i = 0; i < g->n; i++) {
		if (post(g, &g->parts[i]))
			continue;
		atomic_fetch_sub(&g->left, 1);
		atomic_fetch_sub(&g->refs, 1);
	}
	if (atomic_fetch_sub(&g->left, 1) == 1)
		finish(g);
}

/* --- what came ---------------------------------------------------------------- */

bool
fanout_has(const struct fanout_part *p)
{
	return atomic_load(&p->state) == ANSWERED && (!p->op.rc || p->op.rc == SLU_ENOTFOUND);
}

struct fanout_part *
fanout_first(const struct fanout *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (fanout_has(&g->parts[i]) && !g->parts[i].op.rc)
			return &g->parts[i];
	return NULL;
}

void
fanout_find(struct apicall *a, enum op_verb verb, struct slice space, uint64_t id,
	    void (*answer)(struct fanout *g))
{
	const uint32_t n = broker_lanes(a->api->broker);
	struct fanout *const g = fanout_new(a, n);

	for (uint32_t i = 0; g && i < n; i++) {
		if (!fanout_op(g, i, verb, space, (struct slice){ 0 }, i, verb == OP_WHY))
			return;
		g->parts[i].op.id = id;
	}
	if (g)
		fanout_run(g, answer);
}

bool
fanout_any(const struct fanout *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (fanout_has(&g->parts[i]))
			return true;
	return false;
}

void
fanout_why(const struct fanout *g, const struct fanout_part *p, struct slu_err *err)
{
	const slu_time time = atomic_load(&g->api->stats_timeout);
	const char *const node = broker_owner(g->api->broker, p->lane);

	if (atomic_load(&p->state) == ANSWERED)
		*err = apicall_err_of(&p->op);
	else if (node)
		(void)slu_fail(err, SLU_EDOWN, "shard %" PRIu32 " at %.160s did not answer within %" PRId64 " ms",
			       broker_lane_number(g->api->broker, p->lane), node, time / SLU_MS);
	else
		(void)slu_fail(err, SLU_EDOWN, "shard %s did not answer within %" PRId64 " ms",
			       broker_shard_name(g->api->broker, p->lane), time / SLU_MS);
}

/* The lanes of a store have a mark each; the lanes of another shard have its name. */
static void
add_shard(struct fanout_missing *m, const struct broker *b, uint32_t lane)
{
	for (unsigned i = 0; i < m->n; i++)
		if (strcmp(broker_mark_name(b, m->shards[i].lane), broker_mark_name(b, lane)) == 0)
			return;
	if (m->n < FANOUT_MISSING)
		m->shards[m->n++] = (struct fanout_absent){ lane, broker_owner(b, lane) };
	else
		m->more++;
}

void
fanout_missing(const struct fanout *g, struct fanout_missing *m)
{
	for (unsigned i = 0; i < g->n; i++) {
		const struct fanout_part *const p = &g->parts[i];

		if (fanout_has(p))
			continue;
		if (m->n == 0)
			fanout_why(g, p, &m->err);
		add_shard(m, g->api->broker, p->lane);
	}
}

void
fanout_warn(const struct apicall *a, const struct fanout_missing *m)
{
	const slu_time now = clock_mono(a->api->clock);
	slu_time last = atomic_load(&a->api->fanouts->warned);

	if (m->n == 0 || (last && now - last < WARN_EVERY) ||
	    !atomic_compare_exchange_strong(&a->api->fanouts->warned, &last, now))
		return;
	log_warn(a->api->log, "answered without some shards",
		 F_STR("shard", broker_shard_name(a->api->broker, m->shards[0].lane)),
		 F_U64("number", broker_lane_number(a->api->broker, m->shards[0].lane)),
		 F_U64("missing", m->n + m->more), F_STR("path", a->terms.what),
		 F_STR("why", m->err.text));
}

void
fanout_write(struct json_out *w, const struct apicall *a, const struct fanout_missing *m)
{
	if (m->n == 0)
		return;
	json_out_bool(w, "partial", true);
	json_out_array(w, "missing");
	for (unsigned i = 0; i < m->n; i++) {
		json_out_object(w, NULL);
		json_out_u64(w, "shard", broker_lane_number(a->api->broker, m->shards[i].lane));
		json_out_str(w, "name", slice_of(broker_shard_name(a->api->broker, m->shards[i].lane)));
		if (m->shards[i].node)
			json_out_str(w, "node", slice_of(m->shards[i].node));
		json_out_close(w);
	}
	json_out_close(w);
	if (m->more)
		json_out_u64(w, "missing_more", m->more);
	json_out_str(w, "message", slice_of(m->err.text));
	fanout_warn(a, m);
}
