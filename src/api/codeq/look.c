/*
 * look.c - GET /tasks/{id} and GET /tasks/{id}/result.
 */
#include "api/codeq/task.h"

static void
answer_bytes(struct apicall *a, struct slice text)
{
	buf_put(&a->x->out, text.p, text.n);
	apicall_reply(a, 200);
}

/* The member of the document of a finished task. */
static struct slice
member_of(struct slice document, const char *wanted)
{
	struct slice found = { 0 };
	struct json_str name;
	struct json r;

	json_init(&r, document, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name))
		if (json_str_is(&name, slice_of(wanted)))
			found = json_skip(&r);
	if (json_end(&r, NULL))
		found.n = 0;
	return found;
}

/* For a caller who may only look: api/mask/mask.h. */
static void
hide(struct apicall *a, struct codeq_task *t)
{
	if (mask_for_caller(a, codeq_space(a), &t->payload) || mask_for_caller(a, codeq_space(a), &t->done))
		t->rc = SLU_ENOMEM;
}

static void
show_task(struct apicall *a)
{
	struct codeq_task *const t = a->part;
	struct codeq_view view = { .row = &t->row, .m = &t->m, .owner = t->owner, .error = t->error };
	struct json_out w;

	hide(a, t);
	view.payload = t->payload;
	if (t->rc) {
		codeq_refuse_rc(a, t->rc, NULL);
		return;
	}
	if (t->done.n > 0) {
		answer_bytes(a, member_of(t->done, "task"));
		return;
	}
	if (!t->alive) {
		codeq_refuse(a, 404, "task not found");
		return;
	}
	json_out_init(&w, &a->x->out);
	codeq_task_write(&w, NULL, &a->memory, &view);
	apicall_reply(a, 200);
}

static void
get_task(struct apicall *a)
{
	codeq_find(codeq_of(a)->own, a, codeq_rest(a), show_task);
}

/* --- the result --------------------------------------------------------------- */

static void
show_result(struct apicall *a)
{
	struct codeq_task *const t = a->part;

	hide(a, t);
	if (t->done.n > 0 && t->rc != SLU_ENOMEM)
		answer_bytes(a, t->done);
	else if (t->rc && t->rc != SLU_ETIMEOUT && t->rc != SLU_ENOTFOUND && t->rc != SLU_ECANCELED)
		codeq_refuse_rc(a, t->rc, NULL);
	else
		codeq_refuse(a, 404, "result not found");
}

static void
wait_for_result(struct apicall *a)
{
	const uint32_t wait = codeq_of(a)->wait;
	struct codeq_task *const t = a->part;

	if (t->rc || t->done.n > 0)
		show_result(a);
	else if (!t->alive)
		codeq_refuse(a, 404, "task not found");
	else
		codeq_await(t, a, (slu_time)(wait < CODEQ_RESULT_WAIT ? wait : CODEQ_RESULT_WAIT) * SLU_SEC, show_result);
}

static void
get_result(struct apicall *a)
{
	codeq_find(codeq_of(a)->own, a, codeq_rest(a), wait_for_result);
}

const struct codeq_action codeq_task_get = { get_task, sizeof(struct codeq_task), CODEQ_EITHER, 0 };
const struct codeq_action codeq_result_get = { get_result, sizeof(struct codeq_task), CODEQ_EITHER, 0 };
