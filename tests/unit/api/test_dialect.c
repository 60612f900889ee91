/*
 * A dialect of one page, in the table of a whole server: routes, codecs, error names and
 * the form of refusals are its own. No other file knows it.
 *
 *      POST /page/put?queue=Q     the body is the message   -> OK 1
 *      GET  /page/ready?queue=Q   how many messages wait    -> OK N
 *      errors                                               -> NO <name> <text>
 */
#include "nodekit.h"
#include "test.h"

#include "api/handler.h"
#include "api/dialect.h"
#include "api/flat/flat.h"
#include "auth/guard.h"

#include <stdio.h>

/* --- the dialect -------------------------------------------------------------------- */

static const char text_plain[] = "text/plain";

struct page {
	struct slice queue;
	struct op_put put;
	struct op_queue seen;
};

static const struct param params[] = {
	PARAM(name, struct page, queue, .required = true),
};

static struct page *
read_page(struct call *c, void *api)
{
	struct apicall *const a = apicall_new(api, c);
	struct page *const p = a ? apicall_state(a, sizeof *p) : NULL;

	return p && apicall_params(a, params, COUNT(params), p) ? p : NULL;
}

static void
answer_number(struct apicall *a)
{
	const struct page *const p = a->state;

	if (a->op.rc) {
		apicall_refuse_op(a, &a->op);
		return;
	}
	buf_printf(&a->x->out, "OK %u\n", a->op.verb == OP_ENQUEUE ? 1 : p->seen.count[MSG_READY]);
	call_answer(call_of(a->x), 200, text_plain, &a->x->out);
}

static void
put(struct call *c, void *api)
{
	struct page *const p = read_page(c, api);
	struct apicall *const a = c->x.user;

	if (!p)
		return;
	p->put.m.payload = c->body;
	apicall_op(a, &a->op, OP_ENQUEUE, SLICE("pages"), p->queue);
	a->op.puts = &p->put;
	a->op.n_puts = 1;
	apicall_run(a, answer_number);
}

static void
ready(struct call *c, void *api)
{
	struct page *const p = read_page(c, api);
	struct apicall *const a = c->x.user;

	if (!p)
		return;
	apicall_op(a, &a->op, OP_STATS, SLICE("pages"), p->queue);
	a->op.queues = &p->seen;
	a->op.max_queues = 1;
	apicall_run(a, answer_number);
}

static const struct dialect_error errors[] = {
	{ SLU_EINVAL, "what", 422 },
	{ SLU_ENOTFOUND, "gone", 410 },
};

static const struct route routes[] = {
	{ "POST", "/page/put", put, .query = QUERY_READ, .needs = RIGHT_WRITE, .max_body = 1000 },
	{ "GET", "/page/ready", ready, .query = QUERY_READ, .needs = RIGHT_READ },
};

static const struct dialect page_dialect;

static void
begin(struct call *c, const struct api *api)
{
	(void)api;
	(void)call_add(c, "X-Page", SLICE("1"));
}

static void
refuse(struct call *c, const struct slu_err *err, int64_t index)
{
	const struct dialect_error row = dialect_error(&page_dialect, (int)err->code);

	(void)index;
	buf_clear(&c->x.out);
	buf_printf(&c->x.out, "NO %s %s\n", row.name, err->text);
	call_answer(c, row.status, text_plain, &c->x.out);
}

static void
describe(struct buf *out, const struct dialect_refusal *r)
{
	buf_printf(out, "NO %s %s\n", dialect_error(&page_dialect, r->code).name, r->reason);
}

static const struct dialect page_dialect = {
	.name = "page",
	.prefix = "/page/",
	.routes = routes,
	.n_routes = COUNT(routes),
	.type = text_plain,
	.errors = errors,
	.n_errors = COUNT(errors),
	.begin = begin,
	.refuse = refuse,
	.describe = describe,
};

/* --- tests -------------------------------------------------------------------------- */

static struct nodekit kit;
static char answer[4096];

static const char *
apicall(const char *head, const char *body)
{
	struct kit_caller w;
	char text[512];
	const int n = snprintf(text, sizeof text,
			       "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", head,
			       strlen(body), body);

	caller_open(&w, &kit);
	caller_send(&w, (struct slice){ text, (size_t)n });
	nodekit_settle(&kit);
	(void)snprintf(answer, sizeof answer, "%s", w.got.p ? w.got.p : "");
	caller_release(&w);
	return answer;
}

static void
start(void)
{
	static const struct dialect *const table[] = { &flat_dialect, &page_dialect, NULL };

	nodekit_init(&kit, NODEKIT_MEMORY);
	kit.dialects = table;
	CHECK_EQ(0, nodekit_start(&kit), kit.err.text);
}

static void
stop(void)
{
	CHECK_EQ(0, nodekit_stop(&kit));
	nodekit_release(&kit);
}

TEST(a_dialect_serves_its_routes_beside_the_others)
{
	start();
	CHECK_CONTAINS("\r\n\r\nOK 1\n", apicall("POST /page/put?queue=q", "hello"));
	CHECK_CONTAINS("\r\nX-Page: 1\r\n", apicall("GET /page/ready?queue=q", ""));
	CHECK_CONTAINS("\r\n\r\nOK 1\n", answer);
	CHECK_CONTAINS("\"ready\":1", apicall("GET /stats?namespace=pages&topic=q", ""));
	stop();
}

TEST(errors_have_the_names_the_status_and_the_form_of_the_dialect)
{
	start();
	CHECK_CONTAINS("HTTP/1.1 410 ", apicall("GET /page/ready?queue=none", ""));
	CHECK_CONTAINS("\r\n\r\nNO gone ", answer);
	CHECK_CONTAINS("HTTP/1.1 422 ", apicall("POST /page/put?queue=a+b", ""));
	CHECK_CONTAINS("\r\n\r\nNO what ", answer);
	CHECK_CONTAINS("\r\n\r\nNO what ", apicall("POST /page/put?queue=q&more=1", ""));
	stop();
}

TEST(refusals_of_the_server_have_the_form_of_the_dialect_that_owns_the_path)
{
	start();
	CHECK_CONTAINS("\r\n\r\nNO gone no_such_path\n", apicall("GET /page/other", ""));
	CHECK_CONTAINS("\r\n\r\nNO what method_not_allowed\n", apicall("GET /page/put", ""));
	CHECK_CONTAINS("\"error\":\"not_found\"", apicall("GET /other", ""));
	stop();
}
