#include "api/authorize_call.h"

#include "api/authorize.h"
#include "api/dialect.h"
#include "api/handler.h"
#include "auth/guard.h"
#include "base/log.h"
#include "http/request.h"

#include <stdio.h>

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
	(void)call_add(c, "WWW-Authenticate", slice_of(value)); /* the status is enough */
}

static void
refuse(struct call *c, struct api *api, int rc, enum refusal why, const struct slu_err *err)
{
	if (rc == SLU_EFORBIDDEN && why == REFUSAL_SCOPE) /* over all namespaces */
		handler_lacks(&c->x, c->route->needs == NEEDS_METRICS ? "*:read" : "*:admin");
	if (rc == SLU_EAUTH)
		challenge(c, call_field(c, "authorization").p != NULL, err->text);
	log_debug(api->log, "request refused", F_STR("route", c->route->path),
		  F_STR("why", err->text), F_CALL(c));
	dialect_refuse(c, rc, err->text, -1);
}

/* Of a query that the handler does not read strictly itself. */
static bool
check_query(struct call *c)
{
	const struct route *const r = c->route;
	struct slu_err err;
	int rc;

	no_err(&err);
	if (c->query.n == 0 || r->query == QUERY_READ)
		return true;
	rc = params_check(c->query, r->dialect->params, r->query == QUERY_ANY, &err);
	if (rc)
		dialect_refuse(c, rc, err.text, -1);
	return rc == 0;
}

static bool
is_named(const void *arg, struct slice host)
{
	return exchange_is_named(arg, host);
}

/* A browser may send a GET without being asked: WEB-4 of auth/web.h. */
static bool
changes_by_get(const struct call *c)
{
	return c->route->needs & (RIGHT_WRITE | RIGHT_CONSUME | NEEDS_HOLDER) &&
	       slice_eq(c->method, SLICE("GET"));
}

/* The fields that a browser sends about the page. */
static struct web_request
page_of(const struct call *c, const struct request *r)
{
	struct web_request page = {
		.host = request_header(r, "host"),
		.origin = request_header(r, "origin"),
		.fetch_site = request_header(r, "sec-fetch-site"),
		.console = request_header(r, "sluice-console"),
		.changes = !slice_eq(c->method, SLICE("GET")) && !slice_eq(c->method, SLICE("HEAD")),
		.get_changes = changes_by_get(c),
		.is_named = is_named,
		.named_arg = &c->x,
	};

	if (page.get_changes) {
		page.referer = request_header(r, "referer");
		page.agent = request_header(r, "user-agent");
	}
	return page;
}

struct slice
authorize_own_host(const struct call *c)
{
	const struct api *const api = exchange_arg(&c->x);
	const struct web_request page = page_of(c, call_request(c));

	return guard_is_own_host(api->guard, c->x.listener, &page) ? page.host : (struct slice){ 0 };
}

bool
authorize_call(struct call *c, void *arg)
{
	struct api *const api = arg;
	const struct request *const r = call_request(c);
	struct guard_request q = {
		.needs = c->route->needs,
		.authorization = request_header(r, "authorization"),
		.signs = c->route->dialect->signs,
		.web = page_of(c, r),
	};
	struct slu_err err;
	int rc;

	no_err(&err);
	dialect_begin(c, api); /* also for refusals */
	rc = authorize_caller(api, &c->x, &q, &err);
	if (rc)
		refuse(c, api, rc, q.refusal, &err);
	return rc == 0 && check_query(c);
}

bool
authorize_routes(const struct route *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (rows[i].needs == 0)
			return false;
	return true;
}
