#include "auth/codeq_token.h"

#include "base/mem.h"

static const struct {
	const char *name;
	enum codeq_scope scope;
} scopes[] = {
	{ "codeq:claim", CODEQ_CLAIM },
	{ "codeq:heartbeat", CODEQ_HEARTBEAT },
	{ "codeq:abandon", CODEQ_ABANDON },
	{ "codeq:nack", CODEQ_NACK },
	{ "codeq:result", CODEQ_RESULT },
	{ "codeq:subscribe", CODEQ_SUBSCRIBE },
	{ "codeq:admin", CODEQ_ADMIN },
};

enum {
	N_SCOPES = sizeof scopes / sizeof scopes[0],
	TENANT_LONGEST = 63
};

void
codeq_claims_scope(struct codeq_claims *c, struct slice scope)
{
	for (unsigned i = 0; i < N_SCOPES; i++)
		if (slice_eq(scope, slice_of(scopes[i].name)))
			c->scopes |= scopes[i].scope;
}

const char *
codeq_scope_name(enum codeq_scope scope)
{
	for (unsigned i = 0; i < N_SCOPES; i++)
		if (scopes[i].scope == scope)
			return scopes[i].name;
	return "?";
}

/* --- the tenant --------------------------------------------------------------- */

static bool
is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool
is_tenant(struct slice s)
{
	if (s.n < 2 || s.n > TENANT_LONGEST || !is_small(s.p[0]))
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (!is_small(s.p[i]) && !(s.p[i] >= '0' && s.p[i] <= '9') && s.p[i] != '-')
			return false;
	return true;
}

/* CODEQ-TOKEN-1. n 0: it does not hold. */
static struct slice
tenant_of(struct slice subject, const struct codeq_claims *c)
{
	struct slice tenant = { 0 };

	for (unsigned i = 0; i < CODEQ_TENANT_CLAIMS; i++) {
		if (c->tenants[i].n == 0)
			continue;
		if (tenant.n > 0 && !slice_eq(tenant, c->tenants[i]))
			return (struct slice){ 0 };
		tenant = c->tenants[i];
	}
	if (tenant.n == 0)
		tenant = subject;
	return is_tenant(tenant) ? tenant : (struct slice){ 0 };
}

/* --- the token ---------------------------------------------------------------- */

static unsigned
rights_of(const struct codeq_token *t)
{
	const unsigned own = t->works ? RIGHT_CONSUME | RIGHT_READ : RIGHT_WRITE | RIGHT_CONSUME | RIGHT_READ;

	return t->scopes & CODEQ_ADMIN ? RIGHT_ALL : own;
}

/* Copies the commands that have a valid name to text, folded. */
static void
take_types(struct codeq_token *t, const struct codeq_claims *c, char *text)
{
	for (unsigned i = 0; i < c->n_types; i++) {
		char folded[NAME_TEXT];

		t->any_type |= slice_eq(c->types[i], SLICE("*"));
		if (name_fold(c->types[i], "command", folded, NULL))
			continue;
		memcpy(text, folded, c->types[i].n);
		t->types[t->n_types++] = (struct slice){ text, c->types[i].n };
		text += c->types[i].n;
	}
}

static struct codeq_token *
token_new(struct slice subject, const struct codeq_claims *c)
{
	const size_t head = sizeof(struct codeq_token) + c->n_types * sizeof(struct slice);
	const struct slice tenant = tenant_of(subject, c);
	struct codeq_token *t;
	size_t texts = 0;

	for (unsigned i = 0; i < c->n_types; i++)
		texts += c->types[i].n;
	t = mem_zalloc(head + texts);
	if (!t)
		return NULL;
	t->scopes = c->scopes | (slice_eq(c->role, SLICE("ADMIN")) ? CODEQ_ADMIN : 0);
	t->works = c->has_types;
	take_types(t, c, (char *)t + head);
	if (tenant.n > 0)
		memcpy(t->tenant, tenant.p, tenant.n);
	return t;
}

struct identity *
codeq_identity_new(struct slice subject, const struct codeq_claims *c)
{
	struct codeq_token *const t = token_new(subject, c);
	struct grants grants = { 0 };
	struct identity *id;

	if (!t)
		return NULL;
	(void)grants_add(&grants, slice_of(t->tenant), rights_of(t)); /* a tenant is a pattern; without one it has no rights */
	id = identity_new(subject, &grants);
	if (id)
		id->token = t;
	else
		mem_free(t);
	return id;
}

bool
codeq_token_has_type(const struct codeq_token *t, struct slice command)
{
	for (unsigned i = 0; i < t->n_types; i++)
		if (slice_eq(t->types[i], command))
			return true;
	return t->any_type;
}
