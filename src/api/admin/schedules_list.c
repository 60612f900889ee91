/*
 * schedules_list.c - GET /v1/admin/schedules: the schedules of a namespace, a page at a time.
 */
#include "api/admin/admin.h"

#include "api/flat/page.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/schedule/show.h"
#include "core/schedule/schedule_doc.h"

struct state {
	struct slice namespace;
	uint64_t cursor;
	uint32_t limit;
	struct rows rows;
};

static const struct param params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
};

/* Reads files of time zones: on a file thread. */
static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct apicall *const a = r->apicall;
	char *const room = arena_alloc(&a->memory, m->payload.n + 1);
	struct schedule_plan plan;
	struct schedule s;

	(void)row;
	(void)error;
	if (!room || schedule_decode(m->payload, room, &s, NULL))
		return;
	json_out_object(w, NULL);
	schedule_show(w, m->space, &s, zones_plan(&a->api->zones, &s, &plan, NULL) ? NULL : &plan, false);
	json_out_close(w);
}

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	s->rows = (struct rows){ .apicall = a, .op = &a->op, .write = write_row, .done = page_done, .patient = true };
	page_start(&s->rows, "schedules");
}

static void
list(struct apicall *a)
{
	const struct state *const s = a->state;

	apicall_op(a, &a->op, OP_LIST, s->namespace, SLICE(SCHEDULE_QUEUE));
	a->op.cursor = s->cursor;
	apicall_run_rows(a, s->limit, answer);
}

const struct handler admin_schedules = { list, sizeof(struct state), QUERY_ROWS(params) };
