#include "api/admit.h"

#include "api/api.h"
#include "api/params.h"
#include "api/refusals.h"
#include "auth/guard.h"
#include "base/log.h"
#include "core/names.h"
#include "engine/op.h"
#include "http/call.h"
#include "net/tls_peer.h"

#include <stdio.h>

static void
forbid(struct call *c, struct slice namespace, unsigned missing_right)
{
	const char *const right = right_name(missing_right);
	char text[NAME_TEXT + 64], value[NAME_TEXT + 128];
	const int n = namespace.n ? (int)namespace.n : 1;
	const char *const name = namespace.n ? namespace.p : "*";

	(void)snprintf(text, sizeof text, "needs the scope %.*s:%s", n, name, right); /* fits */
	(void)snprintf(value, sizeof value,                                           /* too */
		       "Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"%.*s:%s\"",
		       n, name, right);
	(void)call_add(c, "WWW-Authenticate", slice_of(value)); /* the status says it, too */
	refusals_caller(call_arg(c), c, REFUSAL_SCOPE, text);
	api_refuse(c, SLU_EFORBIDDEN, text, -1);
}

/* --- at the door ------------------------------------------------------------------ */

/* Sentences have no quotes: they name no value of the caller's. */
static void
challenge(struct call *c, bool had_token, const char *text)
{
	char value[320] = "Bearer realm=\"sluice\"";

	if (had_token)
		(void)snprintf(value, sizeof value, /* a long sentence is cut */
			       "Bearer realm=\"sluice\", error=\"invalid_token\", "
			       "error_description=\"%.200s\"",
			       text);
	(void)call_add(c, "WWW-Authenticate", slice_of(value)); /* the status says it, too */
}

static void
refuse(struct call *c, struct api *api, int rc, enum refusal why, const struct slu_err *err)
{
	if (rc == SLU_EFORBIDDEN && why == REFUSAL_SCOPE) { /* over all namespaces */
		forbid(c, (struct slice){ 0 }, c->route->needs == NEEDS_METRICS ? RIGHT_READ : RIGHT_ADMIN);
		return;
	}
	if (rc != SLU_ENOMEM)
		refusals_caller(api, c, why, err->text);
	if (rc == SLU_EAUTH)
		challenge(c, call_field(c, "authorization").p != NULL, err->text);
	log_debug(api->log, "request refused", F_STR("route", c->route->path),
		  F_STR("why", err->text), F_CALL(c));
	api_refuse(c, rc, err->text, -1);
}

/* The names in the certificate that the client has shown, if it has. */
static void
add_certificate(const struct call *c, struct guard_request *q,
		struct slice uris[static TLS_URIS_MAX])
{
	const struct tls_peer *const peer = call_peer(c);

	if (!peer)
		return;
	q->subject = slice_of(peer->subject);
	q->uris = uris;
	for (; q->n_uris < peer->n_uris; q->n_uris++)
		uris[q->n_uris] = slice_of(peer->uris[q->n_uris]);
}

/* Of a query that the handler does not read strictly itself. */
static bool
check_query(struct call *c)
{
	const struct route *const r = c->route;
	struct slu_err err = { 0 };
	int rc;

	if (c->query.n == 0 || r->query == QUERY_READ)
		return true;
	rc = params_check(c->query, r->dialect ? r->dialect->params : NULL, r->query == QUERY_ANY, &err);
	if (rc)
		api_refuse(c, rc, err.text, -1);
	return rc == 0;
}

static bool
is_named(const void *arg, struct slice host)
{
	return call_is_named(arg, host);
}

/* A browser may send a GET without being asked: P4 of auth/web.h. */
static bool
changes_by_get(const struct call *c)
{
	return c->route->needs & (RIGHT_WRITE | RIGHT_CONSUME | NEEDS_HOLDER) &&
	       slice_eq(c->method, SLICE("GET"));
}

/* What the browser says of the page that sends this, if a browser sends it. */
static struct web_request
page_of(const struct call *c)
{
	struct web_request page = {
		.host = call_field(c, "host"),
		.origin = call_field(c, "origin"),
		.fetch_site = call_field(c, "sec-fetch-site"),
		.get_changes = changes_by_get(c),
		.is_named = is_named,
		.named_arg = c,
	};

	if (page.get_changes) {
		page.referer = call_field(c, "referer");
		page.agent = call_field(c, "user-agent");
	}
	return page;
}

struct slice
admit_own_host(const struct call *c)
{
	const struct api *const api = call_arg(c);
	const struct web_request page = page_of(c);

	return guard_is_own_host(api->guard, c->listener, &page) ? page.host : (struct slice){ 0 };
}

bool
admit(struct call *c, void *arg)
{
	struct api *const api = arg;
	struct slice uris[TLS_URIS_MAX];
	struct guard_request q = {
		.needs = c->route->needs,
		.thread = call_thread(c),
		.listener = c->listener,
		.is_owner = api->guard->places[c->listener].is_private && call_is_owner(c),
		.authorization = call_field(c, "authorization"),
		.web = page_of(c),
	};
	struct slu_err err = { 0 };
	struct identity *who;
	int rc;

	api_echo(c, api); /* also of what is refused, here or later */
	if (atomic_load(&api->guard->certificates))
		add_certificate(c, &q, uris);
	rc = guard_check(api->guard, &q, &who, &err);
	c->who = who;
	if (rc)
		refuse(c, api, rc, q.refusal, &err);
	return rc == 0 && check_query(c);
}

void
admit_dismiss(void *who)
{
	identity_unref(who);
}

bool
admit_routes(const struct route *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (rows[i].needs == 0)
			return false;
	return true;
}

/* --- behind it -------------------------------------------------------------------- */

struct pass {
	struct call *call;
	struct slice last; /* the namespace that was asked about last, and may be used */
};

/* A right that the call needs there and has not, or 0. */
static unsigned
missing(const struct call *c, struct slice namespace)
{
	const unsigned needs = c->route->needs, one_of = needs_one_of(needs);

	for (unsigned right = RIGHT_READ; right < RIGHT_ALL; right <<= 1)
		if (one_of & right && identity_may(c->who, namespace, right))
			return 0;
	if (one_of)
		return one_of & RIGHT_READ ? RIGHT_READ : RIGHT_CONSUME;
	for (unsigned right = RIGHT_READ; right < RIGHT_ALL; right <<= 1)
		if (needs & right && !identity_may(c->who, namespace, right))
			return right;
	return 0;
}

static bool
pass(struct pass *p, struct slice namespace)
{
	unsigned right;

	if (p->last.n > 0 && slice_eq(p->last, namespace))
		return true;
	right = missing(p->call, namespace);
	if (right) {
		forbid(p->call, namespace, right);
		return false;
	}
	p->last = namespace;
	return true;
}

/* What has a namespace of its own has it instead of the op's. */
static bool
pass_op(struct pass *p, const struct op *op)
{
	if (!pass(p, op->space))
		return false;
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].m.space.n > 0 && !pass(p, op->puts[i].m.space))
			return false;
	for (uint32_t i = 0; i < op->n_items; i++)
		if (op->items[i].space.n > 0 && !pass(p, op->items[i].space))
			return false;
	return true;
}

bool
admit_ops(struct call *c, const struct op *ops, unsigned n)
{
	struct pass p = { .call = c };

	if (c->route->needs > RIGHT_ALL && !needs_one_of(c->route->needs))
		return true; /* the guard has asked for all namespaces */
	for (unsigned i = 0; i < n; i++)
		if (!pass_op(&p, &ops[i]))
			return false;
	return true;
}

bool
admit_space(struct call *c, struct slice namespace)
{
	struct pass p = { .call = c };

	return pass(&p, namespace);
}
