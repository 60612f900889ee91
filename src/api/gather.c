#include "api/gather.h"

#include "api/admit.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

#define WARN_EVERY (10 * SLU_SEC)

enum state {
	ASKED,    /* or not even that yet */
	ANSWERED, /* what is in the op counts */
	LATE,     /* the op is its lane's until it is done, then nobody's */
	SKIPPED   /* G3 */
};

enum {
	GATHERS_ASKED,
	GATHERS_PARTIAL,
	GATHERS_LATE,
	GATHERS_SKIPPED,
	GATHERS_ROWS
};

static const struct metric rows[GATHERS_ROWS] = {
	[GATHERS_ASKED] = { "queries_total", METRIC_COUNTER,
			    "questions to several shards: stats, lists of queues, metrics" },
	[GATHERS_PARTIAL] = { "partial_total", METRIC_COUNTER,
			      "of these, answered without what some shard had to say" },
	[GATHERS_LATE] = { "timeouts_total", METRIC_COUNTER,
			   "lanes of shards that did not answer within stats.timeout" },
	[GATHERS_SKIPPED] = { "skipped_total", METRIC_COUNTER,
			      "lanes that were not asked, as they owed an answer from before" },
};

struct gathers {
	struct metrics m;
	_Atomic slu_time warned;                  /* when last, on the clock of the api */
	_Atomic uint32_t owed[BROKER_SHARDS_MAX]; /* by a lane: LATE ops */
};

int
gathers_new(struct gathers **out)
{
	struct gathers *const s = mem_zalloc(sizeof *s);

	*out = s;
	return s ? metrics_init(&s->m, "sluice_cross_shard_", rows, GATHERS_ROWS, NULL, 1)
		 : SLU_ENOMEM;
}

void
gathers_free(struct gathers *s)
{
	if (!s)
		return;
	metrics_release(&s->m);
	mem_free(s);
}

void
gathers_metrics(const struct gathers *s, struct buf *out)
{
	metrics_write(&s->m, out);
}

/* --- memory ------------------------------------------------------------------- */

struct gather *
gather_new(struct ask *a, unsigned n)
{
	struct gather *const g = mem_zalloc(sizeof *g);

	if (g)
		g->parts = arena_array(&g->memory, n, sizeof *g->parts);
	if (!g || !g->parts) {
		mem_free(g);
		ask_refuse(a, SLU_ENOMEM, NULL);
		return NULL;
	}
	memset(g->parts, 0, n * sizeof *g->parts);
	g->ask = a;
	g->api = a->api;
	g->loop = call_loop(a->call);
	g->n = n;
	return g;
}

void
gather_drop(struct gather *g)
{
	arena_release(&g->memory);
	mem_free(g);
}

static void
unref(struct gather *g)
{
	if (atomic_fetch_sub(&g->refs, 1) == 1)
		gather_drop(g);
}

/* --- ops ---------------------------------------------------------------------- */

static void
on_closed(uv_handle_t *timer)
{
	unref(timer->data);
}

/* G1: whoever brings `left` to 0 has this run, on the loop. */
static void
finish(struct gather *g)
{
	const slu_time took = clock_mono(g->api->clock) - g->ask->posted;
	bool partial = false;

	for (unsigned i = 0; i < g->n; i++) {
		const struct gather_part *const p = &g->parts[i];

		partial |= !gather_has(p);
		if (atomic_load(&p->state) == ANSWERED)
			api_count(g->api, call_thread(g->ask->call), &p->op, took);
	}
	if (partial)
		metrics_add(&g->api->gathers->m, GATHERS_PARTIAL, 0, 1);
	g->answer(g);
	if (g->timed)
		uv_close((uv_handle_t *)&g->timer, on_closed);
	else
		unref(g);
}

static void
on_posted(struct loop_work *w)
{
	finish(CONTAINER(w, struct gather, work));
}

/* On the lane's thread. G2. */
static void
done(struct op *op)
{
	struct gather_part *const p = CONTAINER(op, struct gather_part, op);
	struct gather *const g = op->owner;
	int asked = ASKED;

	if (!atomic_compare_exchange_strong(&p->state, &asked, ANSWERED))
		atomic_fetch_sub(&g->api->gathers->owed[p->lane], 1);
	else if (atomic_fetch_sub(&g->left, 1) == 1)
		loop_post(g->loop, &g->work);
	unref(g);
}

/* An op whose lane is between its answer and `left` brings that to 0 itself. */
static void
on_time(uv_timer_t *timer)
{
	struct gather *const g = timer->data;
	struct gathers *const s = g->api->gathers;
	bool last = false;

	for (unsigned i = 0; i < g->n; i++) {
		struct gather_part *const p = &g->parts[i];
		int asked = ASKED;

		/* First: it may be done, and no longer owed, in the same moment. */
		atomic_fetch_add(&s->owed[p->lane], 1);
		if (!atomic_compare_exchange_strong(&p->state, &asked, LATE)) {
			atomic_fetch_sub(&s->owed[p->lane], 1);
			continue;
		}
		metrics_add(&s->m, GATHERS_LATE, 0, 1);
		last |= atomic_fetch_sub(&g->left, 1) == 1;
	}
	if (last)
		finish(g);
}

bool
gather_op(struct gather *g, unsigned i, enum op_verb verb, struct slice space,
	  struct slice queue, uint32_t lane, uint32_t max_queues)
{
	struct gather_part *const p = &g->parts[i];

	/* The names are in the memory of the ask, which may go before the op does. */
	op_init(&p->op, verb, arena_copy(&g->memory, space), arena_copy(&g->memory, queue), done,
		g);
	p->lane = lane;
	p->op.cursor = (uint64_t)lane << BROKER_CURSOR_BITS;
	p->op.max_queues = max_queues;
	if (max_queues)
		p->op.queues = arena_array(&g->memory, max_queues, sizeof *p->op.queues);
	if (p->op.space.n == space.n && p->op.queue.n == queue.n && (p->op.queues || !max_queues))
		return true;
	ask_refuse(g->ask, SLU_ENOMEM, NULL);
	gather_drop(g);
	return false;
}

/* --- ask ---------------------------------------------------------------------- */

/* G4 */
static void
start_timer(struct gather *g)
{
	const slu_time time = atomic_load(&g->api->stats_timeout);

	if (time == 0 || broker_shards(g->api->broker) == 1)
		return;
	(void)uv_timer_init(loop_uv(g->loop), &g->timer); /* always 0 */
	g->timer.data = g;
	g->timed = true;
	uv_update_time(loop_uv(g->loop)); /* it is that of the turn, which may be long */
	(void)uv_timer_start(&g->timer, on_time, (uint64_t)(time / SLU_MS), 0);
}

/* False: it will not be done. */
static bool
post(struct gather *g, struct gather_part *p)
{
	int rc;

	if (g->timed && atomic_load(&g->api->gathers->owed[p->lane]) > 0) {
		atomic_store(&p->state, SKIPPED);
		metrics_add(&g->api->gathers->m, GATHERS_SKIPPED, 0, 1);
		return false;
	}
	rc = broker_post(g->api->broker, &p->op);
	if (rc) {
		op_fail(&p->op, rc, &p->op.err);
		atomic_store(&p->state, ANSWERED);
	}
	return rc == 0;
}

void
gather_run(struct gather *g, void (*answer)(struct gather *g))
{
	for (unsigned i = 0; i < g->n; i++) {
		if (!admit_ops(g->ask->call, &g->parts[i].op, 1)) { /* G5 */
			gather_drop(g);
			return;
		}
	}
	g->answer = answer;
	g->work.run = on_posted;
	g->ask->posted = clock_mono(g->api->clock);
	metrics_add(&g->api->gathers->m, GATHERS_ASKED, 0, 1);
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
gather_has(const struct gather_part *p)
{
	return atomic_load(&p->state) == ANSWERED && (!p->op.rc || p->op.rc == SLU_ENOTFOUND);
}

bool
gather_any(const struct gather *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (gather_has(&g->parts[i]))
			return true;
	return false;
}

void
gather_why(const struct gather *g, const struct gather_part *p, struct slu_err *err)
{
	const slu_time time = atomic_load(&g->api->stats_timeout);

	if (atomic_load(&p->state) == ANSWERED)
		*err = ask_err_of(&p->op);
	else
		(void)slu_fail(err, SLU_EDOWN, "shard %s did not answer within %" PRId64 " ms",
			       broker_shard_name(g->api->broker, p->lane), time / SLU_MS);
}

static void
add_name(struct gather_missing *m, const char *name)
{
	for (unsigned i = 0; i < m->n; i++)
		if (strcmp(m->names[i], name) == 0)
			return;
	m->more |= m->n == GATHER_NAMES;
	if (m->n < GATHER_NAMES)
		m->names[m->n++] = name;
}

void
gather_missing(const struct gather *g, struct gather_missing *m)
{
	for (unsigned i = 0; i < g->n; i++) {
		const struct gather_part *const p = &g->parts[i];

		if (gather_has(p))
			continue;
		if (m->n == 0)
			gather_why(g, p, &m->err);
		add_name(m, broker_shard_name(g->api->broker, p->lane));
	}
}

void
gather_warn(const struct ask *a, const struct gather_missing *m)
{
	const slu_time now = clock_mono(a->api->clock);
	slu_time last = atomic_load(&a->api->gathers->warned);

	if (m->n == 0 || (last && now - last < WARN_EVERY) ||
	    !atomic_compare_exchange_strong(&a->api->gathers->warned, &last, now))
		return;
	log_warn(a->api->log, "answered without some shards", F_STR("shard", m->names[0]),
		 F_U64("missing", m->n), F_STR("path", a->call->route->path),
		 F_STR("why", m->err.text));
}

void
gather_write(struct json_out *w, const struct ask *a, const struct gather_missing *m)
{
	if (m->n == 0)
		return;
	json_out_bool(w, "partial", true);
	json_out_array(w, "missing");
	for (unsigned i = 0; i < m->n; i++)
		json_out_str(w, NULL, slice_of(m->names[i]));
	json_out_close(w);
	json_out_str(w, "message", slice_of(m->err.text));
	gather_warn(a, m);
}
