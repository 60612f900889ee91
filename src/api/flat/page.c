#include "api/flat/page.h"

#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"

void
page_start(struct rows *r, const char *name)
{
	json_out_open(&r->w, &r->apicall->x->out);
	json_out_array(&r->w, name);
	rows_start(r);
}

void
page_look(struct rows *r, struct apicall *a, rows_write *take, void (*done)(struct apicall *a, int rc))
{
	*r = (struct rows){
		.apicall = a,
		.op = &a->op,
		.write = take,
		.done = done,
		.patient = true,
		.max_bytes = API_LOOK_BYTES,
	};
	rows_hide(r, a->op.space, false);
	json_out_init(&r->w, &a->x->out);
	rows_start(r);
}

uint64_t
page_cursor(const struct rows *r)
{
	const struct op *const op = r->op;

	return r->at < op->n_rows ? op->rows[r->at - 1].after : op->cursor;
}

void
page_end(struct rows *r)
{
	json_out_close(&r->w);
}

void
page_reply(struct rows *r)
{
	flat_view_cursor(&r->w, page_cursor(r));
	json_out_close(&r->w);
	apicall_reply(r->apicall, 200);
}

void
page_done(struct apicall *a, int rc)
{
	if (apicall_refused(a, rc, NULL))
		return;
	page_end(a->rows);
	page_reply(a->rows);
}
