#include "api/authorize.h"

#include "api/apicall.h"
#include "api/refusals.h"
#include "auth/guard.h"
#include "core/names.h"
#include "net/tls_peer.h"

#include <stdio.h>

/* --- the caller ------------------------------------------------------------------- */

/* Adds the names in the certificate of the client, if it has one. */
static void
add_certificate(const struct exchange *x, struct guard_request *q, struct slice uris[static TLS_URIS_MAX])
{
	const struct tls_peer *const peer = exchange_peer(x);

	if (!peer)
		return;
	q->subject = slice_of(peer->subject);
	q->uris = uris;
	for (; q->n_uris < peer->n_uris; q->n_uris++)
		uris[q->n_uris] = slice_of(peer->uris[q->n_uris]);
}

int
authorize_caller(struct api *api, struct exchange *x, struct guard_request *q, struct slu_err *err)
{
	struct slice uris[TLS_URIS_MAX];
	struct identity *who;
	int rc;

	q->thread = exchange_thread(x);
	q->listener = x->listener;
	q->is_owner = api->guard->places[x->listener].is_private && exchange_is_owner(x);
	if (atomic_load(&api->guard->certificates))
		add_certificate(x, q, uris);
	rc = guard_check(api->guard, q, &who, err);
	x->who = who;
	if (rc && rc != SLU_ENOMEM)
		refusals_caller(api, x, q->refusal, err->text);
	return rc;
}

void
authorize_dismiss(void *who)
{
	identity_unref(who);
}

/* --- its ops ---------------------------------------------------------------------- */

struct pass {
	struct apicall *apicall;
	struct slice last; /* the last namespace that was allowed */
};

/* A right in the namespace that the apicall needs and does not have, or 0. */
static unsigned
missing(const struct apicall *a, struct slice namespace)
{
	const unsigned needs = a->terms.needs, one_of = needs_one_of(needs);

	for (unsigned right = RIGHT_READ; right < RIGHT_ALL; right <<= 1)
		if (one_of & right && identity_may(a->x->who, namespace, right))
			return 0;
	if (one_of)
		return one_of & RIGHT_READ ? RIGHT_READ : RIGHT_CONSUME;
	for (unsigned right = RIGHT_READ; right < RIGHT_ALL; right <<= 1)
		if (needs & right && !identity_may(a->x->who, namespace, right))
			return right;
	return 0;
}

static void
forbid(struct apicall *a, struct slice namespace, unsigned missing_right)
{
	const int n = namespace.n ? (int)namespace.n : 1;
	const char *const name = namespace.n ? namespace.p : "*";
	char scope[NAME_TEXT + 16], text[NAME_TEXT + 64];

	(void)snprintf(scope, sizeof scope, "%.*s:%s", n, name, right_name(missing_right)); /* fits */
	(void)snprintf(text, sizeof text, "needs the scope %s", scope);                     /* too */
	if (a->terms.form->lacks)
		a->terms.form->lacks(a->x, scope);
	refusals_caller(a->api, a->x, REFUSAL_SCOPE, text);
	apicall_refuse(a, SLU_EFORBIDDEN, text);
}

static bool
pass(struct pass *p, struct slice namespace)
{
	unsigned right;

	if (p->last.n > 0 && (slice_is(p->last, namespace) || slice_eq(p->last, namespace)))
		return true;
	right = missing(p->apicall, namespace);
	if (right) {
		forbid(p->apicall, namespace, right);
		return false;
	}
	p->last = namespace;
	return true;
}

/* A put or an item may name another namespace than its op. */
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
authorize_ops(struct apicall *a, const struct op *ops, unsigned n)
{
	struct pass p = { .apicall = a };

	if (a->terms.needs > RIGHT_ALL && !needs_one_of(a->terms.needs))
		return true; /* the guard checked the right for all namespaces */
	for (unsigned i = 0; i < n; i++)
		if (!pass_op(&p, &ops[i]))
			return false;
	return true;
}

bool
authorize_space(struct apicall *a, struct slice namespace)
{
	struct pass p = { .apicall = a };

	return pass(&p, namespace);
}
