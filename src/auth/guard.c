#include "auth/guard.h"

#include "auth/sigv4.h"

#include <openssl/crypto.h>

#include <assert.h>
#include <strings.h>

bool
guard_is_on(const struct guard *g)
{
	return atomic_load(&g->certificates) || auth_is_on(g->auth);
}

/* q with the listener's properties. */
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
find_token(const struct guard_request *q, struct slice *token, struct slu_err *err)
{
	static const char scheme[] = "bearer ";
	const size_t n = sizeof scheme - 1;

	*token = q->authorization;
	if (token->n <= n || strncasecmp(token->p, scheme, n) != 0)
		return slu_fail(err, SLU_EAUTH, "expected Authorization: Bearer TOKEN");
	slice_skip(token, n);
	while (token->n > 0 && token->p[0] == ' ')
		slice_skip(token, 1);
	return 0;
}

static int
by_secret(const char *secret, struct guard_request *q, struct identity **who, struct slu_err *err)
{
	struct slice token;

	q->refusal = REFUSAL_BAD_TOKEN;
	if (find_token(q, &token, err) || token.n != strlen(secret) || CRYPTO_memcmp(token.p, secret, token.n) != 0)
		return slu_fail(err, SLU_EAUTH, "this address is for the server itself");
	*who = identity_anyone();
	return 0;
}

static int
by_token(const struct guard *g, struct guard_request *q, struct identity **who,
	 struct slu_err *err)
{
	struct slice token;

	q->refusal = REFUSAL_BAD_TOKEN;
	if (find_token(q, &token, err))
		return SLU_EAUTH;
	return auth_check(g->auth, q->thread, token, who, &q->refusal, err);
}

/* The signature is checked when the body is there. */
static int
by_key(const struct guard *g, struct guard_request *q, struct slu_err *err)
{
	q->refusal = REFUSAL_BAD_TOKEN;
	return auth_knows_key(g->auth, q->authorization, err);
}

int
guard_check_signature(const struct guard *g, unsigned thread, struct slice authorization, const struct sigv4_request *q,
		      struct identity **who, struct slu_err *err)
{
	*who = NULL;
	return auth_is_on(g->auth) ? auth_check_signature(g->auth, thread, authorization, q, who, err) : 0;
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

/* If only certificates are required: the file system has checked access to the socket, and the
 * system knows the user. */
static bool
is_owner(const struct guard *g, const struct guard_request *q)
{
	return q->is_owner && g->places[q->listener].is_private && !auth_is_on(g->auth);
}

static int
identify(const struct guard *g, struct guard_request *q, struct identity **who,
	 struct slu_err *err)
{
	if (g->places[q->listener].secret)
		return by_secret(g->places[q->listener].secret, q, who, err);
	if (!guard_is_on(g) || has_open_metrics(g, q) || is_owner(g, q))
		return as_anyone(g, q, who, err);
	if (q->signs && auth_is_on(g->auth) && sigv4_is(q->authorization))
		return by_key(g, q, err);
	if (q->authorization.p)
		return by_token(g, q, who, err);
	if (atomic_load(&g->certificates) && q->subject.p)
		return by_certificate(g, q, who, err);
	q->refusal = REFUSAL_NO_TOKEN;
	if (!auth_is_on(g->auth))
		return slu_fail(err, SLU_EAUTH, "client certificate required: use https://");
	return slu_fail(err, SLU_EAUTH, "token required: send Authorization: Bearer TOKEN");
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
