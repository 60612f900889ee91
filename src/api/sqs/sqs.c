#include "api/sqs/sqs.h"

#include "api/api.h"
#include "api/authorize.h"
#include "api/refusals.h"
#include "api/sqs/out.h"
#include "auth/guard.h"
#include "auth/sigv4.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <sys/random.h>

/* --- the table ---------------------------------------------------------------- */

/* clang-format off */
static const struct sqs_action actions[] = {
	{ "SendMessage",                  sqs_send,              RIGHT_WRITE,   .queue = true },
	{ "SendMessageBatch",             sqs_send,              RIGHT_WRITE,   .queue = true },
	{ "ReceiveMessage",               sqs_receive,           RIGHT_CONSUME, .queue = true, .waits = true },
	{ "DeleteMessage",                sqs_delete,            RIGHT_CONSUME, .queue = true },
	{ "DeleteMessageBatch",           sqs_delete,            RIGHT_CONSUME, .queue = true },
	{ "ChangeMessageVisibility",      sqs_change_visibility, RIGHT_CONSUME, .queue = true },
	{ "ChangeMessageVisibilityBatch", sqs_change_visibility, RIGHT_CONSUME, .queue = true },
	{ "CreateQueue",                  sqs_create,            NEEDS_SOME, .queue = false },
	{ "GetQueueUrl",                  sqs_get_url,           NEEDS_SOME, .queue = false },
	{ "GetQueueAttributes",           sqs_get_attributes,    NEEDS_SOME,     .queue = true },
	{ "ListQueues",                   sqs_list,              NEEDS_SOME, .queue = false },
	{ "SetQueueAttributes",           sqs_set_attributes,    RIGHT_ADMIN,   .queue = true },
	{ "DeleteQueue",                  sqs_delete_queue,      RIGHT_ADMIN,   .queue = true },
	{ "PurgeQueue",                   sqs_purge,             RIGHT_ADMIN,   .queue = true },
	{ "TagQueue",                     sqs_tag,               RIGHT_ADMIN,   .queue = true },
	{ "UntagQueue",                   sqs_untag,             RIGHT_ADMIN,   .queue = true },
	{ "ListQueueTags",                sqs_list_tags,         NEEDS_SOME,     .queue = true },
	{ "ListDeadLetterSourceQueues",   sqs_dead_letter_sources, NEEDS_SOME,   .queue = true },
	{ "StartMessageMoveTask",         sqs_start_move,        RIGHT_ADMIN, .queue = false },
	{ "ListMessageMoveTasks",         sqs_list_moves,        NEEDS_SOME, .queue = false },
	{ "CancelMessageMoveTask",        sqs_cancel_move,       RIGHT_ADMIN, .queue = false },
	{ "AddPermission",                sqs_unsupported,       RIGHT_ADMIN,   .queue = true },
	{ "RemovePermission",             sqs_unsupported,       RIGHT_ADMIN,   .queue = true },
};
/* clang-format on */

static const struct sqs_action *
find_action(struct slice name)
{
	for (size_t i = 0; i < COUNT(actions); i++)
		if (slice_eq(name, slice_of(actions[i].name)))
			return &actions[i];
	return NULL;
}

/* --- errors ------------------------------------------------------------------- */

const struct sqs_error sqs_errors[SQS_CODES] = {
#define X(name, shape, query, status) [SQS_##name] = { shape, query, status },
	SQS_ERRORS(X)
#undef X
};

enum sqs_code
sqs_code_of(int rc)
{
	static const struct {
		int rc;
		enum sqs_code code;
	} codes[] = {
		{ SLU_EINVAL, SQS_BAD_VALUE },
		{ SLU_EAUTH, SQS_NO_TOKEN },
		{ SLU_EFORBIDDEN, SQS_DENIED },
		{ SLU_ENOTFOUND, SQS_NO_QUEUE },
		{ SLU_ETOOBIG, SQS_BAD_VALUE },
		{ SLU_EBUSY, SQS_THROTTLED },
		{ SLU_EQFULL, SQS_THROTTLED },
		{ SLU_EMEMORY, SQS_THROTTLED },
		{ SLU_EQUOTA, SQS_THROTTLED },
		{ SLU_EDRAINING, SQS_UNSUPPORTED },
		{ SLU_EIDEM, SQS_BAD_VALUE },
		{ SLU_ECORRUPT, SQS_INTERNAL },
	};

	for (size_t i = 0; i < COUNT(codes); i++)
		if (codes[i].rc == rc)
			return codes[i].code;
	return slu_err_row(rc)->flat_status >= 500 ? SQS_UNAVAILABLE : SQS_BAD_VALUE;
}

/* By the head, before the call has its state: SQS-1. */
static bool
is_form(const struct call *c)
{
	static const char type[] = "application/x-www-form-urlencoded";
	const struct slice given = call_field(c, "content-type");

	return given.n >= sizeof type - 1 && strncasecmp(given.p, type, sizeof type - 1) == 0;
}

static bool
answers_xml(const struct call *c)
{
	const struct apicall *const a = c->x.user;

	return a && a->state ? ((const struct sqs_call *)a->state)->xml : is_form(c);
}

static void
write_json(struct buf *b, const struct sqs_error *e, struct slice text)
{
	struct json_out w;
	char type[96];

	(void)snprintf(type, sizeof type, "com.amazonaws.sqs#%s", e->shape); /* fits */
	json_out_open(&w, b);
	json_out_str(&w, "__type", slice_of(type));
	json_out_str(&w, "message", text);
	json_out_close(&w);
}

static void
write_xml(struct buf *b, const struct call *c, const struct sqs_error *e, struct slice text)
{
	const char *const id = call_added(c, "x-amzn-RequestId");

	buf_printf(b, "<?xml version=\"1.0\"?><ErrorResponse xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">"
		      "<Error><Type>%s</Type><Code>%s</Code><Message>",
		   e->status < 500 ? "Sender" : "Receiver", e->query);
	sqs_out_escape(b, text);
	buf_printf(b, "</Message><Detail/></Error><RequestId>%s</RequestId></ErrorResponse>\n", id ? id : "");
}

static void
refuse_call(struct call *c, const struct sqs_error *e, const char *text)
{
	const bool xml = answers_xml(c);
	char field[128];

	buf_clear(&c->x.out);
	if (xml) {
		write_xml(&c->x.out, c, e, slice_of(text));
	} else {
		write_json(&c->x.out, e, slice_of(text));
		(void)snprintf(field, sizeof field, "%s;%s", e->query, e->status < 500 ? "Sender" : "Receiver"); /* fits */
		(void)call_add(c, "x-amzn-query-error", slice_of(field));                                        /* the body has it in other words */
	}
	call_answer(c, e->status, xml ? "text/xml" : "application/x-amz-json-1.0", &c->x.out);
}

void
sqs_refuse(struct apicall *a, enum sqs_code code, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args); /* a long text is cut */
	va_end(args);
	refuse_call(call_of(a->x), &sqs_errors[code], text);
}

bool
sqs_failed(struct apicall *a)
{
	if (!a->op.rc)
		return false;
	if (a->op.rc == SLU_ENOTFOUND)
		sqs_refuse(a, SQS_NO_QUEUE, "The specified queue does not exist: %s", sqs_of(a)->queue);
	else
		apicall_refuse_op(a, &a->op);
	return true;
}

/* dialect.refuse */
static void
refuse(struct call *c, const struct slu_err *err, int64_t index)
{
	(void)index;                                                            /* a batch answers entry by entry */
	if (err->code == SLU_EAUTH && sigv4_is(call_field(c, "authorization"))) /* before the handler has returned */
		refuse_call(c, &sqs_errors[SQS_BAD_KEY], err->text);
	else
		refuse_call(c, &sqs_errors[sqs_code_of((int)err->code)], err->text);
}

/* dialect.describe: the server knows neither the head nor the protocol. */
static void
describe(struct buf *out, const struct dialect_refusal *r)
{
	write_json(out, &sqs_errors[r->status == 404 ? SQS_NO_ACTION : sqs_code_of(r->code)], slice_of(r->text));
}

/* --- names -------------------------------------------------------------------- */

#define DEFAULT_ACCOUNT "000000000000"

static int
take_account(struct sqs_call *s, struct slice account, struct slu_err *err)
{
	const bool standard = slice_eq(account, SLICE(DEFAULT_ACCOUNT));

	if (account.n > NAME_LONGEST)
		return slu_fail(err, SLU_EINVAL, "invalid account: too long");
	(void)snprintf(s->account, sizeof s->account, "%.*s", (int)account.n, account.p); /* fits */
	return name_fold(standard ? SLICE("default") : account, "account", s->space, err);
}

/* Takes a queue by its name, in the namespace of the call. */
static int
take_name(struct sqs_call *s, struct slice name, struct slu_err *err)
{
	int rc;

	if (name.n > SQS_NAME_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid queue name; expected at most %d characters", SQS_NAME_MAX);
	rc = name_fold(name, "queue name", s->queue, err);
	if (!rc)
		(void)snprintf(s->as, sizeof s->as, "%.*s", (int)name.n, name.p); /* fits */
	return rc;
}

/* Cuts the last segment off a path. */
static struct slice
cut_last(struct slice *path)
{
	size_t n = path->n;
	struct slice last;

	while (n > 0 && path->p[n - 1] != '/')
		n--;
	last = (struct slice){ path->p + n, path->n - n };
	path->n = n > 0 ? n - 1 : 0;
	return last;
}

int
sqs_take_url(struct sqs_call *s, struct slice url, struct slu_err *err)
{
	struct slice name, account;
	int rc;

	(void)slice_skip_past(&url, "://"); /* a path is fine, too */
	name = cut_last(&url);
	account = cut_last(&url);
	if (name.n == 0 || account.n == 0)
		return slu_fail(err, SLU_EINVAL, "invalid QueueUrl; expected http://HOST/ACCOUNT/QUEUE");
	rc = take_account(s, account, err);
	return rc ? rc : take_name(s, name, err);
}

const char *
sqs_url(const struct sqs_call *s, const char *shown, char out[static SQS_URL])
{
	(void)snprintf(out, SQS_URL, "%s/%s/%s", s->base, s->account, shown); /* a long host is cut */
	return out;
}

const char *
sqs_arn(const struct sqs_call *s, const char *shown, char out[static SQS_URL])
{
	(void)snprintf(out, SQS_URL, "arn:aws:sqs:us-east-1:%s:%s", s->account, shown); /* fits */
	return out;
}

/* --- a request ---------------------------------------------------------------- */

/* The account of a caller that names none. */
static struct slice
home_of(const struct identity *who)
{
	const struct slice home = identity_home(who);

	return slice_eq(home, SLICE("default")) ? SLICE(DEFAULT_ACCOUNT) : home;
}

/* The path without its prefix, and what QueueUrls begin with. */
static struct slice
take_base(const struct call *c, struct sqs_call *s)
{
	static const struct slice prefix = SLICE("/sqs");
	const struct slice host = call_field(c, "host");
	struct slice path = c->path;
	bool prefixed;

	prefixed = path.n >= prefix.n && memcmp(path.p, prefix.p, prefix.n) == 0 &&
		   (path.n == prefix.n || path.p[prefix.n] == '/');
	(void)snprintf(s->base, sizeof s->base, "%s://%.*s%s", exchange_is_tls(&c->x) ? "https" : "http",
		       host.n < 256 ? (int)host.n : 256, host.n ? host.p : "localhost", prefixed ? "/sqs" : "");
	if (prefixed)
		slice_skip(&path, prefix.n);
	while (path.n > 0 && path.p[0] == '/')
		slice_skip(&path, 1);
	while (path.n > 0 && path.p[path.n - 1] == '/')
		path.n--;
	return path;
}

/* The namespace and the queue: of the QueueUrl, of the path, of the caller. */
static int
take_place(struct apicall *a, struct slice path, struct slu_err *err)
{
	struct sqs_call *const s = sqs_of(a);
	int rc = 0;

	if (s->action->queue && s->q.queue_url.n > 0)
		return sqs_take_url(s, s->q.queue_url, err);
	if (memchr(path.n ? path.p : "", '/', path.n))
		rc = sqs_take_url(s, path, err);
	else
		rc = take_account(s, path.n ? path : home_of(a->x->who), err);
	if (!rc && s->q.owner.n > 0)
		rc = take_account(s, s->q.owner, err);
	if (!rc && !s->action->queue && s->q.queue_name.n > 0)
		rc = take_name(s, s->q.queue_name, err);
	return rc;
}

static bool
has_place(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	const bool by_name = s->action->run == sqs_create || s->action->run == sqs_get_url;

	if ((!s->action->queue && !by_name) || s->queue[0])
		return true;
	sqs_refuse(a, SQS_MISSING, "The request must contain the parameter %s.", by_name ? "QueueName" : "QueueUrl");
	return false;
}

static int
parse(struct apicall *a, struct slu_err *err)
{
	struct sqs_call *const s = sqs_of(a);
	const struct slice body = call_of(a->x)->body;

	return s->xml ? sqs_request_form(&s->q, &a->memory, body, err) : sqs_request_json(&s->q, &a->memory, body, err);
}

/* The action of the request; JSON names it in the head. */
static const struct sqs_action *
action_of(const struct call *c, const struct sqs_call *s)
{
	struct slice target = call_field(c, "x-amz-target");

	if (s->xml)
		return find_action(s->q.action);
	return slice_skip_past(&target, "AmazonSQS.") ? find_action(target) : NULL;
}

static struct slice
field_of(const void *arg, const char *name)
{
	return call_field(arg, name);
}

/* SQS-4: a caller that has signed gets its identity here. Returns false if it refused the call. */
static bool
check_signature(struct apicall *a)
{
	const struct call *const c = call_of(a->x);
	const struct slice authorization = call_field(c, "authorization");
	const struct sigv4_request q = { c->method, c->path, c->body, SLICE("sqs"), field_of, c };
	struct slu_err err = { 0 };
	struct identity *who;

	if (!sigv4_is(authorization))
		return true;
	if (guard_check_signature(a->api->guard, exchange_thread(a->x), authorization, &q, &who, &err)) {
		refusals_caller(a->api, a->x, REFUSAL_BAD_TOKEN, err.text);
		sqs_refuse(a, SQS_BAD_SIGNATURE, "%s", err.text);
		return false;
	}
	if (who) {
		identity_unref(a->x->who);
		a->x->who = who;
	}
	return true;
}

static void
run(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	const struct call *const c = call_of(a->x);
	const struct slice path = take_base(c, s);
	struct slu_err err = { 0 };
	int rc;

	s->xml = is_form(c);
	if (!check_signature(a))
		return;
	rc = parse(a, &err);
	if (rc) {
		sqs_refuse(a, rc == SLU_ENOMEM ? SQS_UNAVAILABLE : SQS_MALFORMED, "%s", err.text);
		return;
	}
	s->action = action_of(c, s);
	if (!s->action) {
		sqs_refuse(a, SQS_NO_ACTION, "The action or operation requested is invalid.");
		return;
	}
	a->terms.needs = s->action->needs;
	a->terms.what = s->action->name;
	rc = take_place(a, path, &err);
	if (rc) {
		sqs_refuse(a, s->action->queue ? SQS_NO_QUEUE : SQS_BAD_VALUE, "%s", err.text);
		return;
	}
	if (s->action->waits)
		exchange_hold(a->x);
	if (authorize_space(a, slice_of(s->space)) && has_place(a)) /* SQS-3: before anything is judged */
		s->action->run(a);
}

static const struct handler handler = { .run = run, .state = sizeof(struct sqs_call) };

/* --- the dialect -------------------------------------------------------------- */

static void
begin(struct call *c, const struct api *api)
{
	unsigned char r[16] = { 0 };
	char text[SQS_REQUEST_ID];

	(void)api;
	(void)getrandom(r, sizeof r, 0); /* an id that repeats is no harm */
	(void)snprintf(text, sizeof text, "%02x%02x%02x%02x-%02x%02x-4%01x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", r[0], r[1],
		       r[2], r[3], r[4], r[5], r[6] & 15, r[7], (r[8] & 63) | 128, r[9], r[10], r[11], r[12], r[13], r[14], r[15]);
	(void)call_add(c, "x-amzn-RequestId", slice_of(text)); /* the answer is fine without */
}

/* clang-format off */
static const struct route routes[] = {
	{ "POST", "/",     .handler = &handler, .needs = RIGHT_READ, .max_body = SQS_BODY_MAX, .segments = 2 },
	{ "POST", "/sqs",  .handler = &handler, .needs = RIGHT_READ, .max_body = SQS_BODY_MAX },
	{ "POST", "/sqs/", .handler = &handler, .needs = RIGHT_READ, .max_body = SQS_BODY_MAX, .below = true },
};
/* clang-format on */

const struct dialect sqs_dialect = {
	.name = "sqs",
	.prefix = "/sqs/",
	.routes = routes,
	.n_routes = COUNT(routes),
	.type = "application/x-amz-json-1.0",
	.signs = true,
	.begin = begin,
	.refuse = refuse,
	.describe = describe,
};
