/*
 * search.c - GET /v1/admin/search: messages of all queues of a namespace, or of all namespaces, that match.
 *
 *      {"messages":[...], "looked":1000, "of":3200000, "cursor":"..."}
 *
 *      first page: OP_QUEUES, a page of counts ──> `of`
 *      OP_LIST without a queue, up to 1,000 rows ──> on a file thread: read, write those that match
 *
 *  SEARCH-1  A call looks at 1,000 messages or 8 MiB of records, and answers a cursor. Two searches run at once; another one
 *            is refused with 429.
 *  SEARCH-2  `of` counts the messages when the search began. It is missing if there are too many queues to add up.
 */
#include "api/admin/admin.h"

#include "api/admin/filter.h"
#include "api/admin/total.h"
#include "api/flat/page.h"
#include "api/flat/view.h"
#include "api/handler.h"

enum {
	AT_ONCE = 2,
	LOOK_BYTES = 8 << 20
};

struct state {
	struct slice namespace; /* n 0: all */
	struct slice state;
	uint64_t cursor;
	uint32_t limit;
	bool mask; /* show masked bodies also to a caller who may see them */
	struct admin_filter filter;

	enum msg_state only;
	slu_time now;
	struct admin_total total;
	uint32_t shown;
	uint32_t own; /* messages of reserved queues, which do not count */
	struct rows rows;
};

static const struct param params[] = {
	PARAM(name, struct state, namespace),
	PARAM(word, struct state, state),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
	ADMIN_FILTER_PARAMS(struct state),
	PARAM(flag, struct state, mask),
};

/* --- the answer --------------------------------------------------------------- */

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->apicall->state;

	if (m->queue.n && m->queue.p[0] == '.') {
		s->own++;
		return;
	}
	if (!admin_filter_matches(&s->filter, s->now, r->op->engine, row, rows_searched(r, m), error, &r->bytes))
		return;
	json_out_object(w, NULL);
	flat_view_message(w, row, m, error, w->b->n < API_PAYLOAD_BYTES ? FLAT_BASE64 : FLAT_NOT_SHOWN);
	rows_write_masked(r);
	json_out_close(w);
	r->enough = ++s->shown == s->limit;
}

static void
written(struct apicall *a, int rc)
{
	struct state *const s = a->state;
	struct json_out *const w = &s->rows.w;

	if (apicall_refused(a, rc, NULL))
		return;
	page_end(&s->rows);
	json_out_u64(w, "looked", s->rows.at - s->own);
	if (s->total.known)
		json_out_u64(w, "of", s->total.of);
	page_reply(&s->rows);
}

static void
listed(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	s->rows = (struct rows){
		.apicall = a,
		.op = &a->op,
		.write = write_row,
		.done = written,
		.patient = true,
		.max_bytes = LOOK_BYTES,
	};
	rows_hide(&s->rows, s->namespace, s->mask);
	s->filter.masked = rows_are_masked(&s->rows);
	page_start(&s->rows, "messages");
}

/* --- the search --------------------------------------------------------------- */

static void
look(struct apicall *a)
{
	const struct state *const s = a->state;

	apicall_op(a, &a->op, OP_LIST, s->namespace, (struct slice){ 0 });
	a->op.state = s->only;
	a->op.cursor = s->cursor;
	apicall_run_rows(a, API_PAGE_MAX, listed);
}

static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;

	(void)sent;
	atomic_fetch_sub(&a->api->searches, 1);
	apicall_end(a);
}

static void
search(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int rc = admin_filter_check(&s->filter, &err);

	if (!rc)
		rc = flat_view_only(s->state, &s->only, &err);
	if (!rc && admin_filter_is_empty(&s->filter))
		rc = slu_fail(&err, SLU_EINVAL, "expected something to search for: id, key, correlation_id, attribute, text, error, "
						"reason, older_than or newer_than");
	if (apicall_refused(a, rc, err.text))
		return;
	if (atomic_fetch_add(&a->api->searches, 1) >= AT_ONCE) { /* SEARCH-1 */
		atomic_fetch_sub(&a->api->searches, 1);
		apicall_refuse(a, SLU_EBUSY, "two searches are running; try again");
		return;
	}
	a->x->ended = ended;
	s->now = clock_wall(a->api->clock);
	if (s->cursor)
		look(a);
	else
		admin_total_count(a, &s->total, &(struct admin_total){ .namespace = s->namespace, .only = s->only, .then = look });
}

const struct handler admin_search = { search, sizeof(struct state), QUERY_ROWS(params) };
