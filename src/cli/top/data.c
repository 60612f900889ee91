#include "cli/top/top.h"

#include "base/clock.h"
#include "base/json/json.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <stdlib.h>

const char *const top_counts[TOP_COUNTS] = { "ready", "delayed", "leased", "held", "dead" };

const struct top_order top_orders[] = {
	{ 'r', "ready", BY_COUNT, TOP_READY },
	{ 'd', "dead", BY_COUNT, TOP_DEAD },
	{ 'a', "age", BY_AGE, 0 },
	{ 'i', "in", BY_RATE, RATE_IN },
	{ 'o', "done", BY_RATE, RATE_DONE },
	{ 'f', "failures", BY_RATE, RATE_FAILED },
	{ 'n', "name", BY_NAME, 0 },
};

const unsigned top_n_orders = COUNT(top_orders);

uint64_t
top_depth(const struct top_queue *q)
{
	return q->counts[TOP_READY] + q->counts[TOP_DELAYED] + q->counts[TOP_LEASED] + q->counts[TOP_HELD];
}

struct sample_row {
	struct slice since_start;
	struct top_queue q;
};

static const struct json_field row_fields[] = {
	JSON_ROW("namespace", json_read_chars, struct sample_row, q.space),
	JSON_ROW("topic", json_read_chars, struct sample_row, q.name),
	JSON_ROW("display_namespace", json_read_chars, struct sample_row, q.space_shown),
	JSON_ROW("display_topic", json_read_chars, struct sample_row, q.shown),
	JSON_FIELD(raw, struct sample_row, since_start),
	JSON_ROW("ready", json_read_u64, struct sample_row, q.counts[TOP_READY]),
	JSON_ROW("delayed", json_read_u64, struct sample_row, q.counts[TOP_DELAYED]),
	JSON_ROW("leased", json_read_u64, struct sample_row, q.counts[TOP_LEASED]),
	JSON_ROW("held", json_read_u64, struct sample_row, q.counts[TOP_HELD]),
	JSON_ROW("dead", json_read_u64, struct sample_row, q.counts[TOP_DEAD]),
	JSON_ROW("oldest_ready_ms", json_read_i64, struct sample_row, q.oldest),
	JSON_ROW("paused", json_read_bool, struct sample_row, q.paused),
	JSON_ROW("draining", json_read_bool, struct sample_row, q.draining),
};

static const struct json_field total_fields[] = {
	JSON_ROW("accepted", json_read_u64, struct top_queue, totals[RATE_IN]),
	JSON_ROW("delivered", json_read_u64, struct top_queue, totals[RATE_OUT]),
	JSON_ROW("finished", json_read_u64, struct top_queue, totals[RATE_DONE]),
	JSON_ROW("failed", json_read_u64, struct top_queue, totals[RATE_FAILED]),
	JSON_ROW("died", json_read_u64, struct top_queue, totals[RATE_DIED]),
};

/* --- reading -------------------------------------------------------------------- */

struct sample {
	struct top_queue *queues;
	size_t n;
};

static int
take_queue(void *arg, struct json *r, struct slu_err *err)
{
	struct sample_row row = { .q.oldest = -1 };
	struct sample *const s = arg;
	struct top_queue *p;
	struct json totals;

	json_fields(r, row_fields, COUNT(row_fields), JSON_LENIENT, &row);
	p = mem_realloc(s->queues, (s->n + 1) * sizeof *p);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for queues");
	s->queues = p;
	json_init(&totals, row.since_start.n ? row.since_start : SLICE("{}"), JSON_DEPTH);
	json_fields(&totals, total_fields, COUNT(total_fields), JSON_LENIENT, &row.q);
	p[s->n++] = row.q;
	return 0;
}

static int
ask(struct top *t, struct sample *s, struct slu_err *err)
{
	const struct query_list list = { "/v1/admin/queues", t->all ? NULL : t->s.space, "queues", TOP_PAGES_MAX, NULL };

	return query_each(&t->s.query, &list, take_queue, s, err);
}

/* --- comparing ------------------------------------------------------------------ */

static int
by_name(const void *a, const void *b)
{
	const struct top_queue *const x = a, *const y = b;
	const int c = strcmp(x->space, y->space);

	return c ? c : strcmp(x->name, y->name);
}

static void
add_history(struct top_queue *q, const struct top_queue *before)
{
	const unsigned keep = before ? before->n_history : 0;
	const unsigned drop = keep == TOP_HISTORY;

	if (before)
		memcpy(q->history, before->history + drop, (keep - drop) * sizeof q->history[0]);
	q->n_history = keep - drop;
	q->history[q->n_history++] = top_depth(q);
}

/* Computes the rates. The counters of a restarted server begin at 0. */
static void
set_rates(struct top_queue *q, const struct top_queue *before, double seconds)
{
	for (int i = 0; i < TOP_RATES; i++) {
		const uint64_t was = before && before->totals[i] <= q->totals[i] ? before->totals[i] : 0;

		q->rates[i] = (double)(q->totals[i] - was) / seconds;
	}
}

static void
compare(struct top *t, struct sample *s, slu_time now)
{
	const double seconds = (double)(now - t->taken) / 1e9;

	if (t->n > 0)
		qsort(t->queues, t->n, sizeof *t->queues, by_name);
	for (size_t i = 0; i < s->n; i++) {
		const struct top_queue *before =
			t->n ? bsearch(&s->queues[i], t->queues, t->n, sizeof *t->queues, by_name)
			     : NULL;

		add_history(&s->queues[i], before);
		if (t->taken && seconds > 0)
			set_rates(&s->queues[i], before, seconds);
	}
	t->has_rates = t->taken != 0;
}

/* Without the right to read metrics no owners are shown. */
static void
ask_owners(struct top *t, slu_time now)
{
	struct slu_err why;
	struct slice body;

	if (t->owners_taken && now - t->owners_taken < SLU_SEC)
		return;
	t->owners_taken = now;
	shardowners_release(&t->owners);
	query_path(&t->s.query, "/metrics");
	if (query_get(&t->s.query, &body, &why) == 0)
		shardowners_read(&t->owners, body);
}

/* The server may not be ready: the answer has the members in any case. */
static void
ask_nodes(struct top *t)
{
	struct slu_err why;
	struct slice body;

	if (t->is_alone)
		return;
	query_path(&t->s.query, "/readyz");
	(void)query_get(&t->s.query, &body, &why);
	if (t->s.query.answer.status)
		t->is_alone = !nodehealth_read(&t->nodes, body);
}

void
top_sample(struct top *t)
{
	struct sample s = { 0 };
	const slu_time now = clock_mono(&clock_system);

	t->err = (struct slu_err){ 0 };
	if (ask(t, &s, &t->err)) {
		mem_free(s.queues);
		if (t->err.code == SLU_ECANCELED) /* a key or a signal ended the call: not an error */
			t->err.code = 0;
		return;
	}
	t->missing = t->s.query.missing;
	compare(t, &s, now);
	ask_nodes(t);
	if (t->nodes.living)
		ask_owners(t, now);
	mem_free(t->queues);
	t->queues = s.queues;
	t->n = s.n;
	t->taken = now;
}

void
top_release(struct top *t)
{
	mem_free(t->queues);
	shardowners_release(&t->owners);
	t->queues = NULL;
	t->n = 0;
}

/* --- order ---------------------------------------------------------------------- */

static double
value_of(const struct top_queue *q, const struct top_order *o)
{
	if (o->by == BY_COUNT)
		return (double)q->counts[o->index];
	if (o->by == BY_RATE)
		return q->rates[o->index];
	return o->by == BY_AGE ? (double)q->oldest : 0;
}

static int
by_order(const void *a, const void *b, void *arg)
{
	const struct top_queue *const p = a, *const q = b;
	const struct top *const t = arg;
	const struct top_order *o = &top_orders[t->order];
	const double x = value_of(p, o), y = value_of(q, o);
	int c;

	if (p->hidden != q->hidden)
		return p->hidden ? 1 : -1;
	c = x > y ? -1 : x < y ? 1
			       : by_name(a, b);
	return t->reverse ? -c : c;
}

static void
apply_filter(struct top *t)
{
	char whole[2 * TOP_NAME];

	t->n_shown = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct top_queue *const q = &t->queues[i];

		(void)snprintf(whole, sizeof whole, "%s/%s", q->space, q->name);
		q->hidden = t->filter[0] && !strcasestr(whole, t->filter);
		t->n_shown += !q->hidden;
	}
}

void
top_choose(struct top *t, size_t place)
{
	t->selected = place;
	memcpy(t->chosen_space, t->queues[place].space, TOP_NAME);
	memcpy(t->chosen_name, t->queues[place].name, TOP_NAME);
}

static bool
is_chosen(const struct top *t, const struct top_queue *q)
{
	return strcmp(q->space, t->chosen_space) == 0 && strcmp(q->name, t->chosen_name) == 0;
}

void
top_sort(struct top *t)
{
	apply_filter(t);
	if (t->n > 0)
		qsort_r(t->queues, t->n, sizeof *t->queues, by_order, t);
	if (t->selected < t->n_shown && is_chosen(t, &t->queues[t->selected]))
		return; /* a queue that is moving has two lines */
	for (size_t i = 0; i < t->n_shown; i++) {
		if (is_chosen(t, &t->queues[i])) {
			t->selected = i;
			return;
		}
	}
	if (t->inside)
		top_note(t, "queue %s was deleted", t->chosen_name);
	t->inside = false;
	if (t->n_shown > 0)
		top_choose(t, t->selected < t->n_shown ? t->selected : t->n_shown - 1);
}
