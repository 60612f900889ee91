#include "api/queuestats.h"

#include "api/api.h"
#include "api/flat/view.h"
#include "api/worker/workers.h"

static void
conclude(struct apicall *a, struct queuestats *s, const struct fanout *g)
{
	fanout_missing(g, &s->missing);
	if (!fanout_any(g))
		s->rc = (int)s->missing.err.code;
	s->then(a);
}

void
queuestats_crew(const struct api *api, struct op_queue *q)
{
	const struct queue_crew crew = workers_crew(api->workers, slice_of(q->space), slice_of(q->name), clock_mono(api->clock));

	q->workers = crew.n;
	q->slots = crew.slots;
	q->used = crew.used;
}

/* --- one queue ---------------------------------------------------------------- */

static void
add(struct op_queue *sum, const struct op_queue *q)
{
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		sum->count[i] += q->count[i];
	sum->oldest = q->oldest > sum->oldest ? q->oldest : sum->oldest;
	sum->wait = q->wait > sum->wait ? q->wait : sum->wait;
	sum->empty = q->empty > sum->empty ? q->empty : sum->empty;
	ledger_add_totals(&sum->totals, &q->totals);
}

static void
take_queue(struct fanout *g)
{
	struct queuestats *const s = g->arg;

	s->rc = SLU_ENOTFOUND;
	for (unsigned i = 0; i < g->n; i++) {
		const struct fanout_part *const p = &g->parts[i];

		if (!fanout_has(p) || p->op.rc)
			continue;
		if (s->n == 0)
			s->sum = p->op.queues[0];
		else
			add(&s->sum, &p->op.queues[0]);
		s->shard[s->n] = broker_shard_name(g->api->broker, p->lane);
		s->each[s->n++] = p->op.queues[0];
		s->rc = 0;
	}
	if (s->n)
		queuestats_crew(g->api, &s->sum);
	/* A shard that did not answer may have the queue. */
	fanout_missing(g, &s->missing);
	if (s->rc && s->missing.n > 0)
		s->rc = (int)s->missing.err.code;
	s->then(g->apicall);
}

void
queuestats_queue(struct apicall *a, struct queuestats *s, struct slice space, struct slice queue,
		 void (*then)(struct apicall *a))
{
	struct broker_place places[SUPPLIED_MAX];
	struct slu_err err = { 0 };
	struct fanout *g;
	unsigned n;
	int rc;

	*s = (struct queuestats){ .then = then };
	rc = broker_places(a->api->broker, apicall_routes(a), space, queue, places, &n, &err);
	if (apicall_refused(a, rc, err.text))
		return;
	g = fanout_new(a, n);
	for (unsigned i = 0; g && i < n; i++) {
		if (!fanout_op(g, i, OP_STATS, space, queue, places[i].lane, 1))
			return;
		g->parts[i].op.here = n > 1;
	}
	if (!g)
		return;
	g->arg = s;
	fanout_run(g, take_queue);
}

/* --- all queues --------------------------------------------------------------- */

/* Does the lane have more queues than its answer? */
static bool
goes_on(const struct fanout_part *p)
{
	return p->op.cursor != 0 && p->op.cursor >> BROKER_CURSOR_BITS == p->lane;
}

static void
take_rows(const struct api *api, struct queuestats *s, const struct fanout_part *p)
{
	for (uint32_t i = 0; i < p->op.n_queues; i++) {
		s->queues[s->n_queues] = p->op.queues[i];
		queuestats_crew(api, &s->queues[s->n_queues]);
		s->lanes[s->n_queues++] = p->lane;
	}
}

/* In the order of the lanes. A lane whose queues do not all fit is for the next page: a cursor
 * cannot point into the answer of a lane. */
static void
take_page(struct fanout *g)
{
	struct queuestats *const s = g->arg;
	const uint32_t next = g->parts[g->n - 1].lane + 1;

	s->cursor = next < broker_lanes(g->api->broker) ? (uint64_t)next << BROKER_CURSOR_BITS
							: 0;
	for (unsigned i = 0; i < g->n; i++) {
		const struct fanout_part *const p = &g->parts[i];

		if (!fanout_has(p))
			continue;
		if (p->op.n_queues > s->limit - s->n_queues) {
			s->cursor = (uint64_t)p->lane << BROKER_CURSOR_BITS;
			break;
		}
		take_rows(g->api, s, p);
		if (goes_on(p)) {
			s->cursor = p->op.cursor;
			break;
		}
	}
	conclude(g->apicall, s, g);
}

/* How many lanes are asked at once, from the first on. */
static uint32_t
width(const struct apicall *a, uint32_t first, uint32_t limit)
{
	const uint32_t left = broker_lanes(a->api->broker) - first;
	const uint32_t most = QUEUESTATS_ROWS / limit ? QUEUESTATS_ROWS / limit : 1;

	return left < most ? left : most;
}

void
queuestats_queues(struct apicall *a, struct queuestats *s, struct slice space, uint64_t cursor,
		  uint32_t limit, void (*then)(struct apicall *a))
{
	const uint64_t first = cursor >> BROKER_CURSOR_BITS;
	struct fanout *g;
	uint32_t n;

	*s = (struct queuestats){ .then = then, .limit = limit };
	if (first >= broker_lanes(a->api->broker)) {
		apicall_refuse(a, SLU_EINVAL, "cursor: unknown shard; expected the cursor of an answer");
		return;
	}
	s->queues = arena_array(&a->memory, limit, sizeof *s->queues);
	s->lanes = arena_array(&a->memory, limit, sizeof *s->lanes);
	if (!s->queues || !s->lanes) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	n = width(a, (uint32_t)first, limit);
	g = fanout_new(a, n);
	if (!g)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (!fanout_op(g, i, OP_QUEUES, space, (struct slice){ 0 }, (uint32_t)first + i,
			       limit))
			return;
	g->parts[0].op.cursor = cursor;
	g->arg = s;
	fanout_run(g, take_page);
}

/* --- answers ------------------------------------------------------------------ */

bool
queuestats_refused(struct apicall *a, const struct queuestats *s, const char *not_there)
{
	if (!s->rc)
		return false;
	if (s->rc == SLU_ENOTFOUND)
		apicall_refuse(a, s->rc, not_there);
	else
		apicall_refuse_err(a, &s->missing.err, -1);
	if (s->missing.err.code != SLU_EMOVED) /* the client asks the owner */
		fanout_warn(a, &s->missing);
	return true;
}

/* The lanes of a shard follow each other. */
static bool
has_shards(const struct broker *b)
{
	return strcmp(broker_shard_name(b, 0), broker_shard_name(b, broker_lanes(b) - 1)) != 0;
}

void
queuestats_write_shards(struct json_out *w, const struct apicall *a, const struct queuestats *s)
{
	if (s->n < 2) {
		if (has_shards(a->api->broker))
			json_out_str(w, "shard", slice_of(s->shard[0]));
		return;
	}
	json_out_array(w, "shards");
	for (unsigned i = 0; i < s->n; i++) {
		json_out_object(w, NULL);
		json_out_str(w, "shard", slice_of(s->shard[i]));
		flat_view_counts(w, &s->each[i]);
		json_out_close(w);
	}
	json_out_close(w);
}

void
queuestats_write_shard(struct json_out *w, const struct apicall *a, const struct queuestats *s, uint32_t i)
{
	if (has_shards(a->api->broker))
		json_out_str(w, "shard", slice_of(broker_shard_name(a->api->broker, s->lanes[i])));
}
