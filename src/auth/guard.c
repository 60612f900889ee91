#include "auth/guard.h"

#include <assert.h>
#include <strings.h>

bool
guard_is_on(const struct guard *g)
{
	return atomic_load(&g->certificates) || auth_is_on(g->auth);
}

/* With what the guard knows of the listener. */
static struct web_request
complete(const struct guard *g, unsigned listener, const struct web_request *q)
{
	struct web_request web = *q;

	web.local = g->places[listener].local;
	web.is_unix = g->places[listener].is_unix;
	web.no_tokens = !auth_is_on(g->auth);
	return web;
}

bool
guard_is_own_host(const struct guard *g, unsigned listener, const struct web_request *q)
{
	const struct web_request web = complete(g, listener, q);

	return web_is_own_host(&web, g->hosts, g->n_hosts);
}

/* For callers whose credentials a browser sends by itself. */
static int
check_page(const struct guard *g, struct guard_request *q, struct slu_err *err)
{
	const struct web_request web = complete(g, q->listener, &q->web);

	q->refusal = REFUSAL_WEB_PAGE;
	return web_check(&web, g->hosts, g->n_hosts, err);
}

static int
as_anyone(const struct guard *g, struct guard_request *q, struct identity **who,
	  struct slu_err *err)
{
	*who = identity_anyone();
	return check_page(g, q, err);
}

/* "Bearer", spaces, and the token, which has none. */
static int
by_token(const struct guard *g, struct guard_request *q, struct identity **who,
	 struct slu_err *err)
{
	static const char scheme[] = "bearer ";
	const size_t n = sizeof scheme - 1;
	struct slice token = q->authorization;

	q->refusal = REFUSAL_BAD_TOKEN;
	if (token.n <= n || strncasecmp(token.p, scheme, n) != 0)
		return slu_fail(err, SLU_EAUTH, "expected Authorization: Bearer TOKEN");
	token = (struct slice){ token.p + n, token.n - n };
	while (token.n > 0 && token.p[0] == ' ')
		token = (struct slice){ token.p + 1, token.n - 1 };
	return auth_check(g->auth, q->thread, token, who, &q->refusal, err);
}

static int
by_certificate(const struct guard *g, struct guard_request *q, struct identity **who,
	       struct slu_err *err)
{
	int rc = check_page(g, q, err);

	if (!rc)
		rc = cert_identity(who, q->subject, q->uris, q->n_uris, atomic_load(&g->map), err);
	if (rc != SLU_EINVAL)
		return rc;
	q->refusal = REFUSAL_CERTIFICATE;
	err->code = SLU_EAUTH;
	return SLU_EAUTH;
}

static bool
has_open_metrics(const struct guard *g, const struct guard_request *q)
{
	return q->needs == NEEDS_METRICS &&
	       (g->metrics == METRICS_OPEN || (g->metrics == METRICS_LOCAL && g->places[q->listener].local));
}

/* Where only certificates are asked for: the file system has checked who may open the socket, and
 * the system knows who did. */
static bool
is_owner(const struct guard *g, const struct guard_request *q)
{
	return q->is_owner && g->places[q->listener].is_private && !auth_is_on(g->auth);
}

static int
identify(const struct guard *g, struct guard_request *q, struct identity **who,
	 struct slu_err *err)
{
	if (!guard_is_on(g) || has_open_metrics(g, q) || is_owner(g, q))
		return as_anyone(g, q, who, err);
	if (q->authorization.p)
		return by_token(g, q, who, err);
	if (atomic_load(&g->certificates) && q->subject.p)
		return by_certificate(g, q, who, err);
	q->refusal = REFUSAL_NO_TOKEN;
	if (!auth_is_on(g->auth))
		return slu_fail(err, SLU_EAUTH, "this server asks for a client certificate: use https://");
	return slu_fail(err, SLU_EAUTH, "this server asks for a token: Authorization: Bearer TOKEN");
}

/* What needs a right in one namespace is checked there, when it is known. */
static int
check_right(struct guard_request *q, const struct identity *id, struct slu_err *err)
{
	const struct slice all = { 0 };

	q->refusal = REFUSAL_SCOPE;
	if (q->needs == NEEDS_METRICS && !identity_may(id, all, RIGHT_READ))
		return slu_fail(err, SLU_EFORBIDDEN, "needs the scope *:read");
	if (q->needs == NEEDS_SERVER && !identity_may(id, all, RIGHT_ADMIN))
		return slu_fail(err, SLU_EFORBIDDEN, "needs the scope *:admin");
	return 0;
}

int
guard_check(const struct guard *g, struct guard_request *q, struct identity **who,
	    struct slu_err *err)
{
	int rc;

	assert(q->needs != 0);
	*who = NULL;
	if (q->needs == NEEDS_NOTHING)
		return 0;
	rc = identify(g, q, who, err);
	if (!rc)
		rc = check_right(q, *who, err);
	if (rc) {
		identity_unref(*who);
		*who = NULL;
	}
	return rc;
}
