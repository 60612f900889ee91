#include "api/audit.h"

#include "api/ask.h"
#include "api/refusals.h"
#include "auth/identity.h"
#include "base/lines.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	AUDIT_LINE = 4096 /* names, ids and a key fit */
};

/* What a line is about: a part of an op that is about one queue. */
struct part {
	struct slice space, queue;
	uint64_t ids[AUDIT_IDS];
	uint32_t n_ids;
	uint64_t count; /* of messages; of those that failed, none */
	int rc;
};

static void
add_id(struct part *p, uint64_t id)
{
	if (p->n_ids < AUDIT_IDS)
		p->ids[p->n_ids++] = id;
}

/* --- a line ------------------------------------------------------------------- */

/* The shard that has run it, by the map that it was routed by. */
static void
write_place(struct json_out *w, const struct ask *a, const struct op *op, const struct part *p)
{
	struct broker_place places[SUPPLIED_MAX];
	unsigned n = 0;

	if (p->queue.n == 0 ||
	    broker_places(a->api->broker, op->routes, p->space, p->queue, places, &n, NULL))
		return;
	for (unsigned i = 0; i < n; i++) {
		if (places[i].lane != op->shard && i + 1 < n)
			continue;
		json_out_str(w, "shard", slice_of(places[i].shard));
		json_out_str(w, "rule", slice_of(places[i].rule));
		return;
	}
}

static void
write_ids(struct json_out *w, const struct part *p)
{
	char text[24];

	json_out_u64(w, "count", p->count);
	if (p->n_ids == 0)
		return;
	json_out_array(w, "ids"); /* as texts: they are beyond 2^53 */
	for (uint32_t i = 0; i < p->n_ids; i++) {
		(void)snprintf(text, sizeof text, "%" PRIu64, p->ids[i]);
		json_out_str(w, NULL, slice_of(text));
	}
	json_out_close(w);
}

/* Takes the line. */
static void
add_line(const struct api *api, struct buf *line)
{
	buf_putc(line, '\n');
	if (!line->failed)
		lines_add(api->audit, buf_slice(line));
	else
		lines_drop(api->audit);
	buf_release(line);
}

static void
write_line(const struct ask *a, const struct op *op, const struct part *p)
{
	const struct identity *const who = a->call->who;
	const char *const request = call_added(a->call, "X-Request-Id");
	struct json_out w;
	struct buf line;

	buf_init(&line, AUDIT_LINE);
	json_out_init(&w, &line);
	json_out_object(&w, NULL);
	json_out_time(&w, "time", clock_wall(a->api->clock));
	json_out_str(&w, "who", who ? who->name : SLICE(""));
	json_out_str(&w, "verb", slice_of(op_verb_name(op->verb)));
	json_out_str(&w, "namespace", p->space);
	if (p->queue.n)
		json_out_str(&w, "queue", p->queue);
	write_place(&w, a, op, p);
	if (op->lock.key.n)
		json_out_str(&w, "key", op->lock.key);
	write_ids(&w, p);
	json_out_str(&w, "outcome", slice_of(slu_err_row(p->rc)->flat_name));
	if (request)
		json_out_str(&w, "request_id", slice_of(request));
	json_out_close(&w);
	add_line(a->api, &line);
}

/* --- which parts -------------------------------------------------------------- */

static struct slice
or_that(struct slice own, struct slice other)
{
	return own.n ? own : other;
}

static bool
is_same(const struct part *p, struct slice space, struct slice queue)
{
	return slice_eq(p->space, space) && slice_eq(p->queue, queue);
}

/* An enqueue is whole or has not been. */
static void
write_puts(const struct ask *a, const struct op *op)
{
	struct part p = { .rc = op->rc };

	for (uint32_t i = 0; i < op->n_puts; i++) {
		const struct message *const m = &op->puts[i].m;
		const struct slice space = or_that(m->space, op->space);
		const struct slice queue = or_that(m->queue, op->queue);

		if (i > 0 && !is_same(&p, space, queue)) {
			write_line(a, op, &p);
			p = (struct part){ .rc = op->rc };
		}
		p.space = space;
		p.queue = queue;
		p.count += op->rc == 0;
		if (m->id && op->rc == 0)
			add_id(&p, m->id);
	}
	write_line(a, op, &p);
}

/* Items go well or fail each for itself: a line for those of one queue and one outcome. */
static void
write_items(const struct ask *a, const struct op *op)
{
	struct part p = { 0 };

	for (uint32_t i = 0; i < op->n_items; i++) {
		const struct op_item *const item = &op->items[i];
		const struct slice space = or_that(item->space, op->space);
		const struct slice queue = or_that(item->queue, op->queue);
		const int rc = op->rc ? op->rc : item->rc;

		if (i > 0 && (!is_same(&p, space, queue) || p.rc != rc)) {
			write_line(a, op, &p);
			p = (struct part){ 0 };
		}
		p.space = space;
		p.queue = queue;
		p.rc = rc;
		p.count += rc == 0;
		add_id(&p, item->id);
	}
	write_line(a, op, &p);
}

static void
write_other(const struct ask *a, const struct op *op)
{
	struct part p = {
		.space = op->space,
		.queue = op->queue,
		.rc = op->rc,
		.count = op->verb == OP_CLAIM ? op->n_rows : op->count,
	};

	for (uint32_t i = 0; op->verb == OP_CLAIM && i < op->n_rows; i++)
		add_id(&p, op->rows[i].id);
	write_line(a, op, &p);
}

/* Extends and keepalives change nothing but a time. */
static const bool is_told[OP_VERBS] = {
	[OP_ENQUEUE] = true,
	[OP_CLAIM] = true,
	[OP_ACK] = true,
	[OP_NACK] = true,
	[OP_REDRIVE] = true,
	[OP_DELETE] = true,
	[OP_PURGE] = true,
	[OP_PAUSE] = true,
	[OP_POLICY_SET] = true,
	[OP_FORGET] = true,
	[OP_BACKUP] = true,
	[OP_MOVE] = true,
	[OP_ACQUIRE] = true,
	[OP_RELEASE] = true,
	[OP_STATE_PUT] = true,
	[OP_STATE_REMOVE] = true,
	[OP_STATE_META] = true,
};

/* A claim that found nothing is no news. */
static bool
is_news(const struct op *op)
{
	return is_told[op->verb] && (op->verb != OP_CLAIM || op->rc || op->n_rows > 0);
}

void
audit_ask(const struct ask *a)
{
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct op *const op = &a->ops[i];

		if (!is_news(op))
			continue;
		if (op->n_puts && op->verb == OP_ENQUEUE)
			write_puts(a, op);
		else if (op->n_items)
			write_items(a, op);
		else
			write_other(a, op);
	}
}

void
audit_episode(void *arg, const struct episode *e, uint64_t n)
{
	const struct api *const api = arg;
	struct json_out w;
	struct buf line;

	if (!api->audit || e->kind != &refusals_of_callers)
		return;
	buf_init(&line, AUDIT_LINE);
	json_out_init(&w, &line);
	json_out_object(&w, NULL);
	json_out_time(&w, "time", clock_wall(api->clock));
	json_out_str(&w, "verb", SLICE("refuse"));
	json_out_str(&w, "reason", slice_of(e->reason));
	json_out_str(&w, "address", slice_of(e->place));
	json_out_u64(&w, "count", n);
	json_out_close(&w);
	add_line(api, &line);
}
