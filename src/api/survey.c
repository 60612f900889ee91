#include "api/survey.h"

#include "api/flat_view.h"

static void
conclude(struct ask *a, struct survey *s, const struct gather *g)
{
	gather_missing(g, &s->missing);
	if (!gather_any(g))
		s->rc = (int)s->missing.err.code;
	s->then(a);
}

/* --- one queue ---------------------------------------------------------------- */

static void
add(struct op_queue *sum, const struct op_queue *q)
{
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		sum->count[i] += q->count[i];
	sum->oldest = q->oldest > sum->oldest ? q->oldest : sum->oldest;
	sum->totals.accepted += q->totals.accepted;
	sum->totals.delivered += q->totals.delivered;
	sum->totals.done += q->totals.done;
	sum->totals.failed += q->totals.failed;
	sum->totals.died += q->totals.died;
}

static void
take_queue(struct gather *g)
{
	struct survey *const s = g->arg;

	s->rc = SLU_ENOTFOUND;
	for (unsigned i = 0; i < g->n; i++) {
		const struct gather_part *const p = &g->parts[i];

		if (!gather_has(p) || p->op.rc)
			continue;
		if (s->n == 0)
			s->sum = p->op.queues[0];
		else
			add(&s->sum, &p->op.queues[0]);
		s->shard[s->n] = broker_shard_name(g->api->broker, p->lane);
		s->each[s->n++] = p->op.queues[0];
		s->rc = 0;
	}
	/* Whether it is on a shard that does not tell is not known. */
	gather_missing(g, &s->missing);
	if (s->rc && s->missing.n > 0)
		s->rc = (int)s->missing.err.code;
	s->then(g->ask);
}

void
survey_queue(struct ask *a, struct survey *s, struct slice space, struct slice queue,
	     void (*then)(struct ask *a))
{
	struct broker_place places[SUPPLIED_MAX];
	struct slu_err err = { 0 };
	struct gather *g;
	unsigned n;
	int rc;

	*s = (struct survey){ .then = then };
	rc = broker_places(a->api->broker, ask_routes(a), space, queue, places, &n, &err);
	if (rc) {
		ask_refuse(a, rc, err.text);
		return;
	}
	g = gather_new(a, n);
	for (unsigned i = 0; g && i < n; i++) {
		if (!gather_op(g, i, OP_STATS, space, queue, places[i].lane, 1))
			return;
		g->parts[i].op.here = n > 1;
	}
	if (!g)
		return;
	g->arg = s;
	gather_run(g, take_queue);
}

/* --- all queues --------------------------------------------------------------- */

/* Has the lane more than it could tell? */
static bool
goes_on(const struct gather_part *p)
{
	return p->op.cursor != 0 && p->op.cursor >> BROKER_CURSOR_BITS == p->lane;
}

static void
take_rows(struct survey *s, const struct gather_part *p)
{
	for (uint32_t i = 0; i < p->op.n_queues; i++) {
		s->queues[s->n_queues] = p->op.queues[i];
		s->lanes[s->n_queues++] = p->lane;
	}
}

/* In the order of the lanes. What does not fit as a whole is for the next page: nobody
 * knows a cursor for the middle of what a lane has told. */
static void
take_page(struct gather *g)
{
	struct survey *const s = g->arg;
	const uint32_t next = g->parts[g->n - 1].lane + 1;

	s->cursor = next < broker_shards(g->api->broker) ? (uint64_t)next << BROKER_CURSOR_BITS
							 : 0;
	for (unsigned i = 0; i < g->n; i++) {
		const struct gather_part *const p = &g->parts[i];

		if (!gather_has(p))
			continue;
		if (p->op.n_queues > s->limit - s->n_queues) {
			s->cursor = (uint64_t)p->lane << BROKER_CURSOR_BITS;
			break;
		}
		take_rows(s, p);
		if (goes_on(p)) {
			s->cursor = p->op.cursor;
			break;
		}
	}
	conclude(g->ask, s, g);
}

/* How many lanes are asked at once, from the first on. */
static uint32_t
width(const struct ask *a, uint32_t first, uint32_t limit)
{
	const uint32_t left = broker_shards(a->api->broker) - first;
	const uint32_t most = SURVEY_ROWS / limit ? SURVEY_ROWS / limit : 1;

	return left < most ? left : most;
}

void
survey_queues(struct ask *a, struct survey *s, struct slice space, uint64_t cursor,
	      uint32_t limit, void (*then)(struct ask *a))
{
	const uint64_t first = cursor >> BROKER_CURSOR_BITS;
	struct gather *g;
	uint32_t n;

	*s = (struct survey){ .then = then, .limit = limit };
	if (first >= broker_shards(a->api->broker)) {
		ask_refuse(a, SLU_EINVAL, "cursor: it is of no shard there is");
		return;
	}
	s->queues = arena_array(&a->memory, limit, sizeof *s->queues);
	s->lanes = arena_array(&a->memory, limit, sizeof *s->lanes);
	if (!s->queues || !s->lanes) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	n = width(a, (uint32_t)first, limit);
	g = gather_new(a, n);
	if (!g)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (!gather_op(g, i, OP_TOPICS, space, (struct slice){ 0 }, (uint32_t)first + i,
			       limit))
			return;
	g->parts[0].op.cursor = cursor;
	g->arg = s;
	gather_run(g, take_page);
}

/* --- what is told ------------------------------------------------------------- */

bool
survey_refused(struct ask *a, const struct survey *s, const char *not_there)
{
	if (!s->rc)
		return false;
	if (s->rc == SLU_ENOTFOUND)
		ask_refuse(a, s->rc, not_there);
	else
		ask_refuse_err(a, &s->missing.err, -1);
	gather_warn(a, &s->missing);
	return true;
}

/* The lanes of one stand side by side. */
static bool
has_shards(const struct broker *b)
{
	return strcmp(broker_shard_name(b, 0), broker_shard_name(b, broker_shards(b) - 1)) != 0;
}

void
survey_write_shards(struct json_out *w, const struct ask *a, const struct survey *s)
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
survey_write_shard(struct json_out *w, const struct ask *a, const struct survey *s, uint32_t i)
{
	if (has_shards(a->api->broker))
		json_out_str(w, "shard", slice_of(broker_shard_name(a->api->broker, s->lanes[i])));
}
