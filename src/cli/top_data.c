#include "cli/top.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_table.h"
#include "base/mem.h"

#include <stdlib.h>

struct row {
	struct slice namespace, topic;
	struct slice display_namespace, display_topic;
	uint64_t ready, delayed, leased, held, dead;
	int64_t oldest_ready_ms;
	bool paused;
	struct slice since_start;
};

static const struct json_field row_fields[] = {
	JSON_FIELD(text, struct row, namespace),
	JSON_FIELD(text, struct row, topic),
	JSON_FIELD(text, struct row, display_namespace),
	JSON_FIELD(text, struct row, display_topic),
	JSON_FIELD(u64, struct row, ready),
	JSON_FIELD(u64, struct row, delayed),
	JSON_FIELD(u64, struct row, leased),
	JSON_FIELD(u64, struct row, held),
	JSON_FIELD(u64, struct row, dead),
	JSON_FIELD(i64, struct row, oldest_ready_ms),
	JSON_FIELD(bool, struct row, paused),
	JSON_FIELD(raw, struct row, since_start),
};

#define TOTAL(text, rate)                                                                                                               \
	{                                                                                                                               \
		.name = { text, sizeof text - 1 }, .read = json_read_u64, .offset = (rate) * sizeof(uint64_t), .size = sizeof(uint64_t) \
	}

static const struct json_field total_fields[] = {
	TOTAL("accepted", RATE_IN),
	TOTAL("delivered", RATE_OUT),
	TOTAL("finished", RATE_DONE),
	TOTAL("failed", RATE_FAILED),
	TOTAL("died", RATE_DIED),
};

/* --- reading -------------------------------------------------------------------- */

static void
put_name(struct slice name, char out[static TOP_NAME])
{
	(void)snprintf(out, TOP_NAME, "%.*s", (int)name.n, name.p);
}

static void
fill(struct top_queue *q, const struct row *row)
{
	struct json r;

	*q = (struct top_queue){
		.ready = row->ready,
		.delayed = row->delayed,
		.leased = row->leased,
		.held = row->held,
		.dead = row->dead,
		.oldest = row->oldest_ready_ms,
		.paused = row->paused,
	};
	put_name(row->namespace, q->space);
	put_name(row->topic, q->name);
	put_name(row->display_namespace, q->space_shown);
	put_name(row->display_topic, q->shown);
	if (row->since_start.n == 0)
		return;
	json_init(&r, row->since_start, JSON_DEPTH);
	json_fields(&r, total_fields, COUNT(total_fields), JSON_LENIENT, q->totals);
}

struct sample {
	struct top_queue *queues;
	size_t n;
	char cursor[32];
};

static int
take_queue(struct sample *s, struct json *r)
{
	struct row row = { .oldest_ready_ms = -1 };
	struct top_queue *p;

	json_fields(r, row_fields, COUNT(row_fields), JSON_LENIENT, &row);
	p = mem_realloc(s->queues, (s->n + 1) * sizeof *p);
	if (!p)
		return SLU_ENOMEM;
	s->queues = p;
	fill(&p[s->n++], &row);
	return 0;
}

static int
take_page(struct sample *s, struct slice page, struct slu_err *err)
{
	struct json_str name;
	struct json r;
	int rc = 0;

	s->cursor[0] = '\0';
	json_init(&r, page, JSON_DEPTH);
	json_object(&r);
	while (!rc && json_member(&r, &name)) {
		if (json_str_is(&name, SLICE("queues"))) {
			json_array(&r);
			while (!rc && json_element(&r))
				rc = take_queue(s, &r);
		} else if (json_str_is(&name, SLICE("cursor"))) {
			const struct slice c = json_text(&r);

			(void)snprintf(s->cursor, sizeof s->cursor, "%.*s", (int)c.n, c.p);
		}
	}
	if (rc)
		return slu_fail(err, SLU_ENOMEM, "no memory for so many queues");
	return json_end(&r, err);
}

static int
ask(struct top *t, struct sample *s, struct slu_err *err)
{
	struct query *q = &t->s.query;
	struct slice page;
	int rc;

	do {
		query_path(q, "/v1/admin/queues");
		query_param(q, "namespace", t->all ? NULL : t->s.space);
		query_param(q, "limit", "1000");
		query_param(q, "cursor", s->cursor[0] ? s->cursor : NULL);
		rc = query_get(q, &page, err);
		if (!rc)
			rc = take_page(s, page, err);
	} while (!rc && s->cursor[0] && s->n < TOP_QUEUES_MAX);
	return rc;
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
	q->history[q->n_history++] = q->ready + q->delayed + q->leased + q->held;
}

/* A server that was started again counts from 0. */
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

void
top_sample(struct top *t)
{
	struct sample s = { 0 };
	const slu_time now = clock_mono(&clock_system);

	t->err = (struct slu_err){ 0 };
	if (ask(t, &s, &t->err)) {
		mem_free(s.queues);
		if (t->err.code == SLU_ECANCELED) /* by a key or a signal: not the server's fault */
			t->err.code = 0;
		return;
	}
	compare(t, &s, now);
	mem_free(t->queues);
	t->queues = s.queues;
	t->n = s.n;
	t->taken = now;
}

void
top_release(struct top *t)
{
	mem_free(t->queues);
	t->queues = NULL;
	t->n = 0;
}

/* --- order ---------------------------------------------------------------------- */

static int
by_order(const void *a, const void *b, void *arg)
{
	const struct top_queue *const p = a, *const q = b;
	const struct top *const t = arg;
	const struct top_order *o = &top_orders[t->order];
	const double x = o->value ? o->value(a) : 0, y = o->value ? o->value(b) : 0;
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
		return; /* also of two lines that a queue on its way to another shard has */
	for (size_t i = 0; i < t->n_shown; i++) {
		if (is_chosen(t, &t->queues[i])) {
			t->selected = i;
			return;
		}
	}
	if (t->inside)
		top_note(t, "queue %s is gone", t->chosen_name);
	t->inside = false;
	if (t->n_shown > 0)
		top_choose(t, t->selected < t->n_shown ? t->selected : t->n_shown - 1);
}
