#include "api/audit/audit.h"

#include "api/apicall.h"
#include "api/audit/change.h"
#include "api/refusals.h"
#include "auth/identity.h"
#include "base/lines.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	AUDIT_LINE = 4096 /* names, ids and a key fit */
};

/* What a line is about: a part of an op that is about one queue. */
struct audit_part {
	struct slice space, queue;
	uint64_t ids[AUDIT_IDS];
	uint32_t n_ids;
	uint64_t count; /* of messages that did not fail */
	int rc;
};

static void
add_id(struct audit_part *p, uint64_t id)
{
	if (p->n_ids < AUDIT_IDS)
		p->ids[p->n_ids++] = id;
}

/* --- a line ------------------------------------------------------------------- */

/* Writes the shard that ran the op, by the map of its routes. */
static void
write_place(struct json_out *w, const struct apicall *a, const struct op *op, const struct audit_part *p)
{
	struct broker_place places[SUPPLIED_MAX];
	unsigned n = 0;

	if (p->queue.n == 0 ||
	    broker_places(a->api->broker, op->route.routes, p->space, p->queue, places, &n, NULL))
		return;
	for (unsigned i = 0; i < n; i++) {
		if (places[i].lane != op->route.lane && i + 1 < n)
			continue;
		json_out_str(w, "shard", slice_of(places[i].shard));
		json_out_str(w, "rule", slice_of(places[i].rule));
		return;
	}
}

static void
write_ids(struct json_out *w, const struct audit_part *p)
{
	char text[24];

	json_out_u64(w, "count", p->count);
	if (p->n_ids == 0)
		return;
	json_out_array(w, "ids"); /* as strings: ids are larger than 2^53 */
	for (uint32_t i = 0; i < p->n_ids; i++) {
		(void)snprintf(text, sizeof text, "%" PRIu64, p->ids[i]);
		json_out_str(w, NULL, slice_of(text));
	}
	json_out_close(w);
}

/* Appends the line to the audit file, and frees it. */
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
write_line(const struct apicall *a, const struct op *op, const struct audit_part *p)
{
	const struct identity *const who = a->x->who;
	const char *const request = apicall_ids(a).request;
	struct json_out w;
	struct buf line;

	buf_init(&line, AUDIT_LINE);
	json_out_open(&w, &line);
	json_out_time(&w, "time", clock_wall(a->api->clock));
	json_out_str(&w, "who", who ? who->name : SLICE(""));
	json_out_str(&w, "verb", slice_of(op_verb_name(op->verb)));
	json_out_str(&w, "namespace", p->space);
	if (p->queue.n)
		json_out_str(&w, "queue", p->queue);
	write_place(&w, a, op, p);
	if (op_is_of(op->verb, OP_OF_LOCK) && op->lock.key.n)
		json_out_str(&w, "key", op->lock.key);
	if (op->verb == OP_FINISH && op->unlock.key.n)
		json_out_str(&w, "key", op->unlock.key);
	write_ids(&w, p);
	change_write(&w, &a->change);
	json_out_str(&w, "outcome", slice_of(slu_err_row(p->rc)->flat_name));
	if (request)
		json_out_str(&w, "request_id", slice_of(request));
	json_out_close(&w);
	add_line(a->api, &line);
}

void
audit_named(const struct apicall *a, const char *verb, struct slice namespace, const char *kind, struct slice name, int rc)
{
	const struct identity *const who = a->x->who;
	const char *const request = apicall_ids(a).request;
	struct json_out w;
	struct buf line;

	if (!a->api->audit)
		return;
	buf_init(&line, AUDIT_LINE);
	json_out_open(&w, &line);
	json_out_time(&w, "time", clock_wall(a->api->clock));
	json_out_str(&w, "who", who ? who->name : SLICE(""));
	json_out_str(&w, "verb", slice_of(verb));
	if (namespace.n)
		json_out_str(&w, "namespace", namespace);
	if (kind)
		json_out_str(&w, kind, name);
	change_write(&w, &a->change);
	json_out_str(&w, "outcome", slice_of(slu_err_row(rc)->flat_name));
	if (request)
		json_out_str(&w, "request_id", slice_of(request));
	json_out_close(&w);
	add_line(a->api, &line);
}

void
audit_action(const struct apicall *a, const char *verb, int rc)
{
	audit_named(a, verb, (struct slice){ 0 }, NULL, (struct slice){ 0 }, rc);
}

/* --- which parts -------------------------------------------------------------- */

static struct slice
or_that(struct slice own, struct slice other)
{
	return own.n ? own : other;
}

static bool
is_same(const struct audit_part *p, struct slice space, struct slice queue)
{
	return slice_eq(p->space, space) && slice_eq(p->queue, queue);
}

/* An op accepts all its messages, or none. */
static void
write_puts(const struct apicall *a, const struct op *op)
{
	struct audit_part p = { .rc = op->rc };

	for (uint32_t i = 0; i < op->n_puts; i++) {
		const struct message *const m = &op->puts[i].m;
		const struct slice space = or_that(m->space, op->space);
		const struct slice queue = or_that(m->queue, op->queue);

		if (i > 0 && !is_same(&p, space, queue)) {
			write_line(a, op, &p);
			p = (struct audit_part){ .rc = op->rc };
		}
		p.space = space;
		p.queue = queue;
		p.count += op->rc == 0;
		if (m->id && op->rc == 0)
			add_id(&p, m->id);
	}
	write_line(a, op, &p);
}

/* Every item has its own outcome: neighbours with the same queue and outcome share a line. */
static void
write_items(const struct apicall *a, const struct op *op)
{
	struct audit_part p = { 0 };

	for (uint32_t i = 0; i < op->n_items; i++) {
		const struct op_item *const item = &op->items[i];
		const struct slice space = or_that(item->space, op->space);
		const struct slice queue = or_that(item->queue, op->queue);
		const int rc = op->rc ? op->rc : item->rc;

		if (i > 0 && (!is_same(&p, space, queue) || p.rc != rc)) {
			write_line(a, op, &p);
			p = (struct audit_part){ 0 };
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
write_other(const struct apicall *a, const struct op *op)
{
	struct audit_part p = {
		.space = op->space,
		.queue = op->queue,
		.rc = op->rc,
		.count = op->verb == OP_CLAIM ? op->n_rows : op->count,
	};

	for (uint32_t i = 0; op->verb == OP_CLAIM && i < op->n_rows; i++)
		add_id(&p, op->rows[i].id);
	write_line(a, op, &p);
}

/* An empty claim has no line. */
static bool
is_news(const struct op *op)
{
	return op_is(op->verb, OP_AUDITED) && (op->verb != OP_CLAIM || op->rc || op->n_rows > 0);
}

void
audit_apicall(const struct apicall *a)
{
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct op *const op = &a->ops[i];

		if (!is_news(op))
			continue;
		if (op->n_puts && (op->verb == OP_ENQUEUE || op->verb == OP_FINISH))
			write_puts(a, op);
		if (op->n_puts && op->verb == OP_ENQUEUE)
			continue;
		if (op->n_items)
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
	json_out_open(&w, &line);
	json_out_time(&w, "time", clock_wall(api->clock));
	json_out_str(&w, "verb", SLICE("refuse"));
	json_out_str(&w, "reason", slice_of(e->reason));
	json_out_str(&w, "address", slice_of(e->place));
	json_out_u64(&w, "count", n);
	json_out_close(&w);
	add_line(api, &line);
}
